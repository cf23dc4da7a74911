"""The committed table of simulations/labels_or_updates.py holds what is claimed; the levels compared are equal."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import labels_or_updates_contest as contest
import labels_or_updates_pipelines as pipelines
from frame import RESULTS, read_rows, read_table
from labels_or_updates_contest import EPSILONS, MATES, METHODS, OWN, TRUSTED, UPDATES, Row
from labels_or_updates_people import SLOPE, World, bayes_accuracy, coins, exact_accuracy
from labels_or_updates_pipelines import BINARY, PLANS
from p2p_labeldp.learning import erm

TABLE = RESULTS / "labels_or_updates.csv"
SMALL = World(name="synthetic", people=400, dimension=3)


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return read_rows(TABLE, Row)


def test_the_committed_table_holds_every_claim(table):
    assert list(contest.failures(table)) == []
    assert len(contest.cells_of(table)) == 11
    assert len(table) == 11 * len(EPSILONS) * len(METHODS)


def test_no_cluster_of_mates_had_fewer_than_15_members(table):
    deltas = [row.delta for row in table if row.method == MATES]
    assert max(deltas) <= 1 / 15**2
    assert min(deltas) > 0
    assert {row.delta for row in table if row.method in (OWN, UPDATES)} == {0}


def test_the_header_states_what_follows_from_the_rows(table):
    assert read_table(TABLE)[0] == list(contest.summary(table))


@pytest.mark.parametrize(
    ("where", "change", "complaint"),
    [
        ((OWN, 1.0), {"over_updates": -0.1, "over_updates_half": 0.02}, "own flips are 0.100 behind updates"),
        ((MATES, 0.5), {"over_updates": -0.1, "over_updates_half": 0.02}, "mates are 0.100 behind updates"),
        ((MATES, 4.0), {"over_own": 0.1, "over_own_half": 0.02}, "mates are 0.100 ahead of own flips"),
    ],
)
def test_a_table_in_which_a_claim_fails_is_noticed(table, where, change, complaint):
    altered = [replace(row, **change) if (row.method, row.epsilon) == where else row for row in table]
    assert any(complaint in line for line in contest.failures(altered))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"over_own_half": 1.0}, "mates are nowhere ahead of own flips"),
        ({"over_own_half": 1.0}, "own flips are nowhere ahead of mates"),
        ({"over_updates_half": 1.0}, "updates are nowhere ahead of mates"),
    ],
)
def test_a_table_in_which_nothing_is_certain_is_noticed(table, change, complaint):
    altered = [replace(row, **change) if row.method == MATES else row for row in table]
    assert any(complaint in line for line in contest.failures(altered))


def test_updates_that_win_are_noticed(table):
    wins = {UPDATES: {"accuracy": 1.0}, MATES: {"over_updates": -0.005, "over_updates_half": 0.001}}
    wins[OWN] = wins[MATES]
    altered = [replace(row, **wins.get(row.method, {})) for row in table]
    assert any("updates are the best of three" in line for line in contest.failures(altered))


def mechanism(plan, epsilon):
    release = pipelines.privately(11, epsilon / plan.participations, plan.direction, plan.radius)
    return release.__self__


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_all_reports_of_a_person_spend_the_level_compared(plan):
    for epsilon in EPSILONS:
        spent = plan.participations * mechanism(plan, epsilon).epsilon_exact
        assert spent <= epsilon * (1 + 1e-12)
        assert spent == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_nobody_reports_more_often_than_its_plan_says(plan, monkeypatch):
    """Everybody's gradient is told by its features: how often each arrived is counted."""
    people, seen = SMALL.trial(0), []

    def watched(theta, x, y):
        seen.append(x[:, 0])
        return np.ones((len(x), x.shape[1] + 1))

    monkeypatch.setattr(pipelines, "gradients_of", watched)
    pipelines.by_updates(people, 1.0, plan)
    times = np.unique(np.concatenate(seen), return_counts=True)[1]
    assert len(times) == len(people.y)
    assert set(times) == {plan.participations}
    assert len(seen) == plan.rounds


@pytest.mark.parametrize("size", [15, 17, 22, 40, 99, 333, 613, 1111])
@pytest.mark.parametrize("epsilon", [0.25, 2.0, 16.0])
def test_flips_keep_the_level_and_hardly_more(size, epsilon):
    flip = pipelines.flip_for(size, epsilon)
    assert pipelines.level_of(size, flip) <= epsilon
    assert pipelines.level_of(size, flip / 2) > epsilon


def test_small_sizes_whose_grid_is_not_enough_are_planned_by_themselves():
    size, epsilon = 17, 0.25
    below, above = pipelines.ends(size)
    assert below <= size < above
    assert pipelines.level_of(size, pipelines.least(below, epsilon)) > epsilon  # least flips are not monotone there
    assert pipelines.level_of(size, pipelines.flip_for(size, epsilon)) <= epsilon


def test_the_exact_accuracy_is_that_of_a_sample():
    """A share of 200,000 has a standard error below .0012; five of them are asked (6e-7)."""
    rng = np.random.default_rng(2)
    u, w = np.array([0.6, 0.8, 0.0]), np.array([1.0, 0.3, -0.8])
    x = rng.standard_normal((200_000, 3))
    y = rng.random(len(x)) < expit(SLOPE * (x @ u))
    assert exact_accuracy(w, 0.4, u) == pytest.approx(np.mean((x @ w + 0.4 > 0) == y), abs=0.006)
    assert exact_accuracy(u, 0.0, u) == pytest.approx(bayes_accuracy(), abs=1e-9)
    assert exact_accuracy(-u, 0.0, u) == pytest.approx(1 - bayes_accuracy(), abs=1e-9)
    assert exact_accuracy(w, 0.4, u) < bayes_accuracy() - 0.05


def test_a_fitted_pipeline_and_its_linear_form_decide_alike():
    people = SMALL.trial(1)
    fitted = erm.fit(erm.CORRECTED, people.x, people.y, label_space=BINARY, seed=1)
    w, b = pipelines.linear(fitted)
    assert np.array_equal(fitted.predict(people.x), people.x @ w + b > 0)
    ones = erm.fit(erm.CORRECTED, people.x, np.ones_like(people.y), label_space=BINARY, seed=1)
    assert pipelines.linear(ones)[1] > 0


def test_the_lead_of_updates_on_breast_cancer_is_the_fit_and_not_the_message(table):
    """The same flipped labels, by one step along the mean: better than by the ordinary loss, and than updates."""
    cell = ("breast-cancer", 398, 30)

    def one_step(people):
        flips = coins(people, 1).random(len(people.y)) < 1 / (1 + np.exp(0.25))
        mean = ((people.y ^ flips) - 0.5) @ np.c_[people.x, np.ones(len(people.y))]
        return people.accuracy(mean[:-1], float(mean[-1]))

    world = World(name=cell[0], people=cell[1], dimension=cell[2])
    reached = np.mean([one_step(world.trial(number)) for number in range(10)])
    own, updates = (contest.of(table, method, cell)[0] for method in (OWN, UPDATES))
    assert own.epsilon == updates.epsilon == 0.25
    assert reached == pytest.approx(0.87, abs=0.005)
    assert own.accuracy < updates.accuracy < reached


def test_rows_are_made_again(table):
    """Those of the cheapest pipelines, in the smallest cell, to the last bit but for other machines' arithmetic."""
    world = World(name="synthetic", people=500, dimension=2)
    everybody = [world.trial(number) for number in range(10)]
    own, trusted = (contest.of(table, method, ("synthetic", 500, 2))[2] for method in (OWN, TRUSTED))
    assert np.mean([pipelines.by_own_flip(one, own.epsilon) for one in everybody]) == pytest.approx(
        own.accuracy, abs=1e-6
    )
    again = np.mean([pipelines.by_trusted_learner(one, trusted.epsilon) for one in everybody])
    assert again == pytest.approx(trusted.accuracy, abs=1e-6)
    assert again != pytest.approx(contest.of(table, TRUSTED, ("synthetic", 500, 2))[0].accuracy, abs=1e-6)


def test_a_trial_is_its_seeds_alone():
    first, again, other = (pipelines.by_updates(SMALL.trial(number), 4.0, PLANS[3]) for number in (0, 0, 1))
    assert first == again
    assert first != other
