"""Where one peer receives.

A request passes these gates in order, each before the work of the next: number of connections, lengths and number of
fields (aiohttp's parser), repeated fields, rate of all requests, method, path, content type, no encodings, declared
length, memory for bodies, time to arrive, signature, clock, nonce, rate of the sender. What is refused gets a status
and a word, signed like everything else (but for bytes that are no HTTP, which the parser answers):

    400 malformed              a field stands twice, or the handler could not decode the body
    401 authentication_failed  the signature does not verify, whatever the cause (the log has it)
    401 clock_skew S           it does, but the clocks differ by more than S seconds
    404 path, 405 method, 408 slow, 411 length, 413 size, 415 type
    409 replayed               the nonce was seen before
    409 roster_mismatch, 422 refused  by the handler
    429 too_many S             there is room again in S seconds; Retry-After says the same
    500 failed                 the handler broke; the log has it
    503 busy                   no room; the request was not looked at

A sender is charged for what it signed itself, once: a forger or a replayer can't use up another's rate.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import aiohttp
from aiohttp import web

from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.crypto.nonces import DEFAULT_CAPACITY, NonceCache, NonceCacheFull
from p2p_labeldp.crypto.signatures import (
    ALLOWED_SKEW_SECONDS,
    ClockSkew,
    claimed_sender,
    sign_refusal,
    sign_response,
    verify_request,
)
from p2p_labeldp.errors import (
    AuthenticationFailed,
    ConfigurationError,
    MalformedMessage,
    ProtocolError,
    ReplayedMessage,
    RosterMismatch,
)
from p2p_labeldp.network.http.profile import (
    CONTENT_TYPE,
    MAX_BODY_BYTES,
    MAX_FIELD_BYTES,
    MAX_FIELDS,
    REFUSAL_TYPE,
    ROUTE,
    TOO_MANY,
    Unfit,
    plain_length,
    single_fields,
)
from p2p_labeldp.network.http.rates import Limiter, Rate
from p2p_labeldp.network.transport import Handler, Traffic

MAX_BUFFERED_BYTES = 8 * MAX_BODY_BYTES  # of all bodies a server is reading at once
MAX_SERVER_CONNECTIONS = 512
READ_TIMEOUT_SECONDS = 10.0  # a mate that needs longer is late for its round anyway
RECEIVE_BUFFER_BYTES = 1 << 16  # of a connection; also the most that is read at once of a body nobody has accepted yet
HANG_UPS_A_COLLECTION = 64  # connections that are hung up on leave cycles of objects, each with what it had received
FLUSHED_BYTES = 1 << 14  # of an answer; as much goes into the kernel's buffers whether or not anybody reads it
LINGER_SECONDS = 0.5  # a refusal sent before the body came would be lost if the connection were reset
SHUTDOWN_SECONDS = 1.0
BACKLOG = 1024  # a learner's members all come at the deadline

# Rounds of 3 to 1,000 peers at their default pace need a burst of 3 of any sender at 10 a second, and of 950 of all at
# 200 a second where one peer is everybody's first contact. Sustained, the nonces of the latter fit their cache.
SENDER_RATE = Rate(per_second=10.0, burst=60.0)
TOTAL_RATE = Rate(per_second=200.0, burst=5000.0)

_log = logging.getLogger(__name__)


class HttpServer:
    """Where one peer receives. Cheap: thousands live in one process.

    Args:
        key: The peer's, which signs every answer.
        handler: Gets id of the sender and body of each request that verified; its reply is sent as it is. A
            ``ProtocolError`` becomes a 4xx, any other exception a 500; neither ends the server.
        wall_clock: Unix seconds.
        allowed_skew_seconds: How far a sender's clock may be from ours.
        max_body_bytes: Longest body accepted.
        max_connections: Most connections at once; a further one takes the place of the one that has been sending its
            request for longest, and is closed at once if all are waiting for us. A learner needs more than a peer.
        read_timeout_seconds: Time for a request's head, again for its body, and for the sender to read a long answer.
        nonce_capacity: Most nonces remembered (``NonceCache``).
        sender_rate: Requests of one sender.
        total_rate: Requests of all, those that don't verify included. A learner needs more than a peer.
        monotonic: Seconds that don't run backwards, for the rates.
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
        sender_rate: Rate = SENDER_RATE,
        total_rate: Rate = TOTAL_RATE,
        monotonic: Callable[[], float] = time.monotonic,
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
        self._monotonic = monotonic
        self._senders, self._everybody = Limiter(sender_rate), Limiter(total_rate, capacity=1)
        self._buffered = 0
        self._arriving: dict[web.RequestHandler, None] = {}  # connections whose request is not yet whole, oldest first
        self._hung_up = 0
        self._web: web.Server | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Listens on ``host`` and ``port``, by TLS if ``tls`` is given; returns the port, the system's choice for 0.

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
                self._connection,
                host,
                port,
                backlog=BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else self._read_timeout,
            )
        except OSError as error:
            raise ConfigurationError(f"{host}:{port} can't be listened on: {error}", field="address") from error
        for listening in self._listener.sockets:  # connections inherit it
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
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
        web_server = self._web
        if web_server is None:
            return _HangUp()
        if len(web_server.connections) >= self._max_connections and not self._make_room():
            return _HangUp()
        if len(self._arriving) >= 2 * self._max_connections:  # who left before it had said anything stays in it
            self._arriving = {one: None for one in self._arriving if one.transport is not None}
        connection = web_server()
        self._arriving[connection] = None
        return connection

    def _make_room(self) -> bool:
        """Hangs up on whoever has been sending its request for longest. Who means it needs no time to: so the slow can
        hold any number of connections, and keep nobody out."""
        for connection in self._arriving:
            if connection.transport is not None:
                del self._arriving[connection]
                connection.force_close()
                self._hung_up += 1
                if self._hung_up % HANG_UPS_A_COLLECTION == 0:
                    gc.collect()
                return True
        return False

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        try:
            return await self._judge(request)
        finally:
            self._arriving.pop(request.protocol, None)

    async def _judge(self, request: web.BaseRequest) -> web.Response:
        fields: Mapping[str, str] = {}
        try:
            fields = single_fields(request.headers.items())
            self._charge(self._everybody, b"")
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
            self._charge(self._senders, sender.public)
            self.traffic.messages_received += 1
            self.traffic.bytes_received += len(body)
            reply = self._handler(sender.peer_id, body)
            if len(reply) > MAX_BODY_BYTES:
                raise ValueError(f"reply of {len(reply)} bytes; at most {MAX_BODY_BYTES} can be sent")
        except Unfit as refusal:
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

    def _charge(self, limiter: Limiter, key: bytes) -> None:
        wait = limiter.charge(key, self._monotonic())
        if wait:
            raise Unfit(TOO_MANY, f"too_many {math.ceil(wait)}")

    async def _receive(self, request: web.BaseRequest, fields: Mapping[str, str]) -> bytes:
        """The body, once everything that can be known before reading it is as it should be."""
        if request.method != "POST":
            raise Unfit(405, "method")
        if request.raw_path != ROUTE:  # with its query, if there is one: none is covered
            raise Unfit(404, "path")
        if fields.get("content-type") != CONTENT_TYPE or "content-encoding" in fields:
            raise Unfit(415, "type")
        length = plain_length(fields)
        if length is None:
            raise Unfit(411, "length")
        if length > self._max_body:
            raise Unfit(413, "size")
        content = request.content
        if content.is_eof():  # most requests arrive in one piece
            return content.read_nowait()
        if self._buffered + length > MAX_BUFFERED_BYTES:
            raise Unfit(503, "busy")
        self._buffered += length
        try:
            async with asyncio.timeout(self._read_timeout):
                return await content.readexactly(length)
        except TimeoutError as error:
            raise Unfit(408, "slow") from error
        except (OSError, aiohttp.ClientError, asyncio.IncompleteReadError, RuntimeError) as error:
            # The sender is gone; of a connection that we have closed aiohttp says so by a RuntimeError.
            raise Unfit(400, "malformed") from error
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
        if status == TOO_MANY:
            signed["retry-after"] = word.rpartition(" ")[2]  # for those who know HTTP and not us
        return self._send(status, body, signed)

    def _send(self, status: int, body: bytes, signed: dict[str, str]) -> web.Response:
        self.traffic.messages_sent += 1
        self.traffic.bytes_sent += len(body)
        response = web.Response(status=status, body=body, headers=signed)
        response.force_close()
        return response


class _HangUp(asyncio.Protocol):
    """For the connections beyond the bound."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()  # another loop's transports only look like it


class _Quiet(logging.LoggerAdapter[logging.Logger]):
    """aiohttp's parser logs whatever a stranger sends as an error of ours, with a traceback."""

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.debug(msg, *args, **kwargs)


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
