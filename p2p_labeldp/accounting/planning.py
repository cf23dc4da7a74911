"""The least flip that keeps a roster within its target, whoever of it fails to answer.

A roster names s peers; the learner cannot choose who of them answers. If p of them answer, each of the s asks finds an
answer with probability p/s, and reports leave only if at least h peers hold one. So at flip probability f and target
eps

    roster_delta(f) = max over pools p = 1..s of  sum_{r=h..s} P(Bin(s, p/s) = r) delta_{r,p}(eps),

delta_{r,p} being the exact delta of r reports from a pool of p (``resampling``), must be at most 1/s^2. Added to it is
what 64-bit words lack of uniformity: s draws of a mate, each within s/2^64 of uniform in total variation, and s flips,
each within 1/2^64 of its stated probability; a total variation of x costs at most (1 + e^eps) x.

With t mates beside the learner (``coalition``): the victim is asked by one of them with probability 1 - (1 - 1/s)^t,
which costs the local delta. Else at most 2t members are known (the mates, and whom they asked), and of the answers N
come from the other p - 2t: the sum runs over N ~ Bin(r, (p-2t)/p), r >= h, with delta_{N, p-2t}.

More than two classes: ``class_rosters`` bounds delta_{r,p}, and with it the same maximum. It is all that K > 2 asks of
this module's callers, who say K wherever they say f.

What is not evaluated is covered by three facts: leaving reports out is post-processing, so delta_{r,p} grows with r;
delta_{r,p} is at most the local delta [1 - f - e^eps f]_+; and a truncated law is charged the mass cut from it. So
with some r's evaluated, every other r is bounded by the next larger one, and a pool is evaluated no further than the
decision needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from p2p_labeldp.accounting.binomial import Floats, pmf
from p2p_labeldp.accounting.class_rosters import ClassRoster
from p2p_labeldp.accounting.exact import local_delta
from p2p_labeldp.accounting.pools import Pool
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_epsilon, check_flip, check_target
from p2p_labeldp.accounting.tables import ROUNDING, worst_delta
from p2p_labeldp.errors import ClusterTooSmall, ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import check_classes, largest_flip, local_epsilon
from p2p_labeldp.mechanisms.resampling import INDEX_BIAS

TAIL = 1e-24  # cut from each window, and charged
MARGIN = 1e-9  # relative; a plan leaves it free, so that a peer whose libm differs in the last digit agrees
CLOSED = 1 + 1e-10  # two bounds of a sum this near to each other are one number
DIGITS = 10_000  # flips are planned to five significant digits


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterPlan:
    """What the learner signs for one cluster.

    Args:
        size: s, members of the roster.
        delta: 1/s^2.
        holding_minimum: h; with fewer peers holding an answer nobody reports.
        flip_probability: The least, to five significant digits, rounded up.
        num_classes: K.
    """

    size: int
    delta: float
    holding_minimum: int
    flip_probability: float
    num_classes: int = 2


def roster_delta(size: int) -> float:
    """1/s^2.

    Raises:
        ClusterTooSmall: A cluster of one: delta would be 1, which promises nothing.
    """
    if check_count(size, "cluster_size") < 2:
        raise ClusterTooSmall("a cluster of 1 hides nobody: its reports would name their label; 2 members or more")
    return 1 / size**2


@lru_cache(maxsize=4096, typed=True)  # each peer asks; typed, since False would be 0.0 to it
def holding_minimum(size: int, tolerated_loss: float) -> int:
    """ceil((1 - tolerated_loss) s), at least 1; the loss is taken as the decimal number it is written as."""
    check_count(size, "cluster_size")
    if isinstance(tolerated_loss, bool) or not 0 <= tolerated_loss < 1:
        raise ConfigurationError(f"{tolerated_loss} given; at least 0 and below 1 is needed", field="tolerated_loss")
    return max(1, math.ceil((1 - Fraction(repr(float(tolerated_loss)))) * size))


class _AnsweringPool:
    """The sum over r for one pool, known between two bounds that close in on demand."""

    def __init__(self, size: int, holding: int, pool: int, known: int, flip_probability: float, epsilon: float) -> None:
        unknown = max(1, pool - known)  # the victim is one of them
        self._pool = Pool(unknown, flip_probability, TAIL)
        self._epsilon = epsilon
        self._first = holding
        self._weights: Floats = pmf(size, pool / size, holding, size)
        if unknown < pool:
            self._first = 0
            thinned = np.zeros(size + 1)
            for reports, weight in enumerate(self._weights, start=holding):
                thinned[: reports + 1] += weight * pmf(reports, unknown / pool, 0, reports)
            self._weights = thinned
        self._known: dict[int, float] = {}
        self._local = local_delta(flip_probability, epsilon)
        self.upper = float(self._weights.sum()) * self._local * (1 + ROUNDING)
        self.lower = 0.0

    def refine(self) -> bool:
        """Evaluates one more r; False if all that have weight are known."""
        reports = self._widest_gap()
        if reports is None:
            return False
        self._known[reports] = worst_delta(self._pool, reports, self._epsilon) if reports else 0.0
        self.lower, self.upper = self._bounds()
        return True

    def _runs(self) -> Iterable[tuple[int, int, float, float]]:
        """Runs of unknown r's between known ones: (first, last, delta below, delta above)."""
        last = self._first + self._weights.size - 1
        below, start = 0.0, self._first
        for known in [*sorted(self._known), last + 1]:
            above = self._known.get(known, self._local)
            yield start, known - 1, below, above
            below, start = above, known + 1

    def _widest_gap(self) -> int | None:
        if not self._known:
            return self._first + self._weights.size - 1  # all r's at once
        best, widest = None, 0.0
        for start, stop, below, above in self._runs():
            weights = self._weights[start - self._first : stop + 1 - self._first]
            mass = float(weights.sum())
            if mass * (above - below) > widest:
                widest = mass * (above - below)
                # the heavier part of the run falls with r (p < h) or not; half of its mass goes to either side
                best = start + int((weights.cumsum() < mass / 2).sum())
        return best

    def _bounds(self) -> tuple[float, float]:
        lower = upper = 0.0
        for reports, delta in self._known.items():
            exact = float(self._weights[reports - self._first]) * delta
            lower, upper = lower + exact, upper + exact
        for start, stop, below, above in self._runs():
            mass = float(self._weights[start - self._first : stop + 1 - self._first].sum())
            lower, upper = lower + mass * below, upper + mass * above
        return lower, upper * (1 + ROUNDING)


class _Roster:
    """One roster size, whose hardest pools are remembered from one question to the next."""

    def __init__(self, size: int, holding: int, colluders: int) -> None:
        self.size, self.holding, self.colluders = size, holding, colluders
        self.hit = 1 - (1 - 1 / size) ** colluders
        self._order = list(range(size, 0, -1))

    def _coins(self, epsilon: float) -> float:
        return (self.size**2 + self.size) * INDEX_BIAS * (1 + math.exp(min(epsilon, 700.0)))

    def _pool(self, pool: int, flip_probability: float, epsilon: float) -> _AnsweringPool:
        return _AnsweringPool(self.size, self.holding, pool, 2 * self.colluders, flip_probability, epsilon)

    def fits(self, flip_probability: float, epsilon: float, delta: float) -> bool:
        """Whether the roster's delta at ``epsilon`` is at most ``delta``; evaluates no more than that takes."""
        local = local_delta(flip_probability, epsilon)
        room = (delta - self._coins(epsilon) - self.hit * local) / (1 - self.hit)
        if local <= delta:
            return True
        if room < 0:
            return False
        for place, pool in enumerate(self._order):
            sums = self._pool(pool, flip_probability, epsilon)
            while sums.upper > room:
                if sums.lower > room or not sums.refine():
                    self._order.insert(0, self._order.pop(place))  # the next question meets it first
                    return False
        return True

    def delta(self, flip_probability: float, epsilon: float) -> float:
        """The roster's delta at ``epsilon``; only pools that may be the worst are evaluated to the end."""
        local = local_delta(flip_probability, epsilon)
        if local == 0:
            return 0.0
        worst = 0.0
        candidates = []
        for pool in self._order:
            sums = self._pool(pool, flip_probability, epsilon)
            if pool == self.size:
                sums.refine()
                worst = sums.lower
            candidates.append(sums)
        for sums in candidates:  # a first bound for those that might matter
            if sums.upper > worst and sums.lower == 0:
                sums.refine()
        for sums in sorted(candidates, key=lambda sums: -sums.lower):
            while sums.upper > max(worst, CLOSED * sums.lower):
                if not sums.refine():
                    break
            worst = max(worst, sums.upper)
        return min(local, self.hit * local + (1 - self.hit) * worst + self._coins(epsilon))


@lru_cache(maxsize=64)
def _roster(size: int, holding: int, colluders: int = 0, num_classes: int = 2) -> _Roster | ClassRoster:
    check_count(size, "cluster_size")
    if check_count(holding, "holding_minimum") > size:
        raise ConfigurationError(f"{holding} given; 1 to {size} are possible", field="holding_minimum")
    if check_count(colluders, "colluders", least=0) >= size:
        raise ConfigurationError(f"{colluders} given; 0 to {size - 1} are possible", field="colluders")
    if check_classes(num_classes) == 2:
        return _Roster(size, holding, colluders)
    return ClassRoster(size, holding, colluders, num_classes)


def roster_profile(
    size: int,
    holding_minimum: int,
    flip_probability: float,
    epsilon: float,
    colluders: int = 0,
    *,
    num_classes: int = 2,
) -> float:
    """The delta a roster promises at ``epsilon`` against the learner, alone or with mates; see the module.

    Rounded up, by less than 1e-9 of itself. About 20 ms at s = 100 and 13 s at s = 1000; ``roster_fits`` is sooner
    done. For more than two classes it is the certified bound.

    Args:
        size: s, members of the roster.
        holding_minimum: h; below it nobody reports.
        flip_probability: f.
        epsilon: At least 0.
        colluders: t, mates that work with the learner and follow the protocol.
        num_classes: K.
    """
    f, point = check_flip(flip_probability, num_classes), check_epsilon(epsilon)
    return _roster(size, holding_minimum, colluders, num_classes).delta(f, point)


def roster_fits(
    size: int,
    holding_minimum: int,
    flip_probability: float,
    epsilon: float,
    delta: float,
    colluders: int = 0,
    *,
    num_classes: int = 2,
) -> bool:
    """Whether ``roster_profile`` is at most ``delta``, told as soon as it is certain.

    About 10 ms at s = 100, 2 s at s = 1000.
    """
    f, point = check_flip(flip_probability, num_classes), check_epsilon(epsilon)
    return _roster(size, holding_minimum, colluders, num_classes).fits(f, point, check_delta(delta))


def roster_epsilon(
    size: int,
    holding_minimum: int,
    flip_probability: float,
    delta: float,
    colluders: int = 0,
    *,
    num_classes: int = 2,
) -> float:
    """The least eps, to 1e-6 of itself, at which the roster's delta was evaluated to be at most ``delta``.

    Never above the local epsilon, which holds at every delta.

    Args:
        size: s, members of the roster.
        holding_minimum: h; below it nobody reports.
        flip_probability: f.
        delta: At least 0 and below 1.
        colluders: t, mates that work with the learner and follow the protocol.
        num_classes: K; beyond 2 by the certified bound.

    Raises:
        ConfigurationError: An argument out of range.
    """
    f, target = check_flip(flip_probability, num_classes), check_delta(delta)
    roster = _roster(size, holding_minimum, colluders, num_classes)
    if roster.fits(f, 0.0, target):
        return 0.0
    low, high = 0.0, local_epsilon(f, num_classes)
    if high == math.inf:  # f = 0: either some eps fits, or none
        high = 1.0
        while not roster.fits(f, high, target):
            if high > 1024:
                return math.inf
            low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if roster.fits(f, middle, target):
            high = middle
        else:
            low = middle
    return high


def plan_roster(size: int, target_epsilon: float, tolerated_loss: float, *, num_classes: int = 2) -> RosterPlan:
    """The least flip, to five significant digits, at which the roster holds (target_epsilon, 1/s^2).

    Args:
        size: s, members of the roster.
        target_epsilon: Against the learner alone, above 0.
        tolerated_loss: Share of the members that may fail to answer, at least 0 and below 1.
        num_classes: K; beyond 2 by the certified bound.

    Raises:
        ConfigurationError: A target that is not positive and finite, or a loss outside [0, 1).
        ClusterTooSmall: A cluster of one.
    """
    target = check_target(target_epsilon)
    holding = holding_minimum(size, tolerated_loss)
    return _planned(check_count(size, "cluster_size"), target, holding, check_classes(num_classes))


@lru_cache(maxsize=1024)
def _planned(size: int, target_epsilon: float, holding: int, num_classes: int) -> RosterPlan:
    delta = roster_delta(size)
    roster = _roster(size, holding, 0, num_classes)
    flip = least_flip(lambda f: roster.fits(f, target_epsilon, delta * (1 - MARGIN)), num_classes)
    return RosterPlan(size=size, delta=delta, holding_minimum=holding, flip_probability=flip, num_classes=num_classes)


def least_flip(holds: Callable[[float], bool], num_classes: int = 2) -> float:
    """The least flip of five significant digits, 1e-12 to (K-1)/K, for which ``holds`` was evaluated to be true.

    By bisection; ``holds`` must be true from some flip on. At (K-1)/K nothing is told, so it is not asked there.
    """
    most = largest_flip(num_classes)
    low, high = _step(1e-12) - 1, _step(most)
    while high - low > 1:
        middle = (low + high) // 2
        if holds(_flip(middle)):
            high = middle
        else:
            low = middle
    return min(most, _flip(high))


def next_flip(flip_probability: float, num_classes: int = 2) -> float:
    """The next larger number of five significant digits, at most (K-1)/K."""
    return min(largest_flip(num_classes), _flip(_step(flip_probability) + 1))


def _flip(step: int) -> float:
    """The numbers of five significant digits in order: 1.0000e-12, 1.0001e-12, ... as correctly rounded doubles."""
    decade, digits = divmod(step, 9 * DIGITS)
    return float(f"{DIGITS + digits}e{decade - 16}")


def _step(flip_probability: float) -> int:
    """The inverse of ``_flip``."""
    digits, exponent = f"{flip_probability:.4e}".split("e")
    return 9 * DIGITS * (int(exponent) + 12) + int(digits.replace(".", "")) - DIGITS
