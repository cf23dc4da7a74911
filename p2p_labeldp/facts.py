"""What can happen in a round: the closed set of past-tense facts.

Every engine yields these and nothing else; ``facts.jsonl`` of a run is a list of them. Invariants, audits, adversary
views, reports and the dashboard are functions over facts.

A peer is named by its ordinal in a study, and by its id (hex) in a deployment, where every ordinal is 0. A flipped
label stands only in ``Flipped``, which its own peer persists and nobody exports, and in the collector's ``Accepted``;
a true label stands nowhere. ``at`` is seconds since the round's opening.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from p2p_labeldp.errors import ConfigurationError

Name: TypeAlias = int | str

MAX_ABOUT = 300  # characters; a line of facts stays within what a pipe writes at once
SHORT_ID = 16
"""Hex digits of an id where a fact links what happened to a party: 64 bits, unique among those of a round."""


class Outcome(StrEnum):
    """How a round ended for one peer; each peer gets exactly one."""

    REPORTED = "reported"
    ABSTAINED = "abstained"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    LATE = "late"
    INVALID = "invalid"
    FAILED = "failed"


class Reason(StrEnum):
    """Why; none of them depends on the label."""

    MATE_TIMEOUT = "mate_timeout"
    MATE_UNREACHABLE = "mate_unreachable"
    MATE_NOT_READY = "mate_not_ready"
    NOT_READY = "not_ready"
    TOO_FEW_HOLDING = "too_few_holding"
    CLUSTER_TOO_SMALL = "cluster_too_small"
    POLICY = "policy"
    LABEL_SPENT = "label_spent"
    ROSTER_MISMATCH = "roster_mismatch"
    NOT_ADMITTED = "not_admitted"
    CLOCK_SKEW = "clock_skew"
    NO_RECEIPT = "no_receipt"
    BAD_BOX = "bad_box"
    CRASHED = "crashed"


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="fact"):
    """Something that happened to ``peer``, ``at`` seconds after the round's opening."""

    peer: Name
    at: float = 0.0


class Listening(Fact, frozen=True, tag=True):
    """The peer can be reached; it does not yet know the round."""


class Opened(Fact, frozen=True, tag=True):
    """The learner opened the round; ``id`` as in ``Joined``.

    ``deadlines`` are the ends of joining, exchange, closing and report, in seconds after the opening.
    """

    id: str
    deadlines: tuple[float, ...] = ()


class Joined(Fact, frozen=True, tag=True):
    """The peer has the manifest and knows its cluster. ``id`` is its id (hex, its first ``SHORT_ID`` digits)."""

    cluster: int
    id: str = ""


class Met(Fact, frozen=True, tag=True):
    """The peer found others: how many valid records of its cluster it holds now, its own included. Told when it next
    gossips, while it joins."""

    cluster: int
    records: int


class Gathered(Fact, frozen=True, tag=True):
    """Half a gossip period before the join deadline: how many valid records of its cluster the peer holds."""

    cluster: int
    records: int


class Signed(Fact, frozen=True, tag=True):
    """The learner signed the roster of a cluster of ``size`` members."""

    cluster: int
    size: int
    flip_probability: float
    delta: float
    holding_minimum: int


class Listed(Fact, frozen=True, tag=True):
    """The learner's roster of ``cluster`` lists the peer. A roster is ordered by name."""

    cluster: int


class Committed(Fact, frozen=True, tag=True):
    """The peer accepted the roster of its cluster."""

    cluster: int
    size: int


class Flipped(Fact, frozen=True, tag=True):
    """The peer's label was flipped, once, and is spent. Persisted by its own peer, never exported.

    ``label_space`` is the digest of the classes that ``flipped_label`` is an index into.
    """

    label_id: str
    flip_probability: float
    flipped_label: int
    round_id: str
    roster: str
    label_space: str = ""


class Asked(Fact, frozen=True, tag=True):
    """The peer chose its one mate, possibly itself, and asked it."""

    mate: Name


class Answered(Fact, frozen=True, tag=True):
    """The peer answered the ask of ``asker`` for the first time; repeats get the same bytes and are no new fact."""

    asker: Name


class Held(Fact, frozen=True, tag=True):
    """The peer holds its mate's sealed answer."""


class Ready(Fact, frozen=True, tag=True):
    """At the exchange deadline the peer declared that it could answer throughout, and whether it holds an answer."""

    holding: bool


class Tallied(Fact, frozen=True, tag=True):
    """At the closing deadline: whose ready records the peer had, and which of them said that they hold an answer.

    One bit for each member of its roster, in its order, the first in the lowest bit of the first byte.
    """

    ready: bytes
    holding: bytes


class Reported(Fact, frozen=True, tag=True):
    """The peer sent its report."""


class Accepted(Fact, frozen=True, tag=True):
    """The collector accepted the report of ``peer``, and this label in it: some mate's, not its own."""

    cluster: int
    label: int


class Rejected(Fact, frozen=True, tag=True):
    """A message was refused. ``about`` says what, for the log.

    Strangers have a hand in the text: it is cut to ``MAX_ABOUT`` characters, and what is not printable becomes ``?``.
    """

    about: str

    def __post_init__(self) -> None:
        about = self.about if len(self.about) <= MAX_ABOUT else self.about[: MAX_ABOUT - 1] + "…"
        if about is not self.about or not about.isprintable():
            text = "".join(character if character.isprintable() else "?" for character in about)
            msgspec.structs.force_setattr(self, "about", text)


class Ended(Fact, frozen=True, tag=True):
    """The round is over for this peer."""

    outcome: Outcome
    reason: Reason | None = None


class Contributed(Fact, frozen=True, tag=True):
    """The peer's contribution to a round of updates left: an update, or nothing, which the fact does not tell."""

    round: int


class Averaged(Fact, frozen=True, tag=True):
    """The learner released the model after a round of updates, in which so many peers answered."""

    round: int
    answers: int


class Exchanged(Fact, frozen=True, tag=True):
    """The peer sent a request to the party ``to`` (short id) at ``at``, and had its reply, or none, later.

    ``sent`` and ``received`` are the bytes of the two bodies, ``received`` 0 without a reply; ``about`` names the
    request's kind, which those two know. The question for the manifest comes before the round and is not among them.
    """

    to: str
    about: str
    sent: int
    received: int


class Traffic(Fact, frozen=True, tag=True):
    """What a process sent in the whole round: signed messages and their bytes on the wire, headers included."""

    messages: int
    bytes: int


AnyFact: TypeAlias = (
    Listening
    | Opened
    | Joined
    | Met
    | Gathered
    | Signed
    | Listed
    | Committed
    | Flipped
    | Asked
    | Answered
    | Held
    | Ready
    | Tallied
    | Reported
    | Accepted
    | Rejected
    | Ended
    | Contributed
    | Averaged
    | Exchanged
    | Traffic
)

TRANSCRIPT = (Asked, Answered, Accepted, Ended)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyFact] = msgspec.json.Decoder(AnyFact)


def encode(fact: Fact) -> bytes:
    """One line of ``facts.jsonl``, without the line's end."""
    return _encoder.encode(fact)


def decode(line: bytes) -> AnyFact:
    """The inverse of ``encode``.

    Raises:
        ConfigurationError: No fact.
    """
    try:
        return _decoder.decode(line)
    except (ValueError, RecursionError) as exc:  # msgspec's errors are ValueErrors
        raise ConfigurationError(f"no fact of a run: {exc}", field="facts.jsonl") from exc


def transcript(facts: Iterable[Fact]) -> list[bytes]:
    """What "the same round" means: the sorted set of asks, answers, accepted reports and outcomes, without times."""
    return sorted({encode(msgspec.structs.replace(f, at=0.0)) for f in facts if isinstance(f, TRANSCRIPT)})
