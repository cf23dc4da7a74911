"""``--dashboard`` may stand alone, and is refused where there is nothing to watch or nowhere to listen."""

import socket

import pytest

from p2p_labeldp.cli import main
from p2p_labeldp.cli.dashboard import ANYWHERE, spelt_out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["--dashboard"], ["--dashboard", ANYWHERE]),
        (["--dashboard", "digits"], ["--dashboard", ANYWHERE, "digits"]),
        (["--dashboard", "--json"], ["--dashboard", ANYWHERE, "--json"]),
        (["--dashboard", "127.0.0.1:80", "digits"], ["--dashboard", "127.0.0.1:80", "digits"]),
        (["--dashboard", "[::1]:80"], ["--dashboard", "[::1]:80"]),
        (["--dashboard=localhost:80", "x"], ["--dashboard=localhost:80", "x"]),
        (["--", "--dashboard"], ["--", "--dashboard"]),
        ([], []),
    ],
)
def test_only_a_place_is_taken_for_its_value(typed, meant):
    assert spelt_out(typed) == meant


@pytest.mark.parametrize("engine", ["virtual", "population"])
def test_an_engine_that_is_done_at_once_is_refused(capsys, engine):
    assert main(["run", "--dashboard", "--engine", engine]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"p2p-labeldp: --dashboard: given with the {engine} engine, whose round is over at once;"
        " --engine processes is needed\n"
    )


@pytest.mark.parametrize("command", ["run", "learner"])
def test_a_place_that_is_none_or_taken_is_refused_before_anything_starts(capsys, command):
    assert main([command, "--dashboard", "127.0.0.1:70000"]) == 2
    assert "--dashboard: '127.0.0.1:70000' given; host:port is needed" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main([command, "--dashboard", place]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"p2p-labeldp: --dashboard: {place} can't be listened on")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "learner"])
def test_the_help_says_where_it_listens(capsys, command):
    assert main([command, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "--dashboard [HOST:PORT]" in said
    assert "Default: 127.0.0.1:7880" in said
