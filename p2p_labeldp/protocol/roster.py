"""The roster: who is in a cluster, and the guarantee they share. Signed by the learner at the join deadline.

For a cluster of s members it states delta = 1/s^2, the holding minimum h and the flip probability. A peer believes none
of these: it recomputes the guarantee at the flip it is given. It does not test that the flip is the least.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from p2p_labeldp.accounting import planning
from p2p_labeldp.crypto.envelope import Signed
from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import (
    AuthenticationFailed,
    ClusterTooSmall,
    MalformedMessage,
    PrivacyError,
    ProtocolError,
    RosterMismatch,
)
from p2p_labeldp.mechanisms.randomized_response import largest_flip
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.messages import DIGEST_BYTES, MAX_CLUSTER_SIZE, MAX_ENVELOPE_BYTES, Cluster, Hash
from p2p_labeldp.protocol.wire import decode_payload

KIND = "roster"
KEPT_ROSTERS = 256  # of a process, signed by a round's learner: one for each cluster that has peers in it


class Roster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed. ``members`` are the ids, 32 bytes each, sorted by (ordinal, id): a draw is an index into them."""

    round_id: Hash
    cluster: Cluster
    members: Annotated[bytes, Meta(max_length=DIGEST_BYTES * MAX_CLUSTER_SIZE)]
    delta: float
    holding_minimum: Annotated[int, Meta(ge=1)]
    flip_probability: Annotated[float, Meta(ge=0, le=1)]


_decoder = msgspec.msgpack.Decoder(Roster)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRoster:
    """A roster whose signature was checked.

    Args:
        digest: SHA-256 of the signed envelope; asks, answers, ready records and reports carry it.
        roster: The content.
        members: The ids in order.
        member_set: The same, without.
        envelope: As it was signed.
    """

    envelope: bytes
    digest: bytes
    roster: Roster
    members: tuple[bytes, ...]
    member_set: frozenset[bytes]


def make(
    opened: OpenedManifest, *, cluster: int, members: list[bytes], keys: KeyRing
) -> tuple[bytes, planning.RosterPlan]:
    """Plans and signs the roster of one cluster; ``members`` sorted by (ordinal, id).

    Raises:
        ClusterTooSmall: A cluster of one.
    """
    terms = opened.manifest
    plan = plan_for(len(members), terms)
    roster = Roster(
        round_id=opened.round_id,
        cluster=cluster,
        members=b"".join(members),
        delta=plan.delta,
        holding_minimum=plan.holding_minimum,
        flip_probability=plan.flip_probability,
    )
    return keys.sign(KIND, msgspec.msgpack.encode(roster)), plan


class Terms(Protocol):
    """What a plan depends on beside the size: a manifest, or whatever is to become one."""

    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def target_epsilon(self) -> float | None: ...
    @property
    def flip_probability(self) -> float | None: ...
    @property
    def tolerated_loss(self) -> float: ...


def plan_for(size: int, terms: Terms) -> planning.RosterPlan:
    """The plan of a cluster: the least flip for the target, or the flip that the manifest fixes."""
    return _plan(size, terms.target_epsilon, terms.flip_probability, terms.tolerated_loss, len(terms.classes))


@lru_cache(maxsize=4096)
def _plan(
    size: int,
    target_epsilon: float | None,
    flip_probability: float | None,
    tolerated_loss: float,
    num_classes: int,
) -> planning.RosterPlan:
    if target_epsilon is not None:
        return planning.plan_roster(size, target_epsilon, tolerated_loss, num_classes=num_classes)
    assert flip_probability is not None  # the manifest gives one of the two
    return planning.RosterPlan(
        size=size,
        delta=planning.roster_delta(size),
        holding_minimum=planning.holding_minimum(size, tolerated_loss),
        flip_probability=flip_probability,
        num_classes=num_classes,
    )


def open_roster(envelope: bytes, *, keys: KeyRing, opened: OpenedManifest, cluster: int) -> OpenedRoster:
    """Verifies a roster of this round and cluster, signed by the round's learner.

    Raises:
        AuthenticationFailed: Not signed by the learner.
        MalformedMessage: Signed, and yet no roster.
        RosterMismatch: Of another round or cluster, or with a member listed twice.
    """
    found = _opened(envelope, opened.learner, keys.verify)
    roster = found.roster
    if roster.round_id != opened.round_id or roster.cluster != cluster:
        raise RosterMismatch("a roster of another round or cluster")
    if roster.flip_probability > largest_flip(len(opened.label_space)):
        raise MalformedMessage("a flip probability that would tell the label by leaving it out")
    if len(found.member_set) != len(found.members):
        raise RosterMismatch("a member is listed twice")
    return found


@lru_cache(maxsize=KEPT_ROSTERS)
def _opened(envelope: bytes, learner: bytes, verify: Callable[..., Signed]) -> OpenedRoster:
    """A pure function of the bytes, and all members in a process open the same."""
    signed = verify(KIND, envelope, max_bytes=MAX_ENVELOPE_BYTES)
    if signed.peer_id != learner:
        raise AuthenticationFailed("the roster is signed by another key than the learner's")
    return _read(envelope, signed)


def _read(envelope: bytes, signed: Signed) -> OpenedRoster:
    roster = decode_payload(signed.payload, _decoder)
    if len(roster.members) % DIGEST_BYTES:
        raise MalformedMessage("the member list is no list of ids")
    members = tuple(roster.members[i : i + DIGEST_BYTES] for i in range(0, len(roster.members), DIGEST_BYTES))
    return OpenedRoster(
        envelope=envelope,
        digest=hashlib.sha256(envelope).digest(),
        roster=roster,
        members=members,
        member_set=frozenset(members),
    )


def reopen(envelope: bytes, *, keys: KeyRing) -> OpenedRoster:
    """A roster that this party opened in an earlier life, or signed, from its own disk.

    Raises:
        AuthenticationFailed: The disk has it wrong.
        MalformedMessage: The disk has it wrong.
    """
    return _read(envelope, keys.verify(KIND, envelope, max_bytes=MAX_ENVELOPE_BYTES))


def contradict(first: bytes, second: bytes, *, keys: KeyRing, opened: OpenedManifest, cluster: int) -> bool:
    """Whether these prove that the learner signed two rosters for one cluster of this round.

    Asks and reports carry the digest of the signed envelope, so two envelopes of one content split a cluster, too; and
    only the learner can make either.
    """
    if first == second:
        return False
    try:
        for envelope in (first, second):
            open_roster(envelope, keys=keys, opened=opened, cluster=cluster)
    except ProtocolError:
        return False
    return True


def check_guarantee(roster: Roster, size: int, opened: OpenedManifest) -> None:
    """Recomputes what the roster claims, from its size and flip alone.

    Raises:
        ClusterTooSmall: Fewer members than the manifest's minimum.
        PrivacyError: Another delta or holding minimum than the size gives, or a flip too small for the target.
    """
    terms = opened.manifest
    if size < terms.minimum_size:
        raise ClusterTooSmall(f"{size} members; the round needs {terms.minimum_size}")
    if roster.delta != planning.roster_delta(size):
        raise PrivacyError("the roster's delta is not 1/s^2")
    if roster.holding_minimum != planning.holding_minimum(size, terms.tolerated_loss):
        raise PrivacyError("the roster's holding minimum is not the one of its size")
    if terms.flip_probability is not None:
        if roster.flip_probability != terms.flip_probability:
            raise PrivacyError("the roster's flip probability is not the manifest's")
    else:
        assert terms.target_epsilon is not None
        if not fits(
            size, roster.holding_minimum, roster.flip_probability, terms.target_epsilon, len(opened.label_space)
        ):
            raise PrivacyError("the roster's flip probability is too small for the target epsilon")


@lru_cache(maxsize=4096)
def fits(size: int, holding_minimum: int, flip_probability: float, epsilon: float, num_classes: int) -> bool:
    """Whether a roster holds (epsilon, 1/s^2); a pure function, evaluated once per process."""
    delta = planning.roster_delta(size)
    return planning.roster_fits(size, holding_minimum, flip_probability, epsilon, delta, num_classes=num_classes)
