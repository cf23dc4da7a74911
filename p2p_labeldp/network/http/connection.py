"""One connection to a server: one request, one answer, and nothing after it.

The server side of HTTP/1.1 (RFC 9112) as far as peers need it. A general server keeps connections for further requests,
streams, compresses, routes, and starts a task for each; an exchange with all that takes a fifth more CPU time, and what
is not there need not be bounded.

A connection reads a head, then a body of declared length, each within a time of its own. Once the request is whole, or
refused, it is *answered*, and what still comes is thrown away. Who was refused before its body came may still be
sending it: a connection closed at once would be reset and the refusal be lost, so that one lingers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from typing import Protocol, cast

from p2p_labeldp.network.http.head import Malformed, parse_head, take_head
from p2p_labeldp.network.http.profile import Unfit

FLUSHED_BYTES = 1 << 14  # of an answer; as much goes into the kernel's buffers whether or not anybody reads it
LINGER_SECONDS = 0.5

_START = re.compile(rb"[A-Z]{1,16}(?: |\Z)")
_REQUEST = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,1000}) HTTP/1\.1")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came; nothing in it is verified."""

    method: str
    target: str  # path, with its query if there is one
    fields: Mapping[str, str]  # by lower case name


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered."""

    status: int
    fields: Mapping[str, str]
    body: bytes


class Judge(Protocol):
    """Whoever serves, as its connections see it."""

    read_timeout: float

    def welcome(self, connection: Connection) -> bool:
        """Whether there is room for a new connection; it is told of each."""
        ...

    def gone(self, connection: Connection) -> None:
        """A welcomed connection has ended."""
        ...

    def charge(self) -> None:
        """Charges whatever came to the rate of all.

        Raises:
            Unfit: It is used up.
        """
        ...

    def length_of(self, request: Request) -> int:
        """The length of the body, once everything that can be known before reading it is as it should be.

        Raises:
            Unfit: It is not.
        """
        ...

    def hold(self, length: int) -> None:
        """A body of this length arrives in pieces.

        Raises:
            Unfit: There is no memory for it.
        """
        ...

    def release(self, length: int) -> None:
        """It has arrived, or never will."""
        ...

    def whole(self, connection: Connection) -> None:
        """Its request has arrived."""
        ...

    def answer(self, request: Request, body: bytes, remote: object) -> Response:
        """The answer to a whole request; ``remote`` is where it came from, for the log."""
        ...

    def refusal(self, request: Request | None, unfit: Unfit) -> Response:
        """The answer to a request that is not what it should be, if one could be read at all."""
        ...


class Connection(asyncio.Protocol):
    """Reads one request, and writes its answer.

    Args:
        judge: Whose connection it is.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._data = bytearray()
        self._seen = 0
        self._request: Request | None = None
        self._length = 0
        self._held = 0
        self._answered = False

    @property
    def answered(self) -> bool:
        """Whether all that is left is to bring the answer to whoever asked."""
        return self._answered

    def hang_up(self) -> None:
        """Ends it at once."""
        self._answered = True
        self._settle()
        if self._transport is not None:
            self._transport.abort()

    # -- what the loop tells ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # another loop's transports only look like it
        if self._judge.welcome(self):
            self._within(self._judge.read_timeout)
        else:
            self.hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._settle()
        self._data = bytearray()
        self._judge.gone(self)

    def data_received(self, data: bytes) -> None:
        if self._answered:
            return
        self._data += data
        try:
            if self._request is None and not self._read_head():
                return
            if len(self._data) < self._length:
                self._wait_for_body()
                return
        except Unfit as unfit:
            self._refuse(unfit)
            return
        assert self._request is not None
        assert self._transport is not None
        self._judge.whole(self)
        body = bytes(self._data[: self._length])
        self._reply(self._judge.answer(self._request, body, self._transport.get_extra_info("peername")))
        self._transport.close()  # when the answer is written

    # -- what becomes of it ----------------------------------------------------------------------------------------

    def _read_head(self) -> bool:
        """Takes the head off what was read, if it is whole."""
        try:
            head = take_head(self._data, seen=self._seen)
            if head is None:
                if not _START.match(self._data):  # TLS, say, whose sender would wait for an answer
                    raise Malformed("no HTTP")
                self._seen = len(self._data)
                return False
            line, fields = parse_head(head, _REQUEST)
        except Malformed as exc:
            self._judge.charge()
            raise Unfit(400, "malformed") from exc
        self._request = Request(line[1].decode("ascii"), line[2].decode("ascii"), fields)
        self._judge.charge()
        self._length = self._judge.length_of(self._request)
        return True

    def _wait_for_body(self) -> None:
        if not self._held:
            self._judge.hold(self._length)
            self._held = self._length
            self._within(self._judge.read_timeout)

    def _within(self, seconds: float) -> None:
        """The next step has so much time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._late)

    def _late(self) -> None:
        self._timer = None
        if self._answered or self._request is None:
            self.hang_up()
        else:
            self._refuse(Unfit(408, "slow"))

    def _settle(self) -> None:
        """Nothing more is waited for."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._held:
            self._judge.release(self._held)
            self._held = 0

    def _refuse(self, unfit: Unfit) -> None:
        """Refuses a request that has not come whole."""
        self._reply(self._judge.refusal(self._request, unfit))
        assert self._transport is not None
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._within(LINGER_SECONDS)

    def _reply(self, response: Response) -> None:
        assert self._transport is not None
        self._answered = True
        self._settle()
        self._data = bytearray()
        lines = [f"HTTP/1.1 {response.status} ", *(f"{name}: {value}" for name, value in response.fields.items())]
        head = "\r\n".join([*lines, f"content-length: {len(response.body)}", "connection: close", "", ""])
        self._transport.write(head.encode("ascii") + response.body)
        if len(response.body) > FLUSHED_BYTES:  # else whoever does not read would hold it
            self._within(self._judge.read_timeout)


@lru_cache(maxsize=1)
def http_date(seconds: int) -> str:
    """The ``Date`` field (RFC 9110, section 6.6.1) of a moment, Unix seconds."""
    return formatdate(seconds, usegmt=True)
