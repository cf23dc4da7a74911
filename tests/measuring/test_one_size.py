"""A row is what the accountant, the auditor and the experiment say of one cluster size."""

import math

import numpy as np
import pytest

from p2p_labeldp import config, population
from p2p_labeldp.accounting import coalition, resampling, shuffle
from p2p_labeldp.accounting.coalition import Coalition
from p2p_labeldp.config import config_hash
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.measuring import Question, measure, planned_flip
from p2p_labeldp.measuring.one_size import _sources
from p2p_labeldp.measuring.row import from_line, to_line


def asked(*overrides, trials=4000, **rest):
    chosen = config.from_mapping({"data": {"name": "breast-cancer", "peers": 120}}, overrides)
    return Question(config=chosen, trials=trials, **rest)


FIXED = "mechanism.flip_probability=0.1"


def test_the_upper_bounds_are_the_accountants():
    row = measure(asked(FIXED, accuracy=False), 20)
    assert (row.cluster_size, row.flip_probability, row.delta) == (20, 0.1, 1 / 400)
    assert row.epsilon == resampling.epsilon(cluster_size=20, flip_probability=0.1, delta=1 / 400)
    assert row.shuffle_epsilon == shuffle.epsilon(cluster_size=20, flip_probability=0.1, delta=1 / 400)
    assert row.local_epsilon == pytest.approx(math.log(9))
    assert row.paper_epsilon == pytest.approx(2**-0.5)
    group = Coalition(cluster_size=20, colluders=1, flip_probability=0.1)
    assert row.mate_epsilon == coalition.epsilon(group, row.mate_delta)
    assert row.mate_delta == pytest.approx(0.9 / 20 + 1 / 400)
    assert row.accuracy is row.accuracy_non_private is row.accuracy_cluster_size is None


@pytest.mark.parametrize(("size", "expected"), [(10, 0.8600), (100, 0.7299), (1000, 0.2488)])
def test_the_exact_epsilon_is_the_tabulated_one(size, expected):
    row = measure(asked(FIXED, trials=1000, accuracy=False), size)
    assert row.epsilon == pytest.approx(expected, abs=5e-5)
    assert row.epsilon_lower <= row.epsilon <= row.shuffle_epsilon <= row.local_epsilon  # fails with chance below .01


def test_the_lower_bound_is_measured_on_rounds_and_grows_with_them():
    few, many = (measure(asked(FIXED, trials=trials, accuracy=False), 10) for trials in (400, 40_000))
    assert few.epsilon_lower < many.epsilon_lower < many.epsilon  # .01 a bound, the seed is fixed
    assert many.epsilon_lower > many.epsilon / 2
    assert (many.verdict, many.trials, many.confidence) == ("pass", 40_000, 0.99)


def test_a_broken_engine_does_not_conform(monkeypatch):
    play = population.play
    monkeypatch.setattr(population, "play", lambda *args, **rest: play(*args, **{**rest, "exchange": "permute"}))
    assert measure(asked(FIXED, accuracy=False), 20).verdict == "fail"
    monkeypatch.undo()
    assert measure(asked(FIXED, accuracy=False), 20).verdict == "pass"


def test_the_flip_is_the_given_one_or_planned_for_each_size():
    assert planned_flip(asked(FIXED).config, 50) == 0.1
    by_target = asked("mechanism.target_epsilon=1")
    assert planned_flip(by_target.config, 50) == pytest.approx(0.0357, abs=1e-4)
    assert planned_flip(by_target.config, 100) == pytest.approx(0.0235, abs=1e-4)
    assert measure(by_target, 50).epsilon <= 1


def test_accuracy_is_of_studies_with_clusters_of_that_size_or_more():
    row = measure(asked(FIXED), 30)
    assert 30 <= row.accuracy_cluster_size < 120
    assert 0.5 < row.accuracy < row.accuracy_non_private < 1
    assert measure(asked(FIXED), 121).accuracy is None  # 120 peers
    assert measure(asked(FIXED, "policy.minimum_size=9"), 8).accuracy is None  # nobody would take part


def test_a_seed_gives_one_row_and_another_seed_another():
    first, again, other = (measure(asked(FIXED, seed=seed), 12) for seed in (3, 3, 4))
    assert first == again
    assert (first.seed, first.config_hash) == (3, config_hash(asked(FIXED).config))
    assert other.least_p_value != first.least_p_value


def test_sizes_and_calls_share_no_coins():
    def flips(size):
        _, draw_rounds = _sources(asked(FIXED), size, 0.25)
        return [draw_rounds(labels=np.zeros((200, size), dtype=np.uint8)).flipped.ravel()[:400] for _ in range(2)]

    drawn = [*flips(2), *flips(3), *flips(4)]
    for i, one in enumerate(drawn):
        assert [(one[:400] == two[:400]).all() for two in drawn].count(True) == 1, i


def test_no_flip_is_an_infinite_epsilon_that_comes_back():
    row = measure(asked("mechanism.flip_probability=0", trials=400, accuracy=False), 5)
    assert row.epsilon == row.local_epsilon == math.inf
    assert '"epsilon": "inf"' in to_line(row)
    assert from_line(to_line(row)) == row


@pytest.mark.parametrize("size", [1, 0, -3, 10**6 + 1, True, 2.5])
def test_a_size_out_of_range_is_refused(size):
    with pytest.raises(ConfigurationError, match=r"^sizes: "):
        measure(asked(FIXED), size)


@pytest.mark.parametrize(
    ("overrides", "rest", "field"),
    [
        (["exchange.kind=permute"], {}, "exchange.kind"),
        ([], {"trials": 1}, "trials"),
        ([], {"trials": True}, "trials"),
        ([], {"engine": "internet"}, "engine"),
        ([], {"engine": "virtual", "peers": 1}, "peers"),
        ([], {"engine": "virtual", "mechanism": "json:JSONDecoder"}, "engine"),
        ([], {"seed": -1}, "seed"),
        ([], {"confidence": 1.0}, "confidence"),
        ([], {"confidence": math.nan}, "confidence"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_birth(overrides, rest, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        asked(*overrides, **rest)
    asked()
