"""The learner's machine of one round, sans-IO: hands out the manifest, signs rosters, accepts reports.

Theory of operation. Until the join deadline it pulls peer records as a peer does, and serves none: it learns of a first
address from whoever asks for the manifest. At the deadline it signs one roster for each cluster. From the closing
deadline on it accepts one report of each member of a roster and gives a signed receipt; a repeat gets the same receipt.

    state       until             what it answers
    GATHERING   join deadline     GetManifest
    ROSTERED    closing deadline  GetManifest, GetRoster
    ACCEPTING   report deadline   GetManifest, GetRoster, Report
    ENDED
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum, auto

from p2p_labeldp.accounting.planning import RosterPlan
from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import LabelDPError, ProtocolError
from p2p_labeldp.facts import Accepted, Name, Rejected
from p2p_labeldp.protocol import report as reports
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.directory import PeerEntry, PeerRecord, address_of, open_record
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.gossip import GossipSet
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.messages import (
    AnyMessage,
    Digest,
    GetManifest,
    GetRoster,
    ManifestReply,
    Message,
    Offer,
    Receipt,
    Refusal,
    Report,
    RosterReply,
    Topic,
)
from p2p_labeldp.protocol.peer import GRACE_SECONDS

MAX_ADDRESSES = 200_000  # first contacts remembered; beyond, records still arrive through those known
FIRST_CONTACTS_A_TICK = 8
FINAL_PULLS_A_CLUSTER = 2  # right before the deadline, from different members
SEND_SECONDS = 5.0
SLOWEST_PULL = 4  # periods between pulls that keep finding nothing new


class State(Enum):
    """Where the round stands."""

    GATHERING = auto()
    ROSTERED = auto()
    ACCEPTING = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRoster:
    """A signed roster and what it was made of."""

    envelope: bytes
    digest: bytes
    plan: RosterPlan
    members: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedReport:
    """What the learner may learn from: features of the reporter, flipped label of some mate."""

    reporter: bytes
    ordinal: int
    cluster: int
    features: tuple[float, ...]
    label: int


class Collector(Machine):
    """The learner in one round.

    Args:
        envelope: The signed manifest, as handed to peers.
        opened: The same, verified.
        keys: The learner's keys; they sign rosters and receipts.
        round_keys: The key ring of this round alone; it opens reports.
        rng: Whom to pull from.
    """

    def __init__(
        self, *, envelope: bytes, opened: OpenedManifest, keys: KeyRing, round_keys: KeyRing, rng: random.Random
    ) -> None:
        super().__init__()
        self.state = State.GATHERING
        self.opened = opened
        self.name: Name = "learner"
        self.rosters: dict[int, ClusterRoster] = {}
        self.reports: dict[bytes, AcceptedReport] = {}
        self.envelope = envelope
        self._keys = keys
        self._round_keys = round_keys
        self._rng = rng
        self._deadlines = opened.manifest.deadlines
        self._period = opened.manifest.gossip_period
        self._clusters: dict[int, GossipSet[PeerRecord]] = {}
        self._addresses: dict[bytes, Address] = {}  # asked for the manifest; not yet contacted
        self._quiet: dict[int, int] = {}
        self._planned: set[int] = set()
        self._next_pull: dict[int, float] = {}
        self._cluster_of: dict[bytes, int] = {}
        self._receipts: dict[bytes, tuple[bytes, Receipt]] = {}
        self._handlers = {
            "pull": self._on_pull,
            "final pull": self._on_final_pull,
            "join": self._on_join_deadline,
            "closing": self._on_closing_deadline,
            "end": self._on_end,
        }

    # -- the contract with a host ----------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the round is over."""
        return self.state is State.ENDED

    def start(self, now: float) -> None:
        """Opens the round."""
        d = self._deadlines
        self.set_alarm("pull", now + self._period)
        self.set_alarm("final pull", d.join - self._period / 2)
        self.set_alarm("join", d.join)
        self.set_alarm("closing", d.closing)
        self.set_alarm("end", d.report + GRACE_SECONDS)

    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message:
        """Replies to a message of an authenticated sender."""
        self.wake(now)  # a message may come in before the timer that is due
        match message:
            case GetManifest():
                if len(self._addresses) < MAX_ADDRESSES:
                    self._addresses[sender] = Address(sender, message.host, message.port)
                return ManifestReply(self.envelope, now)
            case GetRoster():
                return self._reply_with_roster(message)
            case Report():
                return self._take_report(message, sender, now)
            case _:
                return Refusal("not_for_a_learner")

    def close(self, now: float) -> None:
        """Ends the round; what was accepted stays accepted."""
        self.state = State.ENDED

    # -- gathering -------------------------------------------------------------------------------------------------

    def _pull(self, to: Address, cluster: int | None, now: float) -> None:
        """Asks a peer what it knows of ``cluster``; of a stranger, whose cluster is unknown, its own record comes back
        whatever is asked. A stranger that does not answer is asked again: it may be its cluster's only contact."""
        known = self._clusters.get(cluster or 0)
        digest = Digest(self.opened.round_id, Topic.DIRECTORY, cluster or 0, b"" if known is None else known.have(), ())

        def offered(reply: AnyMessage | None, _reason: str, now: float) -> None:
            if reply is None and cluster is None:
                self._addresses.setdefault(to.peer_id, to)
            if isinstance(reply, Offer) and self.state is State.GATHERING:
                self._absorb(reply.records, cluster, now)

        self.send(to, digest, offered, now, now + SEND_SECONDS)

    def _absorb(self, envelopes: tuple[bytes, ...], pulled: int | None, now: float) -> None:
        news = 0
        for envelope in envelopes:
            if any(known.knows(envelope) for known in self._clusters.values()):
                continue
            try:
                entry: PeerEntry = open_record(
                    envelope,
                    keys=self._keys,
                    round_id=self.opened.round_id,
                    expires_by=self._deadlines.report,
                    now=now,
                )
                cluster = entry.content.cluster
                if cluster >= self.opened.clustering.count:
                    continue
                news += self._clusters.setdefault(cluster, GossipSet()).add(entry)
                self._addresses.pop(entry.signer, None)
            except ProtocolError as exc:
                about = getattr(exc, "detail", "") or str(exc)
                self.observe(Rejected(peer=self.name, at=now, about=about))
        if pulled is not None:
            self._quiet[pulled] = 0 if news else min(self._quiet.get(pulled, 0) + 1, 16)

    def _on_pull(self, now: float) -> None:
        """A few first contacts, and one member of each cluster whose last pulls were worth it."""
        for peer_id in [*self._addresses][:FIRST_CONTACTS_A_TICK]:
            self._pull(self._addresses.pop(peer_id), None, now)
        for cluster in self._clusters:
            if self._next_pull.get(cluster, 0.0) <= now:
                self._pull_from_members(cluster, 1, now)
                pause = self._period * min(1 << self._quiet.get(cluster, 0), SLOWEST_PULL)
                self._next_pull[cluster] = now + pause
        self._plan_ahead()
        self.set_alarm("pull", now + self._period)

    def _plan_ahead(self) -> None:
        """Plans for one cluster that seems whole. Planning takes up to a second for a few hundred members, and the plan
        of a size is remembered, so little of it is left for the deadline, when every peer wants its roster."""
        terms = self.opened.manifest
        for cluster, known in self._clusters.items():
            size = len(known)
            if self._quiet.get(cluster, 0) and size not in self._planned and size >= terms.minimum_size:
                self._planned.add(size)
                rosters.plan_for(size, terms)
                return

    def _pull_from_members(self, cluster: int, count: int, now: float) -> None:
        entries = list(self._clusters[cluster])
        for entry in self._rng.sample(entries, min(count, len(entries))):
            self._pull(address_of(entry), cluster, now)

    def _on_final_pull(self, now: float) -> None:
        self.clear_alarm("pull")
        for cluster in self._clusters:
            self._pull_from_members(cluster, FINAL_PULLS_A_CLUSTER, now)

    def _on_join_deadline(self, now: float) -> None:
        self.clear_alarm("pull")
        for cluster, known in sorted(self._clusters.items()):
            entries = sorted(known, key=lambda entry: entry.content.sort_key(entry.signer))
            members = [entry.signer for entry in entries]
            try:
                envelope, plan = rosters.make(self.opened, cluster=cluster, members=members, keys=self._keys)
            except LabelDPError as exc:  # too small to be private at all: its peers get no roster
                self.observe(Rejected(peer=self.name, at=now, about=f"cluster {cluster}: {exc}"))
                continue
            opened = rosters.open_roster(envelope, keys=self._keys, opened=self.opened, cluster=cluster)
            self.rosters[cluster] = ClusterRoster(
                envelope=envelope, digest=opened.digest, plan=plan, members=opened.members
            )
            self._cluster_of.update(dict.fromkeys(opened.members, cluster))
        self.state = State.ROSTERED

    def ordinal_of(self, peer_id: bytes) -> int:
        """The ordinal in the record of a rostered peer."""
        entry = self._clusters[self._cluster_of[peer_id]].get(peer_id)
        assert entry is not None
        return entry.content.ordinal

    def _reply_with_roster(self, message: GetRoster) -> Message:
        if message.round_id != self.opened.round_id:
            return Refusal("another_round")
        if self.state is State.GATHERING:
            return Refusal("not_yet", retry=True)
        roster = self.rosters.get(message.cluster)
        return Refusal("no_roster") if roster is None else RosterReply(roster.envelope)

    # -- accepting -------------------------------------------------------------------------------------------------

    def _on_closing_deadline(self, now: float) -> None:
        self.state = State.ACCEPTING

    def _take_report(self, message: Report, sender: bytes, now: float) -> Message:
        if message.round_id != self.opened.round_id:
            return self._reject("another_round", sender, now)
        if sender in self._receipts:
            digest, receipt = self._receipts[sender]
            return receipt if digest == reports.digest(message) else self._reject("second_report", sender, now)
        if self.state is not State.ACCEPTING:
            return Refusal("too_late") if self.state is State.ENDED else Refusal("not_yet", retry=True)
        cluster = self._cluster_of.get(sender)
        if cluster is None:
            return self._reject("not_in_roster", sender, now)
        if message.roster != self.rosters[cluster].digest:
            return self._reject("roster_mismatch", sender, now)
        try:
            content = reports.open_report(
                message,
                sender,
                keys=self._round_keys,
                dimension=self.opened.clustering.dimension,
                num_classes=len(self.opened.label_space),
            )
        except ProtocolError:
            return self._reject("bad_box", sender, now)
        ordinal = self.ordinal_of(sender)
        name: Name = ordinal if self.opened.manifest.study else sender.hex()
        self.reports[sender] = AcceptedReport(
            reporter=sender, ordinal=ordinal, cluster=cluster, features=content.features, label=content.label
        )
        self.persist(Accepted(peer=name, at=now, cluster=cluster, label=content.label))
        receipt = Receipt(reports.sign_receipt(message, sender, keys=self._keys))
        self._receipts[sender] = (reports.digest(message), receipt)
        return receipt

    @property
    def complete(self) -> bool:
        """Whether every rostered peer's report is accepted. The machine stays, to repeat receipts that got lost."""
        return self.state is State.ACCEPTING and len(self.reports) == len(self._cluster_of)

    def _reject(self, reason: str, sender: bytes, now: float) -> Refusal:
        about = f"report of {sender.hex()[:16]}: {reason}"
        self.observe(Rejected(peer=self.name, at=now, about=about))
        return Refusal(reason)

    def _on_end(self, now: float) -> None:
        self.close(now)
