"""``enrol``: vouches for a peer, so that rounds which ask for it take the peer in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from p2p_labeldp.errors import ConfigurationError

HELP = """Vouch for a peer with the enrolment key: sign its id into a file for it to bring to its rounds.

The enrolment key is a key like any other, made by keygen. A round asks for enrolments if its manifest names the key's
id (policy.enrolment_key of the learner's configuration); each peer, and the learner, checks everybody's. An enrolment
says that this identity is wanted, and no more: who gives one person ten of them makes ten peers of one.

Example:

\b
    p2p-labeldp keygen enrolment.key                       # prints the id that learner and peers pin
    p2p-labeldp enrol PEER_ID --key enrolment.key --out alice.enrolment
"""


def command(
    peer: Annotated[str, typer.Argument(metavar="PEER_ID", help="The peer's id, as keygen prints it.")],
    key: Annotated[str, typer.Option(metavar="FILE", help="The enrolment key file, made by keygen.")],
    out: Annotated[str, typer.Option(metavar="FILE", help="Where to write the enrolment; must not exist.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print what was signed as one JSON object.")] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp.cli.keygen import keys_of
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.protocol import admission
    from p2p_labeldp.randomness import Secret

    enrolled = peer_id(peer, field="PEER_ID")
    keys = Keys(Secret(keys_of(key)[0]).identity())
    try:
        with Path(out).open("xb") as file:
            file.write(admission.enrol(enrolled, keys))
    except FileExistsError as exc:
        raise ConfigurationError(f"{out!r} exists already; a new file is needed", field="--out") from exc
    except OSError as exc:
        raise ConfigurationError(f"{out!r} can't be written: {exc.strerror}", field="--out") from exc
    found = {"peer": enrolled.hex(), "enrolment_key": keys.peer_id.hex(), "file": out}
    typer.echo(json.dumps(found) if as_json else f"peer {found['peer']} enrolled by key {found['enrolment_key']}")


def peer_id(text: str, *, field: str) -> bytes:
    """The id in a text; ``id@host:port`` will do.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        found = bytes.fromhex(text.partition("@")[0])
    except ValueError:
        found = b""
    if len(found) != 32:
        raise ConfigurationError(f"{text[:200]!r} given; an id of 64 hexadecimal digits is needed", field=field)
    return found


def read_enrolment(file: str, *, expected_peer: bytes) -> tuple[bytes, bytes]:
    """The enrolment in a file, and the id of the key that signed it.

    Raises:
        ConfigurationError: No such file, no enrolment, or another peer's.
    """
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.errors import ProtocolError
    from p2p_labeldp.protocol import admission

    try:
        with Path(file).open("rb") as opened:
            enrolment = opened.read(admission.MAX_ENROLMENT_BYTES + 1)
    except OSError as exc:
        raise ConfigurationError(f"{file!r} can't be read: {exc.strerror}", field="--enrolment") from exc
    try:
        signer, enrolled = admission.signer_of(enrolment, Keys(bytes(32)))  # verifying takes no secret
    except ProtocolError as exc:
        raise ConfigurationError(
            f"{file!r} is no enrolment; `p2p-labeldp enrol` makes one", field="--enrolment"
        ) from exc
    if enrolled != expected_peer:
        raise ConfigurationError(f"{file!r} is the enrolment of peer {enrolled.hex()[:16]}", field="--enrolment")
    return enrolment, signer
