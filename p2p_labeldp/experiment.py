"""One experiment, from configuration to result: data, clustering, a round on one of three engines, guarantee, model.

Two steps. :func:`prepare` does all that can find the configuration impossible and starts nothing; :func:`run` plays the
round. The engines are given the same features, labels, clustering, flips and seed, and what they give back is treated
alike: the population engine takes the place of a network, of nothing else.

The population engine alone also plays ``exchange.kind = "permute"``, the trusted shuffler that resampling is compared
with; ``promise`` says how its flip is planned and what it guarantees. It alone also plays the mechanisms of
``central``, which take the place of the whole exchange, for any number of classes.

Labels reach the engine, where each becomes one peer's own, and the two yardsticks of accuracy. Clustering, topology and
planning see features and sizes only.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

import p2p_labeldp
from p2p_labeldp import central, clustering, datasets, population, promise, randomness, topology
from p2p_labeldp.accounting.views import PERMUTE
from p2p_labeldp.config import Config, Deadlines, config_hash
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.datasets import Split
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Ended, Fact, Outcome, Reason, Traffic
from p2p_labeldp.learning import erm
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.network import pace, virtual
from p2p_labeldp.network.pace import Pace
from p2p_labeldp.network.stopping import Stopping
from p2p_labeldp.network.store import Store
from p2p_labeldp.network.study import Collected, CollectedRoster, Study, Terms
from p2p_labeldp.network.transport import format_address
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.messages import MAX_CLUSTER_SIZE
from p2p_labeldp.protocol.policy import Policy
from p2p_labeldp.protocol.roster import plan_for
from p2p_labeldp.randomness import Secret
from p2p_labeldp.results import Accuracy, Noisy, Result, count_outcomes

if TYPE_CHECKING:
    from p2p_labeldp.network.learner_process import Proposal

ENGINES = ("processes", "virtual", "population")
_GRAPH_PEERS = 20_000
"""Peers up to which the population engine, which needs no graph, builds it all the same (in a second), so that what is
impossible elsewhere is impossible there. A file is always read."""
_VERSIONED = ("numpy", "scipy", "scikit-learn", "networkx", "msgspec", "cryptography", "aiohttp")


class Progress(Protocol):
    """What is told while an experiment runs. Calls come from one thread, in this order."""

    def playing(self, *, peers: int, clusters: int, engine: str, pace: Pace) -> None:
        """The round begins."""
        ...

    def happened(self, fact: Fact) -> None:
        """A fact arrived, on the engine that has them as they happen."""
        ...

    def learning(self) -> None:
        """The round is over; models are trained."""
        ...


class Silence:
    """Progress that nobody watches."""

    def playing(self, *, peers: int, clusters: int, engine: str, pace: Pace) -> None: ...
    def happened(self, fact: Fact) -> None: ...
    def learning(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """An experiment that can be played.

    Args:
        config: Its configuration.
        engine: One of ``ENGINES``.
        split: The data.
        clusters: Cluster of each peer, shape (n,).
        sizes: Members of each cluster, shape (count,).
        study: What the engines are given.
        pace: The lengths of the round's phases.
        seconds: What it took to prepare.
        mechanism: What is played in one place; None where labels are resampled.
    """

    config: Config
    engine: str
    split: Split
    clusters: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    study: Study
    pace: Pace
    seconds: float
    mechanism: LabelMechanism | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """What came of an experiment.

    Args:
        result: The summary.
        facts: Everything that happened; can be gone through more than once.
        noisy: What the learner may learn from.
        config: The configuration.
    """

    result: Result
    facts: Iterable[Fact]
    noisy: Noisy
    config: Config


def check_engine(engine: str) -> str:
    """Returns ``engine`` if there is one of that name."""
    if engine not in ENGINES:
        raise ConfigurationError(f"{engine!r} given; one of {', '.join(ENGINES)} is allowed", field="--engine")
    return engine


def prepare(config: Config, *, engine: str, seed: int, data_directory: str | None = None) -> Prepared:
    """Everything before the round. Starts no process and keeps nothing.

    Args:
        config: What to run.
        engine: One of ``ENGINES``.
        seed: Of the study, 0 to 2^64 - 1.
        data_directory: Where the files of image sets are; by default as ``datasets.files`` says. No part of the
            configuration: results from different places are one result.

    Raises:
        ConfigurationError: Something in it is impossible.
    """
    began = time.monotonic()
    check_engine(engine)
    randomness.check_seed(seed)
    _check_supported(config, engine)
    split = datasets.load(
        config.data.name,
        seed=seed,
        test_share=config.data.test_share,
        peers=config.data.peers,
        directory=data_directory,
        verify=config.data.verify,
    )
    mechanism = None
    if config.mechanism.kind != central.RESAMPLING:
        mechanism = central.mechanism_of(config, len(split.label_space))
    elif len(split.label_space) != 2:
        raise ConfigurationError(
            f"{split.name} has {len(split.label_space)} classes; 2 are what resampling can be accounted for with,"
            " other kinds of mechanism take more",
            field="data.name",
        )
    peers = len(split.train_labels)
    fitted = clustering.fit(
        split.train_features, count=config.clusters.count, minimum_size=config.clusters.minimum_size, seed=seed
    )
    clusters = fitted.assign(split.train_features)
    sizes = np.bincount(clusters, minlength=fitted.count).astype(np.int64)
    if engine != "population" and sizes.max() > MAX_CLUSTER_SIZE:
        raise ConfigurationError(
            f"{config.clusters.count} gives a cluster of {sizes.max()} peers; real peers keep at most"
            f" {MAX_CLUSTER_SIZE}: more clusters, or the population engine",
            field="clusters.count",
        )
    chosen = pace.configured(config, peers=peers, engine=engine)
    key = config.policy.enrolment_key
    study = Study(
        terms=Terms(
            classes=split.label_space.classes,
            clustering=fitted.to_payload(),
            target_epsilon=config.mechanism.target_epsilon,
            flip_probability=config.mechanism.flip_probability,
            tolerated_loss=config.mechanism.tolerated_loss,
            minimum_size=minimum_size(config),
            deadlines=chosen.deadlines(),
            gossip_period=chosen.gossip_period,
            study=True,
            enrolment_key=None if key is None else bytes.fromhex(key),
        ),
        features=split.train_features,
        labels=split.train_labels,
        neighbours=_neighbours(config, engine, peers, seed),
        seed=seed,
        peers_per_process=config.network.peers_per_process,
        slow_down=config.exchange.deadlines == Deadlines(),  # a length that is given is kept
        policy=Policy(
            epsilon=config.policy.epsilon,
            local_epsilon=config.policy.local_epsilon,
            colluders=config.policy.colluders,
            colluder_epsilon=config.policy.colluder_epsilon,
            minimum_size=config.policy.minimum_size,
            enrolment_key=None if key is None else bytes.fromhex(key),
        ),
    )
    return Prepared(
        config=config,
        engine=engine,
        split=split,
        clusters=clusters,
        sizes=sizes,
        study=study,
        pace=chosen,
        seconds=time.monotonic() - began,
        mechanism=mechanism,
    )


def run(
    config: Config, *, engine: str, seed: int, progress: Progress | None = None, data_directory: str | None = None
) -> Run:
    """Prepares an experiment, plays its round, trains and measures.

    Args:
        config: What to run.
        engine: ``processes``, ``virtual`` or ``population``.
        seed: Of the study. The same one gives the same transcript, reports and accuracy on every engine.
        progress: Is told how far it is.
        data_directory: As in :func:`prepare`.

    Raises:
        ConfigurationError: Something is impossible; nothing was started.
        TransportError: The processes could not be started.
    """
    told = Silence() if progress is None else progress
    began = time.monotonic()
    if config.policy.enrolment_key is not None:
        raise ConfigurationError(
            "given; the peers of a study have no enrolments, those of the learner command bring theirs",
            field="policy.enrolment_key",
        )
    prepared = prepare(config, engine=engine, seed=seed, data_directory=data_directory)
    told.playing(peers=len(prepared.study), clusters=len(prepared.sizes), engine=engine, pace=prepared.pace)
    played = _population(prepared) if engine == "population" else _peers(prepared, told)
    told.learning()
    learning = time.monotonic()
    accuracy = _accuracy(prepared, played.noisy)
    accounting = time.monotonic()
    if prepared.mechanism is None:
        clusters = promise.of_clusters(played.rosters, config, len(prepared.split.label_space))
        views = promise.of_views(played.rosters, clusters, config)
    else:
        clusters = central.of_clusters(prepared.mechanism, prepared.sizes.tolist())
        views = central.of_views(prepared.mechanism)
    ended = time.monotonic()
    result = Result(
        peers=len(prepared.study),
        outcomes=played.outcomes,
        clusters=clusters,
        views=views,
        accuracy=accuracy,
        seconds={
            "prepare": prepared.seconds,
            **played.seconds,
            "learn": accounting - learning,
            "account": ended - accounting,
            "total": ended - began,
        },
        messages=played.messages,
        bytes=played.bytes,
        config_hash=config_hash(config),
        seed=seed,
        versions=versions(),
        unverified=not prepared.split.verified,
        reports=played.noisy.reports() if config.output.reports else None,
    )
    return Run(result=result, facts=played.facts, noisy=played.noisy, config=config)


Release = Callable[[npt.NDArray[np.integer[Any]]], npt.NDArray[np.integer[Any]]]
"""The labels of one cluster, shape (s,), to those that its members report."""


def accuracy(config: Config, *, seed: int, release: Release | None = None) -> tuple[Accuracy, list[int]]:
    """How well models do after a round on the population engine, and the sizes of its clusters. Nothing is accounted.

    Args:
        config: What to run.
        seed: Of the study.
        release: In place of the engine.

    Raises:
        ConfigurationError: Something is impossible.
    """
    prepared = prepare(config, engine="population", seed=seed)
    noisy = _population(prepared).noisy if release is None else _released(prepared, release)
    return _accuracy(prepared, noisy), prepared.sizes.tolist()


PUBLIC_SEED = 0
"""Of what a deployment does with public data alone: which rows are held out, where KMeans starts."""


def learn_from_peers(
    config: Config,
    *,
    coins: Secret,
    host: str,
    port: int,
    say: Callable[[str], None],
    stopping: Stopping,
    store: Store | None = None,
    proposal: Proposal | None = None,
    operator: tuple[str, int] | None = None,
    on_fact: Callable[[Fact], None] | None = None,
) -> Run:
    """Opens one round as the learner of a deployment, waits for its end, and trains on what was reported.

    Args:
        config: Terms of the round; the clustering is fitted to the public features of its data set, whose labels only
            measure the model.
        coins: The learner's.
        host: Where to listen.
        port: Where to listen.
        say: Is told how far it is, a line at a time.
        stopping: Ends the round early.
        store: Where the learner keeps its round; a round it died in is taken up. The caller has it forget the round
            when the result is in safe hands.
        proposal: The round, if it was signed beforehand: by this learner, with these terms; its deadlines count from
            then. Otherwise one is signed that opens now.
        operator: Where to answer the operator; nowhere if not given.
        on_fact: Is told what happens, instead of ``say``.

    Raises:
        ConfigurationError: Something is impossible; no round was opened.
    """
    import asyncio

    from p2p_labeldp.network import learner_process

    began = time.monotonic()
    prepared = prepare(config, engine="processes", seed=PUBLIC_SEED)
    terms = msgspec.structs.replace(prepared.study.terms, study=False)
    keys = Keys(coins.identity())
    opened_at: float | None = None
    if proposal is not None and not learner_process.in_a_round(store):
        opened_at = learner_process.check_proposal(proposal, terms=terms, keys=keys).opened  # before it listens
    heard: list[Fact] = []

    def hear(fact: Fact) -> None:
        heard.append(fact)
        if on_fact is not None:
            on_fact(fact)
        elif isinstance(fact, Accepted):
            say(f"{fact.at:6.1f} s  accepted a report for cluster {fact.cluster}")

    def announce(address: Address) -> None:
        left = terms.deadlines.join - (0.0 if opened_at is None else time.time() - opened_at)
        say(f"the learner is {format_address(address)}; peers can join for {left:.0f} s")
        say(f"classes: {','.join(terms.classes)}")

    collected = asyncio.run(
        learner_process.serve_until_told(
            terms,
            stopping=stopping,
            keys=keys,
            host=host,
            port=port,
            sink=hear,
            announce=announce,
            store=store,
            proposal=proposal,
            operator=operator,
        )
    )
    noisy = _noisy(collected, prepared.study.features.shape[1])
    members = sum(roster.size for roster in collected.rosters)
    counts = {Outcome.REPORTED.value: len(noisy.labels), Outcome.UNREACHABLE.value: members - len(noisy.labels)}
    traffic = [fact for fact in heard if isinstance(fact, Traffic)]
    clusters = promise.of_clusters(collected.rosters, config, len(prepared.split.label_space))
    result = Result(
        peers=members,
        outcomes={name: count for name, count in counts.items() if count},
        clusters=clusters,
        views=promise.of_views(collected.rosters, clusters, config),
        accuracy=Accuracy(
            private=_trained(prepared, noisy),
            non_private=None,
            majority=None,
            held_out=len(prepared.split.test_labels),
        ),
        seconds={"total": time.monotonic() - began},
        messages=sum(fact.messages for fact in traffic),
        bytes=sum(fact.bytes for fact in traffic),
        config_hash=config_hash(config),
        seed=None,
        versions=versions(),
        complete=collected.complete,
        unverified=not prepared.split.verified,
        reports=None,
    )
    return Run(result=result, facts=heard, noisy=noisy, config=config)


def minimum_size(config: Config) -> int:
    """The least cluster that takes part: what the clustering is merged to, or the peers' own limit if that is more."""
    return max(config.clusters.minimum_size, config.policy.minimum_size)


def versions() -> dict[str, str]:
    """Of everything a result depends on."""
    found = {name.replace("-", "_"): metadata.version(name) for name in _VERSIONED}
    return {"p2p_labeldp": p2p_labeldp.__version__, "python": platform.python_version(), **found}


def _check_supported(config: Config, engine: str) -> None:
    kind = config.mechanism.kind
    if kind != central.RESAMPLING and engine != "population":
        raise ConfigurationError(
            f"{kind!r} given; 'resampling' is what peers do, the other kinds are played by the population engine only",
            field="mechanism.kind",
        )
    if kind != central.RESAMPLING and config.exchange.kind == PERMUTE:
        raise ConfigurationError(
            f"{PERMUTE!r} given with mechanism.kind {kind!r}, which exchanges nothing; it goes with 'resampling'",
            field="exchange.kind",
        )
    if config.exchange.kind == PERMUTE and engine != "population":
        raise ConfigurationError(
            f"{PERMUTE!r} given; 'resample' is what peers can do, a trusted shuffler exists on the population engine"
            " only",
            field="exchange.kind",
        )
    for name in ("epsilon", "local_epsilon", "colluders", "colluder_epsilon"):
        # Better no run than one that a limit was set for and not kept.
        if engine == "population" and getattr(config.policy, name) is not None:
            raise ConfigurationError(
                f"{getattr(config.policy, name)} given; it is peers that keep limits, and this engine has none",
                field=f"policy.{name}",
            )


def _neighbours(config: Config, engine: str, peers: int, seed: int) -> list[list[int]]:
    graph = config.topology
    if engine == "population" and graph.kind != "file" and peers > _GRAPH_PEERS:
        return []
    return topology.neighbours(graph.kind, peers, degree=graph.degree, seed=seed, path=graph.path)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    """What any engine gives back."""

    facts: Iterable[Fact]
    outcomes: dict[str, int]
    rosters: list[CollectedRoster]
    noisy: Noisy
    seconds: dict[str, float]
    messages: int | None = None
    bytes: int | None = None


def _peers(prepared: Prepared, progress: Progress) -> _Round:
    """The round by peers that talk to each other."""
    if prepared.engine == "virtual":
        played = virtual.play(prepared.study)
    else:
        played = _launcher().play(prepared.study, on_fact=progress.happened)
    return _Round(
        facts=played.facts,
        outcomes=count_outcomes(played.facts, len(prepared.study)),
        rosters=list(played.collected.rosters),
        noisy=_noisy(played.collected, prepared.study.features.shape[1]),
        seconds=played.seconds,
        messages=played.messages,
        bytes=played.bytes,
    )


def _noisy(collected: Collected, width: int) -> Noisy:
    reports = collected.reports
    return Noisy(
        peers=[report.peer for report in reports],
        clusters=np.array([report.cluster for report in reports], dtype=np.int64),
        features=np.array([report.features for report in reports], dtype=np.float64).reshape(len(reports), width),
        labels=np.array([report.label for report in reports], dtype=np.int64),
    )


def _launcher() -> Any:
    """The one engine that needs an HTTP library, which takes half a second to import."""
    return import_module("p2p_labeldp.network.launcher")


def _population(prepared: Prepared) -> _Round:
    """The round as arrays. A cluster below the minimum abstains, as its peers would on a network."""
    if prepared.mechanism is not None:
        return _central(prepared, prepared.mechanism)
    terms, study, exchange = prepared.study.terms, prepared.study, prepared.config.exchange.kind
    began = time.monotonic()
    rosters = []
    for cluster, size in enumerate(prepared.sizes.tolist()):
        if exchange == PERMUTE:
            plan = promise.plan_for_permutation(size, terms.target_epsilon, terms.flip_probability)
        else:
            plan = plan_for(size, terms.target_epsilon, terms.flip_probability, terms.tolerated_loss)
        rosters.append(CollectedRoster(cluster, size, plan.flip_probability, plan.delta, plan.holding_minimum))
    flips = [roster.flip_probability for roster in rosters]
    played = population.play(study.labels, prepared.clusters, flips, seed=study.seed, exchange=exchange)
    taking_part = (prepared.sizes >= terms.minimum_size)[prepared.clusters]
    reporters = np.flatnonzero(taking_part)
    counts = {Outcome.REPORTED.value: len(reporters), Outcome.ABSTAINED.value: len(taking_part) - len(reporters)}
    return _Round(
        facts=_PopulationFacts(played=played, taking_part=taking_part),
        outcomes={name: count for name, count in counts.items() if count},
        rosters=rosters,
        noisy=Noisy(
            peers=reporters.tolist(),
            clusters=played.clusters[reporters],
            features=study.features[reporters],
            labels=played.reports[reporters].astype(np.int64),
        ),
        seconds={"round": time.monotonic() - began},
    )


def _central(prepared: Prepared, mechanism: LabelMechanism) -> _Round:
    """Everybody's label, released in one place. Nobody abstains: nobody depends on mates."""
    began, study = time.monotonic(), prepared.study
    played = central.play(mechanism, study.labels, prepared.clusters, seed=study.seed)
    return _Round(
        facts=_CentralFacts(played=played),
        outcomes={Outcome.REPORTED.value: len(study)},
        rosters=[],
        noisy=Noisy(
            peers=range(len(study)),
            clusters=played.clusters,
            features=study.features,
            labels=played.labels,
            targets=played.targets,
        ),
        seconds={"round": time.monotonic() - began},
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CentralFacts:
    """Made as they are read."""

    played: central.Play

    def __iter__(self) -> Iterator[Fact]:
        return self.played.facts()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PopulationFacts:
    """Made as they are read: a million peers are four million facts."""

    played: population.Round
    taking_part: npt.NDArray[np.bool_]

    def __iter__(self) -> Iterator[Fact]:
        for fact in self.played.facts():
            # A mate is of the same cluster, so both ends of an answer take part or neither does.
            assert isinstance(fact.peer, int)
            if self.taking_part[fact.peer]:
                yield fact
            elif isinstance(fact, Ended):
                yield Ended(peer=fact.peer, outcome=Outcome.ABSTAINED, reason=Reason.CLUSTER_TOO_SMALL)


def _released(prepared: Prepared, release: Release) -> Noisy:
    labels = prepared.study.labels
    reported = np.empty(len(labels), dtype=np.int64)
    for cluster in range(len(prepared.sizes)):
        members = np.flatnonzero(prepared.clusters == cluster)
        reported[members] = release(labels[members])
    return Noisy(
        peers=list(range(len(labels))), clusters=prepared.clusters, features=prepared.study.features, labels=reported
    )


def _trained(prepared: Prepared, noisy: Noisy) -> float | None:
    """Accuracy of the model trained on the reports; None if there are none."""
    if not len(noisy.labels):
        return None
    return _measured(prepared, noisy.features, noisy.labels, noisy.targets)


def _measured(
    prepared: Prepared,
    features: npt.NDArray[np.float64],
    labels: npt.NDArray[np.integer[Any]],
    targets: npt.NDArray[np.float64] | None = None,
) -> float:
    split = prepared.split
    model = prepared.config.learner.model
    if targets is not None and model == erm.CORRECTED:
        return erm.accuracy(erm.fit_targets(features, targets), split.test_features, split.test_labels)
    fitted = erm.fit(model, features, labels, label_space=split.label_space, seed=prepared.study.seed)
    return erm.accuracy(fitted, split.test_features, split.test_labels)


def _accuracy(prepared: Prepared, noisy: Noisy) -> Accuracy:
    split = prepared.split
    return Accuracy(
        private=_trained(prepared, noisy),
        non_private=_measured(prepared, split.train_features, split.train_labels),
        majority=erm.majority(split.train_labels, split.test_labels, label_space=split.label_space),
        held_out=len(split.test_labels),
    )
