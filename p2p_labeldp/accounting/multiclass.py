"""K classes: a certified bound for K-ary randomized response followed by resampling.

Everyone keeps its label with probability 1 - f and tells each other one with q = f/(K-1). The victim's label is a or b.

**Bound.** Others tell, with probability Kq, a uniform label, else the truth (1 - f >= 1/K). Let the learner see who of
them told the truth or a uniform label other than a, b, and what; whether the victim told a or b; and which reports come
from the n others, n ~ Bin(s-1, 2q), who told a or b by the blanket, or from the victim. Nothing of it but the last
depends on the victim's label, and when the victim told neither, nothing does. So with N ~ Bin(r, (n+1)/s) such reports,

    delta(eps) <= (1-f+q) E_{n,N} [ HS_eps of T_a ],  T_a ~ Bin(N, M_a/(n+1)),
    M_a = Bin(n, 1/2) + the victim's bit, which is the right one with probability (1-f)/(1-f+q).

Relabelling a and b swaps the two laws, so one direction is both. For a permutation N = n + 1 and T_a = M_a, and the
bound is attained for K >= 3, where all others have a third label.

For large clusters n and N are taken in cells, bounded by their smallest n (fewer others hide less) and largest N
(leaving reports out is post-processing), N's law by that of the cell's largest n (it grows with n, and delta grows with
N).

The three-category law is what the learner sees when all others have a third label and labels other than a, b are taken
together: the same without being told n, or whether the victim told a or b. For K = 3 that is all there is to see, and
it is the worst data as far as enumeration goes (s <= 16); for K >= 4 it is neither, so it is shown beside the bound and
never instead of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2p_labeldp.accounting.binomial import Floats, half_width, pmf, pmf_by_share, window
from p2p_labeldp.accounting.divergence import Pair
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_epsilon, check_flip
from p2p_labeldp.accounting.tables import MAX_EXPONENT
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import check_classes, local_epsilon

TAIL = 1e-20  # cut from a window, and charged
MAX_OUTCOMES = 2e7  # of a permutation: eight arrays of them make a gigabyte
CELL_WORK = 3e9  # multiplications of a whole evaluation, a second or two; beyond it cells widen


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """K-ary randomized response in one cluster.

    Args:
        cluster_size: s.
        num_classes: K.
        flip_probability: f, 0 to (K-1)/K.
        reports: r; the cluster size if not given.
    """

    cluster_size: int
    num_classes: int
    flip_probability: float
    reports: int | None = None

    def __post_init__(self) -> None:
        check_count(self.cluster_size, "cluster_size")
        check_classes(self.num_classes)
        object.__setattr__(self, "flip_probability", check_flip(self.flip_probability, self.num_classes))
        if self.reports is not None:
            check_count(self.reports, "reports")

    @property
    def other(self) -> float:
        """q, the probability of each other label."""
        return self.flip_probability / (self.num_classes - 1)

    @property
    def pair_mass(self) -> float:
        """1 - f + q: the victim tells a or b."""
        return 1 - self.flip_probability + self.other

    @property
    def pair_flip(self) -> float:
        """Given that, the probability that it is the wrong one."""
        return min(0.5, self.other / self.pair_mass)

    def local_delta(self, epsilon: float) -> float:
        """[1 - f - e^eps q]_+: what the flip alone promises."""
        return max(0.0, 1 - self.flip_probability - math.exp(min(epsilon, MAX_EXPONENT)) * self.other)


def delta(classes: Classes, epsilon: float) -> float:
    """The least of the certified bound, the exact shuffle and the local guarantee at ``epsilon``."""
    point = check_epsilon(epsilon)
    return min(resampled_bound(classes).delta(point), shuffled(classes).delta(point), classes.local_delta(point))


def epsilon(classes: Classes, delta: float) -> float:
    """The least eps that the certified bound, the exact shuffle or the local guarantee gives at ``delta``.

    More reports than members are not covered by the shuffle of the same flips only if flips are fresh; memoised they
    are.
    """
    target = check_delta(delta)
    local = local_epsilon(classes.flip_probability, classes.num_classes)
    return min(resampled_bound(classes).epsilon(target), shuffled(classes).epsilon(target), local)


def shuffled(classes: Classes) -> Pair:
    """The two laws of a permutation: who tells what is shuffled, every flipped label reported once."""
    others = classes.cluster_size - 1
    return clones(others, 2 * classes.other, classes.pair_flip, classes.pair_mass)


def clones(others: int, hiding: float, flip: float, mass: float = 1.0) -> Pair:
    """n ~ Bin(others, hiding) tell a fair bit, the victim a bit that is wrong with probability ``flip``; n and the
    number of ones are seen. Times ``mass``.

    Raises:
        ConfigurationError: So many others that the laws would take more than a gigabyte.
    """
    mean = others * hiding
    first, last = window(others, mean, mean, mean * (1 - min(1.0, hiding)), TAIL)
    widest = np.ptp(window(last, last / 2, last / 2, last / 4, TAIL)) + 2
    if (last - first + 1) * widest > MAX_OUTCOMES:
        raise ConfigurationError(
            f"{others + 1} given; so many members can't be compared with a shuffle at this flip", field="cluster_size"
        )
    weights = pmf(others, min(1.0, hiding), first, last) * mass
    left, right = [], []
    for n, weight in zip(range(first, last + 1), weights, strict=True):
        ones = pmf(n, 0.5, *window(n, n / 2, n / 2, n / 4, TAIL)) * weight
        zero, one = np.append(ones, 0.0), np.append(0.0, ones)
        left.append((1 - flip) * zero + flip * one)
        right.append(flip * zero + (1 - flip) * one)
    return Pair(left=np.concatenate(left), right=np.concatenate(right), omitted=4 * TAIL)


def resampled_bound(classes: Classes) -> Pair:
    """The two laws of the certified bound, cell by cell."""
    s, q, flip = classes.cluster_size, classes.other, classes.pair_flip
    r = s if classes.reports is None else classes.reports
    left, right = [], []
    hiding = min(1.0, 2 * q)
    mean = (s - 1) * hiding
    first, last = window(s - 1, mean, mean, mean * (1 - hiding), TAIL)
    weights = pmf(s - 1, hiding, first, last)
    width = _cell_width(s, r, first, last)
    for low in range(first, last + 1, width):
        high = min(low + width - 1, last)
        weight = float(weights[low - first : high - first + 1].sum())
        cells = _report_cells(r, (high + 1) / s, max(1, width // 4))
        for (_, probability), (zero, one) in zip(cells, _laws(low, [reports for reports, _ in cells]), strict=True):
            scale = weight * probability * classes.pair_mass
            left.append(((1 - flip) * zero + flip * one) * scale)
            right.append((flip * zero + (1 - flip) * one) * scale)
    return Pair(left=np.concatenate(left), right=np.concatenate(right), omitted=6 * TAIL)


def three_categories(classes: Classes) -> Pair:
    """The laws when all others have a third label, other labels taken together; outcomes (N, T_a). Exact for K = 3."""
    s, q, flip, mass = classes.cluster_size, classes.other, classes.pair_flip, classes.pair_mass
    r = s if classes.reports is None else classes.reports
    hiding = min(1.0, 2 * q)
    mean = (s - 1) * hiding
    first, last = window(s - 1, mean, mean, mean * (1 - hiding), TAIL)
    law = np.zeros((2, r + 1, r + 1))
    for n, weight in zip(range(first, last + 1), pmf(s - 1, hiding, first, last), strict=True):
        cells = _report_cells(r, (n + 1) / s, 1)
        for (reports, probability), (zero, one) in zip(cells, _laws(n, [top for top, _ in cells]), strict=True):
            law[0, reports, : reports + 1] += weight * probability * mass * ((1 - flip) * zero + flip * one)
            law[1, reports, : reports + 1] += weight * probability * mass * (flip * zero + (1 - flip) * one)
        if mass < 1:  # the victim told a third label: n people in all told a or b, and nothing depends on the victim
            for reports, probability in _report_cells(r, n / s, 1):
                law[:, reports, : reports + 1] += weight * probability * (1 - mass) * _without_victim(n, reports)
    return Pair(left=law[0], right=law[1], omitted=6 * TAIL)


def _laws(n: int, reports: list[int]) -> Iterator[tuple[Floats, Floats]]:
    """T_a of N reports from n fair bits and the victim's, which is 0 or 1; for each N of an ascending list.

    From N to N + 1: P(t) = (1-q) P'(t) + q P'(t-1) for each share q of ones, an order of magnitude cheaper than afresh.
    """
    first, last = window(n, n / 2, n / 2, n / 4, TAIL)
    bits = pmf(n, 0.5, first, last)
    share = np.arange(first, last + 2)[:, None] / (n + 1)
    table = np.zeros((share.size, reports[-1] + 1))
    done = reports[0]
    table[:, : done + 1] = pmf_by_share(done, n + 1, (first, last + 1), (0, done))
    for top in reports:
        while done < top:
            done += 1
            hit = table[:, :done] * share
            table[:, :done] *= 1 - share
            table[:, 1 : done + 1] += hit
        yield bits @ table[:-1, : top + 1], bits @ table[1:, : top + 1]


def _without_victim(n: int, reports: int) -> Floats:
    if n == 0:
        return np.ones(1)
    law: Floats = pmf(n, 0.5, 0, n) @ pmf_by_share(reports, n, (0, n), (0, reports))
    return law


def _report_cells(r: int, share: float, width: int) -> list[tuple[int, float]]:
    """(largest N, probability) of cells of N ~ Bin(r, share), ascending."""
    mean = r * min(1.0, share)
    first, last = window(r, mean, mean, mean * (1 - min(1.0, share)), TAIL)
    law = pmf(r, min(1.0, share), first, last)
    return [
        (first + min(start + width, law.size) - 1, float(law[start : start + width].sum()))
        for start in range(0, law.size, width)
    ]


def _cell_width(s: int, r: int, first: int, last: int) -> int:
    """The width of the cells of n and N at which the work stays within ``CELL_WORK``."""
    reports = r * (last + 1) / s
    steps = 4 * half_width(reports, TAIL)  # each step of N touches every entry about four times
    work = (last - first + 1) * steps * min(last + 1, 2 * half_width(last / 4, TAIL)) * reports
    return max(1, math.ceil(work / CELL_WORK))
