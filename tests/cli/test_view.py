"""``view`` writes a party's view of a run that was kept."""

import json

import pytest

from p2p_labeldp.cli import main

SMALL = ["--set", "data.peers=40", "--set", "clusters.count=2", "--set", "clusters.minimum_size=8"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "one"
    assert main(["run", "--engine", "virtual", "--quiet", *SMALL, "--out", str(directory)]) == 0
    return directory


def lines(capsys, run, party):
    capsys.readouterr()
    assert main(["view", str(run), "--as", party]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_learner_gets_the_features_and_labels_that_the_run_kept(kept, capsys):
    reports = [line for line in lines(capsys, kept, "learner") if line["saw"] == "report"]
    rows = [line.split(",") for line in (kept / "noisy.csv").read_text().splitlines()[1:]]
    told = {one["peer"]: [*one["features"], one["cluster"], one["label"]] for one in reports}
    assert [told[peer] for peer in range(40)] == [[float(value) for value in row] for row in rows]
    assert [one["at"] for one in reports] == sorted(one["at"] for one in reports)  # as they arrived


def test_every_party_gets_lines(kept, capsys):
    for party in ("mates:3,17", "learner+mates:3,17", "observer"):
        assert lines(capsys, kept, party)


def spoilt(directory, name, change):
    text = (directory / name).read_text()
    (directory / name).write_text(change(text))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere", "--as", "learner"], "RUN: 'nowhere' holds no run that was kept"),
        (["nowhere", "--as", "me"], "--as: 'me' given; learner, mates:NAME,NAME, observer"),
        (["nowhere"], "Missing option '--as'"),
    ],
)
def test_bad_input_is_one_line(arguments, complaint, capsys):
    assert main(["view", *arguments]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("facts.jsonl", lambda text: text[:-5]),
        ("facts.jsonl", lambda text: text.replace('"label":1', '"label":0')),
        ("noisy.csv", lambda text: "\n".join(text.split("\n")[:-2])),
        ("noisy.csv", lambda text: text + "\n"),
        ("noisy.csv", lambda text: text.replace("1", "x")),
    ],
)
def test_a_run_that_is_not_whole_is_refused(kept, tmp_path, capsys, name, change):
    run = tmp_path / "run"
    run.mkdir()
    for file in kept.iterdir():
        (run / file.name).write_bytes(file.read_bytes())
    spoilt(run, name, change)
    assert main(["view", str(run), "--as", "learner"]) == 2
    err = capsys.readouterr().err
    assert "RUN: " in err
    assert err.count("\n") == 1
