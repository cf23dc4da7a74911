"""``compare``: a table, what it says of whom, and no way to overlook that it reads labels."""

import json

import pytest
from contracts.own_table_mistakes import MISTAKES, NAMED, complaint, write_all

from p2p_labeldp.cli import main
from p2p_labeldp.comparing import READS


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path)


def asked(capsys, *arguments):
    capsys.readouterr()
    status = main(["compare", *arguments])
    return status, *capsys.readouterr()


def test_own_data_gets_a_table_that_says_whom_each_trusts(people, capsys):
    status, out, err = asked(capsys, *NAMED, "--epsilon", "2", "--trials", "2")
    assert status == 0
    assert READS in out
    heads = [line for line in out.splitlines() if line.startswith("mechanism")]
    assert heads[0].split("  ")[-1] == "local epsilon"
    assert "whom it trusts" in heads[1]
    assert "what it releases" in heads[1]
    names = ("Algorithm 2", "RRWithPrior, 2 stages", "UniformRR", "ClusterRR", "RRWithPrior, 1 stage", "DP-SGD")
    for name in (*names, "no privacy", "always the commonest"):
        said = [line for line in out.splitlines() if line.startswith(name)]
        assert len(said) == 3, name
        assert said[2].startswith(f"{name}: " + ("epsilon " if name in names else "none: "))
    assert "2 trials, each with 30 other rows held out and 120 to train on, 2 classes" in out
    assert [line for line in err.splitlines() if line.startswith("trial")] == ["trial 1 of 2", "trial 2 of 2"]
    assert "note: suggested from features and sizes alone" in err


def test_json_has_the_same(people, capsys):
    arguments = ("iris", "--trials", "2", "--seed", "5")
    _, out, _ = asked(capsys, *arguments)
    status, said, err = asked(capsys, *arguments, "--json", "--quiet")
    record = json.loads(said)
    assert (status, err) == (0, "")
    assert record["warning"] == READS
    assert record["classes"] == ["setosa", "versicolor", "virginica"]
    assert (record["trials"], record["seed"], record["epsilon"]) == (2, 5, 1.0)
    table = out.splitlines()
    for row in record["rows"]:
        numbers = next(line for line in table if line.startswith(row["name"]))
        assert f"{row['accuracy']:.3f}" in numbers
        assert f"{row['low']:.3f} to {row['high']:.3f}" in numbers
        assert f"{row['name']}: {row['guarantee']}" in table
    assert {row["local_epsilon"] for row in record["rows"] if row["trusted"] != "nobody"} == {"inf"}


def test_the_number_of_clusters_can_be_said(people, capsys):
    _, said, err = asked(capsys, *NAMED, "--clusters", "1", "--trials", "2", "--json")
    assert json.loads(said)["cluster_sizes"] == [120, 120]
    assert "suggested" not in err
    assert json.loads(asked(capsys, *NAMED, "--trials", "2", "--json")[1])["cluster_sizes"] != [120, 120]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        *MISTAKES,
        ((*NAMED, "--trials", "1"), "--trials: 1 given; 2 to 1000 are possible"),
        ((*NAMED, "--seed", "-1"), "--seed: -1 given"),
        ((*NAMED, "--set", "mechanism.kind=none"), "mechanism.kind: given; a comparison plays all mechanisms"),
        (("nosuch",), "configuration: 'nosuch' given; the known names are"),
    ],
)
def test_each_mistake_is_one_sentence_and_no_trial_begins(people, capsys, arguments, line):
    status, out, err = asked(capsys, *arguments)
    assert (status, out) == (2, "")
    assert complaint(err).startswith(f"p2p-labeldp: {line}")


def test_help_has_an_example(capsys):
    status, out, _ = asked(capsys, "--help")
    assert status == 0
    assert "p2p-labeldp compare --csv patients.csv --label diagnosis" in out
