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
TABLE = 1024  # factorials up to here: three times as fast as deviances, and still good to 1e-12
LOG_SCALE = 450 * math.log(2)  # where both factors of a product carry 2^450, values down to 1e-440 keep their digits


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
    counts = np.arange(low, high + 1)
    law: Floats
    if n == 0 or probability in (0.0, 1.0):
        law = np.where(counts == (n if probability else 0), math.exp(log_scale), 0.0)
    elif n <= TABLE:
        logs = log_factorials(n)
        exponent = logs[n] - logs[counts] - logs[n - counts]
        law = np.exp(exponent + counts * math.log(probability) + (n - counts) * math.log1p(-probability) + log_scale)
    else:
        law = np.exp(log_pmf(n, probability, counts) + log_scale)
    return law


def log_pmf(n: int, probability: float | Floats, counts: int | npt.NDArray[np.int64]) -> Floats:
    """ln P(Bin(n, probability) = count), broadcast over probabilities inside (0, 1) and counts in 0 .. n.

    By deviances (C. Loader, "Fast and accurate computation of binomial probabilities", 2000): with factorials n = 10^6
    would cost seven of sixteen digits. The deviance of x at mean m is m ((1+d) ln(1+d) - d), d = (x-m)/m, good to
    |x - m| 1e-16.
    """
    hits = np.asarray(counts, dtype=np.float64)
    misses = n - hits
    q = np.asarray(probability)
    error = _stirling_error(n) - _stirling_error(hits) - _stirling_error(misses)
    spread = 0.5 * np.log(n / (2 * math.pi * np.maximum(hits * misses, 1)))
    constant = np.where((hits > 0) & (misses > 0), spread + error, 0.0)
    law: Floats = constant - _deviance(hits, n * q) - _deviance(misses, n * (1 - q))
    return law


def _deviance(x: Floats, mean: Floats) -> Floats:
    """x ln(x/mean) + mean - x; at x = 0 it is the mean."""
    d = (x - mean) / mean
    if x.ndim == 0:
        return mean * ((1 + d) * np.log1p(d) - d) if x > 0 else mean * 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        inner: Floats = mean * ((1 + d) * np.log1p(d) - d)
    return np.where(x > 0, inner, mean)


_SMALL_ERRORS = np.array(
    [0.0] + [math.lgamma(i + 1) - (i + 0.5) * math.log(i) + i - 0.5 * math.log(2 * math.pi) for i in range(1, 16)]
)


def _stirling_error(n: float | Floats) -> Floats:
    """ln n! less Stirling's (n + 1/2) ln n - n + ln(2 pi)/2, for whole n."""
    whole = np.asarray(n, dtype=np.float64)
    if whole.ndim == 0 and whole < 16:
        return np.asarray(_SMALL_ERRORS[int(whole)])
    inverse = 1 / np.maximum(whole, 1.0)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
    if whole.ndim == 0:
        return np.asarray(series)
    small: Floats = np.where(whole < 16, _SMALL_ERRORS[np.minimum(whole, 15).astype(np.int64)], series)
    return small


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
