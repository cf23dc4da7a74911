"""Ed25519 identities (RFC 8032). A peer's id is the SHA-256 of its raw public key, so an id vouches for its key."""

from __future__ import annotations

import hashlib
import hmac

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError

SEED_BYTES = 32
PUBLIC_BYTES = 32
SIGNATURE_BYTES = 64
ID_BYTES = 32


def peer_id(public: bytes) -> bytes:
    """The id of the holder of ``public``, 32 bytes."""
    return hashlib.sha256(public).digest()


def derive_seed(secret: bytes, purpose: str) -> bytes:
    """A 32-byte seed for one purpose, from a peer's uniformly random 32-byte secret.

    HKDF-Expand with SHA-256 for one block (RFC 5869, section 2.3). Extract is for secrets that are not uniform.

    Raises:
        ConfigurationError: ``secret`` is not 32 bytes.
    """
    if len(secret) != SEED_BYTES:
        raise ConfigurationError(f"{len(secret)} bytes given; {SEED_BYTES} are needed", field="secret")
    return hmac.digest(secret, b"p2p-labeldp key " + purpose.encode() + b"\x01", "sha256")


class SigningKey:
    """An Ed25519 private key.

    Args:
        seed: The 32 bytes of RFC 8032's private key.

    Raises:
        ConfigurationError: ``seed`` is not 32 bytes.
    """

    __slots__ = ("_private", "peer_id", "public")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ConfigurationError(f"{len(seed)} bytes given; {SEED_BYTES} are needed", field="signing seed")
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._private.public_key().public_bytes_raw()
        self.peer_id = peer_id(self.public)

    def sign(self, message: bytes) -> bytes:
        """The signature of ``message``, 64 bytes; the same message gives the same signature."""
        return self._private.sign(message)


def verify(public: bytes, signature: bytes, message: bytes) -> None:
    """Returns if ``signature`` is one of ``message`` by ``public``.

    Parsing the key costs 1 % of the check, so parsed keys are not kept.

    Raises:
        AuthenticationFailed: It is not, or ``public`` is no key.
    """
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature as error:
        raise AuthenticationFailed(f"signature does not verify under key {public.hex()}") from error
    except ValueError as error:
        raise AuthenticationFailed(f"not an Ed25519 public key: {public[:PUBLIC_BYTES].hex()}") from error
