"""What a model is to the rounds: a flat vector of parameters, and the gradient of a client's loss in it.

The interface is small so that anything differentiable fits behind it. Parameters travel, are clipped and privatised as
one vector; how they are shaped is the model's own business. ``MODELS`` names what can stand in a manifest: a function
of (number of features, number of classes).

- ``LogisticRegression``: two classes, one weight vector and an intercept, d + 1 parameters
- ``MultinomialRegression``: K classes, K (d + 1) parameters, by softmax
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError

Vector = npt.NDArray[np.float64]
Features = npt.NDArray[np.float64]
Labels = npt.NDArray[np.integer[Any]]


@runtime_checkable
class Model(Protocol):
    """A model of ``dimension`` parameters. Methods are pure."""

    @property
    def dimension(self) -> int:
        """Number of parameters, all layers together."""
        ...

    def initial(self, seed: int) -> Vector:
        """Where training begins, shape (dimension,); public, so a seed that everybody knows is enough."""
        ...

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> Vector:
        """Of the mean loss of one client's rows, shape (dimension,).

        Args:
            parameters: Shape (dimension,).
            features: Shape (m, d), m >= 1.
            labels: Shape (m,), indices of classes.
        """
        ...

    def predict(self, parameters: Vector, features: Features) -> npt.NDArray[np.int64]:
        """The likeliest class of each row, shape (m,)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticRegression:
    """Two classes: the loss is log(1 + e^(-s (w x + b))), s = 1 for class 1 and -1 for class 0.

    Args:
        features: d, at least 1.
    """

    features: int

    def __post_init__(self) -> None:
        _check(self.features, "features", 1)

    @property
    def dimension(self) -> int:
        """d weights and an intercept."""
        return self.features + 1

    def initial(self, seed: int) -> Vector:
        """Zeros: the loss is convex."""
        return np.zeros(self.dimension)

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> Vector:
        """Mean over the rows of (p - y) (x, 1)."""
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused by whoever clips
            gaps = _sigmoid(features @ parameters[:-1] + parameters[-1]) - labels
            return np.append(gaps @ features, gaps.sum()) / len(labels)

    def predict(self, parameters: Vector, features: Features) -> npt.NDArray[np.int64]:
        """1 where w x + b > 0."""
        return np.asarray(features @ parameters[:-1] + parameters[-1] > 0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultinomialRegression:
    """K classes by softmax, of which one is redundant.

    Args:
        features: d, at least 1.
        classes: K, at least 2.
    """

    features: int
    classes: int

    def __post_init__(self) -> None:
        _check(self.features, "features", 1)
        _check(self.classes, "classes", 2)

    @property
    def dimension(self) -> int:
        """K rows of d weights and an intercept."""
        return self.classes * (self.features + 1)

    def initial(self, seed: int) -> Vector:
        """Zeros: the loss is convex."""
        return np.zeros(self.dimension)

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> Vector:
        """Mean over the rows of (p - e_y) (x, 1)^T, flat, a class after the other."""
        with np.errstate(over="ignore", invalid="ignore"):
            logits = self._logits(parameters, features)
            gaps = np.exp(logits - logits.max(axis=1, keepdims=True))
            gaps /= gaps.sum(axis=1, keepdims=True)
            gaps[np.arange(len(labels)), labels] -= 1.0
            weights = np.concatenate([gaps.T @ features, gaps.sum(axis=0)[:, None]], axis=1)
            return np.asarray(weights.ravel() / len(labels))

    def predict(self, parameters: Vector, features: Features) -> npt.NDArray[np.int64]:
        """The class of the largest logit."""
        return np.asarray(self._logits(parameters, features).argmax(axis=1), dtype=np.int64)

    def _logits(self, parameters: Vector, features: Features) -> Vector:
        weights = parameters.reshape(self.classes, self.features + 1)
        return np.asarray(features @ weights[:, :-1].T + weights[:, -1])


def _sigmoid(x: Vector) -> Vector:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def _check(value: int, field: str, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{value} given; an integer of at least {least} is possible", field=field)


def _logistic(features: int, classes: int) -> Model:
    if classes == 2:
        return LogisticRegression(features=features)
    return MultinomialRegression(features=features, classes=classes)


MODELS: dict[str, Callable[[int, int], Model]] = {"logistic_regression": _logistic}
"""Name in a manifest to a function of features and classes."""


def build(name: str, *, features: int, classes: int) -> Model:
    """The model of that name.

    Raises:
        ConfigurationError: There is none, or a number is out of range.
    """
    if name not in MODELS:
        raise ConfigurationError(f"{name!r} given; one of {', '.join(MODELS)} is possible", field="model")
    _check(classes, "classes", 2)
    return MODELS[name](features, classes)
