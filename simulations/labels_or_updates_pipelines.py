"""The pipelines of labels_or_updates.py: each spends a level on some people, and reaches an accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit

from labels_or_updates_people import Integers, People, Reals, coins
from p2p_labeldp import clustering, population
from p2p_labeldp.accounting import resampling
from p2p_labeldp.accounting.federated import Rounds
from p2p_labeldp.accounting.planning import least_flip
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.learning import erm
from p2p_labeldp.learning.models import LogisticRegression
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.separated import Separated

CLUSTERS = (8, 32, 128)
LEAST_MEMBERS = 15
FIT_ROWS = 4000
TRUSTED_ROUNDS, TRUSTED_STEP = 30, 2.0
BINARY = LabelSpace(classes=("0", "1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How *updates* spends epsilon.

    Args:
        rounds: T; each person takes part in ``participations`` of them, at epsilon / participations.
        step: On the average of a round's reports.
        direction: Share of the level that the direction gets; at 1 no magnitude is sent, and the step is along the
            mean of private directions.
        radius: r_max, in units of sqrt(d + 1); no matter where no magnitude is sent.
        participations: t.
    """

    rounds: int
    step: float
    direction: float
    radius: float = 0.5
    participations: int = 1

    def __str__(self) -> str:
        sent = f"direction {self.direction:g}, r_max {self.radius:g}" if self.direction < 1 else "direction only"
        return f"T {self.rounds}, t {self.participations}, step {self.step:g}, {sent}"


PLANS = (
    Plan(rounds=1, step=1.0, direction=1.0),
    Plan(rounds=1, step=1.0, direction=0.8),
    Plan(rounds=5, step=0.5, direction=1.0),
    Plan(rounds=5, step=2.0, direction=1.0),
    Plan(rounds=5, step=2.0, direction=0.8),
    Plan(rounds=5, step=2.0, direction=0.5),
    Plan(rounds=20, step=0.2, direction=1.0),
    Plan(rounds=20, step=0.5, direction=1.0),
    Plan(rounds=20, step=0.5, direction=0.8),
    Plan(rounds=20, step=2.0, direction=0.8),
    Plan(rounds=20, step=2.0, direction=0.8, radius=1.0),
    Plan(rounds=20, step=0.5, direction=1.0, participations=4),
    Plan(rounds=50, step=1.0, direction=0.8),
)


def level_of(size: int, flip: float) -> float:
    """epsilon at 1/s^2 against the learner, exact."""
    return resampling.epsilon(cluster_size=size, flip_probability=flip, delta=1 / size**2)


@lru_cache(maxsize=4096)
def least(size: int, epsilon: float) -> float:
    """The least flip of a cluster size."""
    return least_flip(lambda flip: level_of(size, flip) <= epsilon)


def ends(size: int) -> tuple[int, int]:
    """The sizes of a grid, of ratio 1.25, between which a size is."""
    below, above = 2, 3
    while above <= size:
        below, above = above, max(above + 1, int(above * 1.25))
    return below, above


@lru_cache(maxsize=16384)
def flip_for(size: int, epsilon: float) -> float:
    """A flip that keeps a cluster within (epsilon, 1/s^2), hardly above the least.

    The larger of the least flips at both ends of the grid, for a level a thousandth lower. Small sizes, whose least
    flips go up and down by a thousandth, are evaluated, and planned by themselves where that is not enough.
    """
    flip = max(least(end, 0.999 * epsilon) for end in ends(size))
    if size < 600 and level_of(size, flip) > epsilon:
        return least(size, epsilon)
    return flip


def linear(fitted: Any) -> tuple[Reals, float]:
    """Weights and intercept of a fitted pipeline of scaling and a linear classifier."""
    scaler, model = fitted[0], fitted[-1]
    if not hasattr(model, "coef_"):  # all reports were alike
        return np.zeros(len(scaler.mean_)), float(2 * model.predict(scaler.mean_[None])[0] - 1)
    w = model.coef_[0] / scaler.scale_
    return w, float(model.intercept_[0] - w @ scaler.mean_)


def learnt(people: People, labels: Integers) -> float:
    """Accuracy of the ordinary fit to some labels."""
    fitted = erm.fit(erm.CORRECTED, people.x, labels, label_space=BINARY, seed=people.seed)
    return people.accuracy(*linear(fitted))


@lru_cache(maxsize=64)
def clusters_of(people: People, count: int) -> Integers:
    """Public clusters of everybody, by features alone."""
    n = len(people.y)
    rows = people.x[:FIT_ROWS]
    count = min(count, n // (2 * LEAST_MEMBERS))
    fitted = clustering.fit(rows, count=count, minimum_size=LEAST_MEMBERS, seed=people.seed)
    found = fitted.assign(people.x)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def by_mates(people: People, epsilon: float, count: int) -> tuple[float, float, float, int]:
    """Accuracy, the largest delta of a cluster, the largest level against the learner with all mates, and clusters."""
    clusters = clusters_of(people, count)
    sizes = np.bincount(clusters)
    flips = [flip_for(int(size), epsilon) for size in sizes]
    played = population.play(people.y, clusters, flips, seed=people.seed)
    level = math.log((1 - min(flips)) / min(flips))
    return (
        learnt(people, played.reports.astype(np.int64)),
        1 / float(sizes.min()) ** 2,
        level,
        len(sizes),
    )


def by_own_flip(people: People, epsilon: float) -> float:
    """Accuracy where everybody sends its own flipped label."""
    rng = coins(people, 1)
    flips = rng.random(len(people.y)) < 1 / (1 + math.exp(epsilon))
    return learnt(people, people.y ^ flips)


def by_updates(people: People, epsilon: float, plan: Plan) -> float:
    """Accuracy of the average model of the rounds."""
    rng = coins(people, 2)
    n, model = len(people.y), LogisticRegression(features=people.x.shape[1])
    release = privately(model.dimension, epsilon / plan.participations, plan.direction, plan.radius)
    theta, mean = np.zeros(model.dimension), np.zeros(model.dimension)
    done = 0
    for _ in range(plan.participations):
        for cohort in np.array_split(rng.permutation(n), plan.rounds // plan.participations):
            gradients = gradients_of(theta, people.x[cohort], people.y[cohort])
            theta = theta - plan.step * release(gradients, rng).mean(axis=0)
            done += 1
            mean += (theta - mean) / done
    return people.accuracy(mean[:-1], float(mean[-1]))


@lru_cache
def privately(
    dimension: int, level: float, direction: float, radius: float
) -> Callable[[Reals, np.random.Generator], Reals]:
    """What is done to a cohort's gradients, of which each costs ``level``."""
    if direction == 1.0:
        return PrivUnit2.calibrated(dimension=dimension, epsilon=level).privatise_many
    return Separated.calibrated(
        dimension=dimension,
        epsilon_direction=direction * level,
        epsilon_magnitude=(1 - direction) * level,
        max_radius=radius * math.sqrt(dimension),
    ).privatise_many


def gradients_of(theta: Reals, x: Reals, y: Integers) -> Reals:
    """Everybody's own gradient, shape (m, d + 1): (p - y) (x, 1)."""
    gaps = expit(x @ theta[:-1] + theta[-1]) - y
    return np.concatenate([gaps[:, None] * x, gaps[:, None]], axis=1)


def by_trusted_learner(people: People, epsilon: float) -> float:
    """Accuracy of full rounds to which the learner adds noise for central (epsilon, 1/n^2)."""
    rng = coins(people, 3)
    n, dimension = len(people.y), people.x.shape[1] + 1
    sigma = central_sigma(n, dimension, epsilon)
    theta, mean = np.zeros(dimension), np.zeros(dimension)
    radius = 0.5 * math.sqrt(dimension)
    for done in range(TRUSTED_ROUNDS):
        gradients = gradients_of(theta, people.x, people.y)
        lengths = np.linalg.norm(gradients, axis=1)
        average = np.minimum(1, radius / np.maximum(lengths, 1e-300)) @ gradients / n
        theta = theta - TRUSTED_STEP * (average + sigma * rng.standard_normal(dimension))
        mean += (theta - mean) / (done + 1)
    return people.accuracy(mean[:-1], float(mean[-1]))


@lru_cache
def central_sigma(people: int, dimension: int, epsilon: float) -> float:
    """Noise on the average."""
    planned = Rounds(population=people, sampling_rate=1.0, rounds=TRUSTED_ROUNDS, projection=0.5 * math.sqrt(dimension))
    return planned.sigma_for(epsilon=epsilon, delta=1 / people**2)
