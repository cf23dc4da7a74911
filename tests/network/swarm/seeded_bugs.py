"""Bugs seeded into the machines, one at a time: what each breaks is what somebody could get wrong."""

import random
from dataclasses import replace

from p2p_labeldp.facts import Reason
from p2p_labeldp.protocol import report, roster
from p2p_labeldp.protocol.closing import Closing
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.exchange import Exchange
from p2p_labeldp.protocol.exchanging import Exchanging
from p2p_labeldp.protocol.joining import Joining
from p2p_labeldp.protocol.kept import AcceptedFrom
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.messages import Ask
from p2p_labeldp.protocol.participant import State
from p2p_labeldp.protocol.peer import Peer
from p2p_labeldp.protocol.reporting import Reporting
from p2p_labeldp.randomness import Replay

BUGS = {}


def bug(seed):
    BUGS[seed.__name__] = seed
    return seed


@bug
def no_memo(patch):
    """Every asker gets a fresh flip."""
    flip, coins = Exchange.flip, random.Random(1)

    def fresh(self):
        self._flipped = None
        self._randomness = Replay(coins.getrandbits(60), 0)
        return flip(self)

    patch.setattr(Exchange, "flip", fresh)


@bug
def second_mate_on_retry(patch):
    on_ask, coins = Exchanging.on_ask, random.Random(1)

    def again(self, now):
        exchange = self._peer.my.exchange
        if exchange.mate is not None:
            exchange.mate = coins.choice(exchange._roster.members)
        on_ask(self, now)

    patch.setattr(Exchanging, "on_ask", again)


@bug
def old_round_accepted(patch):
    reply = Exchanging.reply

    def any_round(self, message, sender, now):
        return reply(self, Ask(self._peer.opened.round_id, message.roster, message.ask_id), sender, now)

    patch.setattr(Exchanging, "reply", any_round)


@bug
def other_roster_answered(patch):
    answer = Exchange.answer

    def any_roster(self, asker, ask):
        return answer(self, asker, Ask(ask.round_id, self._roster.digest, ask.ask_id))

    patch.setattr(Exchange, "answer", any_roster)


@bug
def duplicates_counted(patch):
    take = Collector._take_report

    def forgetful(self, message, sender, now):
        self._receipts.pop(sender, None)
        return take(self, message, sender, now)

    patch.setattr(Collector, "_take_report", forgetful)


@bug
def roster_unchecked(patch):
    patch.setattr(roster, "check_guarantee", lambda *_: None)


@bug
def known_peers_may_be_left_out(patch):
    on_snapshot = Joining.on_snapshot

    def forgets(self, now):
        on_snapshot(self, now)
        self._must_list = frozenset()

    patch.setattr(Joining, "on_snapshot", forgets)


@bug
def closing_skipped(patch):
    """Whoever holds an answer reports."""
    verdict = Closing.verdict

    def lenient(self, *, me, mate, holding):
        return None if holding else verdict(self, me=me, mate=mate, holding=False)

    patch.setattr(Closing, "verdict", lenient)


@bug
def holding_not_counted(patch):
    """Enough that so many are ready."""
    verdict = Closing.verdict

    def lenient(self, *, me, mate, holding):
        reason = verdict(self, me=me, mate=mate, holding=holding)
        enough = len(self.records) >= self._roster.roster.holding_minimum
        return None if enough and reason is Reason.TOO_FEW_HOLDING else reason

    patch.setattr(Closing, "verdict", lenient)


@bug
def two_flips_after_a_restart(patch):
    patch.setattr(Ledger, "flipped", lambda self, label_id: None)
    patch.setattr(Ledger, "enter", lambda self, release: True)
    patch.setattr(Ledger, "holds", lambda self, label_id, **place: False)


@bug
def receipt_not_checked(patch):
    patch.setattr(report, "check_receipt", lambda *_, **__: None)


@bug
def restart_forgets_the_ask(patch):
    resume = Exchange.resume

    def forgetful(self, *, mate, box, given):
        resume(self, mate=None, box=None, given=given)

    patch.setattr(Exchange, "resume", forgetful)


@bug
def answered_after_the_deadline(patch):
    reply = Exchanging.reply

    def late(self, message, sender, now):
        peer, state = self._peer, self._peer.state
        if state is not State.CLOSING:
            return reply(self, message, sender, now)
        peer.state = State.EXCHANGING
        try:
            return reply(self, message, sender, now)
        finally:
            peer.state = state

    patch.setattr(Exchanging, "reply", late)


@bug
def timers_ring_after_messages(patch):
    """A peer that was stopped over a deadline goes on as if it were not over."""
    receive = Peer.receive

    def received(self, message, sender, now):
        self.wake = lambda now: None
        try:
            return receive(self, message, sender, now)
        finally:
            del self.wake

    patch.setattr(Peer, "receive", received)


@bug
def stopped_and_ready(patch):
    """A peer that was stopped while others asked says that it was able to answer."""
    patch.setattr(Exchanging, "on_last_quarter", lambda self, now: None)


@bug
def second_ask_answered(patch):
    answer = Exchange.answer

    def obliging(self, asker, ask):
        known = self._given.get(asker)
        if known is not None and known[0] != ask.ask_id:
            del self._given[asker]
        return answer(self, asker, ask)

    patch.setattr(Exchange, "answer", obliging)


@bug
def strangers_answered(patch):
    answer = Exchange.answer

    def open_to_all(self, asker, ask):
        signed, self._roster = self._roster, replace(self._roster, member_set=self._roster.member_set | {asker})
        try:
            return answer(self, asker, ask)
        finally:
            self._roster = signed

    patch.setattr(Exchange, "answer", open_to_all)


@bug
def learner_forgets_what_it_accepted(patch):
    recall = Collector._recall
    patch.setattr(
        Collector, "_recall", lambda self, fact: None if isinstance(fact, AcceptedFrom) else recall(self, fact)
    )


@bug
def reports_of_strangers_accepted(patch):
    take = Collector._take_report

    def open_to_all(self, message, sender, now):
        if self.rosters and sender not in self._cluster_of:
            self._cluster_of[sender] = min(self.rosters)
            self._ordinals.setdefault(sender, -2)
        return take(self, message, sender, now)

    patch.setattr(Collector, "_take_report", open_to_all)


@bug
def reports_accepted_early(patch):
    take = Collector._take_report

    def eager(self, message, sender, now):
        if self.rosters and self.state.name == "ROSTERED":
            self._on_closing_deadline(now)
        return take(self, message, sender, now)

    patch.setattr(Collector, "_take_report", eager)


@bug
def report_sealed_again_on_retry(patch):
    on_report = Reporting.on_report

    def anew(self, now):
        self._peer.my.report = None
        on_report(self, now)

    patch.setattr(Reporting, "on_report", anew)


@bug
def the_round_does_not_end(patch):
    patch.setattr(Reporting, "on_end", lambda self, now: None)


def mate_is_never_oneself(patch):
    """No scenario shows it, many together do."""
    draw = Exchange.draw

    def others(self):
        mate = draw(self)
        members = self._roster.members
        if mate == self._keys.peer_id:
            self.mate = members[(members.index(mate) + 1) % len(members)]
        return self.mate

    patch.setattr(Exchange, "draw", others)
