"""What the slow, the silent and the many can take of a server: time, memory, connections."""

import asyncio
import contextlib
import logging
import socket

import pytest

from network.over_http.wire import ADA, EVE, ask, client, listening, parsed, request, send, until
from p2p_labeldp.network import http
from p2p_labeldp.network.http import HttpServer

SHORT, LONG = 0.05, 3600  # seconds: what comes to nothing, and what whoever means it has, however busy the machine is


async def test_a_slow_body_is_given_up_and_a_slow_head_is_hung_up_on():
    async with listening(read_timeout_seconds=LONG) as (server, ben):
        data, _ = request(ben)
        reader, writer = await asyncio.open_connection(ben.host, ben.port)
        await until(lambda: server._connections)
        server.read_timeout = SHORT
        writer.write(data[:-1])
        assert parsed(await reader.read())[::2] == (408, b"slow")
        writer.close()
        for begun in (data[:40], b""):
            with contextlib.suppress(ConnectionError):  # reset, if it was hung up on before it was looked at
                assert await send(ben, begun) == b""
        assert server._buffered == 0
        server.read_timeout = LONG
        assert await ask(ben) == (200, b"noitseuq")


async def test_who_asks_and_does_not_read_the_answer_is_hung_up_on():
    def long(sender, body):
        return bytes(http.MAX_BODY_BYTES)

    async with listening(long) as (_, ben), client() as c:
        assert await c.post(ADA, ben, b"", timeout=60) == bytes(http.MAX_BODY_BYTES)
    async with listening(long, read_timeout_seconds=LONG) as (server, ben):
        server._listener.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # connections inherit it
        quiet = socket.socket()
        quiet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        quiet.connect((ben.host, ben.port))
        await until(lambda: server._connections)
        server.read_timeout = SHORT
        quiet.sendall(request(ben)[0])
        await until(lambda: server.traffic.messages_sent == 1 and not server._connections)
        quiet.close()


def long_for_ada(sender, body):
    return bytes(http.MAX_BODY_BYTES) if sender == ADA.peer_id else body


def asks_and_does_not_read(server, ben):
    """Ada's connection; her answer fits no buffer."""
    server._listener.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # connections inherit it
    quiet = socket.socket()
    quiet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    quiet.connect((ben.host, ben.port))
    quiet.sendall(request(ben)[0])
    return quiet


@pytest.mark.parametrize("room", [True, False])
async def test_those_who_do_not_read_their_answers_keep_nobody_out(room, monkeypatch):
    """And do, where no room is made."""
    if not room:
        monkeypatch.setattr(HttpServer, "_make_room", lambda _: False)

    async with listening(long_for_ada, max_connections=2, read_timeout_seconds=LONG) as (server, ben):
        held = [asks_and_does_not_read(server, ben) for _ in range(2)]
        await until(lambda: server.traffic.messages_sent == 2)
        assert (len(server._connections), len(server._arriving)) == (2, 0)
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = await send(ben, request(ben, key=EVE)[0])
        assert answer.startswith(b"HTTP/1.1 200 ") is room
        for quiet in held:
            quiet.close()


@pytest.mark.parametrize("told_apart", [True, False])
async def test_who_is_still_asking_makes_room_before_who_is_taking_an_answer(told_apart, monkeypatch):
    """Though that one came earlier. The control looks at who came first alone."""
    if not told_apart:
        monkeypatch.setattr(HttpServer, "whole", lambda *_: None)
    async with listening(long_for_ada, max_connections=2, read_timeout_seconds=LONG) as (server, ben):
        quiet = asks_and_does_not_read(server, ben)
        await until(lambda: server.traffic.messages_sent == 1)
        _, asking = await asyncio.open_connection(ben.host, ben.port)
        await until(lambda: len(server._connections) == 2)
        assert (await send(ben, request(ben, key=EVE)[0])).startswith(b"HTTP/1.1 200 ")
        taken = 0
        with contextlib.suppress(ConnectionError):
            while some := await asyncio.to_thread(quiet.recv, 1 << 16):
                taken += len(some)
        assert (taken > http.MAX_BODY_BYTES) is told_apart
        quiet.close()
        asking.close()


async def test_closing_waits_for_no_idle_connection(monkeypatch):
    monkeypatch.setattr(http.server, "SHUTDOWN_SECONDS", LONG)
    async with listening(read_timeout_seconds=LONG) as (server, ben):
        reader, writer = await asyncio.open_connection(ben.host, ben.port)
        writer.write(request(ben)[0][:40])
        await until(lambda: server._connections)
        try:
            await asyncio.wait_for(server.close(), 60)
        finally:
            for one in list(server._connections):
                one.hang_up()
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()


async def test_a_sender_that_hangs_up_in_the_middle_leaves_nothing_behind(caplog):
    async with listening() as (server, ben):
        data, _ = request(ben)
        await send(ben, data[:-1], finish=True)
        await send(ben, data[:40], finish=True)
        assert await ask(ben) == (200, b"noitseuq")
        assert server._buffered == 0
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def test_who_was_refused_and_does_not_hang_up_is_hung_up_on(monkeypatch):
    monkeypatch.setattr(http.connection, "LINGER_SECONDS", 0.01)
    async with listening() as (server, ben):
        reader, writer = await asyncio.open_connection(ben.host, ben.port)
        writer.write(request(ben, line="GET /p2p/v1 HTTP/1.1")[0])
        assert parsed(await reader.read()).status == 405
        await asyncio.wait_for(until(lambda: not server._connections), 60)  # the control: it would stay
        writer.close()


@pytest.mark.parametrize("lingers", [True, False])
async def test_who_is_refused_before_it_has_sent_all_can_send_on_and_reads_why(lingers, monkeypatch):
    """The control hangs up at once: the sender is told that its connection was reset."""
    monkeypatch.setattr(http.connection, "LINGER_SECONDS", LONG if lingers else 0.0)
    async with listening() as (server, ben):
        with socket.create_connection((ben.host, ben.port)) as sender:
            sender.sendall(request(ben, line="GET /p2p/v1 HTTP/1.1")[0])
            await until(lambda: server.traffic.messages_sent == 1)
            assert await ask(ben) == (200, b"noitseuq")  # by now whatever was to be closed at once is
            await until(lambda: bool(server._connections) is lingers)
            with contextlib.nullcontext() if lingers else pytest.raises(ConnectionError):
                for _ in range(2):
                    sender.sendall(bytes(1000))
                assert parsed(await asyncio.to_thread(sender.recv, 1 << 16)).status == 405


async def test_a_connection_has_the_kernels_buffer_that_we_allow_and_not_what_it_would_grow_to(monkeypatch):
    monkeypatch.setattr(http.server, "RECEIVE_BUFFER_BYTES", 8192)
    async with listening(read_timeout_seconds=LONG) as (server, ben):
        _, writer = await asyncio.open_connection(ben.host, ben.port)
        await until(lambda: server._connections)
        (connection,) = server._connections
        buffer = connection._transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        assert buffer <= 2 * 8192  # Linux doubles what it is told, for its own bookkeeping
        writer.close()


async def test_of_a_body_that_was_read_nothing_is_kept_while_its_answer_is_taken():
    async with listening(long_for_ada, max_connections=2, read_timeout_seconds=LONG) as (server, ben):
        quiet = asks_and_does_not_read(server, ben)
        await until(lambda: server.traffic.messages_sent == 1)
        (connection,) = server._connections
        assert (connection._data, server._buffered) == (b"", 0)
        quiet.close()


async def test_memory_for_bodies_under_way_is_bounded(monkeypatch):
    monkeypatch.setattr(http.server, "MAX_BUFFERED_BYTES", 1000)
    async with listening() as (server, ben):
        data, _ = request(ben, bytes(600))
        reader, writer = await asyncio.open_connection(ben.host, ben.port)
        writer.write(data[:-1])
        await until(lambda: server._buffered == 600)
        second, _ = request(ben, bytes(401))
        assert parsed(await send(ben, second[:-1]))[::2] == (503, b"busy")
        assert await ask(ben, body=b"whole at once") == (200, b"ecno ta elohw")
        writer.write(data[-1:])
        assert parsed(await reader.read()).status == 200
        writer.close()
        assert server._buffered == 0


async def slow_ones(server, ben, count):
    """Connections that have begun their request and don't get on."""
    held = [await asyncio.open_connection(ben.host, ben.port) for _ in range(count)]
    for i, (_, writer) in enumerate(held):
        writer.write(request(ben)[0][: 40 if i % 2 else -1])  # half a head, or all but the last byte of a body
    await until(lambda: len(server._connections) == count and server._buffered == 8 * ((count + 1) // 2))
    return held


async def test_a_full_server_hangs_up_on_who_has_been_slow_for_longest_and_serves_the_others(caplog):
    async with listening(max_connections=4, read_timeout_seconds=LONG) as (server, ben):
        held = await slow_ones(server, ben, 4)
        for hung_up_on in held[:2]:
            assert await ask(ben) == (200, b"noitseuq")
            assert await hung_up_on[0].read() == b""
            held.append(await asyncio.open_connection(ben.host, ben.port))  # says nothing at all
            await until(lambda: len(server._connections) == 4)
        held[2][1].write(request(ben)[0][-1:])  # in the end it has all been said
        assert (await held[2][0].readline()).startswith(b"HTTP/1.1 ")
        for _, writer in held:
            writer.close()
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def test_a_full_server_that_makes_no_room_is_kept_busy_by_the_slow(monkeypatch):
    """The control; also what becomes of a connection when all others are served."""
    monkeypatch.setattr(HttpServer, "_make_room", lambda _: False)
    async with listening(max_connections=4, read_timeout_seconds=LONG) as (server, ben):
        held = await slow_ones(server, ben, 4)
        reply = b""
        with contextlib.suppress(ConnectionError):
            reply = await send(ben, request(ben)[0])
        assert reply == b""
        for _, writer in held:
            writer.close()
        await until(lambda: not server._connections)
        assert await ask(ben) == (200, b"noitseuq")


async def test_who_connects_and_leaves_is_not_remembered():
    async with listening(max_connections=4) as (server, ben):
        for _ in range(30):
            _, writer = await asyncio.open_connection(ben.host, ben.port)
            writer.close()
            await until(lambda: not server._connections)
        assert not server._arriving
        assert await ask(ben) == (200, b"noitseuq")
