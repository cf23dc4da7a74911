"""``verify`` says one line for each check, and by its exit status whether all hold."""

import json
import shutil

import pytest

from p2p_labeldp.cli import main

SMALL = ["--set", "data.peers=60", "--set", "clusters.count=4", "--set", "clusters.minimum_size=8", "--quiet"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A round on the in-memory network."""
    place = tmp_path_factory.mktemp("runs") / "one"
    assert main(["run", "breast-cancer", *SMALL, "--engine", "virtual", "--out", str(place)]) == 0
    return place


@pytest.fixture
def one(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "one")


def asked(capsys, *arguments):
    capsys.readouterr()
    status = main(["verify", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_one_line_for_each_check(one, capsys):
    status, out, err = asked(capsys, one)
    lines = [line.split("  ") for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert [line[0].strip() for line in lines][:4] == ["signature", "terms", "deltas", "holding minima"]
    assert len(lines) == 17
    assert "FAILED" not in out
    assert out.startswith("signature       not checked  unsigned: played on an in-memory network")


def test_one_cluster_is_no_clusters(one, tmp_path, capsys):
    alone = tmp_path / "alone"
    small = ["--set", "data.peers=20", "--set", "clusters.count=1", "--quiet"]
    assert main(["run", "breast-cancer", *small, "--engine", "virtual", "--out", str(alone)]) == 0
    _, out, _ = asked(capsys, alone)
    assert "1/s^2 in each of 1 cluster\n" in out
    assert "20 peers in 1 cluster\n" in out
    assert "of 1 roster are those" in out
    assert main(["report", str(alone), "--out", str(tmp_path / "page.html")]) == 0
    assert "1 cluster; members of the smallest: 20" in (tmp_path / "page.html").read_text()
    _, out, _ = asked(capsys, one)  # the control
    count = len(json.loads((one / "guarantee.json").read_text())["statement"]["clusters"])
    assert count > 1
    assert f"1/s^2 in each of {count} clusters\n" in out
    assert f"60 peers in {count} clusters\n" in out


def test_json_says_the_same(one, capsys):
    _, out, _ = asked(capsys, one)
    status, told, _ = asked(capsys, one, "--json")
    verdict = json.loads(told)
    assert status == 0
    assert list(verdict) == ["holds", "learner", "checks"]
    assert (verdict["holds"], verdict["learner"]) == (True, None)
    assert [[check["check"], check["status"], check["text"]] for check in verdict["checks"]] == [
        [line[:14].strip(), line[16:27].strip(), line[29:]] for line in out.splitlines()
    ]


@pytest.mark.parametrize("as_json", [True, False])
def test_what_fails_is_named_and_the_status_is_1(one, capsys, as_json):
    text = (one / "guarantee.json").read_text()
    (one / "guarantee.json").write_text(text.replace('"epsilon": 1.0', '"epsilon": 0.1', 1))
    status, out, err = asked(capsys, one, *(["--json"] if as_json else []))
    assert (status, err) == (1, "")
    if as_json:
        verdict = json.loads(out)
        assert verdict["holds"] is False
        assert [one["check"] for one in verdict["checks"] if one["status"] == "failed"] == ["epsilons", "result.json"]
    else:
        assert "epsilons        FAILED       cluster 0: epsilon 0.1 stated, 1 worked out\n" in out


def test_a_learner_that_has_to_have_signed_did_not(one, capsys):
    status, out, _ = asked(capsys, one, "--learner-key", "ab" * 32)
    assert status == 1
    assert f"signature       FAILED       by nobody, not by {'ab' * 32}" in out


def test_a_round_that_is_not_the_peers_own_has_no_receipt_of_it(one, tmp_path, capsys):
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.facts import Outcome
    from p2p_labeldp.network.store import Store
    from p2p_labeldp.protocol.kept import EndedIn, JoinedAs
    from p2p_labeldp.protocol.messages import Report
    from p2p_labeldp.protocol.report import sign_receipt

    me = Keys(bytes(32))
    receipt = sign_receipt(Report(bytes(32), bytes(32), b"sealed"), me.peer_id, keys=Keys(b"learner".ljust(32)))
    joined = {"cluster": 0, "label_id": "label", "host": "h", "port": 1, "sequence": 1, "over_by": 1.0}
    state = Store(tmp_path / "state", peer_id=me.peer_id.hex())
    state(JoinedAs(peer="me", round_id=bytes(32), **joined))
    state(EndedIn(peer="me", outcome=Outcome.REPORTED, round_id=bytes(32), receipt=receipt))
    state.close()
    status, out, _ = asked(capsys, one, "--receipt", tmp_path / "state")
    assert status == 1
    assert "own receipt     FAILED       signed by learner" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "DIR: 'nowhere' can't be read: No such file"),
        ([], "Missing argument 'DIR'"),
        (["a\0b"], "can't be read"),
        (["one", "--learner-key", "me"], "--learner-key: 'me' given; an id of 64 hexadecimal digits is needed"),
        (["one", "--receipt", "nowhere"], "--receipt: 'nowhere' is no state of a peer"),
        (["one/facts.jsonl"], "p2p-labeldp: 'one/facts.jsonl': no statement of a guarantee: "),
        (["one/result.json"], "'one/result.json': statement, public and signature are needed"),
        (["one-other/cp1252.csv"], "p2p-labeldp: 'one-other/cp1252.csv': no statement of a guarantee: it is no JSON"),
        (["one-other"], "p2p-labeldp: guarantee.json: no statement of a guarantee: it is no JSON"),
    ],
)
def test_bad_input_is_one_line(one, monkeypatch, arguments, complaint, capsys):
    monkeypatch.chdir(one.parent)
    other = one.parent / "one-other"
    other.mkdir(exist_ok=True)
    for name in ("cp1252.csv", "guarantee.json"):
        (other / name).write_bytes("alter,straße\n".encode("cp1252"))
    status, out, err = asked(capsys, *arguments)
    assert (status, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1
