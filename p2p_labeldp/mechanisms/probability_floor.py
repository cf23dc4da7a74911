"""Noisy counts to a distribution that nowhere falls below its floor.

Clipping to [tau, 1] and dividing by the sum breaks the floor: a pure cluster keeps tau/(1 + (K-1) tau) of it, and where
noise lifts all counts but one, as little as tau/(tau + K - 1) is left. Instead

    q = tau + (1 - K tau) v/sum(v),   v = (min(c/n, 1) - tau)_+,

uniform where v = 0 (all counts below the floor, an empty cluster). Exact, in rational numbers: min q >= tau whatever
the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from p2p_labeldp.errors import ConfigurationError

Distribution = tuple[Fraction, ...]


def floor_of(floor: float | Fraction, num_classes: int) -> Fraction:
    """tau as the decimal that was written, so that .1 is a tenth of ten classes and not a hair above it.

    Raises:
        ConfigurationError: NaN, negative, or above 1/K.
    """
    most = Fraction(1, num_classes) if isinstance(floor, Fraction) else 1 / num_classes
    if isinstance(floor, bool) or not 0 <= floor <= most:  # NaN compares false
        raise ConfigurationError(
            f"{floor} given; 0 to 1/{num_classes} is possible with {num_classes} classes", field="floor"
        )
    exact = floor if isinstance(floor, Fraction) else Fraction(repr(float(floor)))
    return min(exact, Fraction(1, num_classes))


def uniform(num_classes: int) -> Distribution:
    """Every class alike."""
    return (Fraction(1, num_classes),) * num_classes


def floored(counts: Sequence[int], size: int, floor: Fraction) -> Distribution:
    """The distribution above.

    Args:
        counts: A noisy count for each class: any integers.
        size: n, members of the cluster, at least 0.
        floor: tau, 0 to 1/K.
    """
    excess = [max(0, min(count, size) * floor.denominator - floor.numerator * size) for count in counts]
    total = sum(excess)
    if total == 0:
        return uniform(len(counts))
    free = 1 - len(counts) * floor
    return tuple(floor + free * Fraction(part, total) for part in excess)
