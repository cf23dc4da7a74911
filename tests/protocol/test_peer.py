"""Whatever goes wrong, a round ends for every peer, once, with nobody asked in somebody else's place.

The faults are played on the virtual network; the same draws are known from the same round without faults.
"""

import collections
import dataclasses

import pytest

from p2p_labeldp.clustering import Clustering
from p2p_labeldp.facts import (
    Accepted,
    Answered,
    Committed,
    Ended,
    Flipped,
    Gathered,
    Held,
    Outcome,
    Reason,
    Rejected,
)
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import Answer, Ask, Digest, Done, GetManifest, Refusal, RosterReply
from p2p_labeldp.protocol.peer import GRACE_SECONDS, State
from protocol.little_round import (
    DEADLINES,
    MEMBERS,
    Hand,
    committed,
    gathered,
    given,
    keys,
    open_round,
    peer,
    record,
    roster,
)
from protocol.scenes import Scene
from protocol.test_report import reporting

REPORTED = (Outcome.REPORTED, None)
EARLY, AFTER_ASKS = 17.0, 23.9  # in the exchange phase, 16 to 24 s: before the first ask, after the last one


def askers_of(scene, mate):
    return {peer for peer, asked in scene.mates().items() if asked == mate}


def asked(scene):
    """Asker -> everybody to whom it sent an ask, heard or not."""
    found = collections.defaultdict(set)
    for sender, send in scene.sends:
        if isinstance(send.message, Ask):
            found[scene.ids.index(sender)].add(scene.ids.index(send.to.peer_id))
    return found


def popular(study):
    """A round without faults, and the peer that most ask, not counting itself."""
    scene = Scene(study).play()
    assert set(scene.ends().values()) == {REPORTED}
    mate = max(range(len(study)), key=lambda i: len(askers_of(scene, i) - {i}))
    return scene, mate, askers_of(scene, mate)


@pytest.fixture(scope="module")
def tolerant(study_of):
    """One cluster of twenty that goes on while twelve hold an answer."""
    return study_of(seed=1, sizes=(20,), tolerated_loss=0.4)


def test_without_faults_everybody_reports_and_each_asks_one_mate(study_of):
    scene = Scene(study_of()).play()
    assert scene.ends() == dict.fromkeys(range(80), REPORTED)
    assert asked(scene) == {peer: {mate} for peer, mate in scene.mates().items()}
    assert len(scene.facts(Answered)) == len(scene.facts(Accepted)) == 80
    assert scene.facts(Flipped) == []  # kept by its peer


def test_who_asked_a_mate_that_is_gone_abstains_and_the_rest_report(tolerant):
    _, mate, askers = popular(tolerant)
    scene = Scene(tolerant)
    scene.lose(mate, EARLY)
    ends = scene.play().ends()
    assert len(askers - {mate}) >= 2
    assert {ends[i] for i in askers - {mate}} == {(Outcome.ABSTAINED, Reason.MATE_UNREACHABLE)}
    assert {ends[i] for i in range(20) if i not in askers | {mate}} == {REPORTED}
    assert set(ends) == set(range(20)) - {mate}
    assert askers - {mate} <= askers_of(scene, mate)
    assert all(len(whom) == 1 for whom in asked(scene).values())


def test_who_asked_a_mate_that_is_gone_before_the_closing_abstains(tolerant):
    _, mate, askers = popular(tolerant)
    scene = Scene(tolerant)
    scene.lose(mate, AFTER_ASKS)
    ends = scene.play().ends()
    assert {ends[i] for i in askers - {mate}} == {(Outcome.ABSTAINED, Reason.MATE_NOT_READY)}
    assert {ends[i] for i in range(20) if i not in askers | {mate}} == {REPORTED}


@pytest.mark.parametrize("until", [float("inf"), 24.0])
def test_who_asked_a_deaf_mate_abstains_and_asks_nobody_else(tolerant, until):
    _, mate, askers = popular(tolerant)
    scene = Scene(tolerant, deaf={mate: lambda now: now < until}).play()
    assert scene.unheard >= len(askers)
    ends = scene.ends()
    assert {ends[i] for i in askers} == {(Outcome.ABSTAINED, Reason.MATE_TIMEOUT)}
    assert {ends[i] for i in range(20) if i not in askers} == {REPORTED}
    assert set(ends) == set(range(20))
    assert scene.mates() == Scene(tolerant).play().mates()
    assert all(len(whom) == 1 for whom in asked(scene).values())


def test_a_mate_that_hears_again_in_time_is_not_lost(study_of):
    """An ask that is not heard is repeated as soon as its time is up; the same box comes for it."""
    study = study_of(seed=1, sizes=(20,), deadlines=Deadlines(join=16.0, exchange=56.0, closing=64.0, report=70.0))
    mates = Scene(study).play().mates()
    scene = Scene(study, deaf={i: lambda now: now < 42.0 for i in range(20)}).play()
    assert scene.unheard
    assert scene.ends() == dict.fromkeys(range(20), REPORTED)
    assert scene.mates() == mates


def test_with_all_mates_but_one_deaf_nobody_reports(study_of):
    study = study_of(seed=1, sizes=(20,))
    _, hearing, _ = popular(study)
    deaf = {i: lambda _: True for i in range(20) if i != hearing}
    scene = Scene(study, deaf=deaf).play()
    assert set(scene.ends()) == set(range(20))
    reasons = collections.Counter(reason for _, reason in scene.ends().values())
    holding = len(askers_of(scene, hearing))
    assert reasons == {Reason.MATE_TIMEOUT: 20 - holding, Reason.TOO_FEW_HOLDING: holding}
    assert scene.facts(Accepted) == []
    assert holding > 1  # a peer that asked the one that hears held an answer, and kept it to itself


def test_losses_within_the_tolerated_share_still_give_reports(study_of):
    study = study_of(seed=2, sizes=(40,), tolerated_loss=0.15)
    scene = Scene(study)
    for i in (3, 17):
        scene.lose(i, AFTER_ASKS)
    ends = scene.play().ends()
    outcomes = collections.Counter(ends.values())
    lost = sum(mate in (3, 17) for peer, mate in scene.mates().items() if peer not in (3, 17))
    assert outcomes == {REPORTED: 38 - lost, (Outcome.ABSTAINED, Reason.MATE_NOT_READY): lost}
    assert len(scene.facts(Accepted)) == 38 - lost


def test_with_a_loss_of_15_percent_tolerated_a_round_outlives_5_percent_that_stop_after_their_ask(study_of):
    """Whoever has one of them for a mate loses its answer too, so about one in ten has nothing to report."""
    study = study_of(seed=1, sizes=(60,), tolerated_loss=0.15, target_epsilon=1.0)
    usual = Scene(study).play()
    scene = Scene(study)
    for stopped in range(3):
        scene.lose(stopped, AFTER_ASKS)
    ends = scene.play().ends()
    (roster_,) = scene.collector.rosters.values()
    assert roster_.plan == usual.collector.rosters[0].plan  # the guarantee is the roster's
    abstained = {i for i, end in ends.items() if end == (Outcome.ABSTAINED, Reason.MATE_NOT_READY)}
    assert abstained == {i for i, mate in scene.mates().items() if mate < 3 and i >= 3}
    assert {ends[i] for i in range(3, 60) if i not in abstained} == {REPORTED}
    assert len(abstained) >= 2
    assert asked(scene) == {peer: {mate} for peer, mate in usual.mates().items()}  # nobody asked twice


def test_below_the_holding_minimum_the_cluster_abstains(study_of):
    study = study_of(seed=2, sizes=(40,), tolerated_loss=0.05)
    scene = Scene(study)
    for i in (3, 17, 25, 31):
        scene.lose(i, AFTER_ASKS)
    ends = scene.play().ends()
    assert {outcome for outcome, _ in ends.values()} == {Outcome.ABSTAINED}
    assert {reason for _, reason in ends.values()} == {Reason.TOO_FEW_HOLDING, Reason.MATE_NOT_READY}
    assert len(ends) == 36
    assert scene.facts(Accepted) == []


def test_directories_converge_without_the_learner(study_of):
    for seed in range(5):
        study = study_of(seed=seed)
        scene = Scene(study)
        scene.lose_learner(1.01)  # every peer has the manifest by then
        scene.play()
        clusters = Clustering.from_payload(study.terms.clustering).assign(study.features)
        sizes = collections.Counter(clusters.tolist())
        assert {f.peer: f.records for f in scene.facts(Gathered)} == {i: sizes[clusters[i]] for i in range(80)}
        assert scene.ends() == dict.fromkeys(range(80), (Outcome.UNREACHABLE, None))
        assert scene.facts(Committed) == []
        assert not any(isinstance(message, Ask) for *_, message, _ in scene.traffic)


def test_the_learner_never_hands_out_a_peer_record(study_of):
    scene = Scene(study_of(seed=4)).play()
    said = [reply for *_, receiver, _, reply in scene.traffic if receiver == scene.learner]
    assert {type(reply).__name__ for reply in said} == {"RosterReply", "Receipt"}
    sent = [message for _, sender, *_, message, _ in scene.traffic if sender == scene.learner]
    assert sent
    assert all(message.records == () for message in sent)


def test_who_comes_late_is_late_and_disturbs_nobody(study_of):
    scene = Scene(study_of(seed=1), joins={11: DEADLINES.join + 0.5, 12: DEADLINES.exchange + 1}).play()
    ends = scene.ends()
    assert {i for i, end in ends.items() if end == (Outcome.LATE, None)} == {11, 12}
    assert {ends[i] for i in range(80) if i not in (11, 12)} == {REPORTED}


def test_a_cluster_below_the_minimum_abstains_and_the_others_report(study_of):
    study = study_of(seed=1, minimum_size=6)
    scene = Scene(study).play()
    clusters = Clustering.from_payload(study.terms.clustering).assign(study.features)
    for i, end in scene.ends().items():
        small = clusters[i] == 0
        assert end == ((Outcome.ABSTAINED, Reason.CLUSTER_TOO_SMALL) if small else REPORTED)
    assert len(scene.ends()) == 80
    assert {clusters[i] for i in scene.mates()} == {1, 2, 3}


# -- nothing but the one sealed bit depends on the label -------------------------------------------------------------


@pytest.mark.parametrize("fault", ["none", "gone", "deaf", "small", "learner gone"])
def test_what_travels_is_the_same_whatever_a_peers_label(study_of, fault):
    def play(label):
        labels = [0, 1] * 10
        labels[victim] = label
        study = study_of(
            seed=5, sizes=(20,), labels=labels, tolerated_loss=0.4, minimum_size=21 if fault == "small" else 20
        )
        scene = Scene(study, deaf={mate: lambda _: True} if fault == "deaf" else {})
        if fault == "gone":
            scene.lose(mate, EARLY)
        if fault == "learner gone":
            scene.lose_learner(EARLY)
        return scene.play()

    usual, victim, _ = popular(study_of(seed=5, sizes=(20,)))
    mate = usual.mates()[victim]
    zero, one = play(0), play(1)
    assert zero.deliveries() == one.deliveries()
    assert len(zero.deliveries()) > 100

    def apart(scene):
        return [fact for fact in scene.network.facts if not isinstance(fact, Accepted)]

    assert apart(zero) == apart(one)
    told = [[(f.peer, f.label) for f in scene.facts(Accepted)] for scene in (zero, one)]
    differ = {peer for (peer, a), (_, b) in zip(*told, strict=True) if a != b}
    if fault == "none":  # the control: exactly those who asked the victim reported another label
        assert differ == askers_of(zero, victim)
        assert differ
    else:
        assert differ <= askers_of(zero, victim)


# -- every round ends ------------------------------------------------------------------------------------------------


def joining():
    hand = Hand(peer())
    hand.start()
    return hand


def closing():
    hand = committed()
    hand.run(DEADLINES.exchange)
    return hand


STAGES = {
    State.JOINING: (joining, 1.0),
    State.COMMITTING: (gathered, DEADLINES.join + 3.2),
    State.EXCHANGING: (committed, DEADLINES.join + 3.2),
    State.CLOSING: (closing, DEADLINES.exchange),
    State.REPORTING: (lambda: reporting()[0], DEADLINES.report),
}


@pytest.mark.parametrize("state", STAGES)
def test_closing_a_peer_ends_its_round_once(state):
    make, now = STAGES[state]
    hand = make()
    assert hand.machine.state is state
    for _ in range(2):
        hand.machine.close(now)
        hand.settle()
    sent = state is State.REPORTING
    assert hand.end == ((Outcome.FAILED, Reason.NO_RECEIPT) if sent else (Outcome.ABSTAINED, Reason.NOT_READY))
    assert hand.machine.wake_at() is None
    hand.machine.wake(1000.0)
    assert hand.settle() == []


@pytest.mark.parametrize("state", STAGES)
def test_a_peer_that_hears_nothing_more_ends_by_itself(state):
    make, _ = STAGES[state]
    hand = make()
    hand.run(DEADLINES.report + GRACE_SECONDS)
    assert len(hand.persisted(Ended)) == 1
    assert hand.machine.over


@pytest.mark.parametrize("now", [DEADLINES.join, DEADLINES.exchange, DEADLINES.closing, DEADLINES.report + 100])
def test_a_timer_that_rings_late_does_what_was_due_in_order(now):
    hand = joining()
    hand.tell(*(record(i) for i in MEMBERS[1:]))
    hand.machine.wake(now)
    hand.settle()
    assert [fact.records for fact in hand.facts(Gathered)] == [5]
    assert len(hand.persisted(Ended)) == (now >= DEADLINES.exchange)


def test_an_ended_peer_still_serves_the_directory_and_answers_no_ask():
    hand = given(roster(flip_probability=0.0))
    assert hand.end == (Outcome.REFUSED, Reason.POLICY)
    hand.tell(record(8), now=20.0)
    assert keys(8).peer_id in hand.machine.directory.mates
    ask = Ask(hand.machine.opened.round_id, bytes(32), bytes(16))
    assert hand.receive(ask, keys(2).peer_id, 20.0) == Refusal("too_late")


@pytest.mark.parametrize("message", [GetManifest("h", 1), RosterReply(b""), Done(), Refusal("why")])
def test_what_is_not_for_a_peer_is_refused_and_logged(message):
    hand = joining()
    assert hand.receive(message, keys(2).peer_id, 1.0) == Refusal("not_for_a_peer")
    assert len(hand.facts(Rejected)) == 1


def test_a_deployed_peer_is_named_by_its_id():
    hand = gathered(opened=open_round(study=False), study=False)
    assert {fact.peer for fact in hand.facts(Gathered)} == {keys(1).peer_id.hex()}


@pytest.mark.parametrize("ringing", [True, False])
def test_a_peer_that_was_stopped_over_the_exchange_deadline_answers_nobody_when_it_goes_on(ringing, monkeypatch):
    """Its timers are due, and what came in meanwhile may be handed to it first."""
    hand = committed()
    if not ringing:  # the control
        monkeypatch.setattr(hand.machine, "wake", lambda now: None)
    accepted = hand.machine.my.roster
    ask = Ask(accepted.roster.round_id, accepted.digest, bytes(16))
    reply = hand.receive(ask, accepted.members[0], DEADLINES.exchange + 0.5)
    assert (reply == Refusal("too_late")) == ringing
    assert (hand.facts(Answered) == []) == ringing


@pytest.mark.parametrize("ringing", [True, False])
def test_a_peer_that_was_stopped_over_the_exchange_deadline_takes_no_answer(ringing, monkeypatch):
    hand = committed()
    hand.run(DEADLINES.exchange - 0.1)
    (sent, *_) = hand.sent(Ask)
    if not ringing:  # the control
        monkeypatch.setattr(hand.machine, "wake", lambda now: None)
    hand.answer(sent, Answer(b"box"), DEADLINES.exchange + 0.5)
    assert (hand.facts(Held) == []) == ringing


@pytest.mark.parametrize("retry", [True, False])
def test_a_first_contact_that_has_no_round_yet_is_asked_again_and_one_that_refuses_is_not(study_of, retry):
    """By hand, contacts are started in any order: a host without a machine says ``not_ready``."""

    def made(ordinal, machine):
        receive = machine.receive

        def not_yet(message, sender, now):
            if now < 4.0 and isinstance(message, Digest):
                return Refusal("not_ready", retry=retry)
            return receive(message, sender, now)

        if ordinal == 0:
            machine.receive = not_yet

    study = dataclasses.replace(study_of(seed=1, sizes=(5,)), neighbours=[[], [0], [0], [0], [0]])
    ends = Scene(study, made=made).play().ends()
    assert (set(ends.values()) == {REPORTED}) is retry
