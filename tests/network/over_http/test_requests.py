"""One signed POST and its signed answer, from one peer to another."""

import asyncio
import logging
import os

import pytest
from free_ports import free_ports

from network.over_http.wire import ADA, BEN, EVE, Place, ask, client, clock, listening, parsed, request
from p2p_labeldp.errors import (
    AuthenticationFailed,
    ConfigurationError,
    LocalProtocolError,
    MalformedMessage,
    PeerUnreachable,
    RemoteProtocolError,
    ReplayedMessage,
    RosterMismatch,
)
from p2p_labeldp.network import http
from p2p_labeldp.network.http import HttpServer


async def test_a_request_reaches_the_handler_with_its_sender_and_the_reply_comes_back():
    seen = []
    async with (
        listening(lambda sender, body: seen.append((sender, body)) or body[::-1]) as (server, ben),
        client() as c,
    ):
        assert await c.post(ADA, ben, b"hello", timeout=60) == b"olleh"
        assert await c.post(EVE, ben, b"", timeout=60) == b""
        assert seen == [(ADA.peer_id, b"hello"), (EVE.peer_id, b"")]
        for traffic in (server.traffic, c.traffic):
            assert (traffic.messages_sent, traffic.messages_received) == (2, 2)
            assert (traffic.bytes_sent, traffic.bytes_received) == (5, 5)


async def test_many_at_once_each_get_their_own_answer():
    async with listening() as (_, ben), client(max_connections=5) as c:
        bodies = [b"%d" % i for i in range(40)]
        assert await asyncio.gather(*(c.post(ADA, ben, body, timeout=60) for body in bodies)) == [
            b[::-1] for b in bodies
        ]


async def test_a_body_as_long_as_allowed_arrives_both_ways():
    async with listening() as (_, ben), client() as c:
        body = os.urandom(http.MAX_BODY_BYTES)
        assert await c.post(ADA, ben, body, timeout=60) == body[::-1]


async def test_a_peer_can_be_asked_by_name():
    async with listening() as (_, ben), client() as c:
        assert await c.post(ADA, ben._replace(host="localhost"), b"ab", timeout=60) == b"ba"


async def test_two_peers_of_one_process_are_kept_apart():
    other = HttpServer(EVE, lambda sender, body: b"eve", wall_clock=clock)
    eve = Place(EVE.peer_id, "127.0.0.1", await other.start("127.0.0.1", 0))
    async with listening() as (_, ben), client() as c:
        assert await c.post(ADA, eve, b"ab", timeout=60) == b"eve"
        assert await c.post(ADA, ben, b"ab", timeout=60) == b"ba"
        with pytest.raises(PeerUnreachable):
            await c.post(ADA, ben._replace(port=eve.port), b"ab", timeout=60)
    await other.close()


async def test_a_request_in_pieces_is_put_together():
    async with listening() as (_, ben):
        data, _ = request(ben)
        reader, writer = await asyncio.open_connection(ben.host, ben.port)
        for i in range(len(data)):
            writer.write(data[i : i + 1])
            await asyncio.sleep(0)
        answer = parsed(await reader.read())
        assert (answer.status, answer.body) == (200, b"noitseuq")
        writer.close()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MalformedMessage("x"), (400, b"malformed")),
        (AuthenticationFailed("the detail"), (401, b"authentication_failed")),
        (ReplayedMessage("x"), (409, b"replayed")),
        (RosterMismatch("x"), (409, b"roster_mismatch")),
        (RemoteProtocolError("x"), (422, b"refused")),
        (LocalProtocolError("x"), (422, b"refused")),
        (ValueError("secret"), (500, b"failed")),
    ],
)
async def test_what_the_handler_raises_becomes_a_signed_word_and_the_server_lives(caplog, error, expected):
    replies = iter([error])

    def handler(sender, body):
        for reply in replies:
            raise reply
        return b"ok"

    async with listening(handler) as (_, ben):
        assert await ask(ben) == expected
        assert await ask(ben) == (200, b"ok")
    assert bool([record for record in caplog.records if record.levelno >= logging.ERROR]) == (expected[0] == 500)


async def test_an_address_in_use_is_a_configuration_error():
    async with listening() as (_, ben):
        with pytest.raises(ConfigurationError, match=f"address: 127.0.0.1:{ben.port} can't be listened on"):
            await HttpServer(EVE, lambda sender, body: b"").start("127.0.0.1", ben.port)


async def test_a_closed_server_can_be_reached_no_more_and_its_port_is_free_again():
    async with client() as c:
        async with listening(port=free_ports(1)[0]) as (_, ben):
            await c.post(ADA, ben, b"", timeout=60)
        with pytest.raises(PeerUnreachable):
            await c.post(ADA, ben, b"", timeout=60)
        again = HttpServer(BEN, lambda sender, body: b"again", wall_clock=clock)
        await again.start("127.0.0.1", ben.port)
        assert await c.post(ADA, ben, b"", timeout=60) == b"again"
        await again.close()


async def test_bodies_too_long_to_send_are_our_own_fault(caplog):
    async with listening(lambda sender, body: bytes(http.MAX_BODY_BYTES + 1)) as (_, ben), client() as c:
        with pytest.raises(LocalProtocolError, match="body of 1048577 bytes"):
            await c.post(ADA, ben, bytes(http.MAX_BODY_BYTES + 1), timeout=60)
        with pytest.raises(PeerUnreachable, match="500 failed"):
            await c.post(ADA, ben, b"", timeout=60)
    assert "reply of 1048577 bytes" in caplog.text
