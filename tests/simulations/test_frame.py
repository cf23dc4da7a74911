"""The frame of the studies: what is written is what is read, and a failing claim is exit code 1."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass

import pytest

from frame import RESULTS, Study, legend_below, read_rows, read_table


def study(tmp_path, *, quick: bool = False) -> Study:
    return Study(name="tiny", quick=quick, out=tmp_path / "new")


def test_the_table_comes_back_with_its_header(tmp_path):
    study(tmp_path).write_table(({"n": n, "name": "a, b"} for n in (1, 2)), header=["l2 = 1e-3", "two"])
    header, rows = read_table(tmp_path / "new" / "tiny.csv")
    assert header == ["l2 = 1e-3", "two"]
    assert rows == [{"n": "1", "name": "a, b"}, {"n": "2", "name": "a, b"}]


def test_a_quick_run_does_not_write_over_the_full_one(tmp_path):
    study(tmp_path, quick=True).write_table([{"n": 1}])
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["tiny_quick.csv"]


def test_the_same_drawing_gives_the_same_bytes(tmp_path):
    written = []
    for _ in range(2):
        with study(tmp_path).figure(size=(2, 2)) as (_, axis):
            axis.plot([1, 2])
        written.append([(tmp_path / "new" / f"tiny.{ending}").read_bytes() for ending in ("png", "svg")])
    assert written[0] == written[1]


def test_a_legend_of_all_panels_has_each_name_once(tmp_path):
    with study(tmp_path).figure(1, 2, size=(4, 2)) as (figure, axes):
        for axis, names in zip(axes, (("b", "a"), ("a", "c")), strict=True):
            for name in names:
                axis.plot([1, 2], label=name)
        legend_below(figure, columns=3)
    assert [text.get_text() for text in figure.legends[0].texts] == ["b", "a", "c"]


def test_a_failing_claim_is_exit_code_1(tmp_path, capsys):
    assert study(tmp_path).verdict([], held="all hold") == 0
    assert study(tmp_path).verdict(["n = 3"], held="all hold") == 1
    assert capsys.readouterr().out == "all hold\nFAILS: n = 3\n"


def test_the_command_line_chooses_folder_and_length(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tiny.py"])
    assert Study.from_command_line("/x/tiny.py", None, quick="less").stem == RESULTS / "tiny"
    monkeypatch.setattr(sys, "argv", ["tiny.py", "--quick", "--out", str(tmp_path)])
    assert Study.from_command_line("/x/tiny.py", None, quick="less").stem == tmp_path / "tiny_quick"


def test_a_study_has_folders_of_its_own(tmp_path, monkeypatch):
    wanted = {"data-dir": "files", "parts": "curves"}
    monkeypatch.setattr(sys, "argv", ["tiny.py", "--data-dir", str(tmp_path)])
    given = Study.from_command_line("/x/tiny.py", None, quick="less", folders=wanted)
    assert given.folders == {"data-dir": tmp_path, "parts": None}


def test_help_is_the_docstring(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tiny.py", "--help"])
    with pytest.raises(SystemExit):
        Study.from_command_line("/x/tiny.py", "Claim: one.", quick="less")
    assert "Claim: one." in capsys.readouterr().out


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    n: int
    x: float


def test_rows_come_back_as_the_values_they_were(tmp_path):
    rows = [Row(name="a", n=3, x=0.1 + 0.2), Row(name="", n=-1, x=math.inf)]
    study(tmp_path).write_table(map(asdict, rows), header=["of what"])
    assert read_rows(tmp_path / "new" / "tiny.csv", Row) == rows
