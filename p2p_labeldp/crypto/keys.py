"""What a protocol machine gets to be somebody: it signs, verifies, seals and opens, and never sees a private key.

The machines are written against ``KeyRing``. ``Keys`` is the real one; the in-memory network has a transparent one of
its own, which costs nothing and which nothing else can construct. A key for one round is a second key ring from a fresh
secret, dropped after the round.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from p2p_labeldp.crypto import envelope, sealing
from p2p_labeldp.crypto.envelope import MAX_ENVELOPE_BYTES, Signed
from p2p_labeldp.crypto.identity import SEED_BYTES, SigningKey, derive_seed
from p2p_labeldp.errors import ConfigurationError


class KeyRing(Protocol):
    """The keys of one peer. Errors are those of the functions named."""

    @property
    def peer_id(self) -> bytes:
        """32 bytes, by which others know this peer."""
        ...

    @property
    def public(self) -> bytes:
        """32 bytes, from which ``peer_id`` derives."""
        ...

    @property
    def sealing_public(self) -> bytes:
        """32 bytes, to which others seal."""
        ...

    def sign(self, kind: str, payload: bytes) -> bytes:
        """An envelope of ``payload`` (``envelope.sign``)."""
        ...

    @staticmethod
    def verify(kind: str, data: bytes, *, max_bytes: int = MAX_ENVELOPE_BYTES) -> Signed:
        """The contents of anybody's envelope (``envelope.open``): whose ring it is makes no difference."""
        ...

    def seal(self, public: bytes, plaintext: bytes, *, info: bytes) -> bytes:
        """A box for the holder of ``public`` (``sealing.seal``)."""
        ...

    def open(self, box: bytes, *, info: bytes) -> bytes:
        """The contents of a box sealed to ``sealing_public`` (``SealingKey.open``)."""
        ...


class Keys:
    """A peer's real keys, all derived from one secret. Each is computed when first asked for.

    Args:
        secret: 32 uniformly random bytes.

    Raises:
        ConfigurationError: ``secret`` is not 32 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SEED_BYTES:
            raise ConfigurationError(f"{len(secret)} bytes given; {SEED_BYTES} are needed", field="secret")
        self._secret = secret

    @cached_property
    def signing_key(self) -> SigningKey:
        """For the HTTP layer, which signs every message of this peer."""
        return SigningKey(derive_seed(self._secret, "ed25519"))

    @cached_property
    def _sealing_key(self) -> sealing.SealingKey:
        return sealing.SealingKey(derive_seed(self._secret, "x25519"))

    @property
    def peer_id(self) -> bytes:
        return self.signing_key.peer_id

    @property
    def public(self) -> bytes:
        return self.signing_key.public

    @property
    def sealing_public(self) -> bytes:
        return self._sealing_key.public

    def sign(self, kind: str, payload: bytes) -> bytes:
        return envelope.sign(self.signing_key, kind, payload)

    @staticmethod
    def verify(kind: str, data: bytes, *, max_bytes: int = MAX_ENVELOPE_BYTES) -> Signed:
        return envelope.open(data, kind, max_bytes=max_bytes)

    def seal(self, public: bytes, plaintext: bytes, *, info: bytes) -> bytes:
        return sealing.seal(public, plaintext, info=info)

    def open(self, box: bytes, *, info: bytes) -> bytes:
        return self._sealing_key.open(box, info=info)
