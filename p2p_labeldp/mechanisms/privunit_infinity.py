"""PrivUnit-infinity: a private point of the cube [-1, 1]^d.

Definition. Let u be in [-1, 1]^d. Round it to signs, +1 at j with probability (1 + u_j)/2, independently. With
probability p draw V uniformly from the sign vectors that agree with the rounded one in at least k places, else
uniformly from those that agree in fewer. Release Z = V / m, E[Z | u] = u, where with b_j = C(d, j)/2^d

    P_k = sum of b_j over j >= k,   M_k = C(d-1, k-1)/2^d,   m = M_k [p/P_k - (1-p)/(1-P_k)].

The exact level of local privacy is that of every ``direction``, as the rounding looks at u only through its own coins.
At a given level m_k = (e^eps - 1) M_k / (1 + (e^eps - 1) P_k); m_(k+1) > m_k exactly if m_k > 2k/d - 1, so the best
threshold is the first k where m_k <= 2k/d - 1, found by bisection.

On randomness see ``privunit``.

Source: Bhowmick et al., arXiv 1812.00984 (PrivUnit-infinity); the exact level's optimum is derived in this
project.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.binomial_tail import log_point, tail_weights
from p2p_labeldp.mechanisms.cap import check_dimension
from p2p_labeldp.mechanisms.direction import Direction
from p2p_labeldp.mechanisms.norms import CHUNK, Measured, Update, check_update, maximum, maximum_rows
from p2p_labeldp.mechanisms.odds import check_epsilon, just_below, log_expm1, log_sigmoid, tosses

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnitInfinity(Direction):
    """The mechanism with its parameters; build it with ``calibrated``.

    Args:
        dimension: d, 1 to 10^8.
        epsilon: The level claimed, at least ``epsilon_exact``.
        threshold_agreements: k, d/2 < k <= d.
        epsilon_exact: log(p/(1-p)) + log((1-P_k)/P_k) > 0.

    Raises:
        ConfigurationError: A parameter out of range, or a claim below the exact level.
    """

    threshold_agreements: int

    def __post_init__(self) -> None:
        Direction.__post_init__(self)
        d, k = self.dimension, self.threshold_agreements
        if isinstance(k, bool) or not isinstance(k, int) or not d < 2 * k <= 2 * d:
            raise ConfigurationError(f"{k} given; {d // 2 + 1} to {d} is possible", field="threshold_agreements")

    @classmethod
    def calibrated(cls, *, dimension: int, epsilon: float) -> PrivUnitInfinity:
        """The mechanism of least error that is ``epsilon``-locally private (1e-6 to 1e5)."""
        check_dimension(dimension)
        target = just_below(check_epsilon(epsilon))
        below, k = dimension // 2, dimension  # the optimum lies in (below, k]
        while k - below > 1:
            middle = (below + k) // 2
            if math.exp(_log_constant(dimension, middle, target)) <= (2 * middle - dimension) / dimension:
                k = middle
            else:
                below = middle
        return cls(dimension=dimension, epsilon=float(epsilon), threshold_agreements=k, epsilon_exact=target)

    @property
    def log_cap_mass(self) -> float:
        """log P_k, the share of the sign vectors with at least k agreements."""
        return _log_tail(self.dimension, self.threshold_agreements)[0]

    @property
    def log_complement(self) -> float:
        """log(1 - P_k)."""
        return math.log1p(-math.exp(self.log_cap_mass))

    @property
    def log_m(self) -> float:
        """log m of E[V | u] = m u; every entry of every output is 1/m or -1/m."""
        return _log_constant(self.dimension, self.threshold_agreements, self.epsilon_exact)

    @property
    def squared_length(self) -> float:
        """d, of a corner."""
        return float(self.dimension)

    @property
    def variance(self) -> float:
        """E|Z - u|^2 = d (1/m^2 - 1), Euclidean, for u a corner; within the cube it is d/m^2 - |u|^2."""
        return self.dimension * math.expm1(-2.0 * self.log_m)

    @property
    def threshold(self) -> dict[str, float]:
        """k, and m."""
        return {"threshold_agreements": self.threshold_agreements, "m": self.m}

    def in_cap(self, outputs: Vector, points: Vector) -> npt.NDArray[np.bool_]:
        """At least k agreements.

        Raises:
            ConfigurationError: A point that is no corner; its law, over its roundings, has more than two values.
        """
        if not np.all(np.abs(points) == 1.0):
            raise ConfigurationError("an entry is neither -1 nor 1; corners of the cube are possible", field="points")
        agreements = 0.5 * (self.dimension + np.sign(outputs) @ points.T)
        return np.asarray(agreements >= self.threshold_agreements)

    def measure(self, update: Update) -> Measured:
        """Checks an update of shape (d,) and takes its largest entry."""
        return maximum(update, self.dimension)

    def unit_rows(self, updates: Update) -> tuple[Vector, Vector]:
        """Checks updates of shape (n, d); the rows divided by their largest entries, and these."""
        return maximum_rows(updates, self.dimension)

    def privatise(self, update: Update, rng: np.random.Generator) -> Vector:
        """One private draw of a point of the cube, shape (d,), float64; its mean is the point.

        Raises:
            ConfigurationError: An entry outside [-1, 1]: the caller scales, ``separated`` does it privately.
        """
        measured = self.measure(update)
        _refuse_outside(measured.norm)
        return self.release(Measured(values=measured.values, norm=1.0, exponent=0), 1.0, rng)

    def release(self, measured: Measured, scale: float, rng: np.random.Generator) -> Vector:
        """``scale`` times Z for a measured update divided by its norm; 0 stays 0 and gets uniform signs."""
        d, norm = self.dimension, measured.norm if measured.norm > 0.0 else 1.0
        positive = np.empty(d, dtype=np.bool_)
        for start in range(0, d, CHUNK):
            point = np.divide(measured.values[start : start + CHUNK], norm, dtype=np.float64)
            np.less(2.0 * rng.random(point.size) - 1.0, point, out=positive[start : start + CHUNK])
        positive ^= _subset(d, d - int(self.agreements(1, rng)[0]), rng)
        amplitude = scale * self.output_norm
        return np.where(positive, amplitude, -amplitude)

    def privatise_many(self, updates: Update, rng: np.random.Generator) -> Vector:
        """Independent draws for the rows of ``updates``, shape (n, d): the law of ``privatise``, another stream."""
        points = check_update(updates, (-1, self.dimension))
        _refuse_outside(float(np.abs(points).max(initial=0.0)))
        agreements = self.agreements(len(points), rng)
        kept = np.where(np.arange(self.dimension) < agreements[:, None], self.output_norm, -self.output_norm)
        signs: Vector = np.where(2.0 * rng.random(points.shape) - 1.0 < points, 1.0, -1.0)
        signs *= rng.permuted(kept, axis=1)
        return signs

    def agreements(self, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draws the number of places in which V agrees with the rounded u, shape (count,)."""
        d, k = self.dimension, self.threshold_agreements
        few = tosses(log_sigmoid(-self.log_odds), count, rng)
        drawn = np.empty(count, dtype=np.int64)
        pending = np.flatnonzero(few)
        while pending.size:  # at least half of the binomial lies below k
            proposal = rng.binomial(d, 0.5, pending.size)
            accepted = proposal < k
            drawn[pending[accepted]] = proposal[accepted]
            pending = pending[~accepted]
        total = np.cumsum(tail_weights(d, k))
        many = count - int(few.sum())
        steps = np.searchsorted(total, rng.random(many) * total[-1], side="right")
        drawn[~few] = k + np.minimum(steps, total.size - 1)
        return drawn


def _subset(d: int, size: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """A uniform subset of ``size`` of d places, shape (d,).

    Every place tosses its own coin; what came up, given its number, is a uniform subset of that number, and stays
    uniform when uniform places are taken away or added. Drawing it without replacement takes four times as long.
    """
    chosen = np.empty(d, dtype=np.bool_)
    for start in range(0, d, CHUNK):
        places = chosen[start : start + CHUNK]
        np.less(rng.random(places.size), size / d, out=places)
    surplus = int(np.count_nonzero(chosen)) - size
    if surplus:
        pool = np.flatnonzero(chosen if surplus > 0 else ~chosen)
        chosen[pool[rng.choice(pool.size, abs(surplus), replace=False, shuffle=False)]] = surplus < 0
    return chosen


def _log_tail(d: int, k: int) -> tuple[float, float]:
    """log P_k, and log of P_k / b_k."""
    log_sum = math.log(float(tail_weights(d, k).sum()))
    return min(log_point(d, k) + log_sum, math.log(0.5)), log_sum


def _log_constant(d: int, k: int, level: float) -> float:
    """log m_k at an exact level: (k/d) (b_k/P_k) / (1 + 1/((e^level - 1) P_k)), as M_k = b_k k/d."""
    log_tail, log_sum = _log_tail(d, k)
    return math.log(k / d) + log_sigmoid(log_expm1(level) + log_tail) - log_sum


def _refuse_outside(largest: float) -> None:
    if not largest <= 1.0:
        raise ConfigurationError(f"an entry of size {largest} given; -1 to 1 is possible", field="update")
