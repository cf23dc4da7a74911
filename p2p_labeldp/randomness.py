"""The only door for entropy: ``secure()`` for deployments, ``replay(seed, ordinal)`` for studies.

Table of streams. In a study every random choice is a word of a counter-based generator (Philox) with
key = (seed, stream) and counter = the peer's ordinal, so a peer draws alone exactly what the population engine draws
in bulk for all peers:

    stream                what it decides                                            shared by the engines
    LABELS + round        word 0: the flip; word 1: the cluster-mate; 2, 3: unused   yes
    UPDATES + round       word 0: takes part?; 1, 2: key what privatises; 3: unused  yes
    CENTRAL + round       ordinal 0: the learner's noise on a round's average        yes
    IDENTITY              the four words are a peer's secret key                     no
    TIMING                word 0: when in its window a report leaves                 no
    GOSSIP                seeds the generator that picks whom to gossip with         no
    FAULTS                faults injected by the virtual network                     no
    DATA                  ordinal 0: train/test split; 1: clustering; 2: learning    yes
    TOPOLOGY              ordinal 0: the graph of first contacts                     no
    ATTACK                ordinal 0: truths and releases an attacker is tried on     no
    CURATOR               ordinal 0: seeds what one place does to all labels; 1:     no
                          the noise of a model that one place trains

A fifth word of a peer would be its neighbour's first, so asking for it raises.

A study may also do without a seed (own data does): every coin then comes from the operating system, and no second run
is the same.

Deployed peers use HMAC-SHA256 of a secret drawn from the operating system: the same purpose gives the same coin, so
lost state or a second instance of the same peer repeats its coins instead of tossing new ones.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import random
import struct
from enum import IntEnum
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_labeldp import keyed_stream
from p2p_labeldp.errors import ConfigurationError, LocalProtocolError

WORDS_PER_PEER = 4
FLIP_WORD, MATE_WORD = 0, 1
SAMPLING_WORD = 0
MAX_SEED = 2**64 - 1
PEERS_A_BLOCK = 256  # whose words are drawn together
KEPT_BLOCKS = 256  # of 8 KiB: three streams of 20,000 peers


class Stream(IntEnum):
    """Second half of a Philox key; see the table above."""

    IDENTITY = 1
    TIMING = 2
    GOSSIP = 3
    FAULTS = 4
    DATA = 5
    TOPOLOGY = 6
    ATTACK = 7
    CURATOR = 8
    LABELS = 1 << 32  # + round
    UPDATES = 1 << 33  # + round
    CENTRAL = 1 << 34  # + round


def check_seed(seed: int) -> int:
    """Returns ``seed`` if it is one of a study, 0 to 2^64 - 1."""
    if not 0 <= seed <= MAX_SEED:
        raise ConfigurationError(f"{seed} given; 0 to 2^64 - 1 are possible", field="seed")
    return seed


def word(seed: int, stream: int, ordinal: int, index: int) -> int:
    """One 64-bit word of peer ``ordinal``.

    Raises:
        LocalProtocolError: ``index`` is not 0..3; the fifth word belongs to the next peer.
    """
    if not 0 <= index < WORDS_PER_PEER:
        raise LocalProtocolError(f"word {index} of a peer does not exist: it has {WORDS_PER_PEER}")
    return int(_words_of(seed, stream, ordinal)[index])


def _words_of(seed: int, stream: int, ordinal: int) -> npt.NDArray[np.uint64]:
    """All words of one peer, shape (4,)."""
    of_peer: npt.NDArray[np.uint64] = _block(seed, stream, ordinal // PEERS_A_BLOCK)[ordinal % PEERS_A_BLOCK]
    return of_peer


@lru_cache(maxsize=KEPT_BLOCKS)
def _block(seed: int, stream: int, number: int) -> npt.NDArray[np.uint64]:
    """The words of a few hundred peers at the cost of one's, since most of that is building a Philox."""
    return words(seed, stream, number * PEERS_A_BLOCK, PEERS_A_BLOCK)


def words(seed: int, stream: int, start: int, count: int) -> npt.NDArray[np.uint64]:
    """The words of peers ``start .. start + count - 1``, shape (count, 4).

    ``integers`` over the full range returns the raw words, 4x faster than ``random_raw`` (it holds no list).
    """
    generator = np.random.Generator(_philox(seed, stream, start))
    raw = generator.integers(0, MAX_SEED, size=WORDS_PER_PEER * count, dtype=np.uint64, endpoint=True)
    return raw.reshape(count, WORDS_PER_PEER)


def generator_seed(seed: int, stream: Stream, ordinal: int = 0) -> int:
    """A 32-bit seed for a library's own generator (scikit-learn's ``random_state`` and the like)."""
    return word(seed, stream, ordinal, 0) >> 32


def study_word(seed: int | None, stream: int, ordinal: int, index: int = 0) -> int:
    """``word`` of a study, or 64 fresh bits if it has no seed."""
    return int.from_bytes(os.urandom(8), "big") if seed is None else word(seed, stream, ordinal, index)


def _philox(seed: int, stream: int, ordinal: int) -> np.random.Philox:
    return np.random.Philox(key=np.array([seed, stream], dtype=np.uint64), counter=ordinal)


class Randomness(Protocol):
    """Everything random that one peer does. Each method names the one purpose its value may serve."""

    def flip_word(self, *, label_id: str, flip_probability: float) -> int:
        """64 bits that decide the flip. Bound to the flip probability: under a second threshold the same word would
        betray the label."""
        ...

    def mate_word(self, *, label_id: str, round_id: bytes, roster: bytes) -> int:
        """64 bits that choose the mate to ask."""
        ...

    def report_delay(self) -> float:
        """In [0, 1): where in its window the report leaves."""
        ...

    def gossip(self) -> random.Random:
        """A generator for whom to gossip with and when."""
        ...

    def identity(self) -> bytes:
        """32 secret bytes, from which the peer's keys derive."""
        ...


class RoundRandomness(Protocol):
    """What is random in rounds of updates. A round is named by its id, which covers the model that was sent, and by its
    number, which is enough in a study."""

    def sampling_word(self, *, round_id: bytes, number: int) -> int:
        """64 bits that decide whether a peer takes part."""
        ...

    def update_generator(self, *, round_id: bytes, number: int) -> np.random.Generator:
        """What a peer privatises its update with: the same for the same round, another for any other."""
        ...

    def noise_generator(self, *, round_id: bytes, number: int, reports: bytes) -> np.random.Generator:
        """What a learner draws a round's noise from: never the same for two sums, named by a digest of ``reports``."""
        ...


class Replay:
    """The coins of peer ``ordinal`` in a study: anyone who knows the seed knows them all."""

    def __init__(self, seed: int, ordinal: int, round_number: int = 0) -> None:
        self.seed = check_seed(seed)
        self.ordinal = ordinal
        self.round_number = round_number

    def _label_word(self, index: int) -> int:
        return word(self.seed, Stream.LABELS + self.round_number, self.ordinal, index)

    def flip_word(self, *, label_id: str, flip_probability: float) -> int:
        return self._label_word(FLIP_WORD)

    def mate_word(self, *, label_id: str, round_id: bytes, roster: bytes) -> int:
        return self._label_word(MATE_WORD)

    def sampling_word(self, *, round_id: bytes, number: int) -> int:
        return word(self.seed, Stream.UPDATES + number, self.ordinal, SAMPLING_WORD)

    def update_generator(self, *, round_id: bytes, number: int) -> np.random.Generator:
        key = _words_of(self.seed, Stream.UPDATES + number, self.ordinal)[1:3]
        return np.random.Generator(np.random.Philox(key=key))

    def noise_generator(self, *, round_id: bytes, number: int, reports: bytes) -> np.random.Generator:
        return np.random.Generator(_philox(self.seed, Stream.CENTRAL + number, 0))

    def report_delay(self) -> float:
        return word(self.seed, Stream.TIMING, self.ordinal, 0) / 2**64

    def gossip(self) -> random.Random:
        return random.Random(word(self.seed, Stream.GOSSIP, self.ordinal, 0))  # noqa: S311  a study is replayable

    def identity(self) -> bytes:
        return _words_of(self.seed, Stream.IDENTITY, self.ordinal).tobytes()


class Secret:
    """The coins of a deployed peer: HMAC-SHA256 of 32 secret bytes, one message per purpose.

    Args:
        secret: 32 bytes from the operating system, kept with the peer's key.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32:
            raise ConfigurationError(f"{len(secret)} bytes given; 32 are needed", field="secret")
        self._secret = secret

    def to_hex(self) -> str:
        """For the key file."""
        return self._secret.hex()

    def _mac(self, purpose: str, *parts: bytes) -> bytes:
        message = hmac.new(self._secret, digestmod=hashlib.sha256)
        for part in (b"p2p-labeldp coin", purpose.encode(), *parts):  # lengths first: no two lists look alike
            message.update(len(part).to_bytes(4, "big"))
            message.update(part)
        return message.digest()

    def flip_word(self, *, label_id: str, flip_probability: float) -> int:
        mac = self._mac("flip", label_id.encode(), struct.pack(">d", flip_probability))
        return int.from_bytes(mac[:8], "big")

    def mate_word(self, *, label_id: str, round_id: bytes, roster: bytes) -> int:
        return int.from_bytes(self._mac("mate", label_id.encode(), round_id, roster)[:8], "big")

    def sampling_word(self, *, round_id: bytes, number: int) -> int:
        return int.from_bytes(self._mac("sampling", round_id)[:8], "big")

    def update_generator(self, *, round_id: bytes, number: int) -> np.random.Generator:
        return keyed_stream.generator(self._mac("update", round_id))

    def noise_generator(self, *, round_id: bytes, number: int, reports: bytes) -> np.random.Generator:
        return keyed_stream.generator(self._mac("central noise", round_id, reports))

    def report_delay(self) -> float:
        return random.SystemRandom().random()

    def gossip(self) -> random.Random:
        return random.SystemRandom()

    def identity(self) -> bytes:
        return self._mac("identity")


def replay(seed: int, ordinal: int, round_number: int = 0) -> Replay:
    """The coins of one peer of a study."""
    return Replay(seed, ordinal, round_number)


def curator(seed: int | None) -> random.Random:
    """The coins of a mechanism that sees all labels of a study; the operating system's if it has no seed."""
    if seed is None:
        return random.SystemRandom()
    return random.Random(word(check_seed(seed), Stream.CURATOR, 0, 0))  # noqa: S311  a study is replayable


def secure() -> Secret:
    """Fresh coins for a deployed peer, drawn from the operating system."""
    return Secret(os.urandom(32))


def bulk_label_words(seed: int | None, start: int, count: int, round_number: int = 0) -> npt.NDArray[np.uint64]:
    """What ``replay(seed, i, round_number)`` draws for its label, for peers i = start .. start + count - 1.

    Without a seed: fresh words from the operating system.
    """
    if seed is None:
        return np.frombuffer(os.urandom(8 * WORDS_PER_PEER * count), dtype=np.uint64).reshape(count, WORDS_PER_PEER)
    return words(seed, Stream.LABELS + round_number, start, count)


def bulk_sampling_words(seed: int, start: int, count: int, number: int) -> npt.NDArray[np.uint64]:
    """The sampling words of peers start .. start + count - 1 of a study in one round, shape (count,)."""
    return words(seed, Stream.UPDATES + number, start, count)[:, SAMPLING_WORD]


def numpy_generator(seed: int, stream: Stream, ordinal: int = 0) -> Any:
    """A NumPy generator on a stream, for bulk draws of studies."""
    return np.random.Generator(_philox(seed, stream, ordinal))
