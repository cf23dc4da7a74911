"""The committed table of simulations/figure1.py is whole, shows what is claimed, and is what README.md says."""

import re
from pathlib import Path

import pytest

import figure1
from figure1 import CLUSTERS, LAST_PANEL, LEADS, Plan, Shape
from figure1_curves import BOXES, CURVES
from frame import RESULTS, read_table

PLAN = Plan()
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def table():
    return read_table(RESULTS / "figure1.csv")


@pytest.fixture(scope="module")
def shape(table):
    return Shape(table[1])


def test_every_data_set_curve_epsilon_and_trial_is_in_it_once(table):
    _, rows = table
    usual = [
        (row["dataset"], row["curve"], float(row["epsilon"]), int(row["trial"]))
        for row in rows
        if row["curve"] != "none" and int(row["clusters"]) == CLUSTERS
    ]
    wanted = {(d, c, e, t) for d in PLAN.datasets for c in CURVES for e in PLAN.epsilons for t in range(PLAN.trials)}
    assert set(usual) == wanted
    assert len(usual) == len(wanted)


def test_the_last_panel_has_every_number_of_clusters(table):
    _, rows = table
    for dataset in PLAN.datasets:
        for curve in figure1.BY_CLUSTERS:
            seen = [
                (int(row["clusters"]), int(row["trial"]))
                for row in rows
                if (row["dataset"], row["curve"], float(row["epsilon"])) == (dataset, curve, LAST_PANEL)
            ]
            assert set(seen) == {(count, trial) for count in PLAN.counts for trial in range(PLAN.trials)}
            assert len(seen) == len(PLAN.counts) * PLAN.trials


def test_accuracies_are_normalised_by_one_reference_a_data_set(table):
    _, rows = table
    references = {row["dataset"]: float(row["accuracy"]) for row in rows if row["curve"] == "none"}
    assert set(references) == set(PLAN.datasets)
    for row in rows:
        share = float(row["accuracy"]) / references[row["dataset"]]
        assert float(row["normalised_accuracy"]) == pytest.approx(share, abs=1e-3)


def test_the_header_has_the_settings_that_the_script_has_and_every_choice(table):
    header, _ = table
    for name, value in PLAN.settings().items():
        if name not in ("boxes", "seed", "version"):
            assert f"{name} = {value}" in header
    levels = {curve: ("inf",) if curve == "none" else [f"{level:g}" for level in PLAN.epsilons] for curve in BOXES}
    for dataset in PLAN.datasets:
        for curve, box in BOXES.items():
            for level in levels[curve]:
                [line] = [line for line in header if line.startswith(f"chosen {dataset} {curve} {level}: ")]
                assert all(f"{name} " in line for name in box)


def test_all_of_it_takes_less_than_90_minutes_on_two_cores(table):
    [seconds] = re.findall(r", (\d+) s of CPU$", table[0][0])
    assert int(seconds) < 90 * 60  # on one core; twice as many seconds stand for two


def test_only_the_rebuilt_data_set_is_unverified(shape):
    assert shape.unverified == ["cifar-10"]


@pytest.mark.parametrize(("dataset", "first", "second"), LEADS)
def test_who_leads_whom_is_as_stated_at_every_epsilon(shape, dataset, first, second):
    assert shape.signs(dataset, first, second) == LEADS[dataset, first, second]


def test_all_claims_hold_and_fail_on_a_table_of_which_two_curves_are_exchanged(table, shape):
    assert list(figure1.failures(shape)) == []
    exchange = {"cluster_rr": "uniform_rr", "uniform_rr": "cluster_rr"}
    exchanged = [
        row | {"curve": exchange.get(row["curve"], row["curve"])}
        for row in table[1]
        if int(row["clusters"]) == CLUSTERS or row["curve"] not in exchange
    ]
    assert all(int(row["clusters"]) == CLUSTERS for row in exchanged if row["curve"] in exchange)
    with_few = [row for row in table[1] if row["curve"] == "cluster_rr" and int(row["clusters"]) != CLUSTERS]
    assert len(list(figure1.failures(Shape(exchanged + with_few)))) >= len(PLAN.datasets)


NAMES = {
    "Algorithm 2": "resampling",
    "ClusterRR": "cluster_rr",
    "UniformRR": "uniform_rr",
    "RRWithPrior, one stage": "one_stage",
    "RRWithPrior, two stages": "two_stage",
    "DP-SGD, subsampled": "dp_sgd",
    "DP-SGD, by iteration": "iteration",
}


def test_the_table_in_the_readme_is_this_one(shape):
    text = README.read_text(encoding="utf-8")
    for name, curve in NAMES.items():
        [line] = re.findall(rf"^\| {re.escape(name)} \|.*\|$", text, flags=re.MULTILINE)
        cells = [cell.strip() for cell in line.strip("|").split("|")][-3:]
        for dataset, cell in zip(PLAN.datasets, cells, strict=True):
            stated = cell.replace("**", "").split()
            found = [f"{shape.mean(dataset, curve, level).mean:.2f}".lstrip("0") for level in (0.5, 1.0, 2.0, 4.0)]
            assert stated == found, (name, dataset)
