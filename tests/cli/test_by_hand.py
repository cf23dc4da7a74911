"""The round by hand: a learner and three peers, each a command of its own, with keys and coins of their own."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from free_ports import free_ports
from statement.secrecy import told

from p2p_labeldp.cli.app import main

CLASSES = "malignant,benign"
PHASES = {"join": 12, "exchange": 5, "closing": 5, "report": 3}
PATIENCE = 900  # seconds for what has to end


def command(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "p2p_labeldp", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def seconds_to_start(out):
    """What a command takes on this machine now. Peers start when the round is open, all at once, and a learner that was
    killed starts in the middle of its round; the deadlines of a manifest count from before any of them does."""
    began = time.monotonic()
    make = ["-m", "p2p_labeldp", "examples", "breast-cancer", "--count", "3", "--out", str(out)]
    subprocess.run([sys.executable, *make], check=True, capture_output=True)
    return time.monotonic() - began


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["open", "allowlist", "of a manifest"])
def test_a_learner_and_three_peers_complete_a_round(tmp_path, capsys, kind):
    signed_before = kind == "of a manifest"
    starting = seconds_to_start(tmp_path / "people")
    ids = []
    for i in range(3):
        capsys.readouterr()
        assert main(["keygen", str(tmp_path / f"{i}.key")]) == 0
        ids.append(capsys.readouterr().out.strip())
    listed, brings = (), [()] * 3
    if kind == "allowlist":
        key, enrolments = str(tmp_path / "enrolment.key"), [str(tmp_path / f"{i}.enrolment") for i in range(3)]
        assert main(["keygen", key]) == 0
        listed = ("--set", f"policy.enrolment_key={capsys.readouterr().out.strip()}")
        for peer_id, file in zip(ids, enrolments, strict=True):
            assert main(["enrol", peer_id, "--key", key, "--out", file]) == 0
        brings = [("--enrolment", file) for file in enrolments]
    at, *places = free_ports(4)
    phases = PHASES | {"join": PHASES["join"] * signed_before + max(PHASES["join"], 6 * starting)}
    settings = [text for name, value in phases.items() for text in ("--set", f"exchange.deadlines.{name}={value:.0f}")]
    round_key, more = tmp_path / "round.round-key", []
    if signed_before:
        more = ["--key", str(tmp_path / "learner.key"), "--manifest", str(tmp_path / "round")]
        assert main(["keygen", more[1]]) == 0
        assert main(["manifest", "create", "by-hand", "--out", more[3], *more[:2], *settings]) == 0
        assert round_key.exists()
    serve = ["learner", "by-hand", "--listen", f"127.0.0.1:{at}", "--json", *settings, *listed, *more]
    learner = command(*serve, "--out", str(tmp_path / "out"))
    running = [learner]
    try:
        address = re.search(r"[0-9a-f]{64}@127\.0\.0\.1:\d+", learner.stderr.readline())[0]
        for i in range(3):
            running.append(
                command(
                    *("peer", str(tmp_path / "people" / f"{i}.json"), "--key", str(tmp_path / f"{i}.key")),
                    *("--classes", CLASSES, "--listen", f"127.0.0.1:{places[i]}", "--learner", address, "--json"),
                    *(("--contact", f"{ids[0]}@127.0.0.1:{places[0]}") if i else ()),
                    *brings[i],
                )
            )
        ended = [json.loads(peer.communicate(timeout=PATIENCE)[0]) for peer in running[1:]]
        result = json.loads(learner.communicate(timeout=PATIENCE)[0])
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert not round_key.exists()
    if signed_before:
        assert main(serve) == 2  # its key is gone, and with it the reports
        assert "a round is served once" in capsys.readouterr().err
    assert [one["outcome"] for one in ended] == ["reported"] * 3
    assert [one["peer"] for one in ended] == ids
    assert result["outcomes"] == {"reported": 3}
    assert result["seed"] is None
    assert result["accuracy"]["non_private"] is result["accuracy"]["majority"] is None
    (cluster,) = result["clusters"]
    assert (cluster["size"], cluster["delta"]) == (3, 1 / 9)
    assert cluster["epsilon"] <= 1
    assert cluster["flip_probability"] == pytest.approx(0.108, abs=1e-3)
    noisy = np.loadtxt(tmp_path / "out" / "noisy.csv", delimiter=",", skiprows=1)
    assert noisy.shape == (3, 32)
    assert set(noisy[:, -1]) <= {0, 1}
    assert_that_it_can_be_shown(tmp_path / "out", ids, learner=address.partition("@")[0], capsys=capsys)
    for i in range(3):
        own = ["--receipt", str(tmp_path / f"{i}.key.state"), "--learner-key", address]
        assert main(["verify", str(tmp_path / "out" / "guarantee.json"), *own]) == 0
        assert f"counted, in cluster 0 of 3, flipped with {cluster['flip_probability']}" in capsys.readouterr().out


def assert_that_it_can_be_shown(directory, ids, *, learner, capsys):
    """Every check of the kept round holds, and neither it nor its page tells who asked whom, or a raw label."""
    capsys.readouterr()
    assert main(["verify", str(directory), "--learner-key", learner, "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["holds"], verdict["learner"]) == (True, learner)
    assert [check["check"] for check in verdict["checks"] if check["status"] != "ok"] == ["coins"]
    assert main(["report", str(directory)]) == 0
    capsys.readouterr()
    assert told(directory, ids, CLASSES.split(",")) == []


@pytest.fixture
def signed(tmp_path, capsys):
    """A learner's key and a manifest of it."""
    key, file = str(tmp_path / "learner.key"), str(tmp_path / "round")
    assert main(["keygen", key]) == 0
    assert main(["manifest", "create", "by-hand", "--key", key, "--out", file]) == 0
    capsys.readouterr()
    return tmp_path, key, file


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"--key": None}, "--key: missing"),
        ({"--key": "other.key"}, "--manifest: not one that this learner signed"),
        ({"--manifest": "nothing"}, "can't be read"),
        ({"--set": "mechanism.target_epsilon=0.5"}, "--manifest: target_epsilon not as configured"),
        ({"later": 58.0}, "within 58 s, so another manifest is needed; delete the round key beside this one\n"),
        ({"later": -90.0}, "s ago; peers join within 58 s, so another manifest is needed\n"),
        ({"round-key": "00" * 32}, "--manifest: the round key beside it belongs to another round"),
        ({"round-key": "none"}, "is no round key"),
    ],
)
def test_a_manifest_that_the_learner_cannot_serve_is_refused_and_its_key_kept(
    signed, capsys, monkeypatch, change, complaint
):
    directory, key, file = signed
    assert main(["keygen", str(directory / "other.key")]) == 0
    options = {"--key": key, "--manifest": file, "--listen": f"127.0.0.1:{free_ports(1)[0]}"}
    if "later" in change:
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + change["later"])
    if "round-key" in change:
        Path(f"{file}.round-key").write_text(change["round-key"])
    kept = Path(f"{file}.round-key").read_bytes()
    changed = {
        name: str(directory / value) if value in ("other.key", "nothing") else value for name, value in change.items()
    }
    options |= {name: value for name, value in changed.items() if name.startswith("--")}
    arguments = [text for name, value in options.items() if value for text in (name, value)]
    assert main(["learner", "by-hand", *arguments]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
    assert Path(f"{file}.round-key").read_bytes() == kept


def test_a_manifest_whose_learner_cannot_listen_keeps_its_key(signed, capsys):
    _, key, file = signed
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["learner", "by-hand", "--key", key, "--manifest", file, "--listen", at]) == 2
    assert Path(f"{file}.round-key").exists()


@pytest.mark.processes
def test_a_learner_that_is_killed_and_started_again_has_every_report(tmp_path, capsys):
    """Killed when its peers have their roster; the same command goes on with the same round."""
    starting = seconds_to_start(tmp_path / "people")
    for name in (*range(3), "learner"):
        assert main(["keygen", str(tmp_path / f"{name}.key")]) == 0
    ids = capsys.readouterr().out.split()[-4:]
    at, *places = free_ports(4)
    serving = ["learner", "by-hand", "--listen", f"127.0.0.1:{at}", "--key", str(tmp_path / "learner.key"), "--json"]
    serving += ["--out", str(tmp_path / "out")]
    for name, value in {**PHASES, "join": max(12, 6 * starting), "report": max(25, 12 * starting)}.items():
        serving += ["--set", f"exchange.deadlines.{name}={value:.0f}"]
    running = [command(*serving)]
    try:
        address = re.search(r"[0-9a-f]{64}@127\.0\.0\.1:\d+", running[0].stderr.readline())[0]
        assert address.startswith(ids[3])
        for i in range(3):
            running.append(
                command(
                    *("peer", str(tmp_path / "people" / f"{i}.json"), "--key", str(tmp_path / f"{i}.key")),
                    *("--classes", CLASSES, "--listen", f"127.0.0.1:{places[i]}", "--learner", address, "--json"),
                    *(("--contact", f"{ids[0]}@127.0.0.1:{places[0]}") if i else ()),
                )
            )
        for peer in running[1:]:
            assert any("asked its mate" in line for line in iter(peer.stderr.readline, ""))
        running[0].kill()
        running[0].communicate()
        assert not (tmp_path / "out" / "result.json").exists()
        again = command(*serving)
        running.append(again)
        ended = [json.loads(peer.communicate(timeout=PATIENCE)[0]) for peer in running[1:4]]
        out, told = again.communicate(timeout=PATIENCE)
        result = json.loads(out)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert "it goes on with the round that it was in" in told
    assert "peers can join" not in told
    assert [one["outcome"] for one in ended] == ["reported"] * 3
    assert result["outcomes"] == {"reported": 3}
    assert "complete" not in result  # only what is not says so
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == result
    assert_that_it_can_be_shown(tmp_path / "out", ids[:3], learner=ids[3], capsys=capsys)  # the first life included


@pytest.mark.processes
def test_a_peer_that_is_told_to_end_before_its_round_opens_abstains_and_exits_0(tmp_path):
    (tmp_path / "e.json").write_text('{"features": [1.0], "label": "malignant"}')
    assert main(["keygen", str(tmp_path / "e.key")]) == 0
    at, nobody = free_ports(2)
    waiting = ["peer", str(tmp_path / "e.json"), "--key", str(tmp_path / "e.key"), "--classes", CLASSES, "--json"]
    peer = command(*waiting, "--listen", f"127.0.0.1:{at}", "--learner", f"{'0' * 64}@127.0.0.1:{nobody}")
    try:
        assert peer.stderr.readline().startswith("this peer is")
        while True:  # until it listens: nobody tells
            try:
                socket.create_connection(("127.0.0.1", at)).close()
                break
            except ConnectionRefusedError:
                continue
        peer.send_signal(signal.SIGTERM)
        out, _ = peer.communicate(timeout=PATIENCE)
    finally:
        peer.kill()
        peer.communicate()
    assert peer.returncode == 0
    assert (json.loads(out)["outcome"], json.loads(out)["reason"]) == ("abstained", "not_ready")


def test_a_learner_without_a_key_has_no_state(tmp_path, capsys):
    assert main(["learner", "by-hand", "--state", str(tmp_path / "s")]) == 2
    assert "--state: given without --key" in capsys.readouterr().err


def test_a_key_file_is_its_owners_alone_and_never_overwritten(tmp_path, capsys):
    key = tmp_path / "a.key"
    assert main(["keygen", str(key), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(key)
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    secret = key.read_text()
    assert main(["keygen", str(key)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert key.read_text() == secret


def test_keys_differ(tmp_path, capsys):
    for name in "ab":
        assert main(["keygen", str(tmp_path / name)]) == 0
    first, second = capsys.readouterr().out.split()
    assert first != second


LEARNER = "0" * 64 + "@127.0.0.1:7800"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"--learner": "nobody"}, "--learner: 'nobody' given; id@host:port is needed"),
        ({"--contact": "x@y"}, "--contact: 'x@y' given; id@host:port is needed"),
        ({"--listen": "7801"}, "--listen: '7801' given; host:port is needed"),
        ({"--key": "none.key"}, "--key: 'none.key' can't be read"),
        ({"--classes": "ill"}, "--classes: 1 classes given; 2 to 256 are possible"),
        ({"--classes": "a,b"}, "is none of a, b"),
        ({"example": "none.json"}, "EXAMPLE: 'none.json' can't be read"),
    ],
)
def test_what_a_peer_cannot_start_with_is_one_line(tmp_path, capsys, changes, complaint):
    example, key = tmp_path / "e.json", tmp_path / "k.key"
    example.write_text('{"features": [1.0], "label": "malignant"}')
    main(["keygen", str(key)])
    capsys.readouterr()
    options = {"--key": str(key), "--classes": CLASSES, "--listen": "127.0.0.1:7801", "--learner": LEARNER, **changes}
    path = options.pop("example", str(example))
    assert main(["peer", path, *(text for pair in options.items() for text in pair)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert complaint in err
    assert "malignant'" not in err  # the label itself is never named


def test_commands_for_deployments_have_no_seed_option(capsys):
    for name in ("learner", "peer", "keygen"):
        assert main([name, "--help"]) == 0
        text = capsys.readouterr().out
        assert "--seed" not in text
        assert "Example" in text
