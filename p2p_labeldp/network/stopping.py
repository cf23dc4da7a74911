"""SIGTERM and SIGINT, from a command's first moment to its last.

Told to end, a party finishes what is nearly done or abstains, writes what it has and exits with 0. A second SIGTERM
changes nothing: whoever sends it is impatient, and results are being written. A second SIGINT interrupts at once.
"""

from __future__ import annotations

import asyncio
import signal
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopping:
    """A context manager around a whole command, in the main thread."""

    def __init__(self) -> None:
        self.asked = False
        self._event: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stopping:
        self._before = {number: signal.signal(number, self._heard) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def event(self) -> asyncio.Event:
        """An event of the running loop that is set as soon as the command is told to end."""
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        if self.asked:
            self._event.set()
        return self._event

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
        if self._loop is not None and self._event is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)  # also wakes the loop
