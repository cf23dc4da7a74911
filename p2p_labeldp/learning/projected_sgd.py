"""Noisy projected gradient descent in one pass, as ``accounting.iteration`` needs it.

w <- Proj(w - eta (g + Z)): g the mean gradient of a batch that no other step uses, Z of deviation sigma a coordinate,
Proj onto the ball of a radius. Only the last weights are released, and the order is random and secret.

No gradient is clipped: for K >= 3 a clipped step can bring two weight vectors apart, and the theorem falls. Instead
rows [x, 1] longer than R are shortened to R, which touches public features only. The cross-entropy of one row is then
R^2/2-smooth (the Hessian in the logits is at most 1/2) and its gradient (p - e_y) x^T at most sqrt2 R long, so

- eta <= 2/(R^2/2) = 4/R^2 makes every step non-expansive;
- changing one label moves a batch's mean gradient by sqrt2 R/b, changing an example by at most 2 sqrt2 R/b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.dpsgd import Features, Labels, Weights, check_examples, check_positive, residuals, with_ones


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedSGD:
    """How to train.

    Args:
        noise_scale: sigma, deviation of a coordinate's noise, in units of the mean gradient, at least 0.
        learning_rate: eta, above 0 and at most 4/R^2.
        radius: Of the ball, above 0.
        feature_bound: R, of rows with their constant 1 appended, above 0.
        batch_size: b, examples a step, at least 1; what is left over of the data is not used.
        noise_only_steps: Appended without a gradient, at least 0.
    """

    noise_scale: float
    learning_rate: float
    radius: float
    feature_bound: float
    batch_size: int = 1
    noise_only_steps: int = 0

    def __post_init__(self) -> None:
        check_positive(radius=self.radius, feature_bound=self.feature_bound, batch_size=self.batch_size)
        for name, value in (("noise_scale", self.noise_scale), ("noise_only_steps", self.noise_only_steps)):
            if isinstance(value, bool) or not 0 <= value < math.inf:
                raise ConfigurationError(f"{value} given; a finite number of at least 0 is possible", field=name)
        most = 4 / self.feature_bound**2
        if isinstance(self.learning_rate, bool) or not 0 < self.learning_rate <= most:
            raise ConfigurationError(
                f"{self.learning_rate} given; above 0 and at most 4/R^2 = {most:.6g} is possible", field="learning_rate"
            )

    def label_sensitivity(self) -> float:
        """Delta of neighbours that differ in one label: sqrt2 R/b."""
        return math.sqrt(2) * self.feature_bound / self.batch_size

    def example_sensitivity(self) -> float:
        """Delta of neighbours that differ in one example: 2 sqrt2 R/b."""
        return 2 * self.label_sensitivity()

    def steps(self, rows: int) -> int:
        """Gradient steps over ``rows`` examples."""
        return rows // self.batch_size

    def fit(self, features: Features, labels: Labels, *, num_classes: int, rng: np.random.Generator) -> Weights:
        """Trains from weights of 0; arguments and result as ``DPSGD.fit``."""
        check_examples(features, labels, num_classes)
        order = rng.permutation(len(features))
        weights = np.zeros((num_classes, features.shape[1] + 1))
        for step in range(self.steps(len(features))):
            batch = order[step * self.batch_size : (step + 1) * self.batch_size]
            rows = bounded(with_ones(features[batch]), self.feature_bound)
            gradient = residuals(rows, labels[batch], weights).T @ rows / self.batch_size
            weights = self._moved(weights, gradient, rng)
        for _ in range(self.noise_only_steps):
            weights = self._moved(weights, np.zeros_like(weights), rng)
        return weights

    def _moved(self, weights: Weights, gradient: Weights, rng: np.random.Generator) -> Weights:
        noise = self.noise_scale * rng.standard_normal(weights.shape)
        moved = weights - self.learning_rate * (gradient + noise)
        return np.asarray(moved * min(1.0, self.radius / max(float(np.linalg.norm(moved)), 1e-300)))


def bounded(rows: npt.NDArray[np.float64], bound: float) -> npt.NDArray[np.float64]:
    """Rows longer than ``bound`` shortened to it."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, bound / np.maximum(lengths, 1e-300)))
