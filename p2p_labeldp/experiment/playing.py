"""The round of an experiment on one of three engines: processes, the virtual network, or arrays.

The population engine takes the place of a network, of nothing else. It alone plays what no peer can: the trusted
shuffler that resampling is compared with, and the mechanisms of ``central``, which take the place of the exchange.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_labeldp import central, population, promise
from p2p_labeldp.accounting.views import PERMUTE
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.experiment.preparing import Prepared
from p2p_labeldp.facts import Ended, Fact, Outcome, Reason
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.network import virtual
from p2p_labeldp.network.pace import Pace
from p2p_labeldp.network.study import Collected, CollectedRoster, Evidence
from p2p_labeldp.protocol.roster import plan_for
from p2p_labeldp.results import Noisy, count_outcomes
from p2p_labeldp.statement import Basis, Engine


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
class Played:
    """What any engine gives back."""

    facts: Iterable[Fact]
    outcomes: dict[str, int]
    rosters: list[CollectedRoster]
    noisy: Noisy
    seconds: dict[str, float]
    messages: int | None = None
    bytes: int | None = None
    evidence: Evidence | None = None
    keys: Keys | None = None
    """The learner's, where it has any that nobody else has."""


def play(prepared: Prepared, progress: Progress) -> Played:
    """The round, on the engine that was chosen. They are given the same, and what they give back is treated alike."""
    return _population(prepared) if prepared.engine == "population" else _peers(prepared, progress)


def _peers(prepared: Prepared, progress: Progress) -> Played:
    """The round by peers that talk to each other."""
    if prepared.engine == "virtual":
        played = virtual.play(prepared.study)
    else:
        played = _launcher().play(prepared.study, on_fact=progress.happened)
    return Played(
        facts=played.facts,
        outcomes=count_outcomes(played.facts, len(prepared.study)),
        rosters=list(played.collected.rosters),
        noisy=noisy_of(prepared, played.collected),
        seconds=played.seconds,
        messages=played.messages,
        bytes=played.bytes,
        evidence=played.collected.evidence,
        keys=Keys(played.collected.identity) if played.collected.identity else None,
    )


def basis_of(prepared: Prepared, played: Played) -> Basis:
    """What a statement about the round is made of."""
    return Basis(
        engine=Engine(prepared.engine),
        num_classes=len(prepared.split.label_space),
        rosters=played.rosters,
        evidence=played.evidence,
        keys=played.keys,
    )


def noisy_of(prepared: Prepared, collected: Collected) -> Noisy:
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


def _population(prepared: Prepared) -> Played:
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
    return Played(
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


def _central(prepared: Prepared, mechanism: LabelMechanism) -> Played:
    """Everybody's label, released in one place. Nobody abstains: nobody depends on mates."""
    began, study = time.monotonic(), prepared.study
    played = central.play(mechanism, study.labels, prepared.clusters, seed=study.seed)
    return Played(
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


Release = Callable[[npt.NDArray[np.integer[Any]]], npt.NDArray[np.integer[Any]]]
"""The labels of one cluster, shape (s,), to those that its members report."""


def released(prepared: Prepared, release: Release) -> Noisy:
    labels = prepared.study.labels
    reported = np.empty(len(labels), dtype=np.int64)
    for cluster in range(len(prepared.sizes)):
        members = np.flatnonzero(prepared.clusters == cluster)
        reported[members] = release(labels[members])
    return Noisy(
        peers=list(range(len(labels))), clusters=prepared.clusters, features=prepared.study.features, labels=reported
    )
