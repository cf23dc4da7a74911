"""The directory: the signed records of one's own cluster, and a few contacts in every other.

A newcomer knows a few first contacts (``id@host:port``). Whoever it contacts keeps its record, as a mate's or as a
contact for its cluster, and gives it the contacts it has for the newcomer's own cluster. Nobody hands out a list of
peers.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from p2p_labeldp.crypto.envelope import KEPT_VERIFICATIONS
from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import MalformedMessage, ProtocolError
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
    seconds after the round's opening. ``ordinal`` is the peer's index in a study and 0 in a deployment.
    """

    round_id: Hash
    cluster: Cluster
    host: Host
    port: Port
    sealing_key: Hash
    sequence: Annotated[int, Meta(ge=0)]
    expires: float
    ordinal: Annotated[int, Meta(ge=0)]

    def sort_key(self, peer_id: bytes) -> tuple[int, bytes]:
        """The order of a roster."""
        return (self.ordinal, peer_id)


_decoder = msgspec.msgpack.Decoder(PeerRecord)


@lru_cache(maxsize=KEPT_VERIFICATIONS)
def _decoded(payload: bytes) -> PeerRecord:
    """The content, one for all peers of a process: a function of the bytes, as their verification is."""
    return decode_payload(payload, _decoder)


PeerEntry = Entry[PeerRecord]


def address_of(entry: PeerEntry) -> Address:
    """Where the signer of a record can be reached."""
    return Address(entry.signer, entry.content.host, entry.content.port)


def sign_record(record: PeerRecord, keys: KeyRing) -> bytes:
    """The signed envelope of a record."""
    return keys.sign(KIND, msgspec.msgpack.encode(record))


def open_record(envelope: bytes, *, keys: KeyRing, round_id: bytes, expires_by: float, now: float) -> PeerEntry:
    """Verifies a record, then decodes and judges it.

    Raises:
        AuthenticationFailed: Not signed by the key it names.
        MalformedMessage: Of another round, expired, or valid for longer than the round.
    """
    signed = keys.verify(KIND, envelope, max_bytes=MAX_RECORD_BYTES)
    record = _decoded(signed.payload)
    if record.round_id != round_id:
        raise MalformedMessage("a record of another round")
    if not now < record.expires <= expires_by:
        raise MalformedMessage("a record that has expired, or claims to outlive its round")
    return Entry(signed.peer_id, envelope, record)


class Directory:
    """What one peer knows of the others.

    Args:
        cluster: Whose records are all kept.
        clusters: How many there are; a record of any other is refused.
        keys: To verify with.
        round_id: Records of other rounds are refused.
        expires_by: The latest expiry a record may claim, seconds after the opening.
    """

    def __init__(self, *, cluster: int, clusters: int, keys: KeyRing, round_id: bytes, expires_by: float) -> None:
        self.cluster = cluster
        self.mates: GossipSet[PeerRecord] = GossipSet()
        self.contacts: dict[int, dict[bytes, PeerEntry]] = {}
        self._contact_envelopes: set[bytes] = set()
        self._clusters = clusters
        self._keys = keys
        self._round_id = round_id
        self._expires_by = expires_by

    def absorb(self, envelopes: tuple[bytes, ...], now: float) -> tuple[int, list[str]]:
        """Takes in records that somebody sent; returns how many were news for the own cluster, and what was refused."""
        news, refused = 0, []
        for envelope in envelopes:
            if self.mates.knows(envelope) or self._is_contact(envelope):
                continue
            try:
                entry = open_record(
                    envelope, keys=self._keys, round_id=self._round_id, expires_by=self._expires_by, now=now
                )
                if entry.content.cluster >= self._clusters:
                    raise MalformedMessage("a record of a cluster that does not exist")
                if entry.content.cluster == self.cluster:
                    news += self.mates.add(entry)
                else:
                    self._add_contact(entry)
            except ProtocolError as exc:
                refused.append(getattr(exc, "detail", "") or str(exc))
        return news, refused

    def _is_contact(self, envelope: bytes) -> bool:
        return envelope in self._contact_envelopes

    def _add_contact(self, entry: PeerEntry) -> None:
        """Keeps the freshest few contacts of a cluster: a new one pushes out the one heard of longest ago."""
        known = self.contacts.setdefault(entry.content.cluster, {})
        if len(self.contacts) > MAX_CONTACT_CLUSTERS:
            del self.contacts[entry.content.cluster]
            raise MalformedMessage(f"contacts in more than {MAX_CONTACT_CLUSTERS} clusters")
        old = known.pop(entry.signer, None)
        if old is not None:
            self._contact_envelopes.discard(old.envelope)
            if old.content.sequence > entry.content.sequence:
                entry = old
        known[entry.signer] = entry
        self._contact_envelopes.add(entry.envelope)
        if len(known) > CONTACTS_PER_CLUSTER:
            self._contact_envelopes.discard(known.pop(next(iter(known))).envelope)

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
