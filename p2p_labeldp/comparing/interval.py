"""An interval for the mean accuracy over trials that share rows.

Each trial holds other rows out, but trains on most of the rows that the others train on. Trials are therefore not
independent, and the usual interval of a mean is too narrow. Nadeau and Bengio ("Inference for the generalization
error", Machine Learning 52, 2003, section 3) widen it: the variance of a mean of J trials is taken as (1/J + m/n) times
that of a trial, m rows held out and n trained on. It is an approximation, and a good one in their experiments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from p2p_labeldp.errors import ConfigurationError

CONFIDENCE = 0.95


def interval(shares: Sequence[float], *, held_out: int, trained_on: int) -> tuple[float, float]:
    """Ends of the interval, within [0, 1].

    Args:
        shares: The accuracy of each trial; at least 2.
        held_out: Rows that measure a trial.
        trained_on: Rows that train it.

    Raises:
        ConfigurationError: One trial, whose spread nobody knows.
    """
    from scipy.stats import t

    trials = len(shares)
    if trials < 2:
        raise ConfigurationError(f"{trials} given; at least 2 are needed", field="trials")
    spread = math.sqrt((1 / trials + held_out / trained_on) * variance(shares))
    half = float(t.ppf((1 + CONFIDENCE) / 2, trials - 1)) * spread
    mean = fmean(shares)
    return max(0.0, mean - half), min(1.0, mean + half)
