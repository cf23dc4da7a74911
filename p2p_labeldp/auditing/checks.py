"""The checks behind a verdict: each compares one feature of the rounds with its exact law.

A check adds p-values under a name to ``Findings`` if what it looks at was seen, and nothing otherwise. The names and
what they mean are listed in conformance.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.auditing import checked, coins, p_values
from p2p_labeldp.auditing.distinguisher import binomial_law, flipped_law, ones_law
from p2p_labeldp.auditing.observed import OnesSample, Rounds
from p2p_labeldp.auditing.p_values import Sample
from p2p_labeldp.errors import ConfigurationError

Array = npt.NDArray[np.integer[Any]]
Reals = npt.NDArray[np.float64]


class Flips:
    """The claimed flip probability of each cluster size."""

    def __init__(self, claimed: float | Mapping[int, float], sizes: set[int], classes: int) -> None:
        self._by_size: dict[int, float] = {}
        for size in sorted(sizes):
            if isinstance(claimed, Mapping) and size not in claimed:
                raise ConfigurationError(f"none given for clusters of {size}", field="flip_probability")
            self._by_size[size] = checked.flip(claimed[size] if isinstance(claimed, Mapping) else claimed, classes)

    def of(self, size: int) -> float:
        """f of clusters of ``size``."""
        return self._by_size[size]


class Findings:
    """P-values by name; several under one name are one check."""

    def __init__(self) -> None:
        self.by_name: dict[str, list[float]] = {}

    def add(self, name: str, *p: float) -> None:
        """Notes p-values of the check ``name``."""
        self.by_name.setdefault(name, []).extend(p)


def _targets(part: Rounds) -> Iterable[int]:
    """Labels to count as "ones": with two classes the second says it all."""
    return range(1, 2) if part.classes == 2 else range(part.classes)


def _histogram(values: Array, size: int) -> Array:
    return np.bincount(values, minlength=size + 1)


# T against its exact law.


def check_ones(found: Findings, rounds: Sequence[Rounds], samples: Sequence[OnesSample], flips: Flips) -> None:
    """T against its law, pooled over parts for each label counted; and T of a round against T of the one before."""
    by_ones: dict[str, dict[tuple[int, ...], list[Sample]]] = {}

    def add(size: int, ones: int, classes: int, target: int, histogram: Array) -> None:
        law = _ones_law(size, ones, flips.of(size), classes)
        name = "ones_at_zero" if ones == 0 else "ones_at_size" if ones == size else "ones_between"
        by_ones.setdefault(name, {}).setdefault((classes, target), []).append(Sample(law=law, counts=histogram))

    for sample in samples:
        add(sample.cluster_size, sample.ones, 2, 1, sample.histogram)
        law = _ones_law(sample.cluster_size, sample.ones, flips.of(sample.cluster_size), 2)
        median = int(np.searchsorted(np.cumsum(law), 0.5))
        above = sample.counts > median
        found.add("serial_ones", coins.lagged_events(above, float(law[median + 1 :].sum()), 1))
    for part in rounds:
        if part.labels is None or part.reports is None:
            continue
        whole = (part.labels >= 0).all(axis=1) & (part.reports >= 0).all(axis=1)
        for target in _targets(part):
            ones = np.count_nonzero(part.labels[whole] == target, axis=1)
            reported = np.count_nonzero(part.reports[whole] == target, axis=1)
            for k in np.unique(ones):
                histogram = _histogram(reported[ones == k], part.cluster_size)
                add(part.cluster_size, int(k), part.classes, target, histogram)
    for name, by_target in by_ones.items():
        found.add(name, *(p_values.fit(group) for group in by_target.values()))


@lru_cache(maxsize=256)
def _ones_law(size: int, ones: int, f: float, classes: int) -> Reals:
    return ones_law(cluster_size=size, ones=ones, flip_probability=f, classes=classes)


# Flips.


def check_flips(found: Findings, rounds: Sequence[Rounds], flips: Flips) -> None:
    """In all and for each true label the counts of all parts are added up: small clusters of many sizes still tell."""
    totals: dict[int, list[tuple[int, int, float]]] = {}  # by label: lies, tosses and f of each part
    for part in rounds:
        flipped = _flipped_as_seen(part)
        if part.labels is None or flipped is None:
            continue
        f = flips.of(part.cluster_size)
        seen = (part.labels >= 0) & (flipped >= 0)
        lied = seen & (flipped != part.labels)
        for label in range(part.classes):
            of_label = part.labels == label
            lies, tosses = (int(np.count_nonzero(array & of_label)) for array in (lied, seen))
            totals.setdefault(label, []).append((lies, tosses, f))
        members = [array.reshape(-1, part.clusters * part.cluster_size).sum(axis=0) for array in (lied, seen)]
        pairs = np.unique(np.array(members), axis=1).T
        of_member = min(p_values.binomial(int(x), int(n), f) for x, n in pairs)
        found.add("flip_rate", min(1.0, of_member * members[0].size))
        if part.classes > 2:
            uniform = np.full(part.classes - 1, 1.0 / (part.classes - 1))
            distance = (flipped[lied].astype(np.int64) - part.labels[lied]) % part.classes - 1
            found.add("lies", p_values.multinomial(np.bincount(distance, minlength=part.classes - 1), uniform))
    if totals:
        every = [counts for of_label in totals.values() for counts in of_label]
        found.add("flip_rate", *(_pooled(counts) for counts in (every, *totals.values())))


def _pooled(counts: Sequence[tuple[int, int, float]]) -> float:
    successes, trials, chances = zip(*counts, strict=True)
    return p_values.poisson_binomial(sum(successes), np.array(trials), np.array(chances))


def _flipped_as_seen(part: Rounds) -> Array | None:
    """The flipped bits, or what the reports betray of them: those of members whom somebody drew."""
    if part.flipped is not None or part.mates is None or part.reports is None:
        return part.flipped
    betrayed = np.full(part.shape, -1, dtype=np.int64)
    row, column = np.nonzero((part.mates >= 0) & (part.reports >= 0))
    betrayed[row, part.mates[row, column]] = part.reports[row, column]
    return betrayed


# Draws.


def check_mates(found: Findings, part: Rounds) -> None:
    """Draws over positions, over eighths of the roster, over distances to oneself and for each member; mates hit."""
    if part.mates is None:
        return
    s = part.cluster_size
    drawn = part.mates >= 0
    row, column = np.nonzero(drawn)
    mates = part.mates[drawn].astype(np.int64)
    uniform = np.full(s, 1.0 / s)
    blocks = min(coins.BLOCKS, s)
    block = mates * blocks // s
    block_law = np.bincount(np.arange(s) * blocks // s) / s
    member = (row % part.clusters) * s + column
    of_member = np.bincount(member * blocks + block, minlength=part.clusters * s * blocks).reshape(-1, blocks)
    found.add(
        "mate_uniformity",
        p_values.multinomial(np.bincount(mates, minlength=s), uniform),
        p_values.multinomial(np.bincount(block, minlength=blocks), block_law),
        p_values.multinomial(np.bincount((mates - column) % s, minlength=s), uniform),
        p_values.multinomial(of_member, block_law),
    )
    whole = drawn.all(axis=1)
    if whole.any():
        chosen = np.zeros((int(whole.sum()), s), dtype=bool)
        np.put_along_axis(chosen, part.mates[whole].astype(np.int64), True, axis=1)
        counts = _histogram(np.count_nonzero(chosen, axis=1), s)
        found.add("distinct_mates", p_values.fit([Sample(law=occupancy_law(s), counts=counts)]))


def check_self_picks(found: Findings, rounds: Sequence[Rounds]) -> None:
    """Draws of oneself, added up over all parts."""
    drawn = [(part, part.mates) for part in rounds if part.mates is not None]
    if drawn:
        picks = sum(int(np.count_nonzero(mates == np.arange(part.cluster_size))) for part, mates in drawn)
        draws = np.array([int(np.count_nonzero(mates >= 0)) for _, mates in drawn])
        chance = np.array([1.0 / part.cluster_size for part, _ in drawn])
        found.add("self_picks", p_values.poisson_binomial(picks, draws, chance))


@lru_cache(maxsize=16)
def occupancy_law(size: int) -> Reals:
    """P(``size`` uniform draws from ``size`` members hit exactly j different ones), shape (size + 1,)."""
    law = np.zeros(size + 1)
    law[0] = 1.0
    old = np.arange(size + 1) / size
    for _ in range(size):
        law = law * old + np.concatenate(([0.0], law[:-1] * (1.0 - old[:-1])))
    return law


# Reports against flips and draws.


def check_reports(found: Findings, part: Rounds) -> None:
    """Reports against the flipped labels: forwarded unchanged, drawn as often as m / s, apart from one's own."""
    if part.reports is None:
        return
    flipped = _flipped_as_seen(part)
    if part.mates is not None and flipped is not None:
        row, column = np.nonzero((part.mates >= 0) & (part.reports >= 0))
        answered = flipped[row, part.mates[row, column]]
        false = (answered >= 0) & (answered != part.reports[row, column])
        found.add("one_flip_for_all", p_values.IMPOSSIBLE if false.any() else 1.0)
    if part.flipped is None:
        return
    whole = (part.flipped >= 0).all(axis=1) & (part.reports >= 0).all(axis=1)
    if not whole.any():
        return
    for target in _targets(part):
        bits, reported = part.flipped[whole] == target, part.reports[whole] == target
        flipped_ones, ones = np.count_nonzero(bits, axis=1), np.count_nonzero(reported, axis=1)
        own = np.count_nonzero(bits & reported, axis=1)
        found.add("ones_given_flips", _fit_given_flips(flipped_ones, ones, part.cluster_size))
        found.add("joint", _joint(flipped_ones, ones, own, part.cluster_size))


def _fit_given_flips(flipped_ones: Array, ones: Array, size: int) -> float:
    return p_values.fit(
        [
            Sample(law=binomial_law(size, m / size), counts=_histogram(ones[flipped_ones == m], size))
            for m in np.unique(flipped_ones)
        ]
    )


def _joint(flipped_ones: Array, ones: Array, own: Array, size: int) -> float:
    """X = sum over rows and members of (b_i - q) y_i, q = m / s: given the flips all y_i are independent Bin(1, q).

    So log E e^(uX) is the sum over rows of m log(1 - q + q e^(u (1 - q))) + (s - m) log(1 - q + q e^(-u q)), and X has
    mean 0 and variance s q^2 (1 - q)^2 per row. Without oneself in the draw its mean is -q (1 - q) s / (s - 1).
    """
    total = float(own.sum()) - float((flipped_ones * (ones / size)).sum())
    rows = np.bincount(flipped_ones, minlength=size + 1).astype(np.float64)
    m = np.arange(size + 1)
    mixed = (rows > 0) & (m > 0) & (m < size)
    if not mixed.any():
        return 1.0
    rows, m = rows[mixed], m[mixed]
    q = m / size
    variance = float(rows @ (size * q**2 * (1.0 - q) ** 2))

    def log_moment(u: float) -> float:
        # log(1 - q + q e^a) as logaddexp, which does not overflow.
        holders = np.logaddexp(np.log1p(-q), np.log(q) + u * (1.0 - q))
        others = np.logaddexp(np.log1p(-q), np.log(q) - u * q)
        return float(rows @ (m * holders + (size - m) * others))

    return p_values.chernoff(total, log_moment, scale=1.0 / math.sqrt(variance))


# Coins.


def check_coins(found: Findings, part: Rounds, f: float) -> None:
    """Coins of members, clusters, rounds and purposes against each other."""
    size, columns = part.cluster_size, part.clusters * part.cluster_size
    lags = sorted({1, size, *(back * columns for back in range(1, 5))})  # members, clusters, up to four rounds
    flips = None
    if part.labels is not None and part.flipped is not None and (part.flipped >= 0).all() and (part.labels >= 0).all():
        flips = part.flipped != part.labels
    if part.mates is not None:
        by_round = part.mates.reshape(-1, columns)
        found.add("shared_coins", coins.repeated_choices(by_round, size))
        found.add("repeated_rounds", coins.repeated_choices(by_round.T, size))
        found.add("serial_mates", *(coins.lagged_choices(part.mates.ravel(), size, lag) for lag in lags))
    if flips is not None:
        found.add("shared_coins", coins.common_events(flips.reshape(-1, columns), f * f))
        found.add("serial_flips", *(coins.lagged_events(flips.ravel(), f, lag) for lag in lags))
    if flips is not None and part.mates is not None:
        found.add("flip_apart_from_mate", coins.choices_given(flips, part.mates, size))
    _check_common_reports(found, part, f)


def _check_common_reports(found: Findings, part: Rounds, f: float) -> None:
    """Reports of two members are both ones with probability E (m / s)^2 in one cluster, with less in two."""
    if part.reports is None or part.labels is None or (part.reports < 0).any() or (part.labels < 0).any():
        return
    size = part.cluster_size
    for target in _targets(part):
        ones = np.unique(np.count_nonzero(part.labels == target, axis=1))
        if ones.size != 1:
            continue
        law = flipped_law(cluster_size=size, ones=int(ones[0]), flip_probability=f, classes=part.classes)
        both = min(1.0, float(law @ (np.arange(size + 1) / size) ** 2))
        events = (part.reports == target).reshape(-1, part.clusters * size)
        found.add("shared_coins", coins.common_events(events, both))
