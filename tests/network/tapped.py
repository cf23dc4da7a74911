"""Runs a process of a round with a tap on everything it sends and receives, and with one defence off, if wished.

    python tapped.py DIRECTORY SABOTAGE MODULE ARGUMENT...

Every byte that passes a socket, either way, and every fact that a process writes to its pipe, is appended to a file of
that process in DIRECTORY. The tap stands at the calls of the operating system, below HTTP,
so it needs no rights and no help from what it watches.
"""

import asyncio
import importlib
import os
import socket
import sys
import time
import weakref
from pathlib import Path

import msgspec

from p2p_labeldp.network import loops

SABOTAGES = {}


def sabotage(made):
    """Names a way to switch a defence off."""
    SABOTAGES[made.__name__] = made
    return made


@sabotage
def nothing():
    """All defences stand."""


@sabotage
def sealing_off():
    """Boxes are what is in them."""
    from p2p_labeldp.crypto import sealing

    sealing.seal = lambda public, plaintext, *, info: plaintext
    sealing.SealingKey.open = lambda self, box, *, info: box


@sabotage
def sealed_for_the_asker():
    """Mates seal their answer for whoever asks, not for the learner."""
    from p2p_labeldp.protocol.exchanging import Exchanging

    reply = Exchanging.reply

    def leaky(self, message, sender, now):
        peer = self._peer
        if peer.part is not None:
            peer.part.exchange._round_key = peer.directory.find(sender).content.sealing_key
        return reply(self, message, sender, now)

    Exchanging.reply = leaky


@sabotage
def unflipped():
    """Labels leave as they are."""
    from p2p_labeldp.protocol.exchange import Exchange

    Exchange.flip = lambda self: self._example.label


class Tap:
    """Appends (what, since when, its two ends, out or in, bytes) to a file of this process, forked or not.

    Ports are used again, so a connection is told apart by its socket.
    """

    def __init__(self, directory):
        self._directory = directory
        self._files = {}
        self._connections = weakref.WeakKeyDictionary()

    def note(self, *what):
        pid = os.getpid()
        if pid not in self._files:
            self._files[pid] = (self._directory / f"{pid}.tap").open("ab", buffering=0)
        record = msgspec.msgpack.encode(what)
        self._files[pid].write(len(record).to_bytes(4, "big") + record)

    def passed(self, one, way, data):
        if data and one.family == socket.AF_INET:  # else the event loop wakes itself
            since = self._connections.setdefault(one, time.monotonic())
            self.note("socket", since, one.getsockname(), one.getpeername(), way, bytes(data))

    def install(self):
        send, receive, write = socket.socket.send, socket.socket.recv, os.write

        def tapped_send(one, data, *flags):
            sent = send(one, data, *flags)
            self.passed(one, "out", data[:sent])
            return sent

        def tapped_receive(one, *arguments):
            data = receive(one, *arguments)
            self.passed(one, "in", data)
            return data

        def tapped_write(fd, data):
            self.note("pipe", 0.0, None, None, "out", bytes(data))
            return write(fd, data)

        def untapped(*_):
            raise AssertionError("this way past the tap is not used")

        socket.socket.send, socket.socket.recv, os.write = tapped_send, tapped_receive, tapped_write
        for name in ("sendall", "sendto", "sendmsg", "sendfile", "recv_into", "recvfrom", "recvfrom_into"):
            setattr(socket.socket, name, untapped)


def main():
    directory, name, module, *arguments = sys.argv[1:]
    started = importlib.import_module(f"p2p_labeldp.network.{module}")
    tap = Tap(Path(directory))
    SABOTAGES[name]()
    loops.busy = asyncio.new_event_loop  # the other one makes its system calls in C, past the tap
    if module == "zygote":
        warm_up = started.warm_up
        started.warm_up = lambda: (warm_up(), tap.install())  # what it says to itself before any fork is no round
    else:
        tap.install()
        keys = started.Keys

        def noted(secret):
            tap.note("key", 0.0, None, None, "kept", secret)
            return keys(secret)

        started.Keys = noted
    sys.argv = [module, *arguments]
    return started.main()


if __name__ == "__main__":
    sys.exit(main())
