"""A learner that signs two rosters for one cluster is found out by gossip, and no report leaves."""

import collections

import msgspec
import pytest

from p2p_labeldp.facts import Outcome, Reason, Rejected, Reported
from p2p_labeldp.network.virtual import transparent_keys
from p2p_labeldp.protocol import closing, roster
from p2p_labeldp.protocol.messages import Contradiction, Done, GetRoster, Refusal, RosterReply
from p2p_labeldp.protocol.peer import State
from protocol.little_round import DEADLINES, OPENED, committed, keys, open_round
from protocol.little_round import roster as signed
from protocol.scenes import Scene
from protocol.test_peer import STAGES

MISMATCH = (Outcome.REFUSED, Reason.ROSTER_MISMATCH)
FIRST = signed()
SECOND = signed(holding_minimum=4)
NOW = DEADLINES.join + 5.0


@pytest.fixture
def study(study_of):
    """One cluster of twelve in which two holders are enough, so that without a proof some of each half may report."""
    return study_of(seed=5, sizes=(12,), tolerated_loss=0.85)


def resigned(envelope):
    """The same members and terms, signed in other bytes: the mildest case, in which only the digests differ."""
    learner = transparent_keys(b"learner".ljust(32))
    content = roster._decoder.decode(learner.verify(roster.KIND, envelope).payload)
    padded = b"\xde\x00\x06" + msgspec.msgpack.encode(content)[1:]  # the same map with a longer head
    return learner.sign(roster.KIND, padded)


def split(study, share):
    """The learner gives the peers whose ordinal is in ``share`` another roster than the rest."""

    def tamper(machine, message, sender, reply):
        if machine.peer_id == scene.learner and isinstance(reply, RosterReply) and scene.ids.index(sender) in share:
            return RosterReply(resigned(reply.roster))
        return reply

    scene = Scene(study, tamper=tamper)
    return scene.play()


def test_a_cluster_with_two_rosters_finds_out_and_nobody_reports(study):
    scene = split(study, range(6))
    assert collections.Counter(scene.ends().values()) == {MISMATCH: 12}
    assert scene.facts(Reported) == []


def test_one_peer_with_another_roster_is_enough(study):
    assert collections.Counter(split(study, (3,)).ends().values()) == {MISMATCH: 12}


def test_with_one_roster_all_report(study):
    assert set(split(study, ()).ends().values()) == {(Outcome.REPORTED, None)}


def test_with_nobody_asking_for_the_other_roster_reports_leave(study, monkeypatch):
    monkeypatch.setattr(closing, "MAX_ELSEWHERE", 0)
    scene = split(study, range(6))
    assert MISMATCH not in scene.ends().values()
    assert scene.facts(Reported)


def test_a_proof_ends_the_round_of_whoever_gets_it_and_travels_on():
    hand = committed()
    assert hand.receive(Contradiction(FIRST, SECOND), keys(2).peer_id, NOW) == Done()
    assert hand.end == MISMATCH
    told = hand.sent(Contradiction)
    assert told
    assert len({send.to for send in told}) == len(told) <= 4
    hand.receive(Contradiction(FIRST, SECOND), keys(3).peer_id, NOW + 1)
    assert hand.sent(Contradiction) == told


@pytest.mark.parametrize("state", [state for state in STAGES if state is not State.REPORTING])
def test_a_proof_ends_the_round_of_a_peer_in_any_state(state):
    make, now = STAGES[state]
    hand = make()
    assert hand.machine.state is state
    assert hand.receive(Contradiction(FIRST, SECOND), keys(2).peer_id, now) == Done()
    assert hand.end == MISMATCH
    assert [fact.about for fact in hand.facts(Rejected)] == ["the learner signed two rosters for one cluster"]


def test_a_proof_that_comes_when_the_report_has_left_is_passed_on_and_the_receipt_still_counts():
    make, now = STAGES[State.REPORTING]
    hand = make()
    hand.receive(Contradiction(FIRST, SECOND), keys(2).peer_id, now)
    assert hand.machine.state is State.REPORTING
    assert hand.sent(Contradiction)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FIRST, FIRST),
        (FIRST, signed(signer=keys(2))),
        (FIRST, signed(opened=open_round(nonce=b"\1" * 16))),
        (FIRST, signed(cluster=1)),
        (FIRST, SECOND[:-1]),
        (FIRST, b""),
    ],
    ids=["the same twice", "by another key", "of another round", "of another cluster", "damaged", "empty"],
)
def test_what_proves_nothing_changes_nothing(first, second):
    hand = committed()
    for proof in (Contradiction(first, second), Contradiction(second, first)):
        assert hand.receive(proof, keys(2).peer_id, NOW) == Done()
    assert not hand.machine.over
    assert hand.sent(Contradiction) == []


def test_a_mate_shows_its_roster_and_only_that_of_its_round_and_cluster():
    hand = committed()
    assert hand.receive(GetRoster(OPENED.round_id, 0), keys(2).peer_id, NOW) == RosterReply(FIRST)
    assert hand.receive(GetRoster(OPENED.round_id, 1), keys(2).peer_id, NOW) == Refusal("no_roster", retry=True)
    assert hand.receive(GetRoster(bytes(32), 0), keys(2).peer_id, NOW) == Refusal("another_round")
