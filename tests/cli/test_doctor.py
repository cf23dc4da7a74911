"""``doctor`` says how many peers fit, for people and for scripts."""

import json

import pytest

from p2p_labeldp.cli import main
from p2p_labeldp.network import limits
from p2p_labeldp.network.capacity import PEER_BYTES, SHARED_BYTES


@pytest.fixture
def room_for_fifty(monkeypatch):
    found = limits.read()
    values = {name: getattr(found, name) for name in found.__dataclass_fields__}
    small = limits.Limits(**{**values, "memory": SHARED_BYTES + 50 * PEER_BYTES, "memory_of": "memory.max"})
    monkeypatch.setattr(limits, "read", lambda: small)


def test_json_says_what_limits_and_by_how_much(room_for_fifty, capsys):
    assert main(["doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["capacity"]["peers"] == said["capacity"]["by"]["memory"] == 50
    assert said["capacity"]["bound_by"] == "memory"
    assert said["limits"]["memory_of"] == "memory.max"
    assert said["enough"] is True


@pytest.mark.parametrize(("peers", "status"), [(50, 0), (51, 1)])
def test_asked_for_a_number_the_exit_status_answers(room_for_fifty, capsys, peers, status):
    assert main(["doctor", "--peers", str(peers)]) == status
    out, err = capsys.readouterr()
    assert "largest      50 peers, bound by memory" in out
    assert err == ("p2p-labeldp: 51 peers don't fit: memory for 50\n" if status else "")


def test_every_resource_has_a_line(capsys):
    assert main(["doctor"]) == 0
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert words == ["memory", "processes", "descriptors", "addresses", "clock", "cores", "largest"]


def test_no_peers_is_no_question(capsys):
    assert main(["doctor", "--peers", "0"]) == 2


def test_help_has_an_example(capsys):
    assert main(["doctor", "--help"]) == 0
    assert "p2p-labeldp doctor --peers 1000" in capsys.readouterr().out
