"""``run --csv``: somebody's table from install to result, and no way to fool oneself."""

import hashlib
import json
import os
import random
import stat
from pathlib import Path

import numpy as np
import pytest
from contracts.own_table_mistakes import HEADER, MISTAKES, NAMED, complaint, lines, write, write_all

from p2p_labeldp.cli import main, owndata
from p2p_labeldp.facts import Asked, Exchanged, Opened, decode

SEEDED = "study: no privacy for these labels (whoever knows seed 5 knows every flip)"


@pytest.fixture
def csv(tmp_path):
    return write(tmp_path / "people.csv", lines())


def told(capsys, *arguments):
    assert main(["run", *arguments]) == 0
    return capsys.readouterr()


def result(capsys, *arguments):
    return json.loads(told(capsys, "--json", "--quiet", *arguments).out)


@pytest.mark.parametrize("classes", [("ill", "well"), ("low", "middle", "high")])
@pytest.mark.parametrize("engine", ["population", "virtual"])
def test_a_table_is_played_without_a_seed(capsys, tmp_path, classes, engine):
    csv = write(tmp_path / "t.csv", lines(classes=classes))
    arguments = ("--csv", csv, "--label", "outcome", "--engine", engine, "--set", "output.reports=true")
    first, second = result(capsys, *arguments), result(capsys, *arguments)
    assert (first["seed"], first["peers"], first["outcomes"]) == (None, 120, {"reported": 120})
    assert [cluster["epsilon"] <= 1 for cluster in first["clusters"]] == [True] * len(first["clusters"])
    assert first["accuracy"]["non_private"] is None
    assert first["accuracy"]["majority"] is None
    assert 0 <= first["accuracy"]["private"] <= 1
    assert [cluster["size"] for cluster in first["clusters"]] == [cluster["size"] for cluster in second["clusters"]]
    # 120 flips and draws agree by chance with a probability below 1e-6
    assert first["reports"] != second["reports"]


@pytest.mark.processes
def test_peer_processes_are_the_default_and_their_learner_signs_what_it_promised(capsys, csv, tmp_path):
    kept = str(tmp_path / "kept")
    said = result(capsys, "--csv", csv, "--label", "outcome", "--set", "data.peers=30", "--out", kept)
    assert (said["seed"], said["peers"]) == (None, 30)
    assert said["outcomes"] == {"reported": 30}
    assert said["bytes"] > 0
    assert main(["verify", kept, "--json"]) == 0
    checks = {one["check"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert [name for name, one in checks.items() if one["status"] != "ok"] == ["coins"]
    assert checks["receipts"]["text"].startswith("30, one for each accepted report")


def test_a_seed_is_for_studies_and_the_result_says_what_it_costs(capsys, csv):
    arguments = ("--csv", csv, "--label", "outcome", "--engine", "population", "--seed", "5")
    out, err = told(capsys, *arguments)
    assert out.splitlines()[1] == SEEDED
    assert "non-private" in out
    assert owndata.LOCAL not in err
    seeded = told(capsys, *arguments, "--json", "--quiet")
    assert SEEDED in seeded.err
    by_engine = [result(capsys, *arguments, "--engine", engine) for engine in ("population", "virtual")]
    assert by_engine[0]["accuracy"] == by_engine[1]["accuracy"]


def named(exchanged, facts):
    """Both ends of it, the learner by its name."""
    learner = next(fact.id for fact in facts if isinstance(fact, Opened))
    return exchanged.peer, "learner" if exchanged.to == learner else exchanged.to


def test_what_is_kept_says_neither_who_asked_whom_nor_what_true_labels_allow(capsys, tmp_path, csv):
    arguments = ("--csv", csv, "--label", "outcome", "--engine", "virtual")
    out, err = told(capsys, *arguments, "--out", str(tmp_path / "kept"))
    assert "the accuracy is of held-out rows, whose labels are not protected" in out
    assert "non-private" not in out
    assert f"{owndata.LOCAL}: the same model of the true labels " in err
    for seed, asks in ((None, 0), (5, 120)):
        directory = tmp_path / f"kept-{seed}"
        result(capsys, *arguments, "--out", str(directory), *(() if seed is None else ("--seed", "5")))
        facts = [decode(line) for line in (directory / "facts.jsonl").read_bytes().splitlines()]
        assert sum(isinstance(fact, Asked) for fact in facts) == asks
        between_peers = [fact for fact in facts if isinstance(fact, Exchanged) and "learner" not in named(fact, facts)]
        assert (len(between_peers) > 120) == (asks > 0)
        assert len(facts) > 120
        seen = {party: main(["view", str(directory), "--as", party]) for party in ("learner", "mates:1", "observer")}
        assert seen == {"learner": 0, "mates:1": 0 if asks else 2, "observer": 0 if asks else 2}
        assert ("who asked whom was not kept" in capsys.readouterr().err) == (asks == 0)
    header, first = (tmp_path / "kept" / "noisy.csv").read_text().splitlines()[:2]
    assert header == "age,bmi,sex=m,cluster,label"
    assert len(first.split(",")) == 5
    # the directory names no digest of the table, from which labels could be tried out
    assert json.loads((tmp_path / "kept" / "config.json").read_text())["data"]["csv"] == csv
    assert hashlib.sha256(Path(csv).read_bytes()).hexdigest() not in "".join(
        kept.read_text() for kept in (tmp_path / "kept").iterdir()
    )


def test_the_suggestion_is_the_same_byte_for_byte_when_labels_are_permuted(capsys, tmp_path):
    rows = list(lines(300))
    labels = [row[-1] for row in rows]
    random.Random(1).shuffle(labels)
    permuted = [[*row[:-1], label] for row, label in zip(rows, labels, strict=True)]
    assert permuted != rows
    said = set()
    for table in (rows, permuted):
        csv = write(tmp_path / "t.csv", table)
        for form in ((), ("--json",)):
            out, err = told(capsys, "--csv", csv, "--label", "outcome", "--suggest", "--quiet", *form)
            said.add((form, out, err))
    assert len(said) == 2
    text = next(out for form, out, _ in said if not form)
    assert text.startswith("suggested from features and sizes alone: --clusters 10, which merge to ")
    moved = [[str(int(row[0]) // 30 * 30), *row[1:]] for row in rows]
    csv = write(tmp_path / "t.csv", moved)
    assert told(capsys, "--csv", csv, "--label", "outcome", "--suggest", "--quiet").out != text  # features do move it


def test_clusters_and_epsilon_can_be_said(capsys, csv):
    said = result(
        capsys, "--csv", csv, "--label", "outcome", "--engine", "population", "--clusters", "2", "--epsilon", "0.5"
    )
    assert len(said["clusters"]) <= 2
    assert all(0.49 < cluster["epsilon"] <= 0.5 for cluster in said["clusters"])
    named = result(capsys, "iris", "--engine", "population", "--clusters", "2", "--epsilon", "0.5")
    assert len(named["clusters"]) <= 2


def test_a_column_that_tells_the_label_is_named_on_the_screen_only(capsys, tmp_path):
    rows = [[*row[:-1], "AB"[row[-1] == "well"], row[-1]] for row in lines()]
    csv = write(tmp_path / "t.csv", rows, header="age,bmi,sex,code,outcome")
    arguments = ("--csv", csv, "--label", "outcome", "--engine", "population")
    err = told(capsys, *arguments).err
    assert f"{owndata.LOCAL}: 'code=B' alone tells the label of 100% of the rows" in err
    assert not any("tells the label of" in note for note in result(capsys, *arguments)["notes"])
    assert "tells the label" not in told(capsys, *arguments, "--leave-out", "code").err


def test_noise_is_suggested_where_it_is_planned_for_resampling_only(capsys, csv):
    asked = ("--csv", csv, "--label", "outcome", "--quiet", "--suggest")
    assert "; flip " in told(capsys, *asked).out
    for change in ("mechanism.kind=uniform_rr", "mechanism.flip_probability=0.1"):
        assert "flip" not in told(capsys, *asked, "--set", change).out
        assert json.loads(told(capsys, *asked, "--set", change, "--json").out)["flips"] is None


def test_mechanisms_in_one_place_take_a_table_and_real_peers_refuse_them(capsys, csv):
    asked = ("--csv", csv, "--label", "outcome", "--set", "mechanism.kind=uniform_rr")
    said = result(capsys, *asked, "--engine", "population", "--epsilon", "2")
    assert (said["seed"], said["views"][0]["delta"]) == (None, 0.0)
    assert main(["run", *asked, "--engine", "virtual", "--quiet"]) == 2
    assert "mechanism.kind: 'uniform_rr' given; 'resampling' is what peers do" in capsys.readouterr().err


def test_a_configuration_may_name_a_table(capsys, tmp_path, csv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(
        '[data]\ncsv = "people.csv"\nlabel = "outcome"\nclasses = ["well", "ill"]\n[clusters]\ncount = 4\n'
    )
    said = result(capsys, "mine.toml", "--engine", "population")
    assert (said["seed"], said["peers"]) == (None, 120)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        *MISTAKES,
        (("--suggest",), "--suggest: --csv FILE is needed with it"),
        ((*NAMED, "--seed", "-1"), "--seed: -1 given"),
        (
            ("--csv", "many.csv", "--label", "outcome"),
            "--engine: 1600 rows for training would be 1600 processes, more than 1500; say --engine population, or",
        ),
    ],
)
def test_each_mistake_is_one_sentence_and_nothing_was_started(capsys, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path)
    write(tmp_path / "many.csv", lines(2000))
    assert main(["run", *arguments, "--out", "kept"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint(err).startswith(f"p2p-labeldp: {line}")
    assert not (tmp_path / "kept").exists()


def test_spaces_and_capitals_of_labels_are_no_mistake(capsys, tmp_path):
    write_all(tmp_path)
    said = told(capsys, "--csv", str(tmp_path / "spaced.csv"), "--label", "outcome", "--suggest")
    assert "classes Yes, no: " in said.err


def test_packed_peers_hold_more_rows(tmp_path):
    from p2p_labeldp import config, experiment

    csv = write(tmp_path / "many.csv", lines(2000))
    chosen = config.from_mapping(
        {"data": {"csv": csv, "label": "outcome"}, "clusters": {"count": 20}}, ["network.peers_per_process=2"]
    )
    assert len(experiment.prepare(chosen, engine="processes", seed=None).study) == 1600


def test_a_table_that_changed_is_read_again(capsys, tmp_path):
    arguments = ("--label", "outcome", "--engine", "population")
    csv = write(tmp_path / "t.csv", lines(150))
    assert result(capsys, "--csv", csv, *arguments)["peers"] == 120
    write(tmp_path / "t.csv", lines(200))
    assert result(capsys, "--csv", csv, *arguments)["peers"] == 160


def test_coins_without_a_seed_flip_as_often_as_is_said():
    """2,000 uniform flips at f = .3: beyond 5.5 standard deviations with a probability below 1e-6."""
    from p2p_labeldp import population

    played = population.play(np.zeros(2000, dtype=int), np.zeros(2000, dtype=int), [0.3], seed=None)
    assert abs(int(played.flipped.sum()) - 600) < 5.5 * (2000 * 0.21) ** 0.5


def test_examples_of_a_table_are_the_rows_its_learner_clusters(capsys, tmp_path, csv):
    from p2p_labeldp import config, experiment

    out = tmp_path / "people"
    assert main(["examples", "--csv", csv, "--label", "outcome", "--count", "3", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"3 examples in {out}; classes: ill,well\n"
    chosen = config.load("by-hand", [f"data.csv={csv}", "data.label=outcome"])
    split = experiment.split_of(chosen, seed=experiment.PUBLIC_SEED)
    for i in range(3):
        example = json.loads((out / f"{i}.json").read_text())
        assert example["features"] == split.train_features[i].tolist()
        assert example["label"] == split.label_space.classes[split.train_labels[i]]
    assert main(["examples", "iris", "--csv", csv, "--label", "outcome"]) == 2
    assert main(["examples", "--csv", csv]) == 2
    assert main(["examples", "--label", "outcome"]) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--count", "10000"], "--count: 10000 given; breast-cancer has 2 to 455 training rows"),
        (["irises"], "NAME: 'irises' given"),
        (["--csv", "people.csv", "--label", "outcom"], "--label: no column 'outcom'"),
    ],
)
def test_examples_that_can_not_be_taken_are_one_line(capsys, tmp_path, monkeypatch, arguments, complaint):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["examples", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"p2p-labeldp: {complaint}")
    assert not (tmp_path / "people").exists()


def test_examples_are_their_owners_alone_and_never_overwritten(capsys, tmp_path, csv):
    made, present = tmp_path / "of" / "people", tmp_path / "present"
    present.mkdir(mode=0o755)
    present.chmod(0o755)
    before = os.umask(0)
    try:
        for out in (made, present):
            assert main(["examples", "--csv", csv, "--label", "outcome", "--out", str(out)]) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE(present.stat().st_mode) == 0o755  # somebody else's to say
    assert [stat.S_IMODE(file.stat().st_mode) for out in (made, present) for file in out.iterdir()] == [0o600] * 6
    (made / "0.json").unlink()
    (made / "1.json").write_text("mine")
    capsys.readouterr()
    assert main(["examples", "--csv", csv, "--label", "outcome", "--out", str(made)]) == 2
    err = capsys.readouterr().err
    assert err == f"p2p-labeldp: --out: '{made / '1.json'}' exists already; a new directory is needed\n"
    assert (made / "1.json").read_text() == "mine"
    assert not (made / "0.json").exists()


@pytest.mark.parametrize(("said", "separator"), [("tab", "\t"), ("\\t", "\t"), ("|", "|"), (";", ";")])
def test_a_separator_can_be_said(capsys, tmp_path, said, separator):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(separator.join(row) for row in [HEADER.split(","), *lines()]) + "\n")
    arguments = ("--csv", str(path), "--label", "outcome", "--suggest", "--quiet", "--json")
    assert told(capsys, *arguments, "--separator", said).out == told(capsys, *arguments).out
