"""The best test between two neighbouring clusters, from laws of T written for audits alone.

T is the number of reports that carry a chosen label (a "one"; any class of K will do, the others are "zeros"). In a
cluster of s members of whom k hold a one, each bit is flipped once (a one is kept with 1 - f, a zero becomes a one with
f / (K - 1)), so m, the ones among the flipped bits, is Bin(k, 1 - f) + Bin(s - k, f / (K - 1)); then each of r reports
is the flipped bit of a uniformly drawn member, so T given m is Bin(r, m / s).

Neighbours are k and k + 1 ones. Bin(r, m / s) has a monotone likelihood ratio in m and m has one in k, and such kernels
compose (Karlin, Total Positivity, 1968, chapter 3): the likelihood ratio of the neighbours is monotone in T. By
Neyman and Pearson the best events are therefore tails {T >= t} and {T <= t}, and t is chosen here from the laws, before
any data are drawn, so nothing has to be paid for having looked.

Nothing here comes from the accountant: an audit that reused what it checks would prove nothing. Logs of binomial
coefficients are running sums of logs of ratios (no gamma function), all sums are of positive terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.auditing import checked
from p2p_labeldp.auditing.lower_bound import clopper_pearson_high, clopper_pearson_low

Reals = npt.NDArray[np.float64]
Counts = npt.NDArray[np.integer[Any]]

NEGLIGIBLE = 1e-30  # of the largest: flipped counts rarer than this move no probability an audit could ever see


class Direction(StrEnum):
    """Which neighbour the event favours: the names of the two halves of the hockey-stick divergence."""

    ADD = "add"  # data with k ones against k + 1: few reports of a one betray k
    REMOVE = "remove"  # data with k + 1 ones against k: many betray k + 1


def binomial_law(trials: int, probability: float) -> Reals:
    """P(Bin(trials, probability) = j), shape (trials + 1,)."""
    if probability <= 0.0 or probability >= 1.0:
        law = np.zeros(trials + 1)
        law[0 if probability <= 0.0 else trials] = 1.0
        return law
    j = np.arange(trials + 1)
    return _normalised(_log_choose(trials) + j * math.log(probability) + (trials - j) * math.log1p(-probability))


def flipped_law(*, cluster_size: int, ones: int, flip_probability: float, classes: int = 2) -> Reals:
    """Law of m, the ones among the flipped bits of a cluster with ``ones`` true ones, shape (cluster_size + 1,)."""
    checked.cluster(cluster_size=cluster_size, ones=ones, flip_probability=flip_probability, classes=classes)
    kept = binomial_law(ones, 1.0 - flip_probability)
    risen = binomial_law(cluster_size - ones, flip_probability / (classes - 1))
    return np.asarray(np.convolve(kept, risen))


def ones_law(
    *, cluster_size: int, ones: int, flip_probability: float, reports: int | None = None, classes: int = 2
) -> Reals:
    """Law of T, the ones among the reports.

    Args:
        cluster_size: s, members who could answer.
        ones: k, members whose true label is a one.
        flip_probability: f, that a member lies; a lie is uniform over the other labels.
        reports: r, reports that arrived; s unless given.
        classes: K; a one is one of the K labels.

    Returns:
        P(T = t), shape (reports + 1,).

    Raises:
        ConfigurationError: An argument is out of range.
    """
    reports = cluster_size if reports is None else checked.whole("reports", reports, least=0)
    flipped = flipped_law(cluster_size=cluster_size, ones=ones, flip_probability=flip_probability, classes=classes)
    law = np.zeros(reports + 1)
    inner = np.flatnonzero(flipped > NEGLIGIBLE * flipped.max())
    for end, last in ((0, 0), (cluster_size, reports)):
        if end in inner:
            law[last] += flipped[end]
    inner = inner[(inner > 0) & (inner < cluster_size)]
    t = np.arange(reports + 1)
    choose = _log_choose(reports)
    for part in np.array_split(inner, 1 + inner.size * (reports + 1) // 2_000_000):  # at most 16 MB at a time
        share = part / cluster_size
        given = choose + t * np.log(share)[:, None] + (reports - t) * np.log1p(-share)[:, None]
        law += flipped[part] @ np.exp(given)
    return np.asarray(law / law.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class TailEvent:
    """A set of outcomes fixed before the data, and its probabilities under both neighbours.

    Args:
        ones: k; the neighbours hold k and k + 1 ones.
        direction: ``add``: {T <= threshold}, likelier with k; ``remove``: {T >= threshold}, likelier with k + 1.
        threshold: t.
        probability: Of the event under the data it favours.
        probability_neighbour: Of the event under the other.
        expected_epsilon_lower: What Clopper-Pearson would give if the counts fell on their expectation.
    """

    ones: int
    direction: Direction
    threshold: int
    probability: float
    probability_neighbour: float
    expected_epsilon_lower: float

    @property
    def favoured_ones(self) -> int:
        """Ones of the data set the event favours."""
        return self.ones + (self.direction is Direction.REMOVE)

    @property
    def other_ones(self) -> int:
        """Ones of its neighbour."""
        return self.ones + (self.direction is Direction.ADD)

    def hits(self, counts: Counts) -> int:
        """How many of the values of T, any shape, lie in the event."""
        inside = counts >= self.threshold if self.direction is Direction.REMOVE else counts <= self.threshold
        return int(np.count_nonzero(inside))


def tail_probabilities(law: Reals, direction: Direction) -> Reals:
    """P(T <= t) for ``add``, P(T >= t) for ``remove``, for every t; shape of ``law``, summed from the small end."""
    sums = np.cumsum(law) if direction is Direction.ADD else np.cumsum(law[::-1])[::-1]
    return np.minimum(sums, 1.0)


def best_event(
    *,
    cluster_size: int,
    flip_probability: float,
    trials: int,
    delta: float,
    alpha: float,
    ones: int = 0,
    direction: Direction | None = None,
    classes: int = 2,
    reports: int | None = None,
) -> TailEvent:
    """The tail event from which ``trials`` rounds of each neighbour may be expected to show the largest epsilon.

    Args:
        cluster_size: s.
        flip_probability: f.
        trials: Rounds that will be drawn on each of the two data sets.
        delta: The delta at which epsilon is to be bounded from below.
        alpha: Error allowed to each of the two Clopper-Pearson ends.
        ones: k. The worst k for the learner's view is 0 or next to it (or, by symmetry, s - 1).
        direction: None: the better of the two, by expectation, still before the data.
        classes: K.
        reports: r; s unless given.

    Raises:
        ConfigurationError: An argument is out of range.
    """
    checked.whole("trials", trials, least=1)
    checked.delta(delta)
    checked.whole("ones", ones, least=0, most=cluster_size - 1)
    low, high = (
        ones_law(cluster_size=cluster_size, ones=k, flip_probability=flip_probability, reports=reports, classes=classes)
        for k in (ones, ones + 1)
    )
    best: TailEvent | None = None
    for way in Direction if direction is None else (direction,):
        favoured, other = (low, high) if way is Direction.ADD else (high, low)
        p, q = tail_probabilities(favoured, way), tail_probabilities(other, way)
        numerator = np.maximum(clopper_pearson_low(trials * p, trials, alpha) - delta, 0.0)
        with np.errstate(divide="ignore"):
            expected = np.log(numerator) - np.log(clopper_pearson_high(trials * q, trials, alpha))
        # When no event promises anything, the one with the largest expected excess is the least hopeless.
        t = int(np.argmax(expected) if expected.max() > 0 else np.argmax(p - q))
        event = TailEvent(
            ones=ones,
            direction=way,
            threshold=t,
            probability=float(p[t]),
            probability_neighbour=float(q[t]),
            expected_epsilon_lower=max(0.0, float(expected[t])),
        )
        if best is None or event.expected_epsilon_lower > best.expected_epsilon_lower:
            best = event
    assert best is not None
    return best


def _log_choose(n: int) -> Reals:
    """log C(n, j) for j = 0..n, from the shorter side so that the ends are exact."""
    j = np.arange(1, n // 2 + 1)
    rising = np.concatenate(([0.0], np.cumsum(np.log((n - j + 1) / j))))
    return np.concatenate((rising, rising[::-1][1 - n % 2 :]))[: n + 1]


def _normalised(logs: Reals) -> Reals:
    law = np.exp(logs)
    return np.asarray(law / law.sum())
