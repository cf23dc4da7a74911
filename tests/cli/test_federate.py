"""``federate`` ends with accuracy and three ledgers, as lines or as an object, on every engine."""

import io
import json

import pytest

from p2p_labeldp.cli import main
from p2p_labeldp.cli.federate import watching
from p2p_labeldp.facts import Averaged, Ended, Outcome

SMALL = [f"--set={change}" for change in ("data.peers=20", "updates.rounds=4", "updates.sampling_rate=0.5")]
STUDY = "study: no privacy for these examples (whoever knows seed 5 knows every update)"


def call(capsys, *arguments, engine="population"):
    assert main(["federate", "--engine", engine, "--seed", "5", *SMALL, *arguments]) == 0
    return capsys.readouterr()


def record(capsys, *arguments, engine="population"):
    return json.loads(call(capsys, "--json", "--quiet", *arguments, engine=engine).out)


def test_the_object_has_accuracy_and_three_ledgers_and_is_all_there_is_on_stdout(capsys):
    out, err = call(capsys, "--json", "--quiet")
    assert out.count("\n") == 1
    assert err == STUDY + "\n"
    said = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert list(said) == [
        "engine", "peers", "model", "dimension", "rounds", "cohorts", "projection", "shrunk_share", "accuracy",
        "central", "local", "reconstruction", "parameters_digest", "seconds", "messages", "bytes", "config_hash",
        "seed", "complete",
    ]  # fmt: skip
    assert set(said["accuracy"]) == {"private", "non_private", "majority", "held_out"}
    assert said["central"]["epsilon"] <= said["central"]["target_epsilon"] == 2.0
    assert said["local"]["epsilon"] == 6.0 * said["local"]["participations"]
    assert 0 < said["reconstruction"]["success"] < 1


@pytest.mark.processes
def test_real_processes_end_with_the_same_model_and_the_same_ledgers(capsys):
    arrays, memory, real = (record(capsys, engine=engine) for engine in ("population", "virtual", "processes"))
    for name in ("parameters_digest", "cohorts", "accuracy", "central", "local", "reconstruction", "config_hash"):
        assert arrays[name] == memory[name] == real[name]
    assert arrays["messages"] is None
    assert memory["messages"] > 0
    assert real["bytes"] > 0


def test_the_lines_name_the_three_ledgers_and_the_study(capsys):
    out, err = call(capsys)
    assert STUDY in out
    for name in ("accuracy ", "central ", "local ", "reconstruction "):
        assert f"\n{name}" in out
    assert "at most 3 reports of a peer at 6 (budget 18)" in out
    assert err == "20 peers, 4 rounds of about 10 each, on the population engine\n"


def test_a_reduced_sigma_is_warned_of_and_stands_beside_the_honest_one(capsys):
    out, err = call(capsys, "--set", "updates.sigma=0.1", "--quiet")
    assert err.count("\n") == 1
    assert err.startswith("warning: sigma 0.1 is below ")
    assert "sigma 0.1, reduced: epsilon 2 takes " in out


def test_without_noise_epsilon_is_inf(capsys):
    out, _ = call(capsys, "--set", "updates.sigma=0", "--json", "--quiet")
    assert json.loads(out)["central"]["epsilon"] == "inf"
    for sigma in ("0", "1e-170", "1e-300"):  # 1e-162 squared is 0 in doubles, and 0/0 once passed for no loss at all
        assert "epsilon inf at delta" in call(capsys, "--set", f"updates.sigma={sigma}", "--quiet").out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--engine", "magic"], "--engine: 'magic' given"),
        (["--seed", "-1"], "--seed: -1 given"),
        (["nothing"], "configuration: 'nothing' given"),
        (["--set", "updates.rounds=0"], "updates.rounds: 0 given"),
        (["--set", "updates.sampling_rate=nan"], "updates.sampling_rate: nan given"),
        (["--set", "updates.epsilon_direction=0"], "updates.epsilon_direction: 0 given"),
        (["--set", "updates.budget=0"], "updates.budget: 0 given"),
        (["--set", "updates.max_radius=1e-300"], "updates.max_radius: 1e-300 given"),
        (["--set", "updates.magnitude=big"], "updates.magnitude: 'big' given"),
        (["--set", "updates.model=oracle"], "updates.model: 'oracle' given"),
        (["--set", "updates.sigm=1"], "updates.sigm: no such key; did you mean updates.sigma?"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_started(capsys, arguments, complaint):
    assert main(["federate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"p2p-labeldp: {complaint}")
    assert err.count("\n") == 1


def test_progress_tells_of_rounds_now_and_then(monkeypatch):
    file, clock = io.StringIO(), iter((0.0, 1.0, 6.0, 6.0, 7.0, 20.0, 20.0))
    monkeypatch.setattr("p2p_labeldp.cli.federate.time.monotonic", lambda: next(clock))
    with watching(file, rounds=4) as on_fact:
        for number in range(4):
            on_fact(Averaged(peer="learner", round=number, answers=9))
            on_fact(Ended(peer=1, outcome=Outcome.REPORTED))
    assert file.getvalue() == "round 2 of 4: 9 peers answered\nround 4 of 4: 9 peers answered\n"
