"""The virtual network with faults: what is lost, late, doubled or cut, and parties that die, stop or are slow.

Every roll of dice comes from one generator in the order of events, so a seed gives one trace. A party whose process is
stopped, or waits for its disk, finds what came in meanwhile in any order: its own timers among them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from p2p_labeldp.facts import Fact
from p2p_labeldp.network.swarm.faults import AnyFault, Duplication, Latency, Loss, Partition, Reordering
from p2p_labeldp.network.virtual import DEFAULT_LATENCY, Machine, VirtualNetwork
from p2p_labeldp.protocol.effects import Address, Effect, Persist, Send
from p2p_labeldp.protocol.messages import AnyMessage, Message

MAX_LATENCY = 60.0  # beyond every patience; a Pareto law has no end of its own


class Watcher(Protocol):
    """Sees what nobody in the round sees, and decides who dies."""

    def dies(self, party: bytes, effect: Effect) -> str | None:
        """``before`` or ``after`` if the party dies at this effect."""
        ...

    def died(self, party: bytes) -> None:
        """It did."""
        ...

    def happened(self, party: bytes, fact: Fact) -> None:
        """A fact, as its party persisted or observed it."""
        ...

    def sent(self, party: bytes, to: bytes, message: AnyMessage, now: float) -> None:
        """A request left."""
        ...

    def replied(self, party: bytes, to: bytes, message: AnyMessage, reply: AnyMessage, now: float) -> None:
        """A reply left; ``now`` by the clock of ``party``."""
        ...


Tamper = Callable[[AnyMessage, bytes, Message | None], Message | None]


class _Life:
    """One life of a party."""

    __slots__ = ("address", "armed", "blocked_until", "disk_seconds", "draining", "machine", "skew", "store", "waiting")

    def __init__(
        self, machine: Machine, address: Address, store: Callable[[Fact], None], skew: float, disk_seconds: float
    ) -> None:
        self.machine = machine
        self.address = address
        self.store = store
        self.skew = skew
        self.disk_seconds = disk_seconds
        self.armed: float | None = None  # by the party's own clock
        self.blocked_until = 0.0
        self.waiting: list[Callable[[], None]] = []
        self.draining = False


class FaultyNetwork(VirtualNetwork):
    """Drives machines through faults.

    Args:
        rng: All dice.
        faults: Those of the network are used: latency, loss, duplication, reordering, partitions.
        places: Id of each party by ordinal, for partitions.
        watcher: Is told what happens.
    """

    def __init__(
        self, *, rng: random.Random, faults: Iterable[AnyFault], places: dict[int, bytes], watcher: Watcher
    ) -> None:
        super().__init__(rng=rng)
        self.tampers: dict[bytes, Tamper] = {}
        self.unable_until: dict[bytes, float] = {}  # when a party was last held up
        self.held_up: dict[bytes, list[tuple[float, float]]] = {}  # from when until when, by its own clock
        self._watcher = watcher
        self._lives: dict[bytes, _Life] = {}
        faults = list(faults)
        self._latencies = [fault for fault in faults if isinstance(fault, Latency)]
        self._losses = [fault.probability for fault in faults if isinstance(fault, Loss)]
        self._duplications = [fault for fault in faults if isinstance(fault, Duplication)]
        self._reorderings = [fault for fault in faults if isinstance(fault, Reordering)]
        self._cuts = [
            (fault, {places[i] for i in fault.sources}, {places[i] for i in fault.targets})
            for fault in faults
            if isinstance(fault, Partition)
        ]

    # -- parties ---------------------------------------------------------------------------------------------------

    def begin(
        self,
        machine: Machine,
        address: Address,
        *,
        store: Callable[[Fact], None],
        skew: float = 0.0,
        disk_seconds: float = 0.0,
    ) -> None:
        """A life begins, now.

        Args:
            machine: The machine.
            address: Where it is reached.
            store: Its disk.
            skew: How far its clock is ahead.
            disk_seconds: What a fact takes to persist.
        """
        life = _Life(machine, address, store, skew, disk_seconds)
        self._lives[address.peer_id] = life
        self._held_up(life, self.now)
        machine.start(self._clock(life))
        self._finish(life)

    def alive(self, party: bytes) -> bool:
        """Whether it runs, or is stopped."""
        return party in self._lives

    def kill(self, party: bytes) -> None:
        """It dies without a word."""
        if self._lives.pop(party, None) is not None:
            self._watcher.died(party)

    def stop(self, party: bytes, seconds: float) -> None:
        """Its process does nothing for so long."""
        life = self._lives.get(party)
        if life is not None:
            life.blocked_until = max(life.blocked_until, self.now + seconds)
            self._held_up(life, life.blocked_until)

    def reached(self, to: bytes, message: AnyMessage, sender: bytes) -> Message | None:
        """A request from somebody who is not started yet; None if it does not arrive."""
        life = self._lives.get(to)
        if life is None or self.now < life.blocked_until or life.waiting or self._cut(sender, to):
            return None
        reply = life.machine.receive(message, sender, self._clock(life))
        self.messages += 2
        return reply if self._finish(life) is not None else None

    def inject(self, sender: bytes, to: bytes, message: AnyMessage) -> None:
        """A Byzantine party says something, and does not care for the reply."""
        self.messages += 1
        self.at(self.now + self._takes(), partial(self._arrive, to, message, sender, lambda _: None))

    def _clock(self, life: _Life) -> float:
        return max(0.0, self.now + life.skew)

    def _held_up(self, life: _Life, until: float) -> None:
        party = life.address.peer_id
        self.unable_until[party] = max(self.unable_until.get(party, 0.0), until)
        self.held_up.setdefault(party, []).append((self._clock(life), until + life.skew))

    def _runs(self, life: _Life) -> bool:
        return self._lives.get(life.address.peer_id) is life

    def _do(self, life: _Life, action: Callable[[], None]) -> None:
        """Does it now, or when the party is not held up any more."""
        if not self._runs(life):
            return
        if self.now < life.blocked_until or life.waiting:
            life.waiting.append(action)
            self._drain_later(life)
        else:
            action()

    def _drain_later(self, life: _Life) -> None:
        if not life.draining:
            life.draining = True
            self.at(max(life.blocked_until, self.now), partial(self._drain, life))

    def _drain(self, life: _Life) -> None:
        life.draining = False
        if not self._runs(life):
            return
        self._rng.shuffle(life.waiting)
        while life.waiting and self._runs(life):
            if self.now < life.blocked_until:
                self._drain_later(life)
                return
            life.waiting.pop()()

    def _finish(self, life: _Life) -> float | None:
        """Carries effects out in order and re-arms the alarm; how long that takes, or None if the party died."""
        party, delay = life.address.peer_id, 0.0
        for effect in life.machine.effects():
            doom = self._watcher.dies(party, effect)
            if doom != "before":
                if isinstance(effect, Send):
                    self._after(delay, partial(self._leave, life, effect))
                else:
                    if isinstance(effect, Persist):
                        life.store(effect.fact)
                        delay += life.disk_seconds
                    self._watcher.happened(party, effect.fact)
                    self._state(effect.fact)
            if doom is not None:
                self.kill(party)
                return None
        if delay:
            life.blocked_until = max(life.blocked_until, self.now + delay)
            self._held_up(life, life.blocked_until)
        due = life.machine.wake_at()
        if due is not None and (life.armed is None or due < life.armed):
            life.armed = due
            self.at(max(due - life.skew, self.now), partial(self._do, life, partial(self._ring, life, due)))
        return delay

    def _after(self, delay: float, action: Callable[[], None]) -> None:
        if delay:
            self.at(self.now + delay, action)
        else:
            action()

    def _ring(self, life: _Life, due: float) -> None:
        if life.armed != due:
            return  # an earlier alarm took its place
        life.armed = None
        life.machine.wake(max(self._clock(life), due))  # not a rounding error before it is due
        self._finish(life)

    # -- messages --------------------------------------------------------------------------------------------------

    def _takes(self) -> float:
        seconds = self._rng.uniform(*DEFAULT_LATENCY)
        for latency in self._latencies:
            match latency.law:
                case "exponential":
                    seconds += self._rng.expovariate(1.0 / latency.seconds)
                case "pareto":
                    seconds += latency.seconds * self._rng.paretovariate(1.5)
                case _:
                    seconds += latency.seconds * self._rng.random()
        for held in self._reorderings:
            if self._rng.random() < held.probability:
                seconds += held.seconds * self._rng.random()
        return min(seconds, MAX_LATENCY)

    def _cut(self, sender: bytes, to: bytes) -> bool:
        for cut, sources, targets in self._cuts:
            if cut.start <= self.now < cut.start + cut.seconds and (
                (sender in sources and to in targets) or (not cut.one_way and sender in targets and to in sources)
            ):
                return True
        return False

    def _lost(self, sender: bytes, to: bytes) -> bool:
        return self._cut(sender, to) or any(self._rng.random() < probability for probability in self._losses)

    def _leave(self, life: _Life, send: Send) -> None:
        """A request leaves. Whatever becomes of it, its sender hears of it once, by its timeout."""
        if not self._runs(life):
            return
        sender, to = life.address.peer_id, send.to.peer_id
        self.messages += 1
        self._watcher.sent(sender, to, send.message, self.now)  # type: ignore[arg-type]  # machines send known ones
        heard = False

        def hear(reply: Message | str) -> None:
            nonlocal heard
            if heard:
                return
            heard = True
            tell = life.machine.failed if isinstance(reply, str) else life.machine.answered

            def told() -> None:
                tell(send.send_id, reply, self._clock(life))  # type: ignore[arg-type]  # `failed` of a str
                self._finish(life)

            self._do(life, told)

        self.at(self.now + send.timeout, partial(hear, "timeout"))
        arrivals = [self._takes()]
        for again in self._duplications:
            if self._rng.random() < again.probability:
                arrivals.append(arrivals[0] + again.seconds * self._rng.random())
        for takes in arrivals:
            if not self._lost(sender, to):
                self.at(self.now + takes, partial(self._arrive, to, send.message, sender, hear))  # type: ignore[arg-type]  # one of AnyMessage

    def _arrive(self, to: bytes, message: AnyMessage, sender: bytes, hear: Callable[[Message | str], None]) -> None:
        life = self._lives.get(to)
        if life is None:
            self.at(self.now + self._takes(), partial(hear, "unreachable"))
        else:
            self._do(life, partial(self._take, life, message, sender, hear))

    def _take(self, life: _Life, message: AnyMessage, sender: bytes, hear: Callable[[Message | str], None]) -> None:
        party = life.address.peer_id
        self._trace_delivery(party, message)
        clock = self._clock(life)
        reply = life.machine.receive(message, sender, clock)
        delay = self._finish(life)
        if delay is None:
            self.at(self.now + self._takes(), partial(hear, "unreachable"))
            return
        if party in self.tampers:
            reply = self.tampers[party](message, sender, reply)
        if reply is not None:
            self._after(delay, partial(self._reply, life, message, sender, reply, clock, hear))

    def _reply(
        self,
        life: _Life,
        message: AnyMessage,
        sender: bytes,
        reply: Message,
        clock: float,
        hear: Callable[[Message | str], None],
    ) -> None:
        if not self._runs(life):
            return
        self.messages += 1
        self._watcher.replied(life.address.peer_id, sender, message, reply, clock)  # type: ignore[arg-type]  # one of AnyMessage
        if not self._lost(life.address.peer_id, sender):
            self.at(self.now + self._takes(), partial(hear, reply))
