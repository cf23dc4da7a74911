"""The committed table of simulations/excess_risk.py holds what is claimed; a world that breaks a claim is noticed."""

import math
from dataclasses import replace

import numpy as np
import pytest

import excess_risk as study
import heterogeneity
from excess_risk import CELLS, CLUSTER, EVERY_MARGIN, PEERS, TRUE, UNIFORM, Row, Setting, World
from frame import RESULTS, read_rows, read_table

TABLE = RESULTS / "excess_risk.csv"
RUNS = 12


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return read_rows(TABLE, Row)


def test_the_committed_table_holds_every_claim(table):
    assert list(study.failures(table)) == []
    assert len(table) == 104


def test_the_header_states_the_exponents_of_the_rows(table):
    header, _ = read_table(TABLE)
    assert header == [
        f"exponent of {what}: {fit.exponent:.3f} +- {fit.half_width:.3f} (expected {expected:g})"
        for what, fit, expected, _ in study.exponents(table)
    ]


@pytest.mark.parametrize(
    ("where", "change", "complaint"),
    [
        (("n", CLUSTER), lambda row: {"hinge": row.hinge * row.rows**0.2}, "ClusterRR, hinge loss against rows"),
        (("n", PEERS), lambda row: {"logistic": row.hinge}, "Algorithm 2, logistic loss against rows"),
        (("n", UNIFORM), lambda row: {"hinge": row.hinge / 4}, "UniformRR has"),
        (("n, phi > 0", CLUSTER), lambda row: {"hinge": row.hinge / 3}, "ClusterRR has no floor"),
        (("n, phi > 0", UNIFORM), lambda row: {"hinge": 0.03}, "UniformRR does not pass ClusterRR"),
        (("phi", PEERS), lambda row: {"hinge": row.phi**2}, "Algorithm 2, hinge loss against phi"),
        (("eps", CLUSTER), lambda row: {"hinge": row.hinge / row.epsilon}, "ClusterRR, hinge loss against epsilon"),
        (("eps", UNIFORM), lambda row: {"hinge": row.hinge * row.epsilon}, "UniformRR, hinge loss against epsilon"),
        (("phi", CLUSTER), lambda row: {"hinge": 2 * row.bound}, "is above the bound"),
    ],
)
def test_a_table_in_which_a_claim_fails_is_noticed(table, where, change, complaint):
    altered = [replace(row, **change(row)) if (row.study, row.mechanism) == where else row for row in table]
    assert any(complaint in line for line in study.failures(altered))


def test_the_true_risk_is_that_of_a_million_samples():
    """The difference of two shares has a standard error below .0007, twice it .0014: five of them are asked (6e-7)."""
    world = World(margins=(0.6, -0.4, 0.2), minority=0.1)
    rng = np.random.default_rng(1)
    targets = rng.random(3 * CELLS)
    cells, _, labels = world.draw(330_000, rng)
    best = (world.cell_margins.ravel() > 0).astype(float)
    wrong = [np.mean((guess[cells] >= 0.5) != labels) for guess in (targets, best)]
    hinge, _ = world.excess(targets)
    assert hinge > 0
    assert 2 * (wrong[0] - wrong[1]) == pytest.approx(hinge, abs=0.007)


def test_the_best_model_has_no_excess_and_every_other_has_some():
    world = World(margins=(0.6, -0.4), minority=0.1)
    truth = (1 + world.cell_margins.ravel()) / 2
    assert world.excess(truth) == (0, 0)
    hinge, logistic = world.excess(1 - truth)
    assert hinge == pytest.approx(2 * 0.5)  # 2 E|g|
    assert logistic > 0
    assert world.excess(np.full(8, 2.0))[1] < math.inf  # corrected targets leave [0, 1]; weights don't leave the box


def test_phi_is_what_the_diagnostic_computes_from_the_true_laws():
    world = World(margins=EVERY_MARGIN, minority=0.05)
    p = (1 + world.cell_margins.ravel()) / 2
    clusters = np.repeat(np.arange(len(EVERY_MARGIN)), CELLS)
    phi = heterogeneity.heterogeneity(np.c_[1 - p, p], clusters, weights=np.tile(world.masses, len(EVERY_MARGIN)))
    assert phi == pytest.approx(world.phi)
    assert phi > 0.02


def exponent(world_type: type[World], mechanism: str) -> float:
    rows: list[Row] = []
    for number, size in enumerate((2**8, 2**10, 2**12)):
        setting = Setting(study="n", world=world_type(margins=EVERY_MARGIN), cluster_size=size)
        rows += study.measure(setting, runs=RUNS, first_seed=100 * number)
    return study.fit(study.of(rows, "n", mechanism), "rows", "logistic").exponent


class Scrambled(World):
    """Clusters that have nothing to do with the cells: homogeneous in name only."""

    def draw(self, size, rng):
        cells, clusters, labels = World.draw(self, size, rng)
        return cells, rng.permutation(clusters), labels


def test_a_small_run_falls_as_claimed_and_with_meaningless_clusters_it_does_not():
    """Standard error of an exponent .05; eight of them to either side."""
    assert exponent(World, CLUSTER) == pytest.approx(-1, abs=0.4)
    assert exponent(Scrambled, CLUSTER) > -0.2
    assert exponent(Scrambled, TRUE) == pytest.approx(-1, abs=0.4)
