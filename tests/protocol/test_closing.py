"""A peer reports only if it was ready, its mate was, and enough of the roster hold an answer."""

import itertools
import math
from functools import lru_cache

import msgspec
import pytest
from altering import altered

from p2p_labeldp.facts import Outcome, Ready, Reason, Rejected, Reported
from p2p_labeldp.protocol.closing import KIND, Closing, ReadyRecord
from p2p_labeldp.protocol.dissemination import HUB_VISITS
from p2p_labeldp.protocol.messages import Answer, Ask, Digest, Offer, Push, Refusal, Topic
from p2p_labeldp.protocol.peer import State
from protocol.little_round import (
    DEADLINES,
    MEMBERS,
    OPENED,
    Hand,
    address,
    committed,
    keys,
    open_roster,
    open_round,
    peer,
    record,
    roster,
)

TOLERANT = open_round(tolerated_loss=0.4)  # h = 3 of 5
ROSTER = open_roster(roster(opened=TOLERANT), opened=TOLERANT)


def ready(number, *, holding=True, round_id=TOLERANT.round_id, digest=ROSTER.digest):
    return keys(number).sign(KIND, msgspec.msgpack.encode(ReadyRecord(round_id, digest, holding)))


def closing(*records, me=1, holding=True, declared=True):
    found = Closing(roster=ROSTER, keys=keys(me))
    if declared:
        found.declare(holding=holding)
    assert found.absorb(records)[1] == []
    return found


def verdict(found, *, mate=2, holding=True):
    return found.verdict(me=keys(1).peer_id, mate=None if mate is None else keys(mate).peer_id, holding=holding)


def test_the_example_needs_three_of_five():
    assert (ROSTER.roster.holding_minimum, len(ROSTER.members)) == (3, 5)


def test_enough_holding_and_a_ready_mate_may_report():
    assert verdict(closing(ready(2), ready(3))) is None
    assert verdict(closing(ready(2), ready(3), ready(4), ready(5))) is None


def test_a_mate_need_not_hold_to_be_ready():
    assert verdict(closing(ready(2, holding=False), ready(3), ready(4))) is None


def test_too_few_holding_may_not_report():
    assert verdict(closing(ready(2))) is Reason.TOO_FEW_HOLDING
    empty = [ready(i, holding=False) for i in (3, 4, 5)]
    assert verdict(closing(ready(2), *empty)) is Reason.TOO_FEW_HOLDING  # all are ready, two hold


def test_a_mate_that_is_not_ready_forbids_it():
    assert verdict(closing(ready(3), ready(4), ready(5))) is Reason.MATE_NOT_READY
    assert verdict(closing(ready(3), ready(4), ready(5)), mate=None) is Reason.MATE_NOT_READY


def test_holding_nothing_forbids_it():
    everybody = [ready(i) for i in (2, 3, 4, 5)]
    assert verdict(closing(*everybody, holding=False), holding=False) is Reason.MATE_TIMEOUT


def test_not_having_been_ready_forbids_it():
    everybody = [ready(i) for i in (2, 3, 4, 5)]
    assert verdict(closing(*everybody, declared=False)) is Reason.NOT_READY


def test_oneself_as_mate_is_as_ready_as_oneself():
    assert verdict(closing(ready(2), ready(3)), mate=1) is None


REFUSED = {
    "of another round": ready(3, round_id=bytes(32)),
    "of another roster": ready(3, digest=bytes(32)),
    "of no member": ready(9),
    "forged": altered(ready(3), 60),
    "signed for another purpose": keys(3).sign("peer", ready(3)[97:]),
    "that does not decode": keys(3).sign(KIND, b"\xc1"),
    "too long": keys(3).sign(KIND, ready(3)[97:] + bytes(1024)),
    "empty": b"",
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_wrong_ready_record_is_refused_and_does_not_count(why):
    found = closing(ready(2))
    news, refused = found.absorb((REFUSED[why],))
    assert (news, len(refused)) == (0, 1)
    assert verdict(found) is Reason.TOO_FEW_HOLDING
    assert found.absorb((ready(3),)) == (1, [])
    assert verdict(found) is None


def test_two_ready_records_of_one_peer_strike_it_out():
    found = closing(ready(2), ready(3), ready(4))
    assert verdict(found) is None
    _, refused = found.absorb((ready(3, holding=False), ready(4, holding=False)))
    assert len(refused) == 2
    assert verdict(found) is Reason.TOO_FEW_HOLDING
    assert found.absorb((ready(3), ready(4)))[0] == 0  # and it stays so
    assert verdict(found) is Reason.TOO_FEW_HOLDING


def test_a_mate_that_equivocates_is_not_ready():
    found = closing(*(ready(i) for i in (2, 3, 4, 5)))
    found.absorb((ready(2, holding=False),))
    assert verdict(found) is Reason.MATE_NOT_READY


def test_a_twin_that_says_otherwise_makes_one_not_ready():
    found = Closing(roster=ROSTER, keys=keys(1))
    found.absorb((ready(1, holding=False), ready(2), ready(3), ready(4)))
    found.declare(holding=True)
    assert verdict(found) is Reason.NOT_READY


def test_a_twin_that_says_the_same_does_not_matter():
    found = Closing(roster=ROSTER, keys=keys(1))
    found.absorb((ready(1), ready(2), ready(3)))
    found.declare(holding=True)
    assert verdict(found) is None


def test_it_is_complete_when_all_have_declared():
    found = closing(*(ready(i, holding=False) for i in (2, 3, 4)))
    assert not found.complete
    found.absorb((ready(5),))
    assert found.complete


# -- in the peer ----------------------------------------------------------------------------------------------------


def closing_peer(*, holds=True):
    """Peer 1, five members, in the closing phase; its mate is another. Returns the mate's number too."""
    for seed in range(50):
        hand = committed(opened=TOLERANT, seed=seed)
        hand.run(DEADLINES.join + 6.0)
        send = hand.sent(Ask)[0]
        mate = next(i for i in MEMBERS if address(i) == send.to)
        if mate == 1:
            continue
        if holds:
            hand.answer(send, Answer(b"box"), DEADLINES.join + 6.0)
        hand.run(DEADLINES.exchange)
        assert hand.machine.state is State.CLOSING
        return hand, mate
    raise AssertionError("no seed draws another")


def others(mate):
    return [i for i in MEMBERS if i not in (1, mate)]


def push(hand, *records, now=DEADLINES.exchange + 1.0):
    hand.receive(Push(TOLERANT.round_id, Topic.CLOSING, records), keys(2).peer_id, now)


@pytest.mark.parametrize("holds", [True, False])
def test_a_peer_declares_itself_once_at_the_exchange_deadline(holds):
    hand, _ = closing_peer(holds=holds)
    assert [(f.at, f.holding) for f in hand.persisted(Ready)] == [(DEADLINES.exchange, holds)]
    hand.run(DEADLINES.closing - 0.1)
    assert len(hand.persisted(Ready)) == 1


def test_a_peer_reports_when_enough_hold():
    hand, mate = closing_peer()
    push(hand, ready(mate), ready(others(mate)[0]))
    hand.run(DEADLINES.closing)
    assert hand.machine.state is State.REPORTING


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (lambda mate: [mate], Reason.TOO_FEW_HOLDING),
        (lambda mate: others(mate), Reason.MATE_NOT_READY),
        (lambda mate: [], Reason.MATE_NOT_READY),
    ],
)
def test_a_peer_abstains_when_they_do_not(who, expected):
    hand, mate = closing_peer()
    push(hand, *(ready(i) for i in who(mate)))
    hand.run(DEADLINES.report + 10)
    assert hand.end == (Outcome.ABSTAINED, expected)
    assert not hand.facts(Reported)


def test_a_peer_that_holds_nothing_abstains_whoever_holds():
    hand, _ = closing_peer(holds=False)
    push(hand, *(ready(i) for i in MEMBERS[1:]))
    hand.run(DEADLINES.report + 10)
    assert hand.end == (Outcome.ABSTAINED, Reason.MATE_TIMEOUT)


def test_a_wrong_ready_record_is_logged_and_not_fatal():
    hand, mate = closing_peer()
    before = len(hand.facts(Rejected))
    push(hand, *REFUSED.values(), ready(mate))
    assert len(hand.facts(Rejected)) == before + len(REFUSED)
    assert keys(mate).peer_id in hand.machine.my.closing.records


def test_a_twins_contradiction_ends_in_not_ready_and_not_in_an_exception():
    hand = committed(opened=TOLERANT)
    push(hand, ready(1, holding=True), now=DEADLINES.join + 5)  # this peer will hold nothing
    hand.run(DEADLINES.closing)
    assert hand.end == (Outcome.ABSTAINED, Reason.NOT_READY)


def test_ready_records_are_gossiped_push_and_pull():
    hand, mate = closing_peer()
    digest = Digest(TOLERANT.round_id, Topic.CLOSING, 0, b"", (ready(mate),))
    reply = hand.receive(digest, keys(mate).peer_id, DEADLINES.exchange + 1.0)
    assert isinstance(reply, Offer)
    assert set(reply.records) == {ready(1), ready(mate)}
    other_cluster = Digest(TOLERANT.round_id, Topic.CLOSING, 1, b"", ())
    assert hand.receive(other_cluster, keys(mate).peer_id, DEADLINES.exchange + 1.0) == Refusal(
        "not_closing", retry=True
    )


def test_who_has_no_roster_yet_asks_to_try_again():
    hand = Hand(peer(opened=TOLERANT))
    hand.start()
    digest = Digest(TOLERANT.round_id, Topic.CLOSING, 0, b"", ())
    assert hand.receive(digest, keys(2).peer_id, 1.0) == Refusal("not_closing", retry=True)


def test_a_peer_keeps_asking_until_all_are_known_and_then_falls_silent():
    hand, mate = closing_peer()
    push(hand, ready(mate), now=DEADLINES.exchange)
    before = len(hand.sent(Digest))
    hand.run(DEADLINES.exchange + 5.0)
    asked = hand.sent(Digest)[before:]
    assert len(asked) >= 3  # about one a second
    assert {d.message.topic for d in asked} == {Topic.CLOSING}
    push(hand, *(ready(i) for i in MEMBERS[1:]), now=DEADLINES.exchange + 5.0)
    before = len(hand.sent(Digest))
    hand.run(DEADLINES.closing - 0.1)
    assert len(hand.sent(Digest)) == before


def asked_in_closing(*, hub=3, says=lambda asked: None, visits=4):
    """Whom peer 1 asks who is ready, by number, one after the other.

    ``says`` makes of whom it has asked so far what the last one answers; None: nothing.
    """
    hand, _ = closing_peer()
    hand.machine._gossip._point = keys(hub).peer_id
    asked = []
    while len(asked) < visits:
        now = hand.machine.wake_at()
        hand.machine.wake(now)
        for send in hand.settle():
            asked.append(next(i for i in MEMBERS if address(i) == send.to))
            reply = says(asked)
            hand.fail(send, "timeout", now) if reply is None else hand.answer(send, reply, now)
    return asked


def test_a_hub_that_has_news_is_asked_first_and_a_few_times_only():
    """Of five members one is news at a time."""
    assert HUB_VISITS[Topic.CLOSING] == 2
    asked = asked_in_closing(says=lambda asked: Offer((ready(1 + len(asked)),), b""))
    assert asked[:2] == [3, 3]
    assert asked[2:] != [3, 3]


@pytest.mark.parametrize(
    "says", [lambda _: None, lambda _: Offer((), b""), lambda _: Refusal("not_closing", retry=True)]
)
def test_a_hub_that_does_not_answer_or_has_no_news_is_not_visited_again(says):
    asked = asked_in_closing(says=says)
    assert asked[0] == 3
    assert asked[1:3] != [3, 3]


def test_the_hub_itself_asks_any():
    assert len(set(asked_in_closing(hub=1))) > 1


def test_messages_of_another_round_are_refused():
    hand, mate = closing_peer()
    for message in (
        Digest(OPENED.round_id, Topic.CLOSING, 0, b"", ()),
        Digest(OPENED.round_id, Topic.DIRECTORY, 0, b"", ()),
        Push(OPENED.round_id, Topic.CLOSING, (ready(mate),)),
        Push(OPENED.round_id, Topic.DIRECTORY, (record(8, opened=TOLERANT),)),
    ):
        assert hand.receive(message, keys(mate).peer_id, DEADLINES.exchange + 1.0) == Refusal("another_round")
    assert keys(mate).peer_id not in hand.machine.my.closing.records
    assert keys(8).peer_id not in hand.machine.directory.mates


# -- the law that the roster's guarantee charges ----------------------------------------------------------------------

FOUR = (1, 2, 3, 4)
ANSWERS, DEAF, GONE = range(3)  # deaf: ready, but asks never arrive; gone: by the exchange deadline


def chance(pool, h):
    """4^4 P(Bin(4, p/4) >= h)."""
    return sum(math.comb(4, r) * pool**r * (4 - pool) ** (4 - r) for r in range(h, 5))


def reports_of(h):
    """Fates of four peers -> for each of the 4^4 draws, who of them reports; by the real verdict."""
    opened = open_round(tolerated_loss=1 - h / 4)
    signed = open_roster(roster(FOUR, opened=opened), opened=opened)
    assert signed.roster.holding_minimum == h
    envelopes = {
        (i, holding): ready(i, holding=holding, round_id=opened.round_id, digest=signed.digest)
        for i in FOUR
        for holding in (False, True)
    }

    @lru_cache
    def verdicts(declared):
        """By reporter and mate, given who has declared what; None is a peer that has not."""
        found = Closing(roster=signed, keys=keys(9))
        found.absorb(
            tuple(envelopes[i, holding] for i, holding in zip(FOUR, declared, strict=True) if holding is not None)
        )
        return {
            (i, mate): found.verdict(me=keys(i).peer_id, mate=keys(mate).peer_id, holding=bool(declared[i - 1])) is None
            for i in FOUR
            for mate in FOUR
        }

    def play(fates, draws):
        holds = [fates[draw - 1] == ANSWERS for draw in draws]
        declared = tuple(None if fate == GONE else held for fate, held in zip(fates, holds, strict=True))
        may = verdicts(declared)
        return [i for i in FOUR if fates[i - 1] != GONE and may[i, draws[i - 1]]]

    return play


@pytest.mark.parametrize("h", [1, 2, 3, 4])
def test_brute_force_confirms_the_claimed_law_for_every_pattern_of_failures(h):
    play = reports_of(h)
    for fates in itertools.product((ANSWERS, DEAF, GONE), repeat=4):
        outcomes = [play(fates, draws) for draws in itertools.product(FOUR, repeat=4)]
        pool = fates.count(ANSWERS)
        leaving = sum(bool(reporters) for reporters in outcomes)
        assert leaving <= chance(pool, h)
        if GONE not in fates:  # whoever is ready counts, so the law is met exactly
            assert leaving == chance(pool, h)
            assert all(len(reporters) >= h or not reporters for reporters in outcomes)


def test_without_the_count_of_answers_reports_leave_more_often_than_charged(monkeypatch):
    """The control: ready mates alone."""
    monkeypatch.setattr(
        Closing,
        "verdict",
        lambda self, me, mate, holding: None if holding and me in self.records and mate in self.records else "no",
    )
    play = reports_of(3)
    fates = (ANSWERS, DEAF, DEAF, DEAF)
    leaving = sum(bool(play(fates, draws)) for draws in itertools.product(FOUR, repeat=4))
    assert leaving > chance(1, 3)
