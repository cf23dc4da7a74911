"""``report`` writes one page about runs that were kept."""

import json
import shutil

import pytest

from p2p_labeldp.cli import main


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A round of simulated peers, and one on arrays."""
    runs = tmp_path_factory.mktemp("runs")
    assert main(["run", "breast-cancer", "--engine", "virtual", "--quiet", "--out", str(runs / "one")]) == 0
    assert main(["run", "digits", "--engine", "population", "--quiet", "--out", str(runs / "two")]) == 0
    return runs


@pytest.fixture
def one(kept, tmp_path):
    return shutil.copytree(kept / "one", tmp_path / "one")


def asked(capsys, *arguments):
    capsys.readouterr()
    status = main(["report", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_the_page_stands_in_the_run(one, capsys):
    status, out, err = asked(capsys, one)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == str(one / "report.html")
    text = (one / "report.html").read_text()
    for figure in ("timeline", "sizes", "by-size", "profile", "accuracy"):
        assert f'id="r1-{figure}"' in text
    assert 'id="r1-measured"' not in text
    assert "114 held-out rows" in text
    assert not list(one.glob(".*"))


def test_json_gives_path_and_warnings(one, capsys):
    status, out, _ = asked(capsys, one, "--json", "--out", one / "page.html")
    answer = json.loads(out)
    assert status == 0
    assert answer["page"] == str(one / "page.html")
    assert [(warning["run"], warning["code"]) for warning in answer["warnings"]] == [
        ("one", "study"),
        ("one", "coalitions"),
        ("one", "large-local"),
    ]
    assert not (one / "report.html").exists()


def test_runs_stand_side_by_side(kept, tmp_path, capsys):
    status, _, _ = asked(capsys, kept / "one", kept / "two", "--out", tmp_path / "both.html")
    text = (tmp_path / "both.html").read_text()
    assert status == 0
    assert "The runs side by side" in text
    assert "<h2>Run one</h2>" in text
    assert "<h2>Run two</h2>" in text
    assert "There is no timeline" in text  # of arrays


def test_what_was_measured_of_the_same_configuration_is_shown(one, capsys):
    measure = ["measure", "breast-cancer", "--sizes", "8", "--trials", "2000", "--quiet", "--out", str(one)]
    assert main(measure) == 0
    asked(capsys, one)
    assert 'id="r1-measured"' in (one / "report.html").read_text()
    rows = (one / "measure.jsonl").read_text()
    hashed = json.loads((one / "result.json").read_text())["config_hash"]
    (one / "measure.jsonl").write_text(rows.replace(hashed, "0" * 64))
    asked(capsys, one)
    assert 'id="r1-measured"' not in (one / "report.html").read_text()


@pytest.mark.parametrize(
    ("file", "change", "complaint"),
    [
        ("result.json", None, "holds no run that was kept: No such file"),
        ("facts.jsonl", None, "holds no run that was kept: No such file"),
        ("config.json", None, "holds no run that was kept: No such file"),
        ("result.json", lambda text: text[:-9], "holds no whole run: result.json: no result of a run"),
        ("facts.jsonl", lambda text: text[:-9], "holds no whole run: facts.jsonl: no fact of a run"),
        ("config.json", lambda text: text[:-9], "holds no run that was kept"),
        ("config.json", lambda text: text.replace("15", "16"), "has the config.json of another run"),
    ],
)
def test_a_directory_that_is_no_run_is_refused_in_one_sentence(one, capsys, file, change, complaint):
    if change is None:
        (one / file).unlink()
    else:
        (one / file).write_text(change((one / file).read_text()))
    status, out, err = asked(capsys, one)
    assert (status, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1
    assert not (one / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "DIR: 'nowhere' holds no run that was kept: No such file"),
        ([], "Missing argument 'DIR...'"),
        (["a\0b"], "holds no run that was kept"),
    ],
)
def test_bad_input_is_one_line(arguments, complaint, capsys):
    status, _, err = asked(capsys, *arguments)
    assert status == 2
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("out", ["", "nowhere/page.html", "a\0b"])
def test_a_page_that_cannot_be_written_is_one_line(one, out, capsys):
    status, _, err = asked(capsys, one, "--out", out)
    assert status == 2
    assert "can't be written to" in err
    assert err.count("\n") == 1
