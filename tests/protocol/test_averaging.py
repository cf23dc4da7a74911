"""The learner of private rounds: what enters an average, what ends a round, and what survives its death."""

import numpy as np
import pytest

from p2p_labeldp import randomness
from p2p_labeldp.errors import LocalProtocolError
from p2p_labeldp.facts import Averaged, Rejected
from p2p_labeldp.network.virtual import Killed
from p2p_labeldp.protocol import averaging, federation
from p2p_labeldp.protocol.averaging import TRANSITIONS, State
from p2p_labeldp.protocol.kept import Checkpoint, RunClosed
from p2p_labeldp.protocol.messages import Contribute, Done, GetManifest, GetRound, ManifestReply, Refusal, RoundReply
from protocol.little_run import (
    LEARNER,
    MANIFEST,
    SEED,
    Disk,
    averager,
    contribution,
    contributor,
    facts_of,
    keys,
    manifest,
    opened,
    play,
    pull,
)

RUN_ID = opened()[1].run_id


def started(of=MANIFEST, **terms):
    learner = averager(of, **terms)
    learner.start(0.0)
    learner.effects()
    return learner


def give(learner, updates, now=1.0):
    """Each peer's box; an update, or None for nothing."""
    of, round_id = learner.opened.manifest, learner._round_id
    return [
        learner.receive(contribution(update, i, round_id, of), keys(i).peer_id, now) for i, update in updates.items()
    ]


def noise(number=0, seed=SEED):
    return randomness.replay(seed, 0).noise_generator(round_id=b"", number=number, reports=b"").standard_normal(3)


def test_a_round_is_the_sum_over_the_expected_cohort_and_noise():
    learner = started()
    one, two = np.array([1.0, 0.0, 0.0]), np.array([0.0, 3.0, 0.0])
    assert give(learner, {1: two, 0: one, 2: None, 3: None}) == [Done()] * 4
    assert learner.number == 1
    expected_cohort = 0.5 * 4  # not the two who took part, though here they are as many
    assert learner.parameters == pytest.approx(-((one + two) / expected_cohort + 0.25 * noise()), rel=1e-14)
    assert (learner.cohorts, learner.participations) == ((2,), {"0": 1, "1": 1})
    alone = started()
    give(alone, {0: one, 1: None, 2: None, 3: None})
    assert alone.parameters == pytest.approx(-(one / expected_cohort + 0.25 * noise()), rel=1e-14)


def test_an_empty_cohort_still_releases_noise():
    learner = started()
    give(learner, dict.fromkeys(range(4)))
    assert learner.cohorts == (0,)
    assert (learner.parameters == -(0.25 * noise())).all()
    assert (learner.parameters != 0).all()
    silent = started(manifest(sigma=0.0))  # the noise alone moved it
    give(silent, dict.fromkeys(range(4)))
    assert (silent.parameters == 0).all()


def test_a_round_that_nobody_answers_releases_noise_at_its_deadline():
    learner = started()
    learner.wake(9.9)
    assert learner.number == 0
    learner.wake(10.0)
    assert learner.number == 1
    assert (learner.parameters == -(0.25 * noise())).all()


def test_the_order_of_arrival_does_not_change_a_bit():
    rng = np.random.default_rng(0)
    updates = {i: rng.standard_normal(3) for i in range(4)}
    models = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)):
        learner = started()
        give(learner, {i: updates[i] for i in order})
        models.append(learner.parameters.tobytes())
    assert len(set(models)) == 1


def test_a_peer_that_reports_twice_counts_once():
    def averaged(forgetful):
        learner = started(manifest(sigma=0.0))
        first, second = np.array([1.0, 0.0, 0.0]), np.array([40.0, 0.0, 0.0])
        box = contribution(first, 0, learner._round_id)
        assert learner.receive(box, keys(0).peer_id, 1.0) == Done()
        assert learner.receive(box, keys(0).peer_id, 1.0) == Done()  # the very same again is a lost reply
        if forgetful:
            learner._boxes.clear()
        replies = give(learner, {0: second})
        give(learner, {1: None, 2: None, 3: None})
        return replies, facts_of(learner.effects(), Rejected), learner

    replies, rejected, learner = averaged(forgetful=False)
    assert replies == [Refusal("answered_before")]
    assert "answered round 0 twice" in rejected[0].about
    assert (learner.parameters.tolist(), learner.cohorts) == ([-0.5, 0.0, 0.0], (1,))
    assert averaged(forgetful=True)[2].parameters[0] == -20.0  # a learner that does not remember who answered


def test_a_report_larger_than_the_projection_is_shrunk_to_it():
    learner = started(manifest(sigma=0.0, projection=2.0))
    give(learner, {0: np.array([3e200, 4e200, 0.0]), 1: None, 2: None, 3: None})
    assert learner.parameters == pytest.approx([-0.6, -0.8, 0.0])
    assert np.linalg.norm(learner.parameters) * 2.0 <= 2.0
    wide = started(manifest(sigma=0.0, projection=1e99))
    give(wide, {0: np.array([3e20, 4e20, 0.0]), 1: None, 2: None, 3: None})
    assert wide.parameters[0] == -1.5e20


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_report_that_is_not_finite_is_no_report(value):
    learner = started(manifest(sigma=0.0))
    assert give(learner, {0: np.array([value, 0.0, 0.0])}) == [Refusal("bad_box")]
    assert "not finite" in facts_of(learner.effects(), Rejected)[0].about
    assert give(learner, {0: np.array([1.0, 0.0, 0.0]), 1: None, 2: None, 3: None}) == [Done()] * 4
    assert learner.parameters.tolist() == [-0.5, 0.0, 0.0]


def test_boxes_of_others_or_of_other_rounds_are_refused():
    learner = started()
    box = contribution(np.ones(3), 0, learner._round_id)
    assert learner.receive(box, keys(1).peer_id, 1.0) == Refusal("bad_box")  # forwarded by somebody else
    other = contribution(np.ones(3), 0, bytes(32))
    assert learner.receive(other, keys(0).peer_id, 1.0) == Refusal("round_over")
    replayed = Contribute(learner._round_id, other.sealed)
    assert learner.receive(replayed, keys(0).peer_id, 1.0) == Refusal("bad_box")
    short = federation.seal_contribution(
        np.ones(2), ordinal=0, dimension=2, run_key=MANIFEST.run_key, round_id=learner._round_id, keys=keys(0)
    )
    assert learner.receive(Contribute(learner._round_id, short), keys(0).peer_id, 1.0) == Refusal("bad_box")
    assert learner.receive(box, keys(0).peer_id, 1.0) == Done()


def test_an_update_that_is_in_no_average_counts_in_its_peers_ledger_all_the_same():
    learner = started()
    late = [contribution(np.ones(3), 0, learner._round_id), contribution(None, 1, learner._round_id)]
    learner.wake(10.0)
    for _ in range(2):  # once, however often it comes
        assert learner.receive(late[0], keys(0).peer_id, 11.0) == Refusal("round_over")
    assert learner.receive(late[1], keys(1).peer_id, 11.0) == Refusal("round_over")
    made_up = contribution(np.ones(3), 0, bytes(32))
    assert learner.receive(made_up, keys(0).peer_id, 11.0) == Refusal("round_over")
    assert (learner.cohorts, learner.participations) == ((0,), {"0": 1})
    give(learner, {2: np.ones(3), 3: None}, now=12.0)
    learner.close(13.0)  # in the midst of a round
    assert (learner.cohorts, learner.participations) == ((0,), {"0": 1, "2": 1})


def test_a_late_update_is_counted_in_the_next_life_too():
    learner = started()
    late = [contribution(np.ones(3), 0, learner._round_id), contribution(None, 1, learner._round_id)]
    learner.wake(10.0)
    over = facts_of(learner.effects(), Checkpoint)
    for box, i in ((late[0], 0), (late[0], 0), (late[1], 1)):
        learner.receive(box, keys(i).peer_id, 11.0)
    kept = facts_of(learner.effects(), Checkpoint)
    assert len(kept) == 1  # of what is news, not of a repeat, nor of nothing

    def counted(log):
        again = averager(log=log)
        again.start(12.0)
        assert (again.opening, again.cohorts) == (learner.opening, (0,))
        return again.participations

    assert counted(kept) == {"0": 1}
    assert counted(over) == {}  # a learner that had kept no more than its round's end


def test_no_more_peers_are_admitted_than_the_divisor_is_made_for():
    learner = started()
    for i in range(4):
        assert isinstance(learner.receive(GetRound(RUN_ID), keys(i).peer_id, 0.0), RoundReply)
    assert learner.receive(GetRound(RUN_ID), keys(9).peer_id, 0.0) == Refusal("population_complete")
    assert give(learner, {9: np.ones(3)}) == [Refusal("population_complete")]
    assert isinstance(learner.receive(GetRound(RUN_ID), keys(0).peer_id, 0.0), RoundReply)


def test_who_has_answered_is_not_sent_the_model_again():
    learner = started()
    assert learner.receive(GetRound(RUN_ID), keys(0).peer_id, 0.0) == RoundReply(learner.opening, False)
    give(learner, {0: None})
    assert learner.receive(GetRound(RUN_ID), keys(0).peer_id, 1.0) == RoundReply(b"", True)
    assert learner.receive(GetRound(RUN_ID), keys(1).peer_id, 1.0) == RoundReply(learner.opening, False)
    give(learner, {1: None, 2: None, 3: None})
    assert learner.receive(GetRound(RUN_ID), keys(0).peer_id, 2.0) == RoundReply(learner.opening, False)


def test_what_else_is_asked():
    learner = started()
    assert isinstance(learner.receive(GetManifest("peer", 1), keys(0).peer_id, 0.0), ManifestReply)
    assert learner.receive(GetRound(bytes(32)), keys(0).peer_id, 0.0) == Refusal("another_run")
    assert learner.receive(Done(), keys(0).peer_id, 0.0) == Refusal("not_for_a_learner")


def test_a_peer_that_never_answers_costs_one_deadline():
    def seconds(peers):
        lives, net = play(peers=peers)
        assert lives[-1].complete
        return [fact.at for fact in net.facts if isinstance(fact, Averaged)]

    with_all = seconds(None)
    assert with_all[-1] < 10.0  # six rounds
    three = seconds([contributor(i) for i in range(3)])
    assert three[0] == 10.0
    assert three[-1] < 20.0

    class Patient(type(averager())):
        """A learner that waits for everybody each time."""

        def _on_deadline(self, now):
            self._average_round(now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("protocol.little_run.Averager", Patient)
        assert seconds([contributor(i) for i in range(3)])[-1] == 60.0


def test_a_peer_that_asks_and_never_answers_costs_two_deadlines():
    def waits(most):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(averaging, "MAX_MISSES", most)
            learner, now, waited = started(), 0.0, 0
            while not learner.complete:
                number = learner.number
                learner.receive(GetRound(RUN_ID), keys(3).peer_id, now)
                give(learner, {0: None, 1: None, 2: None}, now)
                if learner.number == number:
                    waited += 1
                    now = learner.wake_at()
                    learner.wake(now)
            return waited

    assert waits(averaging.MAX_MISSES) == 2
    assert waits(100) == MANIFEST.rounds  # a learner with more patience


def test_a_peer_that_comes_back_is_waited_for_again():
    learner = started()
    give(learner, {0: None, 1: None, 2: None})
    learner.wake(10.0)
    give(learner, {0: None, 1: None}, now=11.0)
    learner.receive(GetRound(RUN_ID), keys(3).peer_id, 11.0)
    give(learner, {2: None}, now=11.0)
    assert learner.number == 1  # peer 3 asked, so it will answer
    give(learner, {3: None}, now=12.0)
    assert learner.number == 2


# -- a learner that dies ---------------------------------------------------------------------------------------------


def openings(disk):
    return [fact.opening for fact in disk.facts if isinstance(fact, Checkpoint)]


WHOLE = Disk()
UNHURT = play(disk=WHOLE)[0][-1]


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("dies_at", range(8))
def test_a_learner_killed_at_any_write_ends_with_the_same_model(dies_at, written):
    disk = Disk(dies_at, written=written)
    lives, _ = play(disk=disk)
    assert len(lives) == 2
    assert lives[-1].complete
    assert lives[-1].parameters.tobytes() == UNHURT.parameters.tobytes()
    assert (lives[-1].cohorts, lives[-1].participations) == (UNHURT.cohorts, UNHURT.participations)
    assert [a for i, a in enumerate(openings(disk)) if a not in openings(disk)[:i]] == openings(WHOLE)


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("dies_at", range(6))
def test_a_peer_killed_at_any_write_changes_nothing(dies_at, written):
    disk = Disk(dies_at, written=written)
    lives, net = play(hurt=(1, disk))
    assert disk.dies_at is None
    assert lives[-1].parameters.tobytes() == UNHURT.parameters.tobytes()
    assert [fact.round for fact in disk.facts] == list(range(6))
    assert not any(isinstance(fact, Rejected) for fact in net.facts)


def test_a_learner_without_its_checkpoint_would_end_elsewhere():
    class Blank(Disk):
        def __call__(self, fact):
            try:
                super().__call__(fact)
            except Killed:
                self.facts.clear()
                raise

    lives, _ = play(disk=Blank(3))
    assert len(lives) == 2
    assert lives[-1].parameters.tobytes() != UNHURT.parameters.tobytes()


def test_no_round_has_two_models_and_no_model_two_draws_of_noise():
    for dies_at in range(1, 7):
        disk = Disk(dies_at)
        play(disk=disk)
        seen = {}
        for opening in openings(disk):
            current = federation.open_round(opening, of=opened()[1], keys=LEARNER)
            assert seen.setdefault(current.number, opening) == opening
        assert len(seen) == MANIFEST.rounds + 1


def test_noise_of_a_deployed_learner_is_bound_to_the_reports_it_covers():
    secret = randomness.Secret(bytes(32))
    draws = [
        secret.noise_generator(round_id=round_id, number=0, reports=reports).standard_normal()
        for round_id, reports in ((b"1", b"a"), (b"1", b"b"), (b"2", b"a"), (b"1", b"a"))
    ]
    assert len(set(draws[:3])) == 3
    assert draws[3] == draws[0]


def test_a_run_that_is_closed_stays_closed_and_its_key_is_gone():
    lives, _ = play(disk=(disk := Disk()))
    assert isinstance(disk.facts[-1], RunClosed)
    assert lives[-1]._run_keys is None  # gone in the life that ended it too: what comes later, nobody opens
    again = averager(log=disk.facts)
    again.start(0.0)
    assert again.over
    assert again.parameters.tobytes() == lives[-1].parameters.tobytes()
    assert again._run_keys is None


def test_everybody_has_the_model_and_the_run_is_over():
    peers = [contributor(i) for i in range(4)]
    lives, _ = play(peers=peers)
    assert lives[-1].over
    for peer in peers:
        assert peer.model.tobytes() == lives[-1].parameters.tobytes()
    assert sum(lives[-1].cohorts) == sum(lives[-1].participations.values())


def test_a_run_learns():
    of = manifest(sampling_rate=1.0, rounds=40, sigma=0.01, epsilon_direction=30.0, epsilon_magnitude=20.0)
    lives, _ = play(of, peers=[contributor(i, of) for i in range(4)], until=500.0)
    assert np.linalg.norm(pull(lives[-1].parameters)) < 0.3  # from 1


def test_every_move_that_the_table_lacks_raises_and_changes_nothing():
    for state in State:
        for event in {event for _, event in TRANSITIONS}:
            learner = averager()
            learner.state = state
            if (state, event) in TRANSITIONS:
                learner._go(event)
                assert learner.state is TRANSITIONS[state, event]
            else:
                with pytest.raises(LocalProtocolError):
                    learner._go(event)
                assert learner.state is state
