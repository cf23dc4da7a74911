"""The separated mechanism: a private direction times a private magnitude.

Definition. For an update w of norm r release Z = D S, where D is a draw of the direction mechanism at w/r (level
eps1) and S an independent draw of the magnitude mechanism at r (level eps2). It is (eps1 + eps2)-locally private, and
E[Z] = w where r <= r_max; larger updates are clipped to norm r_max, whatever their size. An update of zeros gets a
uniform direction and the magnitude 0, so it is unbiased too. NaN and infinity are refused before anything is clipped.

The direction is PrivUnit2 or PrivUnitG with the Euclidean norm, or PrivUnit-infinity with the maximum norm.

Source: Bhowmick et al., arXiv 1812.00984; the second moment follows from independence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.direction import Direction
from p2p_labeldp.mechanisms.norms import Update
from p2p_labeldp.mechanisms.privunit import Calibration, PrivUnit2
from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity
from p2p_labeldp.mechanisms.scalar import GridScalar, ScalarDP, ScalarRelDP

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Separated:
    """Direction and magnitude, each private by itself.

    Args:
        direction: PrivUnit2, PrivUnitG or PrivUnitInfinity.
        magnitude: ScalarDP or ScalarRelDP.
    """

    direction: Direction
    magnitude: GridScalar

    @classmethod
    def calibrated(
        cls,
        *,
        dimension: int,
        epsilon_direction: float,
        epsilon_magnitude: float,
        max_radius: float,
        magnitude: Literal["absolute", "relative"] = "absolute",
        norm: Literal["l2", "l-infinity"] = "l2",
        calibration: Calibration = "exact",
    ) -> Separated:
        """The mechanism of a total level ``epsilon_direction`` + ``epsilon_magnitude``.

        Args:
            dimension: d.
            epsilon_direction: Level of the direction, 1e-6 to 1e5.
            epsilon_magnitude: Level of the magnitude, 1e-6 to 1e5.
            max_radius: Larger updates are clipped to this norm.
            magnitude: "absolute" by ScalarDP, "relative" by ScalarRelDP.
            norm: "l2" by PrivUnit2, "l-infinity" by PrivUnitInfinity.
            calibration: Of PrivUnit2.

        Raises:
            ConfigurationError: A parameter out of range, or theorem1 with "l-infinity".
        """
        if magnitude not in ("absolute", "relative"):
            raise ConfigurationError(f"{magnitude!r} given; absolute and relative are possible", field="magnitude")
        if norm not in ("l2", "l-infinity"):
            raise ConfigurationError(f"{norm!r} given; l2 and l-infinity are possible", field="norm")
        direction: Direction
        if norm == "l2":
            direction = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon_direction, calibration=calibration)
        elif calibration == "exact":
            direction = PrivUnitInfinity.calibrated(dimension=dimension, epsilon=epsilon_direction)
        else:
            raise ConfigurationError(
                f"{calibration!r} given; with l-infinity only exact is possible", field="calibration"
            )
        scalar = ScalarDP if magnitude == "absolute" else ScalarRelDP
        return cls(
            direction=direction,
            magnitude=scalar.calibrated(epsilon=epsilon_magnitude, max_radius=max_radius),
        )

    @property
    def dimension(self) -> int:
        """d."""
        return self.direction.dimension

    @property
    def epsilon(self) -> float:
        """eps1 + eps2."""
        return self.direction.epsilon + self.magnitude.epsilon

    @property
    def epsilon_exact(self) -> float:
        """The exact level: both outputs can be read off the product, so both levels are spent."""
        return self.direction.epsilon_exact + self.magnitude.epsilon_exact

    @property
    def output_norm(self) -> float:
        """The largest possible norm of Z, in the direction's norm; the ``grid`` may add 2^-30 sqrt(d) of it."""
        return self.direction.output_norm * self.magnitude.output_norm

    def second_moment(self, radius: float) -> float:
        """E|Z|^2 (Euclidean) = E|D|^2 (Var S + r^2) for an update of norm ``radius``, clipped."""
        r = min(radius, self.magnitude.max_radius)
        return self.direction.second_moment * (self.magnitude.variance(radius) + r * r)

    def variance(self, radius: float) -> float:
        """E|Z - w|^2 (Euclidean) for an update w of norm ``radius``, clipped; under PrivUnitInfinity for ``radius``
        times a corner, and for any other w of that maximum norm more by radius^2 d - |w|^2."""
        r = min(radius, self.magnitude.max_radius)
        return self.direction.second_moment * self.magnitude.variance(radius) + self.direction.variance * r * r

    def summary(self, radius: float | None = None) -> dict[str, float]:
        """The constants by name; ``variance`` is that of an update of norm ``radius``, by default the largest."""
        r = self.magnitude.max_radius if radius is None else radius
        return {
            "epsilon_direction": self.direction.epsilon_exact,
            "epsilon_magnitude": self.magnitude.epsilon_exact,
            "output_norm": self.output_norm,
            "epsilon_exact": self.epsilon_exact,
            "radius": r,
            "variance": self.variance(r),
        }

    def privatise(self, update: Update, rng: np.random.Generator) -> Vector:
        """One private draw of an update, shape (d,), float64.

        Raises:
            ConfigurationError: Another shape or type, or an entry that is NaN or infinite.
        """
        measured = self.direction.measure(update)
        magnitude = self.magnitude.privatise(min(measured.radius, self.magnitude.max_radius), rng)
        return self.direction.release(measured, magnitude, rng)

    def privatise_many(self, updates: Update, rng: np.random.Generator) -> Vector:
        """Independent draws for the rows of ``updates``, shape (n, d): the law of ``privatise``, another stream."""
        units, norms = self.direction.unit_rows(updates)
        magnitudes = self.magnitude.privatise_many(np.minimum(norms, self.magnitude.max_radius), rng)
        released = self.direction.privatise_many(units, rng)
        released *= magnitudes[:, None]
        return released
