"""One audit: bound, verdict and record; and 0 where there is nothing to find."""

import json
import math
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

from p2p_labeldp import auditing
from p2p_labeldp.auditing.audit import audit, default_delta
from p2p_labeldp.auditing.conformance import Verdict
from p2p_labeldp.errors import ConfigurationError

from . import broken_mechanisms as broken


def law_of_t(size, flip, seed):
    """Draws T by two binomials: fast, and exact for Algorithm 2."""
    rng = np.random.default_rng(seed)

    def draw_ones(*, ones, rounds):
        m = rng.binomial(ones, 1 - flip, rounds) + rng.binomial(size - ones, flip, rounds)
        return rng.binomial(size, m / size)

    return draw_ones


def test_the_bound_is_near_what_was_expected_and_below_the_exact_epsilon():
    result = audit(law_of_t(100, 0.1, 1), cluster_size=100, flip_probability=0.1, trials=2_000_000)
    (event,) = result.events
    assert result.bound.epsilon_lower == pytest.approx(event.expected_epsilon_lower, abs=0.08)
    assert 0.45 < result.bound.epsilon_lower < 0.7299
    assert result.bound.delta == 1e-4
    assert result.verdict is Verdict.PASS


def test_an_audit_of_a_data_set_against_itself_gives_0_on_40_seeds():
    # Two ends at 2.5e-5 each: more than 0 needs a gap of 5.7 standard deviations between the two counts, which one of
    # 80 audits reaches with probability below 1e-6. The control is not 0.
    for seed in range(40):
        draw = law_of_t(20, 0.1, seed)
        claim = {"cluster_size": 20, "flip_probability": 0.1, "trials": 50_000, "delta": 1e-3, "confidence": 1 - 5e-5}
        assert audit(draw, **claim, against_itself=True).bound.epsilon_lower == 0.0
        assert audit(draw, **claim, against_itself=True, both_directions=True).bound.epsilon_lower == 0.0
        assert audit(draw, **claim).bound.epsilon_lower > 0.0


def test_both_directions_share_the_error():
    result = audit(law_of_t(30, 0.05, 3), cluster_size=30, flip_probability=0.05, trials=200_000, both_directions=True)
    assert [event.direction for event in result.events] == ["add", "remove"]
    assert result.bound.direction in ("add", "remove")
    assert result.bound.epsilon_lower > 0.3


def test_a_mechanism_that_leaks_more_than_it_claims_shows_more_than_its_epsilon():
    # Claims f = .25 at s = 10 (exact .4718 at 1/s^2) and flips with .05 (exact above 1).
    result = audit(law_of_t(10, 0.05, 3), cluster_size=10, flip_probability=0.25, trials=200_000)
    assert result.bound.epsilon_lower > 0.4718
    assert result.verdict is Verdict.FAIL


def test_rounds_that_are_shown_let_the_verdict_see_more():
    for mechanism, verdict in ((broken.Simulator, Verdict.PASS), (broken.SelfExcluded, Verdict.FAIL)):
        simulator = mechanism(flip_probability=0.1, seed=1)
        claim = {"cluster_size": 50, "flip_probability": 0.1, "trials": 2000}
        assert audit(simulator.ones(50), **claim, draw_rounds=simulator).verdict is verdict
        assert audit(simulator.ones(50), **claim).verdict is Verdict.PASS  # T alone can't tell


@pytest.mark.parametrize(
    "mechanism",
    [
        broken.FlipTooSmall,
        broken.SelfExcluded,
        broken.FreshFlipForEachAsker,
        broken.Permutation,
        broken.BiasedIndex,
        broken.SharedSeed,
    ],
)
def test_one_command_with_one_threshold_catches_each_defect(mechanism):
    simulator = mechanism(flip_probability=0.1, seed=2)
    claim = {"cluster_size": 50, "flip_probability": 0.1, "trials": 10_000}
    assert audit(simulator.ones(50), **claim, draw_rounds=simulator).verdict is Verdict.FAIL


def test_the_record_is_plain_json_with_the_names_of_the_contract():
    result = audit(law_of_t(16, 0.1, 1), cluster_size=16, flip_probability=0.1, trials=1000)
    record = json.loads(json.dumps(result.record(), allow_nan=False))
    assert {"epsilon_lower", "confidence", "delta", "conformance", "verdict"} <= set(record)
    assert record["verdict"] == "pass"
    assert record["delta"] == 1 / 256
    assert all(0 <= p <= 1 for p in record["conformance"].values())
    assert "epsilon" not in record


@pytest.mark.parametrize(("flip", "size"), [(0.5, 10), (0.0, 10), (1e-12, 5), (0.1, 2), (0.3, 1)])
def test_extremes_give_finite_bounds(flip, size):
    result = audit(law_of_t(size, flip, 1), cluster_size=size, flip_probability=flip, trials=1000, delta=0.01)
    assert math.isfinite(result.bound.epsilon_lower)
    assert result.bound.epsilon_lower >= 0
    assert (result.bound.epsilon_lower == 0) == (flip == 0.5)
    assert result.verdict is Verdict.PASS


def test_a_cluster_of_one_needs_a_delta():
    assert default_delta(2) == 0.25
    with pytest.raises(ConfigurationError, match="delta"):
        default_delta(1)


@pytest.mark.parametrize(
    "wrong",
    [{"trials": 1}, {"trials": 1.5}, {"delta": 1.0}, {"confidence": 1.0}, {"ones": 10}, {"flip_probability": 0.6}],
)
def test_numbers_out_of_range_are_refused_by_name_before_anything_is_drawn(wrong):
    def never(**_):
        raise AssertionError

    claim = {"cluster_size": 10, "flip_probability": 0.1, "trials": 100}
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        audit(never, **claim | wrong)


def test_auditing_imports_no_accounting_even_indirectly():
    modules = [module.name for module in pkgutil.iter_modules(auditing.__path__)]
    assert "distinguisher" in modules
    imports = ";".join(f"import p2p_labeldp.auditing.{name}" for name in modules)
    program = f"import sys;{imports};print(sum('accounting' in name for name in sys.modules))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "0"
