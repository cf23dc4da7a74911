"""Who accepts its roster too late, or was stopped, was not able to answer throughout, and does not say that it was.

A learner can make a peer late, by giving it the roster late. Had the peer then declared itself ready, it would have
answered those askers that asked once more in time, and not the others. So it would if it was stopped before all had
asked: it would have answered those who came first.
"""

import collections
import dataclasses

import msgspec
import pytest

from p2p_labeldp.facts import Answered, Asked, Committed, Ended, Flipped, Outcome, Ready, Reason
from p2p_labeldp.network.swarm import scenario
from p2p_labeldp.network.swarm.faults import Stop
from p2p_labeldp.protocol import peer as peers
from p2p_labeldp.protocol.messages import Ask, GetRoster, Refusal
from protocol.little_round import DEADLINES, MEMBERS, OPENED, address, back, committed, gathered, given, keys, roster
from protocol.scenes import Scene

REPORTED = (Outcome.REPORTED, None)
LAST = DEADLINES.exchange - OPENED.manifest.gossip_period


@pytest.fixture
def study(study_of):
    """One cluster of twenty that goes on while twelve hold an answer."""
    return study_of(seed=1, sizes=(20,), tolerated_loss=0.4)


def kept_waiting(study, until):
    """The learner gives the peer that most ask its roster no sooner than ``until``; that peer, and who asks it."""
    mates = Scene(study).play().mates()
    late = max(range(20), key=lambda i: sum(mate == i for mate in mates.values()))

    def tamper(machine, message, sender, reply):
        if isinstance(message, GetRoster) and sender == scene.ids[late] and scene.network.now < until:
            return Refusal("not_yet", retry=True)
        return reply

    scene = Scene(study, tamper=tamper)
    scene.play()
    (at,) = (fact.at for fact in scene.facts(Committed) if fact.peer == late)
    assert at >= until
    return scene, late, {i for i, mate in mates.items() if mate == late and i != late}


def test_who_committed_too_late_is_not_ready_and_neither_it_nor_its_askers_report(study):
    scene, late, askers = kept_waiting(study, LAST + 0.2)
    assert late not in {fact.peer for fact in scene.facts(Ready)}
    ends = scene.ends()
    assert ends[late] == (Outcome.ABSTAINED, Reason.NOT_READY)
    reasons = {ends[i][1] for i in askers}
    assert None not in reasons
    assert Reason.MATE_NOT_READY in reasons  # it did answer some of them
    assert {ends[i] for i in range(20) if i not in askers | {late}} == {REPORTED}


def test_without_the_cut_some_of_its_askers_report_and_some_do_not(study, monkeypatch):
    """The control."""
    monkeypatch.setattr(peers.Part, "able", property(lambda _: True, lambda *_: None), raising=False)
    scene, late, askers = kept_waiting(study, LAST + 0.2)
    assert late in {fact.peer for fact in scene.facts(Ready)}
    assert REPORTED in {scene.ends()[i] for i in askers}


def test_who_committed_while_everybody_could_still_ask_again_is_ready(study):
    scene, _, askers = kept_waiting(study, LAST - 1.0)
    assert scene.ends() == dict.fromkeys(range(20), REPORTED)
    assert any(isinstance(reply, Refusal) for _, _, to, ask, reply in scene.traffic if isinstance(ask, Ask))
    assert askers


@pytest.mark.parametrize(("now", "ready"), [(LAST, True), (LAST + 0.001, False)])
def test_the_cut_is_one_repeat_before_the_deadline(now, ready):
    hand = given(roster(), hand=gathered(), now=now)
    hand.run(DEADLINES.exchange)
    assert len(hand.persisted(Ready)) == ready
    assert len(hand.sent(Ask)) >= 1  # it asks all the same
    assert {send.to for send in hand.sent(Ask)} <= {address(i) for i in MEMBERS}


SEED = 2

# -- stopped --------------------------------------------------------------------------------------------------------

QUARTER = (DEADLINES.exchange - DEADLINES.join) / 4  # whoever asks for the first time has asked by the last one


def stopped(*, since, until, hand=None):
    """A member that does nothing for a while, then finds a message that came in meanwhile."""
    hand = hand or committed()
    hand.run(since)
    hand.receive(Ask(OPENED.round_id, hand.machine.my.roster.digest, bytes(16)), keys(2).peer_id, until)
    hand.run(max(until, DEADLINES.exchange))
    return hand


@pytest.mark.parametrize(
    ("since", "until", "ready"),
    [
        (DEADLINES.exchange - QUARTER - 0.1, DEADLINES.exchange + 0.1, False),
        (DEADLINES.join + 4.0, DEADLINES.closing - 0.1, False),
        (DEADLINES.join + 4.0, DEADLINES.exchange - 0.1, True),  # it answers now what came in meanwhile
        (DEADLINES.exchange - QUARTER, DEADLINES.exchange + 3.0, True),  # everybody had asked once
    ],
)
def test_who_was_stopped_from_before_all_had_asked_until_the_exchange_was_over_is_not_ready(since, until, ready):
    hand = stopped(since=since, until=until)
    assert len(hand.persisted(Ready)) == ready
    assert len(hand.persisted(Flipped)) == 1


def test_a_peer_that_came_back_from_its_disk_is_held_to_the_same():
    hand = back(committed(), DEADLINES.join + 4.0)
    assert not stopped(since=DEADLINES.join + 4.5, until=DEADLINES.closing - 0.1, hand=hand).persisted(Ready)
    hand = back(committed(), DEADLINES.join + 4.0)
    assert stopped(since=DEADLINES.exchange - 1.0, until=DEADLINES.closing - 0.1, hand=hand).persisted(Ready)


def test_neither_a_stopped_mate_nor_anybody_it_answered_before_reports():
    """Though the others hold answers enough."""
    assert reported_askers() == (0, 0)


def test_without_the_cut_some_askers_of_a_stopped_mate_report_and_some_do_not(monkeypatch):
    """The control."""
    monkeypatch.setattr(peers.Part, "able", property(lambda _: True, lambda *_: None), raising=False)
    mate, askers = reported_askers()
    assert mate == 1
    assert askers > 0


def reported_askers(seed=SEED):
    """Whether a mate that is stopped amid its asks says that it is ready, and how many of its askers report."""
    drawn = scenario.draw(seed, "none")
    terms = msgspec.structs.replace(drawn.study.terms, tolerated_loss=0.4)
    drawn = dataclasses.replace(drawn, study=dataclasses.replace(drawn.study, terms=terms))
    free = scenario.Play(drawn)
    free.verdict()
    asks = collections.defaultdict(list)
    for fact in free._facts:
        if isinstance(fact, Answered) and fact.asker != fact.peer:
            asks[fact.peer].append(fact.at)
    mate, times = max(asks.items(), key=lambda item: len(item[1]))
    assert len(times) > 2
    amid = (times[0] + times[1]) / 2
    stop = Stop(party=mate, start=amid, seconds=scenario.DEADLINES.exchange + 0.5 - amid)
    hostile = scenario.Play(dataclasses.replace(drawn, faults=(stop,)))
    hostile.verdict()
    ready = {fact.peer for fact in hostile._facts if isinstance(fact, Ready)}
    mates = {fact.peer: fact.mate for fact in hostile._facts if isinstance(fact, Asked)}
    ends = {fact.peer: (fact.outcome, fact.reason) for fact in hostile._facts if isinstance(fact, Ended)}
    askers = [peer for peer, asked in mates.items() if asked == mate and peer != mate]
    return int(mate in ready), sum(ends[peer] == REPORTED for peer in askers)
