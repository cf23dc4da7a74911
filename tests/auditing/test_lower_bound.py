"""A lower bound is conservative, finite, never negative, and never looks like a guarantee."""

import math

import numpy as np
import pytest

from p2p_labeldp.auditing.lower_bound import (
    LowerBound,
    Tally,
    clopper_pearson_high,
    clopper_pearson_low,
    lower_bound,
)
from p2p_labeldp.errors import ConfigurationError


def tally(hits=500, trials=1000, hits_neighbour=100, trials_neighbour=1000, direction="add"):
    return Tally(
        direction=direction,
        hits=hits,
        trials=trials,
        hits_neighbour=hits_neighbour,
        trials_neighbour=trials_neighbour,
    )


def binomial_tail(n, p, k):
    """P(Bin(n, p) >= k) from the definition."""
    return math.fsum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


@pytest.mark.parametrize(("x", "n", "alpha"), [(1, 10, 0.025), (7, 20, 0.005), (199, 200, 0.05), (3, 500, 1e-6)])
def test_clopper_pearson_ends_solve_their_defining_equations(x, n, alpha):
    low, high = float(clopper_pearson_low(x, n, alpha)), float(clopper_pearson_high(x, n, alpha))
    assert binomial_tail(n, low, x) == pytest.approx(alpha, rel=1e-7)
    assert 1 - binomial_tail(n, high, x + 1) == pytest.approx(alpha, rel=1e-7)


def test_clopper_pearson_ends_at_no_and_all_successes():
    assert clopper_pearson_low(0, 50, 0.01) == 0.0
    assert clopper_pearson_high(50, 50, 0.01) == 1.0
    assert clopper_pearson_high(0, 50, 0.01) == pytest.approx(1 - 0.01 ** (1 / 50))
    assert clopper_pearson_low(50, 50, 0.01) == pytest.approx(0.01 ** (1 / 50))


def test_a_bound_is_the_logarithm_of_the_ratio_of_its_ends():
    bound = lower_bound(tally(), delta=0.01, confidence=0.95)
    low, high = float(clopper_pearson_low(500, 1000, 0.025)), float(clopper_pearson_high(100, 1000, 0.025))
    assert bound.epsilon_lower == pytest.approx(math.log((low - 0.01) / high))


def test_taking_the_larger_of_two_halves_the_error_of_each():
    alone = lower_bound(tally(), delta=0.01, confidence=0.975)
    both = lower_bound(tally(hits=100, direction="remove"), tally(), delta=0.01, confidence=0.95)
    assert both.epsilon_lower == pytest.approx(alone.epsilon_lower)
    assert both.direction == "add"
    assert both.epsilon_lower < lower_bound(tally(), delta=0.01, confidence=0.95).epsilon_lower


@pytest.mark.parametrize(
    "seen",
    [
        tally(hits=0, hits_neighbour=0),
        tally(hits=1000, hits_neighbour=0),
        tally(hits=1000, hits_neighbour=1000),
        tally(hits=0, hits_neighbour=1000),
        tally(hits=1, trials=1, hits_neighbour=0, trials_neighbour=1),
        tally(hits=10**9, trials=10**9, hits_neighbour=0, trials_neighbour=10**9),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.5, 1 - 1e-12])
@pytest.mark.parametrize("confidence", [1e-9, 0.95, 1 - 1e-9])
def test_no_counts_give_a_negative_or_infinite_bound(seen, delta, confidence):
    value = lower_bound(seen, delta=delta, confidence=confidence).epsilon_lower
    assert math.isfinite(value)
    assert value >= 0.0


def test_coverage_is_at_least_the_confidence():
    # Randomized response with epsilon = 1 exactly; 4,000 audits at 90 %: more than 10 % + 4.9 sd above the truth would
    # happen with probability below 1e-6.
    rng = np.random.default_rng(5)
    p = math.e / (1 + math.e)
    over = 0
    for _ in range(4000):
        hits, other = rng.binomial(300, p), rng.binomial(300, 1 - p)
        seen = tally(hits=int(hits), trials=300, hits_neighbour=int(other), trials_neighbour=300)
        over += lower_bound(seen, delta=0.0, confidence=0.9).epsilon_lower > 1.0
    assert over <= 4000 * 0.1 + 4.9 * math.sqrt(4000 * 0.09)


def test_a_lower_bound_has_no_epsilon_and_says_what_it_is():
    bound = lower_bound(tally(), delta=0.01)
    assert isinstance(bound, LowerBound)
    assert not hasattr(bound, "epsilon")
    assert "at least" in str(bound)
    assert "no guarantee" in str(bound)


@pytest.mark.parametrize(("field", "value"), [("delta", 1.0), ("delta", -0.1), ("delta", math.nan), ("delta", True)])
def test_delta_outside_its_range_is_refused(field, value):
    with pytest.raises(ConfigurationError, match=r"delta.*\[0, 1\)"):
        lower_bound(tally(), delta=value)


@pytest.mark.parametrize("value", [0.0, 1.0, math.nan, 2, True])
def test_confidence_outside_its_range_is_refused(value):
    with pytest.raises(ConfigurationError, match=r"confidence.*\(0, 1\)"):
        lower_bound(tally(), delta=0.0, confidence=value)


def test_impossible_counts_are_refused():
    with pytest.raises(ConfigurationError, match="hits"):
        tally(hits=1001)
    with pytest.raises(ConfigurationError, match="trials"):
        tally(trials=0)
    with pytest.raises(ConfigurationError, match="tallies"):
        lower_bound(delta=0.0)
