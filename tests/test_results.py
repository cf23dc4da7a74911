"""A result is JSON that scripts can rely on; a run's directory is whole or shows that it is not."""

import csv
import hashlib
import json
import math

import msgspec
import numpy as np
import pytest

from p2p_labeldp import config, results
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Ended, Joined, Outcome, decode
from p2p_labeldp.results import (
    Accuracy,
    ClusterResult,
    Noisy,
    ReportedLabel,
    Result,
    ViewResult,
    claimed,
    count_outcomes,
    from_json,
    to_json,
)

CLUSTER = ClusterResult(
    id=0, size=3, flip_probability=0.109, epsilon=1.0, delta=1 / 9, local_epsilon=math.log(0.891 / 0.109)
)
RESULT = Result(
    peers=3,
    outcomes={"reported": 2, "failed": 1},
    clusters=[CLUSTER],
    views=[ViewResult(view="learner", epsilon=1.0, delta=1 / 9, method="exact")],
    accuracy=Accuracy(private=0.5, non_private=None, majority=None),
    seconds={"prepare": 0.25, "total": 1.5},
    messages=None,
    bytes=None,
    config_hash="ab" * 32,
    seed=None,
    versions={"python": "3.11.0"},
)
NOISY = Noisy(
    peers=[0, 2],
    clusters=np.array([0, 0]),
    features=np.array([[0.1, 1e-300], [-3.0, 2 / 3]]),
    labels=np.array([1, 0]),
)
FACTS = [Joined(peer=0, cluster=0), Accepted(peer=0, cluster=0, label=1), Ended(peer=0, outcome=Outcome.REPORTED)]
CONFIG = config.from_mapping({"data": {"name": "digits"}})


def test_the_object_has_the_keys_scripts_rely_on_and_no_others():
    told = json.loads(to_json(RESULT))
    assert list(told) == [
        "peers", "outcomes", "clusters", "views", "accuracy", "seconds", "messages", "bytes", "config_hash",
        "seed", "versions",
    ]  # fmt: skip
    assert list(told["clusters"][0]) == ["id", "size", "flip_probability", "epsilon", "delta", "local_epsilon"]
    assert told["views"] == [{"view": "learner", "epsilon": 1.0, "delta": 1 / 9, "method": "exact"}]
    assert told["accuracy"] == {"private": 0.5, "non_private": None, "majority": None}
    assert told["messages"] is told["bytes"] is told["seed"] is None
    with_reports = msgspec.structs.replace(RESULT, reports=NOISY.reports())
    assert json.loads(to_json(with_reports))["reports"] == [
        {"peer": 0, "cluster": 0, "label": 1},
        {"peer": 2, "cluster": 0, "label": 0},
    ]


def test_infinity_is_a_string_and_comes_back_as_a_number():
    endless = msgspec.structs.replace(
        RESULT,
        clusters=[msgspec.structs.replace(CLUSTER, epsilon=math.inf, local_epsilon=math.inf)],
        views=[msgspec.structs.replace(RESULT.views[0], epsilon=math.inf)],
    )
    text = to_json(endless)
    assert json.loads(text)["clusters"][0]["epsilon"] == json.loads(text)["clusters"][0]["local_epsilon"] == "inf"
    assert json.loads(text)["views"][0]["epsilon"] == "inf"
    assert "Infinity" not in text
    assert from_json(text) == endless


def test_a_result_comes_back_as_it_was():
    with_reports = msgspec.structs.replace(RESULT, reports=[ReportedLabel(peer="ab12", cluster=0, label=1)])
    for result in (RESULT, with_reports):
        assert from_json(to_json(result, indent=2)) == result


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"peers": 3}', to_json(RESULT).replace('"peers": 3', '"peers": "x"')]
)
def test_what_is_no_result_is_refused(text):
    with pytest.raises(ConfigurationError, match=r"^result\.json: no result of a run"):
        from_json(text)


def test_a_number_that_is_none_is_never_written():
    broken = msgspec.structs.replace(RESULT, accuracy=Accuracy(private=math.nan, non_private=None, majority=None))
    with pytest.raises(ValueError, match="JSON"):
        to_json(broken)


def test_each_peer_counts_once_and_without_an_end_as_failed():
    def end(peer, outcome):
        return Ended(peer=peer, outcome=outcome)

    facts = [*FACTS, end(1, Outcome.ABSTAINED), end(1, Outcome.ABSTAINED), end(2, Outcome.REPORTED)]
    assert count_outcomes(facts, 3) == {"reported": 2, "abstained": 1}
    assert count_outcomes(facts, 5) == {"reported": 2, "abstained": 1, "failed": 2}
    assert count_outcomes([*facts, end(3, Outcome.FAILED)], 5) == {"reported": 2, "abstained": 1, "failed": 2}


def test_a_study_is_a_result_with_a_seed():
    assert not RESULT.study
    assert msgspec.structs.replace(RESULT, seed=0).study


# --- the directory -------------------------------------------------------------------------------------------------


def write(directory):
    directory.write(result=RESULT, facts=FACTS, noisy=NOISY, config=CONFIG)


@pytest.mark.parametrize("prepare", [lambda path: None, lambda path: path.mkdir(parents=True)])
def test_a_new_or_empty_directory_gets_result_facts_reports_and_configuration(tmp_path, prepare):
    path = tmp_path / "runs" / "first"
    prepare(path)
    with claimed(path) as directory:
        write(directory)
    assert sorted(file.name for file in path.iterdir()) == ["config.json", "facts.jsonl", "noisy.csv", "result.json"]
    assert from_json((path / "result.json").read_text()) == RESULT
    assert [decode(line) for line in (path / "facts.jsonl").read_bytes().splitlines()] == FACTS
    assert hashlib.sha256((path / "config.json").read_bytes()).hexdigest() == config.config_hash(CONFIG)


def test_further_files_are_made_of_the_digest_of_the_facts_and_stand_before_the_result(tmp_path):
    seen = []

    def more(digest):
        seen.append((digest, (tmp_path / "result.json").exists()))
        return {"guarantee.json": "text"}

    with claimed(tmp_path) as directory:
        directory.write(result=RESULT, facts=FACTS, noisy=NOISY, config=CONFIG, more=more)
    assert seen == [(hashlib.sha256((tmp_path / "facts.jsonl").read_bytes()).hexdigest(), False)]
    assert (tmp_path / "guarantee.json").read_text() == "text"


def test_the_reports_are_a_table_of_plain_numbers(tmp_path):
    with claimed(tmp_path) as directory:
        write(directory)
    with (tmp_path / "noisy.csv").open() as file:
        assert next(csv.reader(file)) == ["x0", "x1", "cluster", "label"]
    table = np.loadtxt(tmp_path / "noisy.csv", delimiter=",", skiprows=1)
    assert (table[:, :2] == NOISY.features).all()  # to the last bit
    assert table[:, 2:].tolist() == [[0, 1], [0, 0]]


def test_a_directory_that_holds_something_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / ".hidden").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"^--out: .* is not empty \(it holds '\.hidden'\)"), claimed(tmp_path):
        pytest.fail("it was given")
    assert [file.name for file in tmp_path.iterdir()] == [".hidden"]


def test_a_directory_that_holds_a_run_is_refused(tmp_path):
    with claimed(tmp_path / "a") as directory:
        write(directory)
    before = (tmp_path / "a" / "result.json").read_text()
    with pytest.raises(ConfigurationError, match="is not empty"), claimed(tmp_path / "a"):
        pytest.fail("it was given")
    assert (tmp_path / "a" / "result.json").read_text() == before


def test_two_runs_at_once_do_not_get_one_directory(tmp_path):
    with claimed(tmp_path / "a") as directory:
        with pytest.raises(ConfigurationError, match="another run is being written there"), claimed(tmp_path / "a"):
            pytest.fail("it was given twice")
        write(directory)
    assert (tmp_path / "a" / "result.json").exists()


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").touch()
    for path in ("file", "file/below", "\0"):
        with pytest.raises(ConfigurationError, match=r"^--out: "), claimed(str(tmp_path / path)):
            pytest.fail("it was given")


def test_a_run_that_fails_leaves_nothing_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt), claimed(tmp_path / "a" / "b"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(KeyboardInterrupt), claimed(tmp_path / "mine"):
        raise KeyboardInterrupt
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_file_is_whole_or_not_there_and_the_result_comes_last(tmp_path):
    def facts():
        yield FACTS[0]
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"), claimed(tmp_path) as directory:
        directory.write(result=RESULT, facts=facts(), noisy=NOISY, config=CONFIG)
    assert [file.name for file in tmp_path.iterdir()] == ["config.json"]
    assert results.CLAIM == ".running"
