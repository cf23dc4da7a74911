"""The committed table of simulations/audit_sandwich.py holds what is claimed, and its bounds follow from its counts."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from p2p_labeldp.auditing.lower_bound import Tally, lower_bound

TABLE = Path(__file__).parents[2] / "simulations" / "results" / "audit_sandwich.csv"


@pytest.fixture(scope="module")
def rows():
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_size_and_flip_stands_in_the_table_with_a_million_rounds(rows):
    cells = {(int(row["cluster_size"]), float(row["flip_probability"])) for row in rows}
    assert cells == {(s, f) for s in (10, 20, 50, 100, 200, 500, 1000) for f in (0.25, 0.1, 0.01)}
    assert all(int(row["rounds_each"]) >= 10**6 for row in rows)


def test_lower_is_at_most_exact_and_exact_at_most_local_in_every_cell(rows):
    for row in rows:
        assert 0 < float(row["epsilon_lower"]) <= float(row["exact_epsilon"]) <= float(row["local_epsilon"])
        assert row["conformance_verdict"] == "pass"


def test_the_bound_reaches_half_of_the_exact_epsilon_where_it_can_be_expected(rows):
    half = Counter(row["delta_rule"] for row in rows if 2 * float(row["epsilon_lower"]) >= float(row["exact_epsilon"]))
    assert half["1/(10 s)"] >= 20
    assert half["1/s^2"] >= 16


def test_the_bounds_follow_from_the_counts(rows):
    for row in rows:
        tally = Tally(
            direction=row["direction"],
            hits=int(row["hits"]),
            trials=int(row["rounds_each"]),
            hits_neighbour=int(row["hits_neighbour"]),
            trials_neighbour=int(row["rounds_each"]),
        )
        bound = lower_bound(tally, delta=float(row["delta"]), confidence=float(row["confidence"]))
        assert float(row["epsilon_lower"]) == pytest.approx(bound.epsilon_lower, abs=1e-6)
