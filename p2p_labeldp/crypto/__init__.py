"""Who speaks, and who may read: identities, signed records, sealed boxes, signed HTTP messages.

Standards only, each at its one place:

    identity.py    Ed25519 keys; a peer's id is the SHA-256 of its public key
    sealing.py     boxes only one key opens: HPKE (RFC 9180)
    envelope.py    signed records that outlive a connection (after libp2p's RFC 0002)
    keys.py        what a protocol machine gets: signs, verifies, seals, opens
    signatures.py  HTTP Message Signatures (RFC 9421) with Content-Digest (RFC 9530), one fixed profile

Everything here is a function of its arguments but for ``seal``, whose ephemeral key the library draws itself: no clock,
no socket, no entropy. The package is the only door to ``cryptography`` and to libsodium.
"""

from p2p_labeldp.crypto.envelope import Signed
from p2p_labeldp.crypto.identity import SigningKey, peer_id
from p2p_labeldp.crypto.keys import KeyRing, Keys
from p2p_labeldp.crypto.sealing import SealingKey, box_info

__all__ = ["KeyRing", "Keys", "SealingKey", "Signed", "SigningKey", "box_info", "peer_id"]
