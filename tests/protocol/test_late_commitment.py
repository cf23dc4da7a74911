"""Who accepts its roster too late was not able to answer throughout, and does not say that it was.

A learner can make a peer late, by giving it the roster late. Had the peer then declared itself ready, it would have
answered those askers that asked once more in time, and not the others.
"""

import pytest

from p2p_labeldp.facts import Committed, Outcome, Ready, Reason
from p2p_labeldp.protocol import peer as peers
from p2p_labeldp.protocol.messages import Ask, GetRoster, Refusal
from protocol.little_round import DEADLINES, MEMBERS, OPENED, address, gathered, given, roster
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
