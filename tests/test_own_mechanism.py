"""A mechanism of one's own is loaded from a file or a module, held to the contract, audited and measured."""

import json

import pytest

from p2p_labeldp import own_mechanism
from p2p_labeldp.cli import main
from p2p_labeldp.errors import ConfigurationError

SOURCE = '''
import numpy as np


class Right:
    """Algorithm 2 as anybody would write it."""

    classes = 2

    def __init__(self, flip_probability=0.1):
        self.flip_probability = flip_probability

    def flips(self, labels, rng):
        return rng.random(labels.shape) < self.flip_probability

    def sample(self, labels, rng):
        flipped = labels ^ self.flips(labels, rng)
        return np.take_along_axis(flipped, rng.integers(0, labels.shape[1], size=labels.shape), axis=1)


class FlipsTooFew(Right):
    def flips(self, labels, rng):
        return rng.random(labels.shape) < 0.9 * self.flip_probability


class Shuffles(Right):
    def sample(self, labels, rng):
        return rng.permuted(labels ^ self.flips(labels, rng), axis=1)


class Response:
    """Randomized response among three classes, whose output depends on nobody else."""

    classes, epsilon = 3, 1.0

    def sample(self, labels, rng):
        lies = rng.integers(1, 3, size=labels.shape)
        return np.where(rng.random(labels.shape) < np.e / (np.e + 2), labels, (labels + lies) % 3)


class Overclaims(Response):
    epsilon = 0.5


class Raises(Right):
    def sample(self, labels, rng):
        raise KeyError("no such label\\nreally")


class Shows(Right):
    """Lets the audit look inside."""

    def show(self, labels, rng):
        from p2p_labeldp.auditing import Rounds

        flipped = labels ^ self.flips(labels, rng)
        mates = self.draw(labels, rng)
        return Rounds(
            labels=labels, flipped=flipped, mates=mates, reports=np.take_along_axis(flipped, mates, axis=1)
        )

    def draw(self, labels, rng):
        return rng.integers(0, labels.shape[1], size=labels.shape)

    def sample(self, labels, rng):
        return self.show(labels, rng).reports


class Tosses(Right):
    """Tells nothing."""

    def flips(self, labels, rng):
        return rng.random(labels.shape) < 0.5


class SelfExcluded(Shows):
    def draw(self, labels, rng):
        size = labels.shape[1]
        return (np.arange(size) + rng.integers(1, size, size=labels.shape)) % size


made = Right(0.2)
number = 5
'''


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return lambda name: f"{path}:{name}"


def audited(capsys, reference, *more):
    assert main(["audit", "--cluster-size", "16", "--trials", "40000", "--mechanism", reference, "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_right_one_passes_and_wrong_ones_are_caught(capsys, mine):
    right = audited(capsys, mine("Right"))
    assert right["verdict"] == "pass"
    assert 0.5 < right["epsilon_lower"] < 0.9  # exact: .87
    assert list(right) == ["epsilon_lower", "confidence", "delta", "conformance", "verdict", "contract"]
    assert audited(capsys, mine("FlipsTooFew"))["verdict"] == "fail"
    shuffled = audited(capsys, mine("Shuffles"))
    assert shuffled["verdict"] == "fail"
    assert shuffled["epsilon_lower"] > 1.5


def test_what_t_cannot_tell_is_told_by_a_mechanism_that_shows_its_rounds(capsys, mine):
    assert audited(capsys, mine("Shows"))["verdict"] == "pass"
    found = audited(capsys, mine("SelfExcluded"))
    assert found["verdict"] == "fail"
    assert found["conformance"]["self_picks"] < 1e-9
    assert found["contract"]["conformance"].startswith("failed: ")


def test_any_other_mechanism_is_held_to_what_it_claims(capsys, mine):
    found = audited(capsys, mine("Response"))
    assert found["verdict"] == "pass"
    assert 0.8 < found["epsilon_lower"] <= 1.0
    assert (found["delta"], found["conformance"]) == (0.0, {})
    caught = audited(capsys, mine("Overclaims"))
    assert caught["verdict"] == "fail"
    assert caught["contract"]["claim"].startswith("epsilon 0.5 is claimed, but measured: epsilon is at least 0.9")
    assert main(["audit", "--cluster-size", "4", "--trials", "2000", "--mechanism", mine("Overclaims")]) == 0
    assert "verdict    fail: claim" in capsys.readouterr().out


def test_the_flip_is_given_to_a_maker_and_compared_with_an_object(mine):
    assert own_mechanism.load(mine("Right")).flip_probability == 0.1
    assert own_mechanism.load(mine("Right"), flip_probability=0.3).flip_probability == 0.3
    assert own_mechanism.load(mine("made"), flip_probability=0.3).flip_probability == 0.2


def test_rows_are_of_the_mechanism_and_changed_code_is_measured_again(capsys, mine, tmp_path):
    asked = ["measure", "--set", "mechanism.flip_probability=0.1", "--sizes", "16", "--trials", "20000", "--json"]
    asked += ["--out", str(tmp_path / "out")]

    def rows(name):
        assert main([*asked, "--mechanism", mine(name)]) == 0
        out, err = capsys.readouterr()
        return json.loads(out)["rows"], err

    right, _ = rows("Right")
    assert [row["verdict"] for row in right] == ["pass"]
    assert all(0 < row["epsilon_lower"] <= row["epsilon"] for row in right)
    assert all(row["mechanism"].startswith(mine("Right")) for row in right)
    assert all(0.9 < row["accuracy"] < row["accuracy_non_private"] for row in right)
    assert all(row["accuracy"] < 0.9 for row in rows("Tosses")[0])  # its own labels are what models are trained on
    wrong, _ = rows("Shuffles")
    assert [row["verdict"] for row in wrong] == ["fail"]
    assert all(row["epsilon_lower"] > row["epsilon"] for row in wrong)  # and it is seen to promise too much
    assert "16 known already" in rows("Right")[1]
    (tmp_path / "mine.py").write_text(SOURCE + "\n# changed\n")
    assert "known already" not in rows("Right")[1]


@pytest.mark.parametrize(
    ("reference", "line"),
    [
        ("mine", "'mine' given; module:object or file.py:object is needed"),
        (":mine", "':mine' given"),
        ("no_such_module:mine", "no_such_module can't be imported: ModuleNotFoundError: No module named"),
        ("no/such.py:mine", "no/such.py can't be imported: FileNotFoundError"),
        ("{}:Nothing", "{} has no Nothing"),
        ("{}:number", "number can't be made: TypeError"),
        ("json:JSONDecoder", "JSONDecoder is no mechanism: it needs classes and sample(labels, rng)"),
        ("{}:Raises", "{}:Raises raised KeyError: 'no such label\\nreally' (mine.py, line "),
    ],
)
def test_what_is_no_mechanism_is_refused_in_one_line(capsys, mine, reference, line):
    path = mine("x")[:-2]
    asked = ["audit", "--cluster-size", "4", "--trials", "100", "--mechanism", reference.replace("{}", path)]
    assert main(asked) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("p2p-labeldp: --mechanism: " + line.replace("{}", path))


def test_only_what_claims_to_be_resampling_is_measured_beside_it(mine):
    with pytest.raises(ConfigurationError, match="the audit command takes it"):
        own_mechanism.load_flipping(mine("Response"))
    assert own_mechanism.load_flipping(mine("Right")).classes == 2


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--flip", "0.3"], "--flip: 0.3 given, and"),
        (["--engine", "virtual"], "--engine: 'virtual' given"),
        (["--peers", "64"], "--peers: 64 given"),
    ],
)
def test_options_that_do_not_go_with_it_are_refused(capsys, mine, more, line):
    asked = ["audit", "--cluster-size", "4", "--trials", "100", "--mechanism", mine("made")]
    assert main([*asked, *more]) == 2
    assert capsys.readouterr().err.startswith(f"p2p-labeldp: {line}")
    assert main(asked) == 0
