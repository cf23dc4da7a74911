"""The statement, its file, and the bytes that are signed.

``guarantee.json`` is an object of three keys: ``statement``; ``public``, the signer's Ed25519 key, from which its id
derives; ``signature``; the last two in hex, or null. Signed is an envelope (``crypto.envelope``) of the kind
``guarantee``, whose payload is the statement as canonical JSON: keys sorted, no white space, ASCII, numbers as Python
writes them, an infinity as the string ``"inf"``. So the file may be laid out anyhow, and the signature serves for no
other message.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import msgspec

from p2p_labeldp import config
from p2p_labeldp.crypto import envelope
from p2p_labeldp.crypto.identity import PUBLIC_BYTES, SIGNATURE_BYTES
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.results import ViewResult

NAME = "guarantee.json"
KIND = "guarantee"
MAX_BYTES = 64 << 20
"""The digests of the receipts of a million peers; ``verify`` reads no more of a file that somebody hands it."""


class Engine(StrEnum):
    """Who played a round."""

    DEPLOYMENT = "deployment"
    """Peers that run by themselves."""
    PROCESSES = "processes"
    VIRTUAL = "virtual"
    POPULATION = "population"


class StatedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster: what its roster was, what that promises, how many reports came of it."""

    id: int
    size: int
    flip_probability: float | None
    holding_minimum: int | None
    """Null of a mechanism in one place."""
    delta: float
    epsilon: float
    local_epsilon: float
    reports: int
    roster: str | None
    """SHA-256 (hex) of the roster that the learner signed, if it did."""


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What is signed."""

    format: Literal[1]
    learner: str | None
    """Id (hex) of who signs; null if nobody does."""
    unsigned_because: str | None
    engine: Engine
    round: str | None
    """SHA-256 (hex) of the manifest that the learner signed, if it did: the round's id."""
    complete: bool
    seed: int | None
    """Every coin's; whoever knows it knows every flip."""
    num_classes: int
    exchange: str
    mechanism: config.Mechanism
    """The target or the flip, and what goes with it."""
    policy: config.Policy
    """Limits of the peers of a study. Those of a deployed peer are its own; here stands what the learner was told."""
    config_hash: str
    versions: dict[str, str]
    peers: int
    outcomes: dict[str, int]
    reports: int
    clusters: list[StatedCluster]
    views: list[ViewResult]
    facts: str
    """SHA-256 (hex) of ``facts.jsonl``."""
    receipts: list[str]
    """SHA-256 (hex) of each receipt, in their own order."""

    def terms(self) -> config.Config:
        """As a configuration of whatever data: no number of a statement depends on which.

        Raises:
            ConfigurationError: A value out of range.
        """
        return config.from_mapping(
            {
                "data": {"name": "digits"},
                "mechanism": msgspec.to_builtins(self.mechanism),
                "exchange": {"kind": self.exchange},
                "policy": msgspec.to_builtins(self.policy),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A file that was read; whether its signature holds is asked separately.

    Args:
        statement: The statement.
        public: The signer's key; None if unsigned.
        signature: Its signature; None if unsigned.
    """

    statement: Statement
    public: bytes | None
    signature: bytes | None

    def signer(self) -> bytes | None:
        """The id of whoever signed these very contents; None if nobody says to have.

        Raises:
            AuthenticationFailed: It was somebody else, or of other contents.
        """
        if self.public is None or self.signature is None:
            return None
        payload = canonical(self.statement)
        signed = b"".join((bytes([envelope.VERSION]), self.public, self.signature, payload))
        return envelope.open(signed, KIND, max_bytes=len(signed)).peer_id


def canonical(statement: Statement) -> bytes:
    """The bytes that are signed."""
    return _canonical(_plain(statement))


def to_file(statement: Statement, keys: Keys | None) -> str:
    """The text of ``guarantee.json``, signed if there is a key."""
    public = signature = None
    if keys is not None:
        signed = keys.sign(KIND, canonical(statement))
        public = signed[1 : 1 + PUBLIC_BYTES].hex()
        signature = signed[1 + PUBLIC_BYTES : envelope.OVERHEAD_BYTES].hex()
    document = {"statement": _plain(statement), "public": public, "signature": signature}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def from_file(data: bytes) -> Stated:
    """The inverse of :func:`to_file`. There is one way to write each value: what was signed is what is read.

    Raises:
        ConfigurationError: No statement.
    """
    try:
        document = json.loads(data, object_pairs_hook=_once_each, parse_constant=_no_number)
        if not isinstance(document, dict) or set(document) != {"statement", "public", "signature"}:
            raise ConfigurationError("statement, public and signature are needed", field=NAME)
        statement = msgspec.convert(document["statement"], Statement, strict=False)  # not strict: "inf" is a number
        if canonical(statement) != _canonical(document["statement"]):
            raise ConfigurationError("holds something that no statement has", field=NAME)
        public, signature = (None if document[key] is None else _hex(document[key]) for key in ("public", "signature"))
    except ConfigurationError:
        raise
    except UnicodeDecodeError as exc:
        raise ConfigurationError("no statement of a guarantee: it is no JSON", field=NAME) from exc
    except (ValueError, TypeError, RecursionError) as exc:  # json's and msgspec's errors are ValueErrors
        raise ConfigurationError(f"no statement of a guarantee: {exc}", field=NAME) from exc
    if (public is None) != (signature is None):
        raise ConfigurationError("a signature and its key are needed, or neither", field=NAME)
    if public is not None and (len(public), len(signature or b"")) != (PUBLIC_BYTES, SIGNATURE_BYTES):
        raise ConfigurationError("no Ed25519 key and signature", field=NAME)
    return Stated(statement=statement, public=public, signature=signature)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _plain(statement: Statement) -> Any:
    return _without_infinities(msgspec.to_builtins(statement))


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(item) for item in value]
    return "inf" if value == math.inf else value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a key that stands twice, readers take the first or the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ConfigurationError("a key stands twice", field=NAME)
    return found


def _no_number(text: str) -> Any:
    raise ConfigurationError(f"{text} is no number of a statement", field=NAME)


def _hex(text: Any) -> bytes:
    found = bytes.fromhex(text)
    if found.hex() != text:
        raise ConfigurationError("hex digits are lower case, and nothing is between them", field=NAME)
    return found
