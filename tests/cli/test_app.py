"""stdout carries results only; whatever goes wrong is one line on stderr and an exit status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.printing import complaint

import p2p_labeldp
from p2p_labeldp import experiment
from p2p_labeldp.cli import main
from p2p_labeldp.errors import PeerUnreachable
from p2p_labeldp.experiment import playing

QUICK = ["--engine", "population", "--set", "data.peers=60", "--set", "clusters.count=3", "--quiet"]
ROOT = str(Path(p2p_labeldp.__file__).parents[1])


def python(*arguments, cwd=None):
    """Another interpreter, warnings being errors there too."""
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**os.environ, "PYTHONPATH": ROOT},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def nothing_starts(monkeypatch):
    monkeypatch.setattr(playing, "_peers", lambda *_: pytest.fail("a round was started"))
    monkeypatch.setattr(playing, "_population", lambda *_: pytest.fail("a round was started"))


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "Missing command; see p2p-labeldp --help"),
        (["rnu"], "No such command 'rnu'"),
        (["--nosuch"], "No such option: --nosuch"),
        (["run", "--nosuch"], "No such option: --nosuch"),
        (["run", "--sed", "3"], "No such option: --sed"),
        (["run", "--seed"], "Option '--seed' requires an argument"),
        (["run", "--seed", "x"], "Invalid value for '--seed': 'x' given; a whole number is needed; see"),
        (
            ["run", "--epsilon", "x"],
            "Invalid value for '--epsilon': 'x' given; a number is needed; see p2p-labeldp run",
        ),
        (
            ["run", "--epsilon", "1,5"],
            "Invalid value for '--epsilon': '1,5' given; a number is needed; the decimal sign is a point; see",
        ),
        (["run", "--seed", "1.5"], "Invalid value for '--seed'"),
        (["run", "--seed", "-1"], "--seed: -1 given; 0 to 2^64 - 1 are possible"),
        (["run", "--seed", str(2**64)], "--seed: 18446744073709551616 given"),
        (["run", "--engine", "docker"], "--engine: 'docker' given; one of processes, virtual, population is allowed"),
        (["run", "a", "b"], "Got unexpected extra argument"),
        (["run", "nosuch"], "configuration: 'nosuch' given; the known names are breast-cancer, by-hand, digits"),
        (["run", "no/such.toml"], "configuration: 'no/such.toml' can't be read: No such file or directory"),
        (["run", "line\nbreak"], "configuration: 'line\\nbreak' given"),
        (["run", "--set", "clusters"], "--set: 'clusters' given; section.key=value is allowed"),
        (["run", "--set", "clusters.cuont=3"], "clusters.cuont: no such key; did you mean clusters.count?"),
        (["run", "--set", "clusters.count=0"], "clusters.count: 0 given; a whole number from 1"),
        (["run", "--set", "clusters.count=many"], "clusters.count: 'many' given"),
        (["run", "--set", "mechanism.target_epsilon=nan"], "mechanism.target_epsilon: nan given; a number above 0"),
        (["run", "--set", "mechanism.target_epsilon=inf"], "mechanism.target_epsilon: inf given"),
        (["run", "--set", "mechanism.flip_probability=0.6"], "mechanism.flip_probability: 0.6 given"),
        (["run", "--set", "data.name=nosuch"], "data.name: 'nosuch' given"),
        (["run", "--set", "data.peers=456"], "data.peers: 456 given; breast-cancer has 2 to 455"),
        (["run", "--set", "exchange.kind=permute"], "exchange.kind: 'permute' given"),
        (["run", "--engine", "population", "--set", "policy.epsilon=0.5"], "policy.epsilon: 0.5 given"),
        (["run", "--set", "topology.kind=file", "--set", "topology.path=no/such"], "topology.path: 'no/such' can't"),
        (["run", "--out", "\0"], "--out: "),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, line):
    assert complaint(capsys, *arguments).startswith(line)


@pytest.mark.usefixtures("nothing_starts")
def test_an_occupied_directory_is_one_line_and_status_2(capsys, tmp_path):
    (tmp_path / "result.json").touch()
    assert "is not empty" in complaint(capsys, "run", *QUICK, "--out", str(tmp_path))


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize("engine", experiment.ENGINES)
def test_a_graph_in_parts_is_one_line_and_status_2_and_no_directory_is_left(capsys, tmp_path, engine):
    edges = tmp_path / "edges"
    edges.write_text("0 1\n2 3\n")
    graph = ["--set", "topology.kind=file", "--set", f"topology.path={edges}", "--out", str(tmp_path / "run")]
    sizes = ["--set", "data.peers=4", "--set", "clusters.count=1", "--set", "clusters.minimum_size=2"]
    line = complaint(capsys, "run", "--quiet", "--engine", engine, *graph, *sizes)
    assert "is not connected: peer 2 can't reach peer 0" in line
    assert not (tmp_path / "run").exists()


def test_an_interrupt_is_one_line_and_status_130_and_leaves_no_directory(capsys, monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(playing, "_population", interrupted)
    assert complaint(capsys, "run", *QUICK, "--out", str(tmp_path / "run"), status=130) == "interrupted"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("error", [PeerUnreachable("the learner did not\nstart"), OSError(28, "No space left")])
def test_a_failure_that_is_not_the_users_is_one_line_and_status_1(capsys, monkeypatch, error):
    def failing(*_):
        raise error

    monkeypatch.setattr(playing, "_population", failing)
    assert complaint(capsys, "run", *QUICK, status=1) == " ".join(str(error).split())


def test_a_defect_is_not_hidden(monkeypatch):
    monkeypatch.setattr(playing, "_population", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["run", *QUICK])


def test_help_of_every_command_has_an_example(capsys):
    for command in ([], ["run"], ["configs"]):
        assert main([*command, "--help"]) == 0
        out, err = capsys.readouterr()
        assert f"    p2p-labeldp {' '.join(command)}".rstrip() in out
        assert "Example" in out
        assert err == ""
    main(["--help"])
    listed = capsys.readouterr().out.partition("Commands:")[2].split()
    assert {"run", "configs"} <= set(listed)


def test_the_version_is_the_packages(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"p2p-labeldp {p2p_labeldp.__version__}\n"


def test_configs_lists_each_by_name_with_what_it_is(capsys):
    assert main(["configs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = ["breast-cancer", "by-hand", "digits", "digits-10", "iris", "updates", "wine"]
    assert [line.split()[0] for line in lines] == named
    assert "for `federate`: 20 rounds of updates, central epsilon 2 at delta = 1e-09" in lines[5]
    assert "15 clusters merged to 20 members or more; epsilon 1 at delta = 1/size^2" in lines[0]


def test_help_and_complaints_import_nothing_slow():
    code = """
import sys
from p2p_labeldp.cli import main
for arguments in ([], ["--help"], ["run", "--help"], ["run", "nosuch"], ["run", "--set", "clusters.cuont=3"]):
    main(arguments)
slow = {"numpy", "scipy", "sklearn", "networkx", "aiohttp", "cryptography", "nacl", "rich", "asyncio"}
slow &= set(sys.modules)
sys.exit(f"imported: {slow}" if slow else 0)
"""
    ended = python("-c", code)
    assert ended.returncode == 0, ended.stderr
    assert "Usage: p2p-labeldp run" in ended.stdout


def test_the_module_is_the_command(tmp_path):
    ended = python("-m", "p2p_labeldp", "--version", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"p2p-labeldp {p2p_labeldp.__version__}\n"
    assert python("-m", "p2p_labeldp", "nosuch").returncode == 2
