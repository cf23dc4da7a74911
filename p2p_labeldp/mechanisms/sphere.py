"""Sampling on the sphere around a given direction u: a cosine, then a vector that has it.

A vector V uniform on a cap or on its complement is T u + sqrt(1 - T^2) W, where T = <V, u> has the uniform cosine's
density restricted to one side of gamma and W is a uniform unit vector orthogonal to u. All samplers are exact for every
dimension and threshold, and accept at least half of their proposals. Inner products and norms are in float64.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from p2p_labeldp.mechanisms.cap import Cap
from p2p_labeldp.mechanisms.norms import CHUNK, Measured

Vector = npt.NDArray[np.float64]
Side = npt.NDArray[np.bool_]

TAIL = 0.613
"""Threshold, in standard deviations, from which proposing from the tail accepts at least half the time; below, folded
Gaussians do."""

_ROWS_AT_ONCE = 1 << 20
"""Entries of a block of rows: 8 MB."""


def draw_cosines(c: Cap, off: Side, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Draws T = <V, u> for V uniform on the cap, or off it.

    Args:
        c: The cap.
        off: Shape (n,); True for a draw of the complement.
        rng: The coin.

    Returns:
        T and sqrt(1 - T^2), each of shape (n,); the second keeps its digits where T rounds to 1.
    """
    cosine, sine = np.where(off, -1.0, 1.0), np.zeros(off.size)
    pending = np.arange(off.size if c.dimension > 1 else 0)
    while pending.size:
        t, s, accepted = _proposals(c, off[pending], rng)
        done = pending[accepted]
        cosine[done], sine[done] = t[accepted], s[accepted]
        pending = pending[~accepted]
    return cosine, sine


def _proposals(c: Cap, off: Side, rng: np.random.Generator) -> tuple[Vector, Vector, Side]:
    """One proposal for every draw.

    From a cap with gamma sqrt(d) >= 0.613: 1 - T^2 = (1 - gamma^2) U^(1/a) has density proportional to t
    (1-t^2)^(a-1) on [gamma, 1], and accepting with probability gamma/T leaves (1-t^2)^(a-1). Otherwise the cosine of
    a Gaussian vector, folded to the upper half for the cap, accepted when it falls on its side of gamma.
    """
    a = 0.5 * (c.dimension - 1)
    cosine, sine, accepted = np.empty(off.size), np.empty(off.size), np.empty(off.size, dtype=np.bool_)
    tail = ~off if c.gamma * math.sqrt(c.dimension) >= TAIL else np.zeros(off.size, dtype=np.bool_)
    n = int(tail.sum())
    if n:
        log_gaps = c.log_gap + np.log1p(-rng.random(n)) / a
        t = np.sqrt(-np.expm1(log_gaps))
        cosine[tail], sine[tail], accepted[tail] = t, np.exp(0.5 * log_gaps), rng.random(n) * t <= c.gamma
    if n < off.size:
        side = off[~tail]
        z, rest = rng.standard_normal(side.size), rng.chisquare(c.dimension - 1, side.size)
        length = np.sqrt(z * z + rest)
        t = np.where(side, z, np.abs(z)) / length
        cosine[~tail], sine[~tail], accepted[~tail] = t, np.sqrt(rest) / length, (t >= c.gamma) != side
    return cosine, sine, accepted


def place(measured: Measured, along: float, across: float | None, scale: float, rng: np.random.Generator) -> Vector:
    """scale (along u + across W), u the direction of ``measured`` and W a uniform unit vector orthogonal to it.

    With ``across`` None the orthogonal part is a standard Gaussian of its own length instead of ``across W``. Without a
    direction (norm 0) u is uniform.

    Two passes, chunk by chunk, over one array of Gaussians x: <x, u> and |x|^2 are summed while they are drawn, then
    x - <x, u> u, rescaled, plus the part along u is one linear combination of x and u.
    """
    values, norm = measured.values, measured.norm
    out = np.empty(values.size)
    inner = squares = 0.0
    for start in range(0, out.size, CHUNK):
        window = slice(start, start + CHUNK)
        x = rng.standard_normal(out=out[window])
        inner += float(np.dot(x, values[window].astype(np.float64, copy=False)))
        squares += float(np.dot(x, x))
    if norm == 0.0:
        length = math.hypot(along, across if across is not None else math.sqrt(_chi_square(out.size - 1, rng)))
        out *= scale * length / math.sqrt(squares)
        return out
    if out.size == 1:
        return values.astype(np.float64) * (scale * along / norm)
    inner /= norm
    stretch = scale
    if across is not None:
        while squares - inner * inner < 0.01 * squares:  # x almost parallel to u, as happens in few dimensions:
            out -= np.multiply(
                values, inner / norm, dtype=np.float64
            )  # the difference of squares has few digits, so form the difference itself
            inner = float(np.dot(out, values.astype(np.float64))) / norm
            squares = float(np.dot(out, out))
        stretch *= across / math.sqrt(squares - inner * inner)
    shift = (scale * along - stretch * inner) / norm
    buffer = np.empty(min(CHUNK, out.size))
    for start in range(0, out.size, CHUNK):
        x = out[start : start + CHUNK]
        part = np.multiply(values[start : start + CHUNK], shift, out=buffer[: x.size], dtype=np.float64)
        x *= stretch
        x += part
    return out


def place_rows(units: Vector, along: Vector, across: Vector | None, scale: float, rng: np.random.Generator) -> Vector:
    """``place`` for many unit rows, shape (n, d); a row of zeros has no direction."""
    out = np.empty_like(units)
    count, dimension = units.shape
    rows = max(1, _ROWS_AT_ONCE // dimension)
    for start in range(0, count, rows):
        block = slice(start, start + rows)
        u, t = units[block], along[block]
        x = rng.standard_normal(u.shape)
        lost = ~u.any(axis=1)
        if across is not None:
            s = across[block]
        elif dimension > 1:
            s = np.sqrt(rng.chisquare(dimension - 1, len(u)))
        else:
            s = np.zeros(len(u))
        s, t = np.where(lost, np.hypot(s, t), s), np.where(lost, 0.0, t)
        if dimension > 1:
            for _ in range(2):  # the second time removes what rounding left along u
                x -= np.einsum("ij,ij->i", x, u)[:, None] * u
        length = np.sqrt(np.einsum("ij,ij->i", x, x))
        out[block] = scale * (t[:, None] * u + (s / length)[:, None] * x)
    return out


def _chi_square(freedom: int, rng: np.random.Generator) -> float:
    return float(rng.chisquare(freedom)) if freedom else 0.0
