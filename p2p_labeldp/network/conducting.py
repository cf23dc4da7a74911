"""Rounds of processes on this machine: a learner, a zygote, and the peers that it forks, from start to last word.

The zygote is told each peer's own example, the learner's address and its first contacts, one batch after another; the
learner, when every peer listens, what it is to open. Facts come back through one pipe. Whatever ends the launcher ends
them all, since each process is tied to its parent's life.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TypeVar

import msgspec

from p2p_labeldp.errors import TransportError
from p2p_labeldp.facts import Ended, Fact, Outcome, Reason, Traffic
from p2p_labeldp.network import addresses, lifeline
from p2p_labeldp.network.fact_pipe import told
from p2p_labeldp.network.opening import END_SECONDS, Opening, Order
from p2p_labeldp.network.study import Where
from p2p_labeldp.network.transport import parse_address
from p2p_labeldp.network.zygote import send_batch

PIPE_BYTES = 1 << 20

T = TypeVar("T")
OnFact = Callable[[Fact], None]


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
    order: Order,
    specs: Callable[[Where], Sequence[msgspec.Struct]],
    packed: int,
    on_fact: OnFact,
) -> Heard:
    """Starts a learner and a zygote, feeds them, and listens until the last process is gone.

    Args:
        learner: Its module.
        zygote: Its module.
        block: Where all of them listen; given back at the end.
        peers: How many there are; whoever tells no end has crashed.
        order: What the learner is told when it opens the round.
        specs: What each peer is told, given where the learner is.
        packed: Peers in a process.
        on_fact: Is told each fact as it arrives.

    Raises:
        TransportError: The learner or the zygote did not start, or died.
    """
    lifeline.raise_descriptor_limit()
    read_fd, write_fd = os.pipe()
    _widen(write_fd)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with os.fdopen(read_fd, "rb") as incoming:
            host, port = block.address(0)
            learning = _start(learner, write_fd, processes, host, str(port), talks=True)
            assert learning.stdin is not None
            assert learning.stdout is not None
            where = _announced(learning.stdout)
            batches, zygotes_end = socket.socketpair()
            with zygotes_end:
                fd = zygotes_end.fileno()
                forking = _start(zygote, write_fd, processes, str(fd), more_fds=(fd,))
            os.close(write_fd)
            write_fd = -1
            opening = Opening(peers=peers, learner=learning.stdin, order=order, give_up=forking.kill)
            threading.Thread(target=_feed, args=(batches, specs, where, packed), daemon=True).start()
            threading.Thread(target=_stop_after, args=(forking, learning), daemon=True).start()
            handed_over = _Reader(learning.stdout, then=opening.without_learner)
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


def handed_over(data: bytes, kind: type[T]) -> T:
    """What a learner process hands over.

    Raises:
        TransportError: Nothing of the kind: it died.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (ValueError, RecursionError) as exc:  # msgspec's errors are ValueErrors
        raise TransportError("the learner died; its messages are above") from exc


def _start(
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


def _widen(fd: int) -> None:
    """Gives a pipe a larger buffer, where that is possible."""
    try:
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (ImportError, AttributeError, OSError):  # a narrower pipe is slower, not wrong
        pass


def _announced(stdout: IO[bytes]) -> Where:
    """Where the learner listens: the first line it writes."""
    line = stdout.readline().decode().strip()
    if not line:
        raise TransportError("the learner did not start; its messages are above")
    return Where(*parse_address(line))


def _feed(
    batches: socket.socket, specs: Callable[[Where], Sequence[msgspec.Struct]], learner: Where, packed: int
) -> None:
    """Tells the zygote each peer's part; beside the listener: the zygote takes only what it can fork."""
    told_peers = specs(learner)
    with batches, suppress(OSError):  # if the zygote is gone, the listener notices
        for first in range(0, len(told_peers), packed):
            send_batch(batches, told_peers[first : first + packed])


def _stop_after(zygote: subprocess.Popen[bytes], learner: subprocess.Popen[bytes]) -> None:
    """When the last peer is gone the learner has nobody to wait for."""
    zygote.wait()
    learner.send_signal(signal.SIGTERM)


class _Reader(threading.Thread):
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
