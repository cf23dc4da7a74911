"""One experiment, from configuration to result: data, clustering, a round on one of three engines, guarantee, model.

Two steps. :func:`prepare` does all that can find the configuration impossible and starts nothing; :func:`run` plays the
round. The engines are given the same features, labels, clustering, flips and seed, and what they give back is treated
alike: the population engine takes the place of a network, of nothing else.

The population engine alone also plays ``exchange.kind = "permute"``, the trusted shuffler that resampling is compared
with; ``promise`` says how its flip is planned and what it guarantees. It alone also plays the mechanisms of
``central``, which take the place of the whole exchange, for any number of classes.

Own data (``data.csv``, or arrays) is played without a seed unless one is given: every coin then comes from the
operating system, and what is public (which rows are held out, where KMeans starts) from a seed that everybody knows.
What such a run keeps may be shown to others, so it holds neither who asked whom nor what was worked out from the true
labels of its peers.

Labels reach the engine, where each becomes one peer's own, and the two yardsticks of accuracy. Clustering, topology and
planning see features and sizes only.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

import p2p_labeldp
from p2p_labeldp import central, clustering, datasets, owndata, population, promise, randomness, topology
from p2p_labeldp.accounting.views import PERMUTE
from p2p_labeldp.config import Config, Data, Deadlines, config_hash
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.datasets import Split
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import (
    Accepted,
    Answered,
    Asked,
    Ended,
    Exchanged,
    Fact,
    Opened,
    Outcome,
    Reason,
    Rejected,
    Traffic,
)
from p2p_labeldp.learning import erm
from p2p_labeldp.mechanisms import randomized_response
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.network import pace, virtual
from p2p_labeldp.network.pace import Pace
from p2p_labeldp.network.stopping import Stopping
from p2p_labeldp.network.store import Store
from p2p_labeldp.network.study import Collected, CollectedRoster, Study, Terms
from p2p_labeldp.network.transport import format_address
from p2p_labeldp.owndata import Choices, OwnTable
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.messages import MAX_CLUSTER_SIZE, Ask
from p2p_labeldp.protocol.policy import Policy
from p2p_labeldp.protocol.roster import plan_for
from p2p_labeldp.randomness import Secret
from p2p_labeldp.results import Accuracy, Noisy, Result, count_outcomes

if TYPE_CHECKING:
    from p2p_labeldp.network.learner_process import Proposal
    from p2p_labeldp.network.tls import Tls

ENGINES = ("processes", "virtual", "population")
_GRAPH_PEERS = 20_000
"""Peers up to which the population engine, which needs no graph, builds it all the same (in a second), so that what is
impossible elsewhere is impossible there. A file is always read."""
MAX_PROCESSES = 1500
"""Peer processes that own data is played with: about 9 MiB each, and a round of some two minutes on two cores."""
_VERSIONED = ("numpy", "scipy", "scikit-learn", "networkx", "msgspec", "cryptography", "pynacl", "aiohttp")


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
        public_seed: Of what is done with features alone, and of learning.
        notes: How own data was read, and what to beware of.
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
    public_seed: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """What came of an experiment.

    Args:
        result: The summary.
        facts: Everything that happened; can be gone through more than once.
        noisy: What the learner may learn from.
        config: The configuration.
        model: Fitted to ``noisy``; None if there are no reports.
        yardsticks: Works out what :func:`yardsticks` does; where this machine holds no true labels, None.
    """

    result: Result
    facts: Iterable[Fact]
    noisy: Noisy
    config: Config
    model: Any = None
    yardsticks: Callable[[], tuple[float, float]] | None = None


def check_engine(engine: str) -> str:
    """Returns ``engine`` if there is one of that name."""
    if engine not in ENGINES:
        raise ConfigurationError(f"{engine!r} given; one of {', '.join(ENGINES)} is allowed", field="--engine")
    return engine


def prepare(
    config: Config,
    *,
    engine: str,
    seed: int | None,
    table: OwnTable | None = None,
    data_directory: str | None = None,
) -> Prepared:
    """Everything before the round. Starts no process and keeps nothing.

    Args:
        config: What to run.
        engine: One of ``ENGINES``.
        seed: Of the study, 0 to 2^64 - 1; None takes coins from the operating system.
        table: Own data, in place of what the configuration names.
        data_directory: Where the files of image sets are; by default as ``datasets.files`` says. No part of the
            configuration: results from different places are one result.

    Raises:
        ConfigurationError: Something in it is impossible.
    """
    began = time.monotonic()
    check_engine(engine)
    public_seed = PUBLIC_SEED if seed is None else randomness.check_seed(seed)
    _check_supported(config, engine)
    own = own_table(config) if table is None else table
    _check_shareable(config, own, seed)
    split = split_of(config, seed=public_seed, table=own, data_directory=data_directory)
    mechanism = None
    if config.mechanism.kind != central.RESAMPLING:
        mechanism = central.mechanism_of(config, len(split.label_space))
    _check_flip(config, len(split.label_space))
    peers = len(split.train_labels)
    if own is not None:
        _check_rows(config, peers, engine)
    fitted = fit_clusters(config, split, seed=public_seed)
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
        neighbours=_neighbours(config, engine, peers, public_seed),
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
        public_seed=public_seed,
        notes=() if own is None else own.notes,
    )


@lru_cache(maxsize=4)
def _read(data: Data, version: tuple[int, int]) -> OwnTable:
    """``version``, of the file, keeps a changed one from being taken for what it was."""
    assert data.csv is not None
    assert data.label is not None
    choices = Choices(
        classes=data.classes,
        decimal=data.decimal,
        separator=data.separator,
        encoding=data.encoding,
        leave_out=data.leave_out,
        keep=data.keep,
    )
    return owndata.load(data.csv, label=data.label, choices=choices)


def own_table(config: Config) -> OwnTable | None:
    """The table that a configuration names, read once; None if it names a data set."""
    data = config.data
    if data.csv is None:
        return None
    try:
        status = os.stat(data.csv)
        version = status.st_mtime_ns, status.st_size
    except (OSError, ValueError):  # reading it says why
        version = 0, 0
    return _read(msgspec.structs.replace(data, test_share=0.5, peers=None), version)


def split_of(config: Config, *, seed: int, table: OwnTable | None = None, data_directory: str | None = None) -> Split:
    """The data of a configuration, or a table, shared out."""
    own, share, peers = table or own_table(config), config.data.test_share, config.data.peers
    if own is not None:
        return own.split(seed=seed, test_share=share, peers=peers)
    assert config.data.name is not None
    return datasets.load(
        config.data.name,
        seed=seed,
        test_share=share,
        peers=peers,
        directory=data_directory,
        verify=config.data.verify,
    )


def fit_clusters(config: Config, split: Split, *, seed: int) -> clustering.Clustering:
    """The public clustering of the peers' features."""
    return clustering.fit(
        split.train_features, count=config.clusters.count, minimum_size=config.clusters.minimum_size, seed=seed
    )


def run(
    config: Config,
    *,
    engine: str,
    seed: int | None,
    progress: Progress | None = None,
    table: OwnTable | None = None,
    data_directory: str | None = None,
) -> Run:
    """Prepares an experiment, plays its round, trains and measures.

    Args:
        config: What to run.
        engine: ``processes``, ``virtual`` or ``population``.
        seed: Of the study. The same one gives the same transcript, reports and accuracy on every engine. None, for own
            data, gives another round every time.
        progress: Is told how far it is.
        table: Own data, in place of what the configuration names.
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
    prepared = prepare(config, engine=engine, seed=seed, table=table, data_directory=data_directory)
    told.playing(peers=len(prepared.study), clusters=len(prepared.sizes), engine=engine, pace=prepared.pace)
    played = _population(prepared) if engine == "population" else _peers(prepared, told)
    told.learning()
    learning = time.monotonic()
    model = _model(prepared, played.noisy)
    accuracy = _accuracy(prepared, model)
    accounting = time.monotonic()
    if prepared.mechanism is None:
        clusters = promise.of_clusters(played.rosters, config, len(prepared.split.label_space))
        views = promise.of_views(played.rosters, clusters, config, len(prepared.split.label_space))
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
        notes=list(prepared.notes),
    )
    return Run(
        result=result,
        facts=played.facts if seed is not None else _Shareable(played.facts),
        noisy=played.noisy,
        config=config,
        model=model,
        yardsticks=partial(yardsticks, prepared),
    )


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
    return _accuracy(prepared, _model(prepared, noisy)), prepared.sizes.tolist()


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
    bind: str | None = None,
    tls: Tls | None = None,
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
        bind: Address to listen on, where it is not ``host``, by which peers know it.
        tls: Serves and calls by TLS, if given.

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
            bind=bind,
            tls=tls,
        )
    )
    noisy = _noisy(prepared, collected)
    members = sum(roster.size for roster in collected.rosters)
    counts = {Outcome.REPORTED.value: len(noisy.labels), Outcome.UNREACHABLE.value: members - len(noisy.labels)}
    traffic = [fact for fact in heard if isinstance(fact, Traffic)]
    model = _model(prepared, noisy)
    clusters = promise.of_clusters(collected.rosters, config, len(prepared.split.label_space))
    result = Result(
        peers=members,
        outcomes={name: count for name, count in counts.items() if count},
        clusters=clusters,
        views=promise.of_views(collected.rosters, clusters, config, len(prepared.split.label_space)),
        accuracy=Accuracy(
            private=None if model is None else _measured(prepared, model),
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


def _check_shareable(config: Config, own: OwnTable | None, seed: int | None) -> None:
    """What a run of own data without a seed keeps may be shown to others."""
    if own is not None and seed is None and config.mechanism.kind == "none":
        raise ConfigurationError(
            "'none' given, which would keep the labels of own data as they are; another kind, or a seed, is needed",
            field="mechanism.kind",
        )


def _check_flip(config: Config, num_classes: int) -> None:
    """A flip probability can be judged when the number of classes is known."""
    flip = config.mechanism.flip_probability
    most = randomized_response.largest_flip(num_classes)
    if flip is not None and flip > most:
        raise ConfigurationError(
            f"{flip} given; 0 to {most:.6g} is possible with {num_classes} classes", field="mechanism.flip_probability"
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
        noisy=_noisy(prepared, played.collected),
        seconds=played.seconds,
        messages=played.messages,
        bytes=played.bytes,
    )


def _noisy(prepared: Prepared, collected: Collected) -> Noisy:
    reports, width = collected.reports, prepared.study.features.shape[1]
    return Noisy(
        peers=[report.peer for report in reports],
        clusters=np.array([report.cluster for report in reports], dtype=np.int64),
        features=np.array([report.features for report in reports], dtype=np.float64).reshape(len(reports), width),
        labels=np.array([report.label for report in reports], dtype=np.int64),
        names=prepared.split.feature_names,
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
            plan = promise.plan_for_permutation(size, terms.target_epsilon, terms.flip_probability, len(terms.classes))
        else:
            plan = plan_for(size, terms)
        rosters.append(CollectedRoster(cluster, size, plan.flip_probability, plan.delta, plan.holding_minimum))
    flips = [roster.flip_probability for roster in rosters]
    played = population.play(
        study.labels,
        prepared.clusters,
        flips,
        seed=study.seed,
        exchange=exchange,
        num_classes=len(terms.classes),
    )
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
            names=prepared.split.feature_names,
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
            names=prepared.split.feature_names,
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


@dataclass(frozen=True, slots=True)
class _Shareable:
    """Facts without who asked whom, which joins a report to the label's owner: with it, what a run keeps would promise
    the local epsilon only. What peers send each other tells it, too; what they send the learner, the learner knows."""

    facts: Iterable[Fact]

    def __iter__(self) -> Iterator[Fact]:
        learner = {fact.id for fact in self.facts if isinstance(fact, Opened)}
        for fact in self.facts:
            match fact:
                case Asked() | Answered():
                    continue
                case Exchanged() if isinstance(fact.peer, int) and fact.to not in learner:
                    continue
                case Rejected() if fact.about.startswith(f"{Ask.__name__} of "):  # then comes the asker
                    continue
            yield fact


def _model(prepared: Prepared, noisy: Noisy) -> Any:
    """Fitted to the reports; None if there are none."""
    return _fitted(prepared, noisy.features, noisy.labels, noisy.targets) if len(noisy.labels) else None


def _fitted(
    prepared: Prepared,
    features: npt.NDArray[np.float64],
    labels: npt.NDArray[np.integer[Any]],
    targets: npt.NDArray[np.float64] | None = None,
) -> Any:
    name, label_space = prepared.config.learner.model, prepared.split.label_space
    if targets is not None and name == erm.CORRECTED:
        return erm.fit_targets(features, targets)
    return erm.fit(name, features, labels, label_space=label_space, seed=prepared.public_seed)


def _measured(prepared: Prepared, model: Any) -> float:
    return erm.accuracy(model, prepared.split.test_features, prepared.split.test_labels)


def _accuracy(prepared: Prepared, model: Any) -> Accuracy:
    private = None if model is None else _measured(prepared, model)
    if prepared.study.seed is None:  # the result may be passed on; peers' true labels are no part of it
        non_private = majority = None
    else:
        non_private, majority = yardsticks(prepared)
    held_out = len(prepared.split.test_labels)
    return Accuracy(private=private, non_private=non_private, majority=majority, held_out=held_out)


def yardsticks(prepared: Prepared) -> tuple[float, float]:
    """Accuracy of a model of the peers' true labels, and of always saying the commonest. READS THEM: not private."""
    split = prepared.split
    model = _fitted(prepared, split.train_features, split.train_labels)
    return _measured(prepared, model), erm.majority(
        split.train_labels, split.test_labels, label_space=split.label_space
    )


def _check_rows(config: Config, peers: int, engine: str) -> None:
    """Own data comes in sizes that nobody chose for the clusters at hand."""
    least, count = config.clusters.minimum_size, config.clusters.count
    if peers < least:
        raise ConfigurationError(
            f"{peers} rows are left for training, fewer than the {least} of the least cluster; take more rows, or --set"
            " clusters.minimum_size to fewer, at more noise",
            field="data.csv",
        )
    if count > max(1, peers // least):
        raise ConfigurationError(
            f"{count} given; {peers} rows for training make at most {peers // least} clusters of {least} or more:"
            " fewer clusters, or --set clusters.minimum_size to fewer, at more noise",
            field="clusters.count",
        )
    processes = -(-peers // config.network.peers_per_process)
    if engine == "processes" and processes > MAX_PROCESSES:
        packed = -(-peers // MAX_PROCESSES)
        raise ConfigurationError(
            f"{peers} rows for training would be {processes} processes, more than {MAX_PROCESSES}; say --engine"
            f" population, or --set network.peers_per_process={packed}, or --set data.peers={MAX_PROCESSES}",
            field="--engine",
        )
