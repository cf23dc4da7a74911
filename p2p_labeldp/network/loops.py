"""The event loop of a process that carries many peers, or a learner with thousands of them.

uvloop takes about two thirds of the CPU time that asyncio's own loop takes for a signed exchange. A process of one peer
keeps asyncio's: there each megabyte counts, a thousand times.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


def busy() -> asyncio.AbstractEventLoop:
    """A loop for much traffic."""
    import uvloop

    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T], *, parties: int) -> T:
    """``asyncio.run`` for a process of so many parties."""
    with asyncio.Runner(loop_factory=busy if parties > 1 else None) as runner:
        runner.get_loop().set_exception_handler(Complaints())
        return runner.run(main)


class Complaints:
    """What a loop says of an exception that is nobody's; that no descriptor is left, once and in one line.

    asyncio's loop then waits a second before it accepts again, and would tell the whole story each time.
    """

    def __init__(self) -> None:
        self._told = False

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """As ``asyncio.loop.set_exception_handler`` has it."""
        exc = context.get("exception")
        if not (isinstance(exc, OSError) and exc.errno in (errno.EMFILE, errno.ENFILE) and "socket" in context):
            loop.default_exception_handler(context)
        elif not self._told:
            self._told = True
            _log.warning(
                "%s: new connections wait until others have ended; `ulimit -n` says how many files may be open",
                exc.strerror,
            )
