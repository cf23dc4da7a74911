"""What a message costs on the virtual engine, beside its floor; no crypto anywhere.

Aimed at: 50,000 protocol messages a second on one core; 10,000 peers in clusters of 100 in less than 60 s.

    python benchmarks/virtual_speed.py                                        # 1,000 peers, about 15 s
    python benchmarks/virtual_speed.py --peers 10000 --sizes 100              # a minute and more

The floor: the messages of a real round, each put on a bare heap of events, taken off, encoded and decoded, by a loop
that does nothing else. The engine: the same messages between machines that say and reply without a thought; heap,
timers, effects, facts, trace. Rounds: whole ones of real peers, which decide, gossip, sign and seal, with the
transparent keys that nothing but the in-memory network can construct. Times are CPU seconds of this process, ``floors``
multiples of the floor of the same run: on a machine that is busy both grow. ``reported`` counts the peers whose report
was accepted.
"""

from __future__ import annotations

import argparse
import heapq
import random
import time
from collections.abc import Sequence

import numpy as np

from p2p_labeldp import topology
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.network import virtual
from p2p_labeldp.network.study import Study, Terms
from p2p_labeldp.network.virtual import VirtualNetwork
from p2p_labeldp.protocol import wire
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import AnyMessage, Message

PERIOD = 1.0
JOIN_PERIODS = 16
CLUSTERS_A_PERIOD = 8  # more of them take longer to find each other
PHASE_SECONDS = 5.0
ROUND_OF_THE_FLOOR = (300, 100)  # peers, size of a cluster
FLOOR_MESSAGES = 100_000


def study(peers: int, size: int, seed: int = 1) -> Study:
    """Peers in clusters of one size."""
    count = max(peers // size, 1)
    clusters = np.minimum(np.arange(peers) // size, count - 1)
    centres = np.array([[100.0 * i, 0.0] for i in range(count)])
    clustering = Clustering(mean=[0.0, 0.0], scale=[1.0, 1.0], centroids=centres, cluster_of_centroid=range(count))
    join = PERIOD * (JOIN_PERIODS + count / CLUSTERS_A_PERIOD)
    exchange, closing, report = (join + i * PHASE_SECONDS for i in (1, 2, 3))
    return Study(
        terms=Terms(
            classes=("no", "yes"),
            clustering=clustering.to_payload(),
            target_epsilon=None,
            flip_probability=0.1,
            tolerated_loss=0.05,
            minimum_size=3,
            deadlines=Deadlines(join=join, exchange=exchange, closing=closing, report=report),
            gossip_period=PERIOD,
            study=True,
        ),
        features=centres[clusters],
        labels=np.zeros(peers, dtype=int),
        neighbours=topology.neighbours("random_regular", peers, degree=4, seed=seed),
        seed=seed,
    )


def exchanges() -> list[tuple[AnyMessage, AnyMessage]]:
    """Requests and replies of a real round, in order."""
    found: list[tuple[AnyMessage, AnyMessage]] = []
    answered = Machine.answered

    def noted(self: Machine, send_id: int, reply: AnyMessage, now: float) -> None:
        request = self._sent[send_id][2]
        answered(self, send_id, reply, now)
        found.append((request, reply))  # type: ignore[arg-type]  # one of AnyMessage

    Machine.answered = noted  # type: ignore[method-assign]  # a tap, for one round
    try:
        virtual.play(study(*ROUND_OF_THE_FLOOR))
    finally:
        Machine.answered = answered  # type: ignore[method-assign]  # the tap is off
    return found


def floor(said: Sequence[tuple[AnyMessage, AnyMessage]]) -> float:
    """CPU seconds a message of a heap of events and the wire format, and nothing else."""
    rng, heap, now = random.Random(1), [], 0.0  # noqa: S311  latencies are no secret
    flat = [message for pair in said for message in pair]
    start = time.process_time()
    for count in range(FLOOR_MESSAGES):
        heapq.heappush(heap, (now + rng.random(), count, flat[count % len(flat)]))
        if len(heap) > 1000:
            now, _, message = heapq.heappop(heap)
            wire.decode(wire.encode(message))
    return (time.process_time() - start) / FLOOR_MESSAGES


class Parrot(Machine):
    """Says once a period what somebody said in a real round, and replies what somebody replied."""

    over = False

    def __init__(self, number: int, everybody: list[Address], said: Sequence[tuple[AnyMessage, AnyMessage]]) -> None:
        super().__init__()
        self.name = number
        self._everybody, self._said = everybody, said
        self._rng = random.Random(number)  # noqa: S311  the same round again
        self._handlers = {"tick": self._on_tick}

    def start(self, now: float) -> None:
        self.set_alarm("tick", now + self._rng.random())

    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message:
        self.wake(now)
        return self._said[int(now * 1e6) % len(self._said)][1]

    def close(self, now: float) -> None:
        """Nothing is left to do."""

    def _on_tick(self, now: float) -> None:
        request = self._said[self._rng.randrange(len(self._said))][0]
        self.send(self._rng.choice(self._everybody), request, lambda *_: None, now, now + 3.0)
        self.set_alarm("tick", now + PERIOD)


def engine(said: Sequence[tuple[AnyMessage, AnyMessage]], peers: int = 1000) -> float:
    """CPU seconds a message of the engine alone."""
    network = VirtualNetwork(rng=random.Random(1))  # noqa: S311  latencies are no secret
    everybody = [Address(i.to_bytes(32, "big"), f"peer-{i}", 1) for i in range(peers)]
    for i, address in enumerate(everybody):
        network.add(Parrot(i, everybody, said), address)
    start = time.process_time()
    network.run(FLOOR_MESSAGES / 2 / peers * PERIOD)
    return (time.process_time() - start) / network.messages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=int, nargs="+", default=[1000])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100])
    given = parser.parse_args()
    said = exchanges()
    least = floor(said)
    heads = ("", "peers", "size", "CPU s", "messages", "a second", "µs each", "floors", "reported")
    print(" ".join(f"{head:>9}" for head in heads))

    def tell(
        what: str, each: float, peers: str = "", size: str = "", whole: str = "", count: int = 0, end: str = ""
    ) -> None:
        row = (what, peers, size, whole, f"{count:,}" if count else "", f"{1 / each:,.0f}", f"{1e6 * each:.1f}")
        print(" ".join(f"{value:>9}" for value in (*row, f"{each / least:.1f}", end)), flush=True)

    tell("floor", least)
    tell("engine", engine(said))
    for peers in given.peers:
        for size in given.sizes:
            chosen = study(peers, size)
            start = time.process_time()
            played = virtual.play(chosen)
            spent = time.process_time() - start
            assert played.messages is not None
            reported = f"{len(played.collected.reports):,}"
            tell("round", spent / played.messages, f"{peers}", f"{size}", f"{spent:.1f}", played.messages, reported)


if __name__ == "__main__":
    main()
