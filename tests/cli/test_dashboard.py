"""``--dashboard`` may stand alone, and is refused where there is nothing to watch or nowhere to listen."""

import socket

import pytest

from p2p_labeldp import experiment
from p2p_labeldp.cli import main
from p2p_labeldp.cli.dashboard import ANYWHERE, spelt_out
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Asked, Joined, Listening
from p2p_labeldp.network.pace import phases
from p2p_labeldp.reports.dashboard import Dashboard


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


ASKS = (Listening(peer=0), Joined(peer=0, at=1.0, cluster=0), Asked(peer=0, at=2.0, mate=1))


@pytest.mark.parametrize(("seed", "drawn"), [([], False), (["--seed", "3"], True)])
def test_who_asked_whom_of_own_data_is_drawn_only_if_everybody_who_has_the_seed_knows_it(
    capsys, monkeypatch, tmp_path, seed, drawn
):
    table = tmp_path / "own.csv"
    rows = [f"{number % 7},{number % 5},{'ny'[number % 2]}" for number in range(60)]
    table.write_text("\n".join(["a,b,ill", *rows]))
    sent = []

    def stopped(*_, progress, **__):
        progress.playing(peers=2, clusters=1, engine="processes", pace=phases(peers=2, engine="processes"))
        for fact in ASKS:
            progress.happened(fact)
        raise ConfigurationError("seen enough")

    def close(self, close=Dashboard.close):
        sent.append(self._board.since(0, 0.0).cells)
        close(self)

    monkeypatch.setattr(experiment, "run", stopped)
    monkeypatch.setattr(Dashboard, "close", close)
    assert main(["run", "--csv", str(table), "--label", "ill", "--clusters", "1", "--dashboard", *seed]) == 2
    assert "seen enough" in capsys.readouterr().err
    (cells,) = sent
    assert cells["round"]["title"] == "own.csv"  # a page for others holds no path of this machine
    assert cells["steps"]["joined"] == 1
    assert cells["round"]["graph"] is drawn
    assert ("peer/0" in cells) is drawn
