"""``measure`` prints a table or an object, keeps rows, table and figure, and goes on where it was."""

import csv
import json

import pytest

from p2p_labeldp.cli import main

QUICK = [
    "breast-cancer", "--set", "data.peers=100", "--set", "mechanism.flip_probability=0.1",
    "--sizes", "8,16", "--trials", "400", "--seed", "5",
]  # fmt: skip
FILES = ["measure.csv", "measure.jsonl", "measure.pdf", "measure.png", "measure.svg"]


def told(capsys, path, *arguments):
    assert main(["measure", *QUICK, "--out", str(path), *arguments]) == 0
    return capsys.readouterr()


def test_the_directory_gets_rows_table_and_figure_and_the_table_is_printed(capsys, tmp_path):
    out, err = told(capsys, tmp_path / "new" / "one")
    assert sorted(path.name for path in (tmp_path / "new" / "one").iterdir()) == FILES
    lines = out.splitlines()
    assert lines[0] == "breast-cancer, population engine, 400 trials each, confidence 0.99, seed 5"
    assert lines[2].split()[:6] == ["size", "flip", "delta", "measured", "exact", "shuffle"]
    assert [line.split()[0] for line in lines[3:5]] == ["8", "16"]
    assert lines[3].split()[4] == "0.872"  # .87125, rounded up
    assert "lower bound" in lines[-1]
    assert err.splitlines()[0] == "sizes: 2, 400 trials each"
    assert len(err.splitlines()) == 3
    with (tmp_path / "new" / "one" / "measure.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    kept = [json.loads(line) for line in (tmp_path / "new" / "one" / "measure.jsonl").read_text().splitlines()]
    assert [{key: "" if value is None else str(value) for key, value in row.items()} for row in kept[::-1]] == rows


def test_a_second_command_goes_on_where_the_first_was(capsys, tmp_path):
    told(capsys, tmp_path)
    before = (tmp_path / "measure.jsonl").read_text()
    _, err = told(capsys, tmp_path, "--sizes", "8,16,4")
    assert err.splitlines()[0] == "sizes: 3, 400 trials each, 8, 16 known already"
    assert len(err.splitlines()) == 2
    after = (tmp_path / "measure.jsonl").read_text()
    assert after.startswith(before)
    assert after.count("\n") == 3


def test_the_object_is_all_there_is_on_stdout(capsys, tmp_path):
    out, err = told(capsys, tmp_path, "--json", "--quiet")
    assert err == ""
    assert out.count("\n") == 1
    rows = json.loads(out)["rows"]
    assert [row["cluster_size"] for row in rows] == [8, 16]
    assert {"epsilon", "epsilon_lower", "local_epsilon", "shuffle_epsilon", "paper_epsilon", "verdict", "accuracy",
            "delta", "confidence", "mate_epsilon", "config_hash", "seed", "version"} <= set(rows[0])  # fmt: skip
    assert rows[0]["paper_epsilon"] == "inf"


def test_measured_is_rounded_down_and_promised_up(capsys, tmp_path):
    rows = json.loads(told(capsys, tmp_path, "--json", "--quiet").out)["rows"]
    printed = told(capsys, tmp_path, "--quiet").out.splitlines()[3:5]
    for row, line in zip(rows, printed, strict=True):
        measured, exact, shuffle = map(float, line.split()[3:6])
        assert row["epsilon_lower"] - 0.001 < measured <= row["epsilon_lower"]
        assert row["epsilon"] <= exact < row["epsilon"] + 0.001
        assert row["shuffle_epsilon"] <= shuffle < row["shuffle_epsilon"] + 0.001


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--sizes", "8,x"], "--sizes: '8,x' given; whole numbers"),
        (["--sizes", ""], "--sizes: '' given; whole numbers"),
        (["--sizes", "1"], "--sizes: 1 given; 2 to 1000000"),
        (["--trials", "1"], "--trials: 1 given"),
        (["--jobs", "0"], "--jobs: 0 given"),
        (["--seed", "-1"], "--seed: -1 given"),
        (["--confidence", "nan"], "--confidence: nan given"),
        (["--set", "exchange.kind=permute"], "exchange.kind: 'permute' given"),
        (["--set", "mechanism.flip_probability=0.6"], "mechanism.flip_probability: 0.6 given"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_directory(capsys, tmp_path, arguments, line):
    assert main(["measure", *QUICK, "--out", str(tmp_path / "new"), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"p2p-labeldp: {line}")
    assert err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_without_a_directory_it_is_bad_usage(capsys):
    assert main(["measure", *QUICK]) == 2
    assert capsys.readouterr().err == "p2p-labeldp: Missing option '--out'; see p2p-labeldp measure --help\n"
