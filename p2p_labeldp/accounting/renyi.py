"""Renyi divergences of the Gaussian mechanism on Poisson batches, at orders up to a million.

For an integer order a (Mironov, Talwar, Zhang, "Renyi differential privacy of the sampled Gaussian mechanism", 2019,
section 3.3; either direction of the pair is bounded)

    (a - 1) RDP(a) = log sum over k of C(a, k) (1-q)^(a-k) q^k e^((k^2 - k) / (2 z^2)).

For others it is the integral that the sum solves, log E (1 - q + q e^((2x - 1) / (2 z^2)))^a over x ~ N(0, z^2), by
the trapezoidal rule: the integrand is analytic up to |Im x| = pi z^2, so the error falls as e^(-2 pi^2 z^2 / h) with
the step h. dp-accounting's series for these does not always converge, and its sum for integers is a loop, so its grid
ends at 1024 and an epsilon below log(1/delta)/1024 can't be seen on it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

MAX_ORDER = 10**6
FRACTIONS_UP_TO = 16
_FRACTIONS = tuple(n + x / 10 for n in range(1, FRACTIONS_UP_TO) for x in range(1, 11))
_HIGH_ORDERS = tuple(int(o) for o in np.unique(np.geomspace(64, MAX_ORDER, 57).round())[1:])  # four a doubling
ORDERS: tuple[float, ...] = (*_FRACTIONS, *range(FRACTIONS_UP_TO + 1, 65), *_HIGH_ORDERS)
LEAST_INTEGRATED = 0.05
"""Noise multiplier below which the integral's step would be too small, and a chord between integers stands in."""
_QUADRATURE = 1e-12
_ROUNDING = 1e-14
"""More than what gammaln's rounding, divided by the order, puts into a divergence."""
_LAST_DIGITS = 1e-15
"""More than what rounding takes from a moment that is so large that neither of the above shows in it."""
LEAST_NOISE, MOST_NOISE = 1e-100, 1e100
"""Noise multipliers whose squares, and orders over them, are doubles. Less counts as none, and more as this."""


@lru_cache(maxsize=4096)
def log_moment(order: int, noise_multiplier: float, sampling_probability: float) -> float:
    """(a - 1) RDP(a) of one step at an integer order a >= 1, rounded up."""
    if order == 1:
        return 0.0
    if sampling_probability == 1.0:
        return order * (order - 1) / (2.0 * noise_multiplier**2)
    k: npt.NDArray[np.float64] = np.arange(order + 1, dtype=np.float64)
    terms = special.gammaln(order + 1.0) - special.gammaln(k + 1.0) - special.gammaln(order - k + 1.0)
    terms += k * math.log(sampling_probability) + (order - k) * math.log1p(-sampling_probability)
    terms += (k * k - k) / (2.0 * noise_multiplier**2)
    return _at_least_0(float(special.logsumexp(terms))) * (1.0 + _LAST_DIGITS) + _ROUNDING * (order - 1)


def _log_moment_between(order: float, noise_multiplier: float, sampling_probability: float) -> float:
    """The same at any order above 1."""
    z, q = noise_multiplier, sampling_probability
    if q == 1.0:
        return order * (order - 1.0) / (2.0 * z**2)
    step = min(z / 16.0, z * z / 4.0)
    x = np.arange(-12.0 * z, order + 12.0 * z, step)
    ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2.0 * x - 1.0) / (2.0 * z * z))
    terms = order * ratio - 0.5 * (x / z) ** 2
    found = float(special.logsumexp(terms)) + math.log(step / (z * math.sqrt(2.0 * math.pi)))
    return _at_least_0(found) * (1.0 + _LAST_DIGITS) + _QUADRATURE


def _at_least_0(moment: float) -> float:
    """A moment is not negative; one that is not a number bounds nothing (and ``max`` would make it 0)."""
    return math.inf if math.isnan(moment) else max(0.0, moment)


def divergence(order: float, *, noise_multiplier: float, sampling_probability: float) -> float:
    """Upper bound on RDP(order) of one step, ``order`` above 1."""
    if noise_multiplier < LEAST_NOISE:
        return math.inf
    noise_multiplier = min(noise_multiplier, MOST_NOISE)
    low = math.floor(order)
    if order == low:
        return log_moment(low, noise_multiplier, sampling_probability) / (order - 1.0)
    if noise_multiplier >= LEAST_INTEGRATED:
        return _log_moment_between(order, noise_multiplier, sampling_probability) / (order - 1.0)
    ends = (log_moment(n, noise_multiplier, sampling_probability) for n in (low, low + 1))
    return float(np.dot((low + 1 - order, order - low), tuple(ends))) / (order - 1.0)  # it is convex: a chord is above


def epsilon(*, noise_multiplier: float, sampling_probability: float, steps: int, delta: float) -> float:
    """Upper bound at ``delta`` of ``steps`` steps, neighbours differing by one participant more or less.

    Args:
        noise_multiplier: z, deviation of the noise over the largest norm of one contribution; above 0.
        sampling_probability: q, above 0 and at most 1.
        steps: T, at least 1.
        delta: Above 0 and below 1.
    """
    best = math.inf
    for order in ORDERS:
        spent = steps * divergence(order, noise_multiplier=noise_multiplier, sampling_probability=sampling_probability)
        # Canonne, Kamath, Steinke 2020, proposition 12
        found = spent + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)
        best = min(best, max(0.0, found))
        if order > 64 and spent > best + 1.0:  # divergences grow with the order, and what is added is above -1
            break
    return best
