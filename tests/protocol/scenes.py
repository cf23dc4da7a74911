"""A round on the virtual network in which things go wrong: who joins when, who is gone, who is deaf."""

import random
from functools import partial

import msgspec

from p2p_labeldp import facts, randomness
from p2p_labeldp.errors import ProtocolError
from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.study import Where, peer_specs
from p2p_labeldp.network.virtual import VirtualNetwork, transparent_keys
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol import wire
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.effects import Send
from p2p_labeldp.protocol.messages import Ask, GetManifest
from p2p_labeldp.protocol.peer import GRACE_SECONDS
from p2p_labeldp.randomness import Stream


class Watched:
    """A machine behind a wire tap; deaf to asks between two moments, if wished."""

    def __init__(self, machine, scene, deaf):
        self._machine, self._scene, self._deaf = machine, scene, deaf

    def __getattr__(self, name):
        return getattr(self._machine, name)

    def effects(self):
        effects = self._machine.effects()
        self._scene.sends += [(self.peer_id, effect) for effect in effects if isinstance(effect, Send)]
        return effects

    def receive(self, message, sender, now):
        if isinstance(message, Ask) and self._deaf(now):
            self._scene.unheard += 1
            return None
        reply = self._machine.receive(message, sender, now)
        if self._scene.tamper is not None:
            reply = self._scene.tamper(self, message, sender, reply)
        self._scene.traffic.append((now, sender, self.peer_id, message, reply))
        return reply


class Scene:
    """A study's peers on a network of their own.

    Args:
        study: As for ``virtual.play``.
        deaf: Ordinal -> function of ``now``: whether that peer ignores asks, like a process that is stopped.
        joins: Ordinal -> seconds after the opening; within the first second if not given.
        tamper: Function of the machine that replied, message, sender and reply: what arrives instead of the reply.
        nonce: Another one makes another round of the same study.
        own: Function of ordinal and party: what that peer brings instead.
        made: Function of ordinal and machine, called before it starts: what is done to a peer that does not play fair.
        ring: Makes the key rings; ``Keys`` makes real ones.
        impostor: Signs what the learner signs, if it is not the learner that everybody expects.
        forge: Function of the signed manifest: what the learner hands out instead.
    """

    def __init__(
        self,
        study,
        *,
        deaf=None,
        joins=None,
        tamper=None,
        nonce=bytes(16),
        own=None,
        made=None,
        ring=transparent_keys,
        impostor=None,
        forge=lambda envelope: envelope,
    ):
        self._own, self._made = own or (lambda _, party: party), made or (lambda *_: None)
        self.tamper = tamper
        self.study = study
        self.traffic = []  # (when, sender, receiver, message, reply)
        self.sends = []  # (sender, effect), heard or not
        self.unheard = 0
        self.deaf = deaf or {}
        self.network = VirtualNetwork(rng=random.Random(study.seed))
        learner_keys, round_keys = ring(b"learner".ljust(32)), ring(b"round".ljust(32))
        signing_keys = impostor or learner_keys
        terms = study.terms.manifest(round_key=round_keys.sealing_public, opened=0.0)
        signed = manifests.sign(msgspec.structs.replace(terms, nonce=nonce), signing_keys)
        envelope = forge(signed)
        try:
            opened = manifests.open_manifest(envelope, keys=learner_keys, learner=signing_keys.peer_id)
        except ProtocolError:  # a forgery; who hands it out goes on as if nothing were wrong
            opened = manifests.open_manifest(signed, keys=learner_keys, learner=signing_keys.peer_id)
        self.learner = learner_keys.peer_id
        self.collector = Collector(
            envelope=envelope,
            opened=opened,
            keys=signing_keys,
            round_keys=round_keys,
            rng=random.Random(study.seed + 1),
        )
        where = Where(self.learner, "learner", 1)
        self._add(self.collector, where.address(), lambda _: False)
        self.rings = [ring(randomness.replay(study.seed, i).identity()) for i in range(len(study))]
        self.ids = [ring.peer_id for ring in self.rings]
        specs = peer_specs(
            study,
            secrets=[None] * len(study),
            ids=self.ids,
            places=[(f"peer-{i}", 1) for i in range(len(study))],
            learner=where,
        )
        self.peers = {}
        for i, spec in enumerate(specs):
            spread = randomness.word(study.seed, Stream.TIMING, i, 1) / 2**64
            self.network.at((joins or {}).get(i, spread), partial(self._join, i, spec))

    def _add(self, machine, address, deaf):
        watched = Watched(machine, self, deaf)
        watched.peer_id = address.peer_id
        self.network.add(watched, address)

    def _join(self, ordinal, spec):
        party = self._own(ordinal, of_study(spec, self.rings[ordinal]))
        reply = self.collector.receive(GetManifest(spec.host, spec.port), self.ids[ordinal], self.network.now)
        try:
            opened = manifests.open_manifest(reply.manifest, keys=party.keys, learner=party.learner.peer_id)
        except ProtocolError as exc:  # as a peer process has it
            about = f"policy: manifest: {getattr(exc, 'detail', '') or exc}"
            end = facts.Ended(peer=ordinal, outcome=facts.Outcome.REFUSED, reason=facts.Reason.POLICY)
            self.network.facts += [facts.Rejected(peer=ordinal, about=about), end]
            return
        peer = self.peers[ordinal] = party.peer(opened)
        self._made(ordinal, peer)
        me = Where(self.ids[ordinal], spec.host, spec.port).address()
        self._add(peer, me, self.deaf.get(ordinal, lambda _: False))

    def lose(self, ordinal, when):
        """A peer is gone without a word."""
        self.network.at(when, partial(self.network.remove, self.ids[ordinal]))

    def lose_learner(self, when):
        self.network.at(when, partial(self.network.remove, self.learner))

    def play(self):
        self.network.run(self.study.terms.deadlines.report + GRACE_SECONDS + 1)
        return self

    # -- what happened ----------------------------------------------------------------------------------------------

    def facts(self, kind):
        return [fact for fact in self.network.facts if isinstance(fact, kind)]

    def ends(self):
        """Outcome and reason of each peer; fails if anybody ended twice."""
        found = {}
        for fact in self.facts(facts.Ended):
            assert fact.peer not in found
            found[fact.peer] = (fact.outcome, fact.reason)
        return found

    def mates(self):
        """Whom each peer drew; fails if anybody drew twice."""
        found = {}
        for fact in self.facts(facts.Asked):
            assert fact.peer not in found
            found[fact.peer] = fact.mate
        return found

    def deliveries(self):
        """What went where and when, and how long it was; nothing of what it said."""
        return [
            (now, sender, receiver, type(message), type(reply), len(wire.encode(message)), len(wire.encode(reply)))
            for now, sender, receiver, message, reply in self.traffic
        ]
