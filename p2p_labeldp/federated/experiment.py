"""One run of private rounds, from configuration to result.

What is public: the held-out rows, whose mean and deviation standardise features; the number of peers; the model before
the first round. Everything else of a peer's example is protected, features and label alike, by three ledgers that
differ in against whom.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp import datasets, randomness
from p2p_labeldp.accounting.federated import (
    PeerLedger,
    Rounds,
    SideBySide,
    safe_projection,
    shrunk_share,
    side_by_side,
)
from p2p_labeldp.config import Config, Updates, config_hash
from p2p_labeldp.datasets import Split
from p2p_labeldp.errors import ConfigurationError, naming
from p2p_labeldp.facts import Fact
from p2p_labeldp.federated import ledgers, population
from p2p_labeldp.federated.result import Accuracy, FederatedResult
from p2p_labeldp.learning import erm, models
from p2p_labeldp.learning.models import Model, Vector
from p2p_labeldp.mechanisms.separated import Separated
from p2p_labeldp.network.federated import virtual
from p2p_labeldp.network.federated.study import (
    PUBLIC_SEED,
    FederationTerms,
    Trained,
    UpdateStudy,
    compute_of,
    standardised,
)
from p2p_labeldp.protocol.federation import LARGEST_PARAMETER, MAX_DIMENSION

ENGINES = ("processes", "virtual", "population")
ROUND_SECONDS, ROUND_SECONDS_A_PEER = 60.0, 0.3
"""Longest that a round waits. Long, since a peer that is late on a busy machine would be missing in the model, and one
that is gone costs one round's wait, not all."""
POLLS_A_SECOND = 200.0
"""Of all peers together, on the engine whose polls cost a machine's time."""
VIRTUAL_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A run that can be played.

    Args:
        config: Its configuration.
        engine: One of ``ENGINES``.
        split: The data.
        model: What is trained.
        mechanism: What each peer does to its update.
        planned: The rounds as they are accounted for.
        noise: What the central target takes, and what is added.
        shrunk_share: Largest share of reports that the projection shrinks.
        study: What the engines are given.
    """

    config: Config
    engine: str
    split: Split
    model: Model
    mechanism: Separated
    planned: Rounds
    noise: SideBySide
    shrunk_share: float
    study: UpdateStudy

    @property
    def warnings(self) -> list[str]:
        """What to beware of, a line each."""
        found = []
        if self.shrunk_share > 0:
            found.append(
                f"up to {self.shrunk_share:.3g} of the reports are shrunk, and averages are biased; updates.projection"
                f" {safe_projection(self.mechanism):.6g} shrinks none"
            )
        budget, level = self.config.updates.budget, self.mechanism.epsilon
        if PeerLedger(epsilon=level, budget=budget).spent_up:
            found.append(f"updates.budget {budget:g} is below the {level:g} of one report: nobody reports")
        if self.noise.reduced:
            found.append(
                f"sigma {self.noise.sigma:.4g} is below the {self.noise.honest_sigma:.4g} that central epsilon"
                f" {self.config.updates.central_epsilon:g} takes; the result states what it guarantees instead"
            )
        return found


def check_engine(engine: str) -> str:
    """Returns ``engine`` if there is one of that name."""
    if engine not in ENGINES:
        raise ConfigurationError(f"{engine!r} given; one of {', '.join(ENGINES)} is allowed", field="engine")
    return engine


def prepare(config: Config, *, engine: str, seed: int, data_directory: str | None = None) -> Prepared:
    """Everything before the first round. Starts nothing.

    Args:
        config: What to run; its sections ``data``, ``network`` and ``updates`` are read.
        engine: One of ``ENGINES``.
        seed: Of the study, 0 to 2^64 - 1.
        data_directory: As for ``datasets.load``.

    Raises:
        ConfigurationError: Something in it is impossible.
    """
    check_engine(engine)
    randomness.check_seed(seed)
    chosen, data = config.updates, config.data
    if data.name is None:
        raise ConfigurationError("given; rounds of updates take data sets by name", field="data.csv")
    split = datasets.load(
        data.name,
        seed=seed,
        test_share=data.test_share,
        peers=data.peers,
        directory=data_directory,
        verify=data.verify,
    )
    peers, features = split.train_features.shape
    model = _model(chosen.model, features=features, classes=len(split.label_space))
    if engine != "population" and model.dimension > MAX_DIMENSION:
        raise ConfigurationError(
            f"{chosen.model} has {model.dimension} parameters here; peers exchange up to {MAX_DIMENSION}, the"
            " population engine takes any number",
            field="updates.model",
        )
    mechanism = Separated.calibrated(
        dimension=model.dimension,
        epsilon_direction=chosen.epsilon_direction,
        epsilon_magnitude=chosen.epsilon_magnitude,
        max_radius=chosen.max_radius,
        magnitude=chosen.magnitude,
    )
    planned = Rounds(
        population=peers,
        sampling_rate=chosen.sampling_rate,
        rounds=chosen.rounds,
        projection=safe_projection(mechanism) if chosen.projection is None else chosen.projection,
    )
    noise = _noise(planned, chosen)
    for name, value in (("projection", planned.projection), ("sigma", noise.sigma)):
        if value > LARGEST_PARAMETER:  # no manifest holds it
            raise ConfigurationError(
                f"{value:g} comes of the other values; at most {LARGEST_PARAMETER:g} is possible",
                field=f"updates.{name}",
            )
    shift, scale = _public_scale(split.test_features)
    busy = engine == "processes"
    terms = FederationTerms(
        model=chosen.model,
        classes=split.label_space.classes,
        shift=tuple(shift.tolist()),
        scale=tuple(scale.tolist()),
        population=peers,
        sampling_rate=chosen.sampling_rate,
        rounds=chosen.rounds,
        max_radius=chosen.max_radius,
        epsilon_direction=chosen.epsilon_direction,
        epsilon_magnitude=chosen.epsilon_magnitude,
        magnitude=chosen.magnitude,
        projection=planned.projection,
        sigma=noise.sigma,
        learning_rate=chosen.learning_rate,
        local_steps=chosen.local_steps,
        local_rate=chosen.local_rate,
        round_seconds=chosen.round_seconds or ROUND_SECONDS + ROUND_SECONDS_A_PEER * peers,
        poll_seconds=chosen.poll_seconds or (max(0.25, peers / POLLS_A_SECOND) if busy else VIRTUAL_POLL_SECONDS),
        study=True,
    )
    return Prepared(
        config=config,
        engine=engine,
        split=split,
        model=model,
        mechanism=mechanism,
        planned=planned,
        noise=noise,
        shrunk_share=shrunk_share(mechanism, planned.projection),
        study=UpdateStudy(
            terms=terms,
            features=split.train_features,
            labels=split.train_labels.astype(np.int64),
            seed=seed,
            budget=chosen.budget,
            peers_per_process=config.network.peers_per_process,
        ),
    )


def _model(name: str, *, features: int, classes: int) -> Model:
    with naming({"model": "updates.model"}):
        return models.build(name, features=features, classes=classes)


def _noise(planned: Rounds, chosen: Updates) -> SideBySide:
    try:
        return side_by_side(planned, epsilon=chosen.central_epsilon, delta=chosen.delta, sigma=chosen.sigma)
    except ConfigurationError as exc:
        raise ConfigurationError(str(exc).removeprefix(f"{exc.field}: "), field="updates.central_epsilon") from exc


def _public_scale(held_out: npt.NDArray[np.float64]) -> tuple[Vector, Vector]:
    """Mean and deviation of each feature in rows that nobody has to protect; 1 where it is constant."""
    scale = held_out.std(axis=0)
    return held_out.mean(axis=0), np.where(scale > 0, scale, 1.0)


def play(prepared: Prepared, *, on_fact: Callable[[Fact], None] = lambda _fact: None) -> Trained:
    """Plays the rounds.

    Args:
        prepared: What to play.
        on_fact: Is told each fact as it arrives, on the engine that has them as they happen.

    Raises:
        TransportError: The processes could not be started.
    """
    if prepared.engine == "population":
        return population.play(prepared.study)
    if prepared.engine == "virtual":
        played = virtual.play(prepared.study)
        for fact in played.facts:
            on_fact(fact)
        return played
    from p2p_labeldp.network.federated import launcher

    return launcher.play(prepared.study, on_fact=on_fact)


def conclude(prepared: Prepared, played: Trained) -> FederatedResult:
    """Accuracy and ledgers of what was played."""
    assert prepared.study.seed is not None
    chosen = prepared.config.updates
    local, reconstruction = ledgers.of_peers(prepared.mechanism, played.model, peers=len(prepared.study), chosen=chosen)
    parameters = np.array(played.model.parameters)
    return FederatedResult(
        engine=prepared.engine,
        peers=len(prepared.study),
        model=chosen.model,
        dimension=prepared.model.dimension,
        rounds=len(played.model.cohorts),
        cohorts=list(played.model.cohorts),
        projection=prepared.planned.projection,
        shrunk_share=prepared.shrunk_share,
        accuracy=Accuracy(
            private=accuracy(prepared, parameters),
            non_private=accuracy(prepared, non_private(prepared)),
            majority=erm.majority(
                prepared.split.train_labels, prepared.split.test_labels, label_space=prepared.split.label_space
            ),
            held_out=len(prepared.split.test_labels),
        ),
        central=ledgers.central(prepared.planned, prepared.noise, chosen=chosen),
        local=local,
        reconstruction=reconstruction,
        parameters_digest=hashlib.sha256(parameters.astype("<f8").tobytes()).hexdigest(),
        seconds=played.seconds,
        messages=played.messages,
        bytes=played.bytes,
        config_hash=config_hash(prepared.config),
        seed=prepared.study.seed,
        complete=played.model.complete,
    )


def run(config: Config, *, engine: str, seed: int, data_directory: str | None = None) -> FederatedResult:
    """Prepares a run, plays its rounds and concludes; see :func:`prepare`."""
    prepared = prepare(config, engine=engine, seed=seed, data_directory=data_directory)
    return conclude(prepared, play(prepared))


def accuracy(prepared: Prepared, parameters: Vector) -> float:
    """Share of held-out rows that a model labels rightly."""
    rows = standardised(prepared.split.test_features, prepared.study.terms)
    return float(np.mean(prepared.model.predict(parameters, rows) == prepared.split.test_labels))


def non_private(prepared: Prepared) -> Vector:
    """The same rounds without privacy: clipped updates of the same cohorts, over the expected cohort, no noise."""
    study, terms = prepared.study, prepared.study.terms
    assert study.seed is not None
    manifest = terms.manifest(run_key=bytes(32), opened=0.0, nonce=bytes(16))
    parameters = prepared.model.initial(PUBLIC_SEED)
    for number in range(terms.rounds):
        words = randomness.bulk_sampling_words(study.seed, 0, len(study), number)
        total = np.zeros_like(parameters)
        for i in np.flatnonzero(population.sampled(words, manifest)).tolist():
            total += compute_of(terms, prepared.model, *study.rows_of(i))(parameters)
        parameters = manifest.step(parameters, total / prepared.planned.expected_cohort)
    return parameters
