"""Ten thousand peers in clusters of 100, packed into a few processes, complete one round: CPU and time.

    python benchmarks/packed_peers.py [--peers 10000] [--per-process 5000] [--slow 1]

Every peer has its own address, key, server and state, and talks HTTP, to peers of its own process too. It is to take
less than 120 s on two idle cores, so at most 240 s of CPU. The phases leave a quarter of both cores unused. On cores
that others use, where an exchange takes more than 1.16 ms, clusters may come too late and abstain: ``--slow 2`` gives
every phase twice its length.

A process verifies each record once, whichever of its peers asks, so as many processes as there are cores are best.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import resource
import sys
import time

import numpy as np

from p2p_labeldp import topology
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.facts import Ended
from p2p_labeldp.network import launcher
from p2p_labeldp.network.study import Study, Terms
from p2p_labeldp.protocol.manifest import Deadlines

CLUSTER_SIZE = 100
DEGREE = 4
GOSSIP_PERIOD = 11.0  # two cores do two exchanges a peer in it
DEADLINES = Deadlines(join=70.0, exchange=86.0, closing=107.0, report=115.0)
TARGET_SECONDS = 120.0
TARGET_CPU_SECONDS = 240.0


def study_of(
    peers: int,
    *,
    per_process: int,
    graph: str = "seeds",
    deadlines: Deadlines = DEADLINES,
    gossip_period: float = GOSSIP_PERIOD,
) -> Study:
    """Peers around the points (0, 0), (20, 0), ...; whom they know at the start has nothing to do with clusters."""
    clusters = peers // CLUSTER_SIZE
    rng = np.random.default_rng(0)
    centres = np.array([[20.0 * i, 0.0] for i in range(clusters)])
    features = np.repeat(centres, CLUSTER_SIZE, axis=0) + rng.uniform(-1.0, 1.0, size=(clusters * CLUSTER_SIZE, 2))
    rng.shuffle(features)
    clustering = Clustering(mean=[0.0, 0.0], scale=[1.0, 1.0], centroids=centres, cluster_of_centroid=range(clusters))
    terms = Terms(
        classes=("no", "yes"),
        clustering=clustering.to_payload(),
        target_epsilon=1.0,
        flip_probability=None,
        tolerated_loss=0.05,
        minimum_size=CLUSTER_SIZE // 2,
        deadlines=deadlines,
        gossip_period=gossip_period,
        study=True,
    )
    return Study(
        terms=terms,
        features=features,
        labels=(features[:, 1] > 0).astype(np.int64),
        neighbours=topology.neighbours(graph, len(features), degree=DEGREE, seed=0),
        seed=0,
        peers_per_process=per_process,
    )


def cpu_seconds() -> float:
    """Of this process and all children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=int, default=10_000)
    parser.add_argument("--per-process", type=int, default=5000)
    parser.add_argument("--slow", type=float, default=1.0, help="times the length of each phase")
    parser.add_argument("--graph", default="seeds", choices=("seeds", "random_regular"), help="of first contacts")
    options = parser.parse_args()
    chosen = study_of(options.peers, per_process=options.per_process, graph=options.graph)
    chosen = dataclasses.replace(chosen, terms=chosen.terms.slowed(options.slow))
    began, cpu = time.monotonic(), cpu_seconds()
    played = launcher.play(chosen)
    took, cpu = time.monotonic() - began, cpu_seconds() - cpu
    outcomes = collections.Counter(
        f"{fact.outcome} {fact.reason or ''}".strip() for fact in played.facts if isinstance(fact, Ended)
    )
    print(f"{len(chosen)} peers, {options.per_process} a process: {dict(outcomes)}")
    exchanges = (played.messages or 0) / 2
    print(
        f"{took:.0f} s (target {TARGET_SECONDS:.0f}), {cpu:.0f} s of CPU (target {TARGET_CPU_SECONDS:.0f} for 10,000)"
    )
    print(
        f"a peer: {1000 * cpu / len(chosen):.1f} ms, {exchanges / len(chosen):.1f} exchanges of"
        f" {1000 * cpu / exchanges:.2f} ms"
    )
    print(f"phases { ({name: round(value, 1) for name, value in played.seconds.items()}) }")
    whole = outcomes == {"reported": len(chosen)}
    return 0 if whole and took < TARGET_SECONDS and cpu < TARGET_CPU_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
