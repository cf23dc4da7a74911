"""What is released is rounded to a public grid, since the last digits of doubles tell more than any law over the reals.

A sum of two doubles that nearly cancel ends in zeros, as a product does not. So the last digits of a coordinate
T u_i + S w_i tell whether u_i is zero, and how large it is, at any epsilon. (For Laplace noise: Mironov, "On
significance of the least significant bits for differential privacy", CCS 2012.) On the grid every direction has the
same possible outputs. A step is some 2^-30 of the release's length, 2^22 times what rounding did before: by so little
may a coordinate's probabilities still differ from those over the reals.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from p2p_labeldp.mechanisms.norms import CHUNK

Vector = npt.NDArray[np.float64]

GRID_BITS = 30


def on_grid(out: Vector, length: float) -> Vector:
    """Rounds each entry, in place, to the nearest multiple of 2^-30 times the power of two above ``length``.

    Args:
        out: Contiguous, any shape.
        length: What the size of a release is measured by; public, or released by itself.
    """
    step = math.ldexp(1.0, math.frexp(length)[1] - GRID_BITS)
    flat = out.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        x = flat[start : start + CHUNK]
        x *= 1.0 / step  # a power of two: exact
        np.rint(x, out=x)
        x *= step
    return out


def stretch(dimension: int) -> float:
    """More than the grid lengthens a vector of ``dimension`` entries by, relative to ``length``."""
    return math.sqrt(dimension) * 2.0**-GRID_BITS
