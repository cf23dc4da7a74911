"""What the numbers given to the accountants may be. Each check returns the value, or names the field and the range."""

from __future__ import annotations

import math
from numbers import Integral

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import check_flip_probability

LEAST_FLIP = 1e-300
"""Below it products of flips lose their digits, and e^eps of the local epsilon nears the end of the doubles."""


def check_count(value: int, field: str, least: int = 1) -> int:
    """An integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ConfigurationError(f"{value} given; an integer of at least {least} is needed", field=field)
    return int(value)


def check_epsilon(epsilon: float, field: str = "epsilon") -> float:
    """A finite number of at least 0."""
    if isinstance(epsilon, bool) or not 0 <= epsilon < math.inf:  # NaN compares false
        raise ConfigurationError(f"{epsilon} given; a finite number of at least 0 is needed", field=field)
    return float(epsilon)


def check_target(epsilon: float, field: str = "target_epsilon") -> float:
    """A finite number above 0."""
    if check_epsilon(epsilon, field) == 0:
        raise ConfigurationError("0 given; a positive finite number is needed", field=field)
    return float(epsilon)


def check_delta(delta: float, field: str = "delta") -> float:
    """At least 0 and below 1."""
    if isinstance(delta, bool) or not 0 <= delta < 1:
        raise ConfigurationError(f"{delta} given; at least 0 and below 1 is needed", field=field)
    return float(delta)


def check_flip(flip_probability: float, num_classes: int = 2) -> float:
    """0 to (K - 1)/K. What is smaller than can be accounted for counts as no flip, of which every delta and epsilon is
    larger."""
    flip = check_flip_probability(flip_probability, num_classes)
    return flip if flip >= LEAST_FLIP else 0.0
