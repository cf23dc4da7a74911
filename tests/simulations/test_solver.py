"""The committed table of simulations/solver.py holds what is claimed; a solver that ends elsewhere is noticed."""

from dataclasses import replace

import numpy as np
import pytest

import solver as study
from frame import RESULTS, read_rows, read_table
from p2p_labeldp.learning.corrected_loss import minimise, soft_targets
from solver import LBFGS, OWN_SAGA, SAGA, STANDARDISED, Problem, Row

TABLE = RESULTS / "solver.csv"


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return read_rows(TABLE, Row)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=90)
    return np.eye(3)[labels] + rng.standard_normal((90, 3)), labels


@pytest.fixture
def corrected(data) -> Problem:
    features, labels = data
    targets = soft_targets(labels, num_classes=3, distributions=np.full(3, 1 / 3), correction=0.5)
    assert targets.min() < 0
    return Problem(name="small", loss=study.loss_of(features, targets, 1e-2), labels=None)


@pytest.fixture
def plain(data) -> Problem:
    features, labels = data
    loss = study.loss_of(features, soft_targets(labels, num_classes=3), 1e-2)
    return Problem(name="small", loss=loss, labels=labels)


def test_the_committed_table_holds_every_claim(table):
    assert list(study.failures(table)) == []
    assert len(study.curves(table)) == 10


def test_the_header_states_the_ratios_of_the_rows(table):
    assert read_table(TABLE)[0] == list(study.ratios(table))


@pytest.mark.parametrize(
    ("solver", "change", "complaint"),
    [
        (LBFGS, {"gap": 1e-8}, "L-BFGS ends 1e-08 above the least"),
        (SAGA, {"weight_distance": 0.01}, "SAGA (scikit-learn) ends"),
        (OWN_SAGA, {"gap": float("nan")}, "SAGA (NumPy) ends nan above"),
        (SAGA, {"cpu_seconds": 1e-6}, "s of SAGA"),
        (SAGA, {"iterations": 1000}, "1000 epochs of SAGA"),
        (SAGA, {"gap": 0.0}, "100 epochs of SAGA end 0 above"),
    ],
)
def test_a_table_in_which_a_claim_fails_is_noticed(table, solver, change, complaint):
    kept = {"iterations", "gap"} & change.keys()  # the 100 epochs keep their number, so that they are found
    altered = [
        replace(row, **change) if row.solver == solver and not (row.iterations == 100 and "iterations" in kept) else row
        for row in table
    ]
    assert any(complaint in line for line in study.failures(altered))


def test_standardised_pixels_have_to_gain_ten_times(table):
    slow = [replace(r, cpu_seconds=r.cpu_seconds / 20) if r.solver == SAGA else r for r in table]
    complaints = [line for line in study.failures(slow) if "s of SAGA" in line]
    assert any(line.startswith(STANDARDISED) for line in complaints)


@pytest.mark.parametrize(("kind", "solver"), [("plain", study.by_saga), ("corrected", study.by_own_saga)])
def test_saga_ends_where_the_packages_solver_does_and_at_no_other_minimum(kind, solver, request):
    problem = request.getfixturevalue(kind)
    best = minimise(problem.loss, tolerance=1e-9).weights
    norm = np.linalg.norm(best)
    assert np.linalg.norm(solver(problem, 300) - best) < study.SAME_WEIGHTS * norm
    assert np.linalg.norm(solver(problem, 1) - best) > study.SAME_WEIGHTS * norm
    heavier = replace(problem, loss=replace(problem.loss, l2=1.1e-2))
    assert np.linalg.norm(solver(heavier, 300) - best) > study.SAME_WEIGHTS * norm


def test_leaving_the_correction_out_is_another_minimum(plain, corrected):
    weights = [minimise(problem.loss, tolerance=1e-9).weights for problem in (plain, corrected)]
    assert np.linalg.norm(weights[0] - weights[1]) > 0.1 * np.linalg.norm(weights[1])


def test_runs_of_growing_length_end_at_the_least_loss_unless_they_are_cut_short(plain):
    rows = list(study.solve(plain, most_iterations=400))
    assert {row.solver for row in rows} == {LBFGS, SAGA}
    assert [line for line in study.failures(rows) if "ends" in line] == []
    short = list(study.solve(plain, most_iterations=6))
    assert any("ends" in line for line in study.failures(short))
