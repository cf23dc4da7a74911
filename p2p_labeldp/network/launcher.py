"""Engine 3: every peer a process of its own, on this machine; real sockets, signatures and encryption.

The launcher starts two processes and tells them what they need: the zygote, one batch after another, each peer's own
example, the learner's address and its first contacts; the learner, when every peer listens, the terms of the round,
which it then opens. On a machine that took long to start the peers, since others use it too, the phases are lengthened
in proportion. The launcher hands out no roster, no draw and no peer record, and it listens: facts come back through one
pipe. Whatever ends the launcher ends them all, since each process is tied to its parent's life.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Protocol

import msgspec

from p2p_labeldp import facts
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import TransportError
from p2p_labeldp.facts import Ended, Fact, Listening, Outcome, Reason, Traffic
from p2p_labeldp.network import addresses, lifeline
from p2p_labeldp.network.fact_pipe import told
from p2p_labeldp.network.study import Collected, Played, Study, Where, coins_of, draw_secrets, peer_specs
from p2p_labeldp.network.transport import parse_address
from p2p_labeldp.network.zygote import send_batch

PIPE_BYTES = 1 << 20
START_SECONDS, START_SECONDS_A_PEER = 60.0, 0.2  # then the round opens without whoever does not listen yet
IDLE_START_SECONDS, IDLE_START_SECONDS_A_PEER = 1.0, 0.012  # what it takes on two cores that nobody else uses
MAX_SLOW_DOWN = 4.0
END_SECONDS = 30.0  # for the learner to hand over what it has
OVERTIME_SECONDS = 60.0  # beyond the last deadline, before the launcher gives up on silent peers

OnFact = Callable[[Fact], None]


def play(study: Study, *, on_fact: OnFact = lambda _fact: None) -> Played:
    """Plays one round of a study with real processes.

    Args:
        study: The round.
        on_fact: Is told each fact as it arrives.

    Raises:
        TransportError: The learner or the zygote did not start, or died.
    """
    began = time.monotonic()
    block = addresses.claim(len(study) + 1)
    heard = conduct(
        learner="learner_process",
        zygote="zygote",
        block=block,
        peers=len(study),
        opens=lambda learner, give_up: _Opening(study, learner, give_up),
        feed=lambda batches, where: _feed(batches, study, block, where),
        on_fact=on_fact,
    )
    return Played(
        facts=heard.facts,
        collected=_decode_collected(heard.handed_over),
        messages=heard.messages,
        bytes=heard.bytes,
        seconds={"start": heard.opened - began, **_phases(heard.facts)},
    )


class Opening(Protocol):
    """Who opens a round of processes, and waits no longer than it should."""

    at: float

    def hear(self, fact: Fact) -> None:
        """Is told each fact."""
        ...

    def without_learner(self) -> None:
        """The learner is gone: peers that are still there after a while wait for nothing."""
        ...

    def cancel(self) -> None:
        """Nobody is left to wait for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What came of processes: their facts, what their learner handed over, and when the round was opened."""

    facts: list[Fact]
    handed_over: bytes
    opened: float
    messages: int
    bytes: int


def conduct(
    *,
    learner: str,
    zygote: str,
    block: addresses.Block,
    peers: int,
    opens: Callable[[IO[bytes], Callable[[], None]], Opening],
    feed: Callable[[socket.socket, Where], None],
    on_fact: OnFact,
) -> Heard:
    """Starts a learner and a zygote, feeds them, and listens until the last process is gone.

    Args:
        learner: Its module.
        zygote: Its module.
        block: Where all of them listen; given back at the end.
        peers: How many there are; whoever tells no end has crashed.
        opens: Given the learner's pipe, and what ends all peers.
        feed: Hands the zygote its batches, given where the learner is.
        on_fact: Is told each fact as it arrives.

    Raises:
        TransportError: The learner or the zygote did not start, or died.
    """
    lifeline.raise_descriptor_limit()
    read_fd, write_fd = os.pipe()
    widen(write_fd)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with os.fdopen(read_fd, "rb") as incoming:
            host, port = block.address(0)
            learning = start(learner, write_fd, processes, host, str(port), talks=True)
            assert learning.stdin is not None
            assert learning.stdout is not None
            where = announced(learning.stdout)
            batches, zygotes_end = socket.socketpair()
            with zygotes_end:
                fd = zygotes_end.fileno()
                forking = start(zygote, write_fd, processes, str(fd), more_fds=(fd,))
            os.close(write_fd)
            write_fd = -1
            opening = opens(learning.stdin, forking.kill)
            threading.Thread(target=feed, args=(batches, where), daemon=True).start()
            threading.Thread(target=stop_after, args=(forking, learning), daemon=True).start()
            handed_over = Reader(learning.stdout, then=opening.without_learner)
            events: list[Fact] = []
            for fact in told(incoming):  # until the last process that could write to the pipe is gone
                events.append(fact)
                opening.hear(fact)
                on_fact(fact)
            opening.cancel()
            data = handed_over.data()
    finally:
        if write_fd >= 0:
            os.close(write_fd)
        for process in processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        block.claim.close()
    ended = {fact.peer for fact in events if isinstance(fact, Ended)}
    events += [Ended(peer=i, outcome=Outcome.FAILED, reason=Reason.CRASHED) for i in range(peers) if i not in ended]
    traffic = [fact for fact in events if isinstance(fact, Traffic)]
    return Heard(
        facts=events,
        handed_over=data,
        opened=opening.at,
        messages=sum(fact.messages for fact in traffic),
        bytes=sum(fact.bytes for fact in traffic),
    )


class _Opening:
    """Opens the round when every peer listens, or when it is time, whoever is missing.

    Args:
        study: The round.
        learner: The pipe that takes the terms.
        give_up: Called if peers are still silent long after the last deadline.
    """

    def __init__(self, study: Study, learner: IO[bytes], give_up: Callable[[], None]) -> None:
        self.at = self._began = time.monotonic()
        self._study = study
        self._learner = learner
        self._give_up = give_up
        self._listening = 0
        self._lock = threading.Lock()
        self._open = False
        self._timer = self._call_later(START_SECONDS + START_SECONDS_A_PEER * len(study), self.open)

    def hear(self, fact: Fact) -> None:
        """Counts who listens."""
        if isinstance(fact, Listening):
            self._listening += 1
            if self._listening == len(self._study):
                self.open()

    def open(self) -> None:
        """Gives the learner its terms, once."""
        with self._lock:
            if self._open:
                return
            self._open = True
        self._timer.cancel()
        self.at = time.monotonic()
        terms = self._study.terms
        if self._study.slow_down:
            processes = math.ceil(len(self._study) / self._study.peers_per_process)
            idle = IDLE_START_SECONDS + IDLE_START_SECONDS_A_PEER * processes
            terms = terms.slowed(min(max((self.at - self._began) / idle, 1.0), MAX_SLOW_DOWN))
        with suppress(OSError), self._learner:  # if the learner is gone, reading what it collected will tell
            self._learner.write(msgspec.msgpack.encode(terms))
        self._timer = self._call_later(terms.deadlines.report + OVERTIME_SECONDS, self._give_up)

    def without_learner(self) -> None:
        """The learner is gone: peers that are still there after a while wait for nothing."""
        self._timer.cancel()
        self._timer = self._call_later(END_SECONDS, self._give_up)

    def cancel(self) -> None:
        """Nobody is left to wait for."""
        self._timer.cancel()

    @staticmethod
    def _call_later(seconds: float, call: Callable[[], None]) -> threading.Timer:
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()
        return timer


def start(
    module: str,
    facts_fd: int,
    processes: list[subprocess.Popen[bytes]],
    *arguments: str,
    more_fds: tuple[int, ...] = (),
    talks: bool = False,
) -> subprocess.Popen[bytes]:
    """Starts a module of ``p2p_labeldp.network`` as a process; if it ``talks``, with pipes to it and from it."""
    process = subprocess.Popen(  # noqa: S603  our own interpreter and module
        [sys.executable, "-m", f"p2p_labeldp.network.{module}", str(os.getpid()), str(facts_fd), *arguments],
        stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
        stdout=subprocess.PIPE if talks else subprocess.DEVNULL,
        pass_fds=(facts_fd, *more_fds),
        start_new_session=True,  # a Ctrl-C in the terminal is the launcher's to handle
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    processes.append(process)
    return process


def widen(fd: int) -> None:
    """Gives a pipe a larger buffer, where that is possible."""
    try:
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (ImportError, AttributeError, OSError):  # a narrower pipe is slower, not wrong
        pass


def announced(stdout: IO[bytes]) -> Where:
    """Where the learner listens: the first line it writes."""
    line = stdout.readline().decode().strip()
    if not line:
        raise TransportError("the learner did not start; its messages are above")
    return Where(*parse_address(line))


def _feed(batches: socket.socket, study: Study, block: addresses.Block, learner: Where) -> None:
    """Tells the zygote each peer's part; beside the listener: the zygote takes only what it can fork."""
    drawn = draw_secrets(study)
    ids = [Keys(coins_of(study.seed, i, secret).identity()).peer_id for i, secret in enumerate(drawn)]
    places = [block.address(i + 1) for i in range(len(study))]
    specs = peer_specs(study, secrets=drawn, ids=ids, places=places, learner=learner)
    with batches, suppress(OSError):  # if the zygote is gone, the listener notices
        for first in range(0, len(specs), study.peers_per_process):
            send_batch(batches, specs[first : first + study.peers_per_process])


def stop_after(zygote: subprocess.Popen[bytes], learner: subprocess.Popen[bytes]) -> None:
    """When the last peer is gone the learner has nobody to wait for."""
    zygote.wait()
    learner.send_signal(signal.SIGTERM)


class Reader(threading.Thread):
    """Reads a pipe to its end, so that its writer never waits; then calls ``then``."""

    def __init__(self, pipe: IO[bytes], then: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._then = then
        self._data = b""
        self.start()

    def run(self) -> None:
        self._data = self._pipe.read()
        self._then()

    def data(self) -> bytes:
        """Everything, when the writer has closed its end."""
        self.join(END_SECONDS)
        return self._data


def _decode_collected(data: bytes) -> Collected:
    try:
        return msgspec.msgpack.decode(data, type=Collected)
    except (ValueError, RecursionError) as exc:  # msgspec's errors are ValueErrors
        raise TransportError("the learner died; its messages are above") from exc


def _phases(events: list[Fact]) -> dict[str, float]:
    """Length of each phase as the peers lived it, from the facts."""
    marks = {"join": facts.Committed, "exchange": facts.Ready, "closing": facts.Reported, "report": Ended}
    seconds, before = {}, 0.0
    for name, kind in marks.items():
        last = max((fact.at for fact in events if isinstance(fact, kind)), default=before)
        seconds[name] = max(last - before, 0.0)
        before = max(before, last)
    return seconds
