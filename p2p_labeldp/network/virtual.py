"""Engine 2: the real state machines on an in-memory network with a virtual clock.

One heap of events, one clock that jumps from event to event, one generator for latencies. Same seed, same events in the
same order, in any process. Messages travel as objects: the wire format is tested by itself, and the keys here are
transparent (nothing is encrypted, nothing costs), which is why nothing but what is played here, and in
``federated.virtual``, constructs them.
"""

from __future__ import annotations

import gc
import hashlib
import heapq
import itertools
import math
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import msgspec

from p2p_labeldp import randomness
from p2p_labeldp.crypto.envelope import Signed
from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage
from p2p_labeldp.facts import Fact
from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.study import PeerSpec, Played, Study, Where, coins_of, collected, draw_secrets, peer_specs
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.effects import Address, Effect, Persist, Send
from p2p_labeldp.protocol.kept import encode, exported
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.messages import MAX_ENVELOPE_BYTES, AnyMessage, GetManifest, ManifestReply, Message
from p2p_labeldp.protocol.peer import GRACE_SECONDS
from p2p_labeldp.randomness import Stream

DEFAULT_LATENCY = (0.001, 0.02)  # seconds one way, uniform
_time = struct.Struct(">d").pack


class Machine(Protocol):
    """A sans-IO machine as its host sees it."""

    def start(self, now: float) -> None: ...
    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message | None: ...  # None: stopped, silent
    def answered(self, send_id: int, reply: AnyMessage, now: float) -> None: ...
    def failed(self, send_id: int, reason: str, now: float) -> None: ...
    def wake(self, now: float) -> None: ...
    def wake_at(self) -> float | None: ...
    def close(self, now: float) -> None: ...
    def effects(self) -> list[Effect]: ...


class _TransparentKeys:
    """Keys of the in-memory network: an envelope names its signer, a box its holder, and that is all."""

    def __init__(self, secret: bytes) -> None:
        self.public = hashlib.sha256(b"transparent" + secret).digest()
        self.peer_id = hashlib.sha256(self.public).digest()
        self.sealing_public = self.public
        self._sealed = 0

    def sign(self, kind: str, payload: bytes) -> bytes:
        return b"%s%s\0%s" % (self.public, kind.encode(), payload)

    @staticmethod
    def verify(kind: str, data: bytes, *, max_bytes: int = MAX_ENVELOPE_BYTES) -> Signed:
        if len(data) > max_bytes:
            raise MalformedMessage("the envelope is too long")
        head = kind.encode() + b"\0"
        if data[32 : 32 + len(head)] != head:
            raise AuthenticationFailed("an envelope of another kind")
        public = data[:32]
        return Signed(public=public, peer_id=hashlib.sha256(public).digest(), payload=data[32 + len(head) :])

    def seal(self, public: bytes, plaintext: bytes, *, info: bytes) -> bytes:
        self._sealed += 1  # no two boxes are alike, as with fresh ephemeral keys: whoever seals twice shows
        return public + hashlib.sha256(info).digest() + self._sealed.to_bytes(8, "big") + plaintext

    def open(self, box: bytes, *, info: bytes) -> bytes:
        if box[:32] != self.public or box[32:64] != hashlib.sha256(info).digest():
            raise AuthenticationFailed("the box does not open")
        return box[72:]


def transparent_keys(secret: bytes) -> KeyRing:
    """A key ring that works in the in-memory network and nowhere else."""
    return _TransparentKeys(secret)


class Killed(Exception):
    """Raised by a store: its machine dies right here, as by ``kill -9``."""


class _Node:
    __slots__ = ("armed", "machine", "peer_id", "store")

    def __init__(self, machine: Machine, peer_id: bytes, store: Callable[[Fact], None] | None) -> None:
        self.machine = machine
        self.peer_id = peer_id
        self.store = store
        self.armed = math.inf  # when the wake-up on the heap is due


class VirtualNetwork:
    """Drives machines by a heap of events.

    Args:
        rng: Latencies are drawn from it.
        latency: Least and most seconds a message takes one way.
    """

    def __init__(self, *, rng: random.Random, latency: tuple[float, float] = DEFAULT_LATENCY) -> None:
        self.now = 0.0
        self.facts: list[Fact] = []
        self.messages = 0
        self._rng = rng
        self._least, self._spread = latency[0], latency[1] - latency[0]
        self._nodes: dict[bytes, _Node] = {}
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = itertools.count()  # of two events at one time the one that was foreseen first is first
        self._trace = hashlib.sha256()

    def at(self, when: float, action: Callable[..., None], *given: Any) -> None:
        """Does ``action``, with what is ``given`` to it, at virtual time ``when``."""
        heapq.heappush(self._heap, (when, next(self._count), action, given))

    def add(self, machine: Machine, address: Address, *, store: Callable[[Fact], None] | None = None) -> None:
        """A machine starts, now.

        Args:
            machine: The machine.
            address: Where it is reached.
            store: Its disk: is given each fact it persists, and kills it, with all that it would have done next, by
                raising ``Killed``.
        """
        self._nodes[address.peer_id] = node = _Node(machine, address.peer_id, store)
        machine.start(self.now)
        self._settle(node)

    def remove(self, peer_id: bytes) -> None:
        """A machine is gone without a word; what is on its way to it is lost."""
        del self._nodes[peer_id]

    def request(self, to: bytes, message: AnyMessage, sender: bytes) -> Message | None:
        """A request from somebody who is no node yet, and its reply, without latency."""
        node = self._nodes[to]
        reply = node.machine.receive(message, sender, self.now)
        self.messages += 2
        return reply if self._settle(node) else None

    def run(self, until: float) -> None:
        """Lets time pass until nothing is left to happen, at most until ``until``."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, action, given = heapq.heappop(heap)
            action(*given)

    @property
    def trace_hash(self) -> str:
        """Digest of all deliveries and facts so far, in order; never of ciphertext."""
        return self._trace.hexdigest()

    def _trace_delivery(self, to: bytes, message: Message) -> None:
        self._trace.update(_time(self.now) + to + type(message).__name__.encode())

    def _state(self, fact: Fact) -> None:
        told = exported(fact)
        if told is not None:
            self._trace.update(encode(told))
            self.facts.append(told)

    def _settle(self, node: _Node) -> bool:
        """Carries out a machine's effects in order and re-arms its alarm; False if it died over it."""
        machine = node.machine
        for effect in machine.effects():
            if isinstance(effect, Send):
                self._deliver(node, effect)
            else:
                if node.store is not None and isinstance(effect, Persist):
                    try:
                        node.store(effect.fact)
                    except Killed:
                        self.remove(node.peer_id)
                        return False
                self._state(effect.fact)
        due = machine.wake_at()
        if due is not None and due < node.armed:
            node.armed = due
            self.at(max(due, self.now), self._wake, node, due)
        return True

    def _wake(self, node: _Node, due: float) -> None:
        if node.armed != due or self._nodes.get(node.peer_id) is not node:
            return  # an earlier alarm took its place, or the machine is gone
        node.armed = math.inf
        node.machine.wake(self.now)
        self._settle(node)

    def _delay(self) -> float:
        return self._least + self._spread * self._rng.random()

    def _deliver(self, node: _Node, send: Send) -> None:
        """Carries a request and its reply. Whatever becomes of them, the sender hears of it by its timeout."""
        self.messages += 1
        arrival, expiry = self.now + self._delay(), self.now + send.timeout
        self.at(arrival, self._reach, node, send, expiry)
        if arrival >= expiry:
            self.at(expiry, self._fail, node, send.send_id, "timeout")

    def _reach(self, node: _Node, send: Send, expiry: float) -> None:
        given_up = self.now >= expiry
        back = self.now + self._delay()
        to, send_id = send.to.peer_id, send.send_id
        target, reply = self._nodes.get(to), None
        if target is not None:
            self._trace_delivery(to, send.message)
            reply = target.machine.receive(send.message, node.peer_id, self.now)  # type: ignore[arg-type]  # machines send known ones
            if not self._settle(target):
                target = None
            elif reply is not None:
                self.messages += 1
        if given_up:
            return
        if back >= expiry or (target is not None and reply is None):
            self.at(expiry, self._fail, node, send_id, "timeout")
        elif target is None:
            self.at(back, self._fail, node, send_id, "unreachable")
        else:
            self.at(back, self._answer, node, send_id, reply)

    def _answer(self, node: _Node, send_id: int, reply: Message) -> None:
        if self._nodes.get(node.peer_id) is node:
            node.machine.answered(send_id, reply, self.now)  # type: ignore[arg-type]  # one of AnyMessage
            self._settle(node)

    def _fail(self, node: _Node, send_id: int, reason: str) -> None:
        if self._nodes.get(node.peer_id) is node:
            node.machine.failed(send_id, reason, self.now)
            self._settle(node)


JOIN_SPREAD_SECONDS = 1.0  # the peers of a study start within it


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who plays in a study's round on an in-memory network; their keys are transparent.

    Args:
        learner: The learner, whose ``learner_keys`` sign and whose ``round_keys`` open reports.
        envelope: The signed manifest; ``opened`` is the same, verified.
        rings: Of the peers, by ordinal, as are their ``specs``.
        stranger: Keys of somebody who is no peer of the study.
    """

    learner: Where
    learner_keys: KeyRing
    round_keys: KeyRing
    envelope: bytes
    opened: OpenedManifest
    rings: list[KeyRing]
    specs: list[PeerSpec]
    stranger: KeyRing


def cast(study: Study) -> Cast:
    """Gives everybody of a study keys and a place; the same in any process."""
    learner_keys, round_keys = transparent_keys(b"learner"), transparent_keys(b"round")
    manifest = study.terms.manifest(round_key=round_keys.sealing_public, opened=0.0)
    if study.seed is not None:
        manifest = msgspec.structs.replace(manifest, nonce=study.seed.to_bytes(16, "big"))  # a seed gives one trace
    envelope = manifests.sign(manifest, learner_keys)
    learner = Where(learner_keys.peer_id, "learner", 1)
    drawn = draw_secrets(study)
    rings = [transparent_keys(coins_of(study.seed, i, secret).identity()) for i, secret in enumerate(drawn)]
    specs = peer_specs(
        study,
        secrets=drawn,
        ids=[ring.peer_id for ring in rings],
        places=[(f"peer-{i}", 1) for i in range(len(study))],
        learner=learner,
    )
    return Cast(
        learner=learner,
        learner_keys=learner_keys,
        round_keys=round_keys,
        envelope=envelope,
        opened=manifests.open_manifest(envelope, keys=learner_keys, learner=learner_keys.peer_id),
        rings=rings,
        specs=specs,
        stranger=transparent_keys(b"stranger"),
    )


def joins_at(seed: int | None, ordinal: int) -> float:
    """When a peer of a study starts, in seconds after the opening."""
    return JOIN_SPREAD_SECONDS * randomness.study_word(seed, Stream.TIMING, ordinal, 1) / 2**64


@contextmanager
def _no_garbage_looked_for() -> Iterator[None]:
    """What goes during a round is in no cycle (of 2,000 peers' round 10 objects were), and what stays stays until its
    end: finding that out again and again takes a fifth of the time with the usual thresholds."""
    usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()


def play(study: Study, *, latency: tuple[float, float] = DEFAULT_LATENCY) -> Played:
    """Plays one round of a study on a network without faults."""
    rng = random.Random(randomness.study_word(study.seed, Stream.FAULTS, 0))  # noqa: S311  latencies are no secret
    network = VirtualNetwork(rng=rng, latency=latency)
    on_stage = cast(study)
    collector = Collector(
        envelope=on_stage.envelope,
        opened=on_stage.opened,
        keys=on_stage.learner_keys,
        round_keys=on_stage.round_keys,
        rng=random.Random(randomness.study_word(study.seed, Stream.FAULTS, 1)),  # noqa: S311  whom to pull from is no secret
    )
    network.add(collector, on_stage.learner.address())
    for spec, ring in zip(on_stage.specs, on_stage.rings, strict=True):
        network.at(joins_at(study.seed, spec.ordinal), partial(_join, network, collector, spec, ring))
    end = study.terms.deadlines.report + GRACE_SECONDS
    with _no_garbage_looked_for():
        network.run(until=end + 1.0)
    d = study.terms.deadlines
    return Played(
        facts=network.facts,
        collected=collected(collector),
        messages=network.messages,
        seconds={
            "join": d.join,
            "exchange": d.exchange - d.join,
            "closing": d.closing - d.exchange,
            "report": d.report - d.closing,
        },
    )


def _join(network: VirtualNetwork, collector: Collector, spec: PeerSpec, keys: KeyRing) -> None:
    reply = network.request(collector.opened.learner, GetManifest(spec.host, spec.port), keys.peer_id)
    assert isinstance(reply, ManifestReply)
    assert reply.manifest == collector.envelope  # transparent keys verify alike for everybody: opened once for all
    party = of_study(spec, keys)
    network.add(party.peer(collector.opened), Address(keys.peer_id, spec.host, spec.port))
