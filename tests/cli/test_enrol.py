"""``enrol`` vouches for a peer; ``peer`` brings what it made, and nobody else's."""

import json

import pytest

from p2p_labeldp.cli import main
from p2p_labeldp.cli.enrol import read_enrolment
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.protocol import admission

LEARNER = "0" * 64 + "@127.0.0.1:7800"


@pytest.fixture
def made(tmp_path, capsys):
    """Ids of a peer and of the enrolment key, by key file in this directory."""
    ids = {}
    for name in ("alice", "bob", "enrolment"):
        assert main(["keygen", str(tmp_path / f"{name}.key")]) == 0
        ids[name] = capsys.readouterr().out.strip()
    return tmp_path, ids


def enrol(directory, peer, *more, out="alice.enrolment"):
    return main(["enrol", peer, "--key", str(directory / "enrolment.key"), "--out", str(directory / out), *more])


def test_an_enrolment_names_the_peer_and_the_key(made, capsys):
    directory, ids = made
    assert enrol(directory, ids["alice"], "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["peer"], said["enrolment_key"]) == (ids["alice"], ids["enrolment"])
    enrolment, signer = read_enrolment(said["file"], expected_peer=bytes.fromhex(ids["alice"]))
    assert signer.hex() == ids["enrolment"]
    admission.check(enrolment, peer_id=bytes.fromhex(ids["alice"]), enrolment_key=signer, keys=Keys(bytes(32)))
    assert enrol(directory, f"{ids['bob']}@127.0.0.1:1", out="bob.enrolment") == 0  # as an address is written


def complaint(capsys, arguments):
    capsys.readouterr()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_what_can_not_be_enrolled_is_one_line(made, capsys):
    directory, ids = made
    key, out = str(directory / "enrolment.key"), str(directory / "new")
    assert "PEER_ID: 'nobody' given" in complaint(capsys, ["enrol", "nobody", "--key", key, "--out", out])
    assert "--key: " in complaint(capsys, ["enrol", ids["alice"], "--key", out, "--out", out])
    assert enrol(directory, ids["alice"]) == 0
    again = ["enrol", ids["alice"], "--key", key, "--out", str(directory / "alice.enrolment")]
    assert "exists already" in complaint(capsys, again)
    missing = str(directory / "missing" / "file")
    assert "can't be written" in complaint(capsys, ["enrol", ids["alice"], "--key", key, "--out", missing])


def test_a_peer_brings_its_own_enrolment_and_no_other(made, capsys):
    directory, ids = made
    assert enrol(directory, ids["bob"], out="bob.enrolment") == 0
    (directory / "garbage").write_bytes(bytes(5000))
    (directory / "e.json").write_text('{"features": [1.0], "label": "a"}')
    peer = ["peer", str(directory / "e.json"), "--key", str(directory / "alice.key"), "--classes", "a,b"]
    peer += ["--listen", "127.0.0.1:7801", "--learner", LEARNER]
    for file, why in (("none", "can't be read"), ("garbage", "is no enrolment"), ("bob.enrolment", "of peer")):
        assert f"--enrolment: '{directory / file}' {why}" in complaint(
            capsys, [*peer, "--enrolment", str(directory / file)]
        ).replace("is the enrolment of peer", "of peer")
    assert "--enrolment-key: 'x' given" in complaint(capsys, [*peer, "--enrolment-key", "x"])


def test_a_manifest_names_the_key_and_a_peer_checks_it(made, capsys):
    directory, ids = made
    learner, file = str(directory / "alice.key"), str(directory / "round.manifest")
    listed = f"policy.enrolment_key={ids['enrolment']}"
    assert main(["manifest", "create", "by-hand", "--key", learner, "--out", file, "--set", listed]) == 0
    capsys.readouterr()
    assert main(["manifest", "show", file, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["admission"], shown["enrolment_key"]) == ("allowlist", ids["enrolment"])
    check = ["manifest", "check", file, "--learner", ids["alice"]]
    assert main([*check, "--enrolment-key", ids["enrolment"]]) == 0
    for other in ([], ["--enrolment-key", ids["bob"]]):
        assert main([*check, *other]) == 1
        assert "policy: admission by enrolment key" in capsys.readouterr().out


def test_peers_of_a_study_have_no_enrolments_and_a_run_says_so(capsys):
    said = complaint(capsys, ["run", "--engine", "virtual", "--set", f"policy.enrolment_key={'ab' * 32}"])
    assert "policy.enrolment_key: given; the peers of a study have no enrolments" in said
    assert "policy.enrolment_key: 'AB" in complaint(capsys, ["run", "--set", f"policy.enrolment_key={'AB' * 32}"])
