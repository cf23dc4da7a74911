"""Discrete Laplace noise, drawn exactly: integers in, integers out, no floating point.

Definition. P(k) = (1 - a)/(1 + a) a^|k| on the integers, a = e^(-1/scale). Counts that differ by one change the
probability of any outcome by a factor of e^(1/scale) at most, and the factor is attained.

Laplace noise in doubles has holes and piles where its last bits fall, and they betray the count it was added to
(Mironov, CCS 2012). So the scale is a rational number and every coin is a comparison of integers: a Bernoulli(e^-x) is
the parity of a run of Bernoulli(x/1), Bernoulli(x/2), ...; a geometric variable is a uniform remainder, accepted with
such a coin, plus a run of Bernoulli(e^-1); a sign that would count 0 twice is drawn again. Source of the scheme:
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (arXiv 2004.00010), section 5.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

from p2p_labeldp.errors import ConfigurationError

MAX_SCALE = 10**9
"""Beyond it no cluster has as many members as the noise is wide."""
RESOLUTION = 1 << 40
"""Scales that are worked out are rounded up to a multiple of 1/RESOLUTION."""


def check_scale(scale: Fraction) -> Fraction:
    """Returns ``scale`` if it is a fraction above 0 and at most 10^9."""
    if not isinstance(scale, Fraction) or not 0 < scale <= MAX_SCALE:
        raise ConfigurationError(
            f"{scale!r} given; a Fraction above 0 and at most {MAX_SCALE} is possible", field="noise_scale"
        )
    return scale


def scale_up(scale: float) -> Fraction:
    """The least multiple of 2^-40 that is at least ``scale``: more noise, never less."""
    if isinstance(scale, bool) or not 0 < scale <= MAX_SCALE:  # NaN compares false
        raise ConfigurationError(
            f"{scale} given; a number above 0 and at most {MAX_SCALE} is possible", field="noise_scale"
        )
    return Fraction(math.ceil(Fraction(scale) * RESOLUTION), RESOLUTION)


def draw(scale: Fraction, rng: random.Random) -> int:
    """One draw.

    Args:
        scale: Of the noise, in counts.
        rng: ``random.SystemRandom()`` in a deployment; anything seeded is a study's.
    """
    width, step = scale.numerator, scale.denominator
    while True:
        remainder = rng.randrange(width)
        if not _exponential_coin(remainder, width, rng):
            continue
        runs = 0
        while _exponential_coin(1, 1, rng):
            runs += 1
        size = (remainder + width * runs) // step
        negative = rng.getrandbits(1)
        if not (negative and size == 0):
            return -size if negative else size


def mass(value: int, scale: Fraction) -> float:
    """P(value)."""
    rate = 1.0 / float(scale)
    return math.tanh(rate / 2.0) * math.exp(-rate * abs(value))


def variance(scale: Fraction) -> float:
    """2 a/(1 - a)^2, in counts squared."""
    rate = 1.0 / float(scale)
    return 0.5 / math.sinh(rate / 2.0) ** 2 if rate < 1400 else 0.0


def _exponential_coin(numerator: int, denominator: int, rng: random.Random) -> bool:
    """True with probability e^-x, x = numerator/denominator <= 1: Bernoulli(x/k) first fails at an odd k."""
    k = 1
    while rng.randrange(denominator * k) < numerator:
        k += 1
    return k % 2 == 1
