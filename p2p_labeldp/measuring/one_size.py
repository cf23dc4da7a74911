"""One cluster size: the accountant's numbers, an audit of the population engine, and the accuracy of a study.

Upper bounds come from ``accounting``, the lower bound from ``auditing``, which knows nothing of it. The audit runs on
the population engine; the rounds of different sizes toss different coins, since each size has round numbers of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

import p2p_labeldp
from p2p_labeldp import datasets, experiment, population, randomness
from p2p_labeldp.accounting import resampling, shuffle, targets, theorems
from p2p_labeldp.accounting.planning import roster_delta
from p2p_labeldp.accounting.ranges import check_count
from p2p_labeldp.accounting.views import PERMUTE, views
from p2p_labeldp.auditing.audit import Audit, audit
from p2p_labeldp.auditing.lower_bound import CONFIDENCE
from p2p_labeldp.auditing.observed import Array, Rounds
from p2p_labeldp.config import Clusters, Config, Mechanism, config_hash
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.measuring.row import Row
from p2p_labeldp.mechanisms.randomized_response import largest_flip, local_epsilon

TRIALS = 1_000_000
ACCURACY_ROUNDS = 5
"""Studies whose accuracy is averaged: seeds s, s + 1, .., each with a split, a clustering and flips of its own."""
_ROUND_NUMBERS = 1 << 10
"""Round numbers set apart for a size: an audit of one takes three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is measured.

    Args:
        config: Its data, model, and flip probability or target; its clusters are replaced by those of each size.
        trials: Rounds of a cluster behind each lower bound.
        seed: Of the study.
        confidence: Of each lower bound.
        accuracy: Whether studies are run for the accuracy.

    Raises:
        ConfigurationError: A number out of range, or an exchange that is not what is measured.
    """

    config: Config
    trials: int = TRIALS
    seed: int = 0
    confidence: float = CONFIDENCE
    accuracy: bool = True

    def __post_init__(self) -> None:
        if self.config.exchange.kind == PERMUTE:
            raise ConfigurationError(
                f"{PERMUTE!r} given; 'resample' is what is measured, the shuffle stands beside it in every row",
                field="exchange.kind",
            )
        name = self.config.data.name
        if name is None:
            raise ConfigurationError("given; what is measured is a data set with a name", field="data.csv")
        classes = len(datasets.label_space_of(name))
        if classes != 2:
            raise ConfigurationError(f"{name!r} has {classes} classes; audits are of 2", field="data.name")
        flip = self.config.mechanism.flip_probability
        if flip is not None and flip > largest_flip():
            raise ConfigurationError(
                f"{flip} given; 0 to 0.5 is possible with 2 classes", field="mechanism.flip_probability"
            )
        check_count(self.trials, "--trials", least=2)
        randomness.check_seed(self.seed)
        if isinstance(self.confidence, bool) or not 0 < self.confidence < 1:
            raise ConfigurationError(f"{self.confidence} given; above 0 and below 1 is needed", field="--confidence")


class Engine:
    """The population engine as an audit sees it: each call plays another round number, so no coin is tossed twice.

    Args:
        cluster_size: s.
        flip_probability: f.
        seed: Of the study.
    """

    def __init__(self, *, cluster_size: int, flip_probability: float, seed: int) -> None:
        self._size, self._flip, self._seed = cluster_size, flip_probability, seed
        self._round_number = cluster_size * _ROUND_NUMBERS

    def ones(self, *, ones: int, rounds: int) -> Array:
        """T of new rounds in which the first ``ones`` members hold a one, shape (rounds,)."""
        labels = (np.arange(self._size) < ones).astype(np.uint8)
        self._round_number += 1
        blocks = population.count_ones(
            labels, self._flip, clusters=rounds, seed=self._seed, round_number=self._round_number
        )
        return np.concatenate([block.astype(np.int32) for block in blocks])

    def rounds(self, *, labels: Array) -> Rounds:
        """Whole new rounds, one of a cluster for each row of ``labels``."""
        rows, size = labels.shape
        self._round_number += 1
        clusters = np.repeat(np.arange(rows), size)
        played = population.play(
            labels.ravel(), clusters, [self._flip] * rows, seed=self._seed, round_number=self._round_number
        )
        return Rounds(
            labels=labels,
            flipped=played.flipped.reshape(rows, size),
            mates=(played.mates % size).reshape(rows, size),
            reports=played.reports.reshape(rows, size),
        )


def check_size(size: int) -> int:
    """Returns a cluster size that can be measured: 2 to 10^6.

    Raises:
        ConfigurationError: Another one.
    """
    if not 2 <= check_count(size, "--sizes") <= 10**6:
        raise ConfigurationError(f"{size} given; 2 to 1000000 members are possible (1/s^2 is 1 for 1)", field="--sizes")
    return size


def planned_flip(config: Config, size: int) -> float:
    """The flip that is given, or the least at which s answers from s members hold the target at 1/s^2.

    ``tolerated_loss`` plays no part: the population engine loses nobody. A run plans for it and flips a little more.
    """
    given = config.mechanism.flip_probability
    if given is not None:
        return given
    assert config.mechanism.target_epsilon is not None  # a configuration has one of the two
    return targets.plan(cluster_size=size, target_epsilon=config.mechanism.target_epsilon).flip_probability


def measure(question: Question, size: int) -> Row:
    """Everything about clusters of ``size``.

    Raises:
        ConfigurationError: A size out of range, or an impossible configuration.
    """
    flip, delta = planned_flip(question.config, check_size(size)), roster_delta(size)
    mate = views(cluster_size=size, flip_probability=flip, colluders=(1,))[1]
    audited = audited_at(size=size, flip=flip, question=question)
    private, non_private, typical = _accuracy(question, size, flip)
    return Row(
        cluster_size=size,
        flip_probability=flip,
        delta=delta,
        local_epsilon=local_epsilon(flip),
        paper_epsilon=theorems.paper_epsilon(cluster_size=size, flip_probability=flip),
        epsilon=resampling.epsilon(cluster_size=size, flip_probability=flip, delta=delta),
        shuffle_epsilon=shuffle.epsilon(cluster_size=size, flip_probability=flip, delta=delta),
        mate_epsilon=mate.epsilon,
        mate_delta=mate.delta,
        epsilon_lower=audited.bound.epsilon_lower,
        confidence=audited.bound.confidence,
        direction=audited.bound.direction,
        trials=question.trials,
        verdict=audited.verdict.value,
        least_p_value=min(audited.conformance.p_values.values()),
        accuracy=private,
        accuracy_non_private=non_private,
        accuracy_cluster_size=typical,
        config_hash=config_hash(question.config),
        seed=question.seed,
        version=p2p_labeldp.__version__,
    )


def audited_at(*, size: int, flip: float, question: Question) -> Audit:
    """The audit of the population engine, at 1/s^2."""
    engine = Engine(cluster_size=size, flip_probability=flip, seed=question.seed)
    return audit(
        engine.ones,
        cluster_size=size,
        flip_probability=flip,
        trials=question.trials,
        draw_rounds=engine.rounds,
        confidence=question.confidence,
    )


def _accuracy(question: Question, size: int, flip: float) -> tuple[float | None, float | None, float | None]:
    """Means of private and non-private accuracy, and the median size of the clusters."""
    config = question.config
    if not question.accuracy:
        return None, None, None
    split = experiment.split_of(config, seed=question.seed)
    peers = len(split.train_labels)
    if size > peers or size < config.policy.minimum_size:
        return None, None, None
    clustered = msgspec.structs.replace(
        config,
        clusters=Clusters(count=peers // size, minimum_size=size),
        mechanism=Mechanism(flip_probability=flip),
    )
    private, non_private, sizes = [], [], []
    for offset in range(ACCURACY_ROUNDS):
        found, members = experiment.accuracy(clustered, seed=(question.seed + offset) % 2**64)
        assert found.private is not None
        assert found.non_private is not None
        private.append(found.private)
        non_private.append(found.non_private)
        sizes.extend(members)
    return float(np.mean(private)), float(np.mean(non_private)), float(np.median(sizes))
