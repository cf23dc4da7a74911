"""A sweep measures each size once, however often it is interrupted and on however many processes."""

import json
import sys

import msgspec
import pytest

from p2p_labeldp import config, measuring
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.measuring import Question, sweep
from p2p_labeldp.measuring.kept import NAME, opened
from p2p_labeldp.measuring.row import from_line, to_line

CONFIG = config.from_mapping({"data": {"name": "breast-cancer"}, "mechanism": {"flip_probability": 0.1}})
QUESTION = Question(config=CONFIG, trials=200, accuracy=False)
SIZES = [3, 8, 5]


@pytest.fixture
def measured(monkeypatch):
    """The sizes that are measured, in order."""
    sizes = []
    measure = measuring.sweep.__globals__["measure"]
    monkeypatch.setitem(
        measuring.sweep.__globals__,
        "measure",
        lambda question, size, playing: sizes.append(size) or measure(question, size, playing),
    )
    return sizes


def swept(path, question=QUESTION, sizes=SIZES, **rest):
    with opened(path) as kept:
        return sweep(question, sizes=sizes, kept=kept, **rest)


def test_rows_come_by_size_and_the_largest_is_measured_first(tmp_path, measured):
    rows = swept(tmp_path)
    assert [row.cluster_size for row in rows] == [3, 5, 8]
    assert measured == [8, 5, 3]
    assert [from_line(line) for line in (tmp_path / NAME).read_bytes().splitlines()] == rows[::-1]


def test_what_is_kept_is_not_measured_again(tmp_path, measured):
    first = swept(tmp_path, sizes=[3, 5])
    told = []
    again = swept(tmp_path, sizes=[3, 5, 8, 8], on_row=lambda row: told.append(row.cluster_size))
    assert again[:2] == first
    assert measured == [5, 3, 8]
    assert told == [8]


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"trials": 300},
        {"confidence": 0.9},
        {"engine": "virtual", "peers": 24},
        {"config": config.from_mapping({"data": {"name": "digits"}, "mechanism": {"flip_probability": 0.1}})},
    ],
)
def test_an_answer_to_another_question_is_none(tmp_path, measured, changed):
    swept(tmp_path, sizes=[3])
    other = Question(**{"config": CONFIG, "trials": 200, "accuracy": False, **changed})
    [row] = swept(tmp_path, other, sizes=[3])
    assert measured == [3, 3]
    assert swept(tmp_path, other, sizes=[3]) == [row]
    assert len((tmp_path / NAME).read_bytes().splitlines()) == 2


def test_a_row_of_another_version_is_measured_again(tmp_path, measured):
    [row] = swept(tmp_path, sizes=[3])
    (tmp_path / NAME).write_text(to_line(msgspec.structs.replace(row, version="0.0.1")))
    assert swept(tmp_path, sizes=[3]) == [row]
    assert measured == [3, 3]


def test_an_interrupted_sweep_keeps_what_it_has(tmp_path, measured):
    def interrupt(row):
        if row.cluster_size == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(tmp_path, on_row=interrupt)
    swept(tmp_path)
    assert measured == [8, 5, 3]


def test_a_line_cut_off_by_a_crash_is_dropped_and_measured_again(tmp_path, measured):
    rows = swept(tmp_path, sizes=[3, 5])
    content = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(content[:-20])
    assert swept(tmp_path, sizes=[3, 5]) == rows
    assert measured == [5, 3, 3]
    assert (tmp_path / NAME).read_bytes() == content


def test_a_whole_line_that_is_no_row_is_refused_and_left(tmp_path):
    for line in ("{}", "x", json.dumps({"cluster_size": "many"})):
        (tmp_path / NAME).write_text(line + "\n")
        with pytest.raises(ConfigurationError, match=r"^measure\.jsonl: no row of a measurement"):
            swept(tmp_path)
        assert (tmp_path / NAME).read_text() == line + "\n"


def test_two_sweeps_at_once_do_not_share_a_directory(tmp_path):
    with opened(tmp_path), pytest.raises(ConfigurationError, match="another process measures there"), opened(tmp_path):
        pytest.fail("it was opened twice")
    with opened(tmp_path):
        pass


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"^--out: .* can't be written to"), opened(tmp_path / "file"):
        pytest.fail("it was opened")


def test_processes_give_the_same_rows(tmp_path):
    alone, together = swept(tmp_path / "a"), swept(tmp_path / "b", jobs=2)
    assert alone == together


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        ({"sizes": []}, "sizes: none given"),
        ({"sizes": [4, 1]}, "sizes: 1 given; 2 to 1000000"),
        ({"jobs": 0}, "jobs: 0 given"),
        ({"jobs": True}, "jobs: True given"),
    ],
)
def test_an_impossible_sweep_is_refused_before_anything_is_measured(tmp_path, measured, rest, line):
    with pytest.raises(ConfigurationError) as caught:
        swept(tmp_path, **rest)
    assert str(caught.value).startswith(line)
    assert measured == []


def test_dask_that_is_not_installed_is_said_so(tmp_path, measured, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(
        ConfigurationError, match=r"^dask: .* Dask is not installed: pip install 'p2p-labeldp\[dask\]'$"
    ):
        swept(tmp_path, dask="tcp://127.0.0.1:1")
    assert measured == []
