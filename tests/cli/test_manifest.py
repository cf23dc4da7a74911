"""``manifest`` puts a round's terms on paper, and ``check`` says what a peer with these limits would."""

import json
import stat
import time
from pathlib import Path

import pytest
from altering import altered

from p2p_labeldp.accounting import planning
from p2p_labeldp.cli import main
from p2p_labeldp.cli.keygen import keys_of
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.mechanisms.randomized_response import local_epsilon
from p2p_labeldp.protocol import manifest as manifests

LOCAL = local_epsilon(planning.plan_roster(3, target_epsilon=1.0, tolerated_loss=0.05).flip_probability)


@pytest.fixture(autouse=True)
def clock(made, monkeypatch):
    """Stands still just after the manifest's creation, however long the tests take; returns what moves it."""
    opened = opened_at(made[1])

    def move(seconds):
        monkeypatch.setattr(time, "time", lambda: opened + seconds)

    move(1.0)
    return move


def opened_at(file):
    keys = Keys(bytes(32))
    signer = keys.verify(manifests.KIND, Path(file).read_bytes()).peer_id
    return manifests.open_manifest(Path(file).read_bytes(), keys=keys, learner=signer).manifest.opened


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A manifest of the round by hand: directory, file and learner's id."""
    directory = tmp_path_factory.mktemp("round")
    key, file = str(directory / "learner.key"), str(directory / "round.manifest")
    assert main(["keygen", key]) == 0
    assert main(["manifest", "create", "by-hand", "--key", key, "--out", file]) == 0
    return directory, file, keys_of(key)[1]


def signed(directory, *, key="learner.key", name="other.manifest", **changes):
    """The same manifest with some values changed, signed."""
    keys = Keys(bytes.fromhex("77" * 32)) if key is None else _keys(directory / key)
    original = (directory / "round.manifest").read_bytes()
    learner = _keys(directory / "learner.key")
    manifest = manifests.open_manifest(original, keys=keys, learner=learner.peer_id).manifest
    values = {field: getattr(manifest, field) for field in manifest.__struct_fields__}
    (directory / name).write_bytes(manifests.sign(type(manifest)(**{**values, **changes}), keys))
    return str(directory / name)


def _keys(file):
    from p2p_labeldp.randomness import Secret

    return Keys(Secret(keys_of(str(file))[0]).identity())


def check(capsys, file, *arguments):
    """Exit status and the verdict."""
    capsys.readouterr()
    status = main(["manifest", "check", file, "--json", *arguments])
    verdict = json.loads(capsys.readouterr().out)
    assert status == (0 if verdict["takes_part"] else 1)
    assert verdict["takes_part"] == (not verdict["reasons"])
    return verdict["reasons"]


def test_a_manifest_is_signed_and_its_rounds_key_is_its_owners_alone(made):
    _, file, learner = made
    secret = Path(f"{file}.round-key")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    opened = manifests.open_manifest(Path(file).read_bytes(), keys=Keys(bytes(32)), learner=bytes.fromhex(learner))
    assert opened.manifest.round_key == Keys(bytes.fromhex(secret.read_text())).sealing_public
    assert opened.manifest.deadlines.report == 90
    assert not opened.manifest.study
    assert secret.read_bytes().strip() not in Path(file).read_bytes()


def test_two_manifests_of_the_same_terms_are_two_rounds(made, capsys):
    directory, file, _ = made
    again = str(directory / "again.manifest")
    assert main(["manifest", "create", "by-hand", "--key", str(directory / "learner.key"), "--out", again]) == 0
    assert Path(again).read_bytes() != Path(file).read_bytes()
    assert Path(f"{again}.round-key").read_bytes() != Path(f"{file}.round-key").read_bytes()


@pytest.mark.parametrize("present", ["", ".round-key"])
def test_nothing_is_overwritten(made, capsys, tmp_path, present):
    directory, _, _ = made
    out = tmp_path / "round"
    Path(f"{out}{present}").write_text("mine")
    status = main(["manifest", "create", "by-hand", "--key", str(directory / "learner.key"), "--out", str(out)])
    assert status == 2
    assert "exists already" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_show_says_all_of_it_in_words_and_as_an_object(made, capsys):
    _, file, learner = made
    capsys.readouterr()
    assert main(["manifest", "show", file]) == 0
    text = capsys.readouterr().out
    assert main(["manifest", "show", file, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["learner"] == learner
    assert shown["classes"] == ["malignant", "benign"]
    assert shown["target_epsilon"] == 1.0
    assert shown["deadlines"] == {"join": 60, "exchange": 70, "closing": 80, "report": 90}
    assert f"learner           {learner}" in text
    assert shown["opened"] == opened_at(file)
    assert len(text.splitlines()) == len(shown)


def test_show_says_when_a_round_was_opened_in_utc(made, capsys):
    directory, _, _ = made
    capsys.readouterr()
    for seconds, text in ((1_796_061_482.48, "2026-11-30 17:58:02"), (0.0, "1970-01-01 00:00:00")):
        assert main(["manifest", "show", signed(directory, opened=seconds)]) == 0
        assert f"opened            {seconds} ({text} UTC)\n" in capsys.readouterr().out
    assert main(["manifest", "show", signed(directory, opened=manifests.MAX_OPENED)]) == 0
    assert "(9999-12-31 23:59:59 UTC)" in capsys.readouterr().out


def test_check_refuses_a_round_that_peers_can_no_longer_join(made, capsys, clock):
    _, file, learner = made
    for seconds in (0.0, 57.9):  # the controls
        clock(seconds)
        assert check(capsys, file, "--learner", learner) == []
    clock(58.1)
    assert check(capsys, file, "--learner", learner) == ["too late: created 58 s ago; peers join within 58 s"]
    clock(143.0)
    late = "too late: created 143 s ago; peers join within 58 s"
    assert check(capsys, file, "--learner", learner, "--size", "2") == [late, "size 2: the round needs 3 members"]
    assert check(capsys, file, "--learner", "00" * 32)[0] == late
    assert main(["manifest", "check", file, "--learner", learner]) == 1
    assert capsys.readouterr().out == f"{late}\n"


def test_what_a_signer_wrote_moves_no_terminal(made, capsys):
    directory, _, _ = made
    file = signed(directory, key=None, classes=("a\x1b[2J", "b"))
    assert main(["manifest", "show", file]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_manifest_changed_after_signing_is_shown_to_nobody_and_the_cause_is_said(made, tmp_path, capsys):
    _, file, _ = made
    (tmp_path / "changed").write_bytes(altered(Path(file).read_bytes()))
    capsys.readouterr()
    assert main(["manifest", "show", str(tmp_path / "changed")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"'{tmp_path / 'changed'}': signature does not verify" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"no manifest", bytes(1000)])
def test_what_is_no_manifest_is_one_line_and_status_1(tmp_path, capsys, content):
    file = tmp_path / "file"
    file.write_bytes(content)
    for arguments in (["show", str(file)], ["check", str(file), "--learner", "00" * 32]):
        assert main(["manifest", *arguments]) == 1
        out, err = capsys.readouterr()
        assert (out + err).count("\n") == 1


def test_a_peer_without_limits_would_take_part(made, capsys):
    _, file, learner = made
    assert check(capsys, file, "--learner", learner) == []
    assert check(capsys, file, "--learner", f"{learner}@host:1", "--classes", "malignant,benign") == []


LIMITS = {
    "another label space": (["--classes", "malignant,other"], "policy: class 1 is 'benign' instead of 'other'"),
    "a class left out": (["--classes", "malignant,benign,x"], "policy: a label space of 2 classes instead of 3"),
    "a larger minimum": (["--minimum-size", "4"], "policy: minimum size 3 below 4"),
    "the learner's view": (["--max-epsilon", "0.9"], "size 3: policy: epsilon above 0.9 at delta 0.111111"),
    "the local view": (["--max-local-epsilon", "2"], f"size 3: policy: local epsilon {LOCAL:.6g} above 2"),
    "a coalition": (
        ["--colluders", "1", "--max-colluder-epsilon", "1"],
        "size 3: policy: epsilon with 1 mate above 1 at delta 0.111111",
    ),
    "a size too small": (["--size", "2"], "size 2: the round needs 3 members"),
}


@pytest.mark.parametrize("why", LIMITS)
def test_check_says_why_not(made, capsys, why):
    _, file, learner = made
    arguments, text = LIMITS[why]
    assert check(capsys, file, "--learner", learner, *arguments) == [text]


def test_check_judges_each_size_that_it_is_given(made, capsys):
    _, file, learner = made
    sizes = ["--size", "3", "--size", "20", "--size", "50"]
    reasons = check(capsys, file, "--learner", learner, "--max-local-epsilon", "2.5", *sizes)
    assert [reason.partition(":")[0] for reason in reasons] == ["size 20", "size 50"]  # a larger cluster flips less


def test_check_refuses_another_learner_and_a_change_after_signing(made, capsys, tmp_path):
    _, file, learner = made
    (reason,) = check(capsys, file, "--learner", "00" * 32)
    assert reason == f"policy: learner {learner} instead of {'00' * 32}"
    envelope = Path(file).read_bytes()
    changed = tmp_path / "changed"
    changed.write_bytes(altered(envelope))
    (reason,) = check(capsys, str(changed), "--learner", learner)
    assert reason.startswith("policy: manifest: ")


def test_check_refuses_a_study_and_a_minimum_of_two(made, capsys):
    directory, _, learner = made
    assert check(capsys, signed(directory, study=True), "--learner", learner) == [
        "policy: the round is a study, this peer belongs to a deployment"
    ]
    two = signed(directory, minimum_size=2)
    assert check(capsys, two, "--learner", learner) == ["policy: minimum size 2 below 3"]
    assert check(capsys, two, "--learner", learner, "--minimum-size", "2") == []
    assert check(capsys, signed(directory, study=False), "--learner", learner) == []


def test_a_minimum_beyond_any_roster_is_judged_without_counting_to_it(made, capsys):
    directory, _, learner = made
    (reason,) = check(capsys, signed(directory, minimum_size=10**12), "--learner", learner, "--max-epsilon", "1")
    assert reason == "minimum size 1000000000000; no roster has more than 10000 members"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--max-epsilon", "-1"], "--max-epsilon: -1.0 given"),
        (["--max-epsilon", "nan"], "--max-epsilon: nan given"),
        (["--max-colluder-epsilon", "1"], "--max-colluder-epsilon: given without colluders"),
        (["--minimum-size", "1"], "--minimum-size: 1 given"),
        (["--size", "1"], "--size: 1 given"),
        (["--size", "10001"], "--size: 10001 given"),
        (["--learner", "00"], "--learner: '00' given"),
        (["--colluders", "2"], "--colluders: given without"),
        (["--colluders", "2", "--max-epsilon", "1"], "--colluders: given without"),
        (["--classes", "malignant"], "--classes: 1 classes given"),
        (["--classes", "a,b,a"], "--classes: a class is named twice"),
    ],
)
def test_an_impossible_limit_is_named_by_its_flag(made, capsys, arguments, text):
    _, file, learner = made
    capsys.readouterr()
    assert main(["manifest", "check", file, "--learner", learner, *arguments]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["create"], ["show"], ["check"]])
def test_help_has_an_example(capsys, command):
    assert main(["manifest", *command, "--help"]) == 0
    assert f"    p2p-labeldp manifest {' '.join(command)}".rstrip() in capsys.readouterr().out
