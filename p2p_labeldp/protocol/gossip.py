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
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

import msgspec
import numpy as np

from p2p_labeldp.crypto.envelope import KEPT_VERIFICATIONS, Signed
from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage
from p2p_labeldp.protocol.messages import (
    MAX_CLUSTER_SIZE,
    MAX_EAGER_BYTES,
    MAX_OFFER_BYTES,
    MAX_OFFER_RECORDS,
    MAX_RECORD_BYTES,
    ROOT_BYTES,
    SALTED_ID_BYTES,
    Digest,
    Offer,
)
from p2p_labeldp.protocol.wire import decode_payload

MAX_PROOFS = 64  # of equivocation kept for others; who strikes out more signers in one round has other troubles
WORD_BYTES = 8  # of a name, which are salted
NAME_BYTES = 16  # of a record's digest: even its own signer can't make two records of one name
EAGER_SHARE = 0.25  # of a set's records in the end: who has no more sends all, since another one lacks most of them
MANY_IDS = 1024  # beyond, how to cut them is not remembered: strangers choose the number
MAX_OLDER = 16  # replaced records of one signer: restarts within a round; who needs more is struck out


class Sequenced(Protocol):
    """What a record's content needs to have."""

    @property
    def sequence(self) -> int: ...


Content = TypeVar("Content", bound=Sequenced)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Content]):
    """A verified record: who signed it, its bytes, what they say.

    Its name in a set, and what is salted of that, are found at birth: thousands of sets may share an entry.
    """

    signer: bytes
    envelope: bytes
    content: Content
    name: bytes = field(init=False, compare=False)
    word: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", short_id(self.envelope))
        object.__setattr__(self, "word", word_of(self.name))


def short_id(envelope: bytes) -> bytes:
    """Names a record in a set."""
    return hashlib.sha256(envelope).digest()[:NAME_BYTES]


@lru_cache(maxsize=2 * KEPT_VERIFICATIONS)
def open_entry(
    envelope: bytes, kind: str, decoder: msgspec.msgpack.Decoder[Content], verify: Callable[..., Signed]
) -> Entry[Content]:
    """Verifies a record, then decodes it. Both are pure functions of the bytes: successes are remembered, and all peers
    of a process, which would else keep the same bytes a hundred times over, share one entry.

    Args:
        envelope: The signed record.
        kind: What it has to be signed as.
        decoder: Of its content.
        verify: ``KeyRing.verify``, of any peer.

    Raises:
        AuthenticationFailed: Not signed by the key it names.
        MalformedMessage: Too long, or not what its kind promises.
    """
    signed = verify(kind, envelope, max_bytes=MAX_RECORD_BYTES)
    return Entry(signed.peer_id, envelope, decode_payload(signed.payload, decoder))


def draw_salt(rng: random.Random) -> int:
    """A salt for one exchange. Its draw has to be as unpredictable as the exchange is worth (``Randomness.gossip``)."""
    return rng.getrandbits(63)


def word_of(name: bytes) -> int:
    """What is salted of a name."""
    return int.from_bytes(name[:WORD_BYTES], "big")


def salted_id(name: bytes, salt: int) -> bytes:
    """Names a record in the exchange that has this salt: the highest bits of (word * odd salt) mod 2^64."""
    word = word_of(name) * (2 * salt + 1) & 0xFFFFFFFFFFFFFFFF
    return word.to_bytes(WORD_BYTES, "big")[:SALTED_ID_BYTES]


def salted_ids(words: bytes | memoryview, salt: int) -> tuple[bytes, ...]:
    """``salted_id`` of each name; of a hundred at a tenth of their cost one by one.

    Args:
        words: ``word_of`` each name, as 64-bit integers of this machine.
        salt: Of the exchange.
    """
    salted = np.frombuffer(words, dtype=np.uint64) * np.uint64(2 * salt + 1)  # modulo 2^64, as the type is
    return _cut(salted.astype(">u8").tobytes(), WORD_BYTES)


def split_ids(ids: bytes) -> tuple[bytes, ...]:
    """The salted ids in a digest.

    Raises:
        MalformedMessage: Not a whole number of them.
    """
    if len(ids) % SALTED_ID_BYTES:
        raise MalformedMessage("a digest is a whole number of salted ids")
    return _cut(ids, SALTED_ID_BYTES)


def _cut(data: bytes, width: int) -> tuple[bytes, ...]:
    """The salted ids that stand every ``width`` bytes."""
    count = len(data) // width
    if count > MANY_IDS:
        return tuple(data[i : i + SALTED_ID_BYTES] for i in range(0, len(data), width))
    return _layout(count, width).unpack(data)


@lru_cache(maxsize=512)
def _layout(count: int, width: int) -> struct.Struct:
    return struct.Struct(f"{SALTED_ID_BYTES}s{width - SALTED_ID_BYTES}x" * count)


class GossipSet(Generic[Content]):
    """The records of one cluster.

    Args:
        capacity: Signers at most, those struck out included; further ones are refused, known ones may still update.
    """

    def __init__(self, capacity: int = MAX_CLUSTER_SIZE) -> None:
        self._entries: list[Entry[Content]] = []
        self._words = array("Q")  # what is salted of their names, in the same order
        self._by_signer: dict[bytes, Entry[Content]] = {}
        self._sorted: bytes | None = None  # all names, until the set changes
        self._older: dict[bytes, dict[int, bytes]] = {}  # signer -> sequence -> name of what was replaced
        self._struck: set[bytes] = set()
        self._refused: set[bytes] = set()  # names of equivocating or older records: not wanted again
        self._contradicted: dict[bytes, bytes] = {}  # name of one of two records -> the other
        self._capacity = capacity

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry[Content]]:
        return iter(self._entries)

    def __contains__(self, signer: bytes) -> bool:
        return signer in self._by_signer

    @property
    def signers(self) -> Iterable[bytes]:
        """Those whose records count."""
        return self._by_signer.keys()

    def get(self, signer: bytes) -> Entry[Content] | None:
        """The record of ``signer``, if there is one that counts."""
        return self._by_signer.get(signer)

    def any_but(self, signer: bytes, rng: random.Random) -> Entry[Content] | None:
        """A record drawn uniformly among those of others; None if there is none."""
        if len(self._entries) == (signer in self._by_signer):
            return None
        while (entry := rng.choice(self._entries)).signer == signer:
            pass
        return entry

    def has_struck(self, signer: bytes) -> bool:
        """Whether the signer was struck out."""
        return signer in self._struck

    def knows(self, entry: Entry[Content]) -> bool:
        """Whether this very record is in the set, or was refused by it."""
        known = self._by_signer.get(entry.signer)
        if known is not None and known.envelope == entry.envelope:
            return True
        return bool(self._refused) and entry.name in self._refused

    def add(self, entry: Entry[Content]) -> bool:
        """Merges a *verified* record; returns whether the set changed.

        Raises:
            AuthenticationFailed: The record equivocates with one in the set, or its signer was struck out before.
            MalformedMessage: The set is full, or the record is older than the one known.
        """
        signer = entry.signer
        if signer in self._struck:
            self._refuse(entry.name)
            raise AuthenticationFailed("the signer has equivocated")
        known = self._by_signer.get(signer)
        if known is not None:
            if entry.envelope == known.envelope:
                return False
            self._replace(known, entry)
        elif len(self._entries) + len(self._struck) >= self._capacity:
            raise MalformedMessage(f"more than {self._capacity} records for one cluster")
        self._by_signer[signer] = entry
        self._entries.append(entry)
        self._words.append(entry.word)
        self._sorted = None
        return True

    def _replace(self, known: Entry[Content], entry: Entry[Content]) -> None:
        """Makes room for a newer record."""
        self._check_history(entry, known)
        older, newer = sorted((entry, known), key=lambda both: both.content.sequence)
        self._older.setdefault(entry.signer, {})[older.content.sequence] = older.name
        self._refuse(older.name)
        if newer is known:
            raise MalformedMessage("a record older than the one known")
        self._drop(known)

    def _check_history(self, entry: Entry[Content], known: Entry[Content]) -> None:
        """Strikes the signer out if ``entry`` contradicts anything it said before, or if it never stops talking."""
        said = {**self._older.get(entry.signer, {}), known.content.sequence: known.name}
        equivocates = said.get(entry.content.sequence, entry.name) != entry.name
        if not equivocates and (entry.content.sequence in said or len(said) <= MAX_OLDER):
            return
        self._refuse(entry.name)
        if equivocates and len(self._contradicted) < 2 * MAX_PROOFS:
            self._contradicted[known.name] = entry.envelope
            self._contradicted[entry.name] = known.envelope
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
            self._refuse(known.name)
            self._drop(known)

    def _drop(self, entry: Entry[Content]) -> None:
        del self._by_signer[entry.signer]
        self._entries.remove(entry)
        self._words = array("Q", [one.word for one in self])
        self._sorted = None

    def _refuse(self, name: bytes) -> None:
        if len(self._refused) < 4 * self._capacity:  # beyond, a liar costs a verification each time, nothing more
            self._refused.add(name)

    def have(self, salt: int) -> bytes:
        """The salted ids of all records, to open an exchange."""
        return b"".join(salted_ids(memoryview(self._words), salt))

    def root(self, salt: int) -> bytes:
        """A hash of the set, in an exchange that has this salt: two sets with one root are the same."""
        if self._sorted is None:
            self._sorted = b"".join(sorted([entry.name for entry in self]))
        return hashlib.sha256(salt.to_bytes(8, "big") + self._sorted).digest()[:ROOT_BYTES]

    def if_small(self, of: int) -> tuple[bytes, ...]:
        """All records, if they are few enough to travel with a digest.

        Args:
            of: How many there will be in the end; whoever has few of them can guess that another one lacks them.
        """
        if len(self._entries) > max(1, of * EAGER_SHARE):
            return ()
        envelopes = tuple(entry.envelope for entry in self)
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
        theirs, ours = set(split_ids(have)), salted_ids(memoryview(self._words), salt)
        lacking = [other for name, other in self._contradicted.items() if salted_id(name, salt) in theirs]
        lacking += [self._entries[i].envelope for i, there in enumerate(ours) if there not in theirs]
        wanted = theirs.difference(ours)
        if wanted:
            wanted.difference_update([salted_id(name, salt) for name in self._refused])
        return bounded(lacking), b"".join(sorted(wanted))

    def select(self, ids: bytes, salt: int) -> tuple[bytes, ...]:
        """The records named by ``ids``, as far as they are here (bounded)."""
        wanted = set(split_ids(ids))
        if not wanted:
            return ()
        ours = salted_ids(memoryview(self._words), salt)
        return bounded([self._entries[i].envelope for i, there in enumerate(ours) if there in wanted])


def bounded(envelopes: list[bytes]) -> tuple[bytes, ...]:
    """As many records as one message may carry."""
    if len(envelopes) <= MAX_OFFER_RECORDS and sum(map(len, envelopes)) <= MAX_OFFER_BYTES:
        return tuple(envelopes)
    total = 0
    for count, envelope in enumerate(envelopes):
        total += len(envelope)
        if total > MAX_OFFER_BYTES or count >= MAX_OFFER_RECORDS:
            return tuple(envelopes[:count])
    return tuple(envelopes)
