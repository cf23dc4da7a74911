"""Which requests were seen: a nonce is accepted once while a request that carries it could still be valid."""

from __future__ import annotations

from collections import OrderedDict

from p2p_labeldp.crypto.signatures import ALLOWED_SKEW_SECONDS, VALIDITY_SECONDS
from p2p_labeldp.errors import ConfigurationError, RemoteProtocolError, ReplayedMessage

DEFAULT_CAPACITY = 1 << 16  # 546 requests a second, sustained; 13 MB when full, 200 bytes when empty


class NonceCacheFull(RemoteProtocolError):
    """Too many requests within their validity. The request was not looked at and may be sent again later."""


class NonceCache:
    """The nonces one peer has seen.

    A request can be accepted from ``created - skew`` to ``expires + skew`` by our clock, so each nonce is kept for
    validity + 2 skew after it came, and never less: a full cache refuses what is new instead of forgetting what it
    knows. The oldest stands first, so one look is enough (after our clock was set back some are kept longer).

    The cache is lost in a restart and misses a request that is replayed after our clock was set back. What must happen
    once even then is the ledger's to see to.

    Args:
        capacity: Most nonces kept; divided by the time they are kept, the highest sustained rate of requests.
        allowed_skew_seconds: The allowance requests are verified with.
    """

    def __init__(self, capacity: int = DEFAULT_CAPACITY, *, allowed_skew_seconds: float = ALLOWED_SKEW_SECONDS) -> None:
        if capacity < 1:
            raise ConfigurationError(f"{capacity} given; 1 or more are possible", field="nonce capacity")
        self._capacity = capacity
        self._kept_seconds = VALIDITY_SECONDS + 2 * allowed_skew_seconds
        self._seen: OrderedDict[bytes, float] = OrderedDict()  # public key and nonce -> when it came

    def __len__(self) -> int:
        return len(self._seen)

    def accept(self, public: bytes, nonce: bytes, *, now: float) -> None:
        """Returns the first time ``public`` uses ``nonce``, and remembers it.

        Args:
            public: Key of the sender of a *verified* request; others would fill the cache for free.
            nonce: The request's.
            now: The clock the request was verified by, Unix seconds.

        Raises:
            ReplayedMessage: Seen before.
            NonceCacheFull: Not seen before, and no room.
        """
        seen, horizon = self._seen, now - self._kept_seconds
        while seen and next(iter(seen.values())) < horizon:
            seen.popitem(last=False)
        key = public + nonce
        if key in seen:
            raise ReplayedMessage("nonce seen before")
        if len(seen) >= self._capacity:
            raise NonceCacheFull("too many requests")
        seen[key] = now
