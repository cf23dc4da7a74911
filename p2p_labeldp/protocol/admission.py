"""Admission by list: a round may take in only peers that an enrolment key vouches for.

Whoever holds the enrolment key signs, once for each peer, an *enrolment*: the peer's id in an envelope of a kind of its
own. The manifest names the enrolment key's id; a peer puts its enrolment into its record, and whoever takes the record
in, peer or learner, verifies both. So nobody has to be asked while a round runs, and no list is handed out.

An enrolment has no end: who is to be admitted no more is left out of the enrolments of a new key. It vouches for an
identity, not for a person; how many keys one person gets is up to who signs.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import AuthenticationFailed, RemoteProtocolError
from p2p_labeldp.protocol.messages import Hash
from p2p_labeldp.protocol.wire import decode_payload

KIND = "enrolment"
MAX_ENROLMENT_BYTES = 256  # one has 132


class Admission(StrEnum):
    """Who may be in a round."""

    OPEN = "open"
    ALLOWLIST = "allowlist"


class NotAdmitted(AuthenticationFailed):
    """Somebody the enrolment key does not vouch for."""


class Enrolment(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is signed: the id of the peer that is vouched for."""

    peer: Hash


_decoder = msgspec.msgpack.Decoder(Enrolment)


def enrol(peer_id: bytes, keys: KeyRing) -> bytes:
    """The enrolment of a peer, signed with the enrolment key."""
    return keys.sign(KIND, msgspec.msgpack.encode(Enrolment(peer_id)))


def signer_of(enrolment: bytes, keys: KeyRing) -> tuple[bytes, bytes]:
    """Id of the enrolment key that made an enrolment, and of the peer it is for.

    Raises:
        AuthenticationFailed: It does not verify.
        MalformedMessage: It is none.
    """
    signed = keys.verify(KIND, enrolment, max_bytes=MAX_ENROLMENT_BYTES)
    return signed.peer_id, decode_payload(signed.payload, _decoder).peer


def check(enrolment: bytes, *, peer_id: bytes, enrolment_key: bytes, keys: KeyRing) -> None:
    """Returns if ``enrolment`` is the enrolment key's for this peer.

    Raises:
        NotAdmitted: There is none, it is for another peer, or by another key.
        AuthenticationFailed: It does not verify.
        MalformedMessage: It is no enrolment.
    """
    if not enrolment:
        raise NotAdmitted("not admitted: no enrolment")
    signer, enrolled = signer_of(enrolment, keys)
    if signer != enrolment_key:
        raise NotAdmitted("not admitted: enrolled by another key than the round's")
    if enrolled != peer_id:
        raise NotAdmitted("not admitted: the enrolment of another peer")


def why_not(enrolment: bytes, *, peer_id: bytes, enrolment_key: bytes | None, keys: KeyRing) -> str | None:
    """Why a round would not admit this peer, if so; None as the key is open admission."""
    if enrolment_key is None:
        return None
    try:
        check(enrolment, peer_id=peer_id, enrolment_key=enrolment_key, keys=keys)
    except RemoteProtocolError as exc:
        return getattr(exc, "detail", "") or f"not admitted: {exc}"
    return None
