"""Killed at any instant and started again, nobody asks, flips, answers or reports a second time, and the round goes on.

Played on the virtual network: every fact that is persisted in a round kills its party once right before it is on disk
and once right after, before the effect behind it.
"""

import collections

import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import SHORT_ID, Accepted, Ended, Flipped, Listed, Opened, Outcome, Reason, Signed
from p2p_labeldp.protocol.kept import (
    Abandoned,
    AcceptedFrom,
    AnsweredWith,
    AskedFor,
    Cleared,
    Closed,
    CommittedTo,
    EndedIn,
    GatheredThese,
    Heard,
    HeldBox,
    JoinedAs,
    ReportedAs,
    Rostered,
)
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import Ask, Refusal
from protocol.any_input import snapshot
from protocol.little_round import DEADLINES, Hand, back, committed, example, keys, open_round, peer, roster
from protocol.lives import LEARNER, Lives

REPORTED, CRASHED = (Outcome.REPORTED, None), (Outcome.ABSTAINED, Reason.CRASHED)
PEERS = 8
IN_TIME, SLOW, NEXT_PHASE = 0.3, 2.5, 9.0  # seconds until the restart; phases take eight, the exchange sixteen


@pytest.fixture(scope="module")
def study(study_of):
    """One cluster of eight that goes on while six hold an answer; long enough an exchange to come back in it."""
    deadlines = Deadlines(join=16.0, exchange=32.0, closing=40.0, report=48.0)
    return study_of(seed=5, sizes=(PEERS,), tolerated_loss=0.3, deadlines=deadlines)


@pytest.fixture(scope="module")
def undisturbed(study):
    lives = Lives(study).play()
    assert lives.violations() == []
    assert set(lives.ends().values()) == {REPORTED}
    return lives


@pytest.fixture(scope="module")
def deaths(study, undisturbed):
    """(before, away) -> one round for each fact of the undisturbed one, in which it kills its party."""

    def play(before, away, **terms):
        return [Lives(study, kill=kill, before=before, away=away, **terms).play() for kill in range(undisturbed.count)]

    return play


DRAW = (AskedFor, HeldBox, Cleared, ReportedAs)  # the draw and all that rests on it
ALL_WAYS = [(before, away) for before in (True, False) for away in (IN_TIME, SLOW, NEXT_PHASE)]


@pytest.mark.parametrize(("before", "away"), ALL_WAYS)
def test_wherever_a_party_is_killed_nothing_happens_twice_and_no_accepted_report_is_lost(deaths, before, away):
    for lives in deaths(before, away):
        assert lives.violations() == [], (lives.victim, lives.fatal)
        assert set(lives.ends()) == set(range(PEERS))  # a round always ends, for everybody


@pytest.mark.parametrize("before", [True, False])
def test_the_disk_alone_is_enough_whatever_the_coins_of_the_next_life(deaths, before):
    for lives in deaths(before, IN_TIME, fresh_coins=True):
        assert lives.violations() == [], (lives.victim, lives.fatal)


@pytest.mark.parametrize("before", [True, False])
def test_the_coins_alone_are_enough_if_the_disk_lost_the_draw_and_the_flip(deaths, before):
    for lives in deaths(before, IN_TIME, loses=(*DRAW, Flipped)):
        assert lives.violations() == [], (lives.victim, lives.fatal)


@pytest.mark.parametrize(
    ("loses", "found"),
    [
        (DRAW, "an ask left for a second mate"),
        ((Flipped,), "flipped its label a second time"),
        ((AcceptedFrom,), "is lost"),
    ],
)
def test_a_disk_that_loses_what_it_was_given_is_found_out(deaths, loses, found):
    """The control: persisting made good for nothing, and no coin that would repeat what was lost."""
    seen = [line for lives in deaths(False, IN_TIME, loses=loses, fresh_coins=True) for line in lives.violations()]
    assert any(found in line for line in seen)


def test_a_party_that_comes_back_at_once_takes_up_where_it_was(deaths):
    """Whoever could still be waited for reports; the others' round goes on as if nothing had been."""
    took_part = collections.defaultdict(collections.Counter)
    for lives in deaths(False, IN_TIME):
        ends = lives.ends()
        if lives.victim == LEARNER:
            assert set(ends.values()) == {REPORTED}, lives.fatal
        else:
            took_part[type(lives.fatal)][ends[lives.victim]] += 1
    whole = {REPORTED: PEERS}
    for kind in (JoinedAs, GatheredThese, CommittedTo, Cleared, ReportedAs, EndedIn):
        assert took_part[kind] == whole, kind
    for kind in (AskedFor, AnsweredWith, HeldBox):  # not all: some were too late for every asker to ask once more
        assert took_part[kind][REPORTED] >= PEERS // 2
        assert set(took_part[kind]) <= {REPORTED, CRASHED}


@pytest.mark.parametrize("kind", [Heard, Rostered, AcceptedFrom, Closed])
def test_a_learner_that_was_killed_serves_its_round_to_the_end(deaths, kind):
    killed = [lives for lives in deaths(False, SLOW) if isinstance(lives.fatal, kind)]
    assert killed
    for lives in killed:
        assert lives.victim == LEARNER
        assert set(lives.ends().values()) == {REPORTED}
        assert len(lives.collected.reports) == PEERS


@pytest.mark.parametrize(("before", "fatal"), [(False, Rostered), (True, Rostered), (False, AcceptedFrom)])
def test_the_roster_is_told_of_though_its_learner_died_once_it_was_kept(deaths, before, fatal):
    """Once, or again in the same words."""
    killed = [lives for lives in deaths(before, IN_TIME) if isinstance(lives.fatal, fatal)]
    assert killed
    for lives in killed:
        (kept,) = (fact for fact in lives.disks[LEARNER].written if isinstance(fact, Rostered))
        signed = {fact for fact in lives.network.facts if isinstance(fact, Signed)}
        listed = {fact for fact in lives.network.facts if isinstance(fact, Listed)}
        assert {(fact.cluster, fact.size, fact.at) for fact in signed} == {(0, PEERS, kept.at)}
        assert {(fact.cluster, fact.peer, fact.at) for fact in listed} == {(0, i, kept.at) for i in range(PEERS)}


def test_a_peer_that_comes_back_elsewhere_with_a_clock_set_back_is_found_by_its_askers(deaths, undisturbed):
    asked = {fact.mate for fact in undisturbed.facts if isinstance(fact, AskedFor)}
    moved = [
        lives
        for lives in deaths(False, IN_TIME, moved=True)
        if isinstance(lives.fatal, CommittedTo) and lives.victim in asked
    ]
    assert moved
    for lives in moved:
        assert set(lives.ends().values()) == {REPORTED}
        assert lives.violations() == []


# -- one peer by hand -----------------------------------------------------------------------------------------------


def ask_of(hand, asker):
    part = hand.machine.my
    digest = part.roster.digest
    return Ask(hand.machine.opened.round_id, digest, bytes([asker]) * 16)


def test_the_same_bytes_are_given_to_an_asker_that_asks_again_after_the_restart():
    hand = committed()
    question, now = ask_of(hand, 2), DEADLINES.join + 4.0
    given = hand.receive(question, keys(2).peer_id, now)
    again = back(hand, now + 0.5)
    assert again.receive(question, keys(2).peer_id, now + 1.0) == given
    other = Ask(question.round_id, question.roster, bytes(16))
    assert again.receive(other, keys(2).peer_id, now + 1.0) == Refusal("second_ask")


def test_after_the_round_nothing_of_an_earlier_life_is_left_either():
    """Draw, boxes and answers, wherever the machine might still have them."""
    hand = committed()
    now = DEADLINES.join + 4.0
    given = hand.receive(ask_of(hand, 2), keys(2).peer_id, now)
    again = back(hand, now + 0.5)

    def held():
        everything = repr(snapshot(again.machine))
        return repr(given.box) in everything or AnsweredWith.__name__ in everything

    assert held()  # the control
    again.machine.close(now + 1.0)
    assert again.machine.over
    assert not held()


def test_a_label_that_was_to_be_spent_is_spent_though_its_peer_missed_the_end_of_the_exchange():
    hand = committed()
    assert not hand.persisted(Flipped)
    again = back(hand, DEADLINES.closing - 1.0)
    assert again.end == CRASHED
    assert len(again.persisted(Flipped)) == 1


def test_a_peer_that_is_in_another_round_gives_up_the_one_it_died_in_and_its_label_is_spent():
    hand = committed()
    again = back(hand, 0.0, opened=open_round(nonce=b"\1" * 16))
    (release,), (left,) = again.persisted(Flipped), again.persisted(Abandoned)
    assert left.round_id == hand.machine.opened.round_id
    assert (release.round_id, release.roster) == (left.round_id.hex(), hand.machine.my.roster.digest.hex())
    assert again.end == (Outcome.REFUSED, Reason.LABEL_SPENT)


def test_a_peer_that_died_before_it_had_a_roster_has_spent_nothing():
    hand = Hand(peer())
    hand.start()
    again = back(hand, 0.0, opened=open_round(nonce=b"\1" * 16))
    assert not again.persisted(Flipped)
    assert again.persisted(Abandoned)
    assert not again.machine.over


def test_a_round_that_is_over_is_not_played_again():
    hand = Hand(peer())
    hand.start()
    hand.machine.close(3.0)
    hand.settle()
    again = back(hand, 4.0)
    assert again.machine.over
    assert again.effects
    assert [again.machine.outcome] == again.facts(Ended)
    assert not again.persisted(Ended)  # told again, not ended again


def test_a_peer_does_not_come_back_with_another_example():
    hand = committed()
    with pytest.raises(ConfigurationError, match="label id: '9' given; the peer is in a round with '1'"):
        back(hand, 20.0, example=example(9))


def test_who_comes_back_before_the_deadline_without_a_list_of_whom_it_knew_abstains_in_the_last_two_periods():
    hand = Hand(peer())
    hand.start()
    assert back(hand, DEADLINES.join - 1.9).end == CRASHED
    assert not back(hand, DEADLINES.join - 2.1).machine.over


def test_a_roster_that_leaves_out_whom_the_peer_knew_in_its_earlier_life_is_refused():
    from protocol.little_round import MEMBERS, gathered, given, record

    hand = gathered()
    again = back(hand, DEADLINES.join + 3.3)
    again.tell(*(record(i) for i in MEMBERS if i not in (1, 5)), now=DEADLINES.join + 3.4)
    again.run(DEADLINES.join + 3.5)
    short = given(roster((1, 2, 3, 4)), hand=again, now=DEADLINES.join + 3.5)
    assert short.end == (Outcome.REFUSED, Reason.ROSTER_MISMATCH)


def test_a_learner_that_was_killed_can_tell_again_what_it_told_before(deaths, undisturbed):
    """What it keeps of the round in the end is what it told in its last life and, before that, this."""

    def told(facts):
        return {repr(fact) for fact in facts if isinstance(fact, Signed | Listed | Accepted)}  # rosters perhaps twice

    lives = [one for one in deaths(True, IN_TIME) if one.victim == LEARNER]
    assert {type(one.fatal) for one in lives} >= {Rostered, AcceptedFrom}
    for one in [undisturbed, *lives]:
        retold = list(one.machines[LEARNER].retell(one.disks[LEARNER].facts()))
        assert told(retold) == told(one.network.facts)
        assert len(told(retold)) == 1 + 2 * PEERS
        assert [fact.id for fact in retold if isinstance(fact, Opened)] == [one.keys.peer_id.hex()[:SHORT_ID]]
    assert list(undisturbed.machines[LEARNER].retell([])) == []
