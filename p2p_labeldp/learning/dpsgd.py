"""DP-SGD for multinomial logistic regression: clipped gradients of Poisson batches, and Gaussian noise.

Needs a trainer who sees all labels, and releases a model, no data set. What it promises is for
``accounting.subsampled`` to say. (Abadi et al., "Deep learning with differential privacy", CCS 2016.)

The gradient of one example is the outer product (p - e_y) x^T, so its norm is |p - e_y| |x|: all examples of a batch
are clipped by weighting rows, and no per-example gradient is ever formed.

Noise is drawn in doubles by NumPy; the guarantee is about the law over the reals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError

Features = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[np.integer[Any]]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DPSGD:
    """How to train.

    Args:
        noise_multiplier: Deviation of the noise over ``clip``, at least 0; 0 is not private.
        clip: Norm to which each example's gradient is clipped, above 0.
        sampling_probability: With which an example is in a batch, above 0 and at most 1.
        steps: T.
        learning_rate: Of the gradient of the mean loss, above 0.
        l2: Weight of the penalty l2/2 |W|^2, at least 0.
    """

    noise_multiplier: float
    clip: float
    sampling_probability: float
    steps: int
    learning_rate: float
    l2: float = 0.0

    def __post_init__(self) -> None:
        check_positive(clip=self.clip, learning_rate=self.learning_rate, steps=self.steps)
        for name, value in (("noise_multiplier", self.noise_multiplier), ("l2", self.l2)):
            if isinstance(value, bool) or not 0 <= value < math.inf:
                raise ConfigurationError(f"{value} given; a finite number of at least 0 is possible", field=name)
        if isinstance(self.sampling_probability, bool) or not 0 < self.sampling_probability <= 1:
            raise ConfigurationError(
                f"{self.sampling_probability} given; above 0 and at most 1 is possible", field="sampling_probability"
            )

    def fit(self, features: Features, labels: Labels, *, num_classes: int, rng: np.random.Generator) -> Weights:
        """Trains from weights of 0.

        Args:
            features: Shape (n, d).
            labels: True labels, shape (n,), 0 .. K - 1.
            num_classes: K of the label space, whichever classes the labels have.
            rng: Draws batches and noise; a seeded one is a study's.

        Returns:
            Weights, shape (K, d + 1), the intercept last; see ``predict``.
        """
        check_examples(features, labels, num_classes)
        weights: Weights = np.zeros((num_classes, features.shape[1] + 1))
        expected = self.sampling_probability * len(features)  # public, where the batch's own size is not
        deviation = self.noise_multiplier * self.clip
        for _ in range(self.steps):
            batch = np.flatnonzero(rng.random(len(features)) < self.sampling_probability)
            total = clipped_sum(with_ones(features[batch]), labels[batch], weights, self.clip)
            total += deviation * rng.standard_normal(weights.shape)
            weights = weights - self.learning_rate * (total / expected + self.l2 * weights)
        return np.asarray(weights)


def predict(weights: Weights, features: Features) -> npt.NDArray[np.int64]:
    """The likeliest class of each row, shape (n,)."""
    return np.asarray((features @ weights[:, :-1].T + weights[:, -1]).argmax(axis=1), dtype=np.int64)


def with_ones(features: Features) -> npt.NDArray[np.float64]:
    """Rows with a constant 1 appended, float64."""
    return np.concatenate([features, np.ones((len(features), 1))], axis=1, dtype=np.float64)


def residuals(rows: npt.NDArray[np.float64], labels: Labels, weights: Weights) -> npt.NDArray[np.float64]:
    """p - e_y of each row, shape (n, K)."""
    logits = rows @ weights.T
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    powers[np.arange(len(labels)), labels] -= 1.0
    return np.asarray(powers)


def clipped_sum(rows: npt.NDArray[np.float64], labels: Labels, weights: Weights, clip: float) -> Weights:
    """Sum of the rows' gradients, each scaled to a norm of at most ``clip``; shape (K, width of a row)."""
    if not len(rows):
        return np.zeros_like(weights)
    gaps = residuals(rows, labels, weights)
    norms = np.sqrt(np.einsum("nk,nk->n", gaps, gaps) * np.einsum("nd,nd->n", rows, rows))
    gaps *= np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, None]
    return np.asarray(gaps.T @ rows)


def check_positive(**values: float) -> None:
    """Refuses what is not a finite number above 0."""
    for name, value in values.items():
        if isinstance(value, bool) or not 0 < value < math.inf:
            raise ConfigurationError(f"{value} given; a finite number above 0 is possible", field=name)


def check_examples(features: Features, labels: Labels, num_classes: int) -> None:
    """Refuses shapes or labels that don't fit."""
    if features.ndim != 2 or labels.shape != features.shape[:1] or not len(labels):
        raise ConfigurationError(
            f"shapes {features.shape} and {labels.shape} given; (n, d) and (n,) with n >= 1 are needed", field="labels"
        )
    if labels.dtype.kind not in "iu" or not 0 <= labels.min() <= labels.max() < num_classes:
        raise ConfigurationError(f"indices 0 to {num_classes - 1} are needed", field="labels")
