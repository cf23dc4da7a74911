"""The pipe through which the processes of a study tell their launcher what happened."""

from __future__ import annotations

import asyncio
import os
import select

from p2p_labeldp import facts
from p2p_labeldp.facts import Exchanged, Fact, Met

WAIT_SECONDS = 0.1  # for company
PATIENT = (Exchanged, Met)


class FactPipe:
    """Writes facts as JSON lines; a sink, to be called where an event loop runs.

    Many processes write to the same pipe. Each write is of whole lines and no longer than PIPE_BUF, so lines never mix.
    Whatever a peer has done is written before it goes on, and outlives it. Only the facts that tell of requests and of
    records that came in, nine of ten, wait for the next other one, or for a moment: a write wakes the launcher, and
    costs as much as a signature.

    Args:
        fd: The pipe's end.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting = b""
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, fact: Fact) -> None:
        line = facts.encode(fact) + b"\n"
        assert len(line) <= select.PIPE_BUF
        if len(self._waiting) + len(line) > select.PIPE_BUF:
            self.flush()
        self._waiting += line
        if not isinstance(fact, PATIENT):
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WAIT_SECONDS, self.flush)

    def flush(self) -> None:
        """Writes what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            lines, self._waiting = self._waiting, b""
            os.write(self._fd, lines)
