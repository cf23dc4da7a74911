"""A peer of one round, sans-IO: messages and ``now`` come in, effects go out.

``participant`` has the theory of operation, the states and the table; each phase has a module of its own: ``joining``,
``exchanging``, ``reporting``. Here they become one machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import ConfigurationError, LocalProtocolError
from p2p_labeldp.facts import SHORT_ID, Fact, Outcome, Reason, Rejected
from p2p_labeldp.labels import Example, LabelSpace
from p2p_labeldp.protocol import admission, dissemination, restoring, roster
from p2p_labeldp.protocol.closing import Closing
from p2p_labeldp.protocol.comparing import Comparing
from p2p_labeldp.protocol.directory import PeerRecord, address_of, sign_record
from p2p_labeldp.protocol.dissemination import Dissemination
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.exchange import Exchange
from p2p_labeldp.protocol.exchanging import Exchanging
from p2p_labeldp.protocol.joining import Joining
from p2p_labeldp.protocol.kept import Abandoned, CommittedTo, JoinedAs
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.messages import (
    AnyMessage,
    Ask,
    Contradiction,
    Digest,
    Done,
    GetRoster,
    Message,
    Push,
    Refusal,
    Topic,
)
from p2p_labeldp.protocol.participant import Part, Participant, State
from p2p_labeldp.protocol.policy import Policy, disagreement
from p2p_labeldp.protocol.reporting import GRACE_SECONDS, Reporting
from p2p_labeldp.protocol.restoring import Past
from p2p_labeldp.protocol.roster import OpenedRoster
from p2p_labeldp.randomness import Randomness

__all__ = ["GRACE_SECONDS", "Peer", "State"]


class Peer(Participant):
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
        past: Its last round, if it kept a log.
        enrolment: What the enrolment key signed for this peer, for a round that admits by one.

    Raises:
        ConfigurationError: The label is none of the peer's own label space, or the peer died in a round with another
            example. Whatever else the manifest and the peer disagree about is a refusal, with an outcome: the manifest
            is the learner's doing.
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
        past: Past | None = None,
        enrolment: bytes = b"",
    ) -> None:
        pinned = (policy or Policy()).pinned(classes=label_space.classes, learner=learner.peer_id)
        self._unwilling = disagreement(opened, policy=pinned, dimension=len(example.features), study=study)
        if self._unwilling is None and not 0 <= example.label < len(label_space):
            raise ConfigurationError(f"not one of the {len(label_space)} classes of the label space", field="label")
        if past is not None and past.unfinished and past.joined.label_id != example.label_id:
            raise past.of_another_label(example.label_id)
        enrolment_key = None if self._unwilling else opened.manifest.enrolment_key
        self._not_admitted = admission.why_not(enrolment, peer_id=keys.peer_id, enrolment_key=enrolment_key, keys=keys)
        super().__init__(
            opened=opened,
            example=example,
            keys=keys,
            randomness=randomness,
            learner=learner,
            name=ordinal if study else address.peer_id.hex(),
            cluster=0 if self._unwilling else int(opened.clustering.assign(example.features)[0]),
            study=study,
            policy=pinned,
            ledger=Ledger() if ledger is None else ledger,
            enrolment_key=None if self._not_admitted else enrolment_key,  # who is not admitted takes no record in
        )
        self._past = past
        self._label_space = label_space
        self._address = address
        if past is not None:
            host, port = address.host, address.port
            sequence = past.sequence(round_id=opened.round_id, host=host, port=port, fresh=sequence)
        record = PeerRecord(
            round_id=opened.round_id,
            cluster=self.cluster,
            host=address.host,
            port=address.port,
            sealing_key=keys.sealing_public,
            sequence=sequence,
            expires=self.deadlines.report,
            ordinal=ordinal,
            enrolment=enrolment,
        )
        self._sequence = sequence
        self._contacts = tuple(contact for contact in contacts if contact.peer_id != keys.peer_id)
        self._own = own = sign_record(record, keys)
        self.directory.absorb((own,), 0.0)
        self._gossip = Dissemination(
            machine=self,
            name=self.name,
            directory=self.directory,
            own=own,
            round_id=opened.round_id,
            learner=learner.peer_id,
            contacts=self._contacts,
            enough=opened.manifest.minimum_size,
            period=self.period,
            rng=self.rng,
            on_news=self._on_news,
            on_roster=self._compare_rosters,
            on_proof=self._take_proof,
        )
        self._started = self._silent = False
        self._moved = False  # since an earlier life in this round
        self._told = {keys.peer_id}  # where it is now
        self._joining = Joining(peer=self, gossip=self._gossip, accepted=self._commit)
        self._exchanging = Exchanging(peer=self, gossip=self._gossip, joining=self._joining)
        self._reporting = reporting = Reporting(self)
        self._comparing = Comparing(peer=self, gossip=self._gossip)
        self._handlers = {
            dissemination.ALARM: self._on_gossip,
            "snapshot": self._joining.on_snapshot,
            "join": self._joining.on_join_deadline,
            "roster": self._joining.on_fetch_roster,
            "ask": self._exchanging.on_ask,
            "last quarter": self._exchanging.on_last_quarter,
            "exchange": self._exchanging.on_deadline,
            "closing": reporting.on_closing_deadline,
            "report": reporting.on_report,
            "end": reporting.on_end,
        }

    @classmethod
    def restore(cls, facts: Iterable[Fact], **brought: Any) -> Peer:
        """The peer that persisted ``facts``, in whatever round it is now; ``restoring`` says what becomes of it.

        Args:
            facts: Its log, the oldest first.
            brought: What its constructor takes.
        """
        return cls(past=restoring.read(facts), **brought)

    def start(self, now: float) -> None:
        """Joins the round ``now`` seconds after its opening, or takes it up where it was.

        Raises:
            LocalProtocolError: It has joined before.
        """
        if self._started:
            raise LocalProtocolError("a peer joins a round once")
        self._started = True
        d, past, self._past = self.deadlines, self._past, None  # at the end nothing of an earlier life is left either
        if past is not None and past.joined.round_id == self.opened.round_id:
            self._resume(past, now)
            return
        if past is not None and past.unfinished:
            self._abandon(past)
        if self._unwilling is not None:
            self.refuse(Reason.POLICY, self._unwilling, now)
        elif self._not_admitted is not None:
            self.refuse(Reason.NOT_ADMITTED, self._not_admitted, now)
        elif (spent := self.spent_elsewhere()) is not None:
            self.refuse(Reason.LABEL_SPENT, spent, now)
        elif now > self.opened.manifest.newcomers_until:
            self.end(Outcome.LATE, None, now)
        self._silent = self.over  # not even its record leaves: whoever got it would count on this peer
        if self._silent:
            return
        self._enter(now)
        self._set_off(now)
        self.set_alarm("snapshot", d.join - self.period / 2)
        self.set_alarm("join", d.join)

    def _enter(self, now: float) -> None:
        """On disk before the record leaves: from here on a restart is one."""
        self.persist(
            JoinedAs(
                peer=self.name,
                at=now,
                cluster=self.cluster,
                id=self.keys.peer_id.hex()[:SHORT_ID],
                round_id=self.opened.round_id,
                label_id=self.example.label_id,
                host=self._address.host,
                port=self._address.port,
                sequence=self._sequence,
                over_by=self.opened.manifest.opened + self.deadlines.report + GRACE_SECONDS,
            )
        )

    def _set_off(self, now: float) -> None:
        d = self.deadlines
        self.set_alarm(dissemination.ALARM, now + self.rng.random() * self.period)
        self.set_alarm("exchange", d.exchange)
        self.set_alarm("closing", d.closing)
        self.set_alarm("end", d.report + GRACE_SECONDS)

    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message:
        """Replies to a message of an authenticated sender."""
        self.wake(now)  # whoever was stopped over a deadline answers nobody as if it were not over
        match message:
            case _ if self._silent:
                reply: Message = Refusal("takes_no_part")
            case Digest():
                reply = self._gossip.reply_to_digest(message, sender, now)
            case Push():
                reply = self._gossip.reply_to_push(message, now)
            case Ask():
                reply = self._exchanging.reply(message, sender, now)
            case GetRoster():
                reply = self._comparing.show(message)
            case Contradiction():
                self._comparing.take_proof(message, now)
                reply = Done()
            case _:
                reply = Refusal("not_for_a_peer")
        if isinstance(reply, Refusal) and not reply.retry:
            about = f"{type(message).__name__} of {sender.hex()[:16]}: {reply.reason}"
            self.observe(Rejected(peer=self.name, at=now, about=about))
        return reply

    @property
    def records(self) -> int:
        return len(self.directory.mates)

    @property
    def lacks(self) -> str | None:
        return "no mate is known" if self.records < 2 else None

    @property
    def waits_for_its_receipt(self) -> bool:
        """Whether its report has left, and may have been accepted."""
        return self.part is not None and self.part.report is not None

    def close(self, now: float) -> None:
        """Ends the round early: whoever has not reported abstains; a report on its way may have been accepted."""
        if self.waits_for_its_receipt:
            self.end(Outcome.FAILED, Reason.NO_RECEIPT, now)
        elif not self.over:
            self.end(Outcome.ABSTAINED, Reason.NOT_READY, now)

    # -- between the phases ----------------------------------------------------------------------------------------

    def _on_gossip(self, now: float) -> None:
        if self.part is None:
            self._joining.on_gossip(now)
        elif self.state is State.CLOSING:
            self._gossip.tick_closing(self.my.roster.members, now)

    def _on_news(self, now: float) -> None:
        self._joining.on_news(now)
        if self._moved and not self.over:
            self._announce(map(address_of, self.directory.mates), now)

    def _compare_rosters(self, envelope: bytes, now: float) -> None:
        self._comparing.compare(envelope, now)

    def _take_proof(self, proof: Contradiction, now: float) -> None:
        self._comparing.take_proof(proof, now)

    def _commit(self, accepted: OpenedRoster, now: float) -> None:
        self.go("roster accepted")
        self._take_part(accepted, now)
        self.persist(
            CommittedTo(
                peer=self.name,
                at=now,
                cluster=self.cluster,
                size=len(accepted.members),
                roster=accepted.envelope,
                records=tuple(entry.envelope for entry in self.directory.mates if entry.envelope != self._own),
            )
        )
        self._exchanging.begin(now)

    def _take_part(self, accepted: OpenedRoster, since: float) -> None:
        exchange = Exchange(
            roster=accepted,
            example=self.example,
            num_classes=len(self.opened.label_space),
            keys=self.keys,
            randomness=self.randomness,
            round_key=self.opened.manifest.round_key,
            flipped=self.ledger.flipped(self.example.label_id),
        )
        self.part = Part(
            roster=accepted,
            exchange=exchange,
            closing=Closing(roster=accepted, keys=self.keys),
            able=since <= self.deadlines.exchange - self.repeat_seconds,
        )
        self.set_alarm("last quarter", self._exchanging.last_quarter)
        self._gossip.closing = self.part.closing

    # -- after a restart -------------------------------------------------------------------------------------------

    def _abandon(self, past: Past) -> None:
        left = restoring.end(
            past,
            Abandoned(peer=self.name, round_id=past.joined.round_id),
            example=self.example,
            label_space=self._label_space,
            keys=self.keys,
            randomness=self.randomness,
            ledger=self.ledger,
        )
        for fact in left:
            self.persist(fact)

    def _resume(self, past: Past, now: float) -> None:
        """See ``restoring``; deadlines that passed meanwhile don't ring."""
        d = self.deadlines
        if past.ended is not None:
            self._silent = True
            self.state = State.ENDED
            self.outcome = past.outcome
            self.observe(past.outcome)  # nothing new, but whoever started the peer asks for it
            return
        self._set_off(now)
        self._moved = self._sequence != past.joined.sequence
        if self._moved:
            self._enter(now)
        if past.committed is not None:
            self._resume_part(past, past.committed, now)
        elif now >= d.exchange or (past.gathered is None and now > self.opened.manifest.newcomers_until):
            self.end(Outcome.ABSTAINED, Reason.CRASHED, now)
        else:
            if self._moved:
                self._announce(self._contacts, now)
            if past.gathered is None:
                self.set_alarm("snapshot", d.join - self.period / 2)
            else:
                self._joining.resume(past.gathered)
            self.set_alarm("join", d.join)

    def _announce(self, others: Iterable[Address], now: float) -> None:
        """Tells where it is now, each once and without being asked: others may be at rest, and know it elsewhere."""
        for address in others:
            if address.peer_id not in self._told:
                self._told.add(address.peer_id)
                push = Push(self.opened.round_id, Topic.DIRECTORY, (self._own,))
                self.send(address, push, lambda *_: None, now, self.deadlines.report)

    def _resume_part(self, past: Past, committed: CommittedTo, now: float) -> None:
        d = self.deadlines
        self.directory.absorb(committed.records, 0.0)
        accepted = roster.reopen(committed.roster, keys=self.keys)
        self.state = State.EXCHANGING
        self._take_part(accepted, committed.at)
        self.my.exchange.resume(
            mate=None if past.asked is None else past.asked.mate_id,
            box=None if past.held is None else past.held.box,
            given={answer.asker_id: (answer.ask_id, answer.box) for answer in past.answers},
        )
        self.clear_alarm(dissemination.ALARM)
        if self._moved:
            self._announce(map(address_of, self.directory.mates), now)
        if past.ready is None and now <= self._exchanging.last_return:
            if not self.my.exchange.holding:
                self._exchanging.begin(now)
        elif past.ready is None:
            self.spend(now)
            self.end(Outcome.ABSTAINED, Reason.CRASHED, now)
        else:
            self._exchanging.resume_closing(holding=past.ready.holding, now=now)
            if past.cleared is not None:
                self._reporting.resume(past.cleared, past.reported, now)
            elif now >= d.closing:  # who was ready it does not know any more
                self.end(Outcome.ABSTAINED, Reason.CRASHED, now)
