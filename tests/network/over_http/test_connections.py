"""Whom a client connects to, how often, how long it waits."""

import asyncio
import os
import re
import resource

import pytest

from network.over_http.wire import ADA, BEN, Place, answer_of, client, clock, faking, until, usual
from p2p_labeldp.errors import ConfigurationError, DeadlineExceeded, PeerUnreachable
from p2p_labeldp.network.http import HttpClient, HttpServer


async def test_a_peer_that_never_answers_is_late():
    over = asyncio.Event()

    async def never(data):
        await over.wait()
        return b""

    async with faking(never) as fake, client(max_connections=1) as c:
        with pytest.raises(DeadlineExceeded, match=r"0\.05 s"):
            await c.post(ADA, fake, b"ab", timeout=0.05)
        waiting = asyncio.create_task(c.post(ADA, fake, b"ab", timeout=60))
        await asyncio.sleep(0)
        with pytest.raises(DeadlineExceeded):  # waiting for a turn is part of it
            await c.post(ADA, fake, b"ab", timeout=0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        over.set()
        await until(lambda: len(asyncio.all_tasks()) == 1)


@pytest.mark.parametrize(
    "place", [Place(BEN.peer_id, "a/b", 1), Place(BEN.peer_id, "x@y", 1), Place(BEN.peer_id, "h", 0)]
)
async def test_a_place_that_is_none_is_unreachable(place):
    async with client() as c:
        with pytest.raises(PeerUnreachable, match="address"):
            await c.post(ADA, place, b"ab", timeout=60)


async def test_a_post_is_sent_once_also_when_the_connection_drops():
    seen = []
    async with faking(lambda data: seen.append(data) or b"") as fake, client() as c:
        with pytest.raises(PeerUnreachable):
            await c.post(ADA, fake, b"ab", timeout=60)
        assert len(seen) == 1


async def test_asking_again_is_another_request():
    seen = []
    async with faking(lambda data: seen.append(data) or answer_of(data)) as fake, client() as c:
        for _ in range(2):
            await c.post(ADA, fake, b"ab", timeout=60)
    nonces = [re.search(rb'nonce="([0-9a-f]{32})"', data)[1] for data in seen]
    assert len(set(nonces)) == 2


async def test_no_more_connections_are_open_than_allowed():
    now, most = 0, 0
    release = asyncio.Event()

    async def respond(data):
        nonlocal now, most
        now += 1
        most = max(most, now)
        if most == 3:
            release.set()
        await release.wait()
        now -= 1
        return answer_of(data)

    async with faking(respond) as fake, client(max_connections=3) as c:
        assert await asyncio.gather(*(c.post(ADA, fake, b"ab", timeout=60) for _ in range(12))) == [b"answer"] * 12
    assert most == 3


async def test_hundreds_of_hosts_need_no_more_descriptors_than_connections():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = HttpServer(BEN, lambda sender, body: body, wall_clock=clock, sender_rate=usual(burst=300))
    port = await server.start("0.0.0.0", 0)
    try:
        async with client(max_connections=4) as c:
            used = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 30, hard))
            hosts = [f"127.1.{i // 250}.{i % 250 + 1}" for i in range(300)]
            posts = (c.post(ADA, Place(BEN.peer_id, host, port), b"ab", timeout=60) for host in hosts)
            assert await asyncio.gather(*posts) == [b"ab"] * 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await server.close()


async def test_a_client_can_choose_the_address_it_comes_from():
    seen = []

    async def serve(reader, writer):
        seen.append(writer.get_extra_info("peername")[0])
        writer.write(answer_of(await reader.readuntil(b"\r\n\r\n")))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    place = Place(BEN.peer_id, "127.0.0.1", server.sockets[0].getsockname()[1])
    for local in ("127.9.8.7", None):
        async with client(local_host=local) as c:
            assert await c.post(ADA, place, b"", timeout=60) == b"answer"
    server.close()
    await server.wait_closed()
    assert seen == ["127.9.8.7", "127.0.0.1"]


async def test_proxies_of_the_environment_and_cookies_are_ignored(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    seen = []
    async with (
        faking(lambda data: seen.append(data) or answer_of(data, **{"set-cookie": "a=b"})) as fake,
        client() as c,
    ):
        for _ in range(2):
            assert await c.post(ADA, fake, b"ab", timeout=60) == b"answer"
    assert all(b"cookie" not in data.lower() for data in seen)


def test_a_client_without_connections_is_refused():
    with pytest.raises(ConfigurationError, match="max_connections: 0 given"):
        HttpClient(max_connections=0)
