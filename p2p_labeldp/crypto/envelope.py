"""Signed records that outlive a connection: peer records, manifests, rosters.

Modelled on libp2p's signed envelopes (RFC 0002, RFC 0003): a domain string and the kind of record are signed with the
payload, so a signature made for one purpose serves no other. On the wire, in a fixed layout:

    version  1 byte
    public   32 bytes, the signer's key, from which its id derives
    signature  64 bytes, over domain, kind (behind its length) and payload
    payload  the rest

Domain and kind are not on the wire: whoever opens an envelope says what it expects, and anything else does not verify.
Nobody decodes a payload that was not verified first.

A signer can make several valid envelopes of one payload, so compare payloads, not envelopes, to tell equivocation from
repetition. A third party can make none.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache

from p2p_labeldp.crypto.identity import PUBLIC_BYTES, SIGNATURE_BYTES, SigningKey, peer_id, verify
from p2p_labeldp.errors import MalformedMessage

VERSION = 1
OVERHEAD_BYTES = 1 + PUBLIC_BYTES + SIGNATURE_BYTES
MAX_ENVELOPE_BYTES = 1 << 20  # a roster of 30,000 ids fits; no body on the wire may be longer
KEPT_VERIFICATIONS = 1 << 15  # 10,000 packed peers and their last records; 200 bytes each

_DOMAIN = b"p2p-labeldp envelope"
_SIGNATURE_AT = 1 + PUBLIC_BYTES
_verified: OrderedDict[bytes, bytes] = OrderedDict()  # SHA-256 of kind and envelope -> id of the signer


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """The contents of an envelope whose signature was verified.

    Args:
        public: The signer's key, 32 bytes.
        peer_id: The signer's id, derived from the key.
        payload: What was signed, not yet decoded.
    """

    public: bytes
    peer_id: bytes
    payload: bytes


def sign(key: SigningKey, kind: str, payload: bytes) -> bytes:
    """An envelope of ``payload``, ``OVERHEAD_BYTES`` longer."""
    return b"".join((b"\x01", key.public, key.sign(_prefix(kind) + payload), payload))


def open(data: bytes, kind: str, *, max_bytes: int = MAX_ENVELOPE_BYTES) -> Signed:
    """The contents of an envelope of ``kind``.

    Verifying is a pure function of the bytes, so successes are remembered by digest, the latest
    ``KEPT_VERIFICATIONS`` of the process; failures are not.

    Raises:
        MalformedMessage: Longer than ``max_bytes``, shorter than an empty envelope, or of another version.
        AuthenticationFailed: The signature does not verify, or it is one of another kind.
    """
    if len(data) > max_bytes:
        raise MalformedMessage(f"envelope of {len(data)} bytes; at most {max_bytes} are accepted")
    if len(data) < OVERHEAD_BYTES:
        raise MalformedMessage(f"envelope of {len(data)} bytes; at least {OVERHEAD_BYTES} are needed")
    if data[0] != VERSION:
        raise MalformedMessage(f"envelope of version {data[0]}; {VERSION} is known")
    public, payload = data[1:_SIGNATURE_AT], data[OVERHEAD_BYTES:]
    prefix = _prefix(kind)
    digest = hashlib.sha256(prefix + data).digest()
    signer = _verified.get(digest)
    if signer is None:
        verify(public, data[_SIGNATURE_AT:OVERHEAD_BYTES], prefix + payload)
        signer = _verified[digest] = peer_id(public)
        if len(_verified) > KEPT_VERIFICATIONS:
            _verified.popitem(last=False)
    else:
        _verified.move_to_end(digest)
    return Signed(public=public, peer_id=signer, payload=payload)


@lru_cache(maxsize=64)
def _prefix(kind: str) -> bytes:
    name = kind.encode()
    assert 0 < len(name) < 256  # kinds are constants of the protocol
    return _DOMAIN + bytes([len(name)]) + name
