"""``run`` prints one result, as a table or as an object, and keeps it where it is told to."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_images
from altering import altered

import p2p_labeldp
from p2p_labeldp.cli import main
from p2p_labeldp.facts import decode, transcript

SMALL = ["--set", "data.peers=60", "--set", "clusters.count=4", "--set", "clusters.minimum_size=8"]
STUDY = "study: no privacy for these labels (whoever knows seed 5 knows every flip)"


def told(capsys, *arguments, engine="population"):
    """stdout and stderr of a run that went well."""
    assert main(["run", "--engine", engine, "--seed", "5", *SMALL, *arguments]) == 0
    return capsys.readouterr()


def result(capsys, *arguments, engine="population"):
    return json.loads(told(capsys, "--json", "--quiet", *arguments, engine=engine).out)


@pytest.mark.parametrize("engine", ["population", "virtual"])
def test_the_object_is_all_there_is_on_stdout(capsys, engine):
    out, err = told(capsys, "--json", "--quiet", engine=engine)
    assert out.count("\n") == 1
    assert err == STUDY + "\n"
    said = json.loads(out)
    assert set(said) == {
        "peers", "outcomes", "clusters", "views", "accuracy", "seconds", "messages", "bytes", "config_hash",
        "seed", "versions",
    }  # fmt: skip
    assert (said["peers"], said["outcomes"], said["seed"]) == (60, {"reported": 60}, 5)
    assert sum(cluster["size"] for cluster in said["clusters"]) == 60
    assert set(said["clusters"][0]) == {"id", "size", "flip_probability", "epsilon", "delta", "local_epsilon"}
    assert [set(view) for view in said["views"]] == [{"view", "epsilon", "delta", "method"}] * 4
    assert [view["view"] for view in said["views"]] == ["learner", "learner+1", "learner+all", "mates"]
    assert all(0.99 < cluster["epsilon"] <= 1 < cluster["local_epsilon"] for cluster in said["clusters"])
    assert set(said["accuracy"]) == {"private", "non_private", "majority", "held_out"}
    assert "total" in said["seconds"]
    assert (said["messages"] is None) == (engine == "population")
    assert said["bytes"] is None


def test_the_engines_report_the_same(capsys):
    by_engine = [result(capsys, "--set", "output.reports=true", engine=engine) for engine in ("population", "virtual")]
    for key in ("reports", "accuracy", "clusters", "views", "outcomes", "config_hash"):
        assert by_engine[0][key] == by_engine[1][key]
    assert [report["peer"] for report in by_engine[0]["reports"]] == list(range(60))
    assert set(by_engine[0]["reports"][0]) == {"peer", "cluster", "label"}


def test_no_flip_is_an_infinite_epsilon_in_words(capsys):
    said = result(capsys, "--set", "mechanism.flip_probability=0")
    assert {cluster["epsilon"] for cluster in said["clusters"]} == {"inf"}
    assert {cluster["local_epsilon"] for cluster in said["clusters"]} == {"inf"}
    assert told(capsys, "--set", "mechanism.flip_probability=0").out.endswith(
        "inf: no privacy at this flip probability\n"
    )


def test_flip_and_target_replace_each_other(capsys):
    flip, target = ("--set", "mechanism.flip_probability=0.25"), ("--set", "mechanism.target_epsilon=0.5")
    assert {c["flip_probability"] for c in result(capsys, *target, *flip)["clusters"]} == {0.25}
    assert all(0.49 < c["epsilon"] <= 0.5 for c in result(capsys, *flip, *target)["clusters"])


def test_the_table_ends_with_what_is_promised(capsys):
    out, err = told(capsys)
    lines = out.splitlines()
    assert lines[:2] == ["breast-cancer on the population engine", STUDY]
    scope = lines.index("protects labels, not features")
    views = lines.index(next(line for line in lines if line.startswith("who learns what")))
    assert [line.split("  ")[0] for line in lines[views + 1 : scope - 1]] == [
        "learner alone", "learner with 1 mate", "learner with everyone", "mates alone",
    ]  # fmt: skip
    assert lines[scope + 1].split() == ["cluster", "size", "flip", "epsilon", "at", "delta", "local", "epsilon"]
    assert [line.split()[0] for line in lines[scope + 2 :]] == [str(i) for i in range(len(lines) - scope - 2)]
    assert "60 peers in" in err
    assert told(capsys, "--quiet").err == ""


def test_the_directory_holds_the_run(capsys, tmp_path):
    said = result(capsys, "--out", str(tmp_path / "run"), engine="virtual")
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == said
    facts = [decode(line) for line in (tmp_path / "run" / "facts.jsonl").read_bytes().splitlines()]
    assert len(transcript(facts)) == 4 * 60
    table = np.loadtxt(tmp_path / "run" / "noisy.csv", delimiter=",", skiprows=1)
    assert table.shape == (60, 32)
    assert set(table[:, -1]) == {0, 1}
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "config.json", "facts.jsonl", "guarantee.json", "noisy.csv", "result.json",
    ]  # fmt: skip


def test_other_models_train_on_what_was_kept(capsys, tmp_path):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.naive_bayes import GaussianNB

    said = result(capsys, "--out", str(tmp_path / "run"))
    table = np.loadtxt(tmp_path / "run" / "noisy.csv", delimiter=",", skiprows=1)
    for model in (GaussianNB(), RandomForestClassifier(random_state=0)):
        assert model.fit(table[:, :-2], table[:, -1]).score(table[:, :-2], table[:, -1]) > said["accuracy"]["majority"]


def test_a_name_and_a_path_work_from_another_directory(tmp_path):
    (tmp_path / "mine.toml").write_text('[data]\nname = "digits"\npeers = 50\n[clusters]\ncount = 2\n')
    root = str(Path(p2p_labeldp.__file__).parents[1])
    for configuration, peers in (("breast-cancer", 455), ("./mine.toml", 50)):
        ended = subprocess.run(
            [sys.executable, "-m", "p2p_labeldp", "run", configuration, "--engine", "population", "--json", "--quiet"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(ended.stdout)["peers"] == peers


def test_mechanisms_in_one_place_run_from_the_command_line(capsys):
    said = result(capsys, "--set", "mechanism.kind=cluster_rr")
    assert [view["view"] for view in said["views"]] == ["learner", "learner+all", "curator"]
    assert said["clusters"][0]["flip_probability"] is None
    assert "unverified" not in said
    assert "the curator" in told(capsys, "--set", "mechanism.kind=cluster_rr").out
    assert {c["epsilon"] for c in result(capsys, "--set", "mechanism.kind=none")["clusters"]} == {"inf"}
    arguments = ["run", "--engine", "virtual", *SMALL, "--set", "mechanism.kind=uniform_rr"]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("p2p-labeldp: mechanism.kind: 'uniform_rr' given; 'resampling' is what peers do")
    assert err.count("\n") == 1


def test_unverified_data_are_said_so(capsys, tiny):
    path = tiny / "mnist" / "train-labels-idx1-ubyte.gz"
    labels = tiny_images.CONTENTS["mnist"]["train-labels-idx1-ubyte"]
    path.write_bytes(gzip.compress(altered(labels)))
    config = tiny / "mnist.toml"
    config.write_text('[data]\nname = "mnist"\n[clusters]\ncount = 4\n[mechanism]\nkind = "cluster_rr"\n')
    arguments = ["run", str(config), "--engine", "population", "--quiet", "--data-dir", str(tiny)]
    assert main(arguments) == 2
    assert "is altered" in capsys.readouterr().err
    assert main([*arguments, "--set", "data.verify=false", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unverified"] is True
    assert main([*arguments, "--set", "data.verify=false"]) == 0
    assert "unverified: the data are not the published ones" in capsys.readouterr().out
