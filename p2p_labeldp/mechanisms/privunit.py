"""PrivUnit2: a private direction, almost optimal among all epsilon-locally private unbiased ones.

Definition. Let u be a unit vector of R^d, gamma in (0, 1) and p in (0, 1). With probability p draw V uniformly from the
cap {v : |v| = 1, <v, u> >= gamma}, else uniformly from its complement on the sphere. Release Z = V / m, where

    m = M [p/P - (1-p)/(1-P)],   P = Pr[T >= gamma], M = E[T; T >= gamma], T = <uniform unit vector, u>,

so that E[Z | u] = u. Its exact level of local privacy and the density of V are those of every ``direction``.

Randomness. Whoever knows the generator's state knows u. A seeded PCG64 or Philox is a study's coin: both can be
inverted or guessed, and one release shows more of the stream than it takes. A deployment needs a ``Generator`` over a
cryptographic stream keyed by the operating system. The guarantee is about the law above over the reals; the last bits
of doubles, which would tell more, are rounded away before anything is released (``grid``).

Source: Bhowmick, Duchi, Freudiger, Kapoor, Rogers, arXiv 1812.00984 (PrivUnit2). Sampling of the cap, the
exact level's optimum and the moments are derived in this project.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import privunit_calibration
from p2p_labeldp.mechanisms.cap import Cap, cap, log_gap_of
from p2p_labeldp.mechanisms.direction import Direction, EuclideanDirection
from p2p_labeldp.mechanisms.grid import stretch
from p2p_labeldp.mechanisms.odds import just_below, log_expm1, log_sigmoid, tosses
from p2p_labeldp.mechanisms.sphere import draw_cosines

Calibration = Literal["exact", "theorem1"]
Vector = npt.NDArray[np.float64]

_ROUNDING = 1e-12
"""More than an inner product of unit vectors loses, but for the grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnit2(EuclideanDirection):
    """The mechanism with its parameters; build it with ``calibrated`` or ``of_parameters``.

    Args:
        dimension: d, 1 to 10^8.
        epsilon: The level claimed, at least ``epsilon_exact``.
        log_gap: log(1 - gamma^2) < 0, the cap's threshold (gamma itself rounds to 1 for small caps).
        epsilon_exact: log(p/(1-p)) + log((1-P)/P) > 0: given the cap it stands for p, the probability of the cap.

    Raises:
        ConfigurationError: A parameter out of range, or a claim below the exact level.
    """

    log_gap: float
    _cap: Cap = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Direction.__post_init__(self)
        object.__setattr__(self, "_cap", cap(self.dimension, self.log_gap))

    @classmethod
    def calibrated(cls, *, dimension: int, epsilon: float, calibration: Calibration = "exact") -> PrivUnit2:
        """The mechanism of least error that is ``epsilon``-locally private (1e-6 to 1e5).

        Args:
            dimension: d.
            epsilon: Total level.
            calibration: "exact" by the exact level; "theorem1" by the sufficient conditions of the paper, never better.
        """
        if calibration not in ("exact", "theorem1"):
            raise ConfigurationError(f"{calibration!r} given; exact and theorem1 are possible", field="calibration")
        search = privunit_calibration.exact if calibration == "exact" else privunit_calibration.theorem1
        log_gap, level = search(dimension, epsilon)
        return cls(dimension=dimension, epsilon=float(epsilon), log_gap=log_gap, epsilon_exact=level)

    @classmethod
    def of_parameters(cls, *, dimension: int, gamma: float, cap_probability: float) -> PrivUnit2:
        """The mechanism with a given threshold and probability of the cap; it claims its exact level, rounded up."""
        if not 0.0 < cap_probability < 1.0:
            raise ConfigurationError(
                f"{cap_probability} given; a number strictly between 0 and 1 is possible", field="cap_probability"
            )
        c = cap(dimension, log_gap_of(gamma))
        level = math.log(cap_probability) - math.log1p(-cap_probability) + c.log_complement - c.log_mass
        if not level > 0.0:
            raise ConfigurationError(
                f"{cap_probability} given; more than the cap's share {math.exp(c.log_mass)} is possible",
                field="cap_probability",
            )
        claim = level + (level - just_below(level))  # what rounding may have taken from the level is claimed too
        return cls(dimension=dimension, epsilon=claim, log_gap=c.log_gap, epsilon_exact=level)

    @property
    def gamma(self) -> float:
        """Threshold of the cap."""
        return self._cap.gamma

    @property
    def log_cap_mass(self) -> float:
        """log P, P the share of the sphere within the cap."""
        return self._cap.log_mass

    @property
    def log_complement(self) -> float:
        """log(1 - P)."""
        return self._cap.log_complement

    @property
    def log_m(self) -> float:
        """log m of E[V | u] = m u; every output has norm 1/m."""
        return privunit_calibration.log_constant(self._cap, self.epsilon_exact)

    @property
    def variance(self) -> float:
        """E|Z - u|^2 = 1/m^2 - 1."""
        c = self._cap
        if c.log_gap >= math.log(0.5):
            return math.expm1(-2.0 * self.log_m)
        # 1/m = (1-s) / (gamma (1-q)) with s = 1 - r and q = (1-p)/(1-P), both small: no difference of ones
        s, q, gap = math.exp(c.log_slack), self._off_density, math.exp(c.log_gap)
        return max(0.0, ((q - s) * (2.0 - s - q) + gap * (1.0 - q) ** 2) / (-math.expm1(c.log_gap) * (1.0 - q) ** 2))

    @property
    def covariance(self) -> tuple[float, float]:
        """Variance of Z along u, and in each of the d-1 directions across: (1 - gamma m) / (d m^2).

        The two are equal at the exact optimum, where gamma = m.
        """
        c, d = self._cap, self.dimension
        if d == 1:
            return self.variance, 0.0
        if c.log_gap >= math.log(0.5):
            missing = 1.0 - c.gamma * self.m
        else:
            s, q, gap = math.exp(c.log_slack), self._off_density, math.exp(c.log_gap)
            missing = (q - s + gap * (1.0 - q)) / (1.0 - s)
        across = max(0.0, missing) * self.second_moment / d
        return max(0.0, self.variance - (d - 1) * across), across

    @property
    def _off_density(self) -> float:
        """(1-p)/(1-P)."""
        return math.exp(log_sigmoid(-(log_expm1(self.epsilon_exact) + self._cap.log_mass)))

    @property
    def threshold(self) -> dict[str, float]:
        """gamma."""
        return {"gamma": self.gamma}

    def in_cap(self, outputs: Vector, points: Vector) -> npt.NDArray[np.bool_]:
        """<V, u> >= gamma; where gamma rounds to 1 an inner product may round below it."""
        return np.asarray(outputs @ points.T * self.m >= self.gamma - _ROUNDING - stretch(self.dimension))

    def parts(self, count: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Draws T = <V, u> and sqrt(1 - T^2), each of shape (count,)."""
        off = tosses(log_sigmoid(-self.log_odds), count, rng)
        return draw_cosines(self._cap, off, rng)
