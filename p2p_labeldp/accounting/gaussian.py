"""The Gaussian mechanism, exactly: two normal laws of deviation 1 whose means are mu apart.

delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)      (Balle, Wang, ICML 2018, theorem 8)

With s = mu/2 - eps/mu and t = mu/2 + eps/mu, t^2 - s^2 = 2 eps: the second term is the first times
erfcx(t/sqrt 2) / erfcx(-s/sqrt 2), erfcx(x) = e^(x^2) erfc(x), and no exponent of the size of eps is ever formed.
Epsilon by bisection, the end kept at which delta was evaluated and is not exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from p2p_labeldp.accounting.ranges import check_delta, check_epsilon
from p2p_labeldp.errors import ConfigurationError

Reals = npt.NDArray[np.float64]

TOLERANCE = 1e-10
"""Relative width at which bisection stops."""


def delta(mu: float | Reals, epsilon: float) -> Reals:
    """delta at ``epsilon``, elementwise over ``mu`` > 0."""
    means, eps = np.asarray(mu, dtype=np.float64), check_epsilon(epsilon)
    s, t = means / 2 - eps / means, means / 2 + eps / means
    ratio = special.erfcx(t / math.sqrt(2)) / special.erfcx(-s / math.sqrt(2))
    return np.asarray(special.ndtr(s) * np.maximum(0.0, 1.0 - ratio))  # below 1 but for rounding


def epsilon(mu: float, delta_: float) -> float:
    """Least epsilon at ``delta_``, rounded up; infinite at 0.

    Args:
        mu: Sensitivity over deviation, above 0.
        delta_: At least 0 and below 1.
    """
    if isinstance(mu, bool) or not 0 < mu < math.inf:
        raise ConfigurationError(f"{mu} given; a finite number above 0 is needed", field="mu")
    return least_epsilon(lambda eps: float(delta(mu, eps)), check_delta(delta_))


def least_epsilon(profile: Callable[[float], float], delta_: float) -> float:
    """Least epsilon at which a decreasing ``profile`` is within ``delta_``, from above; infinite at 0."""
    if delta_ == 0:
        return math.inf
    if profile(0.0) <= delta_:
        return 0.0
    low, high = 0.0, 1.0
    while profile(high) > delta_:
        low, high = high, 2 * high
        if high == math.inf:
            return high
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if profile(middle) <= delta_ else (middle, high)
    return high


def largest_mu(epsilon_: float, delta_: float) -> float:
    """The largest mu, rounded down, whose delta at ``epsilon_`` is within ``delta_``, which is above 0 and below 1.

    Many adaptive Gaussian releases are one: their mu is the root of the sum of the squares (Dong, Roth and Su, arXiv
    1905.02383, corollary 3.3).
    """
    if check_delta(delta_) == 0:
        raise ConfigurationError("0 given; a number above 0 and below 1 is needed", field="delta")
    low, high = 0.0, 1.0
    while float(delta(high, epsilon_)) <= delta_:
        low, high = high, 2 * high
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if float(delta(middle, epsilon_)) <= delta_ else (low, middle)
    return low
