"""Probabilities given by their logarithms: log-odds, and a coin that may be as rare as e^-1000.

A double from ``Generator.random`` is a multiple of 2^-53. Compared with a probability below that it would come up
with probability 2^-53, and with e^-800 = 0.0 never: a mechanism that should answer at random once in e^800 times
would always tell the truth, and its epsilon would silently be infinite. So a rare coin is tossed in stages of
probability 1/e, all of which must come up; the first failure, mostly the first toss, ends it.

Rounding makes every stage likelier by at most 2^-53, never less likely. The mechanisms toss these coins for "answer at
random", so the rounding adds noise and takes no privacy.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError

MIN_EPSILON, MAX_EPSILON = 1e-6, 1e5
"""The levels for which the mechanisms' constants are tested against 50-digit arithmetic."""

_STAGE = math.exp(-1.0)


def check_epsilon(epsilon: float) -> float:
    """Returns ``epsilon`` if a mechanism can be calibrated to it."""
    if isinstance(epsilon, bool) or not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise ConfigurationError(f"{epsilon} given; {MIN_EPSILON:g} to {MAX_EPSILON:g} are possible", field="epsilon")
    return float(epsilon)


def just_below(epsilon: float) -> float:
    """The level to calibrate to, so that rounding, below 1e-14 (1 + epsilon), never spends more than ``epsilon``."""
    return epsilon - 2e-14 * (1.0 + epsilon)


def log_sigmoid(x: float) -> float:
    """log(1 / (1 + e^-x)), without overflow at either end."""
    return -math.log1p(math.exp(-x)) if x > 0.0 else x - math.log1p(math.exp(x))


def log_expm1(x: float) -> float:
    """log(e^x - 1) for x > 0, without overflow."""
    return x + math.log(-math.expm1(-x))


def tosses(log_probability: float, count: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """``count`` independent tosses, shape (count,); True with probability exp(log_probability) <= 1."""
    up = np.zeros(count, dtype=np.bool_)
    alive = np.arange(count)
    while log_probability < -1.0 and alive.size:
        alive = alive[rng.random(alive.size) < _STAGE]
        log_probability += 1.0
    up[alive[rng.random(alive.size) < math.exp(log_probability)]] = True
    return up
