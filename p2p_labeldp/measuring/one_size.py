"""One cluster size: the accountant's numbers, an audit of what runs, and the accuracy of a study.

Upper bounds come from ``accounting``, the lower bound from ``auditing``, which knows nothing of it. What is audited is
the population engine, real peers (as processes or on the virtual network), or a mechanism of the user's own. The rounds
of different sizes toss different coins: each size has round numbers, or seeds, of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import msgspec
import numpy as np

import p2p_labeldp
from p2p_labeldp import central, datasets, experiment, own_mechanism, randomness
from p2p_labeldp.accounting import resampling, shuffle, targets, theorems
from p2p_labeldp.accounting.planning import roster_delta
from p2p_labeldp.accounting.ranges import check_count
from p2p_labeldp.accounting.views import PERMUTE, views
from p2p_labeldp.auditing.audit import Audit, audit, audit_of_rounds, none_one_or_all
from p2p_labeldp.auditing.lower_bound import CONFIDENCE
from p2p_labeldp.auditing.mechanism import Source
from p2p_labeldp.auditing.observed import Array, DrawsOnes, DrawsRounds
from p2p_labeldp.config import Clusters, Config, Mechanism, config_hash
from p2p_labeldp.engine_source import PopulationSource
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.experiment import check_engine
from p2p_labeldp.measuring.row import Row
from p2p_labeldp.mechanisms.randomized_response import check_flip_probability, largest_flip, local_epsilon
from p2p_labeldp.network_source import PEERS, NetworkSource, unwatched
from p2p_labeldp.protocol.messages import MAX_CLUSTER_SIZE

POPULATION = "population"
TRIALS = 1_000_000
LEAST_TRIALS_OF_PEERS = 3
"""Clusters of real peers: one each in which nobody, one member and everybody holds a one."""
ACCURACY_ROUNDS = 5
"""Studies whose accuracy is averaged: seeds s, s + 1, .., each with a split, a clustering and flips of its own."""
_ROUND_NUMBERS = 1 << 10
"""Round numbers set apart for a size: an audit of one takes three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is measured.

    Args:
        config: Its data, model, and flip probability or target; its clusters are replaced by those of each size.
        trials: Rounds of a cluster behind each lower bound; if not given, ``TRIALS``, or of real peers as many as one
            round holds.
        seed: Of the study.
        confidence: Of each lower bound.
        accuracy: Whether studies are run for the accuracy.
        engine: Who plays the rounds that are audited.
        peers: In one round of real peers, at most.
        mechanism: Of the user's own, in place of an engine, as ``own_mechanism`` names it.

    Raises:
        ConfigurationError: A number out of range, or something that is not measured.
    """

    config: Config
    trials: int | None = None
    seed: int = 0
    confidence: float = CONFIDENCE
    accuracy: bool = True
    engine: str = POPULATION
    peers: int = PEERS
    mechanism: str | None = None

    def __post_init__(self) -> None:
        if self.config.mechanism.kind != central.RESAMPLING:
            raise ConfigurationError(
                f"{self.config.mechanism.kind!r} given; 'resampling' is what is measured", field="mechanism.kind"
            )
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
        if self.trials is not None:
            check_count(self.trials, "trials", least=2)
        check_engine(self.engine)
        if self.mechanism is not None:
            if self.engine != POPULATION:
                raise ConfigurationError(
                    f"{self.engine!r} given; a mechanism of one's own runs by itself", field="engine"
                )
            own_mechanism.load_flipping(self.mechanism, flip_probability=0.25)
        elif self.engine != POPULATION:
            self.network(2, 0.25)
        randomness.check_seed(self.seed)
        if isinstance(self.confidence, bool) or not 0 < self.confidence < 1:
            raise ConfigurationError(f"{self.confidence} given; above 0 and below 1 is needed", field="confidence")

    def network(self, size: int, flip: float) -> NetworkSource:
        """The real peers that are measured."""
        return NetworkSource(
            engine=self.engine, cluster_size=size, flip_probability=flip, seed=self.seed, peers=self.peers
        )

    def trials_at(self, size: int) -> int:
        """Rounds of a cluster of ``size`` that are played; of real peers a multiple of what one round holds."""
        if self.engine == POPULATION:
            return TRIALS if self.trials is None else self.trials
        return self.network(size, 0.25).whole_rounds(max(self.trials or 0, LEAST_TRIALS_OF_PEERS))

    @property
    def measured(self) -> tuple[str, int | None, str]:
        """Engine, peers of a round and mechanism, as a row names them."""
        named = "" if self.mechanism is None else own_mechanism.fingerprint(self.mechanism)
        return self.engine, (None if self.engine == POPULATION else self.peers), named

    def check_size(self, size: int) -> int:
        """Returns a cluster size that can be measured: 2 to 10^6, among real peers to 10^4.

        Raises:
            ConfigurationError: Another one.
        """
        most = 10**6 if self.engine == POPULATION else MAX_CLUSTER_SIZE
        if not 2 <= check_count(size, "sizes") <= most:
            raise ConfigurationError(
                f"{size} given; 2 to {most} members are possible (1/s^2 is 1 for 1)", field="sizes"
            )
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


def measure(question: Question, size: int, playing: Callable[[int, int], None] = unwatched) -> Row:
    """Everything about clusters of ``size``.

    Args:
        question: What is measured.
        size: s.
        playing: Is told of each round of real peers as it begins: its number, and how many there are.

    Raises:
        ConfigurationError: A size out of range, or an impossible configuration.
        TransportError: Processes that could not be started.
    """
    flip, delta = claimed_flip(question, question.check_size(size)), roster_delta(size)
    mate = views(cluster_size=size, flip_probability=flip, colluders=(1,))[1]
    audited = audited_at(size=size, flip=flip, question=question, playing=playing)
    private, non_private, typical = _accuracy(question, size, flip)
    engine, peers, mechanism = question.measured
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
        trials=question.trials_at(size),
        counted=audited.trials,
        engine=engine,
        peers=peers,
        mechanism=mechanism,
        verdict=audited.verdict.value,
        least_p_value=min(audited.conformance.p_values.values()),
        accuracy=private,
        accuracy_non_private=non_private,
        accuracy_cluster_size=typical,
        config_hash=config_hash(question.config),
        seed=question.seed,
        version=p2p_labeldp.__version__,
    )


def claimed_flip(question: Question, size: int) -> float:
    """The planned flip; of a mechanism of one's own, what it says."""
    planned = planned_flip(question.config, size)
    if question.mechanism is None:
        return planned
    own = own_mechanism.load_flipping(question.mechanism, flip_probability=planned)
    return check_flip_probability(own.flip_probability)  # type: ignore[attr-defined]  # it flips


def audited_at(*, size: int, flip: float, question: Question, playing: Callable[[int, int], None] = unwatched) -> Audit:
    """The audit of what is measured, at 1/s^2."""
    trials = question.trials_at(size)
    if question.engine != POPULATION:
        peers = dataclasses.replace(question.network(size, flip), playing=playing)
        rounds = peers.draw_rounds(labels=none_one_or_all(trials, size))
        return audit_of_rounds(rounds, flip_probability=flip, confidence=question.confidence)
    draw_ones, draw_rounds = _sources(question, size, flip)
    with nullcontext() if question.mechanism is None else own_mechanism.blaming(question.mechanism):
        return audit(
            draw_ones,
            cluster_size=size,
            flip_probability=flip,
            trials=trials,
            draw_rounds=draw_rounds,
            confidence=question.confidence,
        )


def _sources(question: Question, size: int, flip: float) -> tuple[DrawsOnes, DrawsRounds]:
    if question.mechanism is not None:
        own = own_mechanism.load_flipping(question.mechanism, flip_probability=flip)
        source = Source(mechanism=own, cluster_size=size, rng=np.random.default_rng([question.seed, size]))
        return source.ones, source.rounds
    engine = PopulationSource(
        cluster_size=size,
        flip_probability=flip,
        seed=question.seed,
        first_round=size * _ROUND_NUMBERS + 1,
    )
    return engine.draw_ones, engine.draw_rounds


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
        seed = (question.seed + offset) % 2**64
        found, members = experiment.accuracy(clustered, seed=seed, release=_release(question, size, flip, seed))
        assert found.private is not None
        assert found.non_private is not None
        private.append(found.private)
        non_private.append(found.non_private)
        sizes.extend(members)
    return float(np.mean(private)), float(np.mean(non_private)), float(np.median(sizes))


def _release(question: Question, size: int, flip: float, seed: int) -> experiment.Release | None:
    """What a mechanism of the user's own makes of one cluster's labels."""
    reference = question.mechanism
    if reference is None:
        return None
    own = own_mechanism.load_flipping(reference, flip_probability=flip)
    rng = np.random.default_rng([seed, size, 1])

    def release(labels: Array) -> Array:
        with own_mechanism.blaming(reference):
            return np.asarray(own.sample(labels[None, :].astype(np.int64), rng)[0])

    return release
