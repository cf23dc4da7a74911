"""The learner's machine of one round, sans-IO: hands out the manifest, signs rosters, accepts reports.

Theory of operation. Until the join deadline it pulls peer records as a peer does, and serves none: it learns of a first
address from whoever asks for the manifest. At the deadline it signs one roster for each cluster. From the closing
deadline on it accepts one report of each member of a roster and gives a signed receipt; a repeat gets the same receipt.

    state       until             what it answers
    GATHERING   join deadline     GetManifest
    ROSTERED    closing deadline  GetManifest, GetRoster
    ACCEPTING   report deadline   GetManifest, GetRoster, Report
    ENDED

What it persisted it has again after a restart: the addresses it heard of, the rosters, the reports and their receipts.
Records are pulled anew; if the join deadline passed meanwhile, the rosters are signed a few periods later than planned.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import LabelDPError, ProtocolError
from p2p_labeldp.facts import SHORT_ID, Fact, Name, Opened, Rejected
from p2p_labeldp.protocol import report as reports
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.census import Census
from p2p_labeldp.protocol.cluster_roster import ClusterRoster
from p2p_labeldp.protocol.directory import PeerEntry, address_of, open_record
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.first_contacts import CAPACITY, FirstContacts
from p2p_labeldp.protocol.gossip import draw_salt
from p2p_labeldp.protocol.kept import AcceptedFrom, Closed, Heard, Rostered, SignedRoster, exported
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.meeting import hubs, meeting_point
from p2p_labeldp.protocol.messages import (
    ROUND_START_BYTES,
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

FIRST_CONTACTS_A_TICK = 8  # at least
ASKED_A_CLUSTER = 3  # first contacts a tick for each cluster, until a record of every one is here
SEND_SECONDS = 5.0
RECOVERY_PERIODS = 3  # after a restart, in which the records that were lost are pulled again
SLOWEST_PULL = 4  # periods between pulls that keep finding nothing new


class State(Enum):
    """Where the round stands."""

    GATHERING = auto()
    ROSTERED = auto()
    ACCEPTING = auto()
    ENDED = auto()


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
        log: What it persisted in this round before, the oldest first.
    """

    def __init__(
        self,
        *,
        envelope: bytes,
        opened: OpenedManifest,
        keys: KeyRing,
        round_keys: KeyRing,
        rng: random.Random,
        log: Iterable[Fact] = (),
    ) -> None:
        super().__init__()
        self.state = State.GATHERING
        self.opened = opened
        self.name: Name = "learner"
        self.whole = False  # whether the round came to its own end
        self.rosters: dict[int, ClusterRoster] = {}
        self.reports: dict[bytes, AcceptedReport] = {}
        self.envelope = envelope
        self._keys = keys
        self._round_keys: KeyRing | None = round_keys
        self._rng = rng
        self._deadlines = opened.manifest.deadlines
        self._period = opened.manifest.gossip_period
        self._census = Census()
        self._contacts = FirstContacts(rng)  # who asked for the manifest
        self._quiet: dict[int, int] = {}
        self._planned: set[int] = set()
        self._next_pull: dict[int, float] = {}
        self._heard: list[tuple[bytes, str, int]] = []  # addresses not yet persisted
        self._kept_heard = 0
        self._ordinals: dict[bytes, int] = {}  # of rostered peers
        self._cluster_of: dict[bytes, int] = {}
        self._receipts: dict[bytes, tuple[bytes, Receipt]] = {}
        self._handlers = {
            "pull": self._on_pull,
            "final pull": self._on_final_pull,
            "join": self._on_join_deadline,
            "closing": self._on_closing_deadline,
            "end": self._on_end,
        }
        self._log = list(log)

    @classmethod
    def restore(cls, facts: Iterable[Fact], **brought: Any) -> Collector:
        """The collector that persisted ``facts``.

        Args:
            facts: Its log, the oldest first.
            brought: What its constructor takes.
        """
        return cls(log=facts, **brought)

    # -- the contract with a host ----------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the round is over."""
        return self.state is State.ENDED

    @property
    def records(self) -> int:
        return len(self._census)

    def start(self, now: float) -> None:
        """Opens the round, or takes it up where it was."""
        d = self._deadlines
        if not self._log:
            self.observe(self._opening(now))
        for fact in self._log:
            self._recall(fact)
        if self._log and isinstance(last := self._log[-1], Rostered):  # perhaps it died before it told of them
            self._tell(last.at)
        if self.over:
            return
        if self.state is State.GATHERING:
            again = now if self._log else now + self._period
            join = max(d.join, now + RECOVERY_PERIODS * self._period) if self._log else d.join
            self.set_alarm("pull", again)
            self.set_alarm("final pull", join - self._period / 2)
            self.set_alarm("join", join)
        self._log = []
        self.set_alarm("closing", d.closing)
        self.set_alarm("end", d.report + GRACE_SECONDS)

    def _opening(self, at: float) -> Opened:
        d = self._deadlines
        ends = (d.join, d.exchange, d.closing, d.report)
        return Opened(peer=self.name, at=at, id=self._keys.peer_id.hex()[:SHORT_ID], deadlines=ends)

    def _recall(self, fact: Fact) -> None:
        match fact:
            case Heard():
                for peer_id, host, port in fact.addresses:
                    self._contacts.add(Address(peer_id, host, port))
            case Rostered():
                for signed in fact.rosters:
                    self._enter(signed)
                self.state = State.ROSTERED
                self._heard = []
            case AcceptedFrom():
                self.reports[fact.reporter] = AcceptedReport(
                    reporter=fact.reporter,
                    ordinal=fact.ordinal,
                    cluster=fact.cluster,
                    features=fact.features,
                    label=fact.label,
                )
                self._receipts[fact.reporter] = (fact.report, Receipt(fact.receipt))
                self.state = State.ACCEPTING
            case Closed():
                self._closed(fact.at)
            case _:
                pass

    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message:
        """Replies to a message of an authenticated sender."""
        self.wake(now)  # a message may come in before the timer that is due
        match message:
            case GetManifest():
                if self.state is State.GATHERING and not self._census.has(sender):
                    noted = self._contacts.add(Address(sender, message.host, message.port))
                    if noted and len(self._heard) < CAPACITY:
                        self._heard.append((sender, message.host, message.port))
                        if self._kept_heard < FIRST_CONTACTS_A_TICK:  # on these few all the others depend
                            self._keep_heard(now)
                return ManifestReply(self.envelope, now)
            case GetRoster():
                return self._reply_with_roster(message)
            case Report():
                return self._take_report(message, sender, now)
            case _:
                return Refusal("not_for_a_learner")

    def close(self, now: float) -> None:
        """Ends the round; what was accepted stays accepted. The round's key is dropped: no box opens any more."""
        if self.state is not State.ENDED:
            self._closed(now)
            self.persist(Closed(peer=self.name, at=now, manifest=self.envelope))

    def _closed(self, at: float) -> None:
        everything = self.state is State.ACCEPTING and len(self.reports) == len(self._cluster_of)
        self.whole = everything or at >= self._deadlines.report
        self.state = State.ENDED
        self._round_keys = None

    # -- gathering -------------------------------------------------------------------------------------------------

    def _pull(self, to: Address, cluster: int | None, now: float) -> None:
        """Asks a peer what it knows of ``cluster``; of a stranger, whose cluster is unknown, its own record comes back
        whatever is asked. A stranger that does not answer is asked again: it may be its cluster's only contact."""
        known = self._census.of(cluster or 0)
        salt = draw_salt(self._rng)
        have = b"" if known is None else known.have(salt)
        digest = Digest(self.opened.round_id[:ROUND_START_BYTES], Topic.DIRECTORY, cluster or 0, have, (), salt)

        def offered(reply: AnyMessage | None, _reason: str, now: float) -> None:
            if reply is None and cluster is None:
                self._contacts.unheard(to)
            if isinstance(reply, Offer) and self.state is State.GATHERING:
                self._absorb(reply.records, cluster, now)

        self.send(to, digest, offered, now, now + SEND_SECONDS)

    def _absorb(self, envelopes: tuple[bytes, ...], pulled: int | None, now: float) -> None:
        news = 0
        for envelope in envelopes:
            try:
                entry: PeerEntry = open_record(
                    envelope,
                    keys=self._keys,
                    round_id=self.opened.round_id,
                    expires_by=self._deadlines.report,
                    now=now,
                    enrolment_key=self.opened.manifest.enrolment_key,
                )
                if self._census.knows(entry) or entry.content.cluster >= self.opened.clustering.count:
                    continue
                news += self._census.add(entry)
                self._contacts.remove(entry.signer)
            except ProtocolError as exc:
                about = getattr(exc, "detail", "") or str(exc)
                self.observe(Rejected(peer=self.name, at=now, about=about))
        if pulled is not None:
            self._quiet[pulled] = 0 if news else min(self._quiet.get(pulled, 0) + 1, 16)

    def _on_pull(self, now: float) -> None:
        """A few first contacts, or some for every cluster while nobody is known of one: so 95 % of those not found yet
        are in a tick, however many they are. And one member of each cluster whose last pulls were worth it."""
        self._keep_heard(now)  # all since the last tick at once: a restart that knows most of them finds the others
        clusters = self.opened.clustering.count
        wanted = ASKED_A_CLUSTER * clusters if len(list(self._census)) < clusters else 0
        for contact in self._contacts.take(max(FIRST_CONTACTS_A_TICK, wanted)):
            self._pull(contact, None, now)
        for cluster in self._census:
            if self._next_pull.get(cluster, 0.0) <= now:
                self._pull(address_of(self._rng.choice(self._census.members(cluster))), cluster, now)
                pause = self._period * min(1 << self._quiet.get(cluster, 0), SLOWEST_PULL)
                self._next_pull[cluster] = now + pause
        self._plan_ahead()
        self.set_alarm("pull", now + self._period)

    def _keep_heard(self, now: float) -> None:
        if self._heard:
            self.persist(Heard(peer=self.name, at=now, addresses=tuple(self._heard)))
            self._kept_heard += len(self._heard)
            self._heard = []

    def _plan_ahead(self) -> None:
        """Plans for one cluster that seems whole. Planning takes up to a second for a few hundred members, and the plan
        of a size is remembered, so little of it is left for the deadline, when every peer wants its roster."""
        terms = self.opened.manifest
        for cluster in self._census:
            size = len(self._census.members(cluster))
            if self._quiet.get(cluster, 0) and size not in self._planned and size >= terms.minimum_size:
                self._planned.add(size)
                rosters.plan_for(size, terms)
                return

    def _on_final_pull(self, now: float) -> None:
        """From each cluster's hubs, who should have heard of everybody, and from any member, in case that they lie."""
        self.clear_alarm("pull")
        for cluster in self._census:
            members = {entry.signer: entry for entry in self._census.members(cluster)}
            chosen = hubs(members, meeting_point(self.opened.round_id, cluster))
            rest = [member for member in members if member not in chosen]
            for member in (*chosen, *self._rng.sample(rest, min(1, len(rest)))):
                self._pull(address_of(members[member]), cluster, now)

    def _on_join_deadline(self, now: float) -> None:
        self.clear_alarm("pull")
        self._heard = []
        signed = []
        for cluster in sorted(self._census):
            entries = sorted(self._census.members(cluster), key=lambda entry: entry.content.sort_key(entry.signer))
            members = [entry.signer for entry in entries]
            try:
                envelope, _ = rosters.make(self.opened, cluster=cluster, members=members, keys=self._keys)
            except LabelDPError as exc:  # too small to be private at all: its peers get no roster
                self.observe(Rejected(peer=self.name, at=now, about=f"cluster {cluster}: {exc}"))
                continue
            ordinals = tuple(entry.content.ordinal for entry in entries)
            signed.append(SignedRoster(cluster, envelope, ordinals, self._census.proofs(cluster)))
        self.persist(Rostered(peer=self.name, at=now, rosters=tuple(signed)))
        for one in signed:
            self._enter(one)
        self._tell(now)
        self.state = State.ROSTERED

    def _tell(self, at: float) -> None:
        """States the rosters signed at ``at``; after a restart perhaps once more, and then in the same words."""
        for roster in self.rosters.values():
            for fact in self._about(roster, at):
                self.observe(fact)

    def _about(self, roster: ClusterRoster, at: float) -> Iterator[Fact]:
        return roster.facts(by=self.name, at=at, name_of=self.name_of)

    def retell(self, log: Iterable[Fact]) -> Iterator[Fact]:
        """What it told in earlier lives, of all that its log still knows: for who keeps the round and heard the last
        life only. To be asked of a collector that has started."""
        known = list(log)
        if known:
            yield self._opening(0.0)
        for fact in known:
            match fact:
                case Rostered():
                    for signed in fact.rosters:
                        yield from self._about(self.rosters[signed.cluster], fact.at)
                case AcceptedFrom():
                    yield from filter(None, [exported(fact)])
                case _:
                    pass

    def name_of(self, peer_id: bytes) -> Name:
        """How facts call a member of a roster."""
        return self._ordinals[peer_id] if self.opened.manifest.study else peer_id.hex()

    def _enter(self, signed: SignedRoster) -> None:
        roster = ClusterRoster.of(signed, keys=self._keys)
        self.rosters[signed.cluster] = roster
        self._cluster_of.update(dict.fromkeys(roster.members, signed.cluster))
        self._ordinals.update(zip(roster.members, signed.ordinals, strict=True))

    def _reply_with_roster(self, message: GetRoster) -> Message:
        if message.round_id != self.opened.round_id:
            return Refusal("another_round")
        if self.state is State.GATHERING:
            return Refusal("not_yet", retry=True)
        roster = self.rosters.get(message.cluster)
        return Refusal("no_roster") if roster is None else RosterReply(roster.envelope, roster.proofs)

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
        assert self._round_keys is not None  # it goes with the end of the round
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
        ordinal, name = self._ordinals[sender], self.name_of(sender)
        self.reports[sender] = AcceptedReport(
            reporter=sender, ordinal=ordinal, cluster=cluster, features=content.features, label=content.label
        )
        digest, receipt = reports.digest(message), Receipt(reports.sign_receipt(message, sender, keys=self._keys))
        self._receipts[sender] = (digest, receipt)
        self.persist(
            AcceptedFrom(
                peer=name,
                at=now,
                cluster=cluster,
                label=content.label,
                reporter=sender,
                ordinal=ordinal,
                features=content.features,
                report=digest,
                receipt=receipt.receipt,
            )
        )
        return receipt

    def receipt_of(self, reporter: bytes) -> bytes:
        """The receipt that was given for an accepted report."""
        return self._receipts[reporter][1].receipt

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
