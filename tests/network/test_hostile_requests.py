"""A slow, an endless and a 100 MB request neither grow a server's memory nor keep others out.

The server is a process of its own, whose resident memory the kernel tells. Each test has its control: the same request
to a server with the bound switched off does what it was kept from. Nothing is asserted about how long anything takes.
"""

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

import p2p_labeldp
from network.over_http.wire import ADA, BEN, Place, parsed, request
from p2p_labeldp.network.http import HttpClient

pytestmark = pytest.mark.processes

SERVER = """
import asyncio, sys
sys.path.insert(0, ROOT)
from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.network.http import HttpServer, connection, head, server

async def main():
    TWEAK
    one = HttpServer(SigningKey(bytes([2]) * 32), lambda sender, body: b"%d" % len(body), OPTIONS)
    print(await one.start("127.0.0.1", 0), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
MEGABYTE = 1 << 20
QUIET = 8 * MEGABYTE + 4 * MEGABYTE  # bodies under way, by MAX_BUFFERED_BYTES, and what an allocator keeps
HUGE = 100 * MEGABYTE
PATIENCE = 300.0  # seconds for what has to come
UNBOUNDED = "server.MAX_BUFFERED_BYTES = 1 << 40"
OPEN_DOORS = "max_body_bytes=1 << 30"


class Served:
    """A server in a process of its own.

    Args:
        options: Keyword arguments of ``HttpServer``, as text.
        tweak: A statement that switches a bound off.
    """

    def __init__(self, options="", tweak="pass"):
        root = repr(str(Path(p2p_labeldp.__file__).parents[1]))
        code = SERVER.replace("ROOT", root).replace("TWEAK", tweak).replace("OPTIONS", options)
        self._process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)

    async def __aenter__(self):
        port = await asyncio.to_thread(self._process.stdout.readline)
        self.place = Place(BEN.peer_id, "127.0.0.1", int(port))
        assert await self.serves()  # warm: what a first request imports and keeps is not counted
        self._before = self.resident()
        return self

    async def __aexit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def resident(self):
        """Bytes of memory that the process has now."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    @property
    def grown(self):
        return self.resident() - self._before

    async def grows_beyond(self, size):
        """Waits until it has: what was sent is read when a busy machine gets to it."""
        async with asyncio.timeout(PATIENCE):
            while self.grown <= size:  # noqa: ASYNC110  what is waited for is another process' memory
                await asyncio.sleep(0.01)

    async def serves(self):
        """Whether an honest peer gets its answer."""
        async with HttpClient() as client:
            with contextlib.suppress(p2p_labeldp.errors.TransportError):
                return await client.post(ADA, self.place, b"honest", timeout=PATIENCE) == b"6"
        return False


def heads(place, **options):
    """The bytes of a request with the time of day."""
    import time

    return request(place, now=int(time.time()), **options)[0]


async def pour(place, head, chunk, count):
    """Sends a head and then ``count`` chunks, as fast as they are taken; how many were taken, and the answer."""
    reader, writer = await asyncio.open_connection(place.host, place.port)
    taken = 0
    with contextlib.suppress(ConnectionError):
        writer.write(head)
        while taken < count:
            writer.write(chunk)
            await writer.drain()
            taken += 1
            if taken % 4 == 0:
                await asyncio.sleep(0)
    answer = b""
    with contextlib.suppress(ConnectionError):
        answer = await reader.read()
    writer.close()
    return taken, answer


def huge(place):
    """A request of 100 MB: its head."""
    data = heads(place, **{"content-length": str(HUGE)})
    return data[: -len(b"question")]


async def test_a_request_of_100_mb_grows_no_memory_and_others_are_served():
    async with Served() as one:
        (_, answer), honest = await asyncio.gather(pour(one.place, huge(one.place), bytes(MEGABYTE), 100), one.serves())
        assert honest
        assert answer == b"" or parsed(answer)[::2] == (413, b"size")
        assert one.grown < QUIET


async def test_without_the_bound_on_bodies_it_does():
    async with Served(OPEN_DOORS, UNBOUNDED) as one:
        most = 0

        async def watch():
            nonlocal most
            while True:
                most = max(most, one.grown)
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        taken, _ = await pour(one.place, huge(one.place), bytes(MEGABYTE), 100)
        watching.cancel()
        assert taken == 100
        assert most > HUGE / 2


ENDLESS = {
    "a body in chunks": lambda place: (
        heads(place, body=b"", drop=["content-length"], extra=["transfer-encoding: chunked"]),
        b"10000\r\n" + bytes(0x10000) + b"\r\n",
    ),
    "a head of one field": lambda place: (b"POST /p2p/v1 HTTP/1.1\r\nx: ", b"a" * 0x10000),
    "a head of many fields": lambda place: (b"POST /p2p/v1 HTTP/1.1\r\n", b"x: " + b"y" * 500 + b"\r\n"),
    "a first line": lambda place: (b"POST /", b"a" * 0x10000),
    "requests without an end": lambda place: (b"", heads(place)),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_an_endless_request_grows_no_memory_and_others_are_served(what):
    async with Served() as one:
        head, chunk = ENDLESS[what](one.place)
        (_, _), honest = await asyncio.gather(pour(one.place, head, chunk, 2000), one.serves())
        assert honest
        assert one.grown < QUIET
        assert await one.serves()


@pytest.mark.parametrize("what", ["a head of one field", "a first line"])
async def test_without_the_bound_on_heads_an_endless_one_is_kept(what):
    async with Served("read_timeout_seconds=3600", "head.MAX_HEAD_BYTES = 1 << 30") as one:
        head, chunk = ENDLESS[what](one.place)
        _, writer = await asyncio.open_connection(one.place.host, one.place.port)
        writer.write(head)
        for _ in range(400):
            writer.write(chunk)
            await writer.drain()
        await one.grows_beyond(QUIET)
        writer.close()


SLOW = 400
ALL_OF_64 = 64 * MEGABYTE // 2


async def slow_ones(place, count, *, bodies=True):
    """Connections on which a request of 1 MB begins and gets no further, and others that say nothing."""
    held = []
    for i in range(count):
        _, writer = await asyncio.open_connection(place.host, place.port)
        if i % 2 and bodies:
            writer.write(heads(place, body=bytes(MEGABYTE))[: MEGABYTE // 2])
        else:
            writer.write(b"POST /p2p")
        held.append(writer)
    return held


async def test_the_slow_grow_no_memory_and_keep_nobody_out():
    async with Served("max_connections=64, read_timeout_seconds=3600") as one:
        held = await slow_ones(one.place, SLOW)
        assert await one.serves()
        assert one.grown < QUIET + ALL_OF_64  # what a busy machine's transports may have read before they paused
        for writer in held:
            writer.close()


async def test_without_the_bound_on_connections_the_slow_grow_the_memory():
    async with Served("max_connections=4096, read_timeout_seconds=3600", UNBOUNDED) as one:
        held = await slow_ones(one.place, SLOW)
        await one.grows_beyond(QUIET + ALL_OF_64)
        for writer in held:
            writer.close()


async def test_without_room_made_for_others_the_slow_keep_everybody_out():
    off = "HttpServer._make_room = lambda _: False"
    async with Served("max_connections=64, read_timeout_seconds=3600", off) as one:
        held = await slow_ones(one.place, SLOW, bodies=False)  # a body beyond the bound on bodies would make room
        assert not await one.serves()
        for writer in held:
            writer.close()


async def test_without_the_bound_on_bodies_under_way_the_slow_fill_the_memory():
    async with Served("max_connections=64, read_timeout_seconds=3600", UNBOUNDED) as one:
        held = await slow_ones(one.place, 63)
        await one.grows_beyond(QUIET)
        for writer in held:
            writer.close()


CROWDED = 36 * MEGABYTE  # 18 MB are usual after three crowds, and 60 where nothing is collected


async def crowd(one):
    """A crowd of the slow comes and goes; whether an honest peer was served among them."""
    held = await slow_ones(one.place, SLOW)
    served = await one.serves()
    for writer in held:
        writer.close()
    return served


async def test_one_crowd_of_the_slow_after_another_leaves_nothing_behind():
    async with Served("max_connections=64, read_timeout_seconds=3600") as one:
        assert [await crowd(one) for _ in range(3)] == [True] * 3
        assert one.grown < CROWDED


async def test_without_dropping_what_was_received_each_crowd_leaves_some():
    ends = "connection.Connection.connection_lost"
    off = f"kept, lost = [], {ends}; {ends} = lambda one, exc: (kept.append(one._data), lost(one, exc))"
    async with Served("max_connections=64, read_timeout_seconds=3600", off) as one:
        async with asyncio.timeout(PATIENCE):  # three are enough, if the server gets to read what they say
            while one.grown <= CROWDED:
                await crowd(one)
