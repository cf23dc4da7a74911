"""The upper tail of a fair binomial, K ~ Bin(d, 1/2): log Pr[K = k] and Pr[K >= k] / Pr[K = k], for 2k > d.

lgamma(4e6) is 5.7e7, so a difference of three of them would leave 8 digits of the logarithm; the saddle-point form
(Loader 2000) subtracts nothing large. The tail is the point times a sum of positive terms.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def log_point(d: int, k: int) -> float:
    """log of C(d, k) / 2^d, for 0 < k <= d."""
    if k == d:
        return -d * math.log(2.0)
    x = (2 * k - d) / d
    if x < 0.5:  # 2 x atanh(x) is twice as large as what is subtracted from it
        deviance = 0.5 * d * (2.0 * x * math.atanh(x) + math.log1p(-x * x))
    else:
        deviance = k * math.log1p(x) + (d - k) * math.log(2.0 * (d - k) / d)
    corrections = _stirling_error(d) - _stirling_error(k) - _stirling_error(d - k)
    return corrections - deviance + 0.5 * math.log(d / (2.0 * math.pi * k * (d - k)))


def tail_weights(d: int, k: int) -> npt.NDArray[np.float64]:
    """Pr[K = k + i] / Pr[K = k] for i = 0, 1, ... until what is left out is below 1e-17 of the sum; 2k > d.

    Its length is at most about 4.5 sqrt(d): the tail falls faster than exp(-z s - s^2/2) at s standard deviations
    beyond z = (2k - d) / sqrt(d).
    """
    deviation = math.sqrt(d)
    z = (2 * k - d) / deviation
    reach = min(9.2, 42.0 / max(z, 1e-3))
    count = min(d - k, math.ceil(0.5 * reach * deviation) + 8)
    i = np.arange(count, dtype=np.float64)
    return np.concatenate(([1.0], np.cumprod((d - k - i) / (k + 1.0 + i))))


def _stirling_error(n: int) -> float:
    """log n! - [(n + 1/2) log n - n + log(2 pi)/2]."""
    if n <= 15:
        return math.lgamma(n + 1.0) - ((n + 0.5) * math.log(n) - n + 0.5 * math.log(2.0 * math.pi))
    s = 1.0 / (n * n)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / n
