"""By TLS, too, the slow are bounded in number and time: those of whom no handshake comes, and those who never close."""

import asyncio
import contextlib
import socket
import ssl

import pytest
import uvloop

from network.over_http.wire import until
from network.test_tls import CLIENT, HOST, SERVER, loaded
from p2p_labeldp.errors import TransportError
from p2p_labeldp.network.http import CONTENT_TYPE, ROUTE, HttpClient, HttpServer
from p2p_labeldp.protocol.effects import Address

FORGED = f"POST {ROUTE} HTTP/1.1\r\ncontent-type: {CONTENT_TYPE}\r\ncontent-length: 0\r\n\r\n".encode()
LOOPS = {"asyncio": None, "uvloop": uvloop.new_event_loop}
ROOM = 4


@pytest.fixture(params=LOOPS)
def run(request):
    """Runs a coroutine on one of the loops that peers run on."""
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
        yield runner.run


@pytest.fixture
def both(tmp_path):
    return loaded(tmp_path)


@contextlib.asynccontextmanager
async def listening(both, **options):
    """A server and its port."""
    server = HttpServer(SERVER.signing_key, lambda _sender, body: body, max_connections=ROOM, **options)
    port = await server.start(HOST, 0, tls=both.server)
    try:
        yield server, port
    finally:
        await server.close()


async def serves(both, port, *, times=1, timeout=60.0):
    """Whether honest requests are answered."""
    async with HttpClient(tls=both.client, max_connections=2) as client:
        asked = [
            client.post(CLIENT.signing_key, Address(SERVER.peer_id, HOST, port), bytes([i]), timeout=timeout)
            for i in range(times)
        ]
        with contextlib.suppress(TransportError):
            return await asyncio.gather(*asked) == [bytes([i]) for i in range(times)]
    return False


async def silent(port, count):
    """Connections of which no handshake comes."""
    return [await asyncio.open_connection(HOST, port) for _ in range(count)]


async def ended(reader):
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""


def close(held):
    for _, writer in held:
        writer.close()


def test_many_requests_are_answered(run, both):
    async def main():
        async with listening(both) as (server, port):
            assert await serves(both, port, times=50)
            await until(lambda: not server._connections)

    run(main())


def test_who_does_not_finish_the_handshake_makes_room_for_who_does(run, both):
    async def main():
        async with listening(both, read_timeout_seconds=3600) as (server, port):
            held = await silent(port, ROOM + 3)
            for reader, _ in held[:3]:
                await ended(reader)
            assert len(server._connections) == ROOM
            assert await serves(both, port)
            close(held)

    run(main())


def test_without_room_made_for_others_those_keep_everybody_out(run, both, monkeypatch):
    monkeypatch.setattr(HttpServer, "_make_room", lambda _: False)

    async def main():
        async with listening(both, read_timeout_seconds=3600) as (server, port):
            held = await silent(port, ROOM)
            await until(lambda: len(server._connections) == ROOM)
            assert not await serves(both, port)
            close(held)

    run(main())


def test_a_handshake_has_its_time(run, both):
    async def main():
        async with listening(both, read_timeout_seconds=0.1) as (server, port):
            held = await silent(port, 2)
            held[1][1].write(b"\x16\x03\x01\x02\x00")  # the start of a greeting
            for reader, _ in held:
                await ended(reader)
            assert not server._connections
            close(held)

    run(main())


def test_closing_waits_for_no_handshake(run, both):
    async def main():
        async with listening(both, read_timeout_seconds=3600) as (server, port):
            held = await silent(port, 2)
            await until(lambda: len(server._connections) == len(held))
        for reader, _ in held:
            await ended(reader)
        close(held)

    run(main())


def never_closing(both, port):
    """Somebody whose request, though it verifies for nobody, is whole, and who never ends the connection."""
    plain = socket.create_connection((HOST, port))
    secured = both.client.wrap_socket(plain, server_hostname=HOST)
    secured.sendall(FORGED)
    assert secured.recv(12) == b"HTTP/1.1 401"
    return secured


def test_who_was_answered_and_does_not_close_is_gone_all_the_same(run, both):
    async def main():
        async with listening(both, read_timeout_seconds=3600) as (server, port):
            one = await asyncio.to_thread(never_closing, both, port)
            await until(lambda: not server._connections)
            one.close()

    run(main())


def test_garbage_in_place_of_a_handshake_leaves_nothing_behind(run, both, caplog):
    async def main():
        async with listening(both, read_timeout_seconds=3600) as (server, port):
            for garbage in (b"POST / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", bytes(1000), b""):
                reader, writer = await asyncio.open_connection(HOST, port)
                writer.write(garbage)
                writer.write_eof()
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    await reader.read()
                writer.close()
            await until(lambda: not server._connections)
            assert await serves(both, port)

    run(main())
    assert not caplog.records
