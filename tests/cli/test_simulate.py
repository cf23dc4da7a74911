"""``simulate`` replays a seed, searches many, and says in one line what it can't do."""

import json

import pytest

from p2p_labeldp.cli import main
from p2p_labeldp.protocol import report


def simulate(capsys, *arguments):
    status = main(["simulate", *arguments])
    out = capsys.readouterr()
    return status, out.out, out.err


def test_a_seed_is_replayed(capsys):
    status, out, _ = simulate(capsys, "--seed", "7", "--faults", "any", "--json")
    record = json.loads(out)
    assert status == 0
    assert record["seed"] == 7
    assert record["broken"] == []
    assert record["shrunk"] is None
    assert json.loads(simulate(capsys, "--seed", "7", "--json")[1])["trace_hash"] == record["trace_hash"]
    assert json.loads(simulate(capsys, "--seed", "8", "--json")[1])["trace_hash"] != record["trace_hash"]


def test_many_are_searched(capsys):
    status, out, _ = simulate(capsys, "--seed", "1", "--faults", "network", "--scenarios", "3", "--json")
    record = json.loads(out)
    assert status == 0
    assert (record["scenarios"], record["failed"], record["failures"]) == (3, False, [])
    assert "every invariant holds" in simulate(capsys, "--seed", "1", "--scenarios", "3")[1]


def test_a_broken_invariant_is_told_with_its_seed_and_the_faults_it_needs(capsys, monkeypatch):
    monkeypatch.setattr(report, "check_receipt", lambda *_, **__: None)
    status, out, _ = simulate(capsys, "--seed", "0", "--faults", "learner", "--scenarios", "12")
    replay = next(line for line in out.splitlines() if line.startswith("replay"))
    assert status == 1
    seed, kept = replay.split("--seed ")[1].split()[0], replay.split("'")[1]
    status, out, _ = simulate(capsys, "--seed", seed, "--faults", "learner", "--only", kept)
    assert status == 1
    assert "reported without a receipt for its report" in out
    assert "false_receipts" in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--faults", "meteors"), "--faults"),
        (("--seed", "-1"), "--seed"),
        (("--scenarios", "0"), "--scenarios"),
        (("--only", "x"), "--only"),
        (("--only", "99"), "--only"),
        (("--only", "0", "--scenarios", "2"), "--only"),
    ],
)
def test_what_it_cannot_do_is_one_line(capsys, arguments, named):
    status, out, err = simulate(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert named in err
