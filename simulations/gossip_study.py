"""How long gossip takes until every peer knows its whole cluster, and what it costs: against n, fan-out, loss, churn.

Claim: records reach everybody in a number of rounds that grows as log n. In one cluster of n peers, fan-out 2 and 5 %
of all messages lost, every peer knows all others within log2(n) + 4 rounds after the last one has started (13.97 at
n = 1,000), for every seed. Fan-out 4 always needs fewer rounds than 1, at nearly the same bytes, since records travel
once anyway. Loss and churn cost rounds and stop nothing: in every cell every peer that is alive knows every other in
the end. The line is not claimed for many clusters: a peer that has to find its own among strangers takes longer, here
up to 18 rounds with 16 clusters of 64, and so a round of many clusters needs a longer join phase.

Config: real peer machines on the virtual network with faults, transparent keys, no learner; a peer starts with four
first contacts (random regular graph), and one cluster unless ``clusters`` says otherwise (of 64 members each then, so
that a peer has to find its own among strangers). A round is eight seconds. Fan-out f: f gossip periods a round, in each
of which a peer that has news opens one push-pull exchange; who has none rests up to three of them. Loss takes each
request and each reply with this probability. Churn c: c n peers die without a word at a uniform time of the first four
rounds, and each time another one starts, which knows four that are alive. One way takes 1 to 20 ms. Rounds are counted
from the last start until everybody alive holds a record of everybody alive, looked at four times a round; ``half`` and
``most`` are when half and 99 % of the peers do. Bytes are those of message bodies, each counted once, until then, per
peer; ``floors`` are multiples of all records of the cluster once. Base: n = 256, f = 2, loss .05, no churn. Seeds 50 to
53. Clusters larger than 1,000 were not tried: a run of 1,000 takes some twenty seconds of CPU time, and more than twice
that with twice the peers, since an exchange names every record.

Expected: as claimed, tolerance none: log2(n) + 4 is an upper bound over all seeds.

    OPENBLAS_NUM_THREADS=1 python simulations/gossip_study.py [--quick] [--out simulations/results]

writes gossip_study.csv (a row a run), .png and .svg (with --quick gossip_study_quick.*) and exits with 1 if a claim
fails. About two minutes of CPU time on one core, --quick about twenty seconds.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain

import numpy as np

import p2p_labeldp
from frame import Study as Frame
from p2p_labeldp import topology
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.facts import Exchanged, Fact
from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.study import Study, Terms
from p2p_labeldp.network.swarm.faults import Loss
from p2p_labeldp.network.swarm.faulty import FaultyNetwork
from p2p_labeldp.network.virtual import cast
from p2p_labeldp.protocol.effects import Address, Effect
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import AnyMessage
from p2p_labeldp.protocol.peer import Peer

SEEDS = range(50, 54)
ROUND_SECONDS = 8.0
START_SECONDS = 1.0  # within which all start
LOOKS_A_ROUND = 4
LIMIT_ROUNDS = 100
CHURN_ROUNDS = 4
CONTACTS = 4
CLUSTER = 64
CLAIMED = 1000
SIZES, QUICK_SIZES = (64, 128, 256, 512, CLAIMED), (64, 128, 256)
CLUSTERS, QUICK_CLUSTERS = (1, 4, 16), (1, 4)
FANOUTS = (1, 2, 3, 4)
LOSSES = (0.0, 0.05, 0.1, 0.2, 0.3)
CHURNS = (0.0, 0.1, 0.2, 0.3)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is varied."""

    peers: int = 256
    clusters: int = 1
    fanout: int = 2
    loss: float = 0.05
    churn: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Run:
    """One row of the table. Times are rounds after the last start, infinite if it never came to that."""

    peers: int
    clusters: int
    fanout: int
    loss: float
    churn: float
    seed: int
    half: float
    most: float
    rounds: float
    seconds: float
    bytes_a_peer: float
    floors: float
    messages_a_peer: float
    version: str = p2p_labeldp.__version__

    @property
    def cell(self) -> Cell:
        return Cell(peers=self.peers, clusters=self.clusters, fanout=self.fanout, loss=self.loss, churn=self.churn)


class Unwatched:
    """Nobody dies but by churn, and nobody listens."""

    def dies(self, party: bytes, effect: Effect) -> None:
        """Never."""

    def died(self, party: bytes) -> None:
        """Is counted elsewhere."""

    def happened(self, party: bytes, fact: Fact) -> None:
        """Facts are counted at the end."""

    def sent(self, party: bytes, to: bytes, message: AnyMessage, now: float) -> None:
        """As above."""

    def replied(self, party: bytes, to: bytes, message: AnyMessage, reply: AnyMessage, now: float) -> None:
        """As above."""


class World:
    """The peers of one run, and what they know."""

    def __init__(self, cell: Cell, seed: int) -> None:
        self.cell = cell
        self._dice = random.Random(seed)  # noqa: S311  a study is replayable
        leaving = round(cell.churn * cell.peers)
        self._cast = cast(_study(cell, cell.peers + leaving, seed))
        self._network = FaultyNetwork(
            rng=self._dice, faults=[Loss(probability=cell.loss)] if cell.loss else [], places={}, watcher=Unwatched()
        )
        self.alive: dict[int, Peer] = {}
        self._record_bytes: list[int] = []
        for i in range(cell.peers):
            self._network.at(START_SECONDS * self._dice.random(), self._start, i)
        leavers = self._dice.sample(range(cell.peers), leaving)
        times = sorted(START_SECONDS + CHURN_ROUNDS * ROUND_SECONDS * self._dice.random() for _ in leavers)
        for place, (leaver, at) in enumerate(zip(leavers, times, strict=True)):
            self._network.at(at, self._replace, leaver, cell.peers + place)
        self.last_start = times[-1] if times else START_SECONDS

    def _start(self, i: int, contacts: tuple[Address, ...] | None = None) -> None:
        ring, spec = self._cast.rings[i], self._cast.specs[i]
        party = of_study(spec, ring)
        if contacts is not None:
            party = replace(party, contacts=contacts)
        peer = self.alive[i] = party.peer(self._cast.opened)
        self._record_bytes += [len(entry.envelope) for entry in peer.directory.mates]
        self._network.begin(peer, Address(ring.peer_id, spec.host, spec.port), store=lambda _: None)

    def _replace(self, leaver: int, newcomer: int) -> None:
        del self.alive[leaver]
        self._network.kill(self._cast.rings[leaver].peer_id)
        known = self._dice.sample(sorted(self.alive), CONTACTS)
        specs = [self._cast.specs[i] for i in known]
        rings = [self._cast.rings[i] for i in known]
        contacts = (Address(r.peer_id, s.host, s.port) for r, s in zip(rings, specs, strict=True))
        self._start(newcomer, tuple(contacts))

    def _knowing(self) -> float:
        """The share of those alive that know all others of their cluster that are alive."""
        members: dict[int, list[bytes]] = {}
        for i, peer in self.alive.items():
            members.setdefault(peer.cluster, []).append(self._cast.rings[i].peer_id)
        whole = 0
        for peer in self.alive.values():
            mates = members[peer.cluster]
            whole += peer.records >= len(mates) and all(mate in peer.directory.mates for mate in mates)
        return whole / len(self.alive)

    def run(self, seed: int) -> Run:
        """Lets time pass until everybody knows everybody."""
        half = most = rounds = math.inf
        for look in range(LIMIT_ROUNDS * LOOKS_A_ROUND + 1):
            self._network.run(self.last_start + look * ROUND_SECONDS / LOOKS_A_ROUND)
            share, now = self._knowing(), look / LOOKS_A_ROUND
            half, most = (min(half, now) if share >= 0.5 else half), (min(most, now) if share >= 0.99 else most)
            if share == 1.0:
                rounds = now
                break
        said = [fact for fact in self._network.facts if isinstance(fact, Exchanged)]
        sent = sum(fact.sent + fact.received for fact in said) / self.cell.peers
        record = sum(self._record_bytes) / len(self._record_bytes)
        return Run(
            **asdict(self.cell),
            seed=seed,
            half=half,
            most=most,
            rounds=rounds,
            seconds=rounds * ROUND_SECONDS,
            bytes_a_peer=round(sent, 1),
            floors=round(sent / (record * self.cell.peers / self.cell.clusters), 3),
            messages_a_peer=round(self._network.messages / self.cell.peers, 2),
        )


def _study(cell: Cell, everybody: int, seed: int) -> Study:
    """All who take part at some time; each cluster is a point on a line."""
    clusters = np.arange(everybody) % cell.clusters
    centres = np.array([[100.0 * i, 0.0] for i in range(cell.clusters)])
    clustering = Clustering(
        mean=[0.0, 0.0], scale=[1.0, 1.0], centroids=centres, cluster_of_centroid=range(cell.clusters)
    )
    far = 10.0 * LIMIT_ROUNDS * ROUND_SECONDS
    neighbours = topology.neighbours("random_regular", cell.peers, degree=CONTACTS, seed=seed)
    return Study(
        terms=Terms(
            classes=("no", "yes"),
            clustering=clustering.to_payload(),
            target_epsilon=None,
            flip_probability=0.1,
            tolerated_loss=0.05,
            minimum_size=3,
            deadlines=Deadlines(join=far, exchange=far + 10.0, closing=far + 20.0, report=far + 30.0),
            gossip_period=ROUND_SECONDS / cell.fanout,
            study=True,
        ),
        features=centres[clusters],
        labels=np.zeros(everybody, dtype=int),
        neighbours=neighbours + [[] for _ in range(everybody - cell.peers)],
        seed=seed,
    )


def cells(*, quick: bool) -> Iterator[Cell]:
    """All that are played, each once."""
    small = 128 if quick else 256
    found = [
        *(Cell(peers=n) for n in (QUICK_SIZES if quick else SIZES)),
        *(Cell(peers=CLUSTER * count, clusters=count) for count in (QUICK_CLUSTERS if quick else CLUSTERS)),
        *(Cell(peers=small, fanout=fanout) for fanout in FANOUTS),
        *(Cell(peers=small, loss=loss) for loss in LOSSES),
        *(Cell(peers=small, churn=churn) for churn in CHURNS),
    ]
    return iter(dict.fromkeys(found))


def wrong(runs: Sequence[Run]) -> Iterator[str]:
    """What is not as claimed."""
    for run in runs:
        if run.rounds == math.inf:
            yield f"{run.cell}, seed {run.seed}: not everybody knows everybody after {LIMIT_ROUNDS} rounds"
        bound = math.log2(run.peers) + 4
        if run.cell == Cell(peers=run.peers) and run.rounds > bound:
            yield f"{run.cell}, seed {run.seed}: {run.rounds} rounds, more than log2(n) + 4 = {bound:.2f}"
    slow, fast = (
        [run.rounds for run in runs if run.fanout == fanout and run.peers == sweep(runs)] for fanout in (1, FANOUTS[-1])
    )
    if not max(fast) < min(slow):
        yield f"fan-out {FANOUTS[-1]} is not always faster than 1: {fast}, {slow}"


def sweep(runs: Sequence[Run]) -> int:
    """The number of peers where something else is varied."""
    return next(run.peers for run in runs if run.fanout == 1)


def draw(runs: Sequence[Run], frame: Frame) -> None:
    """Rounds above, bytes below; a column for what is varied. Points are runs, lines means."""
    base = sweep(runs)
    columns = (
        ("peers", "n", lambda c: (c.fanout, c.loss, c.churn) == (2, 0.05, 0.0)),
        ("fanout", "fan-out", lambda c: (c.peers, c.clusters, c.loss, c.churn) == (base, 1, 0.05, 0.0)),
        ("loss", "messages lost", lambda c: (c.peers, c.clusters, c.fanout, c.churn) == (base, 1, 2, 0.0)),
        ("churn", "peers replaced", lambda c: (c.peers, c.clusters, c.fanout, c.loss) == (base, 1, 2, 0.05)),
    )
    with frame.figure(2, len(columns), size=(12, 5.6), sharex="col", sharey="row") as (_, axes):
        for column, (name, label, chosen) in enumerate(columns):
            picked = [run for run in runs if chosen(run.cell)]
            groups = {"one cluster": [run for run in picked if run.clusters == 1]}
            if name == "peers":
                groups[f"clusters of {CLUSTER}"] = [run for run in picked if run.peers == CLUSTER * run.clusters]
            for color, (group, some) in zip(("tab:blue", "tab:orange"), groups.items(), strict=False):
                x = sorted({getattr(run, name) for run in some})
                for row, value in enumerate(("rounds", "bytes_a_peer")):
                    axis = axes[row][column]
                    at = {one: [getattr(run, value) for run in some if getattr(run, name) == one] for one in x}
                    axis.plot(x, [np.mean(at[one]) for one in x], "-", color=color, label=group)
                    axis.plot(
                        [one for one in x for _ in at[one]],
                        [*chain.from_iterable(at.values())],
                        ".",
                        color=color,
                        alpha=0.5,
                    )
            axes[1][column].set_xlabel(label)
            for row in (0, 1):
                axes[row][column].grid(alpha=0.25)
            if name == "peers":
                sizes = sorted({run.peers for run in picked})
                axes[0][0].plot(sizes, [math.log2(n) + 4 for n in sizes], "k--", label=r"$\log_2 n + 4$")
                for row in (0, 1):
                    axes[row][0].set_xscale("log", base=2)
            else:
                axes[0][column].set_title(f"n = {base}, one cluster", fontsize=10)
        axes[0][0].set(ylabel="rounds until all know all", ylim=(0, None))
        axes[0][0].set_title("fan-out 2, 5 % lost", fontsize=10)
        axes[1][0].set(ylabel="bytes a peer", yscale="log")
        axes[0][0].legend(frameon=False, fontsize=8)


def main() -> int:
    """Plays all cells, writes the table and the figure, says what held."""
    frame = Frame.from_command_line(__file__, __doc__, quick="fewer and smaller worlds, two seeds")
    runs = []
    for cell in cells(quick=frame.quick):
        some = [World(cell, seed).run(seed) for seed in (SEEDS[:2] if frame.quick else SEEDS)]
        runs += some
        times = ", ".join(f"{run.rounds:g}" for run in some)
        print(
            f"n {cell.peers:<5d} clusters {cell.clusters:<3d} fan-out {cell.fanout} loss {cell.loss:<5g} "
            f"churn {cell.churn:<4g} rounds {times}; {np.mean([run.bytes_a_peer for run in some]):,.0f} bytes a peer, "
            f"{np.mean([run.floors for run in some]):.2f} floors",
            flush=True,
        )
    frame.write_table(map(asdict, runs), header=[f"a round is {ROUND_SECONDS:g} s of virtual time"])
    draw(runs, frame)
    return frame.verdict(wrong(runs), held="every cell as claimed")


if __name__ == "__main__":
    sys.exit(main())
