"""A peer of one round, sans-IO: messages and ``now`` come in, effects go out.

Theory of operation. A round has four phases whose ends are in the manifest. Time alone moves a peer from one to the
next; whatever is missing by then is missing.

    state       until      what the peer does
    JOINING     join       gossips records of its cluster
    COMMITTING  (roster)   fetches the learner's roster and checks it; pulls records it lacks
    EXCHANGING  exchange   answers every ask with its flipped label, asks its one mate
    CLOSING     closing    gossips who is ready and who holds an answer
    REPORTING   report     sends its report at a uniformly random time, so that arrival tells nothing
    ENDED                  has its one outcome; everything about the exchange is erased

Nothing here depends on the label but the one sealed bit: not whether a message is sent, nor when, nor how long it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import (
    ClusterTooSmall,
    ConfigurationError,
    LocalProtocolError,
    PrivacyError,
    ProtocolError,
)
from p2p_labeldp.facts import (
    Answered,
    Asked,
    Committed,
    Ended,
    Flipped,
    Gathered,
    Held,
    Joined,
    Name,
    Outcome,
    Ready,
    Reason,
    Rejected,
    Reported,
)
from p2p_labeldp.labels import Example, LabelSpace
from p2p_labeldp.protocol import dissemination, report, roster
from p2p_labeldp.protocol.closing import Closing
from p2p_labeldp.protocol.directory import Directory, PeerRecord, address_of, sign_record
from p2p_labeldp.protocol.dissemination import Dissemination
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.exchange import Exchange
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.messages import (
    MAX_ENVELOPE_BYTES,
    Answer,
    AnyMessage,
    Ask,
    Contradiction,
    Digest,
    Done,
    GetRoster,
    Message,
    Push,
    Receipt,
    Refusal,
    Report,
    RosterReply,
)
from p2p_labeldp.protocol.policy import Policy
from p2p_labeldp.protocol.roster import OpenedRoster
from p2p_labeldp.randomness import Randomness

GRACE_SECONDS = 5.0  # after the report deadline: for a receipt on its way; then the round is over whatever happened
NEWCOMER_PERIODS = 2  # before the join deadline: a record that comes later may reach some mates, but not the learner,
# before the snapshot, and everybody it did reach would have to refuse the roster; so whoever is late keeps silent
ASK_TRIES = 4  # in the exchange phase, if nothing comes back
ROSTER_SHARE = 0.4  # of the exchange phase, over which the peers fetch their rosters
ASK_SHARES = 0.5, 0.75  # of the exchange phase, between which they ask; whoever is asked should have its roster


class State(Enum):
    """Where a peer stands in the round."""

    JOINING = auto()
    COMMITTING = auto()
    EXCHANGING = auto()
    CLOSING = auto()
    REPORTING = auto()
    ENDED = auto()


TRANSITIONS = {
    (State.JOINING, "join deadline"): State.COMMITTING,
    (State.COMMITTING, "roster accepted"): State.EXCHANGING,
    (State.EXCHANGING, "exchange deadline"): State.CLOSING,
    (State.CLOSING, "may report"): State.REPORTING,
    **{(state, "outcome"): State.ENDED for state in (State.JOINING, State.COMMITTING, State.EXCHANGING)},
    **{(state, "outcome"): State.ENDED for state in (State.CLOSING, State.REPORTING)},
}


@dataclass(slots=True)
class Part:
    """A peer's part in the round, from the moment it has accepted a roster."""

    roster: OpenedRoster
    exchange: Exchange
    closing: Closing
    report: Report | None = None
    last_failure: Reason = Reason.MATE_TIMEOUT


class Peer(Machine):
    """One peer in one round.

    Args:
        opened: The verified manifest.
        example: Features and label; the label leaves only flipped and sealed.
        label_space: The peer's own, compared with the manifest's before the label is looked at.
        keys: Signs, verifies, seals.
        randomness: The peer's coins.
        address: Where this peer is reached.
        learner: Where the learner is reached.
        contacts: First contacts.
        ordinal: Index of the peer in a study; 0 in a deployment.
        study: Whether this peer takes part in studies, and in nothing else.
        sequence: Sequence number of its record; larger than in any earlier start with the same key in this round.
        policy: The peer's limits; label space and learner are pinned in it if it names none.
        ledger: What has left of its labels before; empty if not given.

    Raises:
        ConfigurationError: The label is none of the peer's own label space. Whatever else the manifest and the peer
            disagree about is a refusal, with an outcome: the manifest is the learner's doing.
    """

    def __init__(
        self,
        *,
        opened: OpenedManifest,
        example: Example,
        label_space: LabelSpace,
        keys: KeyRing,
        randomness: Randomness,
        address: Address,
        learner: Address,
        contacts: tuple[Address, ...],
        ordinal: int = 0,
        study: bool = False,
        sequence: int = 0,
        policy: Policy | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        super().__init__()
        pinned = (policy or Policy()).pinned(classes=label_space.classes, learner=learner.peer_id)
        self._unwilling = disagreement(opened, policy=pinned, dimension=len(example.features), study=study)
        if self._unwilling is None and not 0 <= example.label < len(label_space):
            raise ConfigurationError(f"not one of the {len(label_space)} classes of the label space", field="label")
        self.state = State.JOINING
        self.outcome: Ended | None = None
        self.name: Name = ordinal if study else address.peer_id.hex()
        self.cluster = 0 if self._unwilling else int(opened.clustering.assign(example.features)[0])
        self.directory = Directory(
            cluster=self.cluster,
            clusters=opened.clustering.count,
            keys=keys,
            round_id=opened.round_id,
            expires_by=opened.manifest.deadlines.report,
        )
        self._opened = opened
        self._deadlines = opened.manifest.deadlines
        self._period = opened.manifest.gossip_period
        self._example = example
        self._keys = keys
        self._randomness = randomness
        self._rng = randomness.gossip()
        self._learner = learner
        self._study = study
        self._policy = pinned
        self._ledger = Ledger() if ledger is None else ledger
        record = PeerRecord(
            round_id=opened.round_id,
            cluster=self.cluster,
            host=address.host,
            port=address.port,
            sealing_key=keys.sealing_public,
            sequence=sequence,
            expires=self._deadlines.report,
            ordinal=ordinal,
        )
        own = sign_record(record, keys)
        self.directory.absorb((own,), 0.0)
        self._gossip = Dissemination(
            machine=self,
            name=self.name,
            directory=self.directory,
            own=own,
            round_id=opened.round_id,
            learner=learner.peer_id,
            contacts=tuple(contact for contact in contacts if contact.peer_id != keys.peer_id),
            enough=opened.manifest.minimum_size,
            period=self._period,
            rng=self._rng,
            on_news=self._on_news,
            on_roster=self._compare_rosters,
            on_proof=self._take_proof,
        )
        self._pending: OpenedRoster | None = None  # signed by the learner, not yet accepted
        self._must_list: frozenset[bytes] = frozenset()
        self._started = self._joined_late = self._silent = self._proven = False
        self._part: Part | None = None
        self._handlers = {
            dissemination.ALARM: self._on_gossip,
            "snapshot": self._on_snapshot,
            "join": self._on_join_deadline,
            "roster": self._on_fetch_roster,
            "ask": self._on_ask,
            "exchange": self._on_exchange_deadline,
            "closing": self._on_closing_deadline,
            "report": self._on_report,
            "end": self._on_end,
        }

    # -- the contract with a host ----------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the peer has its outcome."""
        return self.state is State.ENDED

    def start(self, now: float) -> None:
        """Joins the round ``now`` seconds after its opening.

        Raises:
            LocalProtocolError: It has joined before.
        """
        if self._started:
            raise LocalProtocolError("a peer joins a round once")
        self._started = True
        d = self._deadlines
        if self._unwilling is not None:
            self._refuse(Reason.POLICY, self._unwilling, now)
        elif (spent := self._ledger.against_round(self._example.label_id, round_id=self._opened.round_id)) is not None:
            self._refuse(Reason.LABEL_SPENT, spent, now)
        elif now > d.join - NEWCOMER_PERIODS * self._period:
            self._end(Outcome.LATE, None, now)
        self._silent = self.over  # not even its record leaves: whoever got it would count on this peer
        if self._silent:
            return
        self.observe(Joined(peer=self.name, at=now, cluster=self.cluster))
        self.set_alarm(dissemination.ALARM, now + self._rng.random() * self._period)
        self.set_alarm("snapshot", d.join - self._period / 2)
        self.set_alarm("join", d.join)
        self.set_alarm("exchange", d.exchange)
        self.set_alarm("closing", d.closing)
        self.set_alarm("end", d.report + GRACE_SECONDS)

    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message:
        """Replies to a message of an authenticated sender."""
        match message:
            case _ if self._silent:
                reply: Message = Refusal("takes_no_part")
            case Digest():
                reply = self._gossip.reply_to_digest(message, sender, now)
            case Push():
                reply = self._gossip.reply_to_push(message, now)
            case Ask():
                reply = self._reply_to_ask(message, sender, now)
            case GetRoster():
                reply = self._show_roster(message)
            case Contradiction():
                self._take_proof(message, now)
                reply = Done()
            case _:
                reply = Refusal("not_for_a_peer")
        if isinstance(reply, Refusal) and not reply.retry:
            about = f"{type(message).__name__} of {sender.hex()[:16]}: {reply.reason}"
            self.observe(Rejected(peer=self.name, at=now, about=about))
        return reply

    def close(self, now: float) -> None:
        """Ends the round early: whoever has not reported abstains; a report on its way may have been accepted."""
        if self._part is not None and self._part.report is not None:
            self._end(Outcome.FAILED, Reason.NO_RECEIPT, now)
        elif not self.over:
            self._end(Outcome.ABSTAINED, Reason.NOT_READY, now)

    # -- small tools -----------------------------------------------------------------------------------------------

    def _go(self, event: str) -> None:
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            raise LocalProtocolError(f"{event} while {self.state.name}") from None

    @property
    def _my(self) -> Part:
        assert self._part is not None  # states from EXCHANGING on are only reached with a part
        return self._part

    def _again(self, alarm: str, now: float, until: float) -> None:
        """Tries a failed request again soon, as long as its phase lasts."""
        at = now + self._period * (0.25 + 0.5 * self._rng.random())
        if at < until:
            self.set_alarm(alarm, at)

    def _end(self, outcome: Outcome, reason: Reason | None, now: float) -> None:
        self._go("outcome")
        self.outcome = Ended(peer=self.name, at=now, outcome=outcome, reason=reason)
        self.persist(self.outcome)
        if self._part is not None:
            self._part.exchange.erase()
            self._part.report = None

    def _refuse(self, reason: Reason, about: str, now: float) -> None:
        self.observe(Rejected(peer=self.name, at=now, about=about))
        self._end(Outcome.REFUSED, reason, now)

    def _mistrust(self, exc: ProtocolError, now: float) -> None:
        self.observe(Rejected(peer=self.name, at=now, about=getattr(exc, "detail", "") or str(exc)))

    # -- joining: who is there -------------------------------------------------------------------------------------

    def _on_gossip(self, now: float) -> None:
        if self.state in (State.JOINING, State.COMMITTING):
            self._gossip.tick_directory(now)
            if self._pending is not None:  # a record is missing, and the mates that have it are at rest by now
                self._gossip.full_pace(now, within=self._deadlines.closing - now)
        elif self.state is State.CLOSING:
            self._gossip.tick_closing(self._my.roster.members, now)

    def _on_news(self, now: float) -> None:
        if self.state is State.COMMITTING:
            self._try_to_commit(now)

    def _on_snapshot(self, now: float) -> None:
        """What is known half a period before the deadline has to be in the roster."""
        self._must_list = frozenset(entry.signer for entry in self.directory.mates)
        self.observe(Gathered(peer=self.name, at=now, cluster=self.cluster, records=len(self._must_list)))

    # -- committing: the roster ------------------------------------------------------------------------------------

    def _on_join_deadline(self, now: float) -> None:
        self._go("join deadline")
        span = self._deadlines.exchange - self._deadlines.join
        self.set_alarm("roster", now + span * ROSTER_SHARE * self._rng.random())

    def _on_fetch_roster(self, now: float) -> None:
        request = GetRoster(self._opened.round_id, self.cluster)
        self.send(self._learner, request, self._take_roster, now, self._deadlines.exchange)

    def _take_roster(self, reply: AnyMessage | None, _reason: str, now: float) -> None:
        if self.state is not State.COMMITTING:
            return
        if reply == Refusal("no_roster") and not self._joined_late and len(self.directory.mates) < 2:
            self._end(Outcome.ABSTAINED, Reason.CLUSTER_TOO_SMALL, now)  # the learner signs none for a cluster of one
            return
        if not isinstance(reply, RosterReply):
            self._again("roster", now, self._deadlines.exchange)
            return
        try:
            self._pending = roster.open_roster(reply.roster, keys=self._keys, opened=self._opened, cluster=self.cluster)
        except ProtocolError as exc:
            self._mistrust(exc, now)
            self._end(Outcome.REFUSED, Reason.ROSTER_MISMATCH, now)
            return
        self._try_to_commit(now)
        if self.state is State.COMMITTING:
            self._gossip.complete_roster = True
            self._gossip.full_pace(now, within=self._deadlines.exchange - now)

    def _try_to_commit(self, now: float) -> None:
        """Accepts the learner's roster once a valid record of everyone in it is here, or refuses it."""
        pending = self._pending
        if pending is None:
            return
        members = frozenset(pending.members)
        must_list = {signer for signer in self._must_list if signer in self.directory.mates}  # not struck out since
        if self._keys.peer_id not in members or not must_list <= members:
            self._end(Outcome.REFUSED, Reason.ROSTER_MISMATCH, now)
            return
        entries = [entry for member in pending.members if (entry := self.directory.find(member)) is not None]
        if len(entries) < len(members):
            return  # gossip goes on for the missing records; the exchange deadline ends the wait
        order = [entry.content.sort_key(entry.signer) for entry in entries]
        if order != sorted(order):
            self._end(Outcome.REFUSED, Reason.ROSTER_MISMATCH, now)
            return
        terms = pending.roster
        try:
            roster.check_guarantee(terms, len(members), self._opened)
        except ClusterTooSmall as exc:
            self.observe(Rejected(peer=self.name, at=now, about=str(exc)))
            self._end(Outcome.ABSTAINED, Reason.CLUSTER_TOO_SMALL, now)
            return
        except (PrivacyError, ConfigurationError) as exc:
            self._refuse(Reason.POLICY, f"policy: {exc}", now)
            return
        label_id, place = self._example.label_id, self._place_of(pending)
        about = self._policy.against_roster(
            size=len(members),
            holding_minimum=terms.holding_minimum,
            flip_probability=terms.flip_probability,
            num_classes=len(self._opened.label_space),
            again=self._ledger.elsewhere(label_id, **place),
        )
        if about is not None:
            self._refuse(Reason.POLICY, about, now)
            return
        about = self._ledger.against_roster(label_id, flip_probability=terms.flip_probability, **place)
        if about is not None:
            self._refuse(Reason.LABEL_SPENT, about, now)
            return
        self._commit(pending, now)

    def _place_of(self, accepted: OpenedRoster) -> dict[str, bytes]:
        """Where a label leaves, as the ledger has it."""
        return {"round_id": self._opened.round_id, "roster": accepted.digest}

    def _commit(self, accepted: OpenedRoster, now: float) -> None:
        self._go("roster accepted")
        exchange = Exchange(
            roster=accepted,
            example=self._example,
            num_classes=len(self._opened.label_space),
            keys=self._keys,
            randomness=self._randomness,
            round_key=self._opened.manifest.round_key,
            flipped=self._ledger.flipped(self._example.label_id),
        )
        self._part = Part(roster=accepted, exchange=exchange, closing=Closing(roster=accepted, keys=self._keys))
        self._gossip.closing = self._part.closing
        self.clear_alarm(dissemination.ALARM)
        self.observe(Committed(peer=self.name, at=now, cluster=self.cluster, size=len(accepted.members)))
        join, span = self._deadlines.join, self._deadlines.exchange - self._deadlines.join
        first, last = ASK_SHARES
        self.set_alarm("ask", max(now, join + span * (first + (last - first) * self._rng.random())))

    # -- exchanging ------------------------------------------------------------------------------------------------

    def _name_of(self, peer_id: bytes) -> Name:
        entry = self.directory.find(peer_id)
        return entry.content.ordinal if self._study and entry is not None else peer_id.hex()

    def _on_ask(self, now: float) -> None:
        exchange = self._my.exchange
        if exchange.mate is None:
            self.persist(Asked(peer=self.name, at=now, mate=self._name_of(exchange.draw())))
        assert exchange.mate is not None
        entry = self.directory.find(exchange.mate)
        if entry is None:  # struck out for equivocation since: like any mate that cannot be reached
            self._my.last_failure = Reason.MATE_UNREACHABLE
            return
        patience = (self._deadlines.exchange - self._deadlines.join) / ASK_TRIES
        until = min(self._deadlines.exchange, now + patience)
        self.send(address_of(entry), exchange.ask(), self._take_answer, now, until)

    def _take_answer(self, reply: AnyMessage | None, reason: str, now: float) -> None:
        if self.state is not State.EXCHANGING:
            return
        match reply:
            case Answer():
                self._my.exchange.take(reply)
                self.observe(Held(peer=self.name, at=now))
            case None:
                failure = Reason.MATE_UNREACHABLE if reason == "unreachable" else Reason.MATE_TIMEOUT
                self._my.last_failure = failure
                self._again("ask", now, self._deadlines.exchange)
            case Refusal(retry=True):
                self._again("ask", now, self._deadlines.exchange)
            case _:
                pass  # refused for good; the exchange deadline finds nothing held

    def _reply_to_ask(self, message: Ask, sender: bytes, now: float) -> Message:
        if message.round_id != self._opened.round_id:
            return Refusal("another_round")
        if self.state in (State.JOINING, State.COMMITTING):
            return Refusal("not_ready", retry=True)
        if self.state is not State.EXCHANGING:
            return Refusal("too_late")
        exchange = self._my.exchange
        first = not exchange.has_answered(sender)
        answer = exchange.answer(sender, message)
        if isinstance(answer, Answer):
            self._spend(now)
            if first:
                self.persist(Answered(peer=self.name, at=now, asker=self._name_of(sender)))
        return answer

    def _spend(self, now: float) -> None:
        """The label is spent before the first answer leaves, or at the latest with the exchange; and once."""
        accepted = self._my.roster
        if self._ledger.holds(self._example.label_id, **self._place_of(accepted)):
            return
        release = Flipped(
            peer=self.name,
            at=now,
            label_id=self._example.label_id,
            flip_probability=accepted.roster.flip_probability,
            flipped_label=self._my.exchange.flip(),
            round_id=self._opened.round_id.hex(),
            roster=accepted.digest.hex(),
        )
        self._ledger.enter(release)
        self.persist(release)

    # -- two rosters -----------------------------------------------------------------------------------------------

    def _show_roster(self, message: GetRoster) -> Message:
        """To a mate that wonders whether it has the same."""
        if message.round_id != self._opened.round_id:
            return Refusal("another_round")
        if self._part is None or message.cluster != self.cluster:
            return Refusal("no_roster", retry=True)
        return RosterReply(self._part.roster.envelope)

    def _compare_rosters(self, envelope: bytes, now: float) -> None:
        """A mate has shown its roster: if it is another one of the learner's, everybody has to know."""
        if len(envelope) <= MAX_ENVELOPE_BYTES // 2:
            self._take_proof(Contradiction(self._my.roster.envelope, envelope), now)

    def _take_proof(self, proof: Contradiction, now: float) -> None:
        """Two rosters of one cluster: nobody knows which of its mates count, so nothing more leaves."""
        if self._proven or not roster.contradict(
            proof.first, proof.second, keys=self._keys, opened=self._opened, cluster=self.cluster
        ):
            return
        self._proven = True
        members = self._part.roster.members if self._part is not None else ()
        self._gossip.spread(proof, members, now)
        if not self.over and (self._part is None or self._part.report is None):
            self._refuse(Reason.ROSTER_MISMATCH, "the learner signed two rosters for one cluster", now)

    # -- closing and report ----------------------------------------------------------------------------------------

    def _on_exchange_deadline(self, now: float) -> None:
        if self.state is State.COMMITTING:
            if self._pending is None:  # the learner, or its roster, never came; or this peer came too late to ask
                self._end(Outcome.LATE if self._joined_late else Outcome.UNREACHABLE, None, now)
            else:
                self._end(Outcome.REFUSED, Reason.ROSTER_MISMATCH, now)
            return
        self._go("exchange deadline")
        self.clear_alarm("ask")
        exchange = self._my.exchange
        exchange.deadline()
        self._spend(now)  # unasked too: who comes to the next round with an unspent label would tell that nobody asked
        self.persist(Ready(peer=self.name, at=now, holding=exchange.holding))
        self._my.closing.declare(holding=exchange.holding)
        self._gossip.full_pace(now, within=self._deadlines.closing - now)

    def _on_closing_deadline(self, now: float) -> None:
        exchange = self._my.exchange
        self.clear_alarm(dissemination.ALARM)
        reason = self._my.closing.verdict(me=self._keys.peer_id, mate=exchange.mate, holding=exchange.holding)
        if reason is not None:
            self._end(Outcome.ABSTAINED, self._my.last_failure if reason is Reason.MATE_TIMEOUT else reason, now)
            return
        self._go("may report")
        closing, window = self._deadlines.closing, self._deadlines.report - self._deadlines.closing
        self.set_alarm("report", closing + window * self._randomness.report_delay())

    def _on_report(self, now: float) -> None:
        part = self._my
        if part.report is None:
            assert part.exchange.box is not None  # the verdict was: holding
            part.report = report.make(
                self._example.features,
                part.exchange.box,
                roster=part.roster,
                keys=self._keys,
                round_key=self._opened.manifest.round_key,
            )
            self.persist(Reported(peer=self.name, at=now))
        self.send(self._learner, part.report, self._take_receipt, now, self._deadlines.report + GRACE_SECONDS)

    def _take_receipt(self, reply: AnyMessage | None, _reason: str, now: float) -> None:
        sent = self._my.report
        if self.state is not State.REPORTING or sent is None:
            return
        match reply:
            case Receipt():
                try:
                    report.check_receipt(reply.receipt, sent, keys=self._keys, learner=self._opened.learner)
                except ProtocolError as exc:
                    self._mistrust(exc, now)
                    self._end(Outcome.FAILED, Reason.NO_RECEIPT, now)
                else:
                    self._end(Outcome.REPORTED, None, now)
            case Refusal(reason="bad_box"):
                self._end(Outcome.INVALID, Reason.BAD_BOX, now)
            case Refusal(retry=False):
                self._end(Outcome.FAILED, Reason.NO_RECEIPT, now)
            case _:
                self._again("report", now, self._deadlines.report + GRACE_SECONDS)

    def _on_end(self, now: float) -> None:
        self._end(Outcome.FAILED, Reason.NO_RECEIPT, now)


def disagreement(opened: OpenedManifest, *, policy: Policy, dimension: int, study: bool) -> str | None:
    """Why a peer takes no part in a round, as far as the manifest tells; it is never given the label."""
    if (about := policy.against_manifest(opened)) is not None:
        return about
    if opened.manifest.study != study:
        kinds = {True: "a study", False: "a deployment"}
        return f"policy: the round is {kinds[opened.manifest.study]}, this peer belongs to {kinds[study]}"
    if dimension != opened.clustering.dimension:
        return f"policy: {opened.clustering.dimension} features instead of {dimension}"
    return None
