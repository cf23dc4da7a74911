"""What gossip costs a peer, in bytes and messages, beside its floor: every record of its cluster once.

Aimed at: the directory's gossip takes at most 1.5 times roster size times record size, for each peer.

    python benchmarks/gossip_bytes.py [--peers 455 1000] [--sizes 20 30 100 200] [--loss 0.05]
    python benchmarks/gossip_bytes.py --clusters 25 35 36 49 53 56 64 68 69  (the demo's)

Whole rounds on the virtual engine, with real keys, so that records are as long as they are on the wire. Bytes are those
of message bodies, encoded, each counted once, at the peer that sends it; signatures and HTTP heads are not in them.
Loss takes a gossip request or its reply, either with this
probability. Columns, as multiples of the floor:

    directory  all gossip about who is there, the learner's pulls included; of which
    first      records of the own cluster that their receiver did not have
    again      records of the own cluster that it had
    elsewhere  records of other clusters
    digests    everything else: what is not a record
    learner    what is to and from the learner
    closing    gossip about who is ready, its floor the ready records once

``messages`` and ``closing msgs`` are those of a peer, replies included. ``half``, ``most`` and ``all`` say when that
share of the peers (most: 99 %) got the last record of its cluster, in gossip periods after all had joined; who never
got it is counted as infinity. ``reported`` counts the peers that reported, ``checks`` the signatures verified
for each record of a peer's cluster.
"""

from __future__ import annotations

import argparse
import collections
import math
import random
from functools import partial

import numpy as np

from p2p_labeldp import randomness, topology
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Ended, Outcome
from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.study import PeerSpec, Study, Terms, Where, peer_specs
from p2p_labeldp.network.virtual import VirtualNetwork
from p2p_labeldp.protocol import directory, wire
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import AnyMessage, Digest, GetManifest, Message, Offer, Push, Topic

PERIOD = 1.0
JOIN_SPREAD_SECONDS = 1.0
DEADLINES = Deadlines(join=16.0, exchange=24.0, closing=32.0, report=33.0)


class Counted:
    """Keys that count the peer records they verify."""

    def __init__(self, secret: bytes) -> None:
        self._keys = Keys(secret)
        self.checks = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._keys, name)

    def verify(self, kind: str, data: bytes, **bounds: int) -> object:
        self.checks += kind == directory.KIND
        return self._keys.verify(kind, data, **bounds)


class Tap:
    """A machine, and what is said to it and what it says."""

    def __init__(self, machine: Machine, me: bytes, world: World) -> None:
        self._machine, self._me, self._world = machine, me, world

    def __getattr__(self, name: str) -> object:
        return getattr(self._machine, name)

    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message | None:
        world = self._world
        world.count(message, message, sender, self._me, now)
        gossip = isinstance(message, Digest | Push)
        if gossip and world.lost():
            return None
        reply = self._machine.receive(message, sender, now)
        world.count(message, reply, self._me, sender, now)
        return None if gossip and world.lost() else reply


class World:
    """One round, watched.

    Args:
        sizes: Of each cluster.
        loss: Probability, each way.
        seed: Every coin's.
    """

    def __init__(self, *, sizes: list[int], loss: float, seed: int) -> None:
        self.peers = sum(sizes)
        self.sizes = np.array(sizes)
        self.bytes: collections.Counter[str] = collections.Counter()
        self.messages: collections.Counter[str] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        self.whole: dict[bytes, float] = {}
        self._loss, self._faults = loss, random.Random(seed)  # noqa: S311  the same faults again
        self._cluster_of = np.repeat(np.arange(len(sizes)), sizes)
        self._seen: dict[bytes, set[bytes]] = collections.defaultdict(set)
        self.record_bytes = 0
        self._network = VirtualNetwork(rng=random.Random(seed))  # noqa: S311  the same latencies again
        self._play(seed)

    def lost(self) -> bool:
        return self._loss > 0 and self._faults.random() < self._loss

    def _play(self, seed: int) -> None:
        count = len(self.sizes)
        centres = np.array([[100.0 * i, 0.0] for i in range(count)])
        features = centres[self._cluster_of]
        clustering = Clustering(mean=[0.0, 0.0], scale=[1.0, 1.0], centroids=centres, cluster_of_centroid=range(count))
        study = Study(
            terms=Terms(
                classes=("no", "yes"),
                clustering=clustering.to_payload(),
                target_epsilon=None,
                flip_probability=0.1,
                tolerated_loss=0.05,
                minimum_size=3,
                deadlines=DEADLINES,
                gossip_period=PERIOD,
                study=True,
            ),
            features=features,
            labels=np.zeros(self.peers, dtype=int),
            neighbours=topology.neighbours("random_regular", self.peers, degree=4, seed=seed),
            seed=seed,
        )
        learner, round_keys = Keys(b"L" * 32), Keys(b"R" * 32)
        self._learner = learner.peer_id
        terms = study.terms.manifest(round_key=round_keys.sealing_public, opened=0.0)
        envelope = manifests.sign(terms, learner)
        self._opened = manifests.open_manifest(envelope, keys=learner, learner=learner.peer_id)
        self._collector = Collector(
            envelope=envelope,
            opened=self._opened,
            keys=learner,
            round_keys=round_keys,
            rng=random.Random(seed + 1),  # noqa: S311  the same pulls again
        )
        where = Where(learner.peer_id, "127.0.0.2", 7400)
        self._network.add(Tap(self._collector, learner.peer_id, self), where.address())
        self._rings = [Counted(randomness.replay(seed, i).identity()) for i in range(self.peers)]
        places = [(f"127.1.{i // 250}.{i % 250}", 7400) for i in range(self.peers)]
        ids = [ring.peer_id for ring in self._rings]
        specs = peer_specs(study, secrets=[None] * len(study), ids=ids, places=places, learner=where)
        self._ordinal = {ring.peer_id: i for i, ring in enumerate(self._rings)}
        for spec, ring in zip(specs, self._rings, strict=True):
            self._network.at(JOIN_SPREAD_SECONDS * self._faults.random(), partial(self._join, spec, ring))
        self._network.run(DEADLINES.report + 1.0)

    def _join(self, spec: PeerSpec, ring: Counted) -> None:
        peer = of_study(spec, ring).peer(self._opened)
        (own,) = peer.directory.mates
        self.record_bytes += len(own.envelope)
        self._seen[ring.peer_id].add(own.envelope)
        self._collector.receive(GetManifest(spec.host, spec.port), ring.peer_id, self._network.now)
        self._network.add(Tap(peer, ring.peer_id, self), Where(ring.peer_id, spec.host, spec.port).address())

    def count(self, request: AnyMessage, message: Message, sender: bytes, receiver: bytes, now: float) -> None:
        if not isinstance(request, Digest | Push):
            return
        topic = request.topic.name.lower()
        total = len(wire.encode(message))
        self.bytes[topic] += total
        self.messages[topic] += 1
        self.kinds[f"{topic} {type(message).__name__}"] += total
        if request.topic is Topic.CLOSING:
            return
        learners = self._learner in (sender, receiver)
        self.bytes["learner"] += total if learners else 0
        for envelope in message.records if isinstance(message, Digest | Offer | Push) else ():
            total -= len(envelope)
            if learners:
                self.bytes["learner's records"] += len(envelope)
                continue
            mates = self._cluster_of[self._ordinal[receiver]] == self._cluster_of[self._signer(envelope)]
            seen = self._seen[receiver]
            self.bytes[("again" if envelope in seen else "first") if mates else "elsewhere"] += len(envelope)
            if mates and envelope not in seen:
                seen.add(envelope)
                self.whole[receiver] = now
        self.bytes["digests"] += total

    def _signer(self, envelope: bytes) -> int:
        return self._ordinal[Keys(b"L" * 32).verify(directory.KIND, envelope).peer_id]

    def known(self) -> list[float]:
        """When each peer knew its whole cluster, in periods after the last one joined; sorted."""
        sizes = self.sizes[self._cluster_of]
        return sorted(
            (self.whole.get(ring.peer_id, 0.0) - JOIN_SPREAD_SECONDS) / PERIOD
            if len(self._seen[ring.peer_id]) == size
            else math.inf
            for ring, size in zip(self._rings, sizes, strict=True)
        )

    @property
    def checks(self) -> float:
        """Peer records verified, for each record of a peer's cluster."""
        return sum(ring.checks for ring in self._rings) / float((self.sizes**2).sum())

    @property
    def reported(self) -> int:
        """Peers whose report was accepted and receipted."""
        return sum(isinstance(fact, Ended) and fact.outcome is Outcome.REPORTED for fact in self._network.facts)

    def multiples(self) -> dict[str, float]:
        """Bytes by what they were for, as multiples of every record of the cluster once."""
        record = self.record_bytes / self.peers
        floor = record * float((self.sizes**2).sum())
        found = {name: self.bytes[name] / floor for name in ("directory", "first", "again", "elsewhere", "digests")}
        found["learner"] = self.bytes["learner"] / floor
        ready = 97 + 68 + 2  # an envelope, two digests and a truth value
        found["closing"] = self.bytes["closing"] / (ready * float((self.sizes**2).sum()))
        return found


def equal(peers: int, size: int) -> list[int]:
    """Clusters of one size; the last one has what remains, too."""
    count = max(peers // size, 1)
    return [size] * (count - 1) + [peers - size * (count - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=int, nargs="+", default=[455, 1000])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 30, 100, 200])
    parser.add_argument("--clusters", type=int, nargs="+", help="one round with clusters of these sizes instead")
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", action="store_true", help="bytes by kind of message, too")
    given = parser.parse_args()
    shares = ("directory", "first", "again", "elsewhere", "digests", "learner", "closing")
    heads = ("peers", "size", "bytes", *shares, "messages", "closing msgs", "half", "most", "all", "reported", "checks")
    print(" ".join(f"{head:>9}" for head in heads))
    worlds = [(str(size), equal(peers, size)) for peers in given.peers for size in given.sizes]
    if given.clusters:
        worlds = [(f"{min(given.clusters)}-{max(given.clusters)}", given.clusters)]
    for name, sizes in worlds:
        world = World(sizes=sizes, loss=given.loss, seed=given.seed)
        peers, found, known = world.peers, world.multiples(), world.known()
        row = [
            f"{peers}",
            name,
            f"{world.bytes['directory'] / peers:.0f}",
            *(f"{found[name]:.3f}" for name in shares),
            f"{world.messages['directory'] / peers:.1f}",
            f"{world.messages['closing'] / peers:.1f}",
            *(f"{known[at]:.1f}" for at in (peers // 2, peers * 99 // 100, -1)),
            f"{world.reported}",
            f"{world.checks:.2f}",
        ]
        print(" ".join(f"{value:>9}" for value in row), flush=True)
        if given.kinds:
            for kind, total in sorted(world.kinds.items()):
                print(f"      {kind:<20} {total / peers:>8.0f} bytes a peer")


if __name__ == "__main__":
    main()
