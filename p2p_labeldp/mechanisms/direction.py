"""What all private directions are: a draw whose law has two values, higher on a cap around the truth than off it.

Definition. Let V have some reference law that does not depend on the truth u, and let each u have a cap, a set of
outputs of the same reference probability P for every u. With probability p draw V from the reference law given the cap,
else given its complement. Release Z = V / m with E[V | u] = m u, so that E[Z | u] = u. The density of V relative to
the reference law is p/P on the cap and (1-p)/(1-P) off it, so where the first is larger the exact pure level of local
privacy is log(p/(1-p)) + log((1-P)/P). Given the cap, this level says the same as p; at small levels, where p and P
differ in their last digits, it says it better, and so it is what a mechanism keeps.

    mechanism          reference law             cap of u
    PrivUnit2          uniform on the sphere     <v, u> >= gamma
    PrivUnitG          N(0, I)                   <v, u> >= gamma
    PrivUnitInfinity   uniform on {-1, 1}^d      at least k agreements with u, rounded to signs
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cap import check_dimension
from p2p_labeldp.mechanisms.grid import on_grid
from p2p_labeldp.mechanisms.norms import Measured, Update, euclidean, euclidean_rows
from p2p_labeldp.mechanisms.odds import log_sigmoid
from p2p_labeldp.mechanisms.sphere import place, place_rows

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction(ABC):
    """A private, unbiased draw of a vector of length 1 in the mechanism's norm.

    Args:
        dimension: d, 1 to 10^8.
        epsilon: The level claimed, at least ``epsilon_exact``.
        epsilon_exact: log(p/(1-p)) + log((1-P)/P) > 0.

    Raises:
        ConfigurationError: A parameter out of range, or a claim below the exact level.
    """

    dimension: int
    epsilon: float
    epsilon_exact: float

    def __post_init__(self) -> None:
        check_dimension(self.dimension)
        if not 0.0 < self.epsilon_exact < math.inf:
            raise ConfigurationError(
                f"{self.epsilon_exact} given; a finite positive number is possible", field="epsilon_exact"
            )
        if not self.epsilon_exact <= self.epsilon < math.inf:
            raise ConfigurationError(
                f"{self.epsilon} given; at least {self.epsilon_exact}, the exact level, may be claimed", field="epsilon"
            )

    @property
    @abstractmethod
    def log_cap_mass(self) -> float:
        """log P."""

    @property
    @abstractmethod
    def log_complement(self) -> float:
        """log(1 - P), with all its digits."""

    @property
    @abstractmethod
    def log_m(self) -> float:
        """log m."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """E|Z - u|^2, Euclidean."""

    @property
    @abstractmethod
    def threshold(self) -> dict[str, float]:
        """What names the cap, for the summary."""

    @abstractmethod
    def in_cap(self, outputs: Vector, points: Vector) -> npt.NDArray[np.bool_]:
        """Whether each output Z, shape (n, d), is in the cap of each point, shape (k, d); shape (n, k)."""

    @abstractmethod
    def measure(self, update: Update) -> Measured:
        """Checks an update of shape (d,) and takes its norm."""

    @abstractmethod
    def unit_rows(self, updates: Update) -> tuple[Vector, Vector]:
        """Checks updates of shape (n, d); the rows divided by their norms, and these."""

    @abstractmethod
    def privatise(self, update: Update, rng: np.random.Generator) -> Vector:
        """One private draw Z, shape (d,), float64. On ``rng`` see ``privunit``."""

    @abstractmethod
    def privatise_many(self, updates: Update, rng: np.random.Generator) -> Vector:
        """Independent draws for the rows of ``updates``, shape (n, d): the law of ``privatise``, another stream."""

    @abstractmethod
    def release(self, measured: Measured, scale: float, rng: np.random.Generator) -> Vector:
        """``scale`` times Z for the direction of a measured update; without one (norm 0), for a uniform one."""

    @property
    def log_odds(self) -> float:
        """log(p / (1-p)), p the probability of drawing from the cap."""
        return self.epsilon_exact + self.log_cap_mass - self.log_complement

    @property
    def cap_probability(self) -> float:
        """p; its distance to 1 is known better to ``log_odds``."""
        return math.exp(log_sigmoid(self.log_odds))

    @property
    def log_densities(self) -> tuple[float, float]:
        """log of the density of V relative to the reference law, on the cap and off it."""
        odds = self.log_odds
        return log_sigmoid(odds) - self.log_cap_mass, log_sigmoid(-odds) - self.log_complement

    def log_density(self, outputs: Vector, points: Vector) -> Vector:
        """log of the density of each output, shape (n, d), given each point, shape (k, d); shape (n, k)."""
        return np.where(self.in_cap(outputs, points), *self.log_densities)

    @property
    def m(self) -> float:
        """E[V | u] = m u."""
        return math.exp(self.log_m)

    @property
    def output_norm(self) -> float:
        """1/m, the norm of every output (infinite where no bound holds), but for the ``grid``."""
        return math.exp(-self.log_m)

    @property
    def squared_length(self) -> float:
        """|u|^2, Euclidean, of the vectors that ``variance`` is for."""
        return 1.0

    @property
    def second_moment(self) -> float:
        """E|Z|^2, Euclidean."""
        return self.variance + self.squared_length

    def summary(self) -> dict[str, float]:
        """What ``account`` prints."""
        return {
            **self.threshold,
            "p": self.cap_probability,
            "output_norm": self.output_norm,
            "log_cap_mass": self.log_cap_mass,
            "epsilon_exact": self.epsilon_exact,
            "variance": self.variance,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EuclideanDirection(Direction):
    """Z = (T u + S W) / m, W uniform among the unit vectors orthogonal to u; rounded to a public ``grid``.

    The vector is normalised here, in double precision, so privacy never rests on the caller's arithmetic. A vector of
    zeros has no direction and gets the draw of a uniform one: a mixture of the same laws, hence as private.
    """

    @abstractmethod
    def parts(self, count: int, rng: np.random.Generator) -> tuple[Vector, Vector | None]:
        """Draws T and S, each of shape (count,); None is for the length of a Gaussian vector in d - 1 dimensions."""

    def measure(self, update: Update) -> Measured:
        """Checks an update of shape (d,) and takes its Euclidean norm."""
        return euclidean(update, self.dimension)

    def unit_rows(self, updates: Update) -> tuple[Vector, Vector]:
        """Checks updates of shape (n, d); their directions and Euclidean norms."""
        return euclidean_rows(updates, self.dimension)

    def privatise(self, update: Update, rng: np.random.Generator) -> Vector:
        """One private draw of the update's direction.

        Args:
            update: Any vector of finite numbers, shape (d,); only its direction matters.
            rng: See ``privunit``.

        Returns:
            Z, shape (d,), float64; its mean is update/|update|.
        """
        return self.release(self.measure(update), 1.0, rng)

    def privatise_many(self, updates: Update, rng: np.random.Generator) -> Vector:
        """Independent draws for the rows of ``updates``, shape (n, d): the law of ``privatise``, another stream."""
        units, _ = self.unit_rows(updates)
        along, across = self.parts(len(units), rng)
        scale = math.exp(-self.log_m)
        return on_grid(place_rows(units, along, across, scale, rng), scale)

    def release(self, measured: Measured, scale: float, rng: np.random.Generator) -> Vector:
        """``scale`` times Z for a measured update."""
        along, across = self.parts(1, rng)
        s = None if across is None else float(across[0])
        scale *= math.exp(-self.log_m)
        return on_grid(place(measured, float(along[0]), s, scale, rng), scale)
