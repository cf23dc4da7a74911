"""UniformRR: every label is replaced, with probability lambda, by a uniformly drawn one. No clusters, no curator.

K-ary randomized response in the parameters of Algorithm 1 (Esfandiari, Mirrokni, Syed, Vassilvitskii, arXiv
2110.02159v1, Corollary 1): tau = 1/K, so the noisy distribution is uniform whatever the counts and no budget goes into
estimating it; beta = lambda = K/(K + e^eps - 1), so the corrected loss is unbiased.

epsilon = ln(1 + K (1-lambda)/lambda).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.interface import Labels, Words
from p2p_labeldp.mechanisms.odds import just_below
from p2p_labeldp.mechanisms.probability_floor import uniform
from p2p_labeldp.mechanisms.randomized_response import check_classes
from p2p_labeldp.mechanisms.redraw import Redraw, redraw_for
from p2p_labeldp.mechanisms.release import Released, draw_words, members_of

MIN_EPSILON, MAX_EPSILON = 1e-6, 700.0
"""The levels that can be calibrated to: above 700 e^eps is no double, and 44 is where no 64-bit word would lie."""


def check_level(epsilon: float) -> float:
    """Returns ``epsilon`` if a redrawing mechanism can be calibrated to it."""
    if isinstance(epsilon, bool) or not MIN_EPSILON <= epsilon <= MAX_EPSILON:  # NaN compares false
        raise ConfigurationError(f"{epsilon} given; {MIN_EPSILON:g} to {MAX_EPSILON:g} is possible", field="epsilon")
    return float(epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformRR:
    """The mechanism; also a ``LocalRandomizer``. Build it with ``calibrated``, or from lambda.

    Args:
        num_classes: K, 2 to 256.
        redraw_probability: lambda, above 0 and at most 1.
    """

    num_classes: int
    redraw_probability: float
    _redraw: Redraw = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_classes(self.num_classes)
        redraw = Redraw(redraw_probability=self.redraw_probability, distribution=uniform(self.num_classes))
        object.__setattr__(self, "_redraw", redraw)

    @classmethod
    def calibrated(cls, *, num_classes: int, epsilon: float) -> UniformRR:
        """The least lambda whose epsilon is within ``epsilon`` (1e-6 to 700)."""
        level = just_below(check_level(epsilon))
        return cls(num_classes=num_classes, redraw_probability=redraw_for(level, 1 / check_classes(num_classes)))

    @property
    def epsilon(self) -> float:
        """Upper bound at delta = 0, against whoever sees the noisy label with its owner's name."""
        return self._redraw.epsilon

    @property
    def needs_curator(self) -> bool:
        """Nobody: a peer does this alone."""
        return False

    @property
    def keep_probability(self) -> float:
        """1 - lambda + lambda/K: that the label told is one's own, redrawn or not."""
        return 1.0 - self.flip_probability

    @property
    def flip_probability(self) -> float:
        """lambda (K-1)/K: as ``randomized_response`` counts."""
        return self.redraw_probability * (self.num_classes - 1) / self.num_classes

    @property
    def correction(self) -> float:
        """beta = lambda; at lambda = 1 there is nothing to correct."""
        return self.redraw_probability if self.redraw_probability < 1 else 0.0

    @property
    def channel(self) -> npt.NDArray[np.float64]:
        """``channel[i, j]`` = P(output j | input i), shape (K, K)."""
        return self._redraw.channel

    def randomize(self, labels: Labels, words: Words) -> Labels:
        """Labels of shape (...,) with one word each, to labels of the same shape."""
        return self._redraw.randomize(labels, words)

    def release(self, labels: Labels, clusters: Labels, *, count: int, rng: random.Random) -> Released:
        """See ``LabelMechanism``; clusters play no part."""
        members_of(labels, clusters, num_classes=self.num_classes, count=count)
        return Released(
            labels=self.randomize(labels, draw_words(len(labels), rng)).astype(np.int64),
            distributions=np.full((count, self.num_classes), 1.0 / self.num_classes),
            correction=self.correction,
        )

    def summary(self) -> dict[str, Any]:
        """What ``account uniform-rr`` prints."""
        return {
            "epsilon": self.epsilon,
            "delta": 0.0,
            "num_classes": self.num_classes,
            "redraw_probability": self.redraw_probability,
            "keep_probability": self.keep_probability,
            "correction": self.correction,
        }
