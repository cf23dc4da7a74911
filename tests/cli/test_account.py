"""``account`` prints the contract's keys, the exact numbers, and one line for whatever is out of range."""

import math

import pytest
from cli.printing import complaint, printed

from p2p_labeldp.cli import main

CLUSTER = ["account", "resampling", "--cluster-size", "10", "--flip", "0.1"]
KEYS = ["delta", "epsilon", "local_epsilon", "worst_ones", "direction", "profile", "views"]


def resampling(capsys, size, flip, *more):
    return printed(capsys, "account", "resampling", "--cluster-size", str(size), "--flip", str(flip), *more)


def view(record, name):
    return next(stated for stated in record["views"] if stated["view"] == name)


def test_the_object_has_the_contracts_keys_in_order(capsys):
    record = resampling(capsys, 10, 0.1, "--epsilon", "1", "--epsilon", "0.1")
    assert list(record) == KEYS
    assert [list(point) for point in record["profile"]] == [["epsilon", "delta"]] * 2
    assert [list(stated) for stated in record["views"]] == [["view", "epsilon", "delta", "method"]] * 4
    assert [stated["view"] for stated in record["views"]] == ["learner", "learner+1", "learner+all", "mates"]


@pytest.mark.parametrize(
    ("size", "flip", "exchange", "epsilon", "profile"),
    [
        (
            10,
            0.1,
            "resample",
            0.860005590538,
            [(1, 0.00209695805636863), (0.1, 0.265466613936261), (0, 0.28838049905541)],
        ),
        (10, 0.25, "resample", 0.471765626741, [(0.5, 0.00570423024512384), (0.1, 0.0728823584630967)]),
        (10, 0.02, "resample", 1.80144685471, [(2, 0.00160423645152606), (0.5, 0.477884590649423)]),
        (10, 0.1, "permute", 2.16812555787, [(2, 0.0624112673903855), (0, 0.3893216112)]),
        (10, 0.25, "permute", 0.903111547076, [(1, 0.00528818013233243)]),
    ],
)
def test_vectors_hold_and_the_profile_keeps_the_order_asked_for(capsys, size, flip, exchange, epsilon, profile):
    asked = [word for point, _ in profile for word in ("--epsilon", str(point))]
    record = resampling(capsys, size, flip, "--exchange", exchange, *asked)
    assert record["delta"] == 1 / size**2
    assert record["epsilon"] == pytest.approx(epsilon, abs=1e-8)
    assert record["local_epsilon"] == pytest.approx(math.log((1 - flip) / flip), abs=1e-12)
    assert [point["epsilon"] for point in record["profile"]] == [point for point, _ in profile]
    assert [point["delta"] for point in record["profile"]] == [pytest.approx(d, abs=1e-9) for _, d in profile]
    assert view(record, "learner")["epsilon"] == record["epsilon"]
    assert view(record, "learner+all") == {
        "view": "learner+all",
        "epsilon": record["local_epsilon"],
        "delta": 0.0,
        "method": "local: randomized response",
    }
    assert view(record, "mates")["epsilon"] == 0.0


@pytest.mark.parametrize(
    ("size", "flip", "epsilon"),
    [(100, 0.25, 0.2385), (100, 0.1, 0.7299), (100, 0.01, 1.4015), (1000, 0.01, 0.9801), (10_000, 0.1, 0.0887)],
)
def test_epsilon_falls_with_the_size_as_the_exact_law_says(capsys, size, flip, epsilon):
    record = resampling(capsys, size, flip, "--colluders", "0")
    assert record["epsilon"] == pytest.approx(epsilon, abs=6e-5)
    assert [stated["view"] for stated in record["views"]] == ["learner", "learner+all", "mates"]


def test_memoised_rounds_are_more_reports_of_one_set_of_flips(capsys):
    record = resampling(capsys, 4, 0.1, "--rounds", "2", "--epsilon", "1")
    assert record["epsilon"] == pytest.approx(1.479522917203392, abs=1e-8)
    assert record["profile"][0]["delta"] == pytest.approx(0.2998074441931466, abs=1e-9)
    assert resampling(capsys, 4, 0.1, "--reports", "8")["epsilon"] == record["epsilon"]
    assert (record["worst_ones"], record["direction"]) == (0, "add")


def test_fewer_reports_say_less(capsys):
    record = resampling(capsys, 4, 0.1, "--reports", "1", "--epsilon", "0.5")
    assert record["epsilon"] == pytest.approx(0.8649974374866045, abs=1e-8)
    assert record["profile"][0]["delta"] == pytest.approx(0.1351278729299872, abs=1e-9)
    assert record["direction"] == "remove"
    assert record["epsilon"] < resampling(capsys, 4, 0.1)["epsilon"]


def test_fresh_rounds_compose_and_cost_the_local_value_each(capsys):
    once = resampling(capsys, 100, 0.1)
    record = resampling(capsys, 100, 0.1, "--rounds", "3", "--fresh")
    assert once["epsilon"] < record["epsilon"] < 3 * once["epsilon"]
    assert record["local_epsilon"] == pytest.approx(3 * once["local_epsilon"])
    assert record["worst_ones"] is record["direction"] is None  # composed: no one count is known to be the worst
    assert resampling(capsys, 100, 0.1, "--fresh")["epsilon"] == once["epsilon"]


def test_a_coalition_is_stated_where_it_means_something_or_at_the_delta_given(capsys):
    at_its_own = view(resampling(capsys, 100, 0.1, "--colluders", "2"), "learner+2")
    assert at_its_own["delta"] == pytest.approx((1 - 0.99**2) * 0.9 + 1e-4)
    at_given = view(resampling(capsys, 100, 0.1, "--colluders", "2", "--delta", "0.0001"), "learner+2")
    assert at_given["delta"] == 1e-4
    assert at_its_own["epsilon"] < at_given["epsilon"] <= math.log(9)
    assert at_given["epsilon"] > resampling(capsys, 100, 0.1)["epsilon"]


def test_a_coalitions_number_is_the_enumerated_one_with_query_logs(capsys):
    # s = 4, t = 1, f = 1/10: delta(1) = .3031985383365888 by full enumeration
    record = resampling(capsys, 4, 0.1, "--delta", "0.3031985383365888")
    assert view(record, "learner+1")["epsilon"] == pytest.approx(1.0, abs=3e-6)


def test_classes_beyond_two_are_a_bound_that_no_count_attains(capsys):
    record = resampling(capsys, 10, 0.1, "--classes", "3", "--epsilon", "1")
    assert record["local_epsilon"] == pytest.approx(math.log(0.9 * 2 / 0.1))
    assert record["worst_ones"] is record["direction"] is None
    assert 0 < record["profile"][0]["delta"] < 1
    permuted = resampling(capsys, 10, 0.1, "--classes", "3", "--epsilon", "1", "--exchange", "permute")
    assert record["epsilon"] <= permuted["epsilon"] <= record["local_epsilon"]
    assert resampling(capsys, 10, 0.6, "--classes", "3")["epsilon"] < 1  # beyond 1/2 is fine for three


@pytest.mark.parametrize(
    ("arguments", "epsilon"),
    [
        (["12", "0.1", "--delta", "0"], 1.49020066),
        (["10", "0.5"], 0.0),
        (["10", "0"], math.inf),
        (["10", "0.1", "--delta", "0.999"], 0.0),
        (["1", "0.1", "--delta", "0"], math.log(9)),
        (["1000000", "0.5"], 0.0),
    ],
)
def test_extremes_are_answered(capsys, arguments, epsilon):
    found = resampling(capsys, *arguments)["epsilon"]
    assert found == "inf" if epsilon == math.inf else found == pytest.approx(epsilon, abs=1e-8)


@pytest.mark.parametrize("size", [2, 100, 1000])
def test_a_tiny_delta_is_no_zero_and_a_large_epsilon_no_overflow(capsys, size):
    record = resampling(capsys, size, 0.1, "--delta", "1e-300", "--epsilon", "800", "--epsilon", "0")
    pure = resampling(capsys, size, 0.1, "--delta", "0")["epsilon"]
    assert 0 < record["epsilon"] <= pure * (1 + 1e-8) < math.log(9)
    assert record["profile"][0]["delta"] == 0.0
    assert record["profile"][1]["delta"] > 0


def test_the_least_flip_is_answered_without_a_warning(capsys):
    record = resampling(capsys, 5, 1e-300, "--delta", "0", "--epsilon", "800", "--epsilon", "0")
    assert 600 < record["epsilon"] < record["local_epsilon"] < 700
    assert [point["delta"] for point in record["profile"]] == [0.0, pytest.approx(1 - 0.8**5, abs=1e-9)]


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_tiny_flip_hides_little_but_not_nothing(capsys, size):
    record = resampling(capsys, size, 1e-12)
    assert 1 < record["epsilon"] < record["local_epsilon"] < 28


def test_a_cluster_of_one_is_the_local_guarantee_at_a_delta(capsys):
    record = resampling(capsys, 1, 0.1, "--delta", "0.01")
    assert record["epsilon"] == pytest.approx(math.log((0.9 - 0.01) / 0.1), abs=1e-8)
    assert [stated["view"] for stated in record["views"]] == ["learner", "learner+all", "mates"]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--flip", "nan"], "--flip: nan given; 0 to 0.5 is possible"),
        (["--flip", "inf"], "--flip: inf given"),
        (["--flip", "-0.1"], "--flip: -0.1 given"),
        (["--flip", "0.51"], "--flip: 0.51 given; 0 to 0.5"),
        (["--flip", "1e-310"], "--flip: 1e-310 given; 0, or 1e-300 and above"),
        (["--flip", "much"], "Invalid value for '--flip'"),
        (["--cluster-size", "0"], "--cluster-size: 0 given; 1 to"),
        (["--cluster-size", "-3"], "--cluster-size: -3 given"),
        (["--cluster-size", "1"], "--delta: missing; 1/s^2 is 1"),
        (["--cluster-size", "1" + "0" * 30], "--cluster-size: 1000000000000000000000000000000 given"),
        (["--cluster-size", "2.5"], "Invalid value for '--cluster-size'"),
        (["--delta", "1"], "--delta: 1.0 given; at least 0 and below 1"),
        (["--delta", "-1e-9"], "--delta: -1e-09 given"),
        (["--delta", "nan"], "--delta: nan given"),
        (["--epsilon", "nan"], "--epsilon: nan given; a finite number of at least 0"),
        (["--epsilon", "1", "--epsilon", "-1"], "--epsilon: -1.0 given"),
        (["--epsilon", "inf"], "--epsilon: inf given"),
        (["--exchange", "gossip"], "--exchange: gossip given; resample or permute"),
        (["--reports", "0"], "--reports: 0 given"),
        (["--rounds", "0"], "--rounds: 0 given"),
        (["--rounds", "1000000000"], "--reports: 10000000000 given in all rounds; up to 100000000"),
        (["--rounds", "1000000000", "--fresh"], "--rounds: 1000000000 given; 1 to 1365"),
        (["--classes", "3", "--cluster-size", "20001"], "--cluster-size: 20001 given; 1 to 20000"),
        (["--colluders", "10"], "--colluders: 10 given; 0 to 9"),
        (["--colluders", "-1"], "--colluders: -1 given"),
        (["--classes", "1"], "--classes: 1 given; 2 to 256"),
        (["--classes", "257"], "--classes: 257 given"),
        (["--rounds", "2", "--fresh", "--colluders", "1"], "coalitions are accounted for rounds of s reports"),
        (["--rounds", "2", "--fresh", "--epsilon", "1"], "fresh rounds are accounted at a delta"),
        (["--rounds", "2", "--fresh", "--classes", "3"], "fresh rounds are accounted for two classes"),
        (["--exchange", "permute", "--reports", "5"], "a permutation is accounted for one round"),
        (["--reports", "5", "--colluders", "1"], "coalitions are accounted for rounds of s reports"),
        (["--nosuch"], "No such option: --nosuch"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, more, line):
    assert complaint(capsys, *CLUSTER, *more).startswith(line)
    assert main([*CLUSTER, "--json"]) == 0  # the same without it is fine


def test_the_table_says_the_same_rounded_up(capsys):
    assert main([*CLUSTER, "--epsilon", "0.5"]) == 0
    out = capsys.readouterr().out
    assert "epsilon     0.861 at delta 1.00e-2" in out  # .860005...
    assert "local       2.198" in out
    assert "0.5  1.48e-1" in out  # .147041...
    assert [line.split()[0] for line in out.splitlines() if "learner" in line or "mates" in line][:2] == [
        "learner",
        "learner+1",
    ]
    assert main(["account", "resampling", "--cluster-size", "10", "--flip", "0"]) == 0
    assert "inf: no privacy at this flip probability" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["resampling", "privunit2", "privunit-inf", "scalar", "scalar-rel", "reconstruction", ""]
)
def test_help_has_an_example(capsys, command):
    assert main(["account", *command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert "Example" in out
    assert f"    p2p-labeldp account {command}".rstrip() in out
