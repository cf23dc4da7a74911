"""``account`` for what makes updates private and what reconstructs them: the contract's keys, the exact numbers."""

import math

import pytest
from cli.printing import complaint, printed

from p2p_labeldp.cli import main


@pytest.mark.parametrize(
    ("dimension", "epsilon", "gamma", "p", "output_norm", "log_cap_mass"),
    [
        (2, 1, 0.3082871299048065, 0.6446381282519038, 3.2437293126987883, -0.9156802969410403),
        (3, 1, 0.24491866240370913, 0.6224593312018546, 4.082988165073597, -0.9740769841801067),
    ],
)
def test_privunit2_has_the_contracts_keys_and_numbers(capsys, dimension, epsilon, gamma, p, output_norm, log_cap_mass):
    asked = ["account", "privunit2", "--dimension", str(dimension), "--epsilon", str(epsilon)]
    record = printed(capsys, *asked)
    assert list(record) == ["gamma", "p", "output_norm", "log_cap_mass", "epsilon_exact", "variance"]
    expected = [gamma, p, output_norm, log_cap_mass, epsilon, output_norm**2 - 1]
    assert list(record.values()) == [pytest.approx(value, rel=1e-9) for value in expected]
    assert record["epsilon_exact"] <= epsilon


def test_theorem1_is_never_better_than_exact(capsys):
    asked = ["account", "privunit2", "--dimension", "100", "--epsilon", "4"]
    theorem1 = printed(capsys, *asked, "--calibration", "theorem1")
    assert theorem1["variance"] > printed(capsys, *asked)["variance"]


@pytest.mark.parametrize("dimension", [1, 4_000_000])
@pytest.mark.parametrize("epsilon", ["1e-6", "1e5"])
@pytest.mark.parametrize("mechanism", ["privunit2", "privunit-inf"])
def test_directions_are_valid_at_the_ends_of_their_range(capsys, mechanism, dimension, epsilon):
    record = printed(capsys, "account", mechanism, "--dimension", str(dimension), "--epsilon", epsilon)
    assert all(math.isfinite(value) for value in record.values())
    assert record["output_norm"] >= 1


def test_privunit_inf_states_its_threshold(capsys):
    record = printed(capsys, "account", "privunit-inf", "--dimension", "10", "--epsilon", "2")
    assert record["threshold_agreements"] == 7
    assert record["output_norm"] == pytest.approx(4.003262692567353, rel=1e-9)
    assert record["p"] == pytest.approx(0.6053012277718002, rel=1e-9)
    assert {"p", "output_norm", "epsilon_exact", "variance"} <= set(record)


def test_scalars_state_scale_and_offset(capsys):
    record = printed(capsys, "account", "scalar", "--epsilon", "4", "--levels", "4")
    assert record["scale"] == pytest.approx(0.27332170045471754, rel=1e-9)
    assert record["offset"] == pytest.approx(0.17065385160357124, rel=1e-9)
    relative = printed(capsys, "account", "scalar-rel", "--epsilon", "2", "--max-radius", "1")
    assert relative["nu"] == pytest.approx(1.716531310573789, rel=1e-9)
    assert relative["keep_probability"] == pytest.approx(0.7869860421615985, rel=1e-9)


def test_reconstruction_bounds_a_breach_and_inverts(capsys):
    sphere = ["account", "reconstruction", "--dimension", "500", "--alpha", "1"]
    record = printed(capsys, *sphere, "--epsilon", "50")
    assert record["log_prior"] == pytest.approx(-75.11517379703358, rel=1e-9)
    assert record["success"] == pytest.approx(math.exp(50 - 75.11517379703358), rel=1e-9)
    allowed = printed(capsys, *sphere, "--success", "0.01", "--participations", "2")
    assert 0.0099999 < allowed["success"] <= 0.01
    assert allowed["total_epsilon"] == pytest.approx(2 * allowed["epsilon"])
    words = printed(
        capsys, "account", "reconstruction", "--size", "10", "--members", "2", "--wrong", "0", "--epsilon", "0"
    )
    assert words["success"] == pytest.approx(1 / 45)
    # of the circle within 0.6 of its own point, and of the point at 0.8
    circle = ["account", "reconstruction", "--dimension", "2", "--alpha", "0.6", "--epsilon", "0"]
    assert printed(capsys, *circle)["success"] == pytest.approx(2 * math.asin(0.3) / math.pi)
    assert printed(capsys, *circle, "--off-sphere")["success"] == pytest.approx(math.asin(0.6) / math.pi)
    given = printed(capsys, "account", "reconstruction", "--log-prior", str(math.log(1 / 45)), "--epsilon", "0")
    assert given["success"] == pytest.approx(1 / 45)


@pytest.mark.parametrize("command", ["scalar", "scalar-rel"])
def test_scalars_state_level_largest_output_and_the_variance_at_a_magnitude(capsys, command):
    asked = ["account", command, "--epsilon", "4", "--max-radius", "2"]
    record = printed(capsys, *asked)
    assert record["epsilon_exact"] == pytest.approx(4)
    assert record["epsilon_exact"] <= 4
    assert record["output_norm"] == max(-record["output_min"], record["output_max"])
    assert record["radius"] == 2
    assert 0 < record["variance"] <= record["worst_variance"]
    small = printed(capsys, *asked, "--radius", "0.5")
    assert small["radius"] == 0.5
    assert small["variance"] != record["variance"]
    assert small["worst_variance"] == record["worst_variance"]


ATTACKED = [
    *("mechanism", "trials", "breaches", "success", "posterior", "standard_error", "success_lower", "confidence"),
    *("seed", "verdict"),
]
SPHERE = ["account", "reconstruction", "--dimension", "10", "--alpha", "0.8", "--epsilon", "8"]
DICTIONARY = ["account", "reconstruction", "--size", "7", "--members", "3", "--wrong", "1", "--epsilon", "2"]


@pytest.mark.parametrize("prior", [SPHERE, DICTIONARY])
@pytest.mark.parametrize("mechanism", ["privunit2", "privunit-g", "privunit-inf"])
def test_an_attack_stands_beside_the_bound_it_stays_below(capsys, prior, mechanism):
    """Fails with probability 1e-6."""
    plain = printed(capsys, *prior)
    record = printed(capsys, *prior, "--attack", mechanism, "--trials", "4000", "--seed", "3")
    attack = record.pop("attack")
    assert record == plain
    assert list(attack) == ATTACKED
    assert (attack["mechanism"], attack["trials"], attack["seed"]) == (mechanism, 4000, 3)
    assert attack["success"] == attack["breaches"] / 4000
    assert math.exp(plain["log_prior"]) < attack["success_lower"] < attack["success"] < plain["success"]
    known = mechanism == "privunit2" or prior is DICTIONARY
    assert (attack["posterior"] is not None) is known
    if known:
        assert abs(attack["success"] - attack["posterior"]) < 4.9 * attack["standard_error"]
    assert attack["verdict"] == "pass"


def test_the_seed_decides_an_attack(capsys):
    asked = [*SPHERE, "--attack", "privunit2"]
    first, again, other = (printed(capsys, *asked, "--seed", seed)["attack"] for seed in ("1", "1", "2"))
    assert first == again
    assert first["breaches"] != other["breaches"]


def test_an_attack_that_beats_the_bound_is_a_failed_verdict_and_no_error(capsys, monkeypatch):
    """The control: the mechanism that runs spends more than the level it was asked for."""
    from p2p_labeldp.mechanisms.privunit import PrivUnit2

    honest = PrivUnit2.calibrated
    monkeypatch.setattr(PrivUnit2, "calibrated", lambda *, dimension, epsilon: honest(dimension=dimension, epsilon=30))
    assert printed(capsys, *SPHERE, "--attack", "privunit2")["attack"]["verdict"] == "fail"
    assert main([*SPHERE, "--attack", "privunit2"]) == 0
    assert "fail: above what is promised" in capsys.readouterr().out


def test_an_attack_s_table_says_what_is_measured_and_what_is_not_known(capsys):
    assert main([*SPHERE, "--attack", "privunit-g"]) == 0
    out = capsys.readouterr().out
    for line in (
        "privunit-g: ",
        "posterior  not known",
        "a lower bound, no guarantee",
        "pass: within what is promised",
    ):
        assert line in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["privunit2", "--dimension", "0", "--epsilon", "1"], "--dimension: 0 given"),
        (["privunit2", "--dimension", "3", "--epsilon", "nan"], "--epsilon: nan given; 1e-06 to 100000"),
        (["privunit2", "--dimension", "3", "--epsilon", "-1"], "--epsilon: -1.0 given"),
        (["privunit2", "--dimension", "3", "--epsilon", "1e6"], "--epsilon: 1000000.0 given"),
        (["privunit2", "--dimension", "3", "--epsilon", "1", "--calibration", "best"], "--calibration: 'best' given"),
        (["privunit2", "--dimension", "2", "--epsilon", "1", "--calibration", "theorem1"], "--dimension: 2 given"),
        (["privunit2", "--epsilon", "1"], "Missing option '--dimension'"),
        (["privunit-inf", "--dimension", "-1", "--epsilon", "1"], "--dimension: -1 given"),
        (["privunit-inf", "--dimension", "10", "--epsilon", "inf"], "--epsilon: inf given"),
        (["scalar", "--epsilon", "0"], "--epsilon: 0.0 given"),
        (["scalar", "--epsilon", "4", "--max-radius", "nan"], "--max-radius: nan given"),
        (["scalar", "--epsilon", "4", "--levels", "0"], "--levels: 0 given"),
        (["scalar-rel", "--epsilon", "4", "--max-radius", "0"], "--max-radius: 0.0 given"),
        (["reconstruction", "--epsilon", "1"], "one prior is needed"),
        (["reconstruction", "--log-prior", "-5"], "one of --epsilon and --success is needed"),
        (["reconstruction", "--log-prior", "-5", "--epsilon", "1", "--success", ".1"], "one of --epsilon and"),
        (["reconstruction", "--log-prior", "1", "--epsilon", "1"], "--log-prior: 1.0 given"),
        (["reconstruction", "--log-prior", "-5", "--epsilon", "nan"], "--epsilon: nan given"),
        (["reconstruction", "--log-prior", "-5", "--success", "1e-9"], "--success: 1e-09 given; more than"),
        (["reconstruction", "--log-prior", "-5", "--epsilon", "1", "--participations", "-1"], "--participations: -1"),
        (["reconstruction", "--dimension", "5", "--epsilon", "1"], "--alpha: missing; --dimension needs it"),
        (["reconstruction", "--dimension", "5", "--alpha", "nan", "--epsilon", "1"], "--alpha: nan given"),
        (["reconstruction", "--size", "5", "--members", "9", "--wrong", "0", "--epsilon", "1"], "--members: 9 given"),
        ([*SPHERE[1:], "--attack", "gauss"], "--attack: 'gauss' given; privunit2, privunit-g, privunit-inf"),
        ([*SPHERE[1:], "--attack", "privunit2", "--trials", "0"], "--trials: 0 given"),
        (
            [*SPHERE[1:], "--attack", "privunit2", "--trials", "100000000"],
            "--trials: 100000000 given; 1 to 50000000 are",
        ),
        ([*SPHERE[1:], "--attack", "privunit2", "--seed", "-1"], "--seed: -1 given"),
        ([*SPHERE[1:], "--attack", "privunit2", "--participations", "0"], "--participations: 0 given"),
        ([*SPHERE[1:], "--attack", "privunit2", "--participations", "999999999"], "--trials: 10000 given; fewer"),
        (
            ["reconstruction", "--log-prior", "-5", "--epsilon", "1", "--attack", "privunit2"],
            "--attack: privunit2 given",
        ),
        (
            [
                *("reconstruction", "--size", "40", "--members", "20", "--wrong", "0", "--epsilon", "1"),
                "--attack",
                "privunit2",
            ],
            "--members: 20 of 40 words given; at most 1000",
        ),
        (["reconstruction", "--log-prior", "-5", "--epsilon", "1", "--off-sphere"], "--off-sphere: given; --dimension"),
        (["scalar", "--epsilon", "4", "--radius", "-1"], "--radius: a negative, NaN or infinite magnitude given"),
        (["scalar-rel", "--epsilon", "4", "--radius", "nan"], "--radius: a negative, NaN or infinite magnitude given"),
        (["nosuch"], "No such command 'nosuch'"),
        ([], "Missing command; see p2p-labeldp account --help"),
    ],
)
def test_bad_input_to_the_other_mechanisms_is_one_line_and_status_2(capsys, arguments, line):
    assert complaint(capsys, "account", *arguments).startswith(line)


def test_every_mechanisms_table_names_its_constants(capsys):
    assert main(["account", "privunit2", "--dimension", "3", "--epsilon", "1"]) == 0
    assert "output norm    4.08298" in capsys.readouterr().out
