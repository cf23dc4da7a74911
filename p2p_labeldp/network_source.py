"""Peers that talk to each other as something to audit: real processes, or the same machines on the virtual network.

A round holds many clusters of one size, all features public and made up, labels as the audit wants them. What comes
back are the facts of the rounds, and nothing that a learner with an observer of the asks could not see.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import topology
from p2p_labeldp.auditing import Rounds, rounds_of_facts
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Fact, Name
from p2p_labeldp.network import pace
from p2p_labeldp.network.study import Study, Terms
from p2p_labeldp.protocol.messages import MAX_CLUSTER_SIZE
from p2p_labeldp.protocol.policy import LEAST_SIZE, Policy

ENGINES = ("processes", "virtual")
PEERS = 256
"""Of a round: minutes on two cores if each is a process."""
MAX_PEERS = 10_000
DEGREE = 6  # first contacts of a peer; the default of runs
TOLERATED_LOSS = 0.05  # likewise

Array = npt.NDArray[np.integer[Any]]


def unwatched(rounds: int, of: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSource:
    """Clusters of one size, a round of many of them played as often as it takes.

    Args:
        engine: One of ``ENGINES``.
        cluster_size: s, 2 to the most that peers keep a directory of.
        flip_probability: f.
        seed: Of the study; every round's own is derived from it, the cluster size and the number of the round.
        peers: In one round, at most; one cluster is the least.
        playing: Is told the number of each round as it begins, and how many there are.

    Raises:
        ConfigurationError: An engine that does not exist, or a number out of range.
    """

    engine: str
    cluster_size: int
    flip_probability: float
    seed: int
    peers: int = PEERS
    playing: Callable[[int, int], None] = unwatched

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ConfigurationError(f"{self.engine!r} given; one of {', '.join(ENGINES)} is needed", field="engine")
        if not LEAST_SIZE <= self.cluster_size <= MAX_CLUSTER_SIZE:
            raise ConfigurationError(
                f"{self.cluster_size} given; {LEAST_SIZE} to {MAX_CLUSTER_SIZE} are possible among real peers",
                field="cluster_size",
            )
        if not LEAST_SIZE <= self.peers <= MAX_PEERS:
            raise ConfigurationError(f"{self.peers} given; {LEAST_SIZE} to {MAX_PEERS} are possible", field="peers")

    @property
    def clusters(self) -> int:
        """Of a round."""
        return max(1, self.peers // self.cluster_size)

    def whole_rounds(self, trials: int) -> int:
        """The least number of clusters, at least ``trials``, that fill whole rounds."""
        return math.ceil(trials / self.clusters) * self.clusters

    def draw_rounds(self, *, labels: Array) -> Rounds:
        """What is seen of one new cluster for each row of ``labels``, shape (rows, s); rows fill whole rounds.

        Reports that got lost on the way, as some may on a busy machine, are unseen.

        Raises:
            ConfigurationError: Another shape.
            TransportError: Processes that could not be started.
        """
        if labels.ndim != 2 or labels.shape[1] != self.cluster_size or len(labels) % self.clusters:
            raise ConfigurationError(
                f"shape {labels.shape} given; ({self.clusters} x rounds, {self.cluster_size}) is needed", field="labels"
            )
        batches = labels.reshape(-1, self.clusters * self.cluster_size)
        runs = []
        for number, batch in enumerate(batches):
            self.playing(number + 1, len(batches))
            runs.append(self._facts(batch, number))
        clusters: dict[Name, int] = dict(enumerate(np.repeat(np.arange(self.clusters), self.cluster_size).tolist()))
        (rounds,) = rounds_of_facts(
            *runs, labels=[dict(enumerate(batch.tolist())) for batch in batches], clusters=clusters
        )
        return rounds

    def _facts(self, labels: Array, number: int) -> list[Fact]:
        study = self._study(labels, self._seed(number))
        played = import_module(f"p2p_labeldp.network.{_MODULES[self.engine]}").play(study)  # HTTP takes half a second
        facts: list[Fact] = played.facts
        return facts

    def _study(self, labels: Array, seed: int) -> Study:
        centres = np.arange(self.clusters, dtype=np.float64)[:, None]
        clustering = Clustering(
            mean=np.zeros(1), scale=np.ones(1), centroids=centres, cluster_of_centroid=np.arange(self.clusters)
        )
        chosen = pace.phases(peers=len(labels), engine=self.engine)
        return Study(
            terms=Terms(
                classes=("0", "1"),
                clustering=clustering.to_payload(),
                target_epsilon=None,
                flip_probability=self.flip_probability,
                tolerated_loss=TOLERATED_LOSS,
                minimum_size=LEAST_SIZE,
                deadlines=chosen.deadlines(),
                gossip_period=chosen.gossip_period,
                study=True,
            ),
            features=np.repeat(centres, self.cluster_size, axis=0),
            labels=labels,
            neighbours=topology.neighbours("random_regular", len(labels), degree=DEGREE, seed=seed),
            seed=seed,
            slow_down=True,
            policy=Policy(minimum_size=LEAST_SIZE),
        )

    def _seed(self, number: int) -> int:
        words = f"p2p_labeldp audit {self.seed} {self.cluster_size} {number}".encode()
        return int.from_bytes(hashlib.sha256(words).digest()[:8], "big")


_MODULES = {"processes": "launcher", "virtual": "virtual"}
