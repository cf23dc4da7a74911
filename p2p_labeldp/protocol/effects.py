"""What a protocol machine wants done. Its host carries the effects out in order.

Nothing behind a ``Persist``, a reply included, leaves before the fact is on disk.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from p2p_labeldp.facts import Fact
from p2p_labeldp.protocol.messages import Message


class Address(msgspec.Struct, frozen=True):
    """Where a peer can be reached, and the id it has to prove there."""

    peer_id: bytes
    host: str
    port: int


class Persist(msgspec.Struct, frozen=True):
    """Make this fact durable before going on; it is also observed, unless it holds a label."""

    fact: Fact


class Observed(msgspec.Struct, frozen=True):
    """This happened; it needs no durability."""

    fact: Fact


class Send(msgspec.Struct, frozen=True):
    """Send ``message``; report back through ``answered`` or ``failed`` with ``send_id`` within ``timeout`` seconds."""

    send_id: int
    to: Address
    message: Message
    timeout: float


Effect: TypeAlias = Persist | Observed | Send
