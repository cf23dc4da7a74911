"""The least flip for every target, or the least cluster for a flip."""

import math

import pytest

from p2p_labeldp.accounting import coalition, planning, resampling
from p2p_labeldp.accounting.coalition import Coalition
from p2p_labeldp.accounting.targets import least_size, plan
from p2p_labeldp.errors import ClusterTooSmall, ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import local_epsilon


@pytest.mark.parametrize(
    ("size", "flip"), [(50, 0.0357), (100, 0.0235), (200, 0.0147), (500, 0.0075), (1000, 0.0044), (2000, 0.0025)]
)
def test_the_least_flip_for_epsilon_one_is_the_tabulated_one_before_rounding_up(size, flip):
    found = plan(cluster_size=size, target_epsilon=1.0)
    assert flip - 1e-4 < found.flip_probability <= flip
    assert found.epsilon <= 1.0
    assert found.epsilon == resampling.epsilon(
        cluster_size=size, flip_probability=found.flip_probability, delta=1 / size**2
    )
    assert (found.binding, found.holding_minimum, found.delta) == ("learner", None, 1 / size**2)


@pytest.mark.parametrize(
    ("size", "target", "delta"), [(2, 0.5, None), (10, 0.05, 1e-6), (40, 3.0, None), (30, 1.0, 0.2)]
)
def test_a_little_less_flip_misses_the_target(size, target, delta):
    found = plan(cluster_size=size, target_epsilon=target, delta=delta)
    assert found.epsilon <= target
    less = found.flip_probability * (1 - 2e-4)
    assert resampling.epsilon(cluster_size=size, flip_probability=less, delta=found.delta) > target


def test_the_plateau_at_one_is_crossed():
    """f for eps 0.9 is four times that for 1 at s = 1000."""
    below = plan(cluster_size=1000, target_epsilon=0.9).flip_probability
    above = plan(cluster_size=1000, target_epsilon=1.0).flip_probability
    assert 3.5 < below / above < 4.5


def test_a_local_target_can_bind():
    found = plan(cluster_size=100, target_epsilon=1.0, local_target=2.0)
    assert (found.binding, found.local_epsilon <= 2.0) == ("local", True)
    assert found.flip_probability == pytest.approx(1 / (1 + math.e**2), rel=2e-4)
    loose = plan(cluster_size=100, target_epsilon=1.0, local_target=5.0)
    assert loose.binding == "learner"


def test_a_coalition_can_bind():
    found = plan(cluster_size=40, target_epsilon=1.0, colluders=1)
    assert found.binding == "coalition"
    group = Coalition(cluster_size=40, colluders=1, flip_probability=found.flip_probability)
    assert coalition.epsilon(group, 1 / 1600) == found.epsilon <= 1.0
    apart = plan(cluster_size=40, target_epsilon=0.5, colluders=1, coalition_target=3.0)
    assert apart.binding == "learner" or apart.epsilon <= 3.0


def test_a_tolerated_loss_asks_for_more_flips():
    exact = plan(cluster_size=20, target_epsilon=1.0)
    lossy = plan(cluster_size=20, target_epsilon=1.0, tolerated_loss=0.05)
    both = plan(cluster_size=20, target_epsilon=1.0, tolerated_loss=0.05, colluders=1, delta=0.1)
    assert lossy.holding_minimum == 19
    assert exact.flip_probability < lossy.flip_probability == pytest.approx(0.0596, abs=1e-4)
    assert both.binding == "coalition"
    assert max(exact.epsilon, lossy.epsilon, both.epsilon) <= 1.0


def test_one_member_is_refused_unless_a_delta_is_given():
    with pytest.raises(ClusterTooSmall):
        plan(cluster_size=1, target_epsilon=1.0)
    found = plan(cluster_size=1, target_epsilon=1.0, delta=0.1)
    assert found.epsilon <= 1.0 < local_epsilon(found.flip_probability)


def test_the_least_size_holds_and_one_less_does_not():
    size = least_size(flip_probability=0.1, target_epsilon=0.5, most=5000)

    def at(size):
        return resampling.epsilon(cluster_size=size, flip_probability=0.1, delta=1 / size**2)

    assert at(size) <= 0.5 < at(size - 1)
    assert least_size(flip_probability=0.5, target_epsilon=0.1, most=100) == 2  # 1/s^2 says nothing of one


def test_one_member_is_enough_where_its_own_flip_holds_the_target():
    assert least_size(flip_probability=0.4, target_epsilon=0.5, delta=1e-6, most=100) == 1  # local: .405
    assert least_size(flip_probability=0.1, target_epsilon=0.5, delta=1e-6, most=1000) > 1


def test_a_target_no_size_holds_is_refused():
    with pytest.raises(ConfigurationError, match="members do not hold"):
        least_size(flip_probability=0.001, target_epsilon=0.1, most=200)


@pytest.mark.parametrize(("field", "arguments"), [
    ("target_epsilon", {"target_epsilon": 0.0}),
    ("target_epsilon", {"target_epsilon": math.inf}),
    ("local_target", {"local_target": math.nan}),
    ("delta", {"delta": 1.0}),
    ("colluders", {"colluders": -1}),
    ("colluders", {"colluders": 10}),
    ("tolerated_loss", {"tolerated_loss": 1.0}),
])  # fmt: skip
def test_impossible_targets_are_refused_by_name(field, arguments):
    with pytest.raises(ConfigurationError, match=field):
        plan(**{"cluster_size": 10, "target_epsilon": 1.0, **arguments})


def test_more_classes_are_planned_by_the_bound_of_a_roster_that_loses_nobody():
    found = plan(cluster_size=30, target_epsilon=1.0, num_classes=3, local_target=4.0)
    assert found.holding_minimum is None
    assert (found.binding, found.local_epsilon) == ("learner", local_epsilon(found.flip_probability, 3))
    assert 0.99 < found.epsilon <= 1
    assert found.flip_probability == planning.plan_roster(30, 1.0, 0.0, num_classes=3).flip_probability
    local = plan(cluster_size=30, target_epsilon=1.0, num_classes=3, local_target=0.1)
    assert local.binding == "local"
    assert local.local_epsilon <= 0.1
