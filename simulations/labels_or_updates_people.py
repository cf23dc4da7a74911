"""The people of labels_or_updates.py: a synthetic law with exact accuracies, and the rows of two real tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr

from p2p_labeldp import datasets, randomness

SEED = 93
SLOPE = 4.0

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """The people of a trial, and what a linear model is worth to those who are not among them.

    Args:
        x: Features, shape (n, d), standardised by public numbers.
        y: Labels, shape (n,).
        accuracy: Of the model that says 1 where w x + b > 0.
        seed: Of the trial's coins.
    """

    x: Reals
    y: Integers
    accuracy: Callable[[Reals, float], float]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A cell of the table: where people come from.

    Args:
        name: "synthetic", or a data set's.
        people: n.
        dimension: d.
    """

    name: str
    people: int
    dimension: int

    def trial(self, number: int) -> People:
        """The people of one trial."""
        seed = SEED * 10**6 + number
        if self.name != "synthetic":
            return self._split(seed)
        rng = randomness.numpy_generator(seed, randomness.Stream.DATA, self.people + self.dimension)
        u = rng.standard_normal(self.dimension)
        u /= np.linalg.norm(u)
        x = rng.standard_normal((self.people, self.dimension))
        y = (rng.random(self.people) < expit(SLOPE * (x @ u))).astype(np.int64)
        return People(x=x, y=y, accuracy=lambda w, b: exact_accuracy(w, b, u), seed=seed)

    def _split(self, seed: int) -> People:
        split = datasets.load(self.name, seed=seed, test_share=0.3)
        mean, scale = split.test_features.mean(axis=0), split.test_features.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        x, test = ((rows - mean) / scale for rows in (split.train_features, split.test_features))
        labels = split.test_labels
        x = np.clip(x, -10, 10)  # a pixel that is constant where the scale was taken may be anything elsewhere
        return People(
            x=x,
            y=split.train_labels.astype(np.int64),
            accuracy=lambda w, b: float(np.mean((test @ w + b > 0) == labels)),
            seed=seed,
        )

    @property
    def overlap(self) -> float:
        """What sharing rows adds to the variance of a mean over trials (``comparing.interval``)."""
        return 0.0 if self.name == "synthetic" else 3 / 7


@lru_cache
def _normal_nodes() -> tuple[Reals, Reals]:
    nodes = np.linspace(-8, 8, 801)
    weights = np.exp(-nodes * nodes / 2)
    return nodes, weights / weights.sum()


def exact_accuracy(w: Reals, b: float, u: Reals) -> float:
    """P(model is right) on the synthetic law: given a = <u, x> the score is Gaussian."""
    a, mass = _normal_nodes()
    along = float(w @ u)
    rest = max(float(np.linalg.norm(w - along * u)), 1e-12)
    says_one = ndtr((along * a + b) / rest)
    p = expit(SLOPE * a)
    return float(mass @ (p * says_one + (1 - p) * (1 - says_one)))


def bayes_accuracy() -> float:
    """1 less the Bayes error of the synthetic law."""
    a, mass = _normal_nodes()
    return float(mass @ expit(SLOPE * np.abs(a)))


def coins(people: People, which: int) -> np.random.Generator:
    """A pipeline's coins in a trial."""
    rng: np.random.Generator = randomness.numpy_generator(people.seed, randomness.Stream.DATA, 1_000_000 + which)
    return rng
