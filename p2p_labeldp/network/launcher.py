"""Engine 3: every peer a process of its own, on this machine; real sockets, signatures and encryption.

The launcher starts two processes and tells them what they need: the learner its terms; the zygote, one batch after
another, each peer's own example, the learner's address and its first contacts. It hands out no roster, no draw and no
peer record, and it listens: facts come back through one pipe. Whatever ends the launcher ends them all, since each
process is tied to its parent's life.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

import msgspec

from p2p_labeldp import facts, randomness
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import TransportError
from p2p_labeldp.facts import Ended, Fact, Outcome, Reason, Traffic
from p2p_labeldp.network import addresses, lifeline
from p2p_labeldp.network.learner_process import LearnerSpec
from p2p_labeldp.network.study import Collected, Played, Study, Where, peer_specs
from p2p_labeldp.network.transport import parse_address
from p2p_labeldp.network.zygote import send_batch

PIPE_BYTES = 1 << 20
START_SECONDS = 60.0
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
    lifeline.raise_descriptor_limit()
    block = addresses.claim(len(study) + 1)
    read_fd, write_fd = os.pipe()
    _widen(write_fd)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with os.fdopen(read_fd, "rb") as incoming:
            learner = _start("learner_process", write_fd, processes, talks=True)
            host, port = block.address(0)
            assert learner.stdin is not None
            assert learner.stdout is not None
            learner.stdin.write(msgspec.msgpack.encode(LearnerSpec(terms=study.terms, host=host, port=port)))
            learner.stdin.close()
            where = _announced(learner.stdout)
            opened = time.monotonic()
            batches, zygotes_end = socket.socketpair()
            with zygotes_end:
                zygote = _start("zygote", write_fd, processes, zygotes_end.fileno())
            os.close(write_fd)
            write_fd = -1
            threading.Thread(target=_feed, args=(batches, study, block, where), daemon=True).start()
            threading.Thread(target=_stop_after, args=(zygote, learner), daemon=True).start()
            handed_over = _Reader(learner.stdout)
            overtime = opened + study.terms.deadlines.report + OVERTIME_SECONDS - time.monotonic()
            watchdog = threading.Timer(overtime, zygote.kill)
            watchdog.daemon = True
            watchdog.start()
            events: list[Fact] = []
            for line in incoming:  # until the last process that could write to the pipe is gone
                fact = facts.decode(line)
                events.append(fact)
                on_fact(fact)
            watchdog.cancel()
            collected = _decode_collected(handed_over.data())
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
    events += [
        Ended(peer=i, outcome=Outcome.FAILED, reason=Reason.CRASHED) for i in range(len(study)) if i not in ended
    ]
    traffic = [fact for fact in events if isinstance(fact, Traffic)]
    return Played(
        facts=events,
        collected=collected,
        messages=sum(fact.messages for fact in traffic),
        bytes=sum(fact.bytes for fact in traffic),
        seconds={"start": opened - began, **_phases(events)},
    )


def _start(
    module: str, facts_fd: int, processes: list[subprocess.Popen[bytes]], *more_fds: int, talks: bool = False
) -> subprocess.Popen[bytes]:
    inherited = (facts_fd, *more_fds)
    process = subprocess.Popen(  # noqa: S603  our own interpreter and module
        [sys.executable, "-m", f"p2p_labeldp.network.{module}", str(os.getpid()), *map(str, inherited)],
        stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
        stdout=subprocess.PIPE if talks else subprocess.DEVNULL,
        pass_fds=inherited,
        start_new_session=True,  # a Ctrl-C in the terminal is the launcher's to handle
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    processes.append(process)
    return process


def _widen(fd: int) -> None:
    try:
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (ImportError, AttributeError, OSError):  # a narrower pipe is slower, not wrong
        pass


def _announced(stdout: IO[bytes]) -> Where:
    line = stdout.readline().decode().strip()
    if not line:
        raise TransportError("the learner did not start; its messages are above")
    return Where(*parse_address(line))


def _feed(batches: socket.socket, study: Study, block: addresses.Block, learner: Where) -> None:
    """Tells the zygote each peer's part; beside the listener: the zygote takes only what it can fork."""
    ids = [Keys(randomness.replay(study.seed, i).identity()).peer_id for i in range(len(study))]
    places = [block.address(i + 1) for i in range(len(study))]
    specs = peer_specs(study, ids=ids, places=places, learner=learner)
    with batches, suppress(OSError):  # if the zygote is gone, the listener notices
        for start in range(0, len(specs), study.peers_per_process):
            send_batch(batches, specs[start : start + study.peers_per_process])


def _stop_after(zygote: subprocess.Popen[bytes], learner: subprocess.Popen[bytes]) -> None:
    """When the last peer is gone the learner has nobody to wait for."""
    zygote.wait()
    learner.send_signal(signal.SIGTERM)


class _Reader(threading.Thread):
    """Reads a pipe to its end, so that its writer never waits."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._data = b""
        self.start()

    def run(self) -> None:
        self._data = self._pipe.read()

    def data(self) -> bytes:
        """Everything, when the writer has closed its end."""
        self.join(END_SECONDS)
        return self._data


def _decode_collected(data: bytes) -> Collected:
    try:
        return msgspec.msgpack.decode(data, type=Collected)
    except msgspec.DecodeError as exc:
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
