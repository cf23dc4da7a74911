"""The committed table of simulations/hardness.py holds what is claimed; a mechanism that beats the curve is noticed."""

import math
from dataclasses import replace

import numpy as np
import pytest

import hardness as study
from frame import RESULTS, read_rows
from hardness import CHEAT, CLUSTER, PEERS, TRUE, UNIFORM, K, Row, Task

ONE_MEMBER = Task(panel="m = 1, r = 1", present=1, members=1, epsilon=2.0)
SMALL = Task(panel="m = 4, r = 1", present=4, members=1, epsilon=1.0)


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return read_rows(RESULTS / "hardness.csv", Row)


def test_the_committed_table_holds_every_claim(table):
    assert list(study.failures(table)) == []
    assert len(table) == 374
    assert len({row.mechanism for row in table}) == 7


def test_the_committed_curve_is_the_formula(table):
    for row in table:
        task = Task(panel=row.panel, present=row.present, members=row.members, epsilon=row.epsilon)
        assert row.curve == pytest.approx(task.curve(delta=row.delta, recall=row.recall))
        if row.delta == 0:
            assert row.curve == pytest.approx(
                task.present * task.group / (task.present * task.group + K - task.present)
            )


@pytest.mark.parametrize(
    ("mechanism", "z_score", "complaint"),
    [
        (TRUE, 4.9, "nothing is shown"),
        (CHEAT, 0.0, "nothing is shown"),
        (CLUSTER, 5.1, "beats the curve"),
        (PEERS, math.inf, "beats the curve"),
        (PEERS, math.nan, "beats the curve"),
        (UNIFORM, -5.1, "does not attain"),
    ],
)
def test_a_table_in_which_a_claim_fails_is_noticed(table, mechanism, z_score, complaint):
    altered = [replace(row, z_score=z_score) if row.mechanism == mechanism else row for row in table]
    assert any(complaint in line for line in study.failures(altered))


def test_a_precision_that_does_not_rise_is_noticed(table):
    altered = [replace(row, precision=0.2) if row.mechanism == CLUSTER else row for row in table]
    assert any("ClusterRR at r = 1 and 12" in line for line in study.failures(altered))


@pytest.mark.parametrize(("present", "epsilon"), [(1, 0.5), (2, 1.0)])
def test_the_curve_bounds_every_linear_program_over_mechanisms_and_is_attained(present, epsilon):
    """Mechanisms of one cluster with few labels: the largest T - e^eps F that privacy allows is 0."""
    from itertools import combinations

    from scipy.optimize import linprog

    labels = 4
    inputs = list(combinations(range(labels), present))
    # The exchange leaves one label's naming as a probability for each input: x[S] = P(label 0 named | S).
    held = [i for i, chosen in enumerate(inputs) if 0 in chosen]
    free = [i for i in range(len(inputs)) if i not in held]
    rows = []
    for i, one in enumerate(inputs):
        for j, other in enumerate(inputs):
            if len(set(one) ^ set(other)) == 2:
                row = np.zeros(len(inputs))
                row[i], row[j] = 1, -math.exp(epsilon)
                rows.append(row)
    mean = np.zeros(len(inputs))
    mean[held] = -1 / len(held)
    mean[free] = math.exp(epsilon) / len(free)
    bounded = linprog(mean, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), bounds=(0, 1))
    assert bounded.fun == pytest.approx(0, abs=1e-9)
    attained = linprog(
        -np.isin(np.arange(len(inputs)), held).astype(float),
        A_ub=np.array([*rows, mean]),
        b_ub=np.zeros(len(rows) + 1),
        bounds=(0, 1),
    )
    assert attained.x[held].mean() == pytest.approx(1)
    assert attained.x[free].mean() == pytest.approx(math.exp(-epsilon))
    freed = linprog(mean, bounds=(0, 1))  # without privacy
    assert freed.fun == pytest.approx(-1)


def test_a_small_run_stays_below_and_its_controls_do_not():
    """Scores above 5 have probability 3e-7 each, of 6 and 15 private rows."""
    for task in (ONE_MEMBER, SMALL):
        rows = list(study.measure(task, clusters=1500, seed=1))
        assert max(row.z_score for row in rows if row.mechanism not in study.CONTROLS) <= study.MOST_Z
        controls = [row.z_score for row in rows if row.mechanism in study.CONTROLS]
        assert len(controls) >= 2
        assert min(controls) > study.MOST_Z


def test_algorithm_2_is_held_against_the_curve_of_its_own_delta():
    """Against that of delta = 0 its own release would look like a breach: that curve is not for it."""
    task = replace(SMALL, epsilon=0.1)
    row = next(row for row in study.measure(task, clusters=4000, seed=2) if row.mechanism == PEERS)
    assert row.precision - 5 * row.precision_error > task.curve()
    assert row.precision < row.curve


def test_labels_that_are_not_told_are_not_named():
    task = Task(panel="", present=2, members=2, epsilon=1.0)
    told = np.array([[3, 3, 3, 3], [1, 1, 2, 0]])
    named = {name: [sorted(np.flatnonzero(row)) for row in mask] for name, mask in study.readings(task, told, None)}
    assert named == {
        study.ANY: [[3], [0, 1, 2]],
        study.HALF: [[3], [0, 1, 2]],
        study.TOP: [[3], [0, 1]],
        study.FIRST: [[3], [1]],
    }
