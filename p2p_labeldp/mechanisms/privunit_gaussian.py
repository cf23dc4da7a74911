"""PrivUnitG: PrivUnit2 with the sphere replaced by its Gaussian limit, calibrated by one number for every dimension.

Definition. Let u be a unit vector of R^d, gamma > 0 and p in (0, 1). Draw t ~ N(0, 1) given t >= gamma with
probability p, else given t < gamma, and g ~ N(0, I). Release Z = sigma (g - <g, u> u + t u), sigma = 1/m, where

    m = phi(gamma) [p/P - (1-p)/(1-P)],   P = Pr[N(0, 1) >= gamma].

The exact level of local privacy and the density of Z, relative to N(0, sigma^2 I), are those of every ``direction``.
As for PrivUnit2, at a given level m is greatest where m(gamma) = gamma; there
sigma = 1/gamma and Z has covariance sigma^2 I. Outputs are unbounded: a receiver who projects reports needs
the tail of their norm, of order sigma sqrt(d).

On randomness see ``privunit``.

Source: Asi, Feldman, Talwar, "Optimal Algorithms for Mean Estimation under Local Differential Privacy", ICML 2022
(arXiv 2205.02466).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cap import check_dimension
from p2p_labeldp.mechanisms.direction import Direction, EuclideanDirection
from p2p_labeldp.mechanisms.odds import check_epsilon, just_below, log_expm1, log_sigmoid, tosses
from p2p_labeldp.mechanisms.sphere import TAIL

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnitG(EuclideanDirection):
    """The mechanism with its parameters; build it with ``calibrated``.

    Args:
        dimension: d, 1 to 10^8.
        epsilon: The level claimed, at least ``epsilon_exact``.
        gamma: Threshold of t, in standard deviations; positive.
        epsilon_exact: log(p/(1-p)) + log((1-P)/P) > 0.

    Raises:
        ConfigurationError: A parameter out of range, or a claim below the exact level.
    """

    gamma: float

    def __post_init__(self) -> None:
        Direction.__post_init__(self)
        if not 0.0 < self.gamma < math.inf:
            raise ConfigurationError(f"{self.gamma} given; a finite positive number is possible", field="gamma")

    @classmethod
    def calibrated(cls, *, dimension: int, epsilon: float) -> PrivUnitG:
        """The mechanism of least error that is ``epsilon``-locally private (1e-6 to 1e5)."""
        check_dimension(dimension)
        target = just_below(check_epsilon(epsilon))
        log_excess = log_expm1(target)

        def surplus(log_gamma: float) -> float:
            """log m - log gamma."""
            gamma = math.exp(log_gamma)
            return log_sigmoid(log_excess + float(log_ndtr(-gamma))) - _log_ratio(gamma)

        low = math.log(math.tanh(0.5 * target) * math.sqrt(2.0 / math.pi)) - 1e-9  # m at threshold 0
        high = math.log(math.sqrt(2.0 * target) + 1.0)  # there m <= (e^eps - 1) phi < 0.25
        log_gamma = float(brentq(surplus, low, high, xtol=1e-15, rtol=1e-15))
        return cls(dimension=dimension, epsilon=float(epsilon), gamma=math.exp(log_gamma), epsilon_exact=target)

    @property
    def log_cap_mass(self) -> float:
        """log P, P the probability that a Gaussian exceeds gamma."""
        return float(log_ndtr(-self.gamma))

    @property
    def log_complement(self) -> float:
        """log(1 - P)."""
        return float(log_ndtr(self.gamma))

    @property
    def log_m(self) -> float:
        """log m, m = E[t]."""
        balance = log_expm1(self.epsilon_exact) + self.log_cap_mass
        return math.log(self.gamma) + log_sigmoid(balance) - _log_ratio(self.gamma)

    @property
    def sigma(self) -> float:
        """1/m: standard deviation of Z across u."""
        return math.exp(-self.log_m)

    @property
    def output_norm(self) -> float:
        """Infinite: no bound holds for every output."""
        return math.inf

    @property
    def covariance(self) -> tuple[float, float]:
        """Variance of Z along u, (1 + gamma m)/m^2 - 1, and in each direction across it, 1/m^2."""
        across = self.sigma**2
        return max(0.0, across + (self.gamma * self.sigma - 1.0)), across

    @property
    def variance(self) -> float:
        """E|Z - u|^2 = (d + gamma m)/m^2 - 1."""
        along, across = self.covariance
        return along + (self.dimension - 1) * across

    @property
    def threshold(self) -> dict[str, float]:
        """gamma, and sigma, which is not the outputs' norm here."""
        return {"gamma": self.gamma, "sigma": self.sigma}

    def in_cap(self, outputs: Vector, points: Vector) -> npt.NDArray[np.bool_]:
        """<V, u> >= gamma, V = Z / sigma."""
        return np.asarray(outputs @ points.T >= self.gamma * self.sigma)

    def parts(self, count: int, rng: np.random.Generator) -> tuple[Vector, None]:
        """Draws t, shape (count,); the rest is a whole Gaussian."""
        return self.heights(count, rng), None

    def heights(self, count: int, rng: np.random.Generator) -> Vector:
        """Draws t, shape (count,)."""
        below = tosses(log_sigmoid(-self.log_odds), count, rng)
        heights = np.empty(count)
        pending = np.arange(count)
        while pending.size:
            low = below[pending]
            if self.gamma >= TAIL:  # t exp(-t^2/2) on [gamma, inf) accepted with probability gamma/t
                t = np.sqrt(self.gamma**2 - 2.0 * np.log1p(-rng.random(low.size)))
                accepted = rng.random(low.size) * t <= self.gamma
            else:
                t = np.abs(rng.standard_normal(low.size))
                accepted = t >= self.gamma
            n = int(low.sum())
            t[low] = rng.standard_normal(n)
            accepted[low] = t[low] < self.gamma
            heights[pending[accepted]] = t[accepted]
            pending = pending[~accepted]
        return heights


def _log_ratio(gamma: float) -> float:
    """log(gamma P / phi(gamma))."""
    return math.log(gamma) + math.log(math.sqrt(0.5 * math.pi) * float(erfcx(gamma / math.sqrt(2.0))))
