"""Plays every mechanism on the same trials: in each other rows are held out, and other coins are tossed."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import msgspec
import numpy as np

from p2p_labeldp import central, experiment, promise, randomness
from p2p_labeldp.accounting.ranges import check_count
from p2p_labeldp.comparing import methods
from p2p_labeldp.comparing.interval import interval
from p2p_labeldp.comparing.methods import Method
from p2p_labeldp.comparing.row import Compared, Comparison
from p2p_labeldp.config import Config, Mechanism
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.experiment import Prepared, learning, playing
from p2p_labeldp.experiment.playing import Played
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.randomness import Stream
from p2p_labeldp.reports import words
from p2p_labeldp.results import ClusterResult, Noisy

TRIALS, MOST_TRIALS = 10, 1000
_TRAINER = 1
"""Ordinal in the curator's stream: DP-SGD shares no coin with a mechanism."""


@dataclass(slots=True)
class _Tally:
    """What a method's trials add up to."""

    accuracies: list[float] = field(default_factory=list)
    epsilon: float = 0.0
    delta: float = 0.0
    local_epsilon: float = 0.0

    def add(self, accuracy: float, epsilon: float, delta: float, local_epsilon: float) -> None:
        self.accuracies.append(accuracy)
        self.epsilon = max(self.epsilon, epsilon)
        self.delta = max(self.delta, delta)
        self.local_epsilon = max(self.local_epsilon, local_epsilon)


def compare(
    config: Config,
    *,
    seed: int | None,
    trials: int = TRIALS,
    data_directory: str | None = None,
    on_trial: Callable[[int], None] = lambda number: None,
) -> Comparison:
    """Every mechanism on the data of a configuration, at its target epsilon. READS THE TRUE LABELS.

    Args:
        config: Data, clusters, target epsilon and model.
        seed: Of the first trial, the next ones being that of the next; None takes coins from the operating system,
            while which rows are held out is public.
        trials: How many, 2 to 1000.
        data_directory: As in ``experiment.prepare``.
        on_trial: Is told the number of each trial, from 1, when it is known to be possible.

    Raises:
        ConfigurationError: Something is impossible for one of the mechanisms.
    """
    epsilon = check(config, seed=seed, trials=trials)
    public = experiment.PUBLIC_SEED if seed is None else seed
    tallies: dict[Method, _Tally] = defaultdict(_Tally)
    sizes: set[int] = set()
    for number in range(trials):
        one = experiment.prepare(
            config,
            engine="population",
            seed=None if seed is None else seed + number,
            public_seed=public + number,
            data_directory=data_directory,
        )
        on_trial(number + 1)
        sizes.update(one.sizes.tolist())
        _play_all(one, epsilon, tallies)
    delta = methods.central_delta(tallies[methods.RESAMPLING].delta, len(one.split.train_labels))
    chosen = methods.trainer(epsilon=epsilon, delta=delta)
    spent = methods.trainers_epsilon(chosen, delta)
    for number in range(trials):  # read again, since the data of all trials may not fit into memory at once
        split = experiment.split_of(config, seed=public + number, data_directory=data_directory)
        accuracy = methods.measured(chosen, split, _trainers_coins(None if seed is None else seed + number))
        tallies[methods.DP_SGD].add(accuracy, spent, delta, math.inf)
    trained_on, held_out = len(one.split.train_labels), len(one.split.test_labels)
    return Comparison(
        rows=tuple(_row(method, tallies[method], held_out, trained_on) for method in methods.ORDER),
        epsilon=epsilon,
        trained_on=trained_on,
        held_out=held_out,
        classes=one.split.label_space.classes,
        cluster_sizes=(min(sizes), max(sizes)),
        trials=trials,
        seed=seed,
        model=config.learner.model,
    )


def check(config: Config, *, seed: int | None, trials: int) -> float:
    """The epsilon of all of them. Reads no data.

    Raises:
        ConfigurationError: The configuration says more than a comparison can keep, or a number is out of range.
    """
    if not 2 <= check_count(trials, "trials") <= MOST_TRIALS:
        raise ConfigurationError(f"{trials} given; 2 to {MOST_TRIALS} are possible", field="trials")
    if seed is not None:
        randomness.check_seed(seed)
        randomness.check_seed(seed + trials - 1)
    if config.mechanism.kind != central.RESAMPLING or config.exchange.kind != "resample":
        given = "mechanism.kind" if config.mechanism.kind != central.RESAMPLING else "exchange.kind"
        raise ConfigurationError("given; a comparison plays all mechanisms", field=given)
    if config.mechanism.target_epsilon is None:
        raise ConfigurationError(
            "given; mechanisms are compared at one mechanism.target_epsilon", field="mechanism.flip_probability"
        )
    return config.mechanism.target_epsilon


def _play_all(one: Prepared, epsilon: float, tallies: Mapping[Method, _Tally]) -> None:
    """One trial of everything but DP-SGD, whose delta is known when all trials have their clusters."""
    played = _played(one)
    promised = promise.of_clusters(played.rosters, one.config, len(one.split.label_space))
    tallies[methods.RESAMPLING].add(_accuracy(one, played.noisy), *_worst(promised))
    for method, mechanism in _in_one_place(one, epsilon):
        released = dataclasses.replace(one, mechanism=mechanism)
        local = math.inf if mechanism.needs_curator else mechanism.epsilon
        tallies[method].add(_accuracy(released, _played(released).noisy), mechanism.epsilon, 0.0, local)
    for method, accuracy in zip((methods.NONE, methods.MAJORITY), learning.yardsticks(one), strict=True):
        tallies[method].add(accuracy, math.inf, 0.0, math.inf)


def _accuracy(prepared: Prepared, noisy: Noisy) -> float:
    """Of the model of what is released."""
    model = learning.fit(prepared, noisy)
    if model is None:
        raise ConfigurationError(
            f"{prepared.config.policy.minimum_size} given; no cluster of a trial has so many members",
            field="policy.minimum_size",
        )
    return learning.measured(prepared, model)


def _played(prepared: Prepared) -> Played:
    return playing.play(prepared, playing.Silence())


def _worst(promised: Sequence[ClusterResult]) -> tuple[float, float, float]:
    return (
        max(cluster.epsilon for cluster in promised),
        max(cluster.delta for cluster in promised),
        max(cluster.local_epsilon for cluster in promised),
    )


def _in_one_place(prepared: Prepared, epsilon: float) -> list[tuple[Method, LabelMechanism]]:
    num_classes = len(prepared.split.label_space)
    found = [
        (method, central.mechanism_of(_of_kind(prepared.config, method.key), num_classes))
        for method in (methods.UNIFORM_RR, methods.CLUSTER_RR)
    ]
    for method in (methods.TWO_STAGE, methods.ONE_STAGE):
        found.append((method, methods.STAGED[method.key](num_classes, epsilon)))
    return found


def _of_kind(config: Config, kind: str) -> Config:
    chosen: Mechanism = msgspec.structs.replace(config.mechanism, kind=kind)
    return msgspec.structs.replace(config, mechanism=chosen)


def _trainers_coins(seed: int | None) -> np.random.Generator:
    if seed is None:
        return np.random.default_rng(randomness.curator(None).getrandbits(256))
    found: np.random.Generator = randomness.numpy_generator(seed, Stream.CURATOR, _TRAINER)
    return found


def _row(method: Method, tally: _Tally, held_out: int, trained_on: int) -> Compared:
    low, high = interval(tally.accuracies, held_out=held_out, trained_on=trained_on)
    return Compared(
        key=method.key,
        name=method.name,
        accuracy=fmean(tally.accuracies),
        low=low,
        high=high,
        accuracies=tuple(tally.accuracies),
        epsilon=tally.epsilon,
        delta=tally.delta,
        neighbours=method.neighbours,
        against=method.against,
        local_epsilon=tally.local_epsilon,
        trusted=method.trusted,
        releases=method.releases,
        guarantee=words.guarantee(tally.epsilon, tally.delta, against=method.against, neighbours=method.neighbours),
    )
