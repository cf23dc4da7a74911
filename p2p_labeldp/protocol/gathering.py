"""The first phase of a learner: it learns who is there, of all clusters.

It is told of first addresses by whoever asks for the manifest, and pulls peer records as a peer does, from strangers
and from members of the clusters it knows of. What it finds goes into its census.
"""

from __future__ import annotations

import random

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import ProtocolError
from p2p_labeldp.facts import Rejected
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.census import Census
from p2p_labeldp.protocol.directory import PeerEntry, address_of, open_record
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.first_contacts import CAPACITY, FirstContacts
from p2p_labeldp.protocol.gossip import draw_salt
from p2p_labeldp.protocol.kept import Heard
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.meeting import hubs, meeting_point
from p2p_labeldp.protocol.messages import ROUND_START_BYTES, AnyMessage, Digest, Offer, Topic

FIRST_CONTACTS_A_TICK = 8  # at least
ASKED_A_CLUSTER = 3  # first contacts a tick for each cluster, until a record of every one is here
SEND_SECONDS = 5.0
SLOWEST_PULL = 4  # periods between pulls that keep finding nothing new


class Gathering:
    """Pulls peer records until the rosters are signed.

    Args:
        machine: The learner, whose alarms and sends are used.
        census: Where records go.
        opened: The verified manifest.
        keys: Verify records.
        rng: Whom to pull from.
    """

    def __init__(
        self, *, machine: Machine, census: Census, opened: OpenedManifest, keys: KeyRing, rng: random.Random
    ) -> None:
        self._machine = machine
        self._census = census
        self._opened = opened
        self._terms = opened.manifest
        self._keys = keys
        self._rng = rng
        self._contacts = FirstContacts(rng)  # who asked for the manifest
        self._quiet: dict[int, int] = {}
        self._planned: set[int] = set()
        self._next_pull: dict[int, float] = {}
        self._heard: list[tuple[bytes, str, int]] = []  # addresses not yet persisted
        self._kept_heard = 0
        self._over = False

    def note(self, place: Address, now: float) -> None:
        """Somebody asked for the manifest, and says where it is reached."""
        if self._census.has(place.peer_id):
            return
        noted = self._contacts.add(place)
        if noted and len(self._heard) < CAPACITY:
            self._heard.append((place.peer_id, place.host, place.port))
            if self._kept_heard < FIRST_CONTACTS_A_TICK:  # on these few all the others depend
                self._keep_heard(now)

    def recall(self, heard: Heard) -> None:
        """Has from an earlier life who asked for the manifest."""
        for peer_id, host, port in heard.addresses:
            self._contacts.add(Address(peer_id, host, port))

    def on_pull(self, now: float) -> None:
        """A few first contacts, or some for every cluster while nobody is known of one: so 95 % of those not found yet
        are in a tick, however many they are. And one member of each cluster whose last pulls were worth it."""
        self._keep_heard(now)  # all since the last tick at once: a restart that knows most of them finds the others
        clusters = self._opened.clustering.count
        wanted = ASKED_A_CLUSTER * clusters if len(list(self._census)) < clusters else 0
        for contact in self._contacts.take(max(FIRST_CONTACTS_A_TICK, wanted)):
            self._pull(contact, None, now)
        for cluster in self._census:
            if self._next_pull.get(cluster, 0.0) <= now:
                self._pull(address_of(self._rng.choice(self._census.members(cluster))), cluster, now)
                pause = self._terms.gossip_period * min(1 << self._quiet.get(cluster, 0), SLOWEST_PULL)
                self._next_pull[cluster] = now + pause
        self._plan_ahead()
        self._machine.set_alarm("pull", now + self._terms.gossip_period)

    def on_final_pull(self, now: float) -> None:
        """From each cluster's hubs, who should have heard of everybody, and from any member, in case that they lie."""
        self._machine.clear_alarm("pull")
        for cluster in self._census:
            members = {entry.signer: entry for entry in self._census.members(cluster)}
            chosen = hubs(members, meeting_point(self._opened.round_id, cluster))
            rest = [member for member in members if member not in chosen]
            for member in (*chosen, *self._rng.sample(rest, min(1, len(rest)))):
                self._pull(address_of(members[member]), cluster, now)

    def end(self) -> None:
        """Pulls no more, and takes in no record that is still on its way."""
        self._over = True
        self._machine.clear_alarm("pull")
        self._heard = []

    def _pull(self, to: Address, cluster: int | None, now: float) -> None:
        """Asks a peer what it knows of ``cluster``; of a stranger, whose cluster is unknown, its own record comes back
        whatever is asked. A stranger that does not answer is asked again: it may be its cluster's only contact."""
        known = self._census.of(cluster or 0)
        salt = draw_salt(self._rng)
        have = b"" if known is None else known.have(salt)
        digest = Digest(self._opened.round_id[:ROUND_START_BYTES], Topic.DIRECTORY, cluster or 0, have, (), salt)

        def offered(reply: AnyMessage | None, _reason: str, now: float) -> None:
            if reply is None and cluster is None:
                self._contacts.unheard(to)
            if isinstance(reply, Offer) and not self._over:
                self._absorb(reply.records, cluster, now)

        self._machine.send(to, digest, offered, now, now + SEND_SECONDS)

    def _absorb(self, envelopes: tuple[bytes, ...], pulled: int | None, now: float) -> None:
        news = 0
        for envelope in envelopes:
            try:
                entry: PeerEntry = open_record(
                    envelope,
                    keys=self._keys,
                    round_id=self._opened.round_id,
                    expires_by=self._terms.deadlines.report,
                    now=now,
                    enrolment_key=self._terms.enrolment_key,
                )
                if self._census.knows(entry) or entry.content.cluster >= self._opened.clustering.count:
                    continue
                news += self._census.add(entry)
                self._contacts.remove(entry.signer)
            except ProtocolError as exc:
                about = getattr(exc, "detail", "") or str(exc)
                self._machine.observe(Rejected(peer=self._machine.name, at=now, about=about))
        if pulled is not None:
            self._quiet[pulled] = 0 if news else min(self._quiet.get(pulled, 0) + 1, 16)

    def _keep_heard(self, now: float) -> None:
        if self._heard:
            self._machine.persist(Heard(peer=self._machine.name, at=now, addresses=tuple(self._heard)))
            self._kept_heard += len(self._heard)
            self._heard = []

    def _plan_ahead(self) -> None:
        """Plans for one cluster that seems whole. Planning takes up to a second for a few hundred members, and the plan
        of a size is remembered, so little of it is left for the deadline, when every peer wants its roster."""
        terms = self._terms
        for cluster in self._census:
            size = len(self._census.members(cluster))
            if self._quiet.get(cluster, 0) and size not in self._planned and size >= terms.minimum_size:
                self._planned.add(size)
                rosters.plan_for(size, terms)
                return
