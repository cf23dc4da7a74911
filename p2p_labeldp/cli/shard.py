"""``shard``: several peers of one round in one process, as a container has them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2p_labeldp.cli.logs import JsonLines, LogJson, OperatorPlace
from p2p_labeldp.cli.tls import Bind, TlsAuthority, TlsCertificate, TlsKey, bind_of, tls_of
from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.deployment.shard import Member, Shard
    from p2p_labeldp.network.party import Party

HELP = """Take part in one round as each of the peers listed in a file: what `peer` does, for several.

FILE is JSON, as `deploy` writes it: learner (ID@HOST:PORT), classes, host, limits (the options of `peer`) and peers,
each with its key, its port, its example and its contacts. It holds secrets, and is the user's alone to read. Each peer
has a state of its own in --state. One process holds them all: whoever can read its memory reads all their labels.

Example:

\b
    p2p-labeldp deploy compose by-hand --peers 3 --shards 1 --out trial
    p2p-labeldp shard trial/secrets/shard-0.json --state trial/state
"""


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The shard.")],
    state: Annotated[str, typer.Option(metavar="DIR", help="Where each peer keeps its state; made if missing.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print each outcome as one JSON object.")] = False,
    operator: OperatorPlace = None,
    bind: Bind = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_authority: TlsAuthority = None,
    log_json: LogJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    from functools import partial

    from p2p_labeldp.cli.peer import take_part, tell_outcome
    from p2p_labeldp.deployment.shard import read
    from p2p_labeldp.network.lifeline import raise_descriptor_limit
    from p2p_labeldp.network.stopping import Stopping
    from p2p_labeldp.network.transport import parse_place

    shard = read(file)
    place = None if operator is None else parse_place(operator, field="--operator")
    tls = tls_of(tls_certificate, tls_key, tls_authority)
    raise_descriptor_limit()
    parties: list[Party] = []
    try:
        for member in shard.peers:
            parties.append(_party(shard, member, Path(state), bind=bind_of(bind)))
        lines = JsonLines()
        if log_json:
            lines.attach()
        elif not quiet:
            print(f"{len(parties)} peers at {shard.host}", file=sys.stderr, flush=True)
        with Stopping() as stopping:
            take_part(
                parties,
                tell=lines.hear if log_json else lambda _fact: None,
                ended=partial(tell_outcome, as_json=as_json),
                stopping=stopping,
                operator=place,
                tls=tls,
            )
    finally:
        for party in parties:
            if party.store is not None:
                party.store.close()


def _party(shard: Shard, member: Member, state: Path, *, bind: str | None) -> Party:
    import time

    from p2p_labeldp.cli.limits import policy_of
    from p2p_labeldp.cli.peer import address_of
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.labels import Example, LabelSpace
    from p2p_labeldp.network import store
    from p2p_labeldp.network.party import Party
    from p2p_labeldp.network.transport import parse_place
    from p2p_labeldp.randomness import Secret

    limits = shard.limits
    policy = policy_of(
        max_epsilon=limits.max_epsilon,
        max_local_epsilon=limits.max_local_epsilon,
        colluders=limits.colluders,
        max_colluder_epsilon=limits.max_colluder_epsilon,
        minimum_size=limits.minimum_size,
    )
    label_space = LabelSpace(classes=tuple(shard.classes))
    if member.example.label not in label_space.classes:
        raise ConfigurationError(f"a label is none of {', '.join(label_space.classes)}", field="FILE")
    host, port = parse_place(f"{shard.host}:{member.port}", field="FILE")
    coins = Secret(_secret(member.key))
    keys = Keys(coins.identity())
    name = keys.peer_id.hex()
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigurationError(f"{str(state)!r} can't be written to: {exc.strerror}", field="--state") from exc
    return Party(
        keys=keys,
        coins=coins,
        example=Example(
            features=tuple(member.example.features),
            label=label_space.classes.index(member.example.label),
            label_id=member.label_id,
        ),
        label_space=label_space,
        host=host,
        port=port,
        learner=address_of(shard.learner, "FILE"),
        contacts=tuple(address_of(text, "FILE") for text in member.contacts),
        sequence=time.time_ns() // 1_000_000,  # grows from start to start; nobody reads it as a clock
        policy=policy,
        store=store.open_beside(state / name, peer_id=name),
        bind=bind,
    )


def _secret(text: str) -> bytes:
    from p2p_labeldp.cli.keygen import SECRET_BYTES

    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise ConfigurationError("a key is none; 64 hexadecimal digits are needed", field="FILE")
    return secret
