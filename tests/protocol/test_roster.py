"""A peer believes no roster: whatever is wrong with it, the round ends there with nothing asked and nothing flipped."""

import math

import msgspec
import pytest
from altering import altered

from p2p_labeldp.accounting import planning
from p2p_labeldp.errors import AuthenticationFailed, ClusterTooSmall, MalformedMessage, PrivacyError, RosterMismatch
from p2p_labeldp.facts import Committed, Ended, Gathered, Outcome, Reason, Rejected
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.effects import Send
from p2p_labeldp.protocol.messages import Ask, Digest, GetRoster, Refusal, RosterReply
from p2p_labeldp.protocol.peer import State
from protocol.little_round import (
    DEADLINES,
    LEARNER,
    MEMBERS,
    OPENED,
    Hand,
    address,
    committed,
    gathered,
    given,
    ids,
    keys,
    open_roster,
    open_round,
    peer,
    record,
    roster,
)

FLIP = planning.plan_roster(5, target_epsilon=1.0, tolerated_loss=0.05).flip_probability
MISMATCH = (Outcome.REFUSED, Reason.ROSTER_MISMATCH)
POLICY = (Outcome.REFUSED, Reason.POLICY)
TOO_SMALL = (Outcome.ABSTAINED, Reason.CLUSTER_TOO_SMALL)

REFUSED = {
    "signed by another key": (lambda: roster(signer=keys(7)), MISMATCH),
    "changed after signing": (lambda: altered(roster()), MISMATCH),
    "no roster at all": (lambda: LEARNER.sign("roster", b"\xc0"), MISMATCH),
    "of another round": (lambda: roster(round_id=bytes(32)), MISMATCH),
    "of another cluster": (lambda: roster(cluster=1), MISMATCH),
    "empty": (lambda: roster(members=()), MISMATCH),
    "with a member twice": (lambda: roster((1, 2, 3, 3, 4, 5)), MISMATCH),
    "without the peer itself": (lambda: roster((2, 3, 4, 5)), MISMATCH),
    "without a mate that the peer must find": (lambda: roster((1, 2, 3, 4)), MISMATCH),
    "unsorted": (lambda: roster((1, 3, 2, 4, 5)), MISMATCH),
    "with a flip too small for the target": (lambda: roster(flip_probability=0.99 * FLIP), POLICY),
    "with no flip": (lambda: roster(flip_probability=0.0), POLICY),
    "with a flip above a half": (lambda: roster(flip_probability=0.6), MISMATCH),
    "with a flip that is no number": (lambda: roster(flip_probability=math.nan), MISMATCH),
    "with another delta": (lambda: roster(delta=1 / 16), POLICY),
    "with a smaller delta": (lambda: roster(delta=1e-9), POLICY),
    "with a delta that is no number": (lambda: roster(delta=math.nan), POLICY),
    "with a smaller holding minimum": (lambda: roster(holding_minimum=4), POLICY),
    "with a larger holding minimum": (lambda: roster(holding_minimum=6), POLICY),
    "with no holding minimum": (lambda: roster(holding_minimum=0), MISMATCH),
}
SAID = {
    "empty": "roster: this peer is not in it",
    "without the peer itself": "roster: this peer is not in it",
    "without a mate that the peer must find": "roster: somebody known in time is not in it",
    "unsorted": "roster: its members are out of order",
    "with a flip too small for the target": "policy: the roster's flip probability is too small",
    "with another delta": "policy: the roster's delta",
    "with a smaller holding minimum": "policy: the roster's holding minimum",
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_peer_refuses_a_roster(why):
    make, expected = REFUSED[why]
    hand = given(make())
    assert hand.end == expected
    (fact,) = hand.facts(Rejected)  # a refusal says why
    assert fact.about.startswith(SAID.get(why, ""))
    hand.run(DEADLINES.report + 10)
    assert hand.label_is_untouched
    assert not hand.facts(Committed)
    assert len(hand.facts(Ended)) == 1


def test_a_peer_accepts_a_right_roster():
    hand = given(roster())
    assert hand.machine.state is State.EXCHANGING
    assert [fact.size for fact in hand.facts(Committed)] == [5]
    hand.run(DEADLINES.exchange - 1)
    assert len(hand.sent(Ask)) == 1


def test_a_larger_flip_than_needed_is_accepted():
    assert given(roster(flip_probability=0.3)).machine.state is State.EXCHANGING


def test_a_fixed_flip_has_to_be_the_manifests():
    opened = open_round(target_epsilon=None, flip_probability=0.2)
    assert given(roster(opened=opened), opened=opened).machine.state is State.EXCHANGING
    for other in (0.19, 0.21):
        assert given(roster(opened=opened, flip_probability=other), opened=opened).end == POLICY


@pytest.mark.parametrize(("minimum", "expected"), [(5, None), (6, TOO_SMALL)])
def test_a_cluster_below_the_minimum_abstains(minimum, expected):
    opened = open_round(minimum_size=minimum)
    hand = given(roster(opened=opened), opened=opened)
    if expected is None:
        assert hand.machine.state is State.EXCHANGING
    else:
        assert hand.end == expected
        assert hand.label_is_untouched


def test_a_cluster_of_two_is_too_small_for_a_minimum_of_three():
    hand = given(roster((1, 2)), members=(1, 2))
    assert hand.end == TOO_SMALL
    assert hand.label_is_untouched


def test_a_record_that_came_after_the_snapshot_need_not_be_listed():
    hand = gathered()
    hand.tell(record(6), now=DEADLINES.join - 0.1)  # the snapshot is half a period before the deadline
    assert given(roster(), hand=hand).machine.state is State.EXCHANGING


def test_what_is_known_at_the_snapshot_is_said():
    assert [fact.records for fact in gathered().facts(Gathered)] == [5]


def test_a_mate_whose_record_is_missing_is_waited_for_and_pulled():
    hand = gathered(records=[record(i) for i in (2, 3, 4)])
    before = len(hand.effects)
    given(roster(), hand=hand)
    assert hand.machine.state is State.COMMITTING
    hand.run(DEADLINES.join + 4.0)
    asked = [e.to for e in hand.effects[before:] if isinstance(e, Send)]
    assert asked
    assert set(asked) <= {address(i) for i in (2, 3, 4)}
    hand.tell(record(5), now=DEADLINES.join + 4.0)
    assert hand.machine.state is State.EXCHANGING


def test_a_mate_whose_record_never_comes_ends_in_a_refusal():
    hand = given(roster(), records=[record(i) for i in (2, 3, 4)])
    hand.run(DEADLINES.exchange)
    assert hand.end == MISMATCH
    assert [fact.about for fact in hand.facts(Rejected)] == ["roster: the record of somebody in it never came"]
    assert hand.label_is_untouched


def test_an_equivocating_mate_may_be_left_out():
    hand = gathered()
    hand.tell(record(5, port=7001), now=DEADLINES.join + 1)
    assert given(roster((1, 2, 3, 4)), hand=hand).machine.state is State.EXCHANGING


def test_an_equivocating_mate_may_not_be_listed():
    hand = gathered()
    hand.tell(record(5, port=7001), now=DEADLINES.join + 1)
    given(roster(), hand=hand)
    hand.run(DEADLINES.exchange)
    assert hand.end == MISMATCH
    assert hand.label_is_untouched


def test_a_peer_struck_out_for_a_twin_does_not_accept_a_roster_without_it():
    hand = gathered()
    hand.tell(record(1, port=7001), now=3.0)
    given(roster((2, 3, 4, 5)), hand=hand)
    assert hand.end == MISMATCH
    assert hand.label_is_untouched


@pytest.mark.parametrize(
    "reply", [None, Refusal("not_yet", retry=True), Refusal("no_roster"), Refusal("odd"), RosterReply]
)
def test_the_roster_is_asked_for_until_it_comes_or_the_exchange_ends(reply):
    hand = gathered()
    if reply is None:
        hand.fail(hand.sent(GetRoster)[0], "timeout", DEADLINES.join + 3.4)
    elif reply is RosterReply:
        hand.answer(hand.sent(GetRoster)[0], RosterReply(roster()), DEADLINES.join + 3.4)
    else:
        hand.answer(hand.sent(GetRoster)[0], reply, DEADLINES.join + 3.4)
    hand.run(DEADLINES.join + 4.5)
    assert len(hand.sent(GetRoster)) == (1 if reply is RosterReply else 2)
    if reply is not RosterReply:
        hand.run(DEADLINES.exchange)
        assert hand.end == (Outcome.UNREACHABLE, None)
        assert hand.label_is_untouched


def test_the_only_member_of_a_cluster_abstains_for_its_size():
    hand = gathered(members=(1,))
    hand.answer(hand.sent(GetRoster)[0], Refusal("no_roster"), DEADLINES.join + 3.4)
    assert hand.end == TOO_SMALL


def test_who_joins_in_the_last_two_periods_keeps_silent_and_is_late():
    """Its record might reach some mates and not the learner; they would then have to refuse the roster."""
    hand = Hand(peer())
    hand.start(DEADLINES.join - 1.9)
    assert hand.end == (Outcome.LATE, None)
    assert not hand.sent(Digest)
    assert hand.label_is_untouched


def test_who_joins_just_before_that_takes_part():
    hand = Hand(peer())
    hand.start(DEADLINES.join - 2.1)
    hand.tell(*(record(i) for i in (2, 3, 4, 5)), now=DEADLINES.join - 0.1)
    hand.run(DEADLINES.join + 3.2)
    hand.answer(hand.sent(GetRoster)[0], RosterReply(roster()), DEADLINES.join + 3.2)
    assert hand.machine.state is State.EXCHANGING


@pytest.mark.parametrize("start", [DEADLINES.exchange, DEADLINES.closing, DEADLINES.report + 100])
def test_who_joins_after_the_exchange_is_late(start):
    hand = Hand(peer())
    hand.start(start)
    hand.run(start + 1)
    assert hand.end == (Outcome.LATE, None)
    assert hand.label_is_untouched


# -- the functions below the peer -----------------------------------------------------------------------------------


def test_a_roster_opens_to_its_members_in_order():
    opened = open_roster()
    assert opened.members == ids(MEMBERS)
    assert opened.digest != open_roster(roster((1, 2, 3))).digest


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (AuthenticationFailed, lambda: roster(signer=keys(7))),
        (RosterMismatch, lambda: roster(round_id=bytes(32))),
        (RosterMismatch, lambda: roster(cluster=2)),
        (RosterMismatch, lambda: roster((1, 1, 2))),
        (MalformedMessage, lambda: LEARNER.sign("roster", b"")),
    ],
)
def test_opening_a_wrong_roster_says_whose_fault(error, make):
    with pytest.raises(error):
        open_roster(make())


def test_a_member_list_of_half_an_id_is_malformed():
    whole = open_roster().roster
    half = msgspec.structs.replace(whole, members=whole.members[:-1])
    with pytest.raises(MalformedMessage):
        open_roster(LEARNER.sign(rosters.KIND, msgspec.msgpack.encode(half)))
    assert open_roster(LEARNER.sign(rosters.KIND, msgspec.msgpack.encode(whole))).members == ids(MEMBERS)


@pytest.mark.parametrize("size", [3, 5, 10, 20])
@pytest.mark.parametrize("loss", [0.0, 0.05, 0.3])
def test_what_a_learner_makes_passes_the_peers_check(size, loss):
    opened = open_round(tolerated_loss=loss)
    envelope, plan = rosters.make(opened, cluster=0, members=list(ids(range(1, size + 1))), keys=LEARNER)
    made = open_roster(envelope, opened=opened)
    assert made.roster.delta == 1 / size**2 == plan.delta
    rosters.check_guarantee(made.roster, size, opened)
    with pytest.raises(ClusterTooSmall):
        rosters.check_guarantee(made.roster, 2, opened)
    with pytest.raises(PrivacyError):
        rosters.check_guarantee(made.roster, size + 1, opened)


def test_a_committed_peer_is_not_moved_by_another_roster():
    hand = committed()
    assert hand.machine.state is State.EXCHANGING
    assert len(hand.sent(GetRoster)) == 1
    assert hand.machine.opened is OPENED


@pytest.mark.parametrize(("num_classes", "size"), [(3, 5), (10, 5), (3, 30)])
def test_a_roster_of_more_classes_is_made_and_checked_by_their_bound(num_classes, size):
    opened = open_round(classes=tuple(map(str, range(num_classes))))
    envelope, plan = rosters.make(opened, cluster=0, members=list(ids(range(1, size + 1))), keys=LEARNER)
    made = open_roster(envelope, opened=opened).roster
    assert plan.num_classes == num_classes
    rosters.check_guarantee(made, size, opened)
    of_two = planning.plan_roster(size, target_epsilon=1.0, tolerated_loss=0.05).flip_probability
    assert of_two < 0.99 * made.flip_probability
    for flip in (of_two, 0.99 * made.flip_probability):  # the first is what two classes would have to flip
        with pytest.raises(PrivacyError, match="too small for the target"):
            rosters.check_guarantee(msgspec.structs.replace(made, flip_probability=flip), size, opened)


def test_more_classes_may_flip_more_often_than_not_but_never_tell_the_label_by_leaving_it_out():
    opened = open_round(classes=("a", "b", "c"))
    assert open_roster(roster(opened=opened, flip_probability=2 / 3), opened=opened).roster.flip_probability == 2 / 3
    for classes, flip in ((("a", "b", "c"), 0.67), (("a", "b"), 0.51)):
        of_so_many = open_round(classes=classes)
        with pytest.raises(MalformedMessage, match="by leaving it out"):
            open_roster(roster(opened=of_so_many, flip_probability=flip), opened=of_so_many)


THREE = ("no", "yes", "perhaps")


def given_for_three(flip, **terms):
    opened = open_round(classes=THREE, **terms)
    return given(roster(opened=opened, flip_probability=flip), opened=opened, label_space=LabelSpace(classes=THREE))


def test_a_peer_refuses_for_three_classes_what_two_would_have_to_flip(monkeypatch):
    hand = given_for_three(FLIP)
    assert hand.end == POLICY
    assert "too small for the target" in hand.facts(Rejected)[-1].about
    assert hand.label_is_untouched
    fits = rosters.fits
    monkeypatch.setattr(rosters, "fits", lambda *asked: fits(*asked[:-1], 2))  # the control: classes not counted
    assert given_for_three(FLIP).machine.state is State.EXCHANGING


def test_a_peer_takes_part_for_three_classes_in_what_they_have_to_flip_and_in_a_fixed_flip():
    flip = planning.plan_roster(5, target_epsilon=1.0, tolerated_loss=0.05, num_classes=3).flip_probability
    assert given_for_three(flip).machine.state is State.EXCHANGING
    fixed = {"target_epsilon": None, "flip_probability": 0.3}
    assert given_for_three(0.3, **fixed).machine.state is State.EXCHANGING


@pytest.mark.parametrize("flip", [0.0, 5e-324, 1e-310, 1e-300, math.nan, 0.67])
def test_no_flip_of_a_hostile_roster_of_three_classes_raises_in_a_peer(flip):
    hand = given_for_three(flip)
    assert hand.end in (POLICY, MISMATCH)
    assert hand.label_is_untouched
