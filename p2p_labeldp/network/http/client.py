"""Where peers send from.

Every POST is sent once, on a connection of its own (``posting``). An answer that does not verify counts as no answer.
Whoever tries again signs again, with a fresh nonce.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import time
from collections.abc import Callable
from types import TracebackType

from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.crypto.signatures import NONCE_BYTES, ClockSkew, sign_request, verify_response
from p2p_labeldp.errors import (
    AuthenticationFailed,
    ConfigurationError,
    DeadlineExceeded,
    LocalProtocolError,
    PeerUnreachable,
    RemoteProtocolError,
)
from p2p_labeldp.network.http import posting
from p2p_labeldp.network.http.posting import Unreadable
from p2p_labeldp.network.http.profile import CONTENT_TYPE, MAX_BODY_BYTES, ROUTE, TOO_MANY
from p2p_labeldp.network.http.turns import Place, Turns
from p2p_labeldp.network.transport import Destination, Traffic, authority, format_address

MAX_CLIENT_CONNECTIONS = 64  # sockets of a process that is talking to thousands
MAX_CONNECTIONS_TO_ONE = 16

_WORD = re.compile("[a-z_]{1,40}( [0-9.]{1,20})?")


class Refused(RemoteProtocolError):
    """The peer asked answered, signed, that it won't.

    Args:
        word: Which of the server's refusals.
        status: The HTTP status that came with it.
    """

    def __init__(self, word: str, *, status: int) -> None:
        super().__init__(f"refused: {word}")
        self.word = word
        self.status = status


class HttpClient:
    """Where the peers of one process send from; an asynchronous context manager.

    Args:
        wall_clock: Unix seconds.
        max_connections: Most connections open at once; more POSTs wait for their turn.
        to_one: Most of them to one host and port.
        apart: Hosts and ports whose turns are their own, besides ``max_connections``: that of the learner.
        max_body_bytes: Longest answer accepted.
        local_host: Address to connect from, if not the system's choice.
        tls: Calls by TLS, if given.
    """

    def __init__(
        self,
        *,
        wall_clock: Callable[[], float] = time.time,
        max_connections: int = MAX_CLIENT_CONNECTIONS,
        to_one: int = MAX_CONNECTIONS_TO_ONE,
        apart: frozenset[Place] = frozenset(),
        max_body_bytes: int = MAX_BODY_BYTES,
        local_host: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if max_connections < 1:
            raise ConfigurationError(f"{max_connections} given; 1 or more are possible", field="max_connections")
        self.traffic = Traffic()
        self._clock = wall_clock
        self._max_body = max_body_bytes
        self._local_host = local_host
        self._tls = tls
        self._turns = Turns(in_all=max_connections, to_one=to_one, apart=apart)

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
            timeout: Seconds for the answer. As long may pass before it is this POST's turn, which is no fault of the
                peer's: a process that is late with everything would else give up whatever it has just begun.

        Raises:
            DeadlineExceeded: No answer in time.
            PeerUnreachable: No answer, none that verifies, or a signed 5xx or 429: later may help.
            ClockSkew: Our clock and the peer's differ too much for it.
            Refused: Any other signed refusal.
            LocalProtocolError: ``body`` is too long.
        """
        if len(body) > MAX_BODY_BYTES:
            raise LocalProtocolError(f"body of {len(body)} bytes; at most {MAX_BODY_BYTES} can be sent")
        try:
            async with asyncio.timeout(timeout) as limit, self._turns.taken((to.host, to.port)):
                limit.reschedule(asyncio.get_running_loop().time() + timeout)
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
            to.host,
            to.port,
            ROUTE,
            {"host": host, **signed},
            body,
            longest=self._max_body,
            local_host=self._local_host,
            tls=self._tls,
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
        if not 400 <= status < 500 or status == TOO_MANY:
            return PeerUnreachable(f"{format_address(to)} answered {status} {word}")
        if word == "clock_skew":
            return ClockSkew(theirs=theirs, ours=self._clock(), allowed_seconds=_seconds(allowed))
        return Refused(word, status=status)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
