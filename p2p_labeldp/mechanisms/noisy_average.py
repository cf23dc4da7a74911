"""The learner's half of a private round: shrink, add up, divide by what was expected, add noise.

Definition. From reports Z_1, ..., Z_n of one round release

    (Z_1' + ... + Z_n') / c + N(0, sigma^2 I),   Z' = Z min(1, rho / |Z|),

where c = q N is the expected cohort. The cohort's own size is as private as who is in it, so it is no divisor; and a
round in which nobody reported releases noise like any other. One report more or less moves the sum by rho at most, in
the Euclidean norm of all coordinates together.

On randomness see ``privunit``: the noise is as secret as its generator's state.

Source: Bhowmick et al., arXiv 1812.00984, section 4 (the central guarantee by subsampled Gaussian noise).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.norms import clip

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyAverage:
    """The release of one round.

    Args:
        dimension: d.
        projection: rho, above 0.
        expected_cohort: q N, above 0.
        sigma: Deviation of the noise on each coordinate of the average, at least 0; 0 is not private.

    Raises:
        ConfigurationError: A number out of range.
    """

    dimension: int
    projection: float
    expected_cohort: float
    sigma: float

    def __post_init__(self) -> None:
        for name in ("projection", "expected_cohort", "sigma"):
            value = getattr(self, name)
            if isinstance(value, bool) or not 0 <= value < math.inf or (value == 0 and name != "sigma"):
                allowed = "of at least 0" if name == "sigma" else "above 0"
                raise ConfigurationError(f"{value} given; a finite number {allowed} is possible", field=name)

    def shrink(self, report: Vector) -> Vector:
        """A report of norm rho at most; the report itself if it is.

        Raises:
            ConfigurationError: Another shape, or an entry that is NaN or infinite.
        """
        return clip(report, self.projection, self.dimension)

    def release(self, reports: Iterable[Vector], rng: np.random.Generator) -> Vector:
        """The noisy average, shape (d,). Sums are taken in the order of ``reports``: the same order, the same bits."""
        total: Vector = np.zeros(self.dimension)
        for report in reports:
            total += self.shrink(report)
        return total / self.expected_cohort + self.sigma * rng.standard_normal(self.dimension)
