"""Lower bounds on epsilon from counts: Clopper-Pearson at both ends.

(epsilon, delta)-privacy says P(E) <= e^epsilon Q(E) + delta for every event E and neighbours P, Q. Seen x times in n
runs on the one and x' times in n' on the other, with probability at least 1 - alpha

    epsilon >= log((CP_low(x) - delta) / CP_high(x')),

where each end may err with alpha / 2 (Clopper and Pearson, Biometrika 26, 1934). The event and its direction must have
been fixed before the data; if the larger of two bounds is taken, each end may err with alpha / 4 only.

A lower bound is what was observed, never what is promised: it has its own type, without a field ``epsilon``, so that it
can't be printed where a guarantee belongs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from p2p_labeldp.auditing import checked
from p2p_labeldp.errors import ConfigurationError

Reals = npt.NDArray[np.float64]

CONFIDENCE = 0.99
"""Default. At .95 one of forty audits of a mechanism against itself shows more than 0 more often than is wished."""


def clopper_pearson_low(successes: Any, trials: int, alpha: float) -> Reals:
    """Lower end: the true probability is below it with probability at most ``alpha``. Elementwise, 0 at no success."""
    x = np.asarray(successes, dtype=np.float64)
    ends = special.betaincinv(np.maximum(x, 1e-300), trials - x + 1.0, alpha)
    return np.asarray(np.where(x <= 0.0, 0.0, ends))


def clopper_pearson_high(successes: Any, trials: int, alpha: float) -> Reals:
    """Upper end: the true probability is above it with probability at most ``alpha``. Elementwise, 1 if none failed."""
    x = np.asarray(successes, dtype=np.float64)
    ends = special.betainccinv(x + 1.0, np.maximum(trials - x, 1e-300), alpha)
    return np.asarray(np.where(x >= trials, 1.0, ends))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often an event, fixed beforehand, was seen on two neighbouring data sets.

    Args:
        direction: Name of the direction the event favours, for the record.
        hits: Runs on the favoured data set that fell into the event.
        trials: Runs on it.
        hits_neighbour: Runs on the neighbour that fell into the event.
        trials_neighbour: Runs on it.

    Raises:
        ConfigurationError: Hits that are negative or more than the trials.
    """

    direction: str
    hits: int
    trials: int
    hits_neighbour: int
    trials_neighbour: int

    def __post_init__(self) -> None:
        checked.whole("trials", self.trials, least=1)
        checked.whole("trials_neighbour", self.trials_neighbour, least=1)
        checked.whole("hits", self.hits, least=0, most=self.trials)
        checked.whole("hits_neighbour", self.hits_neighbour, least=0, most=self.trials_neighbour)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """Epsilon at ``delta`` is at least ``epsilon_lower``, unless a chance of 1 - ``confidence`` has struck.

    Args:
        epsilon_lower: Not negative, always finite. 0 says that nothing was seen, not that there is nothing.
        confidence: Probability, before the data, that the statement would hold.
        delta: The delta it is for.
        direction: The direction that gave it.
        tally: The counts behind it.
    """

    epsilon_lower: float
    confidence: float
    delta: float
    direction: str
    tally: Tally

    def __str__(self) -> str:
        return (
            f"measured: epsilon is at least {self.epsilon_lower:.4g} at delta {self.delta:.3g} "
            f"(confidence {self.confidence:.10g}; a lower bound, no guarantee)"
        )


def lower_bound(*tallies: Tally, delta: float, confidence: float = CONFIDENCE) -> LowerBound:
    """The bound of one tally, or the larger of several at the price of sharing the error among them.

    Args:
        *tallies: One per event fixed beforehand.
        delta: In [0, 1).
        confidence: In (0, 1), of the whole statement.

    Raises:
        ConfigurationError: No tally, or a number out of range.
    """
    if not tallies:
        raise ConfigurationError("none given; one or more are needed", field="tallies")
    checked.delta(delta)
    alpha = union_bound_alpha(confidence, len(tallies))
    bounds = [_bound(tally, delta, alpha) for tally in tallies]
    best = int(np.argmax(bounds))
    return LowerBound(
        epsilon_lower=bounds[best],
        confidence=confidence,
        delta=delta,
        direction=tallies[best].direction,
        tally=tallies[best],
    )


def union_bound_alpha(confidence: float, tallies: int = 1) -> float:
    """What each Clopper-Pearson end of ``tallies`` may err, for choosing events that fit ``lower_bound``."""
    return (1.0 - checked.confidence(confidence)) / (2 * tallies)


def _bound(tally: Tally, delta: float, alpha: float) -> float:
    low = float(clopper_pearson_low(tally.hits, tally.trials, alpha)) - delta
    high = float(clopper_pearson_high(tally.hits_neighbour, tally.trials_neighbour, alpha))
    if not low > 0.0:
        return 0.0
    # high is positive: a Clopper-Pearson upper end is 0 at no number of trials.
    return max(0.0, math.log(low) - math.log(high))
