"""Who of a process' senders may have a connection open."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

Place = tuple[str, int]


class Turns:
    """So many connections at once, and so many of them to one place.

    Without the second bound a place that answers slowly, or is asked by everybody at once, would soon have all turns,
    and no other place would be asked anything. A place that is ``apart`` is bounded for itself alone: thousands of
    questions to others don't stand in line before what everything else waits for.

    Args:
        in_all: Most connections at once, to places that are not apart.
        to_one: Most of them to one host and port.
        apart: Places apart.
    """

    def __init__(self, *, in_all: int, to_one: int, apart: frozenset[Place] = frozenset()) -> None:
        self._any = asyncio.Semaphore(in_all)
        self._to_one = to_one
        self._apart = apart
        self._places: dict[Place, asyncio.Semaphore] = {}  # those that somebody asks or waits for
        self._askers: Counter[Place] = Counter()

    @asynccontextmanager
    async def taken(self, place: Place) -> AsyncIterator[None]:
        """Waits for a turn, first come first served, and has it."""
        turns = self._places.setdefault(place, asyncio.Semaphore(self._to_one))
        self._askers[place] += 1
        try:
            async with turns, nullcontext() if place in self._apart else self._any:
                yield
        finally:
            self._askers[place] -= 1
            if not self._askers[place]:
                del self._places[place], self._askers[place]
