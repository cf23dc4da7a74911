"""A round on the virtual network whose parties have disks, are killed and come back."""

import random
from dataclasses import replace
from functools import partial

import msgspec

from p2p_labeldp import randomness
from p2p_labeldp.auditing.once import violations
from p2p_labeldp.facts import Ended, Flipped
from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.study import Where, collected, peer_specs
from p2p_labeldp.network.virtual import Killed, VirtualNetwork, transparent_keys
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.messages import Ask, GetManifest
from p2p_labeldp.protocol.peer import GRACE_SECONDS
from p2p_labeldp.randomness import Stream

LEARNER = "learner"


class Disk:
    """What one party persisted. Of the kinds that it ``loses`` a restart finds nothing."""

    def __init__(self, lives, name, loses):
        self._lives, self.name, self.written, self._loses = lives, name, [], loses

    def facts(self):
        return [fact for fact in self.written if not isinstance(fact, self._loses)]

    def ledger(self):
        return Ledger(fact for fact in self.facts() if isinstance(fact, Flipped))

    def __call__(self, fact):
        self._lives.persisting(self, fact)


class Taped(VirtualNetwork):
    """Remembers every ask that left."""

    def __init__(self, **terms):
        super().__init__(**terms)
        self.asks = []

    def _deliver(self, node, send):
        if isinstance(send.message, Ask):
            self.asks.append((node.peer_id, send.to.peer_id))
        super()._deliver(node, send)


class Lives:
    """One round of a study.

    Args:
        study: As for ``virtual.play``.
        kill: Which of all facts persisted in the round, counted from 0, kills its party.
        before: Whether the party dies before the fact is on disk, or right after, before the effect behind it.
        away: Seconds until it is started again; None for never.
        moved: Whether it comes back with another address, and a clock that was set back.
        loses: Kinds of facts that no restart finds again: the defence switched off.
        fresh_coins: Whether each life has coins of its own, so that nothing but the disk repeats a draw or a flip.
    """

    def __init__(self, study, *, kill=None, before=False, away=0.3, moved=False, loses=(), fresh_coins=False):
        self.study, self._kill, self._before, self._away, self.moved = study, kill, before, away, moved
        self._fresh_coins = fresh_coins
        self.count, self.victim, self.fatal = 0, None, None
        self.network = Taped(rng=random.Random(study.seed))
        self.keys, self._round_keys = transparent_keys(b"learner"), transparent_keys(b"round")
        terms = study.terms.manifest(round_key=self._round_keys.sealing_public, opened=0.0)
        self.envelope = manifests.sign(msgspec.structs.replace(terms, nonce=bytes(16)), self.keys)
        self.opened = manifests.open_manifest(self.envelope, keys=self.keys, learner=self.keys.peer_id)
        rings = [transparent_keys(randomness.replay(study.seed, i).identity()) for i in range(len(study))]
        where = Where(self.keys.peer_id, "learner", 1)
        places = [(f"peer-{i}", 1) for i in range(len(study))]
        specs = peer_specs(
            study, secrets=[None] * len(study), ids=[ring.peer_id for ring in rings], places=places, learner=where
        )
        self.disks = {name: Disk(self, name, loses) for name in (*range(len(study)), LEARNER)}
        self.parties = [
            replace(of_study(spec, ring), store=self.disks[i], sequence=7)
            for i, (spec, ring) in enumerate(zip(specs, rings, strict=True))
        ]
        self.starts = dict.fromkeys(self.disks, 0)
        self._where = where
        self.machines = {}
        self.start(LEARNER)
        for i in range(len(study)):
            self.network.at(randomness.word(study.seed, Stream.TIMING, i, 1) / 2**64, partial(self.start, i))

    def start(self, name):
        """A life begins."""
        self.starts[name] += 1
        disk = self.disks[name]
        if name == LEARNER:
            machine, address = self._collector(), self._where.address()
        else:
            party = self.parties[name]
            if self.starts[name] > 1 and self.moved:
                party = replace(party, host=f"elsewhere-{name}", sequence=3)
            if self._fresh_coins:
                party = replace(party, coins=randomness.replay(1000 * self.starts[name] + self.study.seed, name))
            if not self._has_manifest(party):
                self.starts[name] -= 1
                self.network.at(self.network.now + 0.5, partial(self.start, name))
                return
            machine = party.peer(self.opened)
            address = Where(party.keys.peer_id, party.host, party.port).address()
        self.machines[name] = machine
        self.network.add(machine, address, store=disk)

    def _has_manifest(self, party):
        try:
            question = GetManifest(party.host, party.port)
            return self.network.request(self.keys.peer_id, question, party.keys.peer_id) is not None
        except KeyError:  # the learner is away
            return False

    def _collector(self):
        return Collector.restore(
            self.disks[LEARNER].facts(),
            envelope=self.envelope,
            opened=self.opened,
            keys=self.keys,
            round_keys=self._round_keys,
            rng=random.Random(self.study.seed + 1),
        )

    def persisting(self, disk, fact):
        """Each fact passes here on its way to a disk."""
        fatal = self.count == self._kill
        self.count += 1
        if not (fatal and self._before):
            disk.written.append(fact)
        if fatal:
            self.victim, self.fatal = disk.name, fact
            if self._away is not None:
                self.network.at(self.network.now + self._away, partial(self.start, disk.name))
            raise Killed

    def play(self):
        self.network.run(self.study.terms.deadlines.report + GRACE_SECONDS + 60)  # for who comes back late
        return self

    # -- what happened ----------------------------------------------------------------------------------------------

    @property
    def collected(self):
        return collected(self.machines[LEARNER])

    @property
    def facts(self):
        return [fact for disk in self.disks.values() for fact in disk.written]

    def ends(self):
        """Outcome and reason of each peer."""
        return {fact.peer: (fact.outcome, fact.reason) for fact in self.facts if isinstance(fact, Ended)}

    def violations(self):
        found = violations(self.facts, reports={report.peer: report.label for report in self.collected.reports})
        asked = {}
        for sender, mate in self.network.asks:
            if asked.setdefault(sender, mate) != mate:
                found.append("an ask left for a second mate")
        return found
