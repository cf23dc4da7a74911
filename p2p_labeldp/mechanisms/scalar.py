"""A private magnitude: round to one of k + 1 end points, keep or replace it, undo the bias.

Definition. Let e_0 < e_1 < ... < e_k be the end points, e_0 = 0. Clip r to [0, r_max]; round it to one of its two
neighbours, J with E[e_J] = r; keep J with probability e^eps / (e^eps + k), else replace it by one of the other k
indices, uniformly. The kept law is a mixture: with probability lambda = (1-t)/(1+kt), t = e^-eps, the rounded end
point, else any of the k + 1 uniformly. So

    Z = (e_J' - (1-lambda) mean(e)) / lambda,   E[Z] = r,
    Var Z = [lambda (r-e_i)(e_(i+1)-r) + (1-lambda) var(e) + lambda (1-lambda) (r - mean(e))^2] / lambda^2,

every term positive. Every pair of magnitudes is exactly eps-indistinguishable.

ScalarDP has equally spaced end points; its error is the same, absolutely, for all magnitudes. ScalarRelDP has geometric
ones: for small magnitudes, as of updates late in training, its error is relative to r.

On randomness see ``privunit``.

Source: Bhowmick et al., arXiv 1812.00984 (ScalarDP, ScalarRelDP); the variances are derived in this project.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.odds import check_epsilon, just_below, tosses

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

MAX_LEVELS = 1 << 20
"""Rounding then adds at most r_max^2 / 4^21 = 2e-13 r_max^2 to the variance."""

MAX_GRID_EPSILON = 40.0
"""Beyond it ScalarRelDP keeps the end points of this level, 13,099 of them: rounding then adds at most 4.1e-7 r^2."""

MIN_RADIUS, MAX_RADIUS = 1e-100, 1e100
"""Of ``max_radius``: squares stay within the doubles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridScalar(ABC):
    """What both mechanisms share.

    Args:
        epsilon: Level of local privacy, 1e-6 to 1e5.
        max_radius: r_max; what is larger is clipped to it (and then biased).
        levels: k >= 1: the end points are e_0 .. e_k.

    Raises:
        ConfigurationError: A parameter out of range.
    """

    epsilon: float
    max_radius: float
    levels: int

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if isinstance(self.max_radius, bool) or not MIN_RADIUS <= self.max_radius <= MAX_RADIUS:
            raise ConfigurationError(
                f"{self.max_radius} given; {MIN_RADIUS:g} to {MAX_RADIUS:g} is possible", field="max_radius"
            )
        if isinstance(self.levels, bool) or not isinstance(self.levels, int) or not 1 <= self.levels <= MAX_LEVELS:
            raise ConfigurationError(f"{self.levels} given; 1 to {MAX_LEVELS} is possible", field="levels")

    @abstractmethod
    def end_points(self, indices: Indices) -> Vector:
        """e_j of the given indices."""

    @abstractmethod
    def lower_index(self, radii: Vector) -> Indices:
        """i with e_i <= r <= e_(i+1), i < k, of clipped magnitudes."""

    @property
    @abstractmethod
    def grid_mean(self) -> float:
        """Mean of the end points."""

    @property
    @abstractmethod
    def grid_variance(self) -> float:
        """Variance of an end point drawn uniformly."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Factor of Z."""

    @property
    @abstractmethod
    def offset(self) -> float:
        """What is taken off before."""

    @property
    def epsilon_exact(self) -> float:
        """log of the odds of J against any one other index: ``epsilon`` less what rounding may take."""
        return just_below(self.epsilon)

    @property
    def log_replace(self) -> float:
        """log of the probability k / (e^eps + k) that J is replaced by another index."""
        log_ratio = math.log(self.levels) - self.epsilon_exact
        return log_ratio - math.log1p(math.exp(log_ratio)) if log_ratio < 0.0 else -math.log1p(math.exp(-log_ratio))

    @property
    def keep_probability(self) -> float:
        """e^eps / (e^eps + k)."""
        return -math.expm1(self.log_replace)

    @property
    def weight(self) -> float:
        """lambda = (1-t)/(1+kt): E[e_J'] = lambda r + (1-lambda) mean(e)."""
        t = math.exp(-self.epsilon_exact)
        return -math.expm1(-self.epsilon_exact) / (1.0 + self.levels * t)

    @property
    def redraw(self) -> float:
        """1 - lambda = (k+1)t/(1+kt), with all its digits."""
        t = math.exp(-self.epsilon_exact)
        return (self.levels + 1) * t / (1.0 + self.levels * t)

    @property
    def output_range(self) -> tuple[float, float]:
        """Smallest and largest possible output; the smallest is negative."""
        ends = self._debias(self.end_points(np.array([0, self.levels])))
        return float(ends[0]), float(ends[1])

    @property
    def output_norm(self) -> float:
        """Largest possible |Z|."""
        low, high = self.output_range
        return max(-low, high)

    def outputs(self) -> Vector:
        """All possible outputs, one for each end point, ascending; shape (k + 1,)."""
        return self._debias(self.end_points(np.arange(self.levels + 1)))

    def variance(self, radius: float) -> float:
        """Exact variance of Z for a magnitude (of its clipped value, if larger than r_max)."""
        r = np.minimum(check_radii(np.array([radius])), self.max_radius)
        i = self.lower_index(r)
        rounding = (r - self.end_points(i)) * np.maximum(self.end_points(i + 1) - r, 0.0)
        return float(self._variance(r, rounding)[0])

    def worst_variance(self) -> float:
        """Largest variance over all magnitudes up to r_max: on each interval it is concave."""
        i = self._worst_intervals()
        low, high = self.end_points(i), self.end_points(i + 1)
        peak = (low + high - 2.0 * self.redraw * self.grid_mean) / (2.0 * self.weight)
        r = np.clip(peak, low, np.minimum(high, self.max_radius))
        return float(self._variance(r, (r - low) * (high - r)).max())

    def summary(self, radius: float | None = None) -> dict[str, float]:
        """What ``account`` prints; ``variance`` is that of the magnitude ``radius``, by default r_max."""
        r = self.max_radius if radius is None else radius
        return {
            "levels": self.levels,
            "scale": self.scale,
            "offset": self.offset,
            "keep_probability": self.keep_probability,
            "epsilon_exact": self.epsilon_exact,
            "output_min": self.output_range[0],
            "output_max": self.output_range[1],
            "output_norm": self.output_norm,
            "radius": r,
            "variance": self.variance(r),
            "worst_variance": self.worst_variance(),
        }

    def privatise(self, radius: float, rng: np.random.Generator) -> float:
        """One private draw of a magnitude; its mean is the magnitude, if that is at most r_max.

        Raises:
            ConfigurationError: Negative, NaN or infinite.
        """
        return float(self.privatise_many(np.array([radius]), rng)[0])

    def privatise_many(self, radii: npt.ArrayLike, rng: np.random.Generator) -> Vector:
        """Independent draws for magnitudes of shape (n,)."""
        r = np.minimum(check_radii(radii), self.max_radius)
        i = self.lower_index(r)
        low, high = self.end_points(i), self.end_points(i + 1)
        j = i + (rng.random(r.size) * (high - low) < r - low)
        replaced = tosses(self.log_replace, r.size, rng)
        step = rng.integers(1, self.levels, size=r.size, endpoint=True)
        j[replaced] = (j[replaced] + step[replaced]) % (self.levels + 1)
        return self._debias(self.end_points(j))

    def _worst_intervals(self) -> Indices:
        return np.arange(self.levels)

    def _debias(self, points: Vector) -> Vector:
        return (points - self.redraw * self.grid_mean) / self.weight

    def _variance(self, r: Vector, rounding: Vector) -> Vector:
        keep, redraw = self.weight, self.redraw
        spread = self.grid_variance / self.max_radius**2 + keep * ((r - self.grid_mean) / self.max_radius) ** 2
        return (keep * rounding + redraw * spread * self.max_radius**2) / keep**2


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarDP(GridScalar):
    """Equally spaced end points e_j = j r_max / k."""

    @classmethod
    def calibrated(cls, *, epsilon: float, max_radius: float, levels: int | None = None) -> ScalarDP:
        """The mechanism with k = ceil(e^(eps/3)) levels, near optimal for eps >= 2; below, the better of 1 and 2."""
        if levels is not None:
            return cls(epsilon=epsilon, max_radius=max_radius, levels=levels)
        exponent = check_epsilon(epsilon) / 3.0
        levels = min(MAX_LEVELS, math.ceil(math.exp(min(exponent, 30.0))))
        best = cls(epsilon=epsilon, max_radius=max_radius, levels=levels)
        if epsilon < 2.0:
            single = cls(epsilon=epsilon, max_radius=max_radius, levels=1)
            best = min(single, best, key=GridScalar.worst_variance)
        return best

    @property
    def scale(self) -> float:
        """A of Z = A (J' - b): (1+kt)/(1-t) r_max/k."""
        return self.max_radius / self.levels / self.weight

    @property
    def offset(self) -> float:
        """b of Z = A (J' - b): k(k+1)t / (2(1+kt))."""
        return 0.5 * self.levels * self.redraw

    @property
    def grid_mean(self) -> float:
        """r_max / 2."""
        return 0.5 * self.max_radius

    @property
    def grid_variance(self) -> float:
        """r_max^2 (k+2) / (12 k)."""
        return self.max_radius**2 * (self.levels + 2) / (12.0 * self.levels)

    def end_points(self, indices: Indices) -> Vector:
        """j r_max / k."""
        return indices * self.max_radius / self.levels

    def lower_index(self, radii: Vector) -> Indices:
        """floor(k r / r_max), at most k - 1."""
        return np.minimum(np.floor(radii / self.max_radius * self.levels), self.levels - 1).astype(np.int64)

    def _worst_intervals(self) -> Indices:
        return np.array([0, self.levels - 1])  # the variance grows with the distance from the middle


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarRelDP(GridScalar):
    """Geometric end points 0 and e_j = alpha nu^j, j = 1..k; the last may exceed r_max.

    Args:
        nu: Ratio of neighbouring end points, above 1.
        alpha: Sets the smallest positive one, alpha nu.
    """

    nu: float
    alpha: float
    _points: Vector = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super(ScalarRelDP, self).__post_init__()  # slots replaces the class: the bare form breaks
        if not 1.0 < self.nu < math.inf:
            raise ConfigurationError(f"{self.nu} given; a finite number above 1 is possible", field="nu")
        if not 0.0 < self.alpha < math.inf:
            raise ConfigurationError(f"{self.alpha} given; a finite positive number is possible", field="alpha")
        last = math.log(self.alpha) + self.levels * math.log(self.nu)
        if not math.log(self.max_radius) <= last + 1e-9 <= math.log(MAX_RADIUS) + 3.0:
            raise ConfigurationError(
                f"{self.levels} given; alpha nu^levels must reach max_radius, and stay below {MAX_RADIUS:g}",
                field="levels",
            )
        points = self.alpha * self.nu ** np.arange(self.levels + 1, dtype=np.float64)
        points[0] = 0.0
        points[-1] = max(points[-1], self.max_radius)  # where rounding left it a hair short
        points.flags.writeable = False
        object.__setattr__(self, "_points", points)

    @classmethod
    def calibrated(cls, *, epsilon: float, max_radius: float) -> ScalarRelDP:
        """The mechanism with nu = 1 + e^(-eps/6), alpha = r_max e^(-5 eps/12), k = ceil(ln(r_max/alpha)/ln nu).

        Its variance is O(r_max^2 e^(-5 eps/6)) below r_max e^(-eps/4) and O(r^2 e^(-eps/3)) above, up to
        eps = ``MAX_GRID_EPSILON``, whose end points larger levels keep.
        """
        grid = min(check_epsilon(epsilon), MAX_GRID_EPSILON)
        nu = 1.0 + math.exp(-grid / 6.0)
        levels = max(1, math.ceil(5.0 * grid / 12.0 / math.log(nu)))
        alpha = max_radius * math.exp(-5.0 * grid / 12.0)
        return cls(epsilon=epsilon, max_radius=max_radius, levels=levels, nu=nu, alpha=alpha)

    def summary(self, radius: float | None = None) -> dict[str, float]:
        """As for every scalar, after the constants of the grid."""
        return {"nu": self.nu, "alpha": self.alpha, **GridScalar.summary(self, radius)}

    @property
    def scale(self) -> float:
        """1/lambda of Z = (e_J' - offset) / lambda."""
        return 1.0 / self.weight

    @property
    def offset(self) -> float:
        """(1 - lambda) mean(e)."""
        return self.redraw * self.grid_mean

    @property
    def grid_mean(self) -> float:
        """Mean of the end points."""
        return float(self._points.mean())

    @property
    def grid_variance(self) -> float:
        """Variance of an end point drawn uniformly."""
        return float((self._points / self.max_radius).var()) * self.max_radius**2

    def end_points(self, indices: Indices) -> Vector:
        """0 and alpha nu^j."""
        return self._points[indices]

    def lower_index(self, radii: Vector) -> Indices:
        """The last index whose end point is at most r, at most k - 1."""
        found = np.searchsorted(self._points, radii, side="right") - 1
        return np.minimum(found, self.levels - 1).astype(np.int64)


def check_radii(radii: npt.ArrayLike) -> Vector:
    """Magnitudes as doubles, shape (n,).

    Raises:
        ConfigurationError: An entry is negative, NaN, infinite, or no number.
    """
    values = np.asarray(radii)
    if values.dtype.kind not in "iuf" or values.ndim != 1:
        raise ConfigurationError(
            f"{values.dtype} of {values.ndim} dimensions given; numbers are needed", field="radius"
        )
    values = values.astype(np.float64)
    if not bool(np.all(np.isfinite(values) & (values >= 0.0))):
        raise ConfigurationError(
            "a negative, NaN or infinite magnitude given; finite ones from 0 are possible", field="radius"
        )
    return values
