"""One scenario: a small world and its faults, drawn from a seed, played, and held against the invariants."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np

from p2p_labeldp import randomness, topology
from p2p_labeldp.auditing import invariants
from p2p_labeldp.auditing.invariants import Given, RosterSeen, Rules, Witnessed
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.errors import LabelDPError, ProtocolError
from p2p_labeldp.facts import Ended, Fact, Name, Outcome, Reason
from p2p_labeldp.network.party import Party, of_study
from p2p_labeldp.network.study import Study, Terms, collected
from p2p_labeldp.network.swarm import lies, presets
from p2p_labeldp.network.swarm.disk import Disk
from p2p_labeldp.network.swarm.faults import LEARNER, STRANGER, AnyFault, Crash, Lie, Skew, SlowDisk, Stop
from p2p_labeldp.network.swarm.faulty import FaultyNetwork
from p2p_labeldp.network.virtual import cast, joins_at
from p2p_labeldp.protocol import kept, report, roster
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.effects import Address, Effect, Persist
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import Answer, AnyMessage, Ask, GetManifest, Receipt, Report
from p2p_labeldp.protocol.peer import GRACE_SECONDS
from p2p_labeldp.protocol.roster import OpenedRoster
from p2p_labeldp.randomness import MAX_SEED, Stream

DEADLINES = Deadlines(join=10.0, exchange=16.0, closing=21.0, report=26.0)
AFTERWARDS = 60.0  # for who comes back late
MINIMUM_SIZE = 3
PEERS = 5, 15
AGAIN_SECONDS = 0.5  # until a party that did not reach the learner asks it again
WORLD, NETWORK, LIARS, COLLECTOR, COINS = range(10, 15)  # ordinals of the FAULTS stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A seed, what it means, and which of its faults are left in.

    Args:
        seed: Of everything.
        study: The peers and their terms.
        faults: What goes wrong.
    """

    seed: int
    study: Study
    faults: tuple[AnyFault, ...]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a scenario."""

    seed: int
    peers: int
    clusters: int
    faults: tuple[AnyFault, ...]
    trace_hash: str
    messages: int
    outcomes: dict[str, int]
    reports: int
    broken: list[str]
    shifts: list[tuple[int, int]]
    """Of the mates drawn, for their law over many scenarios: size of the roster, place relative to the peer's own."""


def _dice(seed: int, ordinal: int) -> random.Random:
    return random.Random(randomness.word(seed, Stream.FAULTS, ordinal, 0))  # noqa: S311  a study is replayable


def draw(seed: int, preset: str) -> Scenario:
    """The scenario of a seed.

    Raises:
        ConfigurationError: No such preset, or no such seed.
    """
    rng = _dice(randomness.check_seed(seed), WORLD)
    peers, clusters = rng.randint(*PEERS), rng.choice((1, 2))
    sizes = [peers] if clusters == 1 or peers < 2 * MINIMUM_SIZE else [peers // 2, peers - peers // 2]
    centroids = np.array([[20.0 * i, 0.0] for i in range(len(sizes))])
    features = np.repeat(centroids, sizes, axis=0) + np.array([[rng.gauss(0, 1), 0.0] for _ in range(peers)])
    clustering = Clustering(
        mean=np.zeros(2), scale=np.ones(2), centroids=centroids, cluster_of_centroid=np.arange(len(sizes))
    )
    terms = Terms(
        classes=("no", "yes"),
        clustering=clustering.to_payload(),
        target_epsilon=None,
        flip_probability=rng.choice((0.1, 0.25, 0.4)),
        tolerated_loss=rng.choice((0.05, 0.2, 0.4)),
        minimum_size=MINIMUM_SIZE,
        deadlines=DEADLINES,
        gossip_period=1.0,
        study=True,
    )
    study = Study(
        terms=terms,
        features=features,
        labels=np.array([rng.randrange(2) for _ in range(peers)]),
        neighbours=topology.neighbours("random_regular", peers, degree=rng.choice((2, 3, 4)), seed=seed),
        seed=seed,
    )
    return Scenario(seed=seed, study=study, faults=presets.draw(preset, rng, peers=peers, deadlines=DEADLINES))


class Play:
    """Plays a scenario, and watches."""

    def __init__(self, scenario: Scenario) -> None:
        self.study = study = scenario.study
        self.cast = cast(study)
        self.overheard: list[tuple[bytes, AnyMessage]] = []
        self._scenario = scenario
        self._ids = {i: ring.peer_id for i, ring in enumerate(self.cast.rings)}
        self._ids |= {LEARNER: self.cast.learner.peer_id, STRANGER: self.cast.stranger.peer_id}
        self._parties = {peer_id: party for party, peer_id in self._ids.items()}
        self._liars = {fault.party for fault in scenario.faults if isinstance(fault, Lie)}
        self._crashes: list[tuple[Crash, list[int]]] = [
            (fault, [0]) for fault in scenario.faults if isinstance(fault, Crash)
        ]
        self._doom: dict[int, Crash] = {}
        self._disks = {party: Disk() for party in (LEARNER, *range(len(study)))}
        self._lives = dict.fromkeys(self._disks, 0)
        self._moves = dict.fromkeys(self._disks, 0)
        self._machines: dict[int, Machine] = {}
        self._facts: list[Fact] = []
        self._asks: list[tuple[Name, Name, bytes]] = []
        self._answers: list[Given] = []
        self._reports: list[tuple[Name, bytes]] = []
        self._receipts: list[tuple[Name, bytes]] = []
        self._commitments: dict[Name, OpenedRoster] = {}
        self._known: dict[Name, frozenset[Name]] = {}
        self.network = FaultyNetwork(
            rng=_dice(scenario.seed, NETWORK), faults=scenario.faults, places=self._ids, watcher=self
        )

    @property
    def collector(self) -> Collector:
        """The learner's machine, of its last life so far."""
        machine = self._machines[LEARNER]
        assert isinstance(machine, Collector)
        return machine

    def verdict(self) -> Verdict:
        """Plays it to its end."""
        raised = []
        rng = _dice(self._scenario.seed, LIARS)
        try:
            self._start(LEARNER)
            for fault in self._scenario.faults:
                if isinstance(fault, Lie):
                    lies.tell(self, fault, random.Random(rng.getrandbits(64)))  # noqa: S311  replayable
                elif isinstance(fault, Stop):
                    self.network.at(fault.start, partial(self.network.stop, self._ids[fault.party], fault.seconds))
            for i in range(len(self.study)):
                self.network.at(joins_at(self.study.seed, i), partial(self._start, i))
            self.network.run(DEADLINES.report + GRACE_SECONDS + AFTERWARDS)
        except (
            LabelDPError,
            ArithmeticError,
            AssertionError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as exc:
            raised = [f"raised {type(exc).__name__}: {exc}"]
        seen = self._witnessed()
        ends = {fact.peer: fact for fact in self._facts if isinstance(fact, Ended)}
        outcomes: dict[str, int] = {}
        for fact in ends.values():
            text = str(fact.outcome) if fact.reason is None else f"{fact.outcome} ({fact.reason})"
            outcomes[text] = outcomes.get(text, 0) + 1
        return Verdict(
            seed=self._scenario.seed,
            peers=len(self.study),
            clusters=self.cast.opened.clustering.count,
            faults=self._scenario.faults,
            trace_hash=self.network.trace_hash,
            messages=self.network.messages,
            outcomes=dict(sorted(outcomes.items())),
            reports=len(seen.reports),
            broken=raised or invariants.broken(seen),
            shifts=list(invariants.mate_shifts(seen)),
        )

    # -- lives -----------------------------------------------------------------------------------------------------

    def _start(self, party: int) -> None:
        life = self._lives[party] + 1
        machine: Machine
        if party == LEARNER:
            machine, address = self._restored(), self.cast.learner.address()
        else:
            who = self._party(party, life)
            if left := who.left_behind(self.network.now):
                for fact in left:
                    self._disks[party](fact)
                    self.happened(self._ids[party], fact)
                crashed = Ended(peer=party, at=self.network.now, outcome=Outcome.FAILED, reason=Reason.CRASHED)
                self.happened(self._ids[party], crashed)
                self.network.unable_until[self._ids[party]] = self.network.now
                return
            asking = GetManifest(who.host, who.port)
            if self.network.reached(self._ids[LEARNER], asking, self._ids[party]) is None:
                self.network.at(self.network.now + AGAIN_SECONDS, partial(self._start, party))
                return
            machine, address = who.peer(self.cast.opened), Address(self._ids[party], who.host, who.port)
        self._lives[party] = life
        self._machines[party] = machine
        faults = self._scenario.faults
        self.network.begin(
            machine,
            address,
            store=self._disks[party],
            skew=sum(one.seconds for one in faults if isinstance(one, Skew) and one.party == party),
            disk_seconds=sum(one.seconds for one in faults if isinstance(one, SlowDisk) and one.party == party),
        )

    def _party(self, party: int, life: int) -> Party:
        """Each life has coins of its own, so that nothing but the disk repeats a draw or a flip."""
        who = of_study(self.cast.specs[party], self.cast.rings[party])
        who = replace(who, store=self._disks[party], sequence=7)  # type: ignore[arg-type]  # a store in memory
        if life > 1:
            other = randomness.study_word(self.study.seed, Stream.FAULTS, COINS, min(life - 1, 3)) % MAX_SEED
            who = replace(who, coins=randomness.replay(other, party))
        if self._moves[party]:
            who = replace(who, host=f"elsewhere-{party}-{self._moves[party]}", sequence=3)
        return who

    def _restored(self) -> Collector:
        return Collector.restore(
            self._disks[LEARNER].facts(),
            envelope=self.cast.envelope,
            opened=self.cast.opened,
            keys=self.cast.learner_keys,
            round_keys=self.cast.round_keys,
            rng=_dice(self._scenario.seed, COLLECTOR),
        )

    # -- what the network tells ------------------------------------------------------------------------------------

    def dies(self, party: bytes, effect: Effect) -> str | None:
        """See ``faulty.Watcher``."""
        number = self._parties[party]
        about = type(effect.fact).__name__ if isinstance(effect, Persist) else ""
        for crash, count in self._crashes:
            if crash.party == number and crash.about in ("", about):
                count[0] += 1
                if count[0] == crash.effect + 1:
                    self._doom[number] = crash
                    return "before" if crash.before else "after"
        return None

    def died(self, party: bytes) -> None:
        """Starts it again, if it is to come back."""
        number = self._parties[party]
        crash = self._doom[number]
        self._moves[number] += crash.moved
        if crash.away is not None:
            self.network.at(self.network.now + crash.away, partial(self._start, number))

    def happened(self, party: bytes, fact: Fact) -> None:
        """Keeps it for the checker."""
        name = self._name(party)
        self._facts.append(fact)
        if isinstance(fact, kept.CommittedTo):
            self._commitments[name] = roster.reopen(fact.roster, keys=self.cast.learner_keys)
        elif isinstance(fact, kept.GatheredThese):
            self._known[name] = frozenset(map(self._name, fact.signers))

    def sent(self, party: bytes, to: bytes, message: AnyMessage, now: float) -> None:
        """Notes asks and reports."""
        self.overheard.append((to, message))
        if isinstance(message, Ask):
            said = message.ask_id + message.round_id + message.roster
            self._asks.append((self._name(party), self._name(to), said))
        elif isinstance(message, Report):
            self._reports.append((self._name(party), report.digest(message)))

    def replied(self, party: bytes, to: bytes, message: AnyMessage, reply: AnyMessage, now: float) -> None:
        """Notes answers and receipts."""
        if isinstance(reply, Answer) and isinstance(message, Ask):
            accepted = self._commitments.get(self._name(party))
            here = None if accepted is None else (self.cast.opened.round_id, accepted.digest)
            self._answers.append(
                Given(
                    peer=self._name(party),
                    asker=self._name(to),
                    ask=message.ask_id,
                    box=reply.box,
                    label=self._label(message, reply, to),
                    in_place=(message.round_id, message.roster) == here,
                    at=now,
                )
            )
        elif isinstance(reply, Receipt) and self._parties[party] == LEARNER:
            self._receipts.append((self._name(to), report.receipted(reply.receipt, keys=self.cast.learner_keys)))

    def _label(self, ask: Ask, answer: Answer, asker: bytes) -> int | None:
        try:
            info = answer_info(self.cast.opened.round_id, ask.roster, asker)
            return self.cast.round_keys.open(answer.box, info=info)[0]
        except (ProtocolError, IndexError):
            return None

    def _name(self, party: bytes) -> Name:
        number = self._parties.get(party)
        if number is None:
            return party.hex()
        return {LEARNER: "learner", STRANGER: "stranger"}.get(number, number)

    # -- afterwards ------------------------------------------------------------------------------------------------

    def _witnessed(self) -> Witnessed:
        learner = self.collector
        if not self.network.alive(self._ids[LEARNER]):
            learner = self._restored()  # what its disk says is what it has
            learner.start(DEADLINES.report + GRACE_SECONDS)
        terms = self.study.terms
        assert terms.flip_probability is not None
        running = {party for party in self._disks if self.network.alive(self._ids[party])}
        names = {party: self._name(self._ids[party]) for party in self._disks}
        return Witnessed(
            rules=Rules(
                join=DEADLINES.join,
                exchange=DEADLINES.exchange,
                closing=DEADLINES.closing,
                end=DEADLINES.report + GRACE_SECONDS,
                flip_probability=terms.flip_probability,
                tolerated_loss=terms.tolerated_loss,
                minimum_size=terms.minimum_size,
            ),
            facts=self._facts,
            reports={one.peer: one.label for one in collected(learner).reports},
            rosters={
                cluster: self._seen(roster.reopen(one.envelope, keys=self.cast.learner_keys))
                for cluster, one in learner.rosters.items()
            },
            liars=frozenset(self._name(self._ids[party]) for party in self._liars if party != LEARNER),
            honest_learner=LEARNER not in self._liars,
            running=frozenset(names[party] for party in running),
            unfinished=frozenset(names[party] for party in running if not self._machines[party].over),
            unable_until={
                self._name(party): until + max(0.0, self._skew(party))
                for party, until in self.network.unable_until.items()
            },
            held_up={self._name(party): times for party, times in self.network.held_up.items()},
            known=self._known,
            commitments={name: self._seen(accepted) for name, accepted in self._commitments.items()},
            asks=self._asks,
            answers=self._answers,
            sent_reports=self._reports,
            receipts=self._receipts,
        )

    def _skew(self, party: bytes) -> float:
        number = self._parties[party]
        return sum(one.seconds for one in self._scenario.faults if isinstance(one, Skew) and one.party == number)

    def _seen(self, accepted: OpenedRoster) -> RosterSeen:
        return RosterSeen(
            members=tuple(map(self._name, accepted.members)),
            flip_probability=accepted.roster.flip_probability,
            delta=accepted.roster.delta,
            holding_minimum=accepted.roster.holding_minimum,
        )


def play(scenario: Scenario) -> Verdict:
    """Plays a scenario; the same one gives the same verdict in any process."""
    return Play(scenario).verdict()
