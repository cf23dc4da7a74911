"""Two laws over the same outcomes: their hockey-stick divergence, and its exact inverse.

Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic function" (2022), for dominating pairs;
the inverse is elementary: delta(eps) = max over events E of P(E) - e^eps Q(E), attained where the ratio P/Q is above
e^eps, so e^eps(delta) = max over such E of (P(E) - delta)/Q(E), and they are the prefixes of the outcomes sorted by
ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from p2p_labeldp.accounting.binomial import Floats
from p2p_labeldp.accounting.tables import MAX_EXPONENT, ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two laws, and what was cut from either.

    Args:
        left: P, any shape.
        right: Q, of the same shape.
        omitted: Probability missing from either, charged to delta.
    """

    left: Floats
    right: Floats
    omitted: float = 0.0

    def delta(self, epsilon: float) -> float:
        """HS_eps(P || Q), rounded up."""
        e = math.exp(min(epsilon, MAX_EXPONENT))
        return min(1.0, float(np.maximum(self.left - e * self.right, 0.0).sum()) * (1 + ROUNDING) + self.omitted)

    def epsilon(self, delta: float) -> float:
        """The least eps >= 0 with HS_eps(P || Q) <= ``delta``, rounded up; infinite if there is none."""
        room = delta - self.omitted
        if room < 0:
            return math.inf
        left, right = self.left.ravel(), self.right.ravel()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratios = np.where(left > 0, left / right, 0.0)
            order = np.argsort(-ratios, kind="stable")
            surplus = np.cumsum(left[order]) - room
            top = float(np.where(surplus > 0, surplus / np.cumsum(right[order]), 0.0).max())
        return math.log(top) * (1 + ROUNDING) + ROUNDING / 10 if top > 1 else 0.0

    def reversed(self) -> Pair:
        return Pair(left=self.right, right=self.left, omitted=self.omitted)
