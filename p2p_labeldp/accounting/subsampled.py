"""DP-SGD as it is accounted today: Gaussian noise on Poisson batches, composed by dp-accounting.

Two relations of neighbours. In *add or remove* one example is there or not, as most published figures have it.
*Replace* exchanges an example for another, or its label: what label differential privacy asks, and dearer, because the
clipped gradient may turn round: the pair (1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1), in units of the clip.

PLD rounds losses up to a grid, so it is an upper bound; RDP is an older one, for add or remove, looser but where
epsilon is so small that the grid shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from p2p_labeldp.accounting import renyi
from p2p_labeldp.accounting.ranges import check_count, check_delta
from p2p_labeldp.errors import ConfigurationError

Relation = Literal["replace", "add_or_remove"]

INTERVAL = 1e-4
"""Grid of the losses of one step: epsilon comes out too large by a few times sqrt(steps) times this."""
RANGE = 50.0
"""Losses of one step up to which that grid is kept; coarser in proportion where they are larger, and finer where they
are all below 1."""
LEAST_DELTA = 1e-12
"""Below it the truncation of dp-accounting's convolutions makes every epsilon infinite or wrong."""
CONVOLUTION_ERROR = 2e-16
"""Of each step, charged to delta: composing T steps raises rounded Fourier coefficients to the T-th power. Measured
against the exact Gaussian mechanism it was up to 4e-17, and deltas below it came out too small, or negative."""

PRECISION = 2e-3
LEAST_NOISE, MOST_NOISE = 0.25, 1000.0
"""Noise that is searched: below a quarter of the clip one step's losses fill the grid, and nobody trains there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsampledGaussian:
    """T steps.

    Args:
        noise_multiplier: Deviation of the noise over the clipping norm.
        sampling_probability: q, with which each example is in a batch, on its own; above 0 and at most 1.
        steps: T.

    Raises:
        ConfigurationError: A number out of range.
    """

    noise_multiplier: float
    sampling_probability: float
    steps: int

    def __post_init__(self) -> None:
        check_count(self.steps, "steps")
        if isinstance(self.noise_multiplier, bool) or not 0 < self.noise_multiplier < math.inf:
            raise ConfigurationError(
                f"{self.noise_multiplier} given; a finite number above 0 is possible", field="noise_multiplier"
            )
        if isinstance(self.sampling_probability, bool) or not 0 < self.sampling_probability <= 1:
            raise ConfigurationError(
                f"{self.sampling_probability} given; above 0 and at most 1 is possible", field="sampling_probability"
            )

    def pld_epsilon(self, delta: float, *, relation: Relation = "replace") -> float:
        """Upper bound at ``delta``, at least 1e-12, by privacy loss distributions; infinite where the steps are so many
        that their convolution's rounding hides ``delta``."""
        from dp_accounting import NeighboringRelation
        from dp_accounting.pld import privacy_loss_distribution as pld

        left = _check_delta(delta) - CONVOLUTION_ERROR * self.steps
        if left <= 0:
            return math.inf
        neighbours = {
            "replace": NeighboringRelation.REPLACE_ONE,
            "add_or_remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
        }
        step = pld.from_gaussian_mechanism(
            self.noise_multiplier,
            sampling_prob=self.sampling_probability,
            value_discretization_interval=self._interval,
            neighboring_relation=neighbours[relation],
        )
        return float(step.self_compose(self.steps).get_epsilon_for_delta(left))

    def rdp_epsilon(self, delta: float) -> float:
        """Upper bound at ``delta``, add or remove, by Renyi divergences of orders up to 10^6."""
        return renyi.epsilon(
            noise_multiplier=self.noise_multiplier,
            sampling_probability=self.sampling_probability,
            steps=self.steps,
            delta=_check_delta(delta),
        )

    @property
    def _interval(self) -> float:
        reach = 0.5 / self.noise_multiplier**2 + 10.0 / self.noise_multiplier  # ten deviations from the mean loss
        return INTERVAL * (max(1.0, reach / RANGE) if reach > 1.0 else reach)


def noise_for(
    *, epsilon: float, delta: float, sampling_probability: float, steps: int, relation: Relation = "replace"
) -> float:
    """A noise multiplier whose PLD epsilon at ``delta`` is within ``epsilon`` and at most .2 % below it.

    Where logarithms are nearly on a line, a chord finds the multiplier in a few of the accountant's half seconds. Only
    what was evaluated and holds is returned.

    Raises:
        ConfigurationError: No multiplier up to 1000 does.
    """

    def spent(noise: float) -> float:
        tried = SubsampledGaussian(noise_multiplier=noise, sampling_probability=sampling_probability, steps=steps)
        return tried.pld_epsilon(delta, relation=relation)

    return least_noise(spent, epsilon)


def least_noise(spent: Callable[[float], float], epsilon: float) -> float:
    """A noise multiplier at which ``spent``, which falls with it, is within ``epsilon`` and at most .2 % below.

    Raises:
        ConfigurationError: No multiplier up to 1000 does.
    """
    if isinstance(epsilon, bool) or not 0 < epsilon < math.inf:
        raise ConfigurationError(f"{epsilon} given; a finite number above 0 is needed", field="epsilon")
    aim = epsilon * (1 - PRECISION / 2)
    low, high = LEAST_NOISE, 1.0
    at_low, at_high = math.inf, spent(high)
    while at_high > epsilon:
        low, at_low, high = high, at_high, 2 * high
        if high > MOST_NOISE:
            raise ConfigurationError(f"{epsilon} given; more is needed at this delta", field="epsilon")
        at_high = spent(high)
    while at_high < epsilon * (1 - PRECISION) and high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        if math.isfinite(at_low) and at_high > 0:
            share = math.log(at_low / aim) / math.log(at_low / at_high)
            chord = low * (high / low) ** share
            middle = chord if low < chord < high else middle
        found = spent(middle)
        if found <= epsilon:
            high, at_high = middle, found
        else:
            low, at_low = middle, found
    return high


def _check_delta(delta: float) -> float:
    if check_delta(delta) < LEAST_DELTA:
        raise ConfigurationError(f"{delta} given; {LEAST_DELTA:g} and above is possible", field="delta")
    return float(delta)
