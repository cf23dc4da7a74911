"""``peer`` brings its own limits and its own ledger to a round, and does not start with a key whose ledger is lost."""

import json
from pathlib import Path

import msgspec
import pytest

from p2p_labeldp.cli import main, peer
from p2p_labeldp.facts import Ended, Flipped, Outcome, Reason

ENDED = Ended(peer="me", outcome=Outcome.REFUSED, reason=Reason.POLICY)
RELEASE = Flipped(
    peer="me", label_id="label", flip_probability=0.1, flipped_label=1, round_id="00" * 32, roster="00" * 32
)
LEARNER = f"{'ab' * 32}@127.0.0.1:7800"


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """Runs ``peer`` up to the network: its exit status and the party it would bring, and what its ledger held."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alice.json").write_text(json.dumps({"features": [1.0], "label": "no"}))
    main(["keygen", "alice.key"])
    parties = []

    def take_part(brought, *, ended, **_):
        (party,) = brought
        parties.append((party, party.store.ledger().flipped(party.example.label_id)))
        party.store(msgspec.structs.replace(RELEASE, label_id=party.example.label_id))
        ended(ENDED)

    monkeypatch.setattr(peer, "take_part", take_part)

    def run(*arguments, example="alice.json"):
        where = ["--key", "alice.key", "--classes", "no,yes", "--listen", "127.0.0.1:7801", "--learner", LEARNER]
        status = main(["peer", example, *where, "--quiet", *arguments])
        return status, *(parties.pop() if parties else (None, None))

    return run


def test_limits_reach_the_peer(brought):
    _, party, _ = brought()
    assert (party.policy.epsilon, party.policy.minimum_size) == (None, 3)
    _, party, _ = brought(
        "--max-epsilon", "1", "--max-local-epsilon", "4", "--colluders", "2", "--max-colluder-epsilon", "3",
        "--minimum-size", "20",
    )  # fmt: skip
    policy = party.policy
    assert (policy.epsilon, policy.local_epsilon, policy.colluders) == (1.0, 4.0, 2)
    assert (policy.colluder_epsilon, policy.minimum_size) == (3.0, 20)


def test_the_outcome_names_the_refusal(brought, capsys):
    capsys.readouterr()
    status, _, _ = brought("--json")
    assert status == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["outcome"], said["reason"]) == ("refused", "policy")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--max-epsilon", "-1"], "--max-epsilon: -1.0 given"),
        (["--max-colluder-epsilon", "1"], "--max-colluder-epsilon: given without colluders"),
        (["--minimum-size", "1"], "--minimum-size: 1 given"),
    ],
)
def test_an_impossible_limit_starts_nothing_and_marks_no_key(brought, capsys, arguments, text):
    status, party, _ = brought(*arguments)
    assert (status, party) == (2, None)
    assert text in capsys.readouterr().err
    assert not Path("alice.key.used").exists()


def test_the_ledger_is_kept_beside_the_key_whatever_the_example_file_is_called(brought):
    assert brought()[2] is None
    assert brought(example="./alice.json")[2] == 1  # one name of the label, though two of the file
    assert brought("--label-id", "another")[2] is None
    assert Path("alice.key.state").exists()


def test_a_used_key_without_its_state_does_not_start_unless_told(brought, capsys):
    brought()
    Path("alice.key.state").unlink()
    status, party, _ = brought()
    assert (status, party) == (2, None)
    assert "--new-state" in capsys.readouterr().err
    status, party, before = brought("--new-state")
    assert (status, before) == (0, None)
    assert brought()[2] == 1


def test_the_state_may_be_elsewhere(brought):
    brought("--state", "elsewhere")
    assert brought("--state", "elsewhere")[2] == 1
    assert not Path("alice.key.state").exists()
    assert brought()[0] == 2


@pytest.mark.parametrize(("arguments", "allowed"), [((), False), (("--another-roster",), True)])
def test_another_roster_is_refused_unless_allowed(brought, monkeypatch, arguments, allowed):
    ledgers = []
    monkeypatch.setattr(peer, "take_part", lambda brought, **_: ledgers.append(brought[0].store.ledger()))
    brought(*arguments)
    (ledger,) = ledgers
    ledger.enter(RELEASE)
    why = ledger.against_roster("label", round_id=bytes(32), roster=b"other", flip_probability=0.1)
    assert (why is None) == allowed


def test_help_has_an_example(capsys):
    assert main(["peer", "--help"]) == 0
    assert "    p2p-labeldp peer alice.json --key alice.key" in capsys.readouterr().out
