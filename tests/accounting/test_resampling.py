"""The exact guarantee against the learner."""

import math
import sys
from fractions import Fraction
from subprocess import run

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting import brute_force
from accounting.exact_values import ROWS, WORST
from p2p_labeldp.accounting import planning
from p2p_labeldp.accounting.pools import Pool
from p2p_labeldp.accounting.resampling import epsilon, profile
from p2p_labeldp.accounting.tables import worst_delta
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import local_epsilon


def delta_at(size, flip_probability, point, reports=None):
    (loss,) = profile(cluster_size=size, flip_probability=flip_probability, epsilons=[point], reports=reports)
    return loss.delta


@pytest.mark.parametrize(("size", "reports", "flip_probability", "deltas", "at_one_over_s2"), ROWS)
def test_exact_values_are_met(size, reports, flip_probability, deltas, at_one_over_s2):
    losses = profile(cluster_size=size, flip_probability=flip_probability, epsilons=list(deltas), reports=reports)
    assert [loss.delta for loss in losses] == pytest.approx(list(deltas.values()), abs=1e-10)
    assert all(loss.delta >= exact - 1e-15 for loss, exact in zip(losses, deltas.values(), strict=True))
    found = epsilon(cluster_size=size, flip_probability=flip_probability, delta=1 / size**2, reports=reports)
    assert found == pytest.approx(at_one_over_s2, abs=1e-9)


@pytest.mark.parametrize(("size", "reports", "flip_probability", "point", "ones", "direction"), WORST)
def test_the_worst_count_and_direction_are_named(size, reports, flip_probability, point, ones, direction):
    (loss,) = profile(cluster_size=size, flip_probability=flip_probability, epsilons=[point], reports=reports)
    assert (loss.worst_ones, loss.direction) == (ones, direction)


@pytest.mark.parametrize(
    ("size", "flip_probability", "expected"),
    [(100, 0.25, 0.2385), (100, 0.1, 0.7299), (100, 0.01, 1.4015), (1000, 0.25, 0.0965), (1000, 0.01, 0.9801)],
)
def test_epsilon_at_one_over_s2_is_the_tabulated_one(size, flip_probability, expected):
    found = epsilon(cluster_size=size, flip_probability=flip_probability, delta=1 / size**2)
    assert found == pytest.approx(expected, abs=5e-5)


def test_the_worst_count_need_not_be_at_the_end():
    (loss,) = profile(cluster_size=10, flip_probability=0.46, epsilons=[0.011192])
    assert loss.worst_ones == 3


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("reports", [1, 3, 5])
def test_enumerating_every_flip_and_draw_gives_the_same(size, reports):
    flip = Fraction(1, 8)
    laws = {
        k: tuple(
            brute_force.reports_by_reporter([victim] + [1] * k + [0] * (size - 1 - k), flip, reports)
            for victim in (0, 1)
        )
        for k in range(size)
    }
    for exp_epsilon in (Fraction(1), Fraction(3, 2), Fraction(3)):
        exact = brute_force.worst(laws, exp_epsilon)
        assert delta_at(size, 0.125, math.log(exp_epsilon), reports) == pytest.approx(float(exact), abs=1e-11)


def test_epsilon_inverts_the_profile():
    for flip_probability, delta in ((0.25, 1e-3), (0.1, 1e-6), (0.02, 1e-2), (0.1, 1e-40), (1e-6, 1e-100)):
        found = epsilon(cluster_size=30, flip_probability=flip_probability, delta=delta)
        assert delta_at(30, flip_probability, found) <= delta
        assert delta_at(30, flip_probability, found * (1 - 1e-9)) >= delta * (1 - 1e-6)


def test_a_flip_of_one_half_tells_nothing():
    assert epsilon(cluster_size=10, flip_probability=0.5, delta=0.0) == 0.0
    (loss,) = profile(cluster_size=10, flip_probability=0.5, epsilons=[0.0])
    assert (loss.delta, loss.worst_ones, loss.direction) == (0.0, 0, "add")


def test_no_flip_is_never_private():
    floor = 1 - (1 - 1 / 12) ** 12
    losses = profile(cluster_size=12, flip_probability=0.0, epsilons=[0.0, 5.0, 800.0])
    assert [loss.delta for loss in losses] == pytest.approx([floor] * 3, rel=1e-10)
    assert epsilon(cluster_size=12, flip_probability=0.0, delta=0.6) == math.inf
    assert epsilon(cluster_size=12, flip_probability=0.0, delta=0.0) == math.inf
    assert epsilon(cluster_size=12, flip_probability=0.0, delta=0.7) == 0.0  # above total variation


def test_delta_zero_gives_the_largest_log_ratio():
    assert epsilon(cluster_size=12, flip_probability=0.1, delta=0.0) == pytest.approx(1.49020066, abs=5e-9)
    largest = epsilon(cluster_size=600, flip_probability=0.01, delta=0.0)  # P(T = 0) is far below any double
    assert epsilon(cluster_size=600, flip_probability=0.01, delta=1e-300) < largest < local_epsilon(0.01)
    by_laws = epsilon(cluster_size=20, flip_probability=0.1, delta=0.0)
    assert epsilon(cluster_size=20, flip_probability=0.1, delta=1e-300) == pytest.approx(by_laws, rel=1e-9)


def test_one_member_has_the_local_guarantee():
    assert epsilon(cluster_size=1, flip_probability=0.1, delta=0.0) == pytest.approx(math.log(9))
    assert delta_at(1, 0.1, 1.0) == pytest.approx(0.9 - math.e * 0.1)
    assert delta_at(1, 0.1, 1.0, reports=5) == pytest.approx(0.9 - math.e * 0.1)


def test_tiny_flips_and_huge_epsilons_are_answered():
    assert delta_at(10, 1e-12, 800.0) == 0.0  # beyond the local epsilon
    assert 0.64 < delta_at(10, 1e-12, 20.0) < 0.6513215599
    assert epsilon(cluster_size=10, flip_probability=1e-12, delta=0.01) < local_epsilon(1e-12)
    assert epsilon(cluster_size=2, flip_probability=1e-12, delta=0.0) < local_epsilon(1e-12)
    assert delta_at(10, 1e-320, 710.0) == pytest.approx(0.6513215599, rel=1e-9)


def test_more_reports_than_members_are_worse():
    assert epsilon(cluster_size=1000, flip_probability=0.01, delta=1e-6, reports=1100) == pytest.approx(1.077, abs=5e-4)


@given(
    size=st.integers(1, 25),
    reports=st.integers(1, 40),
    flip_probability=st.floats(0.0, 0.5),
    point=st.floats(0.0, 5.0),
)
@settings(max_examples=60, deadline=None)
def test_delta_falls_in_epsilon_and_in_the_flip_and_grows_with_the_reports(size, reports, flip_probability, point):
    here = delta_at(size, flip_probability, point, reports)
    slack = 1 + 1e-9
    assert 0 <= here <= 1
    assert delta_at(size, flip_probability, point + 0.1, reports) <= here * slack
    assert delta_at(size, min(0.5, flip_probability + 0.01), point, reports) <= here * slack
    assert here <= delta_at(size, flip_probability, point, reports + 1) * slack


@given(size=st.integers(2, 60), flip_probability=st.floats(1e-3, 0.45), delta=st.floats(1e-9, 0.5))
@settings(max_examples=40, deadline=None)
def test_epsilon_never_exceeds_the_local_one(size, flip_probability, delta):
    found = epsilon(cluster_size=size, flip_probability=flip_probability, delta=delta)
    assert 0 <= found <= local_epsilon(flip_probability)


@pytest.mark.parametrize(("size", "flip_probability", "reports", "point"), [
    (40, 0.02, 40, 1.0), (40, 0.02, 45, 1.0), (40, 0.2, 40, 0.1), (90, 0.03, 95, 1.0),
    (33, 0.1, 30, 0.0), (7, 0.0, 7, 1.0)
])  # fmt: skip
def test_the_fast_bound_is_the_exact_value(size, flip_probability, reports, point):
    exact = delta_at(size, flip_probability, point, reports)
    fast = worst_delta(Pool(size, flip_probability, 1e-24), reports, point)
    assert exact * (1 - 1e-9) <= fast <= exact * (1 + 1e-9) + 1e-22
    cut = worst_delta(Pool(size, flip_probability, 1e-3), reports, point)  # a coarse window is charged, not forgotten
    assert exact * (1 - 1e-9) <= cut <= exact + 0.01


def test_all_label_counts_of_a_pool_have_laws_that_sum_to_one():
    pool = Pool(75, 0.03, 0.0)
    for chunk in pool.chunks():
        assert pool.laws(chunk).sum(axis=1) == pytest.approx(np.ones(chunk.last - chunk.first + 1), rel=1e-12)
        means = pool.laws(chunk) @ np.arange(chunk.low, chunk.high + 1)
        counts = np.arange(chunk.first, chunk.last + 1)
        assert means == pytest.approx(counts * 0.97 + (74 - counts) * 0.03, rel=1e-12)


@pytest.mark.parametrize(("field", "arguments"), [
    ("cluster_size", {"cluster_size": 0}),
    ("cluster_size", {"cluster_size": True}),
    ("cluster_size", {"cluster_size": 2.5}),
    ("reports", {"reports": 0}),
    ("flip_probability", {"flip_probability": 0.51}),
    ("flip_probability", {"flip_probability": math.nan}),
    ("flip_probability", {"flip_probability": -0.1}),
    ("delta", {"delta": 1.0}),
    ("delta", {"delta": -1e-9}),
    ("delta", {"delta": math.nan}),
])  # fmt: skip
def test_impossible_arguments_are_refused_by_name(field, arguments):
    good = {"cluster_size": 5, "flip_probability": 0.1, "delta": 0.1}
    assert epsilon(**good) > 0
    with pytest.raises(ConfigurationError, match=field):
        epsilon(**{**good, **arguments})


def test_flips_too_small_for_doubles_count_as_none():
    assert math.isfinite(epsilon(cluster_size=5, flip_probability=1e-300, delta=0.01))
    for size in (5, 2000):
        for flip_probability in (1e-301, 5e-324):
            assert epsilon(cluster_size=size, flip_probability=flip_probability, delta=0.01) == math.inf
            assert delta_at(size, flip_probability, 5.0) == delta_at(size, 0.0, 5.0)
    assert planning.roster_epsilon(5, 5, 1e-301, 0.01) == math.inf
    assert not planning.roster_fits(5, 5, 1e-301, 700.0, 0.01)


@pytest.mark.parametrize("point", [-0.1, math.nan, math.inf])
def test_impossible_epsilons_are_refused(point):
    with pytest.raises(ConfigurationError, match="epsilon"):
        delta_at(5, 0.1, point)


def test_a_peer_needs_no_scipy_for_its_roster():
    program = (
        "import sys, p2p_labeldp.accounting.planning as p; "
        "p.roster_profile(20, 19, .06, 1.); print('scipy' in sys.modules)"
    )
    assert run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
