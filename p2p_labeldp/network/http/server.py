"""Where one peer receives.

A request passes these gates in order, each before the work of the next: number of connections, time to arrive, lengths,
number and form of fields, repeated fields, rate of all requests, method, path, content type, no encodings, declared
length, memory for bodies, signature, clock, nonce, rate of the sender. What is refused gets a status and a word, signed
like everything else; ``connection`` reads and writes:

    400 malformed              no HTTP, a field stands twice, or the handler could not decode the body
    401 authentication_failed  the signature does not verify, whatever the cause (the log has it)
    401 clock_skew S           it does, but the clocks differ by more than S seconds
    404 path, 405 method, 408 slow, 411 length, 413 size, 415 type; who is slow with the head is hung up on
    409 replayed               the nonce was seen before
    409 roster_mismatch, 422 refused  by the handler
    429 too_many S             there is room again in S seconds; Retry-After says the same
    500 failed                 the handler broke; the log has it
    503 busy                   no room; the request was not looked at

A sender is charged for what it signed itself, once: a forger or a replayer can't use up another's rate.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

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
from p2p_labeldp.network.http.connection import Connection, Request, Response, http_date
from p2p_labeldp.network.http.profile import (
    CONTENT_TYPE,
    MAX_BODY_BYTES,
    REFUSAL_TYPE,
    ROUTE,
    TOO_MANY,
    Unfit,
    plain_length,
)
from p2p_labeldp.network.http.rates import Limiter, Rate
from p2p_labeldp.network.http.secured import Secured
from p2p_labeldp.network.transport import Handler, Traffic

MAX_BUFFERED_BYTES = 8 * MAX_BODY_BYTES  # of all bodies a server is reading at once
MAX_SERVER_CONNECTIONS = 512
READ_TIMEOUT_SECONDS = 10.0  # a mate that needs longer is late for its round anyway
RECEIVE_BUFFER_BYTES = 1 << 16  # of a connection; also the most that is read at once of a body nobody has accepted yet
SHUTDOWN_SECONDS = 1.0
BACKLOG = 1024  # a learner's members all come at the deadline
ACCEPTED_AT_ONCE = 32  # asyncio's loop tries as often, and complains as often, when no descriptor is left

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
        max_connections: Most connections at once, those by TLS counted from before their handshake; a further one
            takes the place of the one that has been sending its request for longest, or else reading its answer. A
            learner needs more than a peer.
        read_timeout_seconds: Time for a request's head, the handshake of TLS included, again for its body, and for the
            sender to read a long answer.
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
        self.read_timeout = read_timeout_seconds
        self._nonces = NonceCache(nonce_capacity, allowed_skew_seconds=allowed_skew_seconds)
        self._monotonic = monotonic
        self._senders, self._everybody = Limiter(sender_rate), Limiter(total_rate, capacity=1)
        self._buffered = 0
        self._connections: dict[Connection, None] = {}  # the oldest first
        self._arriving: dict[Connection, None] = {}  # those whose request is not yet whole, the oldest first
        self._listener: asyncio.Server | None = None
        self._empty = asyncio.Event()  # set when the last connection ends

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Listens on ``host`` and ``port``, by TLS if ``tls`` is given; returns the port, the system's choice for 0.

        Raises:
            ConfigurationError: The address can't be listened on.
        """
        assert self._listener is None
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                (lambda: Connection(self)) if tls is None else (lambda: Secured(Connection(self), tls)),
                host,
                port,
                backlog=ACCEPTED_AT_ONCE,
            )
            for listening in self._listener.sockets:
                with socket.fromfd(listening.fileno(), listening.family, listening.type) as same:
                    same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)  # connections inherit it
                    same.listen(BACKLOG)
        except OSError as error:
            raise ConfigurationError(f"{host}:{port} can't be listened on: {error}", field="address") from error
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stops listening, lets answers under way arrive for ``SHUTDOWN_SECONDS``, and closes every connection."""
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        listener.close()
        for connection in [one for one in self._connections if not one.answered]:
            connection.hang_up()
        if self._connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), SHUTDOWN_SECONDS)
        for connection in list(self._connections):
            connection.hang_up()
        await listener.wait_closed()

    # -- what connections ask ----------------------------------------------------------------------------------------

    def welcome(self, connection: Connection) -> bool:
        """Whether there is room for it."""
        if self._listener is None or (len(self._connections) >= self._max_connections and not self._make_room()):
            return False
        self._connections[connection] = None
        self._arriving[connection] = None
        self._empty.clear()
        return True

    def _make_room(self) -> bool:
        """Hangs up on whoever has been sending its request for longest, or else taking its answer. Who means it needs
        no time to: so the slow can hold any number of connections, and keep nobody out."""
        slowest = next(iter(self._arriving or self._connections))
        self.gone(slowest)
        slowest.hang_up()
        return True

    def gone(self, connection: Connection) -> None:
        """It has ended."""
        self._connections.pop(connection, None)
        self._arriving.pop(connection, None)
        if not self._connections:
            self._empty.set()

    def whole(self, connection: Connection) -> None:
        """Its request has arrived: it makes no room for another any more."""
        self._arriving.pop(connection, None)

    def charge(self) -> None:
        """Charges whatever came to the rate of all."""
        self._charge(self._everybody, b"")

    def length_of(self, request: Request) -> int:
        """The length of the body, once everything that can be known before reading it is as it should be."""
        fields = request.fields
        if request.method != "POST":
            raise Unfit(405, "method")
        if request.target != ROUTE:  # with its query, if there is one: none is covered
            raise Unfit(404, "path")
        if fields.get("content-type") != CONTENT_TYPE or "content-encoding" in fields:
            raise Unfit(415, "type")
        if "transfer-encoding" in fields and "content-length" in fields:
            raise Unfit(400, "malformed")  # somebody before us may have read another body (RFC 9112, section 6.1)
        length = plain_length(fields)
        if length is None:
            raise Unfit(411, "length")
        if length > self._max_body:
            raise Unfit(413, "size")
        return length

    def hold(self, length: int) -> None:
        """A body of this length arrives in pieces; most arrive in one."""
        if self._buffered + length > MAX_BUFFERED_BYTES:
            raise Unfit(503, "busy")
        self._buffered += length

    def release(self, length: int) -> None:
        """It has arrived, or never will."""
        self._buffered -= length

    def answer(self, request: Request, body: bytes, remote: object) -> Response:
        """The answer to a whole request."""
        fields = request.fields
        try:
            now = self._clock()
            sender = verify_request(
                fields,
                method=request.method,
                authority=fields.get("host", ""),
                path=request.target,
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
        except Unfit as unfit:
            return self.refusal(request, unfit)
        except ProtocolError as error:
            _log.info("refused a request of %s: %s", remote, getattr(error, "detail", None) or error)
            return self.refusal(request, Unfit(*_refusal_for(error)))
        except Exception:
            _log.exception("a request of %s broke its handler", remote)
            return self.refusal(request, Unfit(500, "failed"))
        now = self._clock()
        signed = sign_response(
            self._key,
            status=200,
            content_type=CONTENT_TYPE,
            body=reply,
            recipient=sender.peer_id,
            request_signature=sender.signature,
            now=now,
        )
        return self._send(200, reply, signed, now)

    def refusal(self, request: Request | None, unfit: Unfit) -> Response:
        """The answer to a request that is not what it should be."""
        status, body, now = unfit.status, unfit.word.encode(), self._clock()
        fields: Mapping[str, str] = {} if request is None else request.fields
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
            signed["retry-after"] = unfit.word.rpartition(" ")[2]  # for those who know HTTP and not us
        return self._send(status, body, signed, now)

    def _send(self, status: int, body: bytes, signed: dict[str, str], now: float) -> Response:
        self.traffic.messages_sent += 1
        self.traffic.bytes_sent += len(body)
        return Response(status, {"date": http_date(int(now)), **signed}, body)

    def _charge(self, limiter: Limiter, key: bytes) -> None:
        wait = limiter.charge(key, self._monotonic())
        if wait:
            raise Unfit(TOO_MANY, f"too_many {math.ceil(wait)}")


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
