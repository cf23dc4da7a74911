"""What a protocol machine wants done. Its host carries the effects out in order.

Nothing behind a ``Persist``, a reply included, leaves before the fact is on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from p2p_labeldp.facts import Fact
from p2p_labeldp.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class Address:
    """Where a peer can be reached, and the id it has to prove there."""

    peer_id: bytes
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Persist:
    """Make this fact durable before going on; it is also observed, unless it holds a label."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Observed:
    """This happened; it needs no durability."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Send:
    """Send ``message``; report back through ``answered`` or ``failed`` with ``send_id`` within ``timeout`` seconds."""

    send_id: int
    to: Address
    message: Message
    timeout: float


Effect: TypeAlias = Persist | Observed | Send
