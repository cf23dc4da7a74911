"""The committed tables of the simulations hold what is claimed, and their bounds follow from their counts."""

import csv
from pathlib import Path

import pytest

from p2p_labeldp.accounting import coalition, resampling
from p2p_labeldp.accounting.coalition import Coalition
from p2p_labeldp.auditing.lower_bound import Tally, lower_bound

RESULTS = Path(__file__).parents[2] / "simulations" / "results"
WORDS = ("verdict", "direction", "method", "version")


def rows(name):
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        return [
            {key: value if key in WORDS else float(value) for key, value in row.items()} for row in csv.DictReader(file)
        ]


def test_every_cell_of_privacy_vs_cluster_size_is_ordered():
    table = rows("privacy_vs_cluster_size")
    assert {(row["cluster_size"], row["flip_probability"]) for row in table} == {
        (s, f) for s in (10, 32, 100, 316, 1000, 3162, 10_000) for f in (0.25, 0.1, 0.01)
    }
    for row in table:
        assert row["epsilon_lower"] <= row["epsilon"] <= row["shuffle_epsilon"] <= row["local_epsilon"]
        assert row["verdict"] == "pass"
    assert sum(row["epsilon_lower"] >= row["epsilon"] / 2 for row in table) >= 10


def test_epsilon_falls_with_the_size_of_the_cluster_and_is_todays():
    table = rows("privacy_vs_cluster_size")
    for flip in (0.25, 0.1, 0.01):
        falling = [row["epsilon"] for row in table if row["flip_probability"] == flip]
        assert falling == sorted(falling, reverse=True)
    for row in table:
        if row["cluster_size"] <= 316:
            found = resampling.epsilon(
                cluster_size=int(row["cluster_size"]), flip_probability=row["flip_probability"], delta=row["delta"]
            )
            assert row["epsilon"] == pytest.approx(found, rel=1e-6)


def test_every_cell_of_coalitions_is_ordered_and_follows_from_its_counts():
    table = rows("coalitions")
    assert len(table) == 30
    for row in table:
        assert row["epsilon_lower"] <= row["epsilon_with_logs"] <= row["local_epsilon"]
        assert row["epsilon_without_logs"] <= row["epsilon_with_logs"] * (1 + 1e-5)
        tally = Tally(
            direction="add",
            hits=int(row["hits"]),
            trials=int(row["rounds_each"]),
            hits_neighbour=int(row["hits_neighbour"]),
            trials_neighbour=int(row["rounds_each"]),
        )
        bound = lower_bound(tally, delta=row["delta"], confidence=row["confidence"])
        assert row["epsilon_lower"] == pytest.approx(bound.epsilon_lower, abs=1e-9)


def test_one_mate_with_logs_undoes_one_over_s_squared_and_is_measured_to():
    by_key = {
        (int(row["cluster_size"]), row["flip_probability"], int(row["colluders"])): row for row in rows("coalitions")
    }
    alone, one = by_key[1000, 0.01, 0], by_key[1000, 0.01, 1]
    assert alone["epsilon_with_logs"] == pytest.approx(0.980, abs=1e-3)
    assert one["epsilon_with_logs"] == pytest.approx(4.594, abs=1e-3)
    assert one["epsilon_lower"] > alone["epsilon_with_logs"]
    assert one["epsilon_at_meaningful_delta"] <= alone["epsilon_with_logs"]
    group = Coalition(cluster_size=20, colluders=2, flip_probability=0.1)
    assert by_key[20, 0.1, 2]["epsilon_with_logs"] == pytest.approx(coalition.epsilon(group, 1 / 400), rel=1e-5)
