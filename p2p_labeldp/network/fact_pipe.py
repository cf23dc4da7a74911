"""The pipe through which the processes of a study tell their launcher what happened.

Many processes write to the same pipe. Each write is of whole lines and no longer than PIPE_BUF, so lines never mix. A
fact that is longer (``Tallied`` of a roster of 12,000) goes in pieces, a line each: the writer's process id, whether it
is the first, a middle or the last one, and some bytes. Pieces of one writer arrive in order, whatever stands between.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Iterable, Iterator

from p2p_labeldp import facts
from p2p_labeldp.facts import Exchanged, Fact, Met

WAIT_SECONDS = 0.1  # for company
PATIENT = (Exchanged, Met)
FIRST, MIDDLE, LAST = b"<", b"-", b">"
PIECE_BYTES = select.PIPE_BUF - 32  # process ids have 10 digits or fewer


class FactPipe:
    """Writes facts as JSON lines; a sink, to be called where an event loop runs.

    Whatever a peer has done is written before it goes on, and outlives it. Only the facts that tell of requests and of
    records that came in, which are most, wait for the next other one, or for a moment: a write wakes the launcher, and
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
        if len(line) > select.PIPE_BUF:
            self.flush()
            for piece in _pieces(line[:-1]):
                os.write(self._fd, piece)
            return
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


def _pieces(line: bytes) -> Iterator[bytes]:
    """Of a line without its end; two or more, for it is longer than one may be."""
    starts = range(0, len(line), PIECE_BYTES)
    for start in starts:
        kind = FIRST if start == 0 else LAST if start == starts[-1] else MIDDLE
        yield b"%d%s%s\n" % (os.getpid(), kind, line[start : start + PIECE_BYTES])


def told(lines: Iterable[bytes]) -> Iterator[Fact]:
    """What was written, from the lines at the other end.

    A first piece begins anew: whoever had the same process id before may have been killed halfway.
    """
    begun: dict[bytes, bytes] = {}
    for line in lines:
        if not line[:1].isdigit():
            yield facts.decode(line)
            continue
        writer = line[: len(line) - len(line.lstrip(b"0123456789"))]
        kind, piece = line[len(writer) : len(writer) + 1], line[len(writer) + 1 : -1]
        begun[writer] = piece if kind == FIRST else begun[writer] + piece
        if kind == LAST:
            yield facts.decode(begun.pop(writer))
