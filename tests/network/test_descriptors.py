"""A process that has no descriptor left says so once, and takes up those who waited when it has some again."""

import asyncio
import errno
import itertools
import logging
import os
import resource
import socket
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from network.over_http.wire import ask, listening, until
from p2p_labeldp.network import http
from p2p_labeldp.network.loops import Complaints

WAITING = 20


@contextmanager
def few_descriptors(more):
    """So many, beyond those that are open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir("/proc/self/fd")}
    free = (number for number in itertools.count() if number not in taken)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(itertools.islice(free, more, None)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def callers(place):
    """They have connected, and nobody has accepted them yet."""
    held = [socket.create_connection((place.host, place.port)) for _ in range(WAITING)]
    try:
        yield
    finally:
        for one in held:
            one.close()


async def complaints(server, place):
    """What the loop is told in the turn in which descriptors run out."""
    heard = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    with callers(place):
        with few_descriptors(4):
            await until(lambda: heard)
        known = len(heard)
        await until(lambda: len(server._connections) == WAITING)  # in the end everybody is taken up
    return known, heard[0]


@pytest.mark.parametrize("at_once", [http.server.ACCEPTED_AT_ONCE, http.server.BACKLOG])
async def test_a_server_without_descriptors_complains_no_more_often_than_it_accepts_at_once(monkeypatch, at_once):
    """Which the control shows: it is flooded where that is as many as may wait."""
    monkeypatch.setattr(http.server, "ACCEPTED_AT_ONCE", at_once)
    monkeypatch.setattr(asyncio.constants, "ACCEPT_RETRY_DELAY", 0.01)
    async with listening() as (server, ben):
        known, first = await complaints(server, ben)
        assert at_once - WAITING <= known <= at_once
        assert first["exception"].errno == errno.EMFILE
        assert await ask(ben) == (200, b"noitseuq")


async def test_as_many_can_wait_to_be_accepted_as_before():
    async with listening() as (server, _):
        assert [room_of(listener) for listener in server._listener.sockets] == [
            min(http.server.BACKLOG, kernels_most())
        ]
    with socket.create_server(("127.0.0.1", 0), backlog=1) as narrow:  # the control
        assert room_of(narrow) == 1


def kernels_most():
    return int(Path("/proc/sys/net/core/somaxconn").read_text(encoding="ascii"))


def room_of(listener):
    """How many connections the kernel keeps for it (``tcpi_sacked`` of tcp_info, which says that of a listener)."""
    return int.from_bytes(listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)[28:], sys.byteorder)


def test_the_loop_says_it_in_one_line_and_once_and_all_else_as_ever(caplog):
    loop, handler = asyncio.new_event_loop(), Complaints()
    loop.set_exception_handler(handler)
    full = OSError(errno.EMFILE, "Too many open files")
    for _ in range(3):
        loop.call_exception_handler({"message": "no accept", "exception": full, "socket": None})
    assert [(record.levelno, record.exc_info) for record in caplog.records] == [(logging.WARNING, None)]
    assert "Too many open files: new connections wait" in caplog.text
    loop.call_exception_handler({"message": "another", "exception": OSError(errno.EPERM, "x"), "socket": None})
    loop.call_exception_handler({"message": "a file of ours", "exception": full})
    assert [record.message.splitlines()[0] for record in caplog.records[1:]] == ["another", "a file of ours"]
    loop.close()
