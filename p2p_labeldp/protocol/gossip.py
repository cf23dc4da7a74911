"""A set of signed records that its holders make equal by push-pull anti-entropy.

One record per signer. A record is verified before it replaces, conflicts or counts. A newer sequence number replaces an
older one; two records of one sequence with different content are equivocation, and their signer is struck out: neither
counts, nor does anything it signs later in the round. Names of replaced records are remembered, so that this does not
depend on the order in which records come in. An exchange opens with short ids (8 bytes of each record's digest), then
only missing records travel. The set has no states: merging is commutative, associative and idempotent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage
from p2p_labeldp.protocol.messages import (
    MAX_CLUSTER_SIZE,
    MAX_EAGER_BYTES,
    MAX_OFFER_BYTES,
    MAX_OFFER_RECORDS,
    SHORT_ID_BYTES,
)

KEPT_NAMES = 1 << 16  # of a process: 10,000 packed peers name each other's records again and again
MAX_OLDER = 16  # replaced records of one signer: restarts within a round; who needs more is struck out


class Sequenced(Protocol):
    """What a record's content needs to have."""

    @property
    def sequence(self) -> int: ...


Content = TypeVar("Content", bound=Sequenced)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Content]):
    """A verified record: who signed it, its bytes, what they say."""

    signer: bytes
    envelope: bytes
    content: Content


@lru_cache(maxsize=KEPT_NAMES)
def short_id(envelope: bytes) -> bytes:
    """Names a record in a digest."""
    return hashlib.sha256(envelope).digest()[:SHORT_ID_BYTES]


def split_ids(ids: bytes) -> set[bytes]:
    """The short ids in a digest.

    Raises:
        MalformedMessage: Not a whole number of them.
    """
    if len(ids) % SHORT_ID_BYTES:
        raise MalformedMessage("a digest is a whole number of short ids")
    return {ids[i : i + SHORT_ID_BYTES] for i in range(0, len(ids), SHORT_ID_BYTES)}


class GossipSet(Generic[Content]):
    """The records of one cluster.

    Args:
        capacity: Signers at most, those struck out included; further ones are refused, known ones may still update.
    """

    def __init__(self, capacity: int = MAX_CLUSTER_SIZE) -> None:
        self._by_id: dict[bytes, Entry[Content]] = {}
        self._by_signer: dict[bytes, bytes] = {}
        self._older: dict[bytes, dict[int, bytes]] = {}  # signer -> sequence -> short id of what was replaced
        self._struck: set[bytes] = set()
        self._refused: set[bytes] = set()  # short ids of equivocating or older records: not wanted again
        self._capacity = capacity

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Entry[Content]]:
        return iter(self._by_id.values())

    def __contains__(self, signer: bytes) -> bool:
        return signer in self._by_signer

    def get(self, signer: bytes) -> Entry[Content] | None:
        """The record of ``signer``, if there is one that counts."""
        name = self._by_signer.get(signer)
        return None if name is None else self._by_id[name]

    def knows(self, envelope: bytes) -> bool:
        """Whether these very bytes are in the set, or were refused by it: no need to verify them again."""
        name = short_id(envelope)
        return name in self._by_id or name in self._refused

    def add(self, entry: Entry[Content]) -> bool:
        """Merges a *verified* record; returns whether the set changed.

        Raises:
            AuthenticationFailed: The record equivocates with one in the set, or its signer was struck out before.
            MalformedMessage: The set is full.
        """
        name = short_id(entry.envelope)
        if entry.signer in self._struck:
            self._refuse(name)
            raise AuthenticationFailed("the signer has equivocated")
        if name in self._by_id and self._by_id[name].signer != entry.signer:
            raise MalformedMessage("a record whose short id is another signer's")  # 2^64 work against a given one
        known = self.get(entry.signer)
        if known is None:
            if len(self) + len(self._struck) >= self._capacity:
                raise MalformedMessage(f"more than {self._capacity} records for one cluster")
        elif entry.envelope == known.envelope:
            return False
        else:
            self._check_history(entry, known)
            older, newer = sorted((entry, known), key=lambda both: both.content.sequence)
            self._older.setdefault(entry.signer, {})[older.content.sequence] = short_id(older.envelope)
            self._refuse(short_id(older.envelope))
            if newer is known:
                return False
            self._drop(known)
        self._by_id[name] = entry
        self._by_signer[entry.signer] = name
        return True

    def _check_history(self, entry: Entry[Content], known: Entry[Content]) -> None:
        """Strikes the signer out if ``entry`` contradicts anything it said before, or if it never stops talking."""
        said = {**self._older.get(entry.signer, {}), known.content.sequence: short_id(known.envelope)}
        equivocates = said.get(entry.content.sequence, short_id(entry.envelope)) != short_id(entry.envelope)
        if not equivocates and (entry.content.sequence in said or len(said) <= MAX_OLDER):
            return
        self._struck.add(entry.signer)
        self._older.pop(entry.signer, None)
        self._refuse(short_id(entry.envelope))
        self._refuse(short_id(known.envelope))
        self._drop(known)
        raise AuthenticationFailed(
            "two different records with one sequence number"
            if equivocates
            else f"more than {MAX_OLDER} records replaced"
        )

    def _drop(self, entry: Entry[Content]) -> None:
        del self._by_id[self._by_signer.pop(entry.signer)]

    def _refuse(self, name: bytes) -> None:
        if len(self._refused) < 4 * self._capacity:  # beyond, a liar costs a verification each time, nothing more
            self._refused.add(name)

    def have(self) -> bytes:
        """The short ids of all records, to open an exchange."""
        return b"".join(self._by_id)

    def if_small(self) -> tuple[bytes, ...]:
        """All records, if they are few enough to travel with a digest."""
        envelopes = tuple(entry.envelope for entry in self._by_id.values())
        return envelopes if sum(map(len, envelopes)) <= MAX_EAGER_BYTES else ()

    def missing_from(self, have: bytes) -> tuple[tuple[bytes, ...], bytes]:
        """Answers a digest: the records its sender lacks (bounded), and the short ids that this set lacks."""
        theirs = split_ids(have)
        lacking = [entry.envelope for name, entry in self._by_id.items() if name not in theirs]
        wanted = b"".join(sorted(theirs - self._by_id.keys() - self._refused))
        return bounded(lacking), wanted

    def select(self, ids: bytes) -> tuple[bytes, ...]:
        """The records named by ``ids``, as far as they are here (bounded)."""
        return bounded([self._by_id[name].envelope for name in sorted(split_ids(ids)) if name in self._by_id])


def bounded(envelopes: list[bytes]) -> tuple[bytes, ...]:
    """As many records as one message may carry."""
    total = 0
    for count, envelope in enumerate(envelopes):
        total += len(envelope)
        if total > MAX_OFFER_BYTES or count >= MAX_OFFER_RECORDS:
            return tuple(envelopes[:count])
    return tuple(envelopes)
