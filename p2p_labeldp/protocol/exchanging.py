"""The third phase of a peer: it answers every ask, asks its one mate, and at the end says whether it is ready."""

from __future__ import annotations

from p2p_labeldp.facts import Outcome, Ready, Reason
from p2p_labeldp.protocol.directory import address_of
from p2p_labeldp.protocol.dissemination import Dissemination
from p2p_labeldp.protocol.joining import Joining
from p2p_labeldp.protocol.kept import AnsweredWith, AskedFor, HeldBox
from p2p_labeldp.protocol.messages import Answer, AnyMessage, Ask, Message, Refusal
from p2p_labeldp.protocol.participant import ASK_TRIES, SLOWEST_AGAIN, Participant, State

ASK_SHARES = 0.5, 0.75  # of the exchange phase, between which they ask; whoever is asked should have its roster


class Exchanging:
    """Carries the ``Exchange`` of a peer, which knows no time, through its phase.

    Args:
        peer: Whose phase this is.
        gossip: Its gossip, which is to carry its ready record.
        joining: The phases before.
    """

    def __init__(self, *, peer: Participant, gossip: Dissemination, joining: Joining) -> None:
        self._peer = peer
        self._gossip = gossip
        self._joining = joining

    @property
    def _patience(self) -> float:
        """Seconds an ask waits for its answer before it is sent again."""
        return (self._peer.deadlines.exchange - self._peer.deadlines.join) / ASK_TRIES

    @property
    def last_quarter(self) -> float:
        """From when on nobody asks for the first time."""
        return self._peer.deadlines.exchange - self._patience

    @property
    def last_return(self) -> float:
        """Until when a peer that was away can come back: each asker, though it waits for an answer that is lost, asks
        once more before the exchange ends."""
        return self._peer.deadlines.exchange - self._patience - SLOWEST_AGAIN * self._peer.period

    def begin(self, now: float) -> None:
        """The roster is accepted: chooses when to ask."""
        peer = self._peer
        join, span = peer.deadlines.join, peer.deadlines.exchange - peer.deadlines.join
        first, last = ASK_SHARES
        peer.set_alarm("ask", max(now, join + span * (first + (last - first) * peer.rng.random())))

    def on_ask(self, now: float) -> None:
        """Asks the one mate, drawn at the first call."""
        peer, exchange = self._peer, self._peer.my.exchange
        if exchange.mate is None:
            mate = exchange.draw()
            peer.persist(AskedFor(peer=peer.name, at=now, mate=peer.name_of(mate), mate_id=mate))
        assert exchange.mate is not None
        entry = peer.directory.find(exchange.mate)
        if entry is None:  # struck out for equivocation since: like any mate that cannot be reached
            peer.my.last_failure = Reason.MATE_UNREACHABLE
            return
        until = min(peer.deadlines.exchange, now + self._patience)
        peer.send(address_of(entry), exchange.ask(), self._take_answer, now, until)

    def _take_answer(self, reply: AnyMessage | None, reason: str, now: float) -> None:
        peer = self._peer
        if peer.state is not State.EXCHANGING:
            return
        match reply:
            case Answer():
                peer.my.exchange.take(reply)
                peer.persist(HeldBox(peer=peer.name, at=now, box=reply.box))
            case None:
                failure = Reason.MATE_UNREACHABLE if reason == "unreachable" else Reason.MATE_TIMEOUT
                peer.my.last_failure = failure
                peer.again("ask", now, peer.deadlines.exchange)
            case Refusal(retry=True):
                peer.again("ask", now, peer.deadlines.exchange)
            case _:
                pass  # refused for good; the exchange deadline finds nothing held

    def reply(self, message: Ask, sender: bytes, now: float) -> Message:
        """Answers somebody's ask, whatever the phase."""
        peer = self._peer
        if message.round_id != peer.opened.round_id:
            return Refusal("another_round")
        if peer.state in (State.JOINING, State.COMMITTING):
            return Refusal("not_ready", retry=True)
        if peer.state is not State.EXCHANGING:
            return Refusal("too_late")
        exchange = peer.my.exchange
        first = not exchange.has_answered(sender)
        answer = exchange.answer(sender, message)
        if isinstance(answer, Answer):
            peer.spend(now)
            if first:
                asker, given = peer.name_of(sender), answer.box
                peer.persist(
                    AnsweredWith(peer=peer.name, at=now, asker=asker, asker_id=sender, ask_id=message.ask_id, box=given)
                )
        return answer

    def on_last_quarter(self, now: float) -> None:
        """A peer that hears this alarm only when the exchange is over was stopped before everybody had asked: those who
        had not it never answered. Less than a quarter late is a busy machine: what came in meanwhile is answered now,
        and what was not asked by then was a repeat."""
        part = self._peer.my
        part.able = part.able and now <= self._peer.deadlines.exchange

    def on_deadline(self, now: float) -> None:
        """The exchange is over: says whether this peer is ready, and holding."""
        peer = self._peer
        if peer.state is State.COMMITTING:
            if self._joining.waits_for_records:
                peer.refuse(Reason.ROSTER_MISMATCH, "roster: the record of somebody in it never came", now)
            else:  # the learner, or its roster, never came
                peer.end(Outcome.UNREACHABLE, None, now)
            return
        peer.go("exchange deadline")
        peer.clear_alarm("ask")
        exchange = peer.my.exchange
        exchange.deadline()
        peer.spend(now)  # unasked too: who comes to the next round with an unspent label would tell that nobody asked
        if peer.my.able:
            peer.persist(Ready(peer=peer.name, at=now, holding=exchange.holding))
            peer.my.closing.declare(holding=exchange.holding)
        self._gossip.full_pace(now, within=max(peer.deadlines.closing - now, 0.0))

    def resume_closing(self, *, holding: bool, now: float) -> None:
        """Has declared itself in an earlier life, and does so in the same bytes."""
        peer = self._peer
        peer.go("exchange deadline")
        peer.clear_alarm("exchange")
        peer.my.exchange.deadline()
        peer.my.closing.declare(holding=holding)
        self._gossip.full_pace(now, within=max(peer.deadlines.closing - now, 0.0))
