"""Who of a process' senders may have a connection open."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Place = tuple[str, int]


@dataclass(slots=True)
class _Line:
    """Those who talk to one place, and those who wait to."""

    talking: int = 0
    waiting: OrderedDict[asyncio.Future[None], int] = field(default_factory=OrderedDict)  # with when they came
    called: bool = False  # its first one waits for nothing but a turn


class Turns:
    """So many connections at once, and so many of them to one place.

    Without the second bound a place that answers slowly, or is asked by everybody at once, would soon have all turns,
    and no other place would be asked anything. First come, first served, but that those who wait for their place let
    others pass, and hold nothing meanwhile. A place that is ``apart`` is bounded for itself alone: thousands of
    questions to others don't stand in line before what everything else waits for.

    Args:
        in_all: Most connections at once, to places that are not apart.
        to_one: Most of them to one host and port.
        apart: Places apart.
    """

    def __init__(self, *, in_all: int, to_one: int, apart: frozenset[Place] = frozenset()) -> None:
        self._free = in_all
        self._to_one = to_one
        self._apart = apart
        self._lines: dict[Place, _Line] = {}  # of places that somebody talks to or waits for
        self._called: list[tuple[int, Place]] = []  # a heap: when the first in line came, where the place has room
        self._came = itertools.count()

    @asynccontextmanager
    async def taken(self, place: Place) -> AsyncIterator[None]:
        """Waits for a turn, and has it."""
        line = self._lines.setdefault(place, _Line())
        turn = asyncio.get_running_loop().create_future()
        line.waiting[turn] = next(self._came)
        self._call(place, line)
        try:
            await turn
            yield
        finally:
            if line.waiting.pop(turn, None) is None:  # it had come, perhaps to somebody who gave up in that moment
                line.talking -= 1
                self._free += place not in self._apart
            self._call(place, line)
            if not (line.talking or line.waiting):
                del self._lines[place]

    def _call(self, place: Place, line: _Line) -> None:
        """Lets in who may come, now that something has changed at a place."""
        if place in self._apart:
            while line.waiting and line.talking < self._to_one:
                self._let_in(line)
            return
        self._queue(place, line)
        while self._free and self._called:
            _, place = heapq.heappop(self._called)
            called = self._lines.get(place)
            if called is None:
                continue  # whoever waited there has given up
            called.called = False
            if called.waiting and called.talking < self._to_one:
                self._free -= 1
                self._let_in(called)
            self._queue(place, called)

    def _queue(self, place: Place, line: _Line) -> None:
        if line.waiting and not line.called and line.talking < self._to_one:
            line.called = True
            heapq.heappush(self._called, (next(iter(line.waiting.values())), place))

    def _let_in(self, line: _Line) -> None:
        turn, _ = line.waiting.popitem(last=False)
        line.talking += 1
        if not turn.done():
            turn.set_result(None)
