"""The loss that makes up for redrawn labels, as soft targets for multinomial logistic regression.

A label y is told as y~ by the channel (1 - lambda) I + lambda 1 q^T of ``mechanisms.redraw``. The corrected loss

    l~(y~) = (l(y~) - beta sum_j q_j l(j)) / (1 - beta)

has, over the draw of y~, the mean (1 - lambda') l(y) + lambda' sum_j q_j l(j), lambda' = (lambda - beta)/(1 - beta): at
beta = lambda it is unbiased, at beta = 0 it is the ordinary loss of the noisy label. (Algorithm 1 of Esfandiari,
Mirrokni, Syed, Vassilvitskii, arXiv 2110.02159v1.) Being linear in the loss it is the cross-entropy with soft targets

    t = (e_y~ - beta q) / (1 - beta),    sum_j t_j = 1,    l~ = logsumexp(z) - <t, z>,    z = W x + b,

convex in (W, b) whatever the signs of t. Targets have negative entries, so it is unbounded below where the weights are
free: a class whose corrected frequency is negative would send its intercept to minus infinity. Hence the L2 term, on
the intercept too, and hence L-BFGS here: scikit-learn's logistic regression takes no negative sample weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError

Reals = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[np.integer[Any]]

MAX_ITERATIONS = 500
TOLERANCE = 1e-6
"""Largest entry of the gradient of the mean loss at which the minimiser stops: far below what noise moves it."""


def soft_targets(
    labels: Labels, *, num_classes: int, distributions: npt.NDArray[np.float64] | None = None, correction: float = 0.0
) -> npt.NDArray[np.float64]:
    """t of each row, shape (n, K).

    Args:
        labels: Told labels, shape (n,), 0 .. K - 1.
        num_classes: K of the label space, whichever labels were told.
        distributions: q of each row, shape (n, K), or of all rows, shape (K,); may be left out at ``correction`` 0.
        correction: beta, at least 0 and below 1.

    Raises:
        ConfigurationError: Shapes or labels that don't fit, or a correction out of range.
    """
    if isinstance(correction, bool) or not 0 <= correction < 1:  # NaN compares false
        raise ConfigurationError(f"{correction} given; at least 0 and below 1 is possible", field="correction")
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ConfigurationError(f"{labels.dtype} of shape {labels.shape} given; n integers are needed", field="labels")
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ConfigurationError(f"indices 0 to {num_classes - 1} are needed", field="labels")
    targets = np.zeros((len(labels), num_classes))
    targets[np.arange(len(labels)), labels] = 1.0
    if correction == 0:
        return targets
    if distributions is None or distributions.shape not in ((num_classes,), targets.shape):
        given = "none" if distributions is None else f"shape {distributions.shape}"
        raise ConfigurationError(
            f"{given} given; ({num_classes},) or {targets.shape} is needed with a correction", field="distributions"
        )
    return (targets - correction * distributions) / (1.0 - correction)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SoftLoss:
    """Mean soft cross-entropy plus l2/2 (|W|^2 + |b|^2), of weights laid out flat.

    Args:
        features: Shape (n, d), float64 or float32; products with it are taken in its precision.
        targets: Shape (n, K), rows summing to 1.
        l2: Above 0.
        intercept: Whether there is a b.
    """

    features: Reals
    targets: npt.NDArray[np.float64]
    l2: float
    intercept: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """Of the weights: (K, d + 1), the intercept last, or (K, d)."""
        return self.targets.shape[1], self.features.shape[1] + int(self.intercept)

    def __call__(self, flat: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        """Value and gradient at ``flat``, the weights of :attr:`shape` raveled."""
        weights = flat.reshape(self.shape)
        logits = scores(self.features, weights, self.intercept)
        top = logits.max(axis=1, keepdims=True)
        powers = np.exp(logits - top)
        sums = powers.sum(axis=1, keepdims=True)
        rows = len(logits)
        value = float((np.log(sums) + top).sum() - np.einsum("nk,nk->", self.targets, logits)) / rows
        residual = powers / sums - self.targets
        gradient = np.empty_like(weights)
        width = self.features.shape[1]
        gradient[:, :width] = residual.T.astype(self.features.dtype, copy=False) @ self.features
        if self.intercept:
            gradient[:, width] = residual.sum(axis=0)
        gradient /= rows
        gradient += self.l2 * weights
        return value + 0.5 * self.l2 * float((weights**2).sum()), gradient.ravel()


def scores(features: Reals, weights: npt.NDArray[np.float64], intercept: bool) -> npt.NDArray[np.float64]:
    """z = W x + b of each row, shape (n, K)."""
    width = features.shape[1]
    product = (features @ weights[:, :width].T.astype(features.dtype, copy=False)).astype(np.float64, copy=False)
    return product + weights[:, width] if intercept else product


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Minimum:
    """Where a minimisation ended.

    Args:
        weights: Shape of the loss.
        value: Of the loss.
        iterations: It took.
        converged: Whether the gradient fell below the tolerance.
    """

    weights: npt.NDArray[np.float64]
    value: float
    iterations: int
    converged: bool


def minimise(loss: SoftLoss, *, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS) -> Minimum:
    """L-BFGS from weights of 0.

    Args:
        loss: What to minimise.
        tolerance: On the largest entry of the gradient.
        max_iterations: After which it stops unconverged.
    """
    from scipy import optimize

    found = optimize.minimize(
        loss,
        np.zeros(loss.shape).ravel(),
        jac=True,
        method="L-BFGS-B",
        # ftol at rounding: a run on noisy targets creeps, and the gradient is what tells
        options={"maxiter": max_iterations, "maxfun": 4 * max_iterations, "gtol": tolerance, "ftol": 1e-15},
    )
    return Minimum(
        weights=found.x.reshape(loss.shape),
        value=float(found.fun),
        iterations=int(found.nit),
        # Where rounding stops it first, no smaller gradient is to be had: that counts.
        converged=bool(found.success),
    )
