"""What moving a message asks of a network, and how a place in it is written: ``id@host:port``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

from p2p_labeldp.crypto.identity import ID_BYTES
from p2p_labeldp.errors import ConfigurationError

# Given the id of an authenticated sender and a body, returns the body of the reply, at once.
Handler: TypeAlias = Callable[[bytes, bytes], bytes]

KEPT_AUTHORITIES = 1 << 14  # 10,000 packed peers ask each other again and again; 250 bytes each
MAX_HOST_LENGTH = 253  # of a DNS name in text form
_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"  # containers are named with underscores, which DNS carries
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_DIGITS = re.compile(r"[0-9.]+")
_ADDRESS = re.compile(r"([0-9a-f]{64})@(?:\[([^\[\]@]+)\]|([^\[\]@:]+)):([0-9]{1,5})")


class Destination(Protocol):
    """Where a peer can be reached, and the id it has to prove there."""

    @property
    def peer_id(self) -> bytes:
        """32 bytes."""
        ...

    @property
    def host(self) -> str:
        """Name or IP address, as ``authority`` takes it."""
        ...

    @property
    def port(self) -> int:
        """1 to 65535."""
        ...


@dataclass(slots=True)
class Traffic:
    """What one end has moved. Bytes are those of bodies: heads, about 900 bytes a message, are the transport's own."""

    messages_sent: int = 0
    bytes_sent: int = 0
    messages_received: int = 0
    bytes_received: int = 0


@lru_cache(maxsize=KEPT_AUTHORITIES, typed=True)  # True is no port, though it equals 1
def authority(host: str, port: int) -> str:
    """``host:port`` as it stands in a URL and in the ``Host`` field; port 80 is left out (RFC 9421, section 2.2.3).

    Raises:
        ConfigurationError: ``host`` is no lower case name, IPv4 address in four parts or IPv6 address in shortest form;
            ``port`` is not 1 to 65535.
    """
    if isinstance(port, bool) or not 1 <= port <= 65535:
        raise ConfigurationError(f"port {port} given; 1 to 65535 are possible", field="address")
    if len(host) > MAX_HOST_LENGTH or not _NAME.fullmatch(host) or _DIGITS.fullmatch(host):
        host = _ip(host)
    return host if port == 80 else f"{host}:{port}"


def _ip(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is None or str(address) != host or "%" in host:
        raise ConfigurationError(
            f"host {host[:80]!r} given; a lower case name or an IP address in its usual form is possible",
            field="address",
        )
    return f"[{host}]" if address.version == 6 else host


def format_address(place: Destination) -> str:
    """``id@host:port``, which ``parse_address`` reads."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{place.peer_id.hex()}@{host}:{place.port}"


def parse_address(text: str) -> tuple[bytes, str, int]:
    """Id, host and port of ``id@host:port``; the id in hex, an IPv6 address in brackets.

    Raises:
        ConfigurationError: It has another form.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"{text[:200]!r} given; id@host:port is needed, the id {2 * ID_BYTES} hex digits", field="address"
        )
    host, port = match[2] or match[3], int(match[4])
    authority(host, port)
    return bytes.fromhex(match[1]), host, port


def parse_place(text: str, *, field: str = "address") -> tuple[str, int]:
    """Host and port of ``host:port``; an IPv6 address in brackets.

    Raises:
        ConfigurationError: It has another form.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ConfigurationError(f"{text[:200]!r} given; host:port is needed, the port 1 to 65535", field=field)
    authority(host, int(port))
    return host, int(port)
