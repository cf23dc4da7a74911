"""The committed table of errors is what the mechanisms compute today, and what its samples showed."""

import csv
import math
from pathlib import Path

import pytest

from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity
from p2p_labeldp.mechanisms.projunit import ProjUnit
from p2p_labeldp.mechanisms.scalar import ScalarDP, ScalarRelDP
from p2p_labeldp.mechanisms.separated import Separated

TABLE = Path(__file__).parents[2] / "simulations" / "results" / "mechanism_error.csv"
ROWS = list(csv.DictReader(TABLE.read_text().splitlines()))

DIRECTIONS = {
    "PrivUnit2 (exact)": lambda d, e: PrivUnit2.calibrated(dimension=d, epsilon=e),
    "PrivUnit2 (theorem1)": lambda d, e: PrivUnit2.calibrated(dimension=d, epsilon=e, calibration="theorem1"),
    "PrivUnitG": lambda d, e: PrivUnitG.calibrated(dimension=d, epsilon=e),
    "PrivUnit-infinity": lambda d, e: PrivUnitInfinity.calibrated(dimension=d, epsilon=e),
    "ProjUnit": lambda d, e: ProjUnit.calibrated(dimension=d, epsilon=e),
}


@pytest.mark.parametrize("name", DIRECTIONS)
def test_errors_of_directions_are_those_of_the_table(name):
    rows = [row for row in ROWS if row["mechanism"] == name]
    assert len(rows) >= 5
    for row in rows:
        mechanism = DIRECTIONS[name](int(row["dimension"]), float(row["epsilon"]))
        assert mechanism.variance == pytest.approx(float(row["error"]), rel=1e-8)


@pytest.mark.parametrize(("name", "kind"), [("ScalarDP", ScalarDP), ("ScalarRelDP", ScalarRelDP)])
def test_errors_of_magnitudes_are_those_of_the_table(name, kind):
    rows = [row for row in ROWS if row["mechanism"] == name]
    assert len(rows) == 27
    for row in rows:
        epsilon = float(row["epsilon"])
        mechanism = kind.calibrated(epsilon=epsilon, max_radius=1.0)
        variance = {
            "0.3 r_max": lambda m=mechanism: m.variance(0.3),
            "r_max e^(-eps/4)": lambda m=mechanism, e=epsilon: m.variance(math.exp(-e / 4)),
            "worst case": lambda m=mechanism: m.worst_variance(),
        }[row["at"]]()
        assert variance == pytest.approx(float(row["error"]), rel=1e-8)


@pytest.mark.parametrize("kind", ["absolute", "relative"])
def test_errors_of_updates_are_those_of_the_table_at_the_best_split(kind):
    name = {"absolute": "Separated (ScalarDP)", "relative": "Separated (ScalarRelDP)"}[kind]
    rows = [row for row in ROWS if row["mechanism"] == name]
    assert len(rows) == 8
    for row in rows:
        epsilon = float(row["epsilon"])
        best = min(
            Separated.calibrated(
                dimension=int(row["dimension"]),
                epsilon_direction=epsilon * (1 - k / 40),
                epsilon_magnitude=epsilon * k / 40,
                max_radius=1.0,
                magnitude=kind,
            ).variance(1.0)
            for k in range(1, 40)
        )
        assert best == pytest.approx(float(row["error"]), rel=1e-8)


def test_samples_agreed_with_the_closed_forms():
    scores = [float(row["z_score"]) for row in ROWS if row["z_score"] != "nan"]
    assert len(scores) >= 150
    assert max(map(abs, scores)) < 5.0


def test_the_constants_of_the_design_are_in_the_table():
    constants = {
        float(row["epsilon"]): float(row["constant"]) for row in ROWS if row["mechanism"] == "PrivUnit2 (exact)"
    }
    assert [constants[e] for e in (1.0, 4.0, 8.0, 16.0)] == pytest.approx([6.33, 1.74, 1.06, 0.76], abs=5e-3)
