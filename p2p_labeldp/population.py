"""Engine 1: the whole population as NumPy arrays, no messages.

Two forms of the same round. ``play`` takes any clusters and says who asked whom; it is what the other engines are
compared with. ``count_ones`` streams over equal, contiguous clusters in flat memory and says only what the learner
can tell apart: for audits and for 10^7 users and more.

Peers are the ordinals 0 .. n - 1. Peer i's words are those it would draw alone (``randomness.bulk_label_words``): word
0 decides its flip, word 1 its mate, an index into the members of its cluster sorted by ordinal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Answered, Asked, Ended, Fact, Outcome
from p2p_labeldp.mechanisms import randomized_response, resampling
from p2p_labeldp.randomness import FLIP_WORD, MATE_WORD

EXCHANGES = ("resample", "permute")
CHUNK = 1 << 14
"""Peers whose words are drawn at a time: 512 KiB of words stay in a core's second-level cache, and setting up the
generator (9 us) is spread over enough of them."""

Labels = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """What happened, in columns of shape (n,) by ordinal.

    Args:
        clusters: Cluster of each peer, int64.
        flipped: Its label after the flip, uint8. It is what every asker of the peer got.
        mates: Ordinal of the peer it asked, possibly its own, int64.
        reports: What it reported: its mate's flipped label, uint8.
    """

    clusters: npt.NDArray[np.int64]
    flipped: npt.NDArray[np.uint8]
    mates: npt.NDArray[np.int64]
    reports: npt.NDArray[np.uint8]

    def facts(self) -> Iterator[Fact]:
        """The transcript: an ask, its answer, an accepted report and an end for each peer, all at time 0."""
        columns = zip(self.mates.tolist(), self.clusters.tolist(), self.reports.tolist(), strict=True)
        for peer, (mate, cluster, label) in enumerate(columns):
            yield Asked(peer=peer, mate=mate)
            yield Answered(peer=mate, asker=peer)
            yield Accepted(peer=peer, cluster=cluster, label=label)
            yield Ended(peer=peer, outcome=Outcome.REPORTED)


def play(
    labels: Labels,
    clusters: npt.NDArray[np.integer[Any]],
    flip_probabilities: Sequence[float],
    *,
    seed: int | None,
    round_number: int = 0,
    exchange: str = "resample",
    num_classes: int = 2,
) -> Round:
    """One round in which every peer answers and reports.

    Args:
        labels: True labels, shape (n,), 0 .. num_classes - 1.
        clusters: Cluster of each peer, shape (n,), ids 0 .. C - 1 in any order.
        flip_probabilities: Flip probability of each cluster, length C.
        seed: Of the study; None tosses the operating system's coins.
        round_number: Another round tosses other coins.
        exchange: ``resample`` (Algorithm 2), or ``permute``: in each cluster a uniformly random permutation, the
            order of the members' mate words, as a trusted shuffler would make; each peer then serves one asker. (Two
            equal words, of probability below s^2/2^65, go by ordinal.)
        num_classes: K of the label space.

    Raises:
        ConfigurationError: Shapes, labels or ids that don't fit, or a flip probability out of range.
    """
    _check_exchange(exchange)
    _check_coins(seed, round_number)
    true, cluster = _checked_labels(labels, num_classes), np.asarray(clusters)
    if true.ndim != 1 or cluster.shape != true.shape:
        raise ConfigurationError(
            f"shapes {true.shape} and {cluster.shape} given; one cluster for each of n labels is needed",
            field="clusters",
        )
    sizes = _sizes(cluster, len(flip_probabilities))
    thresholds = [randomized_response.flip_threshold(f, num_classes) for f in flip_probabilities]
    words = randomness.bulk_label_words(seed, 0, len(true), round_number)
    by_cluster = np.argsort(cluster, kind="stable")  # stable: members stay sorted by ordinal
    flipped, mates = np.empty(len(true), dtype=np.uint8), np.empty(len(true), dtype=np.int64)
    end = 0
    for size, threshold in zip(sizes.tolist(), thresholds, strict=True):
        members = by_cluster[end : end + size]
        end += size
        if not size:
            continue
        own = words[members]
        flipped[members] = randomized_response.flip_all(true[members], own[:, FLIP_WORD], threshold, num_classes)
        mates[members] = members[_chosen(own[:, MATE_WORD], size, exchange)]
    return Round(clusters=cluster.astype(np.int64), flipped=flipped, mates=mates, reports=flipped[mates])


def count_ones(
    labels: Labels,
    flip_probability: float,
    *,
    clusters: int,
    seed: int,
    round_number: int = 0,
    exchange: str = "resample",
    first_cluster: int = 0,
) -> Iterator[npt.NDArray[np.int64]]:
    """Plays one round of many equal clusters of binary labels, and yields T, the ones among each cluster's reports.

    Cluster c holds the ordinals c s .. c s + s - 1, so this is ``play`` with ``clusters = repeat(range(C), s)``, bit
    for bit, a block of whole clusters at a time. The memory does not depend on the number of clusters: what is kept is
    a chunk of words, and 10 bytes a peer of the largest of block and cluster.

    Args:
        labels: True labels, shape (s,) if all clusters hold the same (as in an audit), or (clusters, s), which may be
            a memory map.
        flip_probability: The same in every cluster.
        clusters: How many.
        seed: Of the study.
        round_number: Another round tosses other coins.
        exchange: ``resample``, or ``permute``, where T is the number of flipped ones whatever the permutation.
        first_cluster: Number of the first one, to play a part of a larger population.

    Yields:
        Counts of consecutive clusters, shape (clusters in the block,), int64.

    Raises:
        ConfigurationError: As ``play``; before the first block is drawn.
    """
    _check_exchange(exchange)
    for name, value, least in (("clusters", clusters, 1), ("first_cluster", first_cluster, 0)):
        if value < least:
            raise ConfigurationError(f"{value} given; at least {least} is needed", field=name)
    _check_coins(seed, round_number)
    true = _checked_labels(labels, 2)
    if true.ndim not in (1, 2) or not true.shape[-1] or (true.ndim == 2 and len(true) != clusters):
        raise ConfigurationError(
            f"shape {true.shape} given; (s,) or ({clusters}, s) with s >= 1 is needed", field="labels"
        )
    threshold = randomized_response.flip_threshold(flip_probability)
    return _stream(true, threshold, clusters, first_cluster, seed, round_number, exchange)


def _stream(
    labels: npt.NDArray[np.uint8],
    threshold: int,
    clusters: int,
    first_cluster: int,
    seed: int,
    round_number: int,
    exchange: str,
) -> Iterator[npt.NDArray[np.int64]]:
    size = labels.shape[-1]
    most = max(1, CHUNK // size)
    flipped = np.empty(most * size, dtype=np.uint8)
    mates = np.empty(most * size, dtype=np.int64)
    first_member = np.repeat(np.arange(most, dtype=np.int64) * size, size) if most > 1 else np.zeros(1, dtype=np.int64)
    same = np.tile(labels, most) if labels.ndim == 1 else None
    for start in range(0, clusters, most):
        block = min(most, clusters - start)
        rows = block * size
        true = same if same is not None else labels[start : start + block].reshape(-1)
        for at in range(0, rows, CHUNK):  # more than one only where a single cluster is larger than a chunk
            part = slice(at, min(at + CHUNK, rows))
            count = part.stop - part.start
            words = randomness.bulk_label_words(seed, (first_cluster + start) * size + at, count, round_number)
            flipped[part] = randomized_response.flip_all(true[part], words[:, FLIP_WORD], threshold)
            if exchange == "resample":
                mates[part] = resampling.mate_indices(words[:, MATE_WORD], size)
        if exchange == "resample":
            if most > 1:
                mates[:rows] += first_member[:rows]
            reports = flipped.take(mates[:rows])
        else:
            reports = flipped[:rows]
        # einsum, since `sum` over short rows spends its time on starting them
        yield np.einsum("cs->c", reports.reshape(block, size).astype(np.int32)).astype(np.int64)


def _chosen(words: npt.NDArray[np.uint64], size: int, exchange: str) -> npt.NDArray[Any]:
    if exchange == "permute":
        return np.argsort(words, kind="stable")
    return resampling.mate_indices(words, size)


def _check_exchange(exchange: str) -> None:
    if exchange not in EXCHANGES:
        raise ConfigurationError(f"{exchange!r} given; one of {', '.join(EXCHANGES)} is allowed", field="exchange.kind")


def _check_coins(seed: int | None, round_number: int) -> None:
    if seed is not None:
        randomness.check_seed(seed)
    if not 0 <= round_number < 1 << 32:
        raise ConfigurationError(f"{round_number} given; 0 to 2^32 - 1 are possible", field="round_number")


def _checked_labels(labels: Labels, num_classes: int) -> npt.NDArray[np.uint8]:
    array = np.asarray(labels)
    randomized_response.check_classes(num_classes)
    if array.dtype.kind not in "iu" or (array.size and not 0 <= array.min() <= array.max() < num_classes):
        raise ConfigurationError(f"integers 0 to {num_classes - 1} are needed", field="labels")
    return array.astype(np.uint8, copy=False)


def _sizes(clusters: npt.NDArray[np.integer[Any]], count: int) -> npt.NDArray[np.intp]:
    if clusters.dtype.kind not in "iu" or (clusters.size and not 0 <= clusters.min() <= clusters.max() < count):
        raise ConfigurationError(f"ids 0 to {count - 1} are needed, one flip probability for each", field="clusters")
    return np.bincount(clusters, minlength=count)
