"""The worst of all label counts without evaluating them all: branch and bound, for clusters beyond tables.

A block of label counts k = low .. high has ``low`` others that are ones in all of it, p - 1 - high that are zeros in
all of it, and w = high - low whose label depends on k. **Bound.** For every k of the block

    delta_k(eps; r, p) <= E_{rho, N} [ delta_low(eps; N, p - rho) ],   rho ~ Bin(w, 1 - 2f),  N ~ Bin(r, (p - rho)/p),

where on the right stand ``low`` ones, p - 1 - high zeros, and w - rho people who tell a fair bit.

*Proof.* Randomized response is: with probability 2f a fair bit, else the truth. Let the learner also see which of the w
people told the truth (rho of them), what they told, and which of the r reports are theirs. More information never
lowers a hockey-stick divergence. None of it depends on the victim's label, and given it, the N other reports are
independent draws from the pool of p - rho whose histogram the right side describes; their number of ones is sufficient.

The right side grows with rho (reveal one more person) and with N (leaving reports out is post-processing). So it is at
most its value at rho_max and N_max plus the probability of exceeding either, for which Bernstein's inequality is used.
A block whose bound is no worse than what has been found is done; others are cut, and a block of one is the exact
value.

For a permutation nothing but rho is random: delta_k(eps; p) <= E_rho [ delta_low(eps; p - rho) ].

Where f is near 1/2 few are truthful, rho is far below any quantile of use, and all counts are nearly alike. There the
expectation over rho is bounded cell by cell (``cells``): rho in (x, y] counts as y, with its probability.

Directions: ``add`` over all k is both directions over all k (``resampling``). Blocks grow in proportion to their
distance from the ends, where the worst count usually is, so some fifty laws settle a million counts; the block with the
largest bound is cut next.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from p2p_labeldp.accounting.binomial import LOG_SCALE, Floats, half_width, pmf
from p2p_labeldp.accounting.tables import coefficients
from p2p_labeldp.accounting.tails import Mixture, TailBlock, walk

TIE = 1e-9  # relative: values that differ by less are one value, reached by two counts
BUDGET = 350  # laws walked; then the largest bound is returned, above the largest value by what is still open
MAX_CELLS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What bounds all counts of a block: sum of probability x delta(cell) + ``exceeded``."""

    cells: tuple[tuple[float, Mixture], ...]
    exceeded: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """p members able to answer, r reports (None: a permutation, T = m), flip probability f."""

    pool: int
    reports: int | None
    flip_probability: float

    def block(self, low: int, high: int, tail: float) -> tuple[Mixture, float]:
        """What bounds all counts of a block, and the probability to add; exact, and 0, for a block of one."""
        width = high - low
        revealed = _exceeded(width, 1 - 2 * self.flip_probability, tail)
        return self._mixture(low, high, revealed, tail), (2 * tail if width else 0.0)

    def cells(self, low: int, high: int, tail: float) -> Block:
        """The same bound, nearer to the expectation over rho."""
        width = high - low
        truthful = 1 - 2 * self.flip_probability
        parts = _cells(width, truthful, _exceeded(width, truthful, tail))
        cells = tuple((probability, self._mixture(low, high, revealed, tail)) for revealed, probability in parts)
        return Block(cells=cells, exceeded=2 * tail if width else 0.0)

    def _mixture(self, low: int, high: int, revealed: int, tail: float) -> Mixture:
        left = self.pool - revealed
        return Mixture(
            ones=low,
            zeros=self.pool - 1 - high,
            uniform=high - low - revealed,
            reports=None if self.reports is None else _exceeded(self.reports, left / self.pool, tail),
            flip_probability=self.flip_probability,
        )


def _exceeded(n: int, probability: float, tail: float) -> int:
    """A count that Bin(n, probability) exceeds with probability at most ``tail``."""
    mean = n * probability
    width = half_width(mean * (1 - probability), tail)
    return n if width == math.inf else min(n, math.ceil(mean + width))


def _cells(width: int, truthful: float, most: int) -> list[tuple[int, float]]:
    """(largest rho, probability) of cells of rho ~ Bin(width, truthful), 0 .. ``most``, ascending.

    One end after the other is put where it lowers the mean of the cells' ends most, as long as that lowers it by a
    larger factor than the number of cells grows. Probabilities are rounded up.
    """
    law = pmf(width, truthful, 0, most)
    below = np.concatenate(([0.0], np.cumsum(law)))
    ends = [most]
    mean = float(most)
    while len(ends) < min(MAX_CELLS, most + 1):
        start, gains = 0, np.zeros(most + 1)
        for end in ends:  # a new end at x takes those from ``start`` to x, who counted as ``end``
            x = np.arange(start, end)
            gains[start:end] = (below[start + 1 : end + 1] - below[start]) * (end - x)
            start = end + 1
        best = int(np.argmax(gains))
        lowered = mean - float(gains[best])
        if lowered * (len(ends) + 1) >= mean * len(ends):
            break
        mean = lowered
        ends = sorted([*ends, best])
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [(end, float(law[start : end + 1].sum()) * (1 + 1e-9)) for start, end in zip(starts, ends, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The largest value over all label counts, and the least count that attains it, in direction ``add``; and the
    largest count that does."""

    value: float
    first: int
    last: int


def worst_count(
    pool: int,
    evaluate: Callable[[int, int, bool, float], tuple[float, int]],
    tolerance: Callable[[float], float],
    budget: int = BUDGET,
) -> Worst:
    """The largest value of a single count, k = 0 .. pool - 1, or a bound on it, above by at most the tolerance or by
    what is open when the budget is spent.

    Args:
        pool: p.
        evaluate: ``evaluate(low, high, fine, floor)`` gives a bound on all counts of a block, and what it cost; exact
            for a block of one. It may be raised to ``floor``; ``fine`` asks for a bound that costs more.
        tolerance: By how much the result may exceed the value that has been found.
        budget: Of cost.
    """
    covered, spent = evaluate(0, pool - 1, False, 0.0)
    if covered <= tolerance(0.0):  # one law for all: nothing is told, or delta is beyond total variation
        return Worst(value=covered, first=0, last=pool - 1)
    found: dict[int, float] = {}

    def single(k: int) -> float:
        nonlocal spent
        if k not in found:
            found[k], cost = evaluate(k, k, False, 0.0)
            spent += cost
        return found[k]

    _climb(single, pool)
    best = max(found.values())
    pending: list[tuple[float, int, int, bool]] = []  # a heap: (-bound, low, high, fine)

    def bound(low: int, high: int, fine: bool, at_most: float) -> None:
        nonlocal best, spent
        if low == high:
            best = max(best, single(low))
            return
        value, cost = evaluate(low, high, fine, best)
        spent += cost
        heapq.heappush(pending, (-min(value, at_most), low, high, fine))

    for low, high in _partition(pool):
        bound(low, high, False, covered)
    while pending and -pending[0][0] > best + tolerance(best) and spent < budget:
        largest, low, high, fine = heapq.heappop(pending)
        if not fine:
            bound(low, high, True, -largest)
            continue
        cut = (high - low + 1) / 3
        edges = sorted({low, low + round(cut), low + round(2 * cut), high + 1})
        for first, after in pairwise(edges):
            bound(first, after - 1, fine, -largest)
    attained = [k for k, value in found.items() if value >= best * (1 - TIE)]
    open_bound = -pending[0][0] if pending else 0.0
    return Worst(value=max(best, open_bound), first=min(attained), last=max(attained))


def _partition(pool: int) -> Iterator[tuple[int, int]]:
    """Blocks that grow in proportion to their distance from the ends."""
    low, high, width = 0, pool - 1, 1
    while low <= high:
        end = min(low + width - 1, high)
        yield low, end
        start = max(high - width + 1, end + 1)
        if start <= high:
            yield start, high
        low, high = end + 1, start - 1
        width = max(width + 1, width * 8 // 5)


def _climb(single: Callable[[int], float], pool: int) -> None:
    """Evaluates counts from either end for as long as values rise, then around the best: where the worst count is
    usually found. What is missed here is bounded all the same."""
    _climb_from_zero(single, pool)
    _climb_from_zero(lambda k: single(pool - 1 - k), pool)


def _climb_from_zero(value: Callable[[int], float], pool: int) -> None:
    steps = [0]
    while len(steps) < 2 or value(steps[-1]) > value(steps[-2]):
        step = max(steps[-1] + 1, steps[-1] * 8 // 5)
        if step >= pool // 2:
            break
        steps.append(step)
    low, high = (steps[-3] if len(steps) > 2 else 0), steps[-1]
    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        if value(left) >= value(right):
            high = right
        else:
            low = left
    for k in range(low, high + 1):
        value(k)


def epsilon_of_cells(block: Block, delta: float, tail: float, floor: float) -> float:
    """Least eps >= ``floor`` with sum of probability x delta(cell, eps) <= ``delta``, rounded up.

    With y = e^eps, the delta of a cell is max over c of P0(T <= c) - y P1(T <= c), a convex, piecewise linear function
    of y. So is the sum, and Newton's method from the left ends at its root. Above the floor no c beyond the point where
    the quotient of the two laws falls below e^floor is best.
    """
    least = math.exp(floor)
    room = delta - block.exceeded
    tails = []
    for probability, mixture in block.cells:
        zero, one, omitted = _cumulated(mixture, tail, least)
        tails.append((probability * zero, probability * one))
        room -= probability * omitted
    if room <= 0:
        return math.inf
    y = least
    for _ in range(100):
        excess, slope = -room, 0.0
        for zero, one in tails:
            gains = zero - y * one
            c = int(gains.argmax())
            if gains[c] > 0:
                excess += float(gains[c])
                slope += float(one[c])
        if excess <= 0:
            return max(floor, math.log(y))
        if slope == 0:
            return math.inf
        y = max(math.nextafter(y, math.inf), y + excess / slope)
        if excess <= 1e-13 * room:
            return math.log(y) * (1 + 1e-12) + 1e-15
    return math.inf


def _cumulated(mixture: Mixture, tail: float, least: float) -> tuple[Floats, Floats, float]:
    """P(T <= c) given the victim's true label 0 and 1, for c up to where the quotient of the laws is below ``least``;
    and the mass cut."""
    f = mixture.flip_probability
    zeros, ones, omitted = [], [], 0.0
    for block in walk(mixture, tail):
        zero = (1 - f) * block.zero + f * block.one
        one = f * block.zero + (1 - f) * block.one
        zeros.append(zero)
        ones.append(one)
        omitted = block.omitted
        if one[-1] > 0 and zero[-1] < least * one[-1]:
            break
    scale = math.exp(-2 * LOG_SCALE)
    return np.cumsum(np.concatenate(zeros)) * scale, np.cumsum(np.concatenate(ones)) * scale, omitted


def epsilon_of(mixture: Mixture, delta: float, tail: float) -> float:
    """Least eps >= 0 with P0(T <= c) - e^eps P1(T <= c) <= delta for every c; direction ``add``, charged upward.

    ln((P0 - delta)/P1) first rises with c and then falls (adding T = c+1 moves the quotient towards the quotient of the
    two laws there, which falls in c), so the walk ends soon after the maximum.
    """
    f = mixture.flip_probability
    zero_sum = one_sum = 0.0
    largest = 0.0
    for block in walk(mixture, tail):
        room = (delta - block.omitted) * math.exp(2 * LOG_SCALE)
        zero = zero_sum + np.cumsum((1 - f) * block.zero + f * block.one)
        one = one_sum + np.cumsum(f * block.zero + (1 - f) * block.one)
        zero_sum, one_sum = float(zero[-1]), float(one[-1])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            quotient = np.where(zero > room, (zero - room) / one, 0.0)
        top = float(quotient.max())
        largest = max(largest, top)
        if float(quotient[-1]) < largest or (block.zero[-1] < block.one[-1]):
            break
    return math.log(largest) if largest > 1 else 0.0


def delta_of(mixture: Mixture, epsilon: float, tail: float) -> float:
    """sum_t [ (1 - f - e^eps f) A(t) - (e^eps (1-f) - f) B(t) ]_+, and the mass cut away."""
    keep, lose = coefficients(mixture.flip_probability, epsilon)
    total, block = 0.0, None
    with np.errstate(over="ignore"):
        for block in walk(mixture, tail):
            terms = np.maximum(keep * block.zero - lose * block.one, 0.0)
            total += float(terms.sum())
            if terms[-1] == 0 and _mass(block) > 0:  # the quotient of the laws falls: no later term is positive
                break
    assert isinstance(block, TailBlock)
    return total * math.exp(-2 * LOG_SCALE) + keep * block.omitted


def _mass(block: TailBlock) -> float:
    return float(block.zero[-1] + block.one[-1])
