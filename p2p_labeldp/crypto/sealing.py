"""Boxes that one key opens: HPKE in base mode (RFC 9180), X25519, HKDF-SHA256, ChaCha20-Poly1305.

A box is the ephemeral public key, the ciphertext and a tag: ``OVERHEAD_BYTES`` longer than what is in it, so equal
lengths stay equal. Base mode names no sender: whoever opens a box learns from ``info`` alone what it is for, and a box
sealed under one ``info`` opens under no other.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError, MalformedMessage

SEED_BYTES = 32
PUBLIC_BYTES = 32
OVERHEAD_BYTES = 32 + 16  # ephemeral key and tag
KEPT_PUBLIC_KEYS = 64  # a peer seals to the learner and little else

_DOMAIN = b"p2p-labeldp box"
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def box_info(purpose: str, *parts: bytes) -> bytes:
    """``info`` for a box: what it is for and for whom, each part behind its length, so no two lists look alike."""
    framed = [_DOMAIN]
    for part in (purpose.encode(), *parts):
        framed += (len(part).to_bytes(4, "big"), part)
    return b"".join(framed)


class SealingKey:
    """An X25519 private key.

    Args:
        seed: 32 uniformly random bytes; the scalar of RFC 7748 (clamped when used).

    Raises:
        ConfigurationError: ``seed`` is not 32 bytes.
    """

    __slots__ = ("_private", "public")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ConfigurationError(f"{len(seed)} bytes given; {SEED_BYTES} are needed", field="sealing seed")
        self._private = X25519PrivateKey.from_private_bytes(seed)
        self.public = self._private.public_key().public_bytes_raw()

    def open(self, box: bytes, *, info: bytes) -> bytes:
        """What was sealed to this key under ``info``.

        Raises:
            AuthenticationFailed: Sealed to another key or under another ``info``, or altered, or no box at all.
        """
        try:
            return _SUITE.decrypt(box, self._private, info)
        except (InvalidTag, ValueError) as error:
            raise AuthenticationFailed(f"box of {len(box)} bytes does not open") from error


def seal(public: bytes, plaintext: bytes, *, info: bytes) -> bytes:
    """A box with ``plaintext`` that opens under ``info`` with the private key of ``public``, and with nothing else.

    Each call uses a fresh ephemeral key, drawn by the library (also in a forked child), so equal contents give
    unequal boxes.

    Raises:
        MalformedMessage: ``public`` is no X25519 key, or one of the few of low order that would share no secret.
    """
    try:
        return _SUITE.encrypt(plaintext, _parsed(public), info)
    except ValueError as error:
        raise MalformedMessage(f"not a usable X25519 public key: {public[:PUBLIC_BYTES].hex()}") from error


@lru_cache(maxsize=KEPT_PUBLIC_KEYS)
def check_public(public: bytes) -> None:
    """Returns if boxes can be sealed to this key: whoever is to use one for a whole round asks before it begins.

    Raises:
        MalformedMessage: As ``seal``.
    """
    seal(public, b"", info=b"")


@lru_cache(maxsize=KEPT_PUBLIC_KEYS)
def _parsed(public: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(public)
