"""Ed25519 identities (RFC 8032). A peer's id is the SHA-256 of its raw public key, so an id vouches for its key.

Two signatures and two verifications are most of what an exchange costs, so they are libsodium's, which takes half the
time that OpenSSL takes for a verification and two thirds for a signature. The signatures are the same, byte for byte;
libsodium also refuses public keys of small order, under which a signature fits many messages.
"""

from __future__ import annotations

import hashlib
import hmac

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

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
        self.public, self._private = crypto_sign_seed_keypair(seed)
        self.peer_id = peer_id(self.public)

    def sign(self, message: bytes) -> bytes:
        """The signature of ``message``, 64 bytes; the same message gives the same signature."""
        return crypto_sign(message, self._private)[:SIGNATURE_BYTES]


def verify(public: bytes, signature: bytes, message: bytes) -> None:
    """Returns if ``signature`` is one of ``message`` by ``public``.

    Raises:
        AuthenticationFailed: It is not, or ``public`` is no key.
    """
    if len(public) != PUBLIC_BYTES or len(signature) != SIGNATURE_BYTES:  # the binding would not notice
        raise AuthenticationFailed(f"key of {len(public)} bytes, signature of {len(signature)}")
    try:
        crypto_sign_open(signature + message, public)
    except BadSignatureError as error:
        raise AuthenticationFailed(f"signature does not verify under key {public.hex()}") from error
