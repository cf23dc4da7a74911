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
        self._earliest = math.inf  # of the alarms: asked for with every message
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
        while self._earliest <= now and not self.over:
            _, name = min((at, name) for name, at in self._alarms.items())
            self.clear_alarm(name)
            self._handlers[name](now)

    def wake_at(self) -> float | None:
        """When ``wake`` wants to be called next."""
        return None if self._earliest == math.inf or self.over else self._earliest

    def effects(self) -> list[Effect]:
        """Drains what is to be done, in order."""
        effects, self._effects = self._effects, []
        return effects

    # -- the machine's side ----------------------------------------------------------------------------------------

    def set_alarm(self, name: str, at: float) -> None:
        """Has the handler ``name`` called at ``at``; an earlier setting is replaced."""
        self._alarms[name] = at
        self._earliest = min(self._alarms.values())

    def hasten_alarm(self, name: str, at: float) -> None:
        """Moves an alarm that is set to ``at``, if that is sooner."""
        if name in self._alarms:
            self.set_alarm(name, min(self._alarms[name], at))

    def clear_alarm(self, name: str) -> None:
        """Forgets an alarm, set or not."""
        self._alarms.pop(name, None)
        self._earliest = min(self._alarms.values(), default=math.inf)

    def observe(self, fact: Fact) -> None:
        """States a fact that needs no durability."""
        self._effects.append(Observed(fact))

    def persist(self, fact: Fact) -> None:
        """States a fact that is on disk before anything behind it leaves."""
        self._effects.append(Persist(fact))

    def send(self, to: Address, message: Message, then: Continuation, now: float, until: float) -> None:
        """Sends a request; ``then`` hears of the reply, or that there was none by ``until``."""
        self._sent[self._next_send] = then, to, message, now
        timeout = min(MAX_SECONDS_A_SEND, max(until - now, MIN_SECONDS_A_SEND))
        self._effects.append(Send(self._next_send, to, message, timeout))
        self._next_send += 1

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
