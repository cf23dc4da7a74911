"""What every protocol machine has: alarms, effects, and what it waits to hear about.

The contract with a host (``network.host`` for asyncio, ``network.virtual`` for the virtual clock): ``start``,
``receive``, ``answered``, ``failed``, ``wake`` and ``close`` come in, each with ``now`` as last argument, in seconds
since the round's signed opening; after each of them the host drains ``effects`` in order and asks ``wake_at``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from p2p_labeldp.errors import LocalProtocolError
from p2p_labeldp.facts import SHORT_ID, Exchanged, Fact, Name
from p2p_labeldp.protocol import wire
from p2p_labeldp.protocol.effects import Address, Effect, Observed, Persist, Send
from p2p_labeldp.protocol.messages import AnyMessage, Message

MAX_SECONDS_A_SEND = 10.0
MIN_SECONDS_A_SEND = 0.05
NEVER = (math.inf, "")  # when no alarm rings, and its name

Continuation: TypeAlias = Callable[[AnyMessage | None, str, float], None]
"""Called with the reply, or None and ``timeout`` or ``unreachable``; and ``now``."""


class Machine(ABC):
    """The part of a machine that knows nothing of any protocol."""

    name: Name  # in facts

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._sent: dict[int, tuple[Continuation, Address, Message, float]] = {}
        self._next_send = 0
        self._alarms: dict[str, float] = {}
        self._next: tuple[float, str] = NEVER  # the earliest alarm: asked for with every message
        self._handlers: dict[str, Callable[[float], None]] = {}

    # -- what each machine is for ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether the machine has come to its end; no alarm rings any more."""

    @abstractmethod
    def start(self, now: float) -> None:
        """Enters the round ``now`` seconds after its opening."""

    @abstractmethod
    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message:
        """Replies, at once, to a message of an authenticated sender."""

    @abstractmethod
    def close(self, now: float) -> None:
        """Ends early."""

    @property
    def records(self) -> int:
        """Peer records known."""
        return 0

    @property
    def lacks(self) -> str | None:
        """What it takes to serve others and is not there, if anything."""
        return None

    # -- the host's side -------------------------------------------------------------------------------------------

    def answered(self, send_id: int, reply: AnyMessage, now: float) -> None:
        """The reply to an earlier ``Send``."""
        self._hear(send_id, reply, "", now)

    def failed(self, send_id: int, reason: str, now: float) -> None:
        """An earlier ``Send`` brought no reply; ``reason`` is ``timeout`` or ``unreachable``."""
        self._hear(send_id, None, reason, now)

    def wake(self, now: float) -> None:
        """Does what is due, the oldest first."""
        while self._next[0] <= now and not self.over:
            name = self._next[1]
            self.clear_alarm(name)
            self._handlers[name](now)

    def wake_at(self) -> float | None:
        """When ``wake`` wants to be called next."""
        at = self._next[0]
        return None if at == math.inf or self.over else at

    def effects(self) -> list[Effect]:
        """Drains what is to be done, in order."""
        effects, self._effects = self._effects, []
        return effects

    # -- the machine's side ----------------------------------------------------------------------------------------

    def set_alarm(self, name: str, at: float) -> None:
        """Has the handler ``name`` called at ``at``; an earlier setting is replaced."""
        self._alarms[name] = at
        if (at, name) <= self._next:
            self._next = (at, name)
        elif self._next[1] == name:
            self._look_ahead()

    def hasten_alarm(self, name: str, at: float) -> None:
        """Moves an alarm that is set to ``at``, if that is sooner."""
        if at < self._alarms.get(name, -math.inf):
            self.set_alarm(name, at)

    def clear_alarm(self, name: str) -> None:
        """Forgets an alarm, set or not."""
        self._alarms.pop(name, None)
        if self._next[1] == name:
            self._look_ahead()

    def _look_ahead(self) -> None:
        self._next = min(zip(self._alarms.values(), self._alarms, strict=True), default=NEVER)

    def observe(self, fact: Fact) -> None:
        """States a fact that needs no durability."""
        self._effects.append(Observed(fact))

    def persist(self, fact: Fact) -> None:
        """States a fact that is on disk before anything behind it leaves."""
        self._effects.append(Persist(fact))

    def send(self, to: Address, message: Message, then: Continuation, now: float, until: float) -> None:
        """Sends a request; ``then`` hears of the reply, or that there was none by ``until``."""
        send_id = self._next_send
        self._next_send += 1
        self._sent[send_id] = then, to, message, now
        timeout = min(MAX_SECONDS_A_SEND, max(until - now, MIN_SECONDS_A_SEND))
        self._effects.append(Send(send_id, to, message, timeout))

    def _hear(self, send_id: int, reply: AnyMessage | None, reason: str, now: float) -> None:
        try:
            then, to, message, sent_at = self._sent.pop(send_id)
        except KeyError:
            raise LocalProtocolError(f"nothing was sent as {send_id}, or it was answered before") from None
        self.wake(now)  # a process that was stopped, or waited for its disk, may hear of it before its timer rings
        self.observe(
            Exchanged(
                peer=self.name,
                at=sent_at,
                to=to.peer_id.hex()[:SHORT_ID],
                about=type(message).__name__,
                sent=len(wire.encode(message)),
                received=0 if reply is None else len(wire.encode(reply)),
            )
        )
        then(reply, reason, now)
