"""``data`` lists, fetches and checks the image sets' files."""

import gzip
import json

import pytest
import tiny_images
from altering import altered

from p2p_labeldp.cli import main


def said(capsys, *arguments, status=0):
    assert main(["data", *arguments]) == status
    return capsys.readouterr()


def test_list_says_what_there_is(capsys, tiny):
    record = json.loads(said(capsys, "list", "--data-dir", str(tiny), "--json").out)
    assert list(record) == ["directory", "note", "sets"]
    assert "never tried" in record["note"]
    assert [(one["name"], one["present"], one["files"]) for one in record["sets"]] == [
        ("mnist", 4, 4),
        ("fashion-mnist", 0, 4),
        ("cifar-10", 0, 6),
    ]
    text = said(capsys, "list", "--data-dir", str(tiny)).out
    assert "mnist         4 of 4 files in place" in text
    assert "never tried" in text


def test_check_passes_published_files(capsys, tiny, monkeypatch):
    record = json.loads(said(capsys, "check", "mnist", "--data-dir", str(tiny), "--json").out)
    assert record["verified"]
    assert {row["state"] for row in record["files"]} == {"verified"}
    assert len(record["files"]) == 4
    monkeypatch.setenv("P2P_LABELDP_DATA", str(tiny))
    assert said(capsys, "check", "mnist").out.count("verified") == 4


def test_check_names_each_state_and_ends_with_one_line(capsys, tiny):
    folder = tiny / "mnist"
    (folder / "train-images-idx3-ubyte.gz").unlink()
    labels = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(altered(labels)))
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels[:9]))
    out, err = said(capsys, "check", "mnist", "--data-dir", str(tiny), "--json", status=2)
    states = [row["state"] for row in json.loads(out)["files"]]
    assert states == ["missing", "unverified", "verified", "truncated"]
    assert err.count("\n") == 1
    assert "data check: mnist/train-images-idx3-ubyte is missing" in err
    assert "(and 2 more)" in err


def test_fetch_says_where_it_asks_and_what_went_wrong(capsys, tiny):
    (tiny / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    source = "http://127.0.0.1:9/"
    out, err = said(capsys, "fetch", "mnist", "--data-dir", str(tiny), "--source", source, status=1)
    assert out == ""
    assert err.splitlines() == [
        f"{source}t10k-labels-idx1-ubyte.gz",
        f"p2p-labeldp: {source}t10k-labels-idx1-ubyte.gz can't be downloaded: ConnectionError",
    ]


def test_fetch_of_what_is_there_writes_nothing(capsys, tiny):
    assert json.loads(said(capsys, "fetch", "mnist", "--data-dir", str(tiny), "--json").out)["written"] == []
    assert said(capsys, "fetch", "mnist", "--data-dir", str(tiny)).out == "nothing was missing\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["check", "nosuch"], "data.name: 'nosuch' given; one of mnist, fashion-mnist, cifar-10 is possible"),
        (["fetch", "nosuch"], "data.name: 'nosuch' given"),
        (["fetch", "mnist", "--source", "ftp://x/"], "--source: 'ftp://x/' given"),
        (["fetch", "mnist", "--source", "http://x"], "--source: 'http://x' given"),
        ([], "Missing command"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, line):
    out, err = said(capsys, *arguments, status=2)
    assert out == ""
    assert err.startswith(f"p2p-labeldp: {line}")
    assert err.count("\n") == 1


def test_help_has_an_example(capsys):
    for command in ([], ["list"], ["fetch"], ["check"]):
        out = said(capsys, *command, "--help").out
        assert "    p2p-labeldp data" in out


def test_the_tiny_sets_are_of_the_published_formats():
    assert set(tiny_images.CONTENTS["mnist"]) == {
        f"{part}-{kind}" for part in ("train", "t10k") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    }
