"""Amplification by iteration: one pass of noisy projected gradient descent, of which only the last weights are seen.

w <- Proj(w - eta (g + Z)), Z ~ N(0, sigma^2 I), for a convex, beta-smooth loss and eta <= 2/beta, so that every step
without its noise brings no two points further apart. An example used j steps from the end (j = 1: the last one) is then
hidden by the noise of j steps, as if it had been told once under mu_j = Delta/(sigma sqrt j), Delta the distance of
neighbours' gradients (Feldman, Mironov, Talwar, Thakurta, arXiv 1808.06651, theorem 22; for Gaussian noise the
trade-off, not only its Renyi divergences). What Delta is, ``learning.projected_sgd`` says: between examples twice the
Lipschitz constant, between labels less; over batches of b it is divided by b.

The last example has no amplification at all. So a statement about a data set needs one of

- a uniformly random order that stays secret: delta(eps) is the mean over positions of the delta at mu_j;
- a fixed order, priced at its worst position, or with m steps of noise alone appended: mu_j, j from m + 1 up.

Quantiles over positions describe how most examples fare; they are no guarantee for the data set. Nor is a random order
at delta = 1/n: publishing one random example satisfies it. Print it beside delta = 1/(10 n).

Clipping gradients breaks the theorem for three classes or more: a clipped step can bring points apart. Bound features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import special

from p2p_labeldp.accounting import gaussian
from p2p_labeldp.accounting.ranges import check_count, check_delta
from p2p_labeldp.errors import ConfigurationError

MAX_STEPS = 10**7
"""An array of as many doubles a few times over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One pass.

    Args:
        steps: n/b, gradient steps, each with its own examples.
        noise_multiplier: sigma/Delta.
        noise_only_steps: m, appended without a gradient.

    Raises:
        ConfigurationError: A number out of range.
    """

    steps: int
    noise_multiplier: float
    noise_only_steps: int = 0

    def __post_init__(self) -> None:
        check_count(self.steps, "steps")
        check_count(self.noise_only_steps, "noise_only_steps", least=0)
        if self.steps > MAX_STEPS:
            raise ConfigurationError(f"{self.steps} given; 1 to {MAX_STEPS} are possible", field="steps")
        if isinstance(self.noise_multiplier, bool) or not 0 < self.noise_multiplier < math.inf:
            raise ConfigurationError(
                f"{self.noise_multiplier} given; a finite number above 0 is possible", field="noise_multiplier"
            )

    def mu(self, remaining: int) -> float:
        """mu_j of an example used ``remaining`` = j gradient steps from the end, its own included: 1 to ``steps``."""
        if check_count(remaining, "remaining") > self.steps:
            raise ConfigurationError(f"{remaining} given; 1 to {self.steps} are possible", field="remaining")
        return 1.0 / (self.noise_multiplier * math.sqrt(remaining + self.noise_only_steps))

    def epsilon_at(self, remaining: int, delta: float) -> float:
        """Upper bound at ``delta`` for that example."""
        return gaussian.epsilon(self.mu(remaining), delta)

    def worst_epsilon(self, delta: float) -> float:
        """Upper bound at ``delta`` in a fixed order: of the example used last."""
        return self.epsilon_at(1, delta)

    def random_order_epsilon(self, delta: float) -> float:
        """Upper bound at ``delta`` in a secret, uniformly random order."""
        means = self._means()
        return gaussian.least_epsilon(lambda eps: float(gaussian.delta(means, eps).mean()), check_delta(delta))

    def quantile_epsilon(self, share: str | float | Fraction, delta: float) -> float:
        """The least epsilon that bounds at least a ``share`` of the positions, above 0 and at most 1; 1 is the worst.

        No guarantee for the data set: the others are bounded by more.
        """
        exact = share if isinstance(share, Fraction) else Fraction(str(share))
        if not 0 < exact <= 1:
            raise ConfigurationError(f"{share} given; above 0 and at most 1 is possible", field="share")
        return self.epsilon_at(1 + math.floor((1 - exact) * self.steps), delta)

    def renyi_at(self, remaining: int, alpha: float) -> float:
        """Renyi divergence of order ``alpha`` > 1: alpha mu_j^2/2."""
        return _check_alpha(alpha) * self.mu(remaining) ** 2 / 2

    def random_order_renyi(self, alpha: float) -> float:
        """Of order ``alpha`` in a random order: exp((alpha-1) eps) is at most the mean of its value over positions."""
        losses = (_check_alpha(alpha) - 1) * alpha * self._means() ** 2 / 2
        return float(special.logsumexp(losses) - math.log(self.steps)) / (alpha - 1)

    def _means(self) -> npt.NDArray[np.float64]:
        remaining = np.arange(1, self.steps + 1, dtype=np.float64) + self.noise_only_steps
        return 1.0 / (self.noise_multiplier * np.sqrt(remaining))


def _check_alpha(alpha: float) -> float:
    if isinstance(alpha, bool) or not 1 < alpha < math.inf:
        raise ConfigurationError(f"{alpha} given; a finite number above 1 is needed", field="alpha")
    return float(alpha)
