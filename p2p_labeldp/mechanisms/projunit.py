"""ProjUnit: project the direction to k dimensions at random, privatise it there, and lift the report back.

Definition. W is a public random k x d matrix, drawn without looking at u. The peer reports R = PrivUnitG(Wu / |Wu|)
in R^k,
which is epsilon-locally private given W; the learner estimates Z = W^T R / c, unbiased over W and R, where c = E|Wu|:

    "rotation"   W = sqrt(d/k) times k rows of a uniform random rotation,
                 c = sqrt(d/k) G((k+1)/2) G(d/2) / (G(k/2) G((d+1)/2))
    "gaussian"   entries N(0, 1/k), c = sqrt(2/k) G((k+1)/2) / G(k/2)

With k at least about 50 epsilon the loss against PrivUnitG in d dimensions is a few per cent, and a report is k
numbers. W is dense here: k d entries are drawn and kept, so this is for moderate d.

Source: Asi, Feldman, Nelson, Nguyen, Talwar, "Fast Optimal Locally Private Mean Estimation via Random Projections",
NeurIPS 2023 (arXiv 2306.04444); c and the error are derived in this project.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cap import check_dimension, log_beta_half
from p2p_labeldp.mechanisms.norms import Update, euclidean
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG

Projection = Literal["rotation", "gaussian"]
Vector = npt.NDArray[np.float64]

MAX_ENTRIES = 5 * 10**7
"""Of W: 0.4 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjUnit:
    """The mechanism with its parameters; build it with ``calibrated``.

    Args:
        dimension: d.
        inner: The mechanism in k dimensions, k <= d.
        projection: "rotation" or "gaussian".

    Raises:
        ConfigurationError: k above d, or an unknown projection.
    """

    dimension: int
    inner: PrivUnitG
    projection: Projection = "rotation"

    def __post_init__(self) -> None:
        check_dimension(self.dimension)
        if self.inner.dimension > self.dimension:
            raise ConfigurationError(
                f"{self.inner.dimension} given; 1 to {self.dimension}, the dimension, is possible", field="projected"
            )
        if self.projection not in ("rotation", "gaussian"):
            raise ConfigurationError(
                f"{self.projection!r} given; rotation and gaussian are possible", field="projection"
            )

    @classmethod
    def calibrated(
        cls, *, dimension: int, epsilon: float, projected: int | None = None, projection: Projection = "rotation"
    ) -> ProjUnit:
        """The ``epsilon``-locally private mechanism on ``projected`` dimensions, by default max(50, 50 epsilon)."""
        if projected is None:
            inner = PrivUnitG.calibrated(dimension=1, epsilon=epsilon)  # checks epsilon
            projected = min(check_dimension(dimension), max(50, math.ceil(50 * inner.epsilon)))
        inner = PrivUnitG.calibrated(dimension=projected, epsilon=epsilon)
        return cls(dimension=dimension, inner=inner, projection=projection)

    @property
    def projected(self) -> int:
        """k."""
        return self.inner.dimension

    @property
    def epsilon(self) -> float:
        """The level claimed."""
        return self.inner.epsilon

    @property
    def epsilon_exact(self) -> float:
        """The exact level of a report, given W."""
        return self.inner.epsilon_exact

    @property
    def c(self) -> float:
        """E|Wu|."""
        k, d = self.projected, self.dimension
        log_c = -log_gamma_step(k)
        log_c += log_gamma_step(d) if self.projection == "rotation" else 0.5 * math.log(2.0 / d)
        return math.exp(log_c + 0.5 * math.log(d / k))

    @property
    def output_norm(self) -> float:
        """Infinite, as that of the report: no bound holds for every output."""
        return math.inf

    @property
    def variance(self) -> float:
        """E|Z - u|^2 over W and R.

        With S = E|R|^2: E|W^T R|^2 is (d/k) S for the rotation; for the Gaussian matrix the part of W^T R along u has
        second moment E<R, Wu/|Wu|>^2, as E|Wu|^2 = 1, and the part across, independent of Wu, (d-1)/k S.
        """
        k, d = self.projected, self.dimension
        if self.projection == "rotation":
            second = d / k * self.inner.second_moment
        else:
            second = (d - 1) / k * self.inner.second_moment + self.inner.covariance[0] + 1.0
        return second / self.c**2 - 1.0

    def summary(self) -> dict[str, float]:
        """The constants by name: the inner mechanism's, with the error of the estimate."""
        own = {"projected": self.projected, "c": self.c}
        return {**own, **self.inner.summary(), "variance": self.variance}

    def draw_projection(self, public: np.random.Generator) -> Vector:
        """W, shape (k, d), from coins that peer and learner share; it must not depend on the update.

        Raises:
            ConfigurationError: More than 5e7 entries.
        """
        k, d = self.projected, self.dimension
        if k * d > MAX_ENTRIES:
            raise ConfigurationError(f"{k} x {d} given; at most {MAX_ENTRIES} entries are possible", field="projected")
        if self.projection == "gaussian":
            return public.standard_normal((k, d)) / math.sqrt(k)
        q, r = np.linalg.qr(public.standard_normal((d, k)))
        q *= np.where(np.diagonal(r) < 0.0, -1.0, 1.0)  # makes the factor unique, hence the rows uniform
        return np.ascontiguousarray(q.T) * math.sqrt(d / k)

    def privatise(self, update: Update, matrix: Vector, rng: np.random.Generator) -> Vector:
        """The peer's report R, shape (k,)."""
        values = euclidean(update, self.dimension).values  # checked, and scaled if its squares would overflow
        return self.inner.privatise(self._checked(matrix) @ values.astype(np.float64), rng)

    def estimate(self, report: Vector, matrix: Vector) -> Vector:
        """The learner's estimate Z, shape (d,); its mean over W and R is update/|update|.

        Raises:
            ConfigurationError: A report or matrix of another shape, or a report that is not of finite numbers.
        """
        if np.shape(report) != (self.projected,) or not np.isfinite(report).all():
            raise ConfigurationError(
                f"shape {np.shape(report)} given; {self.projected} finite numbers are needed", field="report"
            )
        return self._checked(matrix).T @ report / self.c

    def _checked(self, matrix: Vector) -> Vector:
        if matrix.shape != (self.projected, self.dimension):
            raise ConfigurationError(
                f"shape {matrix.shape} given; {(self.projected, self.dimension)} is needed", field="matrix"
            )
        return matrix


def log_gamma_step(n: int) -> float:
    """log G(n/2) - log G((n+1)/2) = log B(n/2, 1/2) - log G(1/2), without the difference of large lgammas."""
    return log_beta_half(0.5 * n) - 0.5 * math.log(math.pi)
