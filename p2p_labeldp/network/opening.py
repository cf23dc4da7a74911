"""Who opens a round of processes, and waits no longer than it should."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from p2p_labeldp.facts import Fact, Listening

START_SECONDS, START_SECONDS_A_PEER = 60.0, 0.2  # then the round opens without whoever does not listen yet
END_SECONDS = 30.0  # for the learner to hand over what it has

Order = Callable[[float], tuple[bytes, float | None]]
"""From the seconds that starting took: what the learner is told, and for how long silent peers are then waited for."""


class Opening:
    """Opens the round when every peer listens, or when it is time, whoever is missing.

    Args:
        peers: How many there are.
        learner: The pipe that takes the order.
        order: What the learner is told.
        give_up: Called if peers are still silent long after they should have ended.
    """

    def __init__(self, *, peers: int, learner: IO[bytes], order: Order, give_up: Callable[[], None]) -> None:
        self.at = self._began = time.monotonic()
        self._peers = peers
        self._learner = learner
        self._order = order
        self._give_up = give_up
        self._listening = 0
        self._lock = threading.Lock()
        self._open = False
        self._timer = _later(START_SECONDS + START_SECONDS_A_PEER * peers, self.open)

    def hear(self, fact: Fact) -> None:
        """Counts who listens."""
        if isinstance(fact, Listening):
            self._listening += 1
            if self._listening == self._peers:
                self.open()

    def open(self) -> None:
        """Gives the learner its order, once."""
        with self._lock:
            if self._open:
                return
            self._open = True
        self._timer.cancel()
        self.at = time.monotonic()
        told, patience = self._order(self.at - self._began)
        with suppress(OSError), self._learner:  # if the learner is gone, reading what it has to hand over will tell
            self._learner.write(told)
        if patience is not None:
            self._timer = _later(patience, self._give_up)

    def without_learner(self) -> None:
        """The learner is gone: peers that are still there after a while wait for nothing."""
        self._timer.cancel()
        self._timer = _later(END_SECONDS, self._give_up)

    def cancel(self) -> None:
        """Nobody is left to wait for."""
        self._timer.cancel()


def _later(seconds: float, call: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer
