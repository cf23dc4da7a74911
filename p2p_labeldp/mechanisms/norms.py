"""An update as the mechanisms take it: checked, and measured in double precision.

Integers and floats of any width come in. What is no finite number is refused before anything is clipped or drawn (a NaN
passes every ``x <= limit``). Sums of squares are formed in float64 whatever the input; where they would leave its range
the update is first scaled by a power of two, so neither 1e300 nor 1e-320 has norm infinity or 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError

Floats = npt.NDArray[np.floating[Any]]
"""float64, or float32 as it came."""

Update = npt.NDArray[np.floating[Any]] | npt.NDArray[np.integer[Any]]

CHUNK = 1 << 15
"""Entries handled at once: 256 kB of doubles stay in a core's cache between the passes over them."""

_SAFE_LOW, _SAFE_HIGH = 1e-280, 1e280


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A checked update.

    Args:
        values: The update divided by 2^exponent, shape (d,), float32 or float64, contiguous.
        norm: Norm of ``values``; 0 only if the update is 0.
        exponent: 0 but for updates of extreme size.
    """

    values: Floats
    norm: float
    exponent: int

    @property
    def radius(self) -> float:
        """Norm of the update; infinity if it exceeds the largest double, although every entry is finite."""
        try:
            return math.ldexp(self.norm, self.exponent)
        except OverflowError:
            return math.inf


def check_update(update: Update, shape: tuple[int, ...]) -> Floats:
    """The update as a contiguous float32 or float64 array of ``shape`` (-1 stands for any length); entries unchecked.

    Raises:
        ConfigurationError: Another shape, or entries that are neither integers nor real floats.
    """
    values = np.asarray(update)
    if values.dtype.kind not in "iuf":
        raise ConfigurationError(
            f"entries of type {values.dtype} given; integers and floats are possible", field="update"
        )
    if len(values.shape) != len(shape) or any(w not in (-1, s) for s, w in zip(values.shape, shape, strict=True)):
        raise ConfigurationError(f"shape {values.shape} given; {shape} is needed", field="update")
    if values.dtype != np.float32:
        with np.errstate(over="ignore"):  # a long double beyond the doubles becomes infinite and is refused
            values = values.astype(np.float64, copy=False)
    return np.ascontiguousarray(values)


def euclidean(update: Update, dimension: int) -> Measured:
    """Checks an update of shape (dimension,) and measures its Euclidean norm."""
    values = check_update(update, (dimension,))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # what these would warn of is handled below
        squares = dot(values, values)
    if _SAFE_LOW < squares < _SAFE_HIGH:
        return Measured(values=values, norm=math.sqrt(squares), exponent=0)
    values, exponent = _scaled(values)
    return Measured(values=values, norm=math.sqrt(dot(values, values)), exponent=exponent)


def clip(update: Update, max_radius: float, dimension: int) -> npt.NDArray[np.float64]:
    """An update of shape (dimension,), or the one of its direction with norm ``max_radius`` if it is longer.

    Raises:
        ConfigurationError: Another shape, or an entry that is NaN or infinite; seen before anything is compared.
    """
    measured = euclidean(update, dimension)
    if measured.radius <= max_radius:
        return np.asarray(update, dtype=np.float64)
    return measured.values.astype(np.float64) * (max_radius / measured.norm * (1.0 - 1e-15))  # rounding stays below


def maximum(update: Update, dimension: int) -> Measured:
    """Checks an update of shape (dimension,) and measures its largest entry."""
    values = check_update(update, (dimension,))
    return Measured(values=values, norm=_peak(values), exponent=0)


def euclidean_rows(updates: Update, dimension: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Many updates at once.

    Returns:
        Unit rows, shape (n, dimension), rows of zeros staying zeros; and their norms, shape (n,), possibly infinite.
    """
    values = check_update(updates, (-1, dimension)).astype(np.float64, copy=False)
    peaks = np.abs(values).max(axis=1, initial=0.0)
    _refuse_unless_finite(bool(np.isfinite(peaks).all()))
    _, exponents = np.frexp(peaks)
    scaled = np.ldexp(values, -exponents[:, None])
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    units = scaled / np.where(norms > 0.0, norms, 1.0)[:, None]
    with np.errstate(over="ignore"):
        return units, np.ldexp(norms, exponents)


def maximum_rows(updates: Update, dimension: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """As ``euclidean_rows`` in the maximum norm."""
    values = check_update(updates, (-1, dimension)).astype(np.float64, copy=False)
    peaks = np.abs(values).max(axis=1, initial=0.0)
    _refuse_unless_finite(bool(np.isfinite(peaks).all()))
    return values / np.where(peaks > 0.0, peaks, 1.0)[:, None], peaks


def dot(left: Floats, right: Floats) -> float:
    """Inner product accumulated in float64, whatever the operands' width."""
    if left.dtype == right.dtype == np.float64:
        return float(np.dot(left, right))
    total = 0.0
    for start in range(0, left.size, CHUNK):
        window = slice(start, start + CHUNK)
        total += float(np.dot(left[window].astype(np.float64), right[window].astype(np.float64)))
    return total


def _scaled(values: Floats) -> tuple[npt.NDArray[np.float64], int]:
    _, exponent = math.frexp(_peak(values))
    return np.ldexp(values.astype(np.float64), -exponent), exponent


def _peak(values: Floats) -> float:
    peak = float(np.abs(values).max(initial=0.0))
    _refuse_unless_finite(math.isfinite(peak))
    return peak


def _refuse_unless_finite(finite: bool) -> None:
    if not finite:
        raise ConfigurationError("an entry is NaN or infinite; finite numbers are possible", field="update")
