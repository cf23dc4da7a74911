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

Directions: ``add`` over all k is both directions over all k (``resampling``). Blocks grow in proportion to their
distance from the ends, where the worst count usually is, so some fifty laws settle a million counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p2p_labeldp.accounting.binomial import LOG_SCALE, half_width
from p2p_labeldp.accounting.tables import coefficients
from p2p_labeldp.accounting.tails import Mixture, TailBlock, walk

TIE = 1e-9  # relative: values that differ by less are one value, reached by two counts
PATIENCE = 125  # evaluations before the tolerance grows tenfold, again and again: the result stays an upper bound
LOOSE = 1e-4  # relative; beyond this the tolerance only doubles, after every hundred of more than 500 evaluations


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """p members able to answer, r reports (None: a permutation, T = m), flip probability f."""

    pool: int
    reports: int | None
    flip_probability: float

    def block(self, low: int, high: int, tail: float) -> tuple[Mixture, float]:
        """What bounds all counts of a block, and the probability to add; exact, and 0, for a block of one."""
        width = high - low
        truthful = 1 - 2 * self.flip_probability
        revealed = _exceeded(width, truthful, tail)
        left = self.pool - revealed
        return Mixture(
            ones=low,
            zeros=self.pool - 1 - high,
            uniform=width - revealed,
            reports=None if self.reports is None else _exceeded(self.reports, left / self.pool, tail),
            flip_probability=self.flip_probability,
        ), (2 * tail if width else 0.0)


def _exceeded(n: int, probability: float, tail: float) -> int:
    """A count that Bin(n, probability) exceeds with probability at most ``tail``."""
    mean = n * probability
    width = half_width(mean * (1 - probability), tail)
    return n if width == math.inf else min(n, math.ceil(mean + width))


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The largest value over all label counts, and the least count that attains it, in direction ``add``; and the
    largest count that does."""

    value: float
    first: int
    last: int


def worst_count(pool: int, evaluate: Callable[[int, int], float], tolerance: Callable[[float], float]) -> Worst:
    """The largest of ``evaluate(k, k)`` over k = 0 .. pool - 1, at most raised by the tolerance.

    Two fronts move from the ends to the middle. A block that is done widens the next, one that is not is cut; where
    hundreds of evaluations do not suffice (f near 1/2, where all counts are nearly alike) the tolerance grows.

    Args:
        pool: p.
        evaluate: ``evaluate(low, high)`` bounds all counts of a block, and is exact for a block of one.
        tolerance: By how much the result may exceed the value that has been found.
    """
    covered = evaluate(0, pool - 1)
    if covered <= tolerance(0.0):  # one law for all: nothing is told, or delta is beyond total variation
        return Worst(value=covered, first=0, last=pool - 1)
    found: dict[int, float] = {}
    best = covered = 0.0
    low, high = 0, pool - 1  # everything outside is done
    widths = {False: 1, True: 1}
    evaluations = 0
    while low <= high:
        above = evaluations % 2 == 1  # the front that comes down from p - 1
        width = min(widths[above], high - low + 1)
        block = (high - width + 1, high) if above else (low, low + width - 1)
        value = evaluate(*block)
        evaluations += 1
        if width == 1:
            found[block[0]] = value
            best = max(best, value)
        elif value <= max(best + _grown(tolerance(best), best, evaluations), covered):
            covered = max(covered, value)
        else:
            widths[above] = max(1, width // 3)
            continue
        widths[above] = max(width + 1, width * 8 // 5)
        low, high = (low, high - width) if above else (low + width, high)
    attained = [k for k, value in found.items() if value >= best * (1 - TIE)]
    return Worst(value=max(best, covered), first=min(attained), last=max(attained))


def _grown(tolerance: float, best: float, evaluations: int) -> float:
    loose = LOOSE * 2.0 ** (max(0, evaluations - 500) // 100)
    return max(tolerance, min(tolerance * 10.0 ** (evaluations // PATIENCE), loose * best))


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
