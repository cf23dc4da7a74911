"""``audit`` measures the engine that plays studies, and says what it found whatever it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import p2p_labeldp
from p2p_labeldp import engine_source
from p2p_labeldp.cli import audit, main


def audited(capsys, *arguments):
    assert main(["audit", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def exact(capsys, size, flip):
    assert main(["account", "resampling", "--cluster-size", size, "--flip", flip, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["epsilon"]


def test_the_object_has_the_contracts_keys_in_order(capsys):
    found = audited(capsys, "--cluster-size", "10", "--flip", "0.1", "--trials", "2000")
    assert list(found) == ["epsilon_lower", "confidence", "delta", "conformance", "verdict"]
    assert (found["confidence"], found["delta"], found["verdict"]) == (0.99, 0.01, "pass")
    assert {"flip_rate", "mate_uniformity", "self_picks", "joint", "one_flip_for_all"} <= set(found["conformance"])
    assert all(0 <= p <= 1 for p in found["conformance"].values())


@pytest.mark.parametrize(("size", "flip"), [("10", "0.25"), ("10", "0.1"), ("30", "0.01")])
def test_what_is_measured_lies_below_the_exact_epsilon_and_is_no_zero(capsys, size, flip):
    # Seed 0, confidence 1 - 1e-6: above the exact value with probability at most 1e-6.
    found = audited(capsys, "--cluster-size", size, "--flip", flip, "--trials", "100000", "--confidence", "0.999999")
    assert found["verdict"] == "pass"
    assert exact(capsys, size, flip) / 2 < found["epsilon_lower"] <= exact(capsys, size, flip)


def test_a_seed_repeats_an_audit_and_another_seed_is_another_one(capsys):
    asked = ["--cluster-size", "10", "--flip", "0.1", "--trials", "1000"]
    first = audited(capsys, *asked, "--seed", "5")
    assert audited(capsys, *asked, "--seed", "5") == first
    assert audited(capsys, *asked, "--seed", "6") != first


def test_an_engine_that_runs_something_else_fails_the_verdict(capsys, monkeypatch):
    real = engine_source.PopulationSource
    monkeypatch.setattr(engine_source, "PopulationSource", lambda **given: real(**given, exchange="permute"))
    found = audited(capsys, "--cluster-size", "20", "--flip", "0.1", "--trials", "2000")
    assert found["verdict"] == "fail"
    assert found["conformance"]["distinct_mates"] < 1e-12
    assert main(["audit", "--cluster-size", "20", "--flip", "0.1", "--trials", "2000"]) == 0
    verdict = capsys.readouterr().out.partition("verdict")[2].splitlines()[0]
    assert verdict.split()[0] == "fail:"
    assert "distinct_mates" in verdict


@pytest.mark.parametrize(
    ("flip", "more", "zero"),
    [("0.5", [], True), ("0", [], False), ("0.1", ["--delta", "0"], False), ("0.1", ["--delta", "0.999"], True)],
)
def test_extremes_are_answered(capsys, flip, more, zero):
    found = audited(capsys, "--cluster-size", "10", "--flip", flip, "--trials", "2000", *more)
    assert found["verdict"] == "pass"
    assert (found["epsilon_lower"] == 0) is zero


def test_a_cluster_of_one_is_audited_at_a_delta(capsys):
    found = audited(capsys, "--cluster-size", "1", "--flip", "0.1", "--trials", "2000", "--delta", "0.01")
    assert found["verdict"] == "pass"
    assert 1 < found["epsilon_lower"] < 2.2


def test_the_table_says_the_same_rounded_down(capsys):
    asked = ["--cluster-size", "10", "--flip", "0.1", "--trials", "2000"]
    lower = audited(capsys, *asked)["epsilon_lower"]
    assert main(["audit", *asked]) == 0
    out = capsys.readouterr().out
    shown = float(out.partition("at least ")[2].split()[0])
    assert 0 <= lower - shown < 1e-3
    assert "a lower bound, no guarantee" in out
    assert "verdict    pass\n" in out
    assert "flip_rate" in out


def test_a_long_audit_says_on_stderr_how_far_it_is(capsys):
    now = 0.0
    drawn = audit._progress(1000, clock=lambda: now)
    drawn(100)
    assert capsys.readouterr().err == ""
    now = 5.0
    drawn(200)
    drawn(300)
    assert capsys.readouterr() == ("", "300 of 1,000 rounds played\n")


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--cluster-size", "0"], "--cluster-size: 0 given; 1 to 20000"),
        (["--cluster-size", "1"], "--delta: 1/s^2 is 1 for a cluster of one"),
        (["--cluster-size", "1000000"], "--cluster-size: 1000000 given"),
        (["--flip", "nan"], "--flip: nan given; 0 to 0.5"),
        (["--flip", "-1"], "--flip: -1.0 given"),
        (["--flip", "0.51"], "--flip: 0.51 given"),
        (["--trials", "1"], "--trials: 1 given; 2 to 100000000"),
        (["--trials", "-5"], "--trials: -5 given"),
        (["--trials", "1000000000000"], "--trials: 1000000000000 given"),
        (["--delta", "1"], "--delta: 1.0 given"),
        (["--delta", "nan"], "--delta: nan given"),
        (["--confidence", "1"], "--confidence: 1.0 given"),
        (["--confidence", "nan"], "--confidence: nan given"),
        (["--engine", "internet"], "--engine: 'internet' given; one of population, virtual, processes"),
        (["--engine", "virtual", "--peers", "1"], "--peers: 1 given"),
        (["--peers", "64"], "--peers: 64 given; only rounds of real peers"),
        (["--seed", "-1"], "--seed: -1 given; 0 to 2^64 - 1"),
        (["--seed", str(2**64)], "--seed: 18446744073709551616 given"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, more, line):
    healthy = ["audit", "--cluster-size", "10", "--flip", "0.1", "--trials", "100"]
    assert main([*healthy, *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"p2p-labeldp: {line}")
    assert main(healthy) == 0


def test_help_has_an_example_and_imports_nothing_slow():
    code = """
import sys
from p2p_labeldp.cli import main
for command in (["account"], ["account", "resampling"], ["account", "privunit2"], ["plan"], ["audit"]):
    main([*command, "--help"])
main(["audit", "--cluster-size", "0", "--flip", "0.1", "--trials", "9"])
main(["plan", "--epsilon", "1"])
slow = {"numpy", "scipy", "rich", "dp_accounting"} & set(sys.modules)
sys.exit(f"imported: {slow}" if slow else 0)
"""
    root = str(Path(p2p_labeldp.__file__).parents[1])
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "    p2p-labeldp audit --cluster-size 10 --flip 0.1 --trials 100000\n" in ended.stdout
