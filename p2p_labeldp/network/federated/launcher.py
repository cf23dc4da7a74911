"""The processes engine of private rounds: a learner, a zygote, and a process for each peer it forks.

As in ``network.launcher``, whose parts these are: peers get their own example and the learner's address, nothing else;
facts come back through one pipe; whatever ends the launcher ends them all.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

import msgspec

from p2p_labeldp.errors import TransportError
from p2p_labeldp.facts import Fact, Listening
from p2p_labeldp.network import addresses
from p2p_labeldp.network.federated.learner import Order
from p2p_labeldp.network.federated.study import Trained, TrainedModel, UpdateStudy, specs_of
from p2p_labeldp.network.launcher import (
    END_SECONDS,
    START_SECONDS,
    START_SECONDS_A_PEER,
    OnFact,
    conduct,
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
    heard = conduct(
        learner="federated.learner",
        zygote="federated.zygote",
        block=addresses.claim(1),
        peers=len(study),
        opens=lambda learner, give_up: _Opening(study, learner, give_up),
        feed=lambda batches, where: _feed(batches, study, where),
        on_fact=on_fact,
    )
    return Trained(
        model=decode_model(heard.handed_over),
        facts=heard.facts,
        messages=heard.messages,
        bytes=heard.bytes,
        seconds=time.monotonic() - heard.opened,
    )


class _Opening:
    """Opens the run when every peer is there, or when it is time, whoever is missing."""

    def __init__(self, study: UpdateStudy, learner: IO[bytes], give_up: Callable[[], None]) -> None:
        self.at = time.monotonic()
        self._give_up = give_up
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

    def without_learner(self) -> None:
        """The learner is gone: peers that are still there after a while wait for nothing."""
        _later(END_SECONDS, self._give_up)

    def cancel(self) -> None:
        """Nobody is left to wait for."""
        self._timer.cancel()


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
