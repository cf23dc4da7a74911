"""One signed POST and its signed answer: what is accepted, what is refused before it costs anything, and by whom."""

import asyncio
import base64
import contextlib
import gzip
import itertools
import logging
import math
import os
import random
import re
import resource
import socket
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import urlsplit

import http_message_signatures as library
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from p2p_labeldp.crypto import signatures
from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.crypto.signatures import (
    REFUSAL_COMPONENTS,
    ClockSkew,
    sign_request,
    sign_response,
    verify_response,
)
from p2p_labeldp.errors import (
    AuthenticationFailed,
    ConfigurationError,
    DeadlineExceeded,
    LocalProtocolError,
    MalformedMessage,
    PeerUnreachable,
    RemoteProtocolError,
    ReplayedMessage,
    RosterMismatch,
)
from p2p_labeldp.network import http
from p2p_labeldp.network.http import CONTENT_TYPE, ROUTE, HttpClient, HttpServer, Refused

ADA, BEN, EVE = (SigningKey(bytes([i]) * 32) for i in (1, 2, 3))
NOW = 1_700_000_000
NONCES = itertools.count()


class Place(NamedTuple):
    peer_id: bytes
    host: str
    port: int


class Answer(NamedTuple):
    status: int
    fields: dict
    body: bytes


def clock():
    return NOW


@contextlib.asynccontextmanager
async def listening(handler=lambda sender, body: body[::-1], **options):
    """Ben's server and where it is."""
    server = HttpServer(BEN, handler, **{"wall_clock": clock, **options})
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, Place(BEN.peer_id, "127.0.0.1", port)
    finally:
        await server.close()


@contextlib.asynccontextmanager
async def faking(respond):
    """A stranger's server: ``respond`` gets the bytes of a request and returns those of an answer."""

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])
        answer = respond(head + await reader.readexactly(length))
        writer.write(await answer if asyncio.iscoroutine(answer) else answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Place(BEN.peer_id, "127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await server.wait_closed()


async def until(condition):
    while not condition():  # noqa: ASYNC110  what is waited for is nobody's event
        await asyncio.sleep(0)


def client(**options):
    return HttpClient(wall_clock=clock, **options)


def request(place, body=b"question", *, key=ADA, to=BEN, now=NOW, nonce=None, line=None, drop=(), extra=(), **changes):
    """Bytes of a request, and its signed fields. ``changes`` go into what is signed; ``drop`` and ``extra`` don't."""
    signed = sign_request(
        key,
        method="POST",
        authority=f"127.0.0.1:{place.port}",
        path=ROUTE,
        content_type=CONTENT_TYPE,
        body=body,
        recipient=to.peer_id,
        now=now,
        nonce=next(NONCES).to_bytes(16, "big") if nonce is None else nonce,
    )
    fields = {"host": f"127.0.0.1:{place.port}", "content-length": str(len(body))} | signed | changes
    lines = [line or f"POST {ROUTE} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields.items() if name not in drop] + list(extra)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body, signed


async def send(place, data, *, finish=False):
    """What comes back for these bytes, until the server hangs up."""
    reader, writer = await asyncio.open_connection(place.host, place.port)
    try:
        writer.write(data)
        if finish:
            writer.write_eof()
        return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def parsed(data):
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return Answer(int(status.split()[1]), {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}, body)


def written(status, fields, body=b""):
    lines = [f"HTTP/1.1 {status} X"] + [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def ask(place, **options):
    """Sends a raw request; returns the answer once its signature verified as Ben's to exactly this request."""
    data, signed = request(place, **options)
    answer = parsed(await send(place, data))
    verify_response(
        answer.fields,
        status=answer.status,
        body=answer.body,
        sender=BEN.peer_id,
        recipient=options.get("key", ADA).peer_id,
        request_signature=signed["signature"],
    )
    return answer.status, answer.body


def answer_of(head_and_body, *, key=BEN, status=200, body=b"answer", content_type=CONTENT_TYPE, **changes):
    """Bytes of a signed answer to the request in these bytes."""
    signature = re.search(rb"\r\nsignature: ([^\r]+)", head_and_body)[1].decode()
    signed = sign_response(
        key,
        status=status,
        content_type=content_type,
        body=body,
        recipient=ADA.peer_id,
        request_signature=signature,
        now=NOW,
    )
    return written(status, signed | {"content-length": str(len(body))} | changes, body)


# What works


async def test_a_request_reaches_the_handler_with_its_sender_and_the_reply_comes_back():
    seen = []
    async with (
        listening(lambda sender, body: seen.append((sender, body)) or body[::-1]) as (server, ben),
        client() as c,
    ):
        assert await c.post(ADA, ben, b"hello", timeout=5) == b"olleh"
        assert await c.post(EVE, ben, b"", timeout=5) == b""
        assert seen == [(ADA.peer_id, b"hello"), (EVE.peer_id, b"")]
        for traffic in (server.traffic, c.traffic):
            assert (traffic.messages_sent, traffic.messages_received) == (2, 2)
            assert (traffic.bytes_sent, traffic.bytes_received) == (5, 5)


async def test_many_at_once_each_get_their_own_answer():
    async with listening() as (_, ben), client(max_connections=5) as c:
        bodies = [b"%d" % i for i in range(40)]
        assert await asyncio.gather(*(c.post(ADA, ben, body, timeout=30) for body in bodies)) == [
            b[::-1] for b in bodies
        ]


async def test_a_body_as_long_as_allowed_arrives_both_ways():
    async with listening() as (_, ben), client() as c:
        body = os.urandom(http.MAX_BODY_BYTES)
        assert await c.post(ADA, ben, body, timeout=30) == body[::-1]


async def test_a_peer_can_be_asked_by_name():
    async with listening() as (_, ben), client() as c:
        assert await c.post(ADA, ben._replace(host="localhost"), b"ab", timeout=5) == b"ba"


async def test_two_peers_of_one_process_are_kept_apart():
    other = HttpServer(EVE, lambda sender, body: b"eve", wall_clock=clock)
    eve = Place(EVE.peer_id, "127.0.0.1", await other.start("127.0.0.1", 0))
    async with listening() as (_, ben), client() as c:
        assert await c.post(ADA, eve, b"ab", timeout=5) == b"eve"
        assert await c.post(ADA, ben, b"ab", timeout=5) == b"ba"
        with pytest.raises(PeerUnreachable):
            await c.post(ADA, ben._replace(port=eve.port), b"ab", timeout=5)
    await other.close()


# What a server refuses; every refusal is signed and bound to its request (``ask`` checks it)


async def test_every_gate_has_its_word_and_none_lets_the_handler_see_the_request():
    seen = []
    async with listening(lambda sender, body: seen.append(body) or b"ok", max_body_bytes=100) as (_, ben):
        assert await ask(ben) == (200, b"ok")
        assert seen == [b"question"]
        other = f"127.0.0.1:{ben.port + 1}"
        for expected, options in {
            (404, b"path"): {"line": "POST /p2p/v2 HTTP/1.1"},
            (404, b"path "): {"line": f"POST {ROUTE}?x=1 HTTP/1.1"},
            (404, b"path  "): {"line": f"POST http://127.0.0.1:{ben.port}{ROUTE} HTTP/1.1"},
            (405, b"method"): {"line": f"PUT {ROUTE} HTTP/1.1"},
            (405, b"method "): {"line": f"GET {ROUTE} HTTP/1.1"},
            (411, b"length"): {"drop": ["content-length"], "body": b""},
            (413, b"size"): {"body": bytes(101)},
            (415, b"type"): {"content-type": "application/msgpack"},
            (415, b"type "): {"extra": ["content-encoding: identity"]},
            (401, b"authentication_failed"): {"to": EVE},
            (401, b"authentication_failed "): {"host": other},
            (401, b"authentication_failed  "): {"content-digest": "sha-256=:" + "A" * 43 + "=:"},
            (401, b"clock_skew 30"): {"now": NOW - 600},
        }.items():
            assert await ask(ben, **options) == (expected[0], expected[1].rstrip())
        assert seen == [b"question"]


async def test_a_huge_body_is_refused_by_its_declared_length_alone():
    async with listening() as (server, ben):
        data, _ = request(ben, **{"content-length": str(100 << 20)})
        assert parsed(await send(ben, data)).status == 413  # the body never came
        assert server._buffered == 0
        assert await ask(ben) == (200, b"noitseuq")


async def test_an_endless_chunked_body_is_refused_before_its_first_chunk_is_read():
    async with listening() as (_, ben):
        data, _ = request(ben, b"", drop=["content-length"], extra=["transfer-encoding: chunked"])
        reader, writer = await asyncio.open_connection(ben.host, ben.port)
        writer.write(data)
        for _ in range(3):
            writer.write(b"8\r\nquestion\r\n")
        answer = parsed(await reader.read())
        assert (answer.status, answer.body) == (411, b"length")
        writer.close()
        both, _ = request(ben, extra=["transfer-encoding: chunked"])
        assert parsed(await send(ben, both))[::2] == (400, b"malformed")
        assert await ask(ben) == (200, b"noitseuq")


async def test_a_compressed_body_is_refused_unopened():
    async with listening() as (_, ben):
        assert await ask(ben, body=gzip.compress(bytes(1000)), extra=["content-encoding: gzip"]) == (415, b"type")
        assert (await ask(ben, body=gzip.compress(bytes(1000))))[0] == 200  # bytes like any others


@pytest.mark.parametrize(
    "name", ["content-type", "content-digest", "p2p-recipient", "signature-input", "signature", "x"]
)
async def test_a_field_that_stands_twice_is_refused(name):
    async with listening() as (_, ben):
        assert await ask(ben, x="1") == (200, b"noitseuq")
        _, signed = request(ben)
        data, _ = request(ben, x="1", extra=[f"{name.title()}: {signed.get(name, '1')}"])
        assert parsed(await send(ben, data))[::2] == (400, b"malformed")


async def test_a_request_sent_twice_is_processed_once():
    seen = []
    async with listening(lambda sender, body: seen.append(body) or b"ok") as (_, ben):
        assert await ask(ben, nonce=b"n" * 16) == (200, b"ok")
        assert await ask(ben, nonce=b"n" * 16) == (409, b"replayed")
        assert await ask(ben, nonce=b"m" * 16) == (200, b"ok")
        assert await ask(ben, nonce=b"n" * 16, key=EVE) == (200, b"ok")
        assert len(seen) == 3


async def test_more_requests_than_the_cache_holds_are_told_to_come_back_and_the_first_again_is_still_a_replay():
    async with listening(lambda sender, body: b"ok", nonce_capacity=3) as (_, ben):
        for i in range(3):
            assert await ask(ben, nonce=bytes([i]) * 16) == (200, b"ok")
        assert await ask(ben, nonce=b"3" * 16) == (503, b"busy")
        assert await ask(ben, nonce=bytes(16)) == (409, b"replayed")


async def test_a_request_with_another_peers_signature_is_refused():
    async with listening() as (_, ben):
        _, eves = request(ben, key=EVE)
        assert await ask(ben) == (200, b"noitseuq")
        data, _ = request(ben, signature=eves["signature"])
        assert parsed(await send(ben, data))[::2] == (401, b"authentication_failed")


async def test_an_unsigned_request_gets_a_signed_refusal_bound_to_nothing():
    class Keys(library.HTTPSignatureKeyResolver):
        def resolve_public_key(self, key_id):
            assert key_id == BEN.public.hex()
            return Ed25519PublicKey.from_public_bytes(bytes.fromhex(key_id))

    async with listening(wall_clock=library.signatures.datetime.datetime.now().timestamp) as (_, ben):
        data, _ = request(ben, drop=["signature", "signature-input"])
        answer = parsed(await send(ben, data))
        assert (answer.status, answer.body) == (401, b"authentication_failed")
        verifier = library.HTTPMessageVerifier(signature_algorithm=library.algorithms.ED25519, key_resolver=Keys())
        message = SimpleNamespace(status_code=answer.status, headers=answer.fields, request=None)
        verifier.verify(message, expect_tag="p2p-labeldp", require_components=REFUSAL_COMPONENTS, body=answer.body)


async def test_a_slow_body_is_given_up_and_a_slow_head_is_hung_up_on():
    async with listening(read_timeout_seconds=0.2) as (server, ben):
        data, _ = request(ben)
        assert parsed(await send(ben, data[:-1]))[::2] == (408, b"slow")
        assert await send(ben, data[:40]) == b""
        assert await send(ben, b"") == b""
        assert server._buffered == 0
        assert await ask(ben) == (200, b"noitseuq")


async def test_what_cannot_become_a_request_is_not_waited_for():
    async with listening(read_timeout_seconds=3600) as (_, ben):
        for start in (b"\x16\x03\x01", b"get / HTTP/1.1", b"\r\n", b"A" * 17):
            assert parsed(await send(ben, start))[::2] == (400, b"malformed")


async def test_who_asks_and_does_not_read_the_answer_is_hung_up_on():
    def long(sender, body):
        return bytes(http.MAX_BODY_BYTES)

    async with listening(long) as (_, ben), client() as c:
        assert await c.post(ADA, ben, b"", timeout=30) == bytes(http.MAX_BODY_BYTES)
    async with listening(long, read_timeout_seconds=0.1) as (server, ben):
        server._listener.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # connections inherit it
        quiet = socket.socket()
        quiet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        quiet.connect((ben.host, ben.port))
        quiet.sendall(request(ben)[0])
        await until(lambda: server.traffic.messages_sent == 1 and not server._connections)
        quiet.close()


@pytest.mark.parametrize("room", [True, False])
async def test_those_who_do_not_read_their_answers_keep_nobody_out(room, monkeypatch):
    """And do, where no room is made."""
    if not room:
        monkeypatch.setattr(HttpServer, "_make_room", lambda _: False)

    def long_for_ada(sender, body):
        return bytes(http.MAX_BODY_BYTES) if sender == ADA.peer_id else body

    async with listening(long_for_ada, max_connections=2, read_timeout_seconds=3600) as (server, ben):
        server._listener.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # connections inherit it
        held = []
        for _ in range(2):
            quiet = socket.socket()
            quiet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            quiet.connect((ben.host, ben.port))
            quiet.sendall(request(ben)[0])
            held.append(quiet)
        await until(lambda: server.traffic.messages_sent == 2)
        assert (len(server._connections), len(server._arriving)) == (2, 0)
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = await send(ben, request(ben, key=EVE)[0])
        assert answer.startswith(b"HTTP/1.1 200 ") is room
        for quiet in held:
            quiet.close()


async def test_closing_waits_for_no_idle_connection(monkeypatch):
    monkeypatch.setattr(http.server, "SHUTDOWN_SECONDS", 3600)
    async with listening() as (server, ben):
        reader, writer = await asyncio.open_connection(ben.host, ben.port)
        writer.write(request(ben)[0][:40])
        await until(lambda: server._connections)
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()


async def test_bodies_too_long_to_send_are_our_own_fault(caplog):
    async with listening(lambda sender, body: bytes(http.MAX_BODY_BYTES + 1)) as (_, ben), client() as c:
        with pytest.raises(LocalProtocolError, match="body of 1048577 bytes"):
            await c.post(ADA, ben, bytes(http.MAX_BODY_BYTES + 1), timeout=5)
        with pytest.raises(PeerUnreachable, match="500 failed"):
            await c.post(ADA, ben, b"", timeout=5)
    assert "reply of 1048577 bytes" in caplog.text


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


async def test_a_sender_that_hangs_up_in_the_middle_leaves_nothing_behind(caplog):
    async with listening() as (server, ben):
        data, _ = request(ben)
        await send(ben, data[:-1], finish=True)
        await send(ben, data[:40], finish=True)
        assert await ask(ben) == (200, b"noitseuq")
        assert server._buffered == 0
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


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
    async with listening(max_connections=4, read_timeout_seconds=3600) as (server, ben):
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
    async with listening(max_connections=4, read_timeout_seconds=3600) as (server, ben):
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


# How often anybody may ask


def usual(rate=1.0, burst=3.0):
    return http.Rate(per_second=rate, burst=burst)


async def test_a_sender_over_its_rate_is_told_when_to_come_back_and_others_are_served():
    seen, time = [], [0.0]
    async with listening(
        lambda sender, body: seen.append(sender) or b"ok", sender_rate=usual(), monotonic=lambda: time[0]
    ) as (_, ben):
        for _ in range(3):
            assert await ask(ben) == (200, b"ok")
        assert await ask(ben) == (429, b"too_many 1")
        data, _ = request(ben)
        assert parsed(await send(ben, data)).fields["retry-after"] == "1"
        assert await ask(ben, key=EVE) == (200, b"ok")
        time[0] = 1.0
        assert await ask(ben) == (200, b"ok")
        assert await ask(ben) == (429, b"too_many 1")
        assert seen == [ADA.peer_id] * 3 + [EVE.peer_id, ADA.peer_id]


async def test_nobody_uses_up_anothers_rate_by_forging_or_replaying_its_requests():
    async with listening(lambda sender, body: b"ok", sender_rate=usual(), monotonic=lambda: 0.0) as (_, ben):
        data, _ = request(ben)
        assert parsed(await send(ben, data)).status == 200
        for _ in range(5):
            assert parsed(await send(ben, data)).status == 409  # a replay
            forged, _ = request(ben, signature=request(ben, key=EVE)[1]["signature"])
            assert parsed(await send(ben, forged)).status == 401
        for _ in range(2):
            assert await ask(ben) == (200, b"ok")
        assert (await ask(ben))[0] == 429  # the fourth of its own


async def test_all_together_have_a_rate_too_which_counts_what_does_not_verify():
    time = [0.0]
    async with listening(lambda sender, body: b"ok", total_rate=usual(), monotonic=lambda: time[0]) as (_, ben):
        for _ in range(2):
            data, _ = request(ben, drop=["signature", "signature-input"])
            assert parsed(await send(ben, data)).status == 401
        assert await ask(ben) == (200, b"ok")
        assert parsed(await send(ben, b"no HTTP")).status == 429
        for key in (ADA, EVE):
            assert await ask(ben, key=key) == (429, b"too_many 1")
        time[0] = 1.0
        assert await ask(ben, key=EVE) == (200, b"ok")


async def test_who_is_over_its_rate_takes_the_other_for_unreachable_and_may_try_again():
    time = [0.0]
    async with (
        listening(lambda sender, body: b"ok", sender_rate=usual(burst=1.0), monotonic=lambda: time[0]) as (_, ben),
        client() as c,
    ):
        assert await c.post(ADA, ben, b"", timeout=5) == b"ok"
        with pytest.raises(PeerUnreachable, match="429 too_many"):
            await c.post(ADA, ben, b"", timeout=5)
        time[0] = 1.0
        assert await c.post(ADA, ben, b"", timeout=5) == b"ok"


async def test_garbage_to_the_port_is_answered_or_dropped_and_never_ends_the_server(caplog):
    chance = random.Random(1)
    async with listening() as (_, ben):
        data, _ = request(ben)
        for _ in range(60):
            garbage = bytearray(data)
            for _ in range(chance.randrange(1, 20)):
                garbage[chance.randrange(len(garbage))] = chance.randrange(256)
            for junk in (bytes(garbage), chance.randbytes(200), b"\x16\x03\x01\x02\x00\x01" + chance.randbytes(100)):
                with contextlib.suppress(ConnectionError):
                    reply = await send(ben, junk, finish=True)
                    assert not reply or 400 <= parsed(reply).status < 500
        for junk in (
            b"POST " + b"/" * 5000 + b" HTTP/1.1\r\n\r\n",
            b"POST / HTTP/1.1\r\nx: " + b"a" * 5000 + b"\r\n\r\n",
            b"POST / HTTP/1.1\r\n" + b"".join(b"x%d: a\r\n" % i for i in range(100)) + b"\r\n",
            b"POST / HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n" + bytes(5000),
            b"CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n" + bytes(5000),
            data + data,
        ):
            with contextlib.suppress(ConnectionError):
                await send(ben, junk, finish=True)
        assert await ask(ben) == (200, b"noitseuq")
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


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
        async with listening() as (_, ben):
            await c.post(ADA, ben, b"", timeout=5)
        with pytest.raises(PeerUnreachable):
            await c.post(ADA, ben, b"", timeout=5)
        again = HttpServer(BEN, lambda sender, body: b"again", wall_clock=clock)
        await again.start("127.0.0.1", ben.port)
        assert await c.post(ADA, ben, b"", timeout=5) == b"again"
        await again.close()


# What a client believes


async def test_only_the_peer_asked_can_answer():
    async with listening() as (_, ben), client() as c:
        assert await c.post(ADA, ben, b"ab", timeout=5) == b"ba"
        with pytest.raises(PeerUnreachable, match="verifies"):
            await c.post(ADA, ben._replace(peer_id=EVE.peer_id), b"ab", timeout=5)
    async with faking(lambda data: answer_of(data, key=EVE)) as fake, client() as c:
        assert await c.post(ADA, fake._replace(peer_id=EVE.peer_id), b"ab", timeout=5) == b"answer"
        with pytest.raises(PeerUnreachable, match="verifies"):
            await c.post(ADA, fake, b"ab", timeout=5)


async def test_an_answer_moved_to_another_question_counts_as_none():
    answers = []

    def first_answer_always(data):
        answers.append(answer_of(data))
        return answers[0]

    async with faking(first_answer_always) as fake, client() as c:
        assert await c.post(ADA, fake, b"ab", timeout=5) == b"answer"
        with pytest.raises(PeerUnreachable, match="verifies"):
            await c.post(ADA, fake, b"ab", timeout=5)  # the same words, asked again
    async with faking(answer_of) as fake, client() as c:
        for _ in range(2):
            assert await c.post(ADA, fake, b"ab", timeout=5) == b"answer"


@pytest.mark.parametrize(
    "respond",
    [
        lambda data: written(400, {"content-length": "7", "content-type": "text/plain"}, b"refused"),
        lambda data: written(200, {"content-length": "6", "content-type": CONTENT_TYPE}, b"answer"),
        lambda data: answer_of(data, body=b"answer")[:-1] + b"s",
        lambda data: answer_of(data, status=403).replace(b" 403 ", b" 401 "),
        lambda data: answer_of(data, status=500, body=b"failed", content_type="text/plain"),
        lambda data: answer_of(data, status=503, body=b"busy", content_type="text/plain"),
        lambda data: answer_of(data, status=204),
        lambda data: answer_of(data, status=302, location="/"),
        lambda data: answer_of(data, **{"content-encoding": "gzip"}),
        lambda data: answer_of(data, **{"content-length": str(2 << 20)}),
        lambda data: answer_of(data, **{"transfer-encoding": "chunked"}),
        lambda data: answer_of(data).replace(b"content-type", b"content-type: x\r\ncontent-type"),
        lambda data: answer_of(data).replace(b"\r\n\r\n", b"\r\nx: " + b"a" * 5000 + b"\r\n\r\n"),
        lambda data: b"",
        lambda data: b"\x00" * 100,
        lambda data: b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort",
    ],
)
async def test_whatever_is_no_signed_answer_counts_as_unreachable(respond):
    async with faking(respond) as fake, client() as c:
        with pytest.raises(PeerUnreachable):
            await c.post(ADA, fake, b"ab", timeout=5)
    async with faking(answer_of) as fake, client() as c:
        assert await c.post(ADA, fake, b"ab", timeout=5) == b"answer"


async def test_an_answer_longer_than_accepted_counts_as_none():
    async with faking(answer_of) as fake:
        async with client(max_body_bytes=6) as c:
            assert await c.post(ADA, fake, b"ab", timeout=5) == b"answer"
        async with client(max_body_bytes=5) as c:
            with pytest.raises(PeerUnreachable, match="body of 6 bytes; 5 are accepted"):
                await c.post(ADA, fake, b"ab", timeout=5)


async def test_an_endless_answer_is_cut_off():
    async def endless(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"1000\r\n" + bytes(0x1000) + b"\r\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    place = Place(BEN.peer_id, "127.0.0.1", server.sockets[0].getsockname()[1])
    async with client() as c:
        with pytest.raises(PeerUnreachable, match="known length"):
            await c.post(ADA, place, b"ab", timeout=30)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status):
    async with listening() as (server, ben), client() as c:
        location = {"location": f"http://127.0.0.1:{ben.port}{ROUTE}", "content-length": "0"}
        async with faking(lambda data: written(status, location)) as fake:
            with pytest.raises(PeerUnreachable):
                await c.post(ADA, fake, b"ab", timeout=5)
        assert server.traffic.messages_sent == 0
        assert await c.post(ADA, ben, b"ab", timeout=5) == b"ba"


async def test_a_signed_refusal_is_told_with_its_word():
    def handler(sender, body):
        raise RosterMismatch("x")

    async with listening(handler) as (_, ben), client() as c:
        with pytest.raises(Refused, match="roster_mismatch") as caught:
            await c.post(ADA, ben, b"ab", timeout=5)
        assert (caught.value.word, caught.value.status) == ("roster_mismatch", 409)


@pytest.mark.parametrize("body", [b"", b"\xff\n", b"two words", b"x" * 1000])
async def test_a_signed_refusal_in_other_words_is_a_refusal_all_the_same(body):
    async with (
        faking(lambda data: answer_of(data, status=400, body=body, content_type="text/plain")) as fake,
        client() as c,
    ):
        with pytest.raises(Refused, match="refused: unknown"):
            await c.post(ADA, fake, b"ab", timeout=5)


@pytest.mark.parametrize("off", [-6, -1, 1, 6])
async def test_a_clock_a_little_off_works(off):
    async with listening() as (_, ben), HttpClient(wall_clock=lambda: NOW + off) as c:
        assert await c.post(ADA, ben, b"ab", timeout=5) == b"ba"


@pytest.mark.parametrize("off", [-600, 600])
async def test_a_clock_far_off_is_told_with_both_times_and_the_allowance(off):
    async with listening() as (_, ben), HttpClient(wall_clock=lambda: NOW + off) as c:
        with pytest.raises(ClockSkew) as caught:
            await c.post(ADA, ben, b"ab", timeout=5)
        assert (caught.value.theirs, caught.value.ours, caught.value.allowed_seconds) == (NOW, NOW + off, 30)
        for part in (str(NOW), str(NOW + off), "30 s"):
            assert part in str(caught.value)


async def test_a_peer_that_never_answers_is_late():
    over = asyncio.Event()

    async def never(data):
        await over.wait()
        return b""

    async with faking(never) as fake, client(max_connections=1) as c:
        with pytest.raises(DeadlineExceeded, match=r"0\.05 s"):
            await c.post(ADA, fake, b"ab", timeout=0.05)
        waiting = asyncio.create_task(c.post(ADA, fake, b"ab", timeout=30))
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
            await c.post(ADA, place, b"ab", timeout=5)


async def test_a_post_is_sent_once_also_when_the_connection_drops():
    seen = []
    async with faking(lambda data: seen.append(data) or b"") as fake, client() as c:
        with pytest.raises(PeerUnreachable):
            await c.post(ADA, fake, b"ab", timeout=5)
        assert len(seen) == 1


async def test_asking_again_is_another_request():
    seen = []
    async with faking(lambda data: seen.append(data) or answer_of(data)) as fake, client() as c:
        for _ in range(2):
            await c.post(ADA, fake, b"ab", timeout=5)
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
        assert await asyncio.gather(*(c.post(ADA, fake, b"ab", timeout=30) for _ in range(12))) == [b"answer"] * 12
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
            assert await c.post(ADA, place, b"", timeout=5) == b"answer"
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
            assert await c.post(ADA, fake, b"ab", timeout=5) == b"answer"
    assert all(b"cookie" not in data.lower() for data in seen)


def test_a_client_without_connections_is_refused():
    with pytest.raises(ConfigurationError, match="max_connections: 0 given"):
        HttpClient(max_connections=0)


# What each check keeps out: with the one check switched off the same request or answer is accepted


async def refused_and_with_the_check_off(monkeypatch, expected, off, make, **options):
    """The status of ``make``'s request with all checks on, and with one off."""
    seen = []
    for switched_off in (False, True):
        if switched_off:
            off(monkeypatch)
        async with listening(lambda sender, body: seen.append(body) or b"ok", **options) as (_, ben):
            statuses = [parsed(await send(ben, data)).status for data in make(ben)]
            assert statuses[-1] == (200 if switched_off else expected)
            assert len(seen) == (len(statuses) if switched_off else len(statuses) - 1)
            seen.clear()


@pytest.mark.parametrize("off", [-600, 600])
async def test_without_the_allowance_a_clock_far_off_is_believed(monkeypatch, off):
    def endless(patch):
        checked = http.server.verify_request
        patch.setattr(
            http.server, "verify_request", lambda *a, **k: checked(*a, **{**k, "allowed_skew_seconds": math.inf})
        )

    await refused_and_with_the_check_off(monkeypatch, 401, endless, lambda ben: [request(ben, now=NOW + off)[0]])


async def test_without_the_memory_of_nonces_a_replay_is_processed_again(monkeypatch):
    def forgetful(patch):
        patch.setattr(http.server.NonceCache, "accept", lambda *_, **__: None)

    await refused_and_with_the_check_off(monkeypatch, 409, forgetful, lambda ben: [request(ben)[0]] * 2)


async def test_without_the_check_of_encodings_a_compressed_body_is_handed_on(monkeypatch):
    def blind(patch):
        read = http.connection.parse_head

        def without(head, first_line):
            line, fields = read(head, first_line)
            return line, {name: value for name, value in fields.items() if name != "content-encoding"}

        patch.setattr(http.connection, "parse_head", without)

    def compressed(ben):
        return [request(ben, gzip.compress(bytes(1000)), extra=["content-encoding: gzip"])[0]]

    await refused_and_with_the_check_off(monkeypatch, 415, blind, compressed)


def covering_no_body(ben):
    """A well signed request that covers all but the digest, and says something else than its signer did."""
    fields, at = (
        sign_request(
            ADA,
            method="POST",
            authority=f"127.0.0.1:{ben.port}",
            path=ROUTE,
            content_type=CONTENT_TYPE,
            body=b"said",
            recipient=BEN.peer_id,
            now=NOW,
            nonce=os.urandom(16),
        ),
        3,
    )
    listed = [name for i, name in enumerate(signatures.REQUEST_COMPONENTS) if i != at]
    params = (
        fields["signature-input"]
        .removeprefix("sig1=")
        .replace(" ".join(signatures.REQUEST_COMPONENTS), " ".join(listed))
    )
    values = ("POST", f"127.0.0.1:{ben.port}", ROUTE, CONTENT_TYPE, BEN.peer_id.hex())
    signed = base64.b64encode(ADA.sign(signatures.signature_base(listed, values, params))).decode()
    changes = {"signature-input": f"sig1={params}", "signature": f"sig1=:{signed}:"}
    return [request(ben, b"forged", **changes)[0]]


async def test_with_components_not_compared_a_request_that_covers_no_body_says_what_its_forger_likes(monkeypatch):
    def trusting(patch):
        base = signatures.signature_base
        lenient = signatures._REQUEST_INPUT.pattern.replace(re.escape(signatures._REQUEST_LIST), r"\([^)]*\)")

        def told(components, values, params):
            listed = params[1 : params.index(")")].split()
            by_name = dict(zip(components, values, strict=True))
            return base(listed, [by_name[name] for name in listed], params)

        patch.setattr(signatures, "_REQUEST_INPUT", re.compile(lenient))
        patch.setattr(signatures, "signature_base", told)

    await refused_and_with_the_check_off(monkeypatch, 401, trusting, covering_no_body)


async def test_with_redirects_followed_a_question_goes_where_nobody_sent_it(monkeypatch):
    """The control of ``test_a_redirect_is_not_followed``."""
    post = http.posting.post

    async def following(host, port, path, fields, body, **options):
        answer = await post(host, port, path, fields, body, **options)
        if answer.status == 307:
            there = urlsplit(answer.fields["location"])
            answer = await post(there.hostname, there.port, there.path, fields, body, **options)
        return answer

    monkeypatch.setattr(http.posting, "post", following)
    async with listening() as (server, ben), client() as c:
        location = {"location": f"http://127.0.0.1:{ben.port}{ROUTE}", "content-length": "0"}
        async with faking(lambda data: written(307, location)) as fake:
            assert await c.post(ADA, fake, b"ab", timeout=5) == b"ba"
        assert server.traffic.messages_sent == 1


async def test_with_answers_not_bound_to_their_question_one_can_be_moved(monkeypatch):
    """The control of ``test_an_answer_moved_to_another_question_counts_as_none``."""
    answers, questions = [], []

    def first_answer_always(data):
        answers.append(answer_of(data))
        questions.append(re.search(rb"\r\nsignature: ([^\r]+)", data)[1].decode())
        return answers[0]

    bound = http.client.verify_response
    monkeypatch.setattr(
        http.client, "verify_response", lambda *a, **k: bound(*a, **{**k, "request_signature": questions[0]})
    )
    async with faking(first_answer_always) as fake, client() as c:
        for _ in range(2):
            assert await c.post(ADA, fake, b"ab", timeout=5) == b"answer"
        assert len(set(questions)) == 2
