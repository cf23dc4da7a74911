"""``peer``: one peer of one round, with its own key, its own example and coins from the operating system."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2p_labeldp.cli.limits import (
    Colluders,
    EnrolmentKey,
    MaxColluderEpsilon,
    MaxEpsilon,
    MaxLocalEpsilon,
    MinimumSize,
    policy_of,
)
from p2p_labeldp.cli.logs import JsonLines, LogJson, OperatorPlace
from p2p_labeldp.cli.tls import Bind, TlsAuthority, TlsCertificate, TlsKey, bind_of, tls_of
from p2p_labeldp.errors import ConfigurationError, naming

if TYPE_CHECKING:
    from p2p_labeldp.facts import Ended, Fact
    from p2p_labeldp.labels import Example, LabelSpace
    from p2p_labeldp.network.party import Party
    from p2p_labeldp.network.stopping import Stopping
    from p2p_labeldp.network.tls import Tls
    from p2p_labeldp.protocol.effects import Address

HELP = """Take part in one round.

EXAMPLE is a JSON file: {"features": [17.99, 10.38, ...], "label": "malignant"}. The label leaves this process only
flipped, and sealed for the learner.

The limits are this peer's own: it computes what a round would promise, believes nobody, and takes no part in one that
passes them. What has left of the label is kept in a state file: a label leaves once, whoever the learner is. The state
belongs to the key; with the key but without its state this command refuses to start.

The state also holds the round: killed and started again, the peer takes up where it was, or abstains. SIGTERM ends it.

Example:

\b
    p2p-labeldp keygen alice.key
    p2p-labeldp peer alice.json --key alice.key --classes malignant,benign \\
        --listen 127.0.0.1:7801 --learner ID@127.0.0.1:7800 --max-epsilon 1
    p2p-labeldp peer bob.json --key bob.key --classes malignant,benign \\
        --listen 127.0.0.1:7802 --learner ID@127.0.0.1:7800 --contact ALICES_ID@127.0.0.1:7801
"""


def command(
    example: Annotated[str, typer.Argument(metavar="EXAMPLE", help="JSON file with features and label.")],
    key: Annotated[str, typer.Option(metavar="FILE", help="Key file, made by keygen.")],
    classes: Annotated[str, typer.Option(metavar="A,B", help="The label space this peer expects, in order.")],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where others reach this peer.")],
    learner: Annotated[str, typer.Option(metavar="ID@HOST:PORT", help="The learner this peer expects.")],
    contact: Annotated[
        list[str] | None, typer.Option(metavar="ID@HOST:PORT", help="A first contact; may be repeated.")
    ] = None,
    max_epsilon: MaxEpsilon = None,
    max_local_epsilon: MaxLocalEpsilon = None,
    colluders: Colluders = None,
    max_colluder_epsilon: MaxColluderEpsilon = None,
    minimum_size: MinimumSize = 3,
    enrolment: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="This peer's enrolment, made by enrol; pins the key that signed it."),
    ] = None,
    enrolment_key: EnrolmentKey = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What has left of the label, and the round. Default: KEY.state, beside the key."
        ),
    ] = None,
    new_state: Annotated[
        bool, typer.Option("--new-state", help="Start anew though the key was used with a state that is lost.")
    ] = False,
    label_id: Annotated[
        str,
        typer.Option(metavar="NAME", help="Names the example, never by its label; one name leaves once per key."),
    ] = "label",
    another_roster: Annotated[
        bool,
        typer.Option("--another-roster", help="Let a spent label leave again, flipped as before: local epsilon."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")] = False,
    operator: OperatorPlace = None,
    bind: Bind = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_authority: TlsAuthority = None,
    log_json: LogJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> int:
    """See ``HELP``."""
    import time
    from dataclasses import replace
    from functools import partial

    from p2p_labeldp.cli.enrol import read_enrolment
    from p2p_labeldp.cli.keygen import keys_of
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.network import store
    from p2p_labeldp.network.party import Party
    from p2p_labeldp.network.stopping import Stopping
    from p2p_labeldp.network.transport import parse_place
    from p2p_labeldp.randomness import Secret

    label_space = label_space_of(classes)
    held = read_example(example, label_space, label_id=label_id)
    policy = policy_of(
        max_epsilon=max_epsilon,
        max_local_epsilon=max_local_epsilon,
        colluders=colluders,
        max_colluder_epsilon=max_colluder_epsilon,
        minimum_size=minimum_size,
        enrolment_key=enrolment_key,
    )
    host, port = parse_place(listen, field="--listen")
    place = None if operator is None else parse_place(operator, field="--operator")
    tls = tls_of(tls_certificate, tls_key, tls_authority)
    coins = Secret(keys_of(key)[0])
    keys = Keys(coins.identity())
    vouched = b""
    if enrolment is not None:
        vouched, signer = read_enrolment(enrolment, expected_peer=keys.peer_id)
        policy = replace(policy, enrolment_key=policy.enrolment_key or signer)
    expected = address_of(learner, "--learner")
    contacts = tuple(address_of(text, "--contact") for text in contact or [])
    kept = store.open_beside(
        Path(key),
        peer_id=keys.peer_id.hex(),
        state=None if state is None else Path(state),
        new_state=new_state,
        another_roster=another_roster,
    )
    party = Party(
        keys=keys,
        coins=coins,
        example=held,
        label_space=label_space,
        host=host,
        port=port,
        learner=expected,
        contacts=contacts,
        sequence=time.time_ns() // 1_000_000,  # grows from start to start; nobody reads it as a clock
        policy=policy,
        store=kept,
        enrolment=vouched,
        bind=bind_of(bind),
    )
    lines = JsonLines()
    if log_json:
        lines.attach()
    elif not quiet:
        typer.echo(f"this peer is {keys.peer_id.hex()}@{listen}", err=True)
    tell = lines.hear if log_json else _say_nothing if quiet else _say
    try:
        with Stopping() as stopping:
            outcome = partial(tell_outcome, as_json=as_json)
            take_part([party], tell=tell, ended=outcome, stopping=stopping, operator=place, tls=tls)
    finally:
        kept.close()
    return 0


def take_part(
    parties: Sequence[Party],
    *,
    tell: Callable[[Fact], None],
    ended: Callable[[Ended], None],
    stopping: Stopping,
    operator: tuple[str, int] | None,
    tls: Tls | None,
) -> None:
    """Runs peers to their outcomes, in this process.

    Args:
        parties: The peers.
        tell: Is told what happens.
        ended: Is told each party's one outcome, as it comes.
        stopping: Ends them early.
        operator: Where to answer the operator.
        tls: For both ends.
    """
    from p2p_labeldp.facts import Ended, Outcome, Reason
    from p2p_labeldp.network import loops
    from p2p_labeldp.network.operator import operating
    from p2p_labeldp.network.peer_process import run_peers

    missing = {party.name for party in parties}

    def sink(fact: Fact) -> None:
        tell(fact)
        if isinstance(fact, Ended) and fact.peer in missing:
            missing.remove(fact.peer)
            ended(fact)

    async def run() -> None:
        async with operating(operator, sink) as (watcher, heard):
            await run_peers(parties, heard, stopped=stopping.event(), watcher=watcher, tls=tls)

    loops.run(run(), parties=len(parties))
    for name in sorted(missing, key=str):
        ended(Ended(peer=name, outcome=Outcome.ABSTAINED, reason=Reason.NOT_READY))


def tell_outcome(outcome: Ended, *, as_json: bool) -> None:
    """Prints an outcome, as JSON or in words."""
    fields = {"peer": outcome.peer, "outcome": outcome.outcome.value, "reason": outcome.reason}
    print(json.dumps(fields) if as_json else _sentence(outcome), flush=True)


def _say(fact: Fact) -> None:
    if line := _progress(fact):
        print(line, file=sys.stderr, flush=True)


def _say_nothing(_fact: Fact) -> None:
    pass


def _progress(fact: Fact) -> str:
    from p2p_labeldp import facts

    match fact:
        case facts.Joined():
            text = f"joined cluster {fact.cluster}"
        case facts.Gathered():
            text = f"{fact.records} members known"
        case facts.Committed():
            text = f"accepted the roster: {fact.size} members"
        case facts.Asked():
            text = "asked its mate"
        case facts.Held():
            text = "holds its mate's sealed answer"
        case facts.Ready():
            text = "ready, holding an answer" if fact.holding else "ready, holding nothing"
        case facts.Reported():
            text = "reported"
        case facts.Rejected():
            text = f"refused: {fact.about}"
        case _:
            return ""
    return f"{fact.at:6.1f} s  {text}"


def _sentence(ended: Ended) -> str:
    return str(ended.outcome) + (f" ({ended.reason})" if ended.reason else "")


def label_space_of(classes: str) -> LabelSpace:
    """The label space of a ``--classes`` option."""
    from p2p_labeldp.labels import LabelSpace

    with naming({"label space": "--classes"}):
        return LabelSpace(classes=tuple(name.strip() for name in classes.split(",")))


def address_of(text: str, field: str) -> Address:
    """The ``id@host:port`` of an option."""
    from p2p_labeldp.network.transport import parse_address
    from p2p_labeldp.protocol.effects import Address

    try:
        return Address(*parse_address(text))
    except ConfigurationError as exc:
        raise ConfigurationError(str(exc).removeprefix("address: "), field=field) from exc


def read_example(file: str, label_space: LabelSpace, *, label_id: str) -> Example:
    """Reads one example from a JSON file; ``label_id`` is its name, not the file's, which may be spelt in many ways.

    Raises:
        ConfigurationError: No such file, or not an example of this label space. The text never names the label.
    """
    import msgspec

    from p2p_labeldp.labels import Example

    class Content(msgspec.Struct, forbid_unknown_fields=True):
        features: list[float]
        label: str

    try:
        content = msgspec.json.decode(Path(file).read_bytes(), type=Content)
    except OSError as exc:
        raise ConfigurationError(f"{file!r} can't be read: {exc.strerror}", field="EXAMPLE") from exc
    except (ValueError, RecursionError) as exc:  # msgspec's errors are ValueErrors
        raise ConfigurationError(
            f'{file!r} is no example; {{"features": [numbers], "label": "class"}} is needed', field="EXAMPLE"
        ) from exc
    if content.label not in label_space.classes:
        raise ConfigurationError(f"the label in {file!r} is none of {', '.join(label_space.classes)}", field="EXAMPLE")
    return Example(features=tuple(content.features), label=label_space.classes.index(content.label), label_id=label_id)
