"""The sum of a cohort's private reports: drawn one by one, or at once by a Gaussian with the same first two moments.

Definition. From updates w_1, ..., w_n the learner gets Z_1' + ... + Z_n', Z_i the report of ``separated`` and
Z' = Z min(1, rho / |Z|). There are three ways to it, and a result says which one it was made by:

- "exact" draws every Z_i.
- "moments" draws the magnitudes S_i as the peers do, shrinks them, and replaces the sum of the n directions by a
  Gaussian. Given S_i, all reports have norm |S_i| / m, so shrinking is S_i' = S_i min(1, rho m / |S_i|); the mean is
  S_i' u_i; and where PrivUnit2 is at its exact optimum its covariance is isotropic, so that of the report is
  S_i'^2 (1/m^2 - 1)/d I, and S_i'^2 / (m^2 d) I for an update of zeros, whose direction is uniform. One Gaussian vector
  therefore has the mean and the covariance of the sum, whatever n: given the magnitudes, and so without them too. It is
  no mechanism (it protects nobody who reports); it tells how a model would have come out.
- "clipped" adds the updates, clipped to r_max: no privacy.

An update that is not finite is refused and counts as one of zeros, as peers do it (``protocol.rounds``).

Source: Bhowmick et al., arXiv 1812.00984; the optimum's covariance is derived in this project (``privunit``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.norms import CHUNK, Floats, Measured, check_update, clip, euclidean
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.separated import Separated

Mode = Literal["exact", "moments", "clipped"]
Vector = npt.NDArray[np.float64]

_ISOTROPIC = 1e-6
"""Largest relative difference between the variances along and across that counts as none; rounding leaves 1e-9."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summed:
    """What a cohort's reports came to.

    Args:
        total: Shape (d,).
        reports: n.
        refused: Of these, updates that were not finite.
    """

    total: Vector
    reports: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSum:
    """How the sum is taken.

    Args:
        mechanism: What the peers use.
        projection: rho, above 0.
        mode: "exact", "moments" or "clipped".

    Raises:
        ConfigurationError: A value out of range, or "moments" of a direction whose covariance is not isotropic.
    """

    mechanism: Separated
    projection: float
    mode: Mode

    def __post_init__(self) -> None:
        if isinstance(self.projection, bool) or not 0 < self.projection < math.inf:
            raise ConfigurationError(
                f"{self.projection} given; a finite number above 0 is possible", field="projection"
            )
        if self.mode not in ("exact", "moments", "clipped"):
            raise ConfigurationError(f"{self.mode!r} given; exact, moments and clipped are possible", field="mode")
        if self.mode == "moments":
            self._spreads()

    def of(self, updates: Iterable[Floats], rng: np.random.Generator) -> Summed:
        """The sum over ``updates``, each of shape (d,), in their order.

        Raises:
            ConfigurationError: An update of another shape or type.
        """
        total = np.zeros(self.mechanism.dimension)
        reports = refused = 0
        variance = 0.0
        directed, uniform = self._spreads() if self.mode == "moments" else (0.0, 0.0)
        most = self.projection * self.mechanism.direction.m
        for update in updates:
            reports += 1
            values = check_update(update, total.shape)
            try:
                measured = euclidean(values, total.size)
            except ConfigurationError:  # not finite: the one thing that is left to complain about
                refused += 1
                measured = Measured(values=np.zeros(total.size), norm=0.0, exponent=0)
            if self.mode == "exact":
                total += self._report(measured, rng)
            elif self.mode == "clipped":
                _add(total, measured, min(measured.radius, self.mechanism.magnitude.max_radius))
            else:
                magnitude = max(-most, min(most, self._magnitude(measured, rng)))
                _add(total, measured, magnitude)
                variance += magnitude * magnitude * (directed if measured.norm > 0.0 else uniform)
        if variance > 0.0:
            total += math.sqrt(variance) * rng.standard_normal(total.size)
        return Summed(total=total, reports=reports, refused=refused)

    def _magnitude(self, measured: Measured, rng: np.random.Generator) -> float:
        magnitude = self.mechanism.magnitude
        return magnitude.privatise(min(measured.radius, magnitude.max_radius), rng)

    def _report(self, measured: Measured, rng: np.random.Generator) -> Vector:
        report = self.mechanism.direction.release(measured, self._magnitude(measured, rng), rng)
        return clip(report, self.projection, report.size)

    def _spreads(self) -> tuple[float, float]:
        """Variance on each coordinate of a direction's draw, and of the draw where there is no direction."""
        direction = self.mechanism.direction
        if not isinstance(direction, PrivUnit2):
            raise ConfigurationError("moments given; they are those of PrivUnit2 only", field="mode")
        along, across = direction.covariance
        if abs(along - across) > _ISOTROPIC * across:
            raise ConfigurationError("moments given; they need PrivUnit2 at its exact optimum", field="mode")
        return across, direction.second_moment / direction.dimension


def _add(total: Vector, measured: Measured, length: float) -> None:
    """Adds the vector of that (signed) length in the direction of ``measured``; nothing if there is none."""
    if measured.norm == 0.0:
        return
    factor = length / measured.norm
    for start in range(0, total.size, CHUNK):  # a whole product would leave the cache and come back
        window = slice(start, start + CHUNK)
        part = measured.values[window].astype(np.float64)
        part *= factor
        total[window] += part
