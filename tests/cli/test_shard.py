"""Several peers of one round in one process, from a file of secrets."""

import json
import re
import subprocess
import sys

import pytest
from free_ports import free_ports

from p2p_labeldp.cli.app import main
from p2p_labeldp.cli.keygen import keys_of

PHASES = {"join": 12, "exchange": 5, "closing": 5, "report": 3}
KEY = "5e" * 32


def shard_of(**changes):
    """A shard of one peer that no learner waits for."""
    peer = {"key": KEY, "port": 1, "example": {"features": [1.0], "label": "benign"}}
    values = {"learner": f"{'ab' * 32}@127.0.0.1:1", "classes": ["malignant", "benign"], "host": "127.0.0.1"}
    return {**values, "peers": [peer | changes.pop("peer", {})], **changes}


@pytest.mark.processes
def test_a_shard_of_three_peers_completes_a_round(tmp_path, capsys):
    at, *ports = free_ports(4)
    key = str(tmp_path / "learner.key")
    assert main(["keygen", key]) == 0
    assert main(["examples", "breast-cancer", "--count", "3", "--out", str(tmp_path / "people")]) == 0
    keys = []
    for i in range(3):
        assert main(["keygen", str(tmp_path / f"{i}.key")]) == 0
        keys.append((tmp_path / f"{i}.key").read_text().strip())
    capsys.readouterr()
    ids = [keys_of(str(tmp_path / f"{i}.key"))[1] for i in range(3)]
    peers = [
        {
            "key": keys[i],
            "port": ports[i],
            "example": json.loads((tmp_path / "people" / f"{i}.json").read_text()),
            "contacts": [f"{ids[0]}@127.0.0.1:{ports[0]}"] if i else [],
        }
        for i in range(3)
    ]
    address = f"{keys_of(key)[1]}@127.0.0.1:{at}"
    file = tmp_path / "shard.json"
    file.write_text(json.dumps(shard_of(learner=address) | {"peers": peers}))
    settings = [text for name, value in PHASES.items() for text in ("--set", f"exchange.deadlines.{name}={value}")]
    commands = (
        ["learner", "by-hand", "--listen", f"127.0.0.1:{at}", "--bind", "0.0.0.0", "--key", key, "--json", *settings],
        ["shard", str(file), "--state", str(tmp_path / "state"), "--bind", "0.0.0.0", "--json"],
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "p2p_labeldp", *one], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for one in commands
    ]
    try:
        result, said = (process.communicate(timeout=900)[0] for process in running)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    ends = [json.loads(line) for line in said.splitlines()]
    assert sorted(end["peer"] for end in ends) == sorted(ids)
    assert [end["outcome"] for end in ends] == ["reported"] * 3
    assert json.loads(result)["outcomes"] == {"reported": 3}
    assert len([*(tmp_path / "state").glob("*.state")]) == 3


@pytest.mark.parametrize(
    ("shard", "complaint"),
    [
        ("none", "is no shard; `p2p-labeldp deploy` writes them"),
        (shard_of(more=1), "is no shard"),
        (shard_of(peers=[]), "lists no peers"),
        (shard_of(peer={"key": "5e5e"}), "a key is none"),
        (shard_of(peer={"example": {"features": [1.0], "label": "healthy"}}), "a label is none of malignant, benign"),
        (shard_of(limits={"max_epsilon": -1}), "--max-epsilon: -1"),
        (shard_of(learner="nobody"), "id@host:port is needed"),
    ],
)
def test_a_shard_that_is_no_good_is_refused_in_one_line_that_quotes_no_secret(tmp_path, capsys, shard, complaint):
    file = tmp_path / "shard.json"
    file.write_text(shard if isinstance(shard, str) else json.dumps(shard))
    assert main(["shard", str(file), "--state", str(tmp_path / "state")]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
    assert not re.search("5e5e|healthy", err)
