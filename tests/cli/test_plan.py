"""``plan`` prints a flip whose evaluated epsilon never exceeds the target, and which target asks for it."""

import json
import math

import pytest

from p2p_labeldp.cli import main


def planned(capsys, *arguments):
    assert main(["plan", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def accounted(capsys, size, flip, *more):
    assert main(["account", "resampling", "--cluster-size", str(size), "--flip", repr(flip), *more, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("size", "flip"), [(50, 0.0357), (100, 0.0235), (200, 0.0147), (500, 0.0075)])
def test_the_least_flip_for_epsilon_1_and_the_contracts_keys(capsys, size, flip):
    plan = planned(capsys, "--cluster-size", str(size), "--epsilon", "1")
    assert list(plan) == ["flip", "epsilon", "binding"]
    assert flip - 1e-4 < plan["flip"] <= flip  # tabulated rounded up
    assert plan["binding"] == "learner"


@pytest.mark.parametrize("size", [2, 7, 100])
@pytest.mark.parametrize("target", [0.1, 0.9, 1.0, 5.0])
def test_the_evaluated_epsilon_keeps_the_target_and_a_smaller_flip_does_not(capsys, size, target):
    plan = planned(capsys, "--cluster-size", str(size), "--epsilon", str(target))
    assert plan["epsilon"] <= target
    assert accounted(capsys, size, plan["flip"])["epsilon"] <= target
    assert accounted(capsys, size, plan["flip"] * (1 - 2e-4))["epsilon"] > target


def test_the_target_that_asks_for_the_most_flips_binds(capsys):
    local = planned(capsys, "--cluster-size", "100", "--epsilon", "1", "--local-epsilon", "2")
    assert local["binding"] == "local"
    assert local["flip"] == pytest.approx(1 / (1 + math.exp(2)), rel=1e-4)
    assert math.log((1 - local["flip"]) / local["flip"]) <= 2
    mates = planned(capsys, "--cluster-size", "100", "--epsilon", "1", "--colluders", "2")
    assert mates["binding"] == "coalition"
    assert mates["epsilon"] <= 1
    assert planned(capsys, "--cluster-size", "100", "--epsilon", "1", "--local-epsilon", "9")["binding"] == "learner"


def test_a_tolerated_loss_adds_the_holding_minimum(capsys):
    plan = planned(capsys, "--cluster-size", "30", "--epsilon", "1", "--tolerated-loss", "0.1")
    assert list(plan) == ["flip", "epsilon", "binding", "holding_minimum"]
    assert plan["holding_minimum"] == 27
    assert plan["epsilon"] <= 1
    assert plan["flip"] > planned(capsys, "--cluster-size", "30", "--epsilon", "1")["flip"]


def test_the_delta_given_is_the_one_planned_for(capsys):
    plan = planned(capsys, "--cluster-size", "100", "--epsilon", "1", "--delta", "0")
    assert accounted(capsys, 100, plan["flip"], "--delta", "0")["epsilon"] <= 1
    alone = planned(capsys, "--cluster-size", "1", "--epsilon", "1", "--delta", "0.1")
    assert 0 < alone["epsilon"] <= 1


@pytest.mark.parametrize("target", ["1e-3", "800"])
def test_extreme_targets_are_planned(capsys, target):
    plan = planned(capsys, "--cluster-size", "100", "--epsilon", target)
    assert 0 < plan["flip"] <= 0.5
    assert plan["epsilon"] <= float(target)


def test_a_flip_asks_for_the_least_size(capsys):
    plan = planned(capsys, "--flip", "0.1", "--epsilon", "0.5")
    assert list(plan) == ["cluster_size", "epsilon", "binding"]
    assert plan["epsilon"] <= 0.5 < accounted(capsys, plan["cluster_size"] - 1, 0.1)["epsilon"]


def test_the_table_says_the_same(capsys):
    assert main(["plan", "--cluster-size", "10", "--epsilon", "1", "--tolerated-loss", "0.5"]) == 0
    out = capsys.readouterr().out
    assert "holding minimum  5" in out
    assert "at delta 1.00e-2" in out
    assert "binding          learner" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--epsilon", "1"], "one of --cluster-size and --flip is needed"),
        (["--epsilon", "1", "--cluster-size", "9", "--flip", ".1"], "one of --cluster-size and --flip is needed"),
        (["--cluster-size", "9"], "Missing option '--epsilon'"),
        (["--cluster-size", "9", "--epsilon", "0"], "--epsilon: 0 given; a positive finite number"),
        (["--cluster-size", "9", "--epsilon", "-1"], "--epsilon: -1.0 given"),
        (["--cluster-size", "9", "--epsilon", "nan"], "--epsilon: nan given"),
        (["--cluster-size", "9", "--epsilon", "inf"], "--epsilon: inf given"),
        (["--cluster-size", "0", "--epsilon", "1"], "--cluster-size: 0 given"),
        (["--cluster-size", "1", "--epsilon", "1"], "--delta: missing; 1/s^2 is 1"),
        (["--cluster-size", "9", "--epsilon", "1", "--delta", "1"], "--delta: 1.0 given"),
        (["--cluster-size", "9", "--epsilon", "1", "--delta", "nan"], "--delta: nan given"),
        (["--cluster-size", "9", "--epsilon", "1", "--colluders", "9"], "--colluders: 9 given; 0 to 8"),
        (["--cluster-size", "9", "--epsilon", "1", "--colluders", "-1"], "--colluders: -1 given"),
        (["--cluster-size", "9", "--epsilon", "1", "--local-epsilon", "nan"], "--local-epsilon: nan given"),
        (["--cluster-size", "9", "--epsilon", "1", "--local-epsilon", "0"], "--local-epsilon: 0 given"),
        (["--cluster-size", "9", "--epsilon", "1", "--tolerated-loss", "1"], "--tolerated-loss: 1.0 given"),
        (["--cluster-size", "9", "--epsilon", "1", "--tolerated-loss", "nan"], "--tolerated-loss: nan given"),
        (["--flip", "nan", "--epsilon", "1"], "--flip: nan given; 0 to 0.5"),
        (["--flip", "0.6", "--epsilon", "1"], "--flip: 0.6 given"),
        (["--flip", "0", "--epsilon", "1"], "--flip: 1000000 members do not hold"),
        (["--flip", "0.1", "--epsilon", "1", "--delta", "2"], "--delta: 2.0 given"),
        (["--flip", "0.1", "--epsilon", "1", "--colluders", "1"], "--flip: with it only --epsilon and --delta"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, line):
    assert main(["plan", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"p2p-labeldp: {line}")


def test_help_has_an_example(capsys):
    assert main(["plan", "--help"]) == 0
    assert "    p2p-labeldp plan --cluster-size 100 --epsilon 1\n" in capsys.readouterr().out
