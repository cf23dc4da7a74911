"""RRWithPrior: randomized response among the labels that a public prior holds likely.

Definition. Given a prior p on K labels and epsilon, let Y_k be the k likeliest labels (of equally likely ones the
lowest-numbered first) and k the number that maximises

    e^eps/(e^eps + k - 1) * sum of p over Y_k,

the probability that the true label is told if it follows the prior; of equally good k the least. A label in Y_k is told
with probability e^eps/(e^eps + k - 1), each other label of Y_k with 1/(e^eps + k - 1); for a label outside Y_k, one of
Y_k is drawn uniformly. Source: Ghazi, Golowich, Kumar, Manurangsi, Zhang, "Deep learning with label differential
privacy" (arXiv 2102.06062), algorithms 2 and 3. It is eps-private whatever the prior, so long as the prior does not
depend on the label; where priors come from is ``staged_rr``'s concern.

The coin is one 64-bit word a label; what rounding takes is taken from the true label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.interface import Labels, Words
from p2p_labeldp.mechanisms.randomized_response import check_classes
from p2p_labeldp.mechanisms.redraw import WORDS
from p2p_labeldp.mechanisms.uniform_rr import check_level

Prior = npt.NDArray[np.float64]

_ROUNDING = Fraction(1, 10**15)  # relative error of 1/(e^eps + k - 1) in doubles, with room


@dataclass(frozen=True, slots=True, kw_only=True)
class RRWithPrior:
    """The mechanism for one label and one prior.

    Args:
        num_classes: K, 2 to 256.
        epsilon: Upper bound at delta = 0, 1e-6 to 700.
    """

    num_classes: int
    epsilon: float

    def __post_init__(self) -> None:
        check_classes(self.num_classes)
        check_level(self.epsilon)

    def likely(self, prior: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Y_k, likeliest first.

        Args:
            prior: Shape (K,): at least 0, summing to 1 within 1e-6.

        Raises:
            ConfigurationError: No distribution on the K labels.
        """
        p = np.asarray(prior, dtype=np.float64)
        if p.shape != (self.num_classes,) or not (p >= 0).all() or not abs(p.sum() - 1) <= 1e-6:
            raise ConfigurationError(
                f"shape {p.shape} given; {self.num_classes} probabilities that sum to 1 are needed", field="prior"
            )
        order = np.argsort(-p, kind="stable")
        others = np.arange(self.num_classes)  # k - 1
        told = np.cumsum(p[order]) / (1.0 + others * math.exp(-self.epsilon))
        return order[: int(told.argmax()) + 1].astype(np.int64)

    def channel(self, prior: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """``channel[i, j]`` = P(output j | input i) under a prior, shape (K, K)."""
        likely = self.likely(prior)
        k = len(likely)
        matrix = np.zeros((self.num_classes, self.num_classes))
        matrix[:, likely] = 1.0 / k
        matrix[np.ix_(likely, likely)] = self._other(k)
        matrix[likely, likely] = 1.0 - (k - 1) * self._other(k)
        return matrix

    def randomize(self, labels: Labels, prior: npt.ArrayLike, words: Words) -> Labels:
        """Labels of shape (n,) that share a prior, with one word each, to labels of the same shape and type."""
        likely = self.likely(prior)
        k = len(likely)
        if k == 1:
            return np.full_like(labels, likely[0])
        width = math.ceil(Fraction(self._other(k)) * (1 + _ROUNDING) * WORDS)
        ranks = np.full(self.num_classes, k)
        ranks[likely] = np.arange(k)
        rank = ranks[labels]
        # Of the k - 1 others each owns `width` words; a label that is not likely divides all words among k.
        slot = np.minimum(words // np.uint64(width), np.uint64(k - 1)).astype(np.int64)
        told = np.where(slot < k - 1, slot + (slot >= rank), rank)
        share = np.uint64(-(-WORDS // k))
        told = np.where(rank == k, (words // share).astype(np.int64), told)
        return likely[told].astype(labels.dtype)

    def _other(self, k: int) -> float:
        """Probability of one of the k - 1 other likely labels: 1/(e^eps + k - 1)."""
        return 1.0 / (math.exp(self.epsilon) + k - 1)
