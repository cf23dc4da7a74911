"""A study: a whole round on one machine, whose every coin comes from a seed, and what came of it.

Without a seed each peer's coins derive from a secret of its own, drawn from the operating system, as a deployed peer's
do.

Both engines that run real peers take a ``Study`` and give a ``Played``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from p2p_labeldp.facts import Fact, Name
from p2p_labeldp.protocol.admission import Admission
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.manifest import Deadlines, Manifest
from p2p_labeldp.protocol.policy import Policy
from p2p_labeldp.randomness import Replay, Secret


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a learner puts in its manifest, but for the round's key and its opening."""

    classes: tuple[str, ...]
    clustering: dict[str, object]
    target_epsilon: float | None
    flip_probability: float | None
    tolerated_loss: float
    minimum_size: int
    deadlines: Deadlines
    gossip_period: float
    study: bool
    enrolment_key: bytes | None = None

    def slowed(self, factor: float) -> Terms:
        """The same with every phase ``factor`` times as long, for a machine that is busy."""
        d = self.deadlines
        return msgspec.structs.replace(
            self,
            deadlines=Deadlines(
                join=factor * d.join,
                exchange=factor * d.exchange,
                closing=factor * d.closing,
                report=factor * d.report,
            ),
            gossip_period=factor * self.gossip_period,
        )

    def manifest(self, *, round_key: bytes, opened: float) -> Manifest:
        """The manifest of a round that opens now."""
        return Manifest(
            classes=self.classes,
            clustering=self.clustering,
            target_epsilon=self.target_epsilon,
            flip_probability=self.flip_probability,
            tolerated_loss=self.tolerated_loss,
            minimum_size=self.minimum_size,
            deadlines=self.deadlines,
            gossip_period=self.gossip_period,
            round_key=round_key,
            study=self.study,
            opened=opened,
            nonce=os.urandom(16),
            admission=Admission.OPEN if self.enrolment_key is None else Admission.ALLOWLIST,
            enrolment_key=self.enrolment_key,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What the engines are given.

    Args:
        terms: The learner's terms.
        features: One row per peer, shape (n, d).
        labels: One label per peer, shape (n,).
        neighbours: First contacts of each peer, as ordinals.
        seed: Every coin's; None if each peer has a secret instead.
        peers_per_process: For the engine that has processes.
        slow_down: Whether that engine may lengthen the phases on a machine that it finds busy.
        policy: The limits of every peer; the usual ones of a peer if not given.
    """

    terms: Terms
    features: npt.NDArray[np.float64]
    labels: npt.NDArray[np.integer]
    neighbours: list[list[int]]
    seed: int | None
    peers_per_process: int = 1
    slow_down: bool = False
    policy: Policy | None = None

    def __len__(self) -> int:
        return len(self.labels)


class Where(msgspec.Struct, frozen=True, array_like=True):
    """An address, on its way between processes."""

    peer_id: bytes
    host: str
    port: int

    def address(self) -> Address:
        """The same as the protocol knows it."""
        return Address(self.peer_id, self.host, self.port)


class PeerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a peer of a study is told: its seed and ordinal, or its secret (its coins and key derive from them), its
    one example, the learner, its first contacts. No roster, no draw, nobody else's record or label."""

    ordinal: Annotated[int, Meta(ge=0)]
    host: str
    port: int
    features: tuple[float, ...]
    label: int
    classes: tuple[str, ...]
    learner: Where
    contacts: tuple[Where, ...]
    seed: int | None = None
    secret: bytes | None = None
    policy: Policy | None = None

    def coins(self) -> Replay | Secret:
        """The peer's randomness."""
        return coins_of(self.seed, self.ordinal, self.secret)


def coins_of(seed: int | None, ordinal: int, secret: bytes | None) -> Replay | Secret:
    """Of one peer of a study, which has either a seed or a secret."""
    if secret is not None:
        return Secret(secret)
    assert seed is not None
    return Replay(seed, ordinal)


def draw_secrets(study: Study) -> list[bytes | None]:
    """One for each peer, if the study has no seed; drawn anew at every call."""
    return [os.urandom(32) if study.seed is None else None for _ in range(len(study))]


def peer_specs(
    study: Study,
    *,
    secrets: list[bytes | None],
    ids: list[bytes],
    places: list[tuple[str, int]],
    learner: Where,
) -> list[PeerSpec]:
    """One spec per peer; ``secrets``, ``ids`` and ``places`` by ordinal."""
    everyone = [Where(peer_id, host, port) for peer_id, (host, port) in zip(ids, places, strict=True)]
    return [
        PeerSpec(
            seed=study.seed,
            secret=secrets[i],
            ordinal=i,
            host=places[i][0],
            port=places[i][1],
            features=tuple(study.features[i].tolist()),
            label=int(study.labels[i]),
            classes=study.terms.classes,
            learner=learner,
            contacts=tuple(everyone[j] for j in study.neighbours[i]),
            policy=study.policy,
        )
        for i in range(len(study))
    ]


class CollectedReport(msgspec.Struct, frozen=True, array_like=True):
    """A report as the learner keeps it: who reported, from where, and the flipped label of some mate."""

    peer: int | str
    ordinal: int
    cluster: int
    features: tuple[float, ...]
    label: int


class CollectedRoster(msgspec.Struct, frozen=True, array_like=True):
    """A roster as the learner signed it."""

    cluster: int
    size: int
    flip_probability: float
    delta: float
    holding_minimum: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The envelopes that a learner signed in a round: whoever has them need not believe what is told of it."""

    manifest: bytes
    rosters: tuple[tuple[int, bytes], ...]
    """By cluster."""
    receipts: tuple[tuple[Name, bytes], ...]
    """By reporter, in the order of the reports."""


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What the learner has when the round is over. Reports are ordered by peer, so that a fit sees one order."""

    rosters: tuple[CollectedRoster, ...]
    reports: tuple[CollectedReport, ...]
    complete: bool = True
    """Whether the round came to its own end."""
    evidence: Evidence | None = None
    """None on the in-memory network, where anybody makes anybody's signature."""
    identity: bytes = b""
    """Of a study's learner, which goes out of the world with its process: the secret that its keys derive from, for
    whoever started it to sign with what the round came to."""


def evidence_of(collector: Collector) -> Evidence:
    """What a collector with real keys signed."""
    reports = sorted(collector.reports.items(), key=lambda item: (item[1].ordinal, item[0]))
    return Evidence(
        manifest=collector.envelope,
        rosters=tuple((cluster, roster.envelope) for cluster, roster in sorted(collector.rosters.items())),
        receipts=tuple((collector.name_of(reporter), collector.receipt_of(reporter)) for reporter, _ in reports),
    )


def collected(collector: Collector) -> Collected:
    """Takes stock of a collector."""
    reports = [
        CollectedReport(
            collector.name_of(report.reporter),
            report.ordinal,
            report.cluster,
            report.features,
            report.label,
        )
        for _, report in sorted(collector.reports.items(), key=lambda item: (item[1].ordinal, item[0]))
    ]
    rosters = [
        CollectedRoster(
            cluster, len(roster.members), roster.plan.flip_probability, roster.plan.delta, roster.plan.holding_minimum
        )
        for cluster, roster in sorted(collector.rosters.items())
    ]
    return Collected(rosters=tuple(rosters), reports=tuple(reports), complete=collector.whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What an engine gives back.

    Args:
        facts: Everything that happened, in the order it became known.
        collected: What the learner has.
        messages: Messages sent, requests and replies; None where there are none.
        bytes: Their bytes on the wire; None where there is no wire.
        seconds: Length of each phase.
    """

    facts: list[Fact]
    collected: Collected
    messages: int | None = None
    bytes: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
