"""Rosters are planned so that their guarantee holds whoever fails to answer."""

import math

import pytest

from p2p_labeldp.accounting import planning
from p2p_labeldp.accounting.binomial import pmf
from p2p_labeldp.accounting.resampling import profile
from p2p_labeldp.errors import ClusterTooSmall, ConfigurationError


def naive_roster_delta(size, holding, flip_probability, point):
    """The definition, term by term."""
    worst = 0.0
    for pool in range(1, size + 1):
        weights = pmf(size, pool / size, 0, size)
        total = 0.0
        for reports in range(holding, size + 1):
            (loss,) = profile(cluster_size=pool, flip_probability=flip_probability, epsilons=[point], reports=reports)
            total += weights[reports] * loss.delta
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize(("size", "holding", "flip_probability", "point"), [
    (3, 3, 0.109, 1.0), (10, 10, 0.073, 1.0), (20, 19, 0.06, 1.0),
    (12, 6, 0.2, 0.5), (15, 1, 0.3, 0.2), (8, 8, 0.001, 3.0)
])  # fmt: skip
def test_the_roster_profile_is_the_sum_it_claims_to_be(size, holding, flip_probability, point):
    exact = naive_roster_delta(size, holding, flip_probability, point)
    found = planning.roster_profile(size, holding, flip_probability, point)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("size", "holding", "flip_probability"), [
    (3, 3, 0.109), (10, 10, 0.073), (20, 19, 0.060), (50, 48, 0.0374), (75, 72, 0.0304), (190, 181, 0.0196)
])  # fmt: skip
def test_rosters_of_the_design_are_planned_with_no_more_flips(size, holding, flip_probability):
    plan = planning.plan_roster(size, 1.0, 0.05)
    assert (plan.holding_minimum, plan.delta) == (holding, 1 / size**2)
    assert 0.99 * flip_probability < plan.flip_probability <= flip_probability
    assert planning.roster_profile(size, holding, plan.flip_probability, 1.0) <= 1 / size**2


@pytest.mark.parametrize(("size", "target", "loss"), [(2, 0.3, 0.0), (20, 0.5, 0.1), (30, 4.0, 0.05), (25, 12.0, 0.0)])
def test_a_plan_fits_and_the_next_smaller_flip_does_not(size, target, loss):
    plan = planning.plan_roster(size, target, loss)
    holding = plan.holding_minimum
    assert planning.roster_fits(size, holding, plan.flip_probability, target, plan.delta)
    smaller = plan.flip_probability * (1 - 2e-4)
    assert not planning.roster_fits(size, holding, smaller, target, plan.delta)
    assert planning.roster_epsilon(size, holding, plan.flip_probability, plan.delta) <= target * (1 + 1e-6)


def test_planned_flips_have_five_digits():
    flip_probability = planning.plan_roster(20, 1.0, 0.05).flip_probability
    assert float(f"{flip_probability:.4e}") == flip_probability


def test_the_roster_epsilon_is_one_that_was_evaluated_to_fit():
    found = planning.roster_epsilon(20, 19, 0.1, 1 / 400)
    assert planning.roster_profile(20, 19, 0.1, found) <= 1 / 400
    assert planning.roster_profile(20, 19, 0.1, found * (1 - 1e-5)) > 1 / 400


def test_rosters_at_the_extremes():
    assert planning.roster_profile(10, 9, 0.5, 0.0) == 0.0
    assert planning.roster_epsilon(10, 9, 0.5, 0.01) == 0.0
    assert planning.roster_epsilon(10, 9, 0.0, 0.01) == math.inf
    assert planning.roster_profile(10, 9, 0.1, math.log(9) + 1e-9) == 0.0  # local
    assert planning.roster_profile(10, 9, 0.0, 800.0) > 0.65
    assert planning.roster_profile(1, 1, 0.1, 1.0) == pytest.approx(0.9 - math.e / 10)


def test_the_coins_of_64_bits_are_charged():
    """At f = 0.2 and eps just below the local one the exact delta vanishes and the charge remains."""
    assert 0 < planning.roster_profile(30, 30, 0.4, 0.4) < 1e-15
    assert not planning.roster_fits(30, 30, 0.4, 0.4, 0.0)


@pytest.mark.parametrize(
    ("size", "loss", "holding"),
    [(20, 0.05, 19), (3, 0.05, 3), (100, 0.05, 95), (100, 0.29, 71), (1000, 0.001, 999), (10, 0.7, 3),
     (5, 0.99, 1), (7, 0.0, 7)],
)  # fmt: skip
def test_the_holding_minimum_takes_the_loss_as_it_is_written(size, loss, holding):
    assert planning.holding_minimum(size, loss) == holding


def test_a_cluster_of_one_is_refused():
    with pytest.raises(ClusterTooSmall):
        planning.plan_roster(1, 1.0, 0.05)
    assert planning.roster_delta(2) == 0.25


@pytest.mark.parametrize("target", [0.0, -1.0, math.nan, math.inf, True])
def test_impossible_targets_are_refused(target):
    with pytest.raises(ConfigurationError, match="target_epsilon"):
        planning.plan_roster(10, target, 0.05)


@pytest.mark.parametrize("loss", [-0.01, 1.0, math.nan, True])
def test_impossible_losses_are_refused(loss):
    with pytest.raises(ConfigurationError, match="tolerated_loss"):
        planning.plan_roster(10, 1.0, loss)


@pytest.mark.parametrize("holding", [0, 11])
def test_impossible_holding_minima_are_refused(holding):
    with pytest.raises(ConfigurationError, match="holding_minimum"):
        planning.roster_profile(10, holding, 0.1, 1.0)
