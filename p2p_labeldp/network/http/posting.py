"""One POST and its answer, on a connection of their own.

The client side of HTTP/1.1 (RFC 9112) as far as peers need it: one request, one answer of known length, nothing else. A
general client keeps sessions, pools, cookies and redirects, which this exchange must not have, and takes twice the CPU
time for its part of it. What is read is one strict grammar (``head``): any other spelling, an interim answer, a
transfer coding, a length that is missing, wrong or too large is no answer.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from p2p_labeldp.errors import RemoteProtocolError
from p2p_labeldp.network.http.head import Malformed, parse_head, take_head
from p2p_labeldp.network.http.profile import plain_length

_IP_BIND_ADDRESS_NO_PORT = 24  # Linux; the socket module knows the name from Python 3.12 on

_STATUS = re.compile(rb"HTTP/1\.1 ([2-5][0-9]{2})(?: [ -~]*)?")


class Unreadable(RemoteProtocolError):
    """What came back is no answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it came; nothing in it is verified."""

    status: int
    fields: Mapping[str, str]  # by lower case name
    body: bytes


async def post(
    host: str,
    port: int,
    path: str,
    fields: Mapping[str, str],
    body: bytes,
    *,
    longest: int,
    local_host: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> Answer:
    """Sends one POST and reads its answer; the caller bounds the time.

    Args:
        host: Name or address.
        port: Of the server.
        path: Printable ASCII without spaces.
        fields: Of the head, printable ASCII, ``host`` among them; length and closing are added here.
        body: Of the request.
        longest: Most bytes of an answer's body.
        local_host: Address to connect from, if not the system's choice.
        tls: Calls by TLS, if given.

    Raises:
        Unreadable: No answer, or none that is as it has to be.
        OSError: No connection.
    """
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    head = "\r\n".join([*lines, f"content-length: {len(body)}", "connection: close", "", ""]).encode("ascii")
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Answer] = loop.create_future()
    reading = partial(_Reading, head + body, done, longest)
    try:
        if local_host is None:
            transport, _ = await loop.create_connection(reading, host, port, ssl=tls)
        else:
            bound = await _connected(host, port, local_host)
            called = None if tls is None else host
            transport, _ = await loop.create_connection(reading, sock=bound, ssl=tls, server_hostname=called)
        try:
            return await done
        finally:
            transport.abort()  # everything was read, or nobody waits for it any more
    finally:
        if not done.cancel() and not done.cancelled():  # who gave up while it was connecting asks for no answer
            done.exception()  # looked at, so that the loop does not report it


class _Reading(asyncio.Protocol):
    """Writes a request as soon as it is connected, and reads its answer."""

    def __init__(self, request: bytes, done: asyncio.Future[Answer], longest: int) -> None:
        self._request = request
        self._done = done
        self._longest = longest
        self._head: tuple[int, dict[str, str]] | None = None
        self._data = bytearray()
        self._length = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)  # another loop's transports only look like it

    def data_received(self, data: bytes) -> None:
        if self._done.done():
            return
        self._data += data
        try:
            if self._head is None and not self._read_head():
                return
            if len(self._data) > self._length:
                raise Unreadable(f"more than the {self._length} bytes it declared")
        except Unreadable as exc:
            self._done.set_exception(exc)
            return
        if len(self._data) == self._length:
            assert self._head is not None
            self._done.set_result(Answer(*self._head, bytes(self._data)))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(Unreadable(f"the connection ended early: {exc or 'closed'}"))

    def _read_head(self) -> bool:
        """Takes the head off what was read, if it is whole."""
        try:
            head = take_head(self._data)
            if head is None:
                return False
            status, fields = parse_head(head, _STATUS)
        except Malformed as exc:
            raise Unreadable(str(exc)) from exc
        self._head = int(status[1]), fields
        length = plain_length(fields)
        if "content-encoding" in fields or length is None:
            raise Unreadable(f"status {self._head[0]} without a plain body of known length")
        if length > self._longest:
            raise Unreadable(f"body of {length} bytes; {self._longest} are accepted")
        self._length = length
        return True


async def _connected(host: str, port: int, local_host: str) -> socket.socket:
    """A socket bound to an address that gets its port when it connects: ports are then one supply for each destination,
    not one for all."""
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, address = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        if hasattr(socket, "SO_BINDTODEVICE"):  # Linux
            made.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        made.bind((local_host, 0))
        await loop.sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made
