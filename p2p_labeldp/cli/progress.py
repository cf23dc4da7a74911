"""Progress on stderr: counts, straight from the facts.

On a terminal one line that changes; elsewhere (a log file, a pipe) a line when a phase begins, and now and then one
with the counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from p2p_labeldp.facts import Accepted, Asked, Committed, Ended, Fact, Held, Joined, Listening, Ready, Reported
from p2p_labeldp.network.pace import Pace

if TYPE_CHECKING:
    from p2p_labeldp.experiment.playing import Progress

COUNTED = {
    Listening: "started",
    Joined: "joined",
    Committed: "in a roster",
    Asked: "asked",
    Held: "answered",
    Ready: "ready",
    Reported: "reported",
    Accepted: "accepted",
    Ended: "ended",
}
"""In the order of a round; the last one that occurred tells how far it is."""
SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_UPDATES = 0.1


class Watcher:
    """Counts facts and says so.

    Args:
        say: Begins a new line.
        update: Changes the line, on a terminal; elsewhere writes another one.
        interval: Least seconds between two updates.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        *,
        say: Callable[[str], None],
        update: Callable[[str], None],
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._update = update
        self._interval = interval
        self._clock = clock
        self._peers = 0
        self._counts = dict.fromkeys(COUNTED.values(), 0)
        self._updated = clock()

    def playing(self, *, peers: int, clusters: int, engine: str, pace: Pace) -> None:
        """The round begins."""
        lasts = f"; the round takes about {pace.total:.0f} s" if engine == "processes" else ""
        self._peers = peers
        self._updated = self._clock()
        self._say(f"{peers} peers in {clusters} clusters, on the {engine} engine{lasts}")

    def happened(self, fact: Fact) -> None:
        """Counts a fact."""
        name = COUNTED.get(type(fact))
        if name is None:
            return
        self._counts[name] += 1
        now = self._clock()
        if now - self._updated >= self._interval or self._counts[name] == self._peers:
            self._updated = now
            self._update(self.line())

    def learning(self) -> None:
        """The round is over."""
        self._say("training on the reports, and working out the guarantee")

    def line(self) -> str:
        """What has been counted."""
        counted = ", ".join(f"{count} {name}" for name, count in self._counts.items() if count)
        return f"of {self._peers} peers: {counted or 'none has joined'}"


class Several:
    """Several that want to be told, some of them None."""

    def __init__(self, *told: Progress | None) -> None:
        self._told = [one for one in told if one is not None]

    def playing(self, *, peers: int, clusters: int, engine: str, pace: Pace) -> None:
        """The round begins."""
        for one in self._told:
            one.playing(peers=peers, clusters=clusters, engine=engine, pace=pace)

    def happened(self, fact: Fact) -> None:
        """A fact arrived."""
        for one in self._told:
            one.happened(fact)

    def learning(self) -> None:
        """The round is over."""
        for one in self._told:
            one.learning()


@contextmanager
def watching(file: IO[str]) -> Iterator[Watcher]:
    """A watcher that writes to ``file``; on a terminal its line is gone in the end.

    Elsewhere nothing is written until the round begins, so that a complaint about the configuration stands alone.
    """
    if not file.isatty():

        def write(line: str) -> None:
            file.write(line + "\n")
            file.flush()

        yield Watcher(say=write, update=write, interval=SECONDS_BETWEEN_LINES)
        return

    from rich.console import Console
    from rich.text import Text

    console = Console(file=file, highlight=False)
    with console.status("reading and clustering the data") as status:
        yield Watcher(
            say=lambda line: status.update(Text(line)),
            update=lambda line: status.update(Text(line)),
            interval=SECONDS_BETWEEN_UPDATES,
        )
