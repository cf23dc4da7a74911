"""What a party keeps on its own disk: what happened, and beside it what a restart needs and nobody else may see.

Each of these is persisted before the effect behind it and tells the world no more than its plain form, ``exported``.
Together they are a log from which ``Peer.restore`` and ``Collector.restore`` rebuild a machine. The log of a peer's
round begins with ``JoinedAs`` and ends with ``EndedIn`` or ``Abandoned``, the log of a learner's with ``OpenedWith``
and ``Closed``; at its end what is of no use any more is erased.
"""

from __future__ import annotations

from typing import TypeAlias, get_args

import msgspec

from p2p_labeldp.facts import (
    Accepted,
    Answered,
    Asked,
    Committed,
    Contributed,
    Ended,
    Fact,
    Flipped,
    Gathered,
    Held,
    Joined,
    Ready,
    Reported,
)


class JoinedAs(Joined, frozen=True, kw_only=True, tag=True):
    """Persisted before the peer's record leaves: a restart signs the same one, or one with a higher sequence number.

    ``over_by`` is the unix time at which the round is over whatever happened.
    """

    round_id: bytes
    label_id: str
    host: str
    port: int
    sequence: int
    over_by: float


class GatheredThese(Gathered, frozen=True, kw_only=True, tag=True):
    """Whom the peer knew half a period before the join deadline, and so who has to be in its roster."""

    signers: tuple[bytes, ...]


class CommittedTo(Committed, frozen=True, kw_only=True, tag=True):
    """The roster's envelope, and the records of its members."""

    roster: bytes
    records: tuple[bytes, ...]


class AnsweredWith(Answered, frozen=True, kw_only=True, tag=True):
    """The very bytes given to an asker: a repeat gets them again."""

    asker_id: bytes
    ask_id: bytes
    box: bytes


class AskedFor(Asked, frozen=True, kw_only=True, tag=True):
    """The id of the one mate."""

    mate_id: bytes


class HeldBox(Held, frozen=True, kw_only=True, tag=True):
    """The mate's box."""

    box: bytes


class Cleared(Fact, frozen=True, kw_only=True, tag=True):
    """The verdict at the closing deadline: the peer may report, and will at ``report_at``."""

    report_at: float


class ReportedAs(Reported, frozen=True, kw_only=True, tag=True):
    """The sealed report: a repeat is the same bytes, and gets the same receipt."""

    sealed: bytes


class EndedIn(Ended, frozen=True, kw_only=True, tag=True):
    """Which round it was, and the learner's receipt, if there is one."""

    round_id: bytes
    receipt: bytes = b""


class Abandoned(Fact, frozen=True, kw_only=True, tag=True):
    """A round that was over when its peer came back: failed, crashed."""

    round_id: bytes


class OpenedWith(Fact, frozen=True, kw_only=True, tag=True):
    """A learner's round: its signed manifest, and the secret of its key, which is erased with the round."""

    manifest: bytes
    round_secret: bytes


class Heard(Fact, frozen=True, kw_only=True, tag=True):
    """Where peers that asked for the manifest can be reached."""

    addresses: tuple[tuple[bytes, str, int], ...]


class SignedRoster(msgspec.Struct, frozen=True, array_like=True):
    """A roster as the learner signed it, the ordinals of its members, in order, and the proofs that go with it."""

    cluster: int
    envelope: bytes
    ordinals: tuple[int, ...]
    proofs: tuple[bytes, ...]


class Rostered(Fact, frozen=True, kw_only=True, tag=True):
    """All rosters of a round, at once: a second one for a cluster would be another roster."""

    rosters: tuple[SignedRoster, ...]


class AcceptedFrom(Accepted, frozen=True, kw_only=True, tag=True):
    """The report, the digest by which its repeat is known, and the receipt given for it."""

    reporter: bytes
    ordinal: int
    features: tuple[float, ...]
    report: bytes
    receipt: bytes


class Closed(Fact, frozen=True, kw_only=True, tag=True):
    """A learner's round is over."""

    manifest: bytes


class ContributedAs(Contributed, frozen=True, kw_only=True, tag=True):
    """What left of a peer's data in a round of updates, at which level; 0 if it was nothing.

    A repeat is the same box. Only the last box of a run is kept, the levels for ever.
    """

    run_id: bytes
    round_id: bytes
    data_id: str
    epsilon: float
    box: bytes


class RunOpened(Fact, frozen=True, kw_only=True, tag=True):
    """A learner's run of rounds: its signed manifest, and the secret of its key, which is erased with the run."""

    manifest: bytes
    run_secret: bytes


class Checkpoint(Fact, frozen=True, kw_only=True, tag=True):
    """The signed opening of a round, in which the model stands: all that came before it is in there, and nothing of it
    is drawn again.

    ``cohorts`` has the number of updates in each round so far, ``participations`` that of each peer, by its name.
    """

    opening: bytes
    cohorts: tuple[int, ...]
    participations: dict[str, int]


class RunClosed(Fact, frozen=True, kw_only=True, tag=True):
    """A learner's run is over."""

    manifest: bytes


KeptFact: TypeAlias = (
    JoinedAs
    | GatheredThese
    | CommittedTo
    | AskedFor
    | AnsweredWith
    | HeldBox
    | Ready
    | Cleared
    | ReportedAs
    | EndedIn
    | Abandoned
    | OpenedWith
    | Heard
    | Rostered
    | AcceptedFrom
    | Closed
    | Flipped
    | ContributedAs
    | RunOpened
    | Checkpoint
    | RunClosed
)

KINDS: tuple[type[Fact], ...] = get_args(KeptFact)
_PRIVATE = frozenset(
    {Flipped, Cleared, Abandoned, OpenedWith, Heard, Rostered, Closed, RunOpened, Checkpoint, RunClosed}
)
_SHOWN_AS: dict[type[Fact], type[Fact]] = {
    JoinedAs: Joined,
    GatheredThese: Gathered,
    CommittedTo: Committed,
    AskedFor: Asked,
    AnsweredWith: Answered,
    HeldBox: Held,
    ReportedAs: Reported,
    EndedIn: Ended,
    AcceptedFrom: Accepted,
    ContributedAs: Contributed,
}

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[KeptFact] = msgspec.msgpack.Decoder(KeptFact)


def exported(fact: Fact) -> Fact | None:
    """What may be told of a fact to anybody but its own party's disk; None if nothing."""
    kind = type(fact)
    if kind in _PRIVATE:
        return None
    plain = _SHOWN_AS.get(kind)
    if plain is None:
        return fact
    return plain(**{name: getattr(fact, name) for name in plain.__struct_fields__})


def encode(fact: Fact) -> bytes:
    """For the disk."""
    return _encoder.encode(fact)


def decode(data: bytes) -> KeptFact:
    """The inverse of ``encode``.

    Raises:
        msgspec.DecodeError: Nothing that was ever kept.
    """
    return _decoder.decode(data)
