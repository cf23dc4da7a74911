"""P-values that hold at any number of observations: exact, or upper bounds by Chernoff; none by a limit theorem.

A verdict that may be wrong once in 10^9 looks at tails where chi-squared and normal approximations are off by factors,
more so at the few rounds a study of real processes has. Each function here returns p with P(p <= u) <= u under the null
hypothesis for every u in [0, 1]. The price is some power; the right exponent is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

Reals = npt.NDArray[np.float64]
Counts = npt.NDArray[np.integer[Any]]

IMPOSSIBLE = 0.0
"""The p-value of an observation the mechanism can't produce."""


def bonferroni(p_values: Iterable[float]) -> float:
    """One p-value for "all of these hold": the least, times their number, at most 1. None at all is 1."""
    every = list(p_values)
    return min(1.0, min(every) * len(every)) if every else 1.0


def binomial_at_least(successes: int, trials: int, probability: float) -> float:
    """P(Bin(trials, probability) >= successes)."""
    if successes <= 0:
        return 1.0
    return float(special.betainc(successes, trials - successes + 1.0, probability))


def binomial(successes: int, trials: int, probability: float) -> float:
    """Two-sided: twice the smaller tail, at most 1."""
    upper = binomial_at_least(successes, trials, probability)
    lower = binomial_at_least(trials - successes, trials, 1.0 - probability)
    return min(1.0, 2.0 * min(upper, lower))


def chernoff(total: float, log_moment: Callable[[float], float], *, scale: float) -> float:
    """Two-sided bound for a centred sum X: 2 min over u of exp(log E e^(uX) - u total), u on the side of ``total``.

    Any u gives a valid bound, so the search needs no care: the convex function is minimised by golden section.

    Args:
        total: The observed X.
        log_moment: u -> log E e^(uX), 0 at 0.
        scale: Of the u to look at, about the inverse of the standard deviation of X; the search covers it 4,000-fold.
    """
    if total == 0.0:
        return 1.0
    sign = math.copysign(1.0, total)
    # In log u: from a thousandth to 4,000 times the scale.
    exponent = _minimum(
        lambda w: log_moment(sign * math.exp(w)) - math.exp(w) * abs(total),
        math.log(scale) - 7.0,
        math.log(scale) + 8.3,
    )
    return min(1.0, 2.0 * math.exp(min(0.0, exponent)))


def poisson_binomial(successes: int, trials: Counts, probabilities: Reals) -> float:
    """Two-sided, for a sum of independent Bin(trials[g], probabilities[g]), shapes (groups,). Exact if all agree."""
    p, n = np.asarray(probabilities)[trials > 0], np.asarray(trials, dtype=np.float64)[trials > 0]
    if p.size == 0:
        return 1.0
    if p.size == 1 or np.ptp(p) == 0.0:
        return binomial(successes, int(n.sum()), float(p[0]))
    if successes < n[p >= 1.0].sum() or successes > n[p > 0.0].sum():
        return IMPOSSIBLE
    successes -= int(n[p >= 1.0].sum())
    n, p = n[(p > 0.0) & (p < 1.0)], p[(p > 0.0) & (p < 1.0)]
    if p.size == 0:
        return 1.0
    mean, variance = float(n @ p), float(n @ (p * (1.0 - p)))

    def log_moment(u: float) -> float:
        if u > 0.0:  # log(1 - p + p e^u) = u + log(p + (1 - p) e^-u), which does not overflow
            return float(n @ (u * (1.0 - p) + np.log(p + (1.0 - p) * math.exp(-u))))
        return float(n @ (np.log(1.0 - p + p * math.exp(u)) - u * p))

    return chernoff(successes - mean, log_moment, scale=1.0 / math.sqrt(variance))


def multinomial(observed: Counts, law: Reals) -> float:
    """Goodness of fit of cell counts by relative entropy; the least p-value of several tables, times their number.

    n KL(observed / n || law) has moments no larger than those of a Gamma with shape cells - 1 and rate 1 (Agrawal,
    Finite-sample concentration of the multinomial in relative entropy, 2020); this is the Chernoff bound of that Gamma.

    Args:
        observed: Shape (cells,) or (tables, cells).
        law: Probabilities of the cells, shape (cells,).
    """
    tables = np.atleast_2d(observed)
    freedom = int(np.count_nonzero(law > 0.0)) - 1
    if np.any(tables[:, law <= 0.0] > 0):
        return IMPOSSIBLE
    if freedom < 1:
        return 1.0
    expected = tables.sum(axis=1, keepdims=True) * law
    divergence = float(special.rel_entr(tables[:, law > 0.0], expected[:, law > 0.0]).sum(axis=1).max())
    if divergence <= freedom:
        return 1.0
    p = math.exp(freedom - divergence + freedom * math.log(divergence / freedom))
    return float(min(1.0, p * tables.shape[0]))


LEVELS = (0.5, *(level for j in range(2, 13) for level in (2.0**-j, 1.0 - 2.0**-j)))
"""Quantiles at which a fit is looked at: the middle, and both tails down to one in 4,096."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Independent draws that should all follow one law.

    Args:
        law: P(value = t), shape (values,).
        counts: How often each value was seen, shape (values,).
    """

    law: Reals
    counts: Counts


def fit(samples: Sequence[Sample]) -> float:
    """Goodness of fit of whole numbers to their laws, pooled over samples that have different laws.

    For each of the levels, the event "at most the level's quantile of one's own law" has a known probability in every
    sample; its hits over all samples are a sum of binomials. A shift, a spread too wide or too narrow, or a law pulled
    to one side moves some of these events, and Bonferroni pays for their number. Values outside a law are impossible.
    """
    samples = [sample for sample in samples if sample.counts.sum() > 0]
    if not samples:
        return 1.0
    if any(np.any(sample.counts[sample.law <= 0.0] > 0) for sample in samples):
        return IMPOSSIBLE
    trials = np.array([sample.counts.sum() for sample in samples])
    thresholds, below, hits = [], [], []
    for sample in samples:
        cumulated = np.minimum(np.cumsum(sample.law), 1.0)
        upper = np.cumsum(sample.law[::-1])[::-1]
        t = np.minimum(np.searchsorted(cumulated, LEVELS), sample.law.size - 1)
        thresholds.append(t)
        # Of the two ways to sum take the one without cancellation.
        beyond = np.append(upper[1:], 0.0)[t]
        below.append(np.where(beyond < 0.5, 1.0 - beyond, cumulated[t]))
        hits.append(np.cumsum(sample.counts)[t])
    events = np.array(thresholds).T
    chances, seen = np.array(below).T, np.array(hits).sum(axis=0)
    _, first = np.unique(events, axis=0, return_index=True)  # small clusters have few values: pay for each event once
    first = first[(chances[first] < 1.0).any(axis=1)]
    return bonferroni(poisson_binomial(int(seen[i]), trials, chances[i]) for i in first)


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Least value found of a function with one valley, by golden section."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    inner, outer = high - ratio * (high - low), low + ratio * (high - low)
    at_inner, at_outer = function(inner), function(outer)
    for _ in range(40):
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - ratio * (high - low)
            at_inner = function(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + ratio * (high - low)
            at_outer = function(outer)
    return min(at_inner, at_outer)
