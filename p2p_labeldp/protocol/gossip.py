"""A set of signed records that its holders make equal by push-pull anti-entropy.

One record per signer. A record is verified before it replaces, conflicts or counts. A newer sequence number replaces an
older one; two records of one sequence with different content are equivocation, and their signer is struck out: neither
counts, nor does anything it signs later in the round. Names of replaced records are remembered, so that this does not
depend on the order in which records come in. The set has no states: merging is commutative, associative and idempotent.

An exchange opens with salted ids, three bytes for each record, then only missing records travel. Two records whose
salted ids are equal hide one another in this exchange, so each exchange has a salt of its own: (id * salt) mod 2^64,
of which the highest bits remain, makes any two given ids equal with probability 2^-23 at most if the salt is a random
odd number (multiply-shift hashing; Dietzfelbinger et al., A reliable randomized algorithm for the closest-pair problem,
1997, lemma 2.5). Whoever wants to hide somebody else's record would have to know the salt before it makes its own.
"""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage
from p2p_labeldp.protocol.messages import (
    MAX_CLUSTER_SIZE,
    MAX_EAGER_BYTES,
    MAX_OFFER_BYTES,
    MAX_OFFER_RECORDS,
    ROOT_BYTES,
    SALTED_ID_BYTES,
    Digest,
    Offer,
)

MAX_PROOFS = 64  # of equivocation kept for others; who strikes out more signers in one round has other troubles
NAME_BYTES = 16  # of a record's digest: even its own signer can't make two records of one name
EAGER_SHARE = 0.25  # of a set's records in the end: who has no more sends all, since another one lacks most of them
KEPT_NAMES = 1 << 16  # of a process: 10,000 packed peers name each other's records again and again
MANY_IDS = 1024  # beyond, how to cut them is not remembered: strangers choose the number
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
    """Names a record in a set."""
    return hashlib.sha256(envelope).digest()[:NAME_BYTES]


def draw_salt(rng: random.Random) -> int:
    """A salt for one exchange. Its draw has to be as unpredictable as the exchange is worth (``Randomness.gossip``)."""
    return rng.getrandbits(63)


def salted_id(name: bytes, salt: int) -> bytes:
    """Names a record in the exchange that has this salt: the highest bits of (word * odd salt) mod 2^64."""
    word = int.from_bytes(name[:8], "big") * (2 * salt + 1) & 0xFFFFFFFFFFFFFFFF
    return (word >> 8 * (8 - SALTED_ID_BYTES)).to_bytes(SALTED_ID_BYTES, "big")


Words: TypeAlias = npt.NDArray[np.uint64]


def words_of(names: Iterable[bytes]) -> Words:
    """What is salted of each name, shape (count,)."""
    return np.frombuffer(b"".join(names), dtype=">u8")[:: NAME_BYTES // 8].astype(np.uint64)


def salted_ids(words: Words, salt: int) -> bytes:
    """``salted_id`` of each name, one after the other; of a hundred at a tenth of their cost one by one."""
    salted = words * np.uint64(2 * salt + 1)  # modulo 2^64, as the type is
    return salted.astype(">u8").view(np.uint8).reshape(-1, 8)[:, :SALTED_ID_BYTES].tobytes()


@lru_cache(maxsize=256)
def _cut(count: int) -> struct.Struct:
    return struct.Struct(f"{SALTED_ID_BYTES}s" * count)


def split_ids(ids: bytes) -> tuple[bytes, ...]:
    """The salted ids in a digest.

    Raises:
        MalformedMessage: Not a whole number of them.
    """
    if len(ids) % SALTED_ID_BYTES:
        raise MalformedMessage("a digest is a whole number of salted ids")
    count = len(ids) // SALTED_ID_BYTES
    if count > MANY_IDS:
        return tuple(ids[i : i + SALTED_ID_BYTES] for i in range(0, len(ids), SALTED_ID_BYTES))
    return _cut(count).unpack(ids)


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
        self._contradicted: dict[bytes, bytes] = {}  # short id of one of two records -> the other
        self._sorted: bytes | None = None  # all names, until the set changes
        self._words: Words | None = None  # of all names, until the set changes
        self._capacity = capacity

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Entry[Content]]:
        return iter(self._by_id.values())

    def __contains__(self, signer: bytes) -> bool:
        return signer in self._by_signer

    @property
    def signers(self) -> Iterable[bytes]:
        """Those whose records count."""
        return self._by_signer.keys()

    def get(self, signer: bytes) -> Entry[Content] | None:
        """The record of ``signer``, if there is one that counts."""
        name = self._by_signer.get(signer)
        return None if name is None else self._by_id[name]

    def any_but(self, signer: bytes, rng: random.Random) -> Entry[Content] | None:
        """A record drawn uniformly among those of others; None if there is none."""
        entries = list(self._by_id.values())
        if len(entries) == (signer in self._by_signer):
            return None
        while (entry := rng.choice(entries)).signer == signer:
            pass
        return entry

    def has_struck(self, signer: bytes) -> bool:
        """Whether the signer was struck out."""
        return signer in self._struck

    def knows(self, envelope: bytes) -> bool:
        """Whether these very bytes are in the set, or were refused by it: no need to verify them again."""
        name = short_id(envelope)
        return name in self._by_id or name in self._refused

    def add(self, entry: Entry[Content]) -> bool:
        """Merges a *verified* record; returns whether the set changed.

        Raises:
            AuthenticationFailed: The record equivocates with one in the set, or its signer was struck out before.
            MalformedMessage: The set is full, or the record is older than the one known.
        """
        name = short_id(entry.envelope)
        if entry.signer in self._struck:
            self._refuse(name)
            raise AuthenticationFailed("the signer has equivocated")
        if name in self._by_id and self._by_id[name].signer != entry.signer:
            raise MalformedMessage("a record whose name is another signer's")  # 2^128 work against a given one
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
                raise MalformedMessage("a record older than the one known")
            self._drop(known)
        self._sorted = self._words = None
        self._by_id[name] = entry
        self._by_signer[entry.signer] = name
        return True

    def _check_history(self, entry: Entry[Content], known: Entry[Content]) -> None:
        """Strikes the signer out if ``entry`` contradicts anything it said before, or if it never stops talking."""
        said = {**self._older.get(entry.signer, {}), known.content.sequence: short_id(known.envelope)}
        equivocates = said.get(entry.content.sequence, short_id(entry.envelope)) != short_id(entry.envelope)
        if not equivocates and (entry.content.sequence in said or len(said) <= MAX_OLDER):
            return
        self._refuse(short_id(entry.envelope))
        if equivocates and len(self._contradicted) < 2 * MAX_PROOFS:
            self._contradicted[short_id(known.envelope)] = entry.envelope
            self._contradicted[short_id(entry.envelope)] = known.envelope
        self.strike(entry.signer)
        raise AuthenticationFailed(
            "two different records with one sequence number"
            if equivocates
            else f"more than {MAX_OLDER} records replaced"
        )

    def strike(self, signer: bytes) -> None:
        """Strikes a signer out: nothing it has said or will say counts."""
        self._struck.add(signer)
        self._older.pop(signer, None)
        known = self.get(signer)
        if known is not None:
            self._refuse(short_id(known.envelope))
            self._drop(known)

    def _drop(self, entry: Entry[Content]) -> None:
        self._sorted = self._words = None
        del self._by_id[self._by_signer.pop(entry.signer)]

    def _refuse(self, name: bytes) -> None:
        if len(self._refused) < 4 * self._capacity:  # beyond, a liar costs a verification each time, nothing more
            self._refused.add(name)

    def have(self, salt: int) -> bytes:
        """The salted ids of all records, to open an exchange."""
        if self._words is None:
            self._words = words_of(self._by_id)
        return salted_ids(self._words, salt)

    def root(self, salt: int) -> bytes:
        """A hash of the set, in an exchange that has this salt: two sets with one root are the same."""
        if self._sorted is None:
            self._sorted = b"".join(sorted(self._by_id))
        return hashlib.sha256(salt.to_bytes(8, "big") + self._sorted).digest()[:ROOT_BYTES]

    def if_small(self, of: int) -> tuple[bytes, ...]:
        """All records, if they are few enough to travel with a digest.

        Args:
            of: How many there will be in the end; whoever has few of them can guess that another one lacks them.
        """
        if len(self._by_id) > max(1, of * EAGER_SHARE):
            return ()
        envelopes = tuple(entry.envelope for entry in self._by_id.values())
        return envelopes if sum(map(len, envelopes)) <= MAX_EAGER_BYTES else ()

    def answer(self, digest: Digest) -> Offer:
        """Answers a digest: the records its sender lacks, and the salted ids of what this set lacks.

        Raises:
            MalformedMessage: The ids are none.
        """
        if digest.root:
            return Offer((), b"", differs=digest.root != self.root(digest.salt))
        return Offer(*self.missing_from(digest.have, digest.salt))

    def missing_from(self, have: bytes, salt: int) -> tuple[tuple[bytes, ...], bytes]:
        """Answers a digest: the records its sender lacks (bounded), and the salted ids of what this set lacks.

        Who has one of two records that contradict each other gets the other one, and so strikes their signer out too.
        """
        theirs = set(split_ids(have))
        ours = self._by_salted_id(salt)
        lacking = [other for name, other in self._contradicted.items() if salted_id(name, salt) in theirs]
        lacking += [entry.envelope for there, entry in ours if there not in theirs]
        wanted = theirs.difference([there for there, _ in ours])
        if wanted:
            wanted.difference_update([salted_id(name, salt) for name in self._refused])
        return bounded(lacking), b"".join(sorted(wanted))

    def select(self, ids: bytes, salt: int) -> tuple[bytes, ...]:
        """The records named by ``ids``, as far as they are here (bounded)."""
        wanted = set(split_ids(ids))
        if not wanted:
            return ()
        return bounded([entry.envelope for there, entry in self._by_salted_id(salt) if there in wanted])

    def _by_salted_id(self, salt: int) -> list[tuple[bytes, Entry[Content]]]:
        return list(zip(split_ids(self.have(salt)), self._by_id.values(), strict=True))


def bounded(envelopes: list[bytes]) -> tuple[bytes, ...]:
    """As many records as one message may carry."""
    total = 0
    for count, envelope in enumerate(envelopes):
        total += len(envelope)
        if total > MAX_OFFER_BYTES or count >= MAX_OFFER_RECORDS:
            return tuple(envelopes[:count])
    return tuple(envelopes)
