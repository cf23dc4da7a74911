"""What is compared, and what to know of each before its accuracy.

All are set to the same epsilon; what that epsilon protects from whom differs, which is what the columns are for. No
setting depends on labels: those of DP-SGD were fixed on the data sets that come with the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p2p_labeldp.accounting import gaussian
from p2p_labeldp.datasets import Split
from p2p_labeldp.learning import dpsgd
from p2p_labeldp.learning.dpsgd import DPSGD
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.mechanisms.staged_rr import OneStageRR, TwoStageRR

STEPS, CLIP, LEARNING_RATE = 20, 1.0, 1.0
"""Of DP-SGD. All rows in each step: with some hundreds of rows, batches cost more noise than they save."""
ONE_LABEL, ONE_ROW = "differ in one label", "differ in one row, its features included"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One mechanism, but for its numbers.

    Args:
        key: For a machine; of those with a configuration of their own its ``mechanism.kind``.
        name: For a person.
        trusted: With the true labels.
        releases: What leaves.
        against: Whom its epsilon holds against.
        neighbours: What the tables have in common that it can't tell apart.
    """

    key: str
    name: str
    trusted: str
    releases: str
    against: str
    neighbours: str = ONE_LABEL


NOISY = "noisy labels"
RESAMPLING = Method(
    key="resampling",
    name="Algorithm 2",
    trusted="nobody",
    releases=NOISY,
    against="the learner alone",
)
TWO_STAGE = Method(
    key="two_stage_rr",
    name="RRWithPrior, 2 stages",
    trusted="nobody",
    releases="noisy labels, told in two turns",
    against="everybody",
)
UNIFORM_RR = Method(key="uniform_rr", name="UniformRR", trusted="nobody", releases=NOISY, against="everybody")
CLUSTER_RR = Method(
    key="cluster_rr",
    name="ClusterRR",
    trusted="a curator",
    releases="noisy labels, noisy label shares of clusters",
    against="everybody but the curator",
)
ONE_STAGE = Method(
    key="one_stage_rr",
    name="RRWithPrior, 1 stage",
    trusted="a curator",
    releases=NOISY,
    against="everybody but the curator",
)
DP_SGD = Method(
    key="dp_sgd",
    name="DP-SGD",
    trusted="the trainer",
    releases="one model",
    against="everybody but the trainer",
    neighbours=ONE_ROW,
)
NONE = Method(key="none", name="no privacy", trusted="everybody", releases="the labels as they are", against="nobody")
MAJORITY = Method(
    key="majority",
    name="always the commonest",
    trusted="everybody",
    releases="the commonest label, as it is",
    against="nobody",
)

ORDER = (RESAMPLING, TWO_STAGE, UNIFORM_RR, CLUSTER_RR, ONE_STAGE, DP_SGD, NONE, MAJORITY)
"""As they are shown: those that trust nobody first."""

STAGED: dict[str, Callable[[int, float], LabelMechanism]] = {
    TWO_STAGE.key: lambda num_classes, epsilon: TwoStageRR(num_classes=num_classes, epsilon=epsilon),
    ONE_STAGE.key: lambda num_classes, epsilon: OneStageRR.calibrated(num_classes=num_classes, epsilon=epsilon),
}
"""Mechanisms in one place that no configuration names, from (K, epsilon)."""


def central_delta(roster_delta: float, trained_on: int) -> float:
    """Delta of DP-SGD: that of Algorithm 2's smallest cluster, or one in the number of rows where that is less.

    A delta of 1/n or more would allow to publish a random row, and a trainer, who sees all rows, might. Algorithm 2
    does not: there 1/s^2 is about one's own cluster.
    """
    return min(roster_delta, 1 / trained_on)


def trainer(*, epsilon: float, delta: float) -> DPSGD:
    """DP-SGD within ``epsilon`` at ``delta`` for tables that differ in one row, exactly.

    Exchanging a row moves a clipped sum by up to twice the clip, and all steps see all rows: together they are one
    Gaussian release, of mu = 2 sqrt(T) over the noise multiplier.
    """
    noise = 2 * math.sqrt(STEPS) / gaussian.largest_mu(epsilon, delta) * (1 + 1e-12)
    return DPSGD(noise_multiplier=noise, clip=CLIP, sampling_probability=1.0, steps=STEPS, learning_rate=LEARNING_RATE)


def trainers_epsilon(chosen: DPSGD, delta: float) -> float:
    """Upper bound of what ``trainer`` made, at ``delta``."""
    return gaussian.epsilon(2 * math.sqrt(chosen.steps) / chosen.noise_multiplier, delta)


def measured(chosen: DPSGD, split: Split, rng: np.random.Generator) -> float:
    """Accuracy of its model on the held-out rows.

    Features are standardised by the held-out rows, in which neighbours do not differ. By those that are trained on, one
    row would move all others, and no clip would bound what it does to the sum.
    """
    mean, deviation = split.test_features.mean(axis=0), split.test_features.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    weights = chosen.fit(
        (split.train_features - mean) / deviation, split.train_labels, num_classes=len(split.label_space), rng=rng
    )
    return float(np.mean(dpsgd.predict(weights, (split.test_features - mean) / deviation) == split.test_labels))
