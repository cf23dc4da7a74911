"""Requests and answers as bytes, a server of Ben's, and a stranger's that answers what it likes."""

import asyncio
import contextlib
import itertools
import re
from typing import NamedTuple

from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.crypto.signatures import sign_request, sign_response, verify_response
from p2p_labeldp.network.http import CONTENT_TYPE, ROUTE, HttpClient, HttpServer, Rate

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
async def listening(handler=lambda sender, body: body[::-1], *, port=0, **options):
    """Ben's server and where it is."""
    server = HttpServer(BEN, handler, **{"wall_clock": clock, **options})
    port = await server.start("127.0.0.1", port)
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


def usual(rate=1.0, burst=3.0):
    return Rate(per_second=rate, burst=burst)
