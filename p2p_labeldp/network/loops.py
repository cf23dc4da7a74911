"""The event loop of a process that carries many peers, or a learner with thousands of them.

uvloop takes about two thirds of the CPU time that asyncio's own loop takes for a signed exchange. A process of one peer
keeps asyncio's: there each megabyte counts, a thousand times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def busy() -> asyncio.AbstractEventLoop:
    """A loop for much traffic."""
    import uvloop

    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T], *, parties: int) -> T:
    """``asyncio.run`` for a process of so many parties."""
    with asyncio.Runner(loop_factory=busy if parties > 1 else None) as runner:
        return runner.run(main)
