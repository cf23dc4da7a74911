"""The directory: the signed records of one's own cluster, and a few contacts in every other.

A newcomer knows a few first contacts (``id@host:port``). Whoever it contacts remembers where it is and names a few
contacts: of the newcomer's own cluster, and some who may know more. Of either kind one is the nearest to the meeting
point of that cluster, so that those who walk on meet, and at a hub; and one is any, so that nobody can stand in all
ways by a choice of its id. A contact is an address and counts for nothing: who answers there proves its id, and its
record is verified like any other. Records of other clusters never travel, and nobody hands out a list of peers.
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
from p2p_labeldp.protocol.gossip import Entry, GossipSet, open_entry
from p2p_labeldp.protocol.meeting import meeting_point, nearest_first
from p2p_labeldp.protocol.messages import Cluster, Contact, Digest, Hash, Host, Offer, Place, Port

KIND = "peer"
OWN = 2  # contacts of its own cluster that a stranger is told: the nearest to its meeting point, and any other
NEAR = 1  # of other clusters, to ask next: nearest to its meeting point
FAR = 1  # and any other; with none, clusters fall into islands that find each other late or never
CONTACTS_PER_CLUSTER = 8  # enough that one of them is alive; small enough that all clusters together stay small
MAX_CONTACT_CLUSTERS = 1024
MAX_ELSEWHERE = 4096  # signers of records of other clusters that are remembered: only liars send any


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


def address_at(contact: Contact) -> Address:
    """Where to ask whom others named."""
    return Address(contact.peer_id, contact.at.host, contact.at.port)


def contact_of(entry: PeerEntry) -> Contact:
    """Whom to tell others to ask."""
    return Contact(entry.signer, entry.content.cluster, Place(entry.content.host, entry.content.port))


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
    entry = open_entry(envelope, KIND, _decoder, keys.verify)
    record = entry.content
    if record.round_id != round_id:
        raise MalformedMessage("a record of another round")
    if not now < record.expires <= expires_by:
        raise MalformedMessage("a record that has expired, or claims to outlive its round")
    if enrolment_key is not None:
        admission.check(record.enrolment, peer_id=entry.signer, enrolment_key=enrolment_key, keys=keys)
    return entry


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
        self.contacts: dict[int, dict[bytes, Contact]] = {}
        self._clusters = clusters
        self._keys = keys
        self._round_id = round_id
        self._expires_by = expires_by
        self._enrolment_key = enrolment_key
        self._elsewhere: set[bytes] = set()  # who signed a record of another cluster

    def absorb(self, envelopes: tuple[bytes, ...], now: float) -> tuple[int, list[str]]:
        """Takes in records that somebody sent; returns how many were news, and what was refused."""
        news, refused = 0, []
        for envelope in envelopes:
            try:
                entry = open_record(
                    envelope,
                    keys=self._keys,
                    round_id=self._round_id,
                    expires_by=self._expires_by,
                    now=now,
                    enrolment_key=self._enrolment_key,
                )
                if self.mates.knows(entry):
                    continue
                self._check_one_cluster(entry)
                if entry.content.cluster != self.cluster:
                    raise MalformedMessage("a record of another cluster")
                news += self.mates.add(entry)
            except ProtocolError as exc:
                refused.append(getattr(exc, "detail", "") or str(exc))
        return news, refused

    def _check_one_cluster(self, entry: PeerEntry) -> None:
        """A peer is in one cluster for the whole round: who says two is in neither, whatever the sequence numbers."""
        signer = entry.signer
        if entry.content.cluster == self.cluster:
            contradicts = signer in self._elsewhere
        else:
            contradicts = signer in self.mates
            if len(self._elsewhere) < MAX_ELSEWHERE:
                self._elsewhere.add(signer)
        if contradicts:
            self.mates.strike(signer)
            raise AuthenticationFailed("records in two clusters")

    def meet(self, peer_id: bytes, cluster: int, at: Place) -> None:
        """Remembers where a peer of another cluster is, by its own authenticated word.

        The freshest few of a cluster are kept, and the nearest to its meeting point: a new one pushes out the one of
        the others heard of longest ago. Nobody else's word is taken, so nobody can misdirect those who look for this
        peer.
        """
        if cluster == self.cluster or cluster >= self._clusters:
            return
        if cluster not in self.contacts and len(self.contacts) >= MAX_CONTACT_CLUSTERS:
            return
        known = self.contacts.setdefault(cluster, {})
        known.pop(peer_id, None)
        known[peer_id] = Contact(peer_id, cluster, at)
        if len(known) > CONTACTS_PER_CLUSTER:
            nearest = nearest_first(known, meeting_point(self._round_id, cluster))[0]
            del known[next(one for one in known if one != nearest)]

    def reply(self, digest: Digest, sender: bytes, rng: random.Random) -> Offer:
        """Answers a digest: what its sender lacks, and the salted ids of what is wanted of it.

        A stranger is remembered, and told of contacts of its own cluster and of a few to ask next; without these a peer
        whose first contacts know no mate of its cluster would never find one.

        Raises:
            MalformedMessage: The digest is none, or of a cluster that does not exist.
        """
        if digest.cluster == self.cluster:
            return self.mates.answer(digest)
        if digest.cluster >= self._clusters:
            raise MalformedMessage("a digest of a cluster that does not exist")
        point = meeting_point(self._round_id, digest.cluster)
        kept = self.contacts.get(digest.cluster, {})
        ids = nearest_first([one for one in kept if one != sender], point)
        found = [kept[one] for one in _first_and_any(ids, 1, OWN - 1, rng)]
        found += self._to_ask_next(digest.cluster, sender, point, rng)
        if digest.at is not None:
            self.meet(sender, digest.cluster, digest.at)
        return Offer((), b"", tuple(found), cluster=self.cluster)

    def _to_ask_next(self, cluster: int, sender: bytes, point: bytes, rng: random.Random) -> list[Contact]:
        """For somebody who looks for ``cluster``: the nearest known to its meeting point, and some of any."""
        others = {one.peer_id: one for c, kept in self.contacts.items() if c != cluster for one in kept.values()}
        ids = nearest_first([one for one in (*self.mates.signers, *others) if one != sender], point)
        named = [others.get(one) or self.mates.get(one) for one in _first_and_any(ids, NEAR, FAR, rng)]
        return [contact_of(one) if isinstance(one, Entry) else one for one in named if one is not None]

    def some_contact(self, rng: random.Random) -> Contact | None:
        """A random contact of a random other cluster, if there is any."""
        if not self.contacts:
            return None
        known = self.contacts[rng.choice(sorted(self.contacts))]
        return known[rng.choice(sorted(known))]

    def find(self, peer_id: bytes) -> PeerEntry | None:
        """The record of a peer of the own cluster."""
        return self.mates.get(peer_id)


def _first_and_any(ids: list[bytes], first: int, any_other: int, rng: random.Random) -> list[bytes]:
    rest = ids[first:]
    return ids[:first] + rng.sample(rest, min(any_other, len(rest)))
