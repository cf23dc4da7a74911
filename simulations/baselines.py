"""Mechanisms that others privatise a unit vector or a corner of the cube with, to compare ours with.

Each function gives the error E|Z - u|^2 in closed form, and a sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import log_ndtr

from p2p_labeldp.mechanisms.cap import log_beta_half

DELTA = 1e-6
"""Of the Gaussian mechanism, the only one here that is not purely private."""

Vector = npt.NDArray[np.float64]
Sampler = Callable[[Vector, int, np.random.Generator], Vector]
"""A vector, how many draws, the coin; to draws of shape (n, d)."""


def hemisphere(dimension: int, epsilon: float) -> tuple[float, Sampler]:
    """Duchi, Jordan, Wainwright: uniform on the hemisphere around u with probability e^eps/(1+e^eps), else opposite."""
    moment = 1.0 / ((dimension - 1) / 2 * math.exp(log_beta_half((dimension - 1) / 2)))  # E|<V, u>|
    m = moment * math.tanh(epsilon / 2)

    def sample(u: Vector, n: int, rng: np.random.Generator) -> Vector:
        v = rng.standard_normal((n, u.size))
        v /= np.linalg.norm(v, axis=1)[:, None]
        side = np.where(rng.random(n) < 1.0 / (1.0 + math.exp(-epsilon)), 1.0, -1.0)
        flip: Vector = np.where(np.sign(v @ u) == side, 1.0, -1.0)
        return v * flip[:, None] / m

    return 1.0 / m**2 - 1.0, sample


def euclidean_laplace(dimension: int, epsilon: float) -> tuple[float, Sampler]:
    """Density proportional to exp(-eps |z - u| / 2): a uniform direction of length Gamma(d, 2/eps)."""

    def sample(u: Vector, n: int, rng: np.random.Generator) -> Vector:
        v = rng.standard_normal((n, u.size))
        length = rng.gamma(u.size, 2.0 / epsilon, n) / np.linalg.norm(v, axis=1)
        return u + v * length[:, None]

    return dimension * (dimension + 1) * (2.0 / epsilon) ** 2, sample


def laplace(dimension: int, width: float) -> tuple[float, Sampler]:
    """Independent Laplace noise; width = l1 sensitivity / eps."""
    return 2.0 * dimension * width**2, lambda u, n, rng: u + rng.laplace(0.0, width, (n, u.size))


def gaussian(dimension: int, epsilon: float) -> tuple[float, Sampler]:
    """The least Gaussian noise that is (eps, delta)-private for two unit vectors (Balle and Wang 2018)."""

    def log_delta(sigma: float) -> float:
        gain = float(log_ndtr(1.0 / sigma - epsilon * sigma / 2.0))
        loss = epsilon + float(log_ndtr(-1.0 / sigma - epsilon * sigma / 2.0))
        return gain + math.log(-math.expm1(min(loss - gain, -1e-300)))

    sigma = float(brentq(lambda s: log_delta(s) - math.log(DELTA), 1e-3, 1e3 / epsilon, xtol=1e-14))
    return dimension * sigma**2, lambda u, n, rng: u + sigma * rng.standard_normal((n, u.size))


def one_coordinate(dimension: int, epsilon: float) -> tuple[float, Sampler]:
    """A uniform coordinate of a corner by randomized response, times d."""
    size = dimension / math.tanh(epsilon / 2)

    def sample(u: Vector, n: int, rng: np.random.Generator) -> Vector:
        z, j = np.zeros((n, u.size)), rng.integers(u.size, size=n)
        kept = rng.random(n) < 1.0 / (1.0 + math.exp(-epsilon))
        z[np.arange(n), j] = np.where(kept, size, -size) * u[j]
        return z

    return size**2 - dimension, sample
