"""What the numbers of an audit may be. Each check returns its value or raises one clear line."""

from __future__ import annotations

import math
import numbers

from p2p_labeldp.errors import ConfigurationError


def whole(field: str, value: int, *, least: int, most: int | None = None) -> int:
    """Returns ``value`` as an int if it is a whole number in [least, most]; a bool is none."""
    possible = f"{least} or more" if most is None else f"{least} to {most}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ConfigurationError(f"{value!r} given; a whole number, {possible}, is needed", field=field)
    if value < least or (most is not None and value > most):
        raise ConfigurationError(f"{value} given; {possible} is possible", field=field)
    return int(value)


def real(field: str, value: float, possible: str, *, least: float, most: float) -> float:
    """Returns ``value`` as a float if it is a finite number in [least, most]; ``possible`` says so in words."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ConfigurationError(f"{value!r} given; a number in {possible} is needed", field=field)
    if not (math.isfinite(value) and least <= value <= most):
        raise ConfigurationError(f"{value} given; {possible} is possible", field=field)
    return float(value)


def delta(value: float) -> float:
    """Returns ``value`` if it is in [0, 1)."""
    return real("delta", value, "[0, 1)", least=0.0, most=math.nextafter(1.0, 0.0))


def confidence(value: float) -> float:
    """Returns ``value`` if it is in (0, 1)."""
    return real("confidence", value, "(0, 1)", least=math.nextafter(0.0, 1.0), most=math.nextafter(1.0, 0.0))


def flip(value: float, classes: int = 2) -> float:
    """Returns ``value`` if it is in [0, (classes - 1) / classes]; beyond that a lie would say more than the truth."""
    whole("classes", classes, least=2)
    most = (classes - 1) / classes
    return real("flip_probability", value, f"[0, {most:.6g}]", least=0.0, most=most)


def cluster(*, cluster_size: int, ones: int, flip_probability: float, classes: int) -> None:
    """Raises unless the four describe a cluster."""
    whole("cluster_size", cluster_size, least=1)
    whole("ones", ones, least=0, most=cluster_size)
    flip(flip_probability, classes)
