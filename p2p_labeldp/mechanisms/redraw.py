"""Redrawing: a label is kept with probability 1 - lambda, else replaced by a draw from a public distribution q.

The coin is one 64-bit word, compared with integers, as in ``randomized_response``. ``ceil(lambda q_j 2^64)`` words tell
label j whatever the label was; the rest, at most (1 - lambda) 2^64, tell one's own. So no label is told less often by
others than stated, nor one's own more often, and

    epsilon = ln(1 + (1 - lambda)/(lambda min q))

holds for the words as it does for the real numbers; ``channel[i, j]`` = P(output j | input i), the matrix
(1 - lambda) I + lambda 1 q^T, is met within K 2^-64. One's own label may be what is redrawn: that is accounted for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.interface import Labels, Words
from p2p_labeldp.mechanisms.probability_floor import Distribution
from p2p_labeldp.mechanisms.randomized_response import check_classes

WORDS = 1 << 64


def check_redraw(redraw_probability: float) -> float:
    """Returns lambda if it is above 0 and at most 1: a label that is never redrawn has no privacy."""
    if isinstance(redraw_probability, bool) or not 0 < redraw_probability <= 1:  # NaN compares false
        raise ConfigurationError(
            f"{redraw_probability} given; above 0 and at most 1 is possible", field="redraw_probability"
        )
    return float(redraw_probability)


def redraw_epsilon(redraw_probability: float, least: float) -> float:
    """ln(1 + (1 - lambda)/(lambda q)), q the least probability redrawn: 0 at lambda = 1, infinite at q = 0 below it."""
    if redraw_probability == 1:
        return 0.0
    if least == 0:
        return math.inf
    return math.log1p((1.0 - redraw_probability) / redraw_probability / least)


def redraw_for(epsilon: float, least: float) -> float:
    """lambda = 1/(1 + (e^eps - 1) q), the inverse of ``redraw_epsilon``; eps is at most 700, where e^eps is finite.

    Rounded up until it holds: 1 - lambda has few digits where lambda is nearly 1.
    """
    redraw = 1.0 / (1.0 + math.expm1(epsilon) * least)
    while redraw_epsilon(redraw, least) > epsilon:
        redraw = math.nextafter(redraw, 1.0)
    return redraw


@dataclass(frozen=True, slots=True, kw_only=True)
class Redraw:
    """The channel of one cluster; a ``LocalRandomizer``.

    Args:
        redraw_probability: lambda.
        distribution: q, exact, summing to 1.

    Raises:
        ConfigurationError: A probability out of range.
    """

    redraw_probability: float
    distribution: Distribution
    _told: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)
    _last: npt.NDArray[np.uint64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_redraw(self.redraw_probability)
        check_classes(len(self.distribution))
        if min(self.distribution) < 0 or sum(self.distribution) != 1:
            raise ConfigurationError("probabilities of at least 0 that sum to 1 are needed", field="distribution")
        share = Fraction(self.redraw_probability)
        told, last, end = [], [], 0
        for label, probability in enumerate(self.distribution):
            width = -(-share * probability * WORDS // 1)
            if width and end < WORDS:
                end = min(WORDS, end + width)
                told.append(label)
                last.append(end - 1)
        # A word beyond the last of these keeps its label. Where rounding up left none, no output depends on a label.
        object.__setattr__(self, "_told", np.array(told, dtype=np.int64))
        object.__setattr__(self, "_last", np.array(last, dtype=np.uint64))

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.distribution)

    @property
    def epsilon(self) -> float:
        """Upper bound, given the distribution."""
        return redraw_epsilon(self.redraw_probability, float(min(self.distribution)))

    @property
    def channel(self) -> npt.NDArray[np.float64]:
        """``channel[i, j]`` = P(output j | input i), shape (K, K); rows sum to 1."""
        q = np.array([float(probability) for probability in self.distribution])
        return (1.0 - self.redraw_probability) * np.eye(len(q)) + self.redraw_probability * q

    def randomize(self, labels: Labels, words: Words) -> Labels:
        """Labels of shape (...,) with one word each, to labels of the same shape and type."""
        at = np.searchsorted(self._last, words)
        redrawn = at < len(self._last)
        fresh = self._told[np.minimum(at, len(self._last) - 1)]
        return np.where(redrawn, fresh, labels).astype(labels.dtype)
