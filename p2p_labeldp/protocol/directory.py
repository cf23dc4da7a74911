"""The directory: the signed records of one's own cluster, and a few contacts in every other.

A newcomer knows a few first contacts (``id@host:port``). Whoever it contacts keeps its record, as a mate's or as a
contact for its cluster, and gives it the contacts it has for the newcomer's own cluster. Nobody hands out a list of
peers.
"""

from __future__ import annotations

import random
from typing import Annotated

import msgspec
from msgspec import Meta

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage, ProtocolError
from p2p_labeldp.protocol import admission
from p2p_labeldp.protocol.admission import MAX_ENROLMENT_BYTES
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.gossip import Entry, GossipSet, bounded, short_id, split_ids
from p2p_labeldp.protocol.messages import MAX_RECORD_BYTES, Cluster, Hash, Host, Port
from p2p_labeldp.protocol.wire import decode_payload

KIND = "peer"
CONTACTS_ELSEWHERE = 4  # of other clusters, given to a stranger with the rest: where it may ask next
MATES_FOR_A_STRANGER = 2  # so that a stranger's next asks walk on to peers it did not know, not in a circle
CONTACTS_PER_CLUSTER = 8  # enough that one of them is alive; small enough that all clusters together stay small
MAX_CONTACT_CLUSTERS = 1024


class PeerRecord(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a peer can be reached in this round, and what it seals with. Its id derives from the signing key.

    ``sequence`` grows with each record of a peer and is never read as a clock. The record is valid until ``expires``
    seconds after the round's opening. ``ordinal`` is the peer's index in a study and 0 in a deployment. ``enrolment``
    vouches for the signer in a round that asks for it, and is not looked at in any other.
    """

    round_id: Hash
    cluster: Cluster
    host: Host
    port: Port
    sealing_key: Hash
    sequence: Annotated[int, Meta(ge=0)]
    expires: float
    ordinal: Annotated[int, Meta(ge=0)]
    enrolment: Annotated[bytes, Meta(max_length=MAX_ENROLMENT_BYTES)] = b""

    def sort_key(self, peer_id: bytes) -> tuple[int, bytes]:
        """The order of a roster."""
        return (self.ordinal, peer_id)


_decoder = msgspec.msgpack.Decoder(PeerRecord)

PeerEntry = Entry[PeerRecord]


def address_of(entry: PeerEntry) -> Address:
    """Where the signer of a record can be reached."""
    return Address(entry.signer, entry.content.host, entry.content.port)


def sign_record(record: PeerRecord, keys: KeyRing) -> bytes:
    """The signed envelope of a record."""
    return keys.sign(KIND, msgspec.msgpack.encode(record))


def open_record(
    envelope: bytes,
    *,
    keys: KeyRing,
    round_id: bytes,
    expires_by: float,
    now: float,
    enrolment_key: bytes | None = None,
) -> PeerEntry:
    """Verifies a record, then decodes and judges it.

    Args:
        envelope: The signed record.
        keys: To verify with.
        round_id: Of the round it has to be of.
        expires_by: The latest expiry it may claim, seconds after the opening.
        now: Seconds after the opening.
        enrolment_key: Id of the key that has to vouch for its signer; None where admission is open.

    Raises:
        AuthenticationFailed: Not signed by the key it names, or by somebody who is not admitted.
        MalformedMessage: Of another round, expired, or valid for longer than the round.
    """
    signed = keys.verify(KIND, envelope, max_bytes=MAX_RECORD_BYTES)
    record = decode_payload(signed.payload, _decoder)
    if record.round_id != round_id:
        raise MalformedMessage("a record of another round")
    if not now < record.expires <= expires_by:
        raise MalformedMessage("a record that has expired, or claims to outlive its round")
    if enrolment_key is not None:
        admission.check(record.enrolment, peer_id=signed.peer_id, enrolment_key=enrolment_key, keys=keys)
    return Entry(signed.peer_id, envelope, record)


class Directory:
    """What one peer knows of the others.

    Args:
        cluster: Whose records are all kept.
        clusters: How many there are; a record of any other is refused.
        keys: To verify with.
        round_id: Records of other rounds are refused.
        expires_by: The latest expiry a record may claim, seconds after the opening.
        enrolment_key: Whose enrolment a record has to carry; None where admission is open.
    """

    def __init__(
        self,
        *,
        cluster: int,
        clusters: int,
        keys: KeyRing,
        round_id: bytes,
        expires_by: float,
        enrolment_key: bytes | None = None,
    ) -> None:
        self.cluster = cluster
        self.mates: GossipSet[PeerRecord] = GossipSet()
        self.contacts: dict[int, dict[bytes, PeerEntry]] = {}
        self._clusters = clusters
        self._keys = keys
        self._round_id = round_id
        self._expires_by = expires_by
        self._enrolment_key = enrolment_key

    def absorb(self, envelopes: tuple[bytes, ...], now: float) -> tuple[int, list[str]]:
        """Takes in records that somebody sent; returns how many were news for the own cluster, and what was refused."""
        news, refused = 0, []
        for envelope in envelopes:
            if self.mates.knows(envelope) or self._is_contact(envelope):
                continue
            try:
                entry = open_record(
                    envelope,
                    keys=self._keys,
                    round_id=self._round_id,
                    expires_by=self._expires_by,
                    now=now,
                    enrolment_key=self._enrolment_key,
                )
                if entry.content.cluster >= self._clusters:
                    raise MalformedMessage("a record of a cluster that does not exist")
                self._check_one_cluster(entry)
                if entry.content.cluster == self.cluster:
                    news += self.mates.add(entry)
                else:
                    self._add_contact(entry)
            except ProtocolError as exc:
                refused.append(getattr(exc, "detail", "") or str(exc))
        return news, refused

    def _check_one_cluster(self, entry: PeerEntry) -> None:
        """A peer is in one cluster for the whole round: who says two is in neither, whatever the sequence numbers."""
        elsewhere = [c for c, known in self.contacts.items() if entry.signer in known and c != entry.content.cluster]
        was_mate = entry.signer in self.mates and entry.content.cluster != self.cluster
        if not elsewhere and not was_mate:
            return
        for cluster in elsewhere:
            del self.contacts[cluster][entry.signer]
            if not self.contacts[cluster]:
                del self.contacts[cluster]
        if was_mate or entry.content.cluster == self.cluster:
            self.mates.strike(entry.signer)
        raise AuthenticationFailed("records in two clusters")

    def _is_contact(self, envelope: bytes) -> bool:
        return any(entry.envelope == envelope for known in self.contacts.values() for entry in known.values())

    def _add_contact(self, entry: PeerEntry) -> None:
        """Keeps the freshest few contacts of a cluster: a new one pushes out the one heard of longest ago."""
        known = self.contacts.setdefault(entry.content.cluster, {})
        if len(self.contacts) > MAX_CONTACT_CLUSTERS:
            del self.contacts[entry.content.cluster]
            raise MalformedMessage(f"contacts in more than {MAX_CONTACT_CLUSTERS} clusters")
        old = known.get(entry.signer)
        if old is not None and old.content.sequence > entry.content.sequence:
            raise MalformedMessage("a record older than the one known")
        known.pop(entry.signer, None)
        known[entry.signer] = entry
        if len(known) > CONTACTS_PER_CLUSTER:
            del known[next(iter(known))]

    def reply(self, cluster: int, have: bytes, own: bytes, rng: random.Random) -> tuple[tuple[bytes, ...], bytes]:
        """Answers a digest about ``cluster``: what its sender lacks, and the short ids wanted of it.

        To a stranger: one's own record, the contacts of the stranger's cluster, and a few others to ask next, of other
        clusters and of one's own; without these a peer whose first contacts know no mate of its cluster would never
        find one.
        """
        if cluster == self.cluster:
            return self.mates.missing_from(have)
        theirs = split_ids(have)
        known = [own, *(entry.envelope for entry in self.contacts.get(cluster, {}).values())]
        for _ in range(CONTACTS_ELSEWHERE):
            elsewhere = self.some_contact(rng)
            if elsewhere is not None and elsewhere.envelope not in known:
                known.append(elsewhere.envelope)
        mates = [entry.envelope for entry in self.mates if entry.envelope != own]
        known += rng.sample(mates, min(MATES_FOR_A_STRANGER, len(mates)))
        return bounded([envelope for envelope in known if short_id(envelope) not in theirs]), b""

    def some_contact(self, rng: random.Random) -> PeerEntry | None:
        """A random contact of a random other cluster, if there is any."""
        if not self.contacts:
            return None
        known = self.contacts[rng.choice(sorted(self.contacts))]
        return known[rng.choice(sorted(known))]

    def find(self, peer_id: bytes) -> PeerEntry | None:
        """The record of a peer of the own cluster."""
        return self.mates.get(peer_id)
