"""Binomial probabilities with NumPy alone, over all counts or in a window whose omitted mass is bounded.

A peer evaluates its roster in a process that has no SciPy (it would cost memory a thousand times over), so this is done
here. Every value is a positive product, never a difference: relative precision is about n 1e-16 down to the smallest
doubles, and beyond them with a scale.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_LOG_ZERO = -1e290


@lru_cache(maxsize=8)
def _log_factorials_up_to(power: int) -> Floats:
    table = np.array([math.lgamma(i + 1.0) for i in range(2**power + 1)])
    table.flags.writeable = False
    return table


def log_factorials(n: int) -> Floats:
    """ln i! for i = 0 .. n, shape (n + 1,)."""
    return _log_factorials_up_to(max(8, (n - 1).bit_length() if n else 0))[: n + 1]


def half_width(variance: float, tail: float) -> float:
    """x such that a sum of independent variables in [0, 1] is x above its mean with probability at most ``tail``.

    Bernstein: P(S - ES >= x) <= exp(-x^2 / (2 (v + x/3))). By symmetry the same x bounds the other side. ``tail`` = 0
    gives infinity.
    """
    if tail <= 0:
        return math.inf
    log = -math.log(tail)
    return log / 3 + math.sqrt(log * log / 9 + 2 * variance * log)


def window(n: int, low_mean: float, high_mean: float, variance: float, tail: float) -> tuple[int, int]:
    """Counts [low, high] of 0..n that a sum leaves on either side with probability at most ``tail``, for every mean
    from ``low_mean`` to ``high_mean`` and every variance up to ``variance``."""
    width = half_width(variance, tail)
    if width == math.inf:
        return 0, n
    return max(0, math.floor(low_mean - width)), min(n, math.ceil(high_mean + width))


def pmf(n: int, probability: float, low: int, high: int, log_scale: float = 0.0) -> Floats:
    """e^log_scale P(Bin(n, probability) = i) for i = low .. high, shape (high - low + 1,)."""
    i = np.arange(low, high + 1)
    law: Floats
    if probability in (0.0, 1.0):
        law = np.where(i == (n if probability else 0), math.exp(log_scale), 0.0)
        return law
    logs = log_factorials(n)
    exponent = logs[n] - logs[i] - logs[n - i] + i * math.log(probability) + (n - i) * math.log1p(-probability)
    law = np.exp(exponent + log_scale)
    return law


def pmf_by_share(n: int, pool: int, shares: tuple[int, int], counts: tuple[int, int], log_scale: float = 0.0) -> Floats:
    """e^log_scale P(Bin(n, m/pool) = t), row m = shares[0] .. shares[1], column t = counts[0] .. counts[1].

    Shares 0 and ``pool`` are the point masses at 0 and n.
    """
    m = np.arange(shares[0], shares[1] + 1, dtype=np.float64)
    t = np.arange(counts[0], counts[1] + 1)
    logs = log_factorials(n)
    with np.errstate(divide="ignore"):  # ln 0 at the two ends; times a count of 0 it must be 0, so it is finite
        log_hit = np.maximum(np.log(m / pool), _LOG_ZERO)
        log_miss = np.maximum(np.log1p(-m / pool), _LOG_ZERO)
    exponent = np.multiply.outer(log_hit, t.astype(np.float64))
    exponent += np.multiply.outer(log_miss, (n - t).astype(np.float64))
    exponent += logs[n] - logs[t] - logs[n - t] + log_scale
    law: Floats = np.exp(exponent)
    return law
