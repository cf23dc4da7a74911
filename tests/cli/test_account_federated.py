"""``account federated``: the library's numbers under stable names, and a warning where reports are shrunk."""

import json

import pytest

from p2p_labeldp.accounting.federated import Rounds, side_by_side
from p2p_labeldp.cli import main

ROUNDS = ("--population", 1000, "--sampling", 0.1, "--rounds", 20)
UPDATES = ("--dimension", 50, "--epsilon-direction", 8, "--epsilon-magnitude", 2)


def call(capsys, *arguments):
    status = main(["account", "federated", *map(str, (*ROUNDS, *UPDATES, *arguments))])
    return status, *capsys.readouterr()


def test_three_ledgers_under_stable_names(capsys):
    status, out, err = call(capsys, "--epsilon", 2, "--delta", 1e-6, "--sigma", 0.03, "--json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert list(record) == [
        "population", "sampling_rate", "rounds", "expected_cohort", "projection", "projection_safe", "shrunk_share",
        "central", "local", "reconstruction",
    ]  # fmt: skip
    planned = Rounds(population=1000, sampling_rate=0.1, rounds=20, projection=record["projection"])
    both = side_by_side(planned, epsilon=2.0, delta=1e-6, sigma=0.03)
    central = record["central"]
    assert (central["epsilon"], central["honest_sigma"]) == (both.stated.epsilon, both.honest_sigma)
    assert central["reduced"] is True
    assert central["epsilon"] == min(central["epsilon_rdp"], central["epsilon_pld"])
    assert record["shrunk_share"] == 0.0
    local = record["local"]
    assert local["epsilon"] == local["participations"] * 10
    assert record["reconstruction"]["total_epsilon"] == local["epsilon"]


def test_a_budget_bounds_the_local_and_the_reconstruction_ledger(capsys):
    record = json.loads(call(capsys, "--sigma", 1, "--budget", 25, "--json")[1])
    assert (record["local"]["participations"], record["local"]["epsilon"]) == (2, 20.0)
    assert record["reconstruction"]["participations"] == 2
    assert record["central"]["honest_sigma"] is None


def test_a_projection_that_shrinks_reports_is_warned_of(capsys):
    status, out, err = call(capsys, "--sigma", 1, "--projection", 2, "--json")
    assert status == 0
    assert err.count("\n") == 1
    assert err.startswith("warning: up to ")
    assert json.loads(out)["shrunk_share"] > 0.1
    safe = json.loads(out)["projection_safe"]
    assert call(capsys, "--sigma", 1, "--projection", safe, "--json")[2] == ""


def test_the_table_names_every_ledger(capsys):
    out = call(capsys, "--sigma", 1)[1]
    for name in ("central epsilon", "local epsilon", "reconstruction success"):
        assert f"\n{name} " in out


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ((), "--epsilon"),
        (("--sigma", "nan"), "--sigma"),
        (("--sigma", 1, "--sampling", 2), "--sampling"),
        (("--sigma", 1, "--population", 0), "--population"),
        (("--sigma", 1, "--epsilon-direction", 0), "--epsilon-direction"),
        (("--sigma", 1, "--magnitude", "big"), "--magnitude"),
        (("--sigma", 1, "--projection", 0), "--projection"),
        (("--sigma", 1, "--delta", 0), "--delta"),
        (("--sigma", 1, "--budget", 0), "--budget"),
        (("--sigma", 1, "--alpha", 0), "--alpha"),
    ],
)
def test_bad_input_is_one_line_that_names_the_option(capsys, arguments, option):
    status, out, err = call(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"p2p-labeldp: {option}: ")
    assert err.count("\n") == 1
