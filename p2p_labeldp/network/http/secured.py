"""TLS below a server's connection, on any loop.

A loop that listens by TLS tells of a connection after its handshake, and waits for the other side when it closes:
whoever does neither could hold any number. Here the connection is told first, so it is bounded in number and time from
the start, and closed as soon as everything is written (RFC 8446, section 6.1, has each side close for itself).
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any, cast

_PIECE_BYTES = 1 << 16


class Secured(asyncio.Protocol):
    """Between a plain transport and a protocol that sees what was sent, decrypted.

    Args:
        inner: The protocol. It is told of the connection before the handshake.
        tls: Of the server's side.
    """

    def __init__(self, inner: asyncio.Protocol, tls: ssl.SSLContext) -> None:
        self._inner = inner
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = tls.wrap_bio(self._came, self._goes, server_side=True)
        self._shaken = False
        self._plain: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._plain = cast(asyncio.Transport, transport)  # another loop's transports only look like it
        self._inner.connection_made(_Sealed(self, self._plain))

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        assert self._plain is not None
        self._came.write(data)
        try:
            if not self._shaken:
                self._object.do_handshake()
                self._shaken = True
            while not self._plain.is_closing():
                piece = self._object.read(_PIECE_BYTES)
                if not piece:  # the other side has closed
                    self._plain.close()
                    break
                self._inner.data_received(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self._send()  # what is wrong, if there is a word for it
            self._plain.close()
        self._send()

    def write(self, data: bytes) -> None:
        """Sends, encrypted. Before the handshake nothing can be said."""
        if self._shaken:
            self._object.write(data)
            self._send()

    def close(self) -> None:
        """Tells that this was all, and closes when it is written."""
        assert self._plain is not None
        if self._shaken:
            with suppress(ssl.SSLError):  # that the other side has not told yet
                self._object.unwrap()
            self._send()
        self._plain.close()

    def _send(self) -> None:
        assert self._plain is not None
        if self._goes.pending and not self._plain.is_closing():
            self._plain.write(self._goes.read())


class _Sealed(asyncio.Transport):
    """The transport as the protocol above sees it."""

    def __init__(self, secured: Secured, plain: asyncio.Transport) -> None:
        super().__init__()
        self._secured = secured
        self._plain = plain

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._secured.write(bytes(data))

    def close(self) -> None:
        self._secured.close()

    def abort(self) -> None:
        self._plain.abort()

    def is_closing(self) -> bool:
        return self._plain.is_closing()

    def can_write_eof(self) -> bool:
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._plain.get_extra_info(name, default)
