"""The processes engine of private rounds: a learner, a zygote, and a process for each peer it forks.

As in ``network.launcher``, whose parts these are: peers get their own example and the learner's address, nothing else;
facts come back through one pipe; whatever ends the launcher ends them all.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

import msgspec

from p2p_labeldp import facts
from p2p_labeldp.errors import TransportError
from p2p_labeldp.facts import Ended, Fact, Listening, Outcome, Reason, Traffic
from p2p_labeldp.network import addresses, lifeline
from p2p_labeldp.network.federated.learner import Order
from p2p_labeldp.network.federated.study import Trained, TrainedModel, UpdateStudy, specs_of
from p2p_labeldp.network.launcher import (
    END_SECONDS,
    START_SECONDS,
    START_SECONDS_A_PEER,
    OnFact,
    Reader,
    announced,
    start,
    stop_after,
    widen,
)
from p2p_labeldp.network.study import Where
from p2p_labeldp.network.zygote import send_batch


def play(study: UpdateStudy, *, on_fact: OnFact = lambda _fact: None) -> Trained:
    """Plays a run with real processes.

    Args:
        study: The run.
        on_fact: Is told each fact as it arrives.

    Raises:
        TransportError: The learner or the zygote did not start, or died.
    """
    lifeline.raise_descriptor_limit()
    block = addresses.claim(1)
    read_fd, write_fd = os.pipe()
    widen(write_fd)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with os.fdopen(read_fd, "rb") as incoming:
            host, port = block.address(0)
            learner = start("federated.learner", write_fd, processes, host, str(port), talks=True)
            assert learner.stdin is not None
            assert learner.stdout is not None
            where = announced(learner.stdout)
            batches, zygotes_end = socket.socketpair()
            with zygotes_end:
                fd = zygotes_end.fileno()
                zygote = start("federated.zygote", write_fd, processes, str(fd), more_fds=(fd,))
            os.close(write_fd)
            write_fd = -1
            opening = _Opening(study, learner.stdin)
            threading.Thread(target=_feed, args=(batches, study, where), daemon=True).start()
            threading.Thread(target=stop_after, args=(zygote, learner), daemon=True).start()
            handed_over = Reader(learner.stdout, then=lambda: _give_up(zygote.kill))
            events: list[Fact] = []
            for line in incoming:  # until the last process that could write to the pipe is gone
                fact = facts.decode(line)
                events.append(fact)
                opening.hear(fact)
                on_fact(fact)
            opening.cancel()
            model = decode_model(handed_over.data())
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
    return Trained(
        model=model,
        facts=events,
        messages=sum(fact.messages for fact in traffic),
        bytes=sum(fact.bytes for fact in traffic),
        seconds=time.monotonic() - opening.at,
    )


class _Opening:
    """Opens the run when every peer is there, or when it is time, whoever is missing."""

    def __init__(self, study: UpdateStudy, learner: IO[bytes]) -> None:
        self.at = time.monotonic()
        self._study = study
        self._learner = learner
        self._there = 0
        self._lock = threading.Lock()
        self._open = False
        self._timer = _later(START_SECONDS + START_SECONDS_A_PEER * len(study), self.open)

    def hear(self, fact: Fact) -> None:
        """Counts who is there."""
        if isinstance(fact, Listening):
            self._there += 1
            if self._there == len(self._study):
                self.open()

    def open(self) -> None:
        """Gives the learner its order, once."""
        with self._lock:
            if self._open:
                return
            self._open = True
        self._timer.cancel()
        self.at = time.monotonic()
        with suppress(OSError), self._learner:  # if the learner is gone, reading what it trained will tell
            self._learner.write(msgspec.msgpack.encode(Order(terms=self._study.terms, seed=self._study.seed)))

    def cancel(self) -> None:
        """Nobody is left to wait for."""
        self._timer.cancel()


def _give_up(kill: Callable[[], None]) -> None:
    """The learner is gone: peers that are still there after a while wait for nothing."""
    _later(END_SECONDS, kill)


def _later(seconds: float, call: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer


def _feed(batches: socket.socket, study: UpdateStudy, learner: Where) -> None:
    """Tells the zygote each peer's part; beside the listener: the zygote takes only what it can fork."""
    specs, packed = specs_of(study, learner=learner), study.peers_per_process
    with batches, suppress(OSError):  # if the zygote is gone, the listener notices
        for first in range(0, len(specs), packed):
            send_batch(batches, specs[first : first + packed])


def decode_model(data: bytes) -> TrainedModel:
    """What a learner process hands over.

    Raises:
        TransportError: Nothing of the kind: it died.
    """
    try:
        return msgspec.msgpack.decode(data, type=TrainedModel)
    except (ValueError, RecursionError) as exc:  # msgspec's errors are ValueErrors
        raise TransportError("the learner died; its messages are above") from exc
