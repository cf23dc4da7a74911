"""How a message travels: one signed POST and its signed answer, on a connection of their own.

The only door to aiohttp for peers, which serves; asking is ``posting``'s part. ``HttpServer`` tells a handler who sent
what, ``HttpClient`` brings back what the peer asked has answered to exactly this question; the signatures are those of
``crypto.signatures``. Neither side hands on a byte that does not verify.

A request passes these gates in order, each before the work of the next: number of connections, lengths and number of
fields (aiohttp's parser), repeated fields, method, path, content type, no encodings, declared length, memory for
bodies, time to arrive, signature, clock, nonce. What is refused gets a status and a word, signed like everything else
(but for bytes that are no HTTP, which the parser answers):

    400 malformed              a field stands twice, or the handler could not decode the body
    401 authentication_failed  the signature does not verify, whatever the cause (the log has it)
    401 clock_skew S           it does, but the clocks differ by more than S seconds
    404 path, 405 method, 408 slow, 411 length, 413 size, 415 type
    409 replayed               the nonce was seen before
    409 roster_mismatch, 422 refused  by the handler
    500 failed                 the handler broke; the log has it
    503 busy                   no room; the request was not looked at

An answer that does not verify counts as no answer. The client sends every POST once, on a connection of its own.
Whoever tries again signs again, with a fresh nonce.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, cast

import aiohttp
from aiohttp import web

from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.crypto.nonces import DEFAULT_CAPACITY, NonceCache, NonceCacheFull
from p2p_labeldp.crypto.signatures import (
    ALLOWED_SKEW_SECONDS,
    NONCE_BYTES,
    ClockSkew,
    claimed_sender,
    sign_refusal,
    sign_request,
    sign_response,
    verify_request,
    verify_response,
)
from p2p_labeldp.errors import (
    AuthenticationFailed,
    ConfigurationError,
    DeadlineExceeded,
    LocalProtocolError,
    MalformedMessage,
    PeerUnreachable,
    ProtocolError,
    RemoteProtocolError,
    ReplayedMessage,
    RosterMismatch,
)
from p2p_labeldp.network import posting
from p2p_labeldp.network.posting import MAX_FIELD_BYTES, MAX_FIELDS, Unreadable
from p2p_labeldp.network.transport import Destination, Handler, Traffic, authority, format_address

ROUTE = "/p2p/v1"
CONTENT_TYPE = "application/vnd.p2p-labeldp"
REFUSAL_TYPE = "text/plain"

MAX_BODY_BYTES = 1 << 20
MAX_BUFFERED_BYTES = 8 * MAX_BODY_BYTES  # of all bodies a server is reading at once
MAX_SERVER_CONNECTIONS = 512
MAX_CLIENT_CONNECTIONS = 64  # sockets of a process that is talking to thousands
READ_TIMEOUT_SECONDS = 10.0  # a mate that needs longer is late for its round anyway
FLUSHED_BYTES = 1 << 14  # of an answer; as much goes into the kernel's buffers whether or not anybody reads it
LINGER_SECONDS = 0.5  # a refusal sent before the body came would be lost if the connection were reset
SHUTDOWN_SECONDS = 1.0

BACKLOG = 1024  # a learner's members all come at the deadline

_LENGTH = re.compile("[0-9]{1,10}")
_WORD = re.compile("[a-z_]{1,40}( [0-9.]{1,20})?")

_log = logging.getLogger(__name__)


class Refused(RemoteProtocolError):
    """The peer asked answered, signed, that it won't.

    Args:
        word: Which of the refusals above.
        status: The HTTP status that came with it.
    """

    def __init__(self, word: str, *, status: int) -> None:
        super().__init__(f"refused: {word}")
        self.word = word
        self.status = status


class HttpServer:
    """Where one peer receives. Cheap: thousands live in one process.

    Args:
        key: The peer's, which signs every answer.
        handler: Gets id of the sender and body of each request that verified; its reply is sent as it is. A
            ``ProtocolError`` becomes a 4xx, any other exception a 500; neither ends the server.
        wall_clock: Unix seconds.
        allowed_skew_seconds: How far a sender's clock may be from ours.
        max_body_bytes: Longest body accepted.
        max_connections: Most connections at once; further ones are closed at once. A learner needs more than a peer.
        read_timeout_seconds: Time for a request's head, again for its body, and for the sender to read a long answer.
        nonce_capacity: Most nonces remembered (``NonceCache``).
    """

    def __init__(
        self,
        key: SigningKey,
        handler: Handler,
        *,
        wall_clock: Callable[[], float] = time.time,
        allowed_skew_seconds: float = ALLOWED_SKEW_SECONDS,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_connections: int = MAX_SERVER_CONNECTIONS,
        read_timeout_seconds: float = READ_TIMEOUT_SECONDS,
        nonce_capacity: int = DEFAULT_CAPACITY,
    ) -> None:
        self.traffic = Traffic()
        self._key = key
        self._handler = handler
        self._clock = wall_clock
        self._allowed_skew = allowed_skew_seconds
        self._max_body = max_body_bytes
        self._max_connections = max_connections
        self._read_timeout = read_timeout_seconds
        self._nonces = NonceCache(nonce_capacity, allowed_skew_seconds=allowed_skew_seconds)
        self._buffered = 0
        self._web: web.Server | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listens on ``host`` and ``port``; returns the port, which the system chooses if 0 is given.

        Raises:
            ConfigurationError: The address can't be listened on.
        """
        assert self._listener is None
        self._web = web.Server(
            self._answer,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=self._read_timeout,  # also the time for a first head
            lingering_time=LINGER_SECONDS,
            logger=_Quiet(_log, {}),
            tcp_keepalive=False,  # a connection lives for one answer
            max_line_size=MAX_FIELD_BYTES,
            max_field_size=MAX_FIELD_BYTES,
            max_headers=MAX_FIELDS,
        )
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connection, host, port, backlog=BACKLOG
            )
        except OSError as error:
            raise ConfigurationError(f"{host}:{port} can't be listened on: {error}", field="address") from error
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stops listening, lets answers under way finish for ``SHUTDOWN_SECONDS``, and closes every connection."""
        if self._listener is not None and self._web is not None:
            self._listener.close()
            self._web.pre_shutdown()  # idle connections have nothing to finish
            await self._web.shutdown(SHUTDOWN_SECONDS)
            await self._listener.wait_closed()
            self._listener = self._web = None

    def _connection(self) -> asyncio.Protocol:
        if self._web is None or len(self._web.connections) >= self._max_connections:
            return _HangUp()
        return self._web()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        fields: Mapping[str, str] = {}
        try:
            fields = _single_fields(request.headers.items())
            body = await self._receive(request, fields)
            now = self._clock()
            sender = verify_request(
                fields,
                method=request.method,
                authority=fields.get("host", ""),
                path=request.raw_path,
                body=body,
                recipient=self._key.peer_id,
                now=now,
                allowed_skew_seconds=self._allowed_skew,
            )
            self._nonces.accept(sender.public, sender.nonce, now=now)
            self.traffic.messages_received += 1
            self.traffic.bytes_received += len(body)
            reply = self._handler(sender.peer_id, body)
            if len(reply) > MAX_BODY_BYTES:
                raise ValueError(f"reply of {len(reply)} bytes; at most {MAX_BODY_BYTES} can be sent")
        except _Refusal as refusal:
            return self._refuse(fields, refusal.status, refusal.word)
        except ProtocolError as error:
            _log.info("refused a request of %s: %s", request.remote, getattr(error, "detail", None) or error)
            return self._refuse(fields, *_refusal_for(error))
        except Exception:
            _log.exception("a request of %s broke its handler", request.remote)
            return self._refuse(fields, 500, "failed")
        signed = sign_response(
            self._key,
            status=200,
            content_type=CONTENT_TYPE,
            body=reply,
            recipient=sender.peer_id,
            request_signature=sender.signature,
            now=self._clock(),
        )
        if len(reply) > FLUSHED_BYTES and request.transport is not None:  # else whoever does not read would hold it
            asyncio.get_running_loop().call_later(self._read_timeout, request.transport.abort)
        return self._send(200, reply, signed)

    async def _receive(self, request: web.BaseRequest, fields: Mapping[str, str]) -> bytes:
        """The body, once everything that can be known before reading it is as it should be."""
        if request.method != "POST":
            raise _Refusal(405, "method")
        if request.raw_path != ROUTE:  # with its query, if there is one: none is covered
            raise _Refusal(404, "path")
        if fields.get("content-type") != CONTENT_TYPE or "content-encoding" in fields:
            raise _Refusal(415, "type")
        declared = fields.get("content-length", "")
        if "transfer-encoding" in fields or not _LENGTH.fullmatch(declared):
            raise _Refusal(411, "length")
        length = int(declared)
        if length > self._max_body:
            raise _Refusal(413, "size")
        content = request.content
        if content.is_eof():  # most requests arrive in one piece
            return content.read_nowait()
        if self._buffered + length > MAX_BUFFERED_BYTES:
            raise _Refusal(503, "busy")
        self._buffered += length
        try:
            async with asyncio.timeout(self._read_timeout):
                return await content.readexactly(length)
        except TimeoutError as error:
            raise _Refusal(408, "slow") from error
        except (OSError, aiohttp.ClientError, asyncio.IncompleteReadError) as error:  # the sender is gone
            raise _Refusal(400, "malformed") from error
        finally:
            self._buffered -= length

    def _refuse(self, fields: Mapping[str, str], status: int, word: str) -> web.Response:
        body, now = word.encode(), self._clock()
        try:
            signed = sign_response(
                self._key,
                status=status,
                content_type=REFUSAL_TYPE,
                body=body,
                recipient=claimed_sender(fields),
                request_signature=fields["signature"],
                now=now,
            )
        except AuthenticationFailed:  # nobody and nothing to bind the answer to
            signed = sign_refusal(self._key, status=status, content_type=REFUSAL_TYPE, body=body, now=now)
        return self._send(status, body, signed)

    def _send(self, status: int, body: bytes, signed: dict[str, str]) -> web.Response:
        self.traffic.messages_sent += 1
        self.traffic.bytes_sent += len(body)
        response = web.Response(status=status, body=body, headers=signed)
        response.force_close()
        return response


class HttpClient:
    """Where the peers of one process send from; an asynchronous context manager.

    Args:
        wall_clock: Unix seconds.
        max_connections: Most connections open at once; more POSTs wait for their turn.
        max_body_bytes: Longest answer accepted.
        local_host: Address to connect from, if not the system's choice.
    """

    def __init__(
        self,
        *,
        wall_clock: Callable[[], float] = time.time,
        max_connections: int = MAX_CLIENT_CONNECTIONS,
        max_body_bytes: int = MAX_BODY_BYTES,
        local_host: str | None = None,
    ) -> None:
        if max_connections < 1:
            raise ConfigurationError(f"{max_connections} given; 1 or more are possible", field="max_connections")
        self.traffic = Traffic()
        self._clock = wall_clock
        self._max_body = max_body_bytes
        self._local_host = local_host
        self._turns = asyncio.Semaphore(max_connections)

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass  # no connection outlives its exchange

    async def post(self, key: SigningKey, to: Destination, body: bytes, *, timeout: float) -> bytes:
        """What ``to`` answers to ``body``.

        Args:
            key: The sender's.
            to: Peer and place. Only that peer's answer counts.
            body: At most ``MAX_BODY_BYTES``.
            timeout: Seconds for all of it, waiting for a turn included.

        Raises:
            DeadlineExceeded: No answer in time.
            PeerUnreachable: No answer, none that verifies, or a signed 5xx.
            ClockSkew: Our clock and the peer's differ too much for it.
            Refused: Any other signed refusal.
            LocalProtocolError: ``body`` is too long.
        """
        if len(body) > MAX_BODY_BYTES:
            raise LocalProtocolError(f"body of {len(body)} bytes; at most {MAX_BODY_BYTES} can be sent")
        try:
            async with asyncio.timeout(timeout), self._turns:
                return await self._exchange(key, to, body)
        except TimeoutError as error:
            raise DeadlineExceeded(f"{format_address(to)} did not answer in {timeout:g} s") from error
        except (Unreadable, OSError, ConfigurationError) as error:
            raise PeerUnreachable(f"{format_address(to)} can't be reached: {error}") from error

    async def _exchange(self, key: SigningKey, to: Destination, body: bytes) -> bytes:
        host = authority(to.host, to.port)
        signed = sign_request(
            key,
            method="POST",
            authority=host,
            path=ROUTE,
            content_type=CONTENT_TYPE,
            body=body,
            recipient=to.peer_id,
            now=self._clock(),
            nonce=os.urandom(NONCE_BYTES),
        )
        question = signed["signature"]
        self.traffic.messages_sent += 1
        self.traffic.bytes_sent += len(body)
        answer = await posting.post(
            to.host, to.port, ROUTE, {"host": host, **signed}, body, longest=self._max_body, local_host=self._local_host
        )
        try:
            verified = verify_response(
                answer.fields,
                status=answer.status,
                body=answer.body,
                sender=to.peer_id,
                recipient=key.peer_id,
                request_signature=question,
            )
        except AuthenticationFailed as error:
            raise PeerUnreachable(f"{format_address(to)} gave no answer that verifies: {error.detail}") from error
        self.traffic.messages_received += 1
        self.traffic.bytes_received += len(answer.body)
        if answer.status == 200 and answer.fields["content-type"] == CONTENT_TYPE:
            return answer.body
        raise self._refusal(to, answer.status, answer.body, theirs=verified.created)

    def _refusal(self, to: Destination, status: int, reply: bytes, *, theirs: int) -> Exception:
        text = reply[:80].decode("ascii", "replace")
        word, _, allowed = text.partition(" ") if _WORD.fullmatch(text) else ("unknown", "", "")
        if not 400 <= status < 500:
            return PeerUnreachable(f"{format_address(to)} answered {status} {word}")
        if word == "clock_skew":
            return ClockSkew(theirs=theirs, ours=self._clock(), allowed_seconds=_seconds(allowed))
        return Refused(word, status=status)


class _Refusal(Exception):
    """A request or an answer that is not what it should be, found before its signature was looked at."""

    def __init__(self, status: int, word: str) -> None:
        super().__init__(word)
        self.status = status
        self.word = word


class _HangUp(asyncio.Protocol):
    """For the connections beyond the bound."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()  # another loop's transports only look like it


class _Quiet(logging.LoggerAdapter[logging.Logger]):
    """aiohttp's parser logs whatever a stranger sends as an error of ours, with a traceback."""

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.debug(msg, *args, **kwargs)


def _single_fields(items: Any) -> dict[str, str]:
    """Fields by lower case name. A field that stands twice is refused: each reader would take another."""
    fields: dict[str, str] = {}
    count = 0
    for name, value in items:
        fields[name.lower()] = value
        count += 1
    if len(fields) != count:
        raise _Refusal(400, "malformed")
    return fields


def _refusal_for(error: ProtocolError) -> tuple[int, str]:
    match error:
        case ClockSkew():
            return 401, f"clock_skew {error.allowed_seconds:g}"
        case AuthenticationFailed():
            return 401, "authentication_failed"
        case NonceCacheFull():
            return 503, "busy"
        case ReplayedMessage():
            return 409, "replayed"
        case RosterMismatch():
            return 409, "roster_mismatch"
        case MalformedMessage():
            return 400, "malformed"
        case _:
            return 422, "refused"


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
