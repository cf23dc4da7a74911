"""The sum of private reports: moments as exact draws have them, whole vectors clipped, zeros and NaNs as peers do."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from p2p_labeldp.accounting.federated import safe_projection
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.report_sum import ReportSum
from p2p_labeldp.mechanisms.separated import Separated

D = 5
MECHANISM = Separated.calibrated(dimension=D, epsilon_direction=4.0, epsilon_magnitude=3.0, max_radius=2.0)
RHO = safe_projection(MECHANISM)
UPDATES = [np.array([0.5, 0.0, -0.5, 0.1, 0.0]), np.array([3.0, -4.0, 0.0, 0.0, 1.0]), np.zeros(D)]
DRAWS = 4_000
FAILURE = 1e-6


def drawn(mode, *, projection=RHO, updates=UPDATES, mechanism=MECHANISM, draws=DRAWS, seed=3):
    adding, rng = ReportSum(mechanism=mechanism, projection=projection, mode=mode), np.random.default_rng(seed)
    return np.array([adding.of(updates, rng).total for _ in range(draws)])


def moments(samples):
    """Of each draw: its coordinates, and all products of two; averages of these are the first two moments."""
    pairs = [samples[:, i] * samples[:, j] for i in range(D) for j in range(i, D)]
    return np.concatenate([samples, np.stack(pairs, axis=1)], axis=1)


def furthest(one, other):
    """Largest distance between the moments of two samples, in standard deviations."""
    a, b = moments(one), moments(other)
    return float((np.abs(a.mean(0) - b.mean(0)) / np.sqrt(a.var(0) / len(a) + b.var(0) / len(b))).max())


LIMIT = float(stats.norm.isf(FAILURE / (2 * (D + D * (D + 1) // 2))))


@pytest.fixture(scope="module")
def exact():
    return drawn("exact")


def test_the_gaussian_has_the_first_two_moments_of_drawn_reports(exact):
    assert furthest(exact, drawn("moments", seed=4)) < LIMIT


def test_a_gaussian_of_a_fifth_less_noise_is_told_from_drawn_reports(exact):
    """The control: without it the test above might see nothing."""
    mean = exact.mean(0)
    assert furthest(exact, mean + 0.8 * (drawn("moments", seed=4) - mean)) > LIMIT


def test_a_projection_that_shrinks_has_the_same_moments_in_both():
    shrinking = 0.4 * RHO
    one = drawn("exact", projection=shrinking, draws=DRAWS)
    assert furthest(one, drawn("moments", projection=shrinking, draws=DRAWS, seed=4)) < LIMIT
    assert furthest(one, drawn("moments", draws=DRAWS, seed=4)) > LIMIT


def test_the_mean_of_the_sum_is_the_sum_of_the_updates_clipped_as_whole_vectors(exact):
    long = UPDATES[1] * 2.0 / np.linalg.norm(UPDATES[1])
    expected = UPDATES[0] + long
    off = np.abs(exact.mean(0) - expected) / (exact.std(0) / math.sqrt(DRAWS))
    assert off.max() < stats.norm.isf(FAILURE / (2 * D))
    by_coordinate = UPDATES[0] + np.clip(UPDATES[1], -2.0, 2.0)  # the control: another way of clipping
    assert (np.abs(exact.mean(0) - by_coordinate) / (exact.std(0) / math.sqrt(DRAWS))).max() > 6


def test_without_privacy_the_sum_is_that_of_the_clipped_updates():
    long = UPDATES[1] * 2.0 / np.linalg.norm(UPDATES[1])
    summed = ReportSum(mechanism=MECHANISM, projection=RHO, mode="clipped").of(UPDATES, np.random.default_rng(0))
    assert summed.total == pytest.approx(UPDATES[0] + long, rel=1e-12)
    assert (summed.reports, summed.refused) == (3, 0)


@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1e30])
def test_single_precision_keeps_directions_of_extreme_length(scale):
    update = (np.array([1.0, 0, 0, 0, 0]) * scale).astype(np.float32)
    summed = ReportSum(mechanism=MECHANISM, projection=RHO, mode="moments").of([update], np.random.default_rng(0))
    assert np.isfinite(summed.total).all()


@pytest.mark.parametrize("mode", ["exact", "moments", "clipped"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_update_that_is_not_finite_counts_as_one_of_zeros(mode, bad):
    adding = ReportSum(mechanism=MECHANISM, projection=RHO, mode=mode)
    refused = adding.of([np.full(D, bad)], np.random.default_rng(5))
    zeros = adding.of([np.zeros(D)], np.random.default_rng(5))
    assert (refused.refused, zeros.refused) == (1, 0)
    assert refused.total.tolist() == zeros.total.tolist()
    assert bool(refused.total.any()) == (mode != "clipped")  # a report all the same, where there is privacy


def test_nobody_adds_up_to_zeros():
    for mode in ("exact", "moments", "clipped"):
        summed = ReportSum(mechanism=MECHANISM, projection=RHO, mode=mode).of([], np.random.default_rng(0))
        assert (summed.reports, summed.total.tolist()) == (0, [0.0] * D)


def test_the_same_seed_gives_the_same_sum_and_another_another():
    assert (drawn("moments", draws=3) == drawn("moments", draws=3)).all()
    assert (drawn("moments", draws=3) != drawn("moments", draws=3, seed=8)).all()


def test_another_shape_or_type_is_an_error_and_no_refusal():
    adding = ReportSum(mechanism=MECHANISM, projection=RHO, mode="moments")
    for wrong in (np.zeros(D + 1), np.zeros((1, D)), np.zeros(D, dtype=complex)):
        with pytest.raises(ConfigurationError):
            adding.of([wrong], np.random.default_rng(0))


@pytest.mark.parametrize("change", [{"projection": 0.0}, {"projection": math.nan}, {"mode": "guess"}])
def test_what_is_out_of_range_is_refused(change):
    with pytest.raises(ConfigurationError, match=next(iter(change))):
        ReportSum(**{"mechanism": MECHANISM, "projection": RHO, "mode": "exact", **change})


def test_moments_are_refused_where_the_covariance_is_not_isotropic():
    off = replace(MECHANISM, direction=PrivUnit2.of_parameters(dimension=D, gamma=0.2, cap_probability=0.9))
    with pytest.raises(ConfigurationError, match="optimum"):
        ReportSum(mechanism=off, projection=RHO, mode="moments")
    cube = Separated.calibrated(
        dimension=D, epsilon_direction=4.0, epsilon_magnitude=3.0, max_radius=2.0, norm="l-infinity"
    )
    with pytest.raises(ConfigurationError, match="PrivUnit2"):
        ReportSum(mechanism=cube, projection=RHO, mode="moments")


@pytest.mark.parametrize("epsilon", [1.0, 50.0, 500.0])
@pytest.mark.parametrize("dimension", [2, 1000, 1_068_298, 3_274_634])
def test_calibrated_directions_are_isotropic_enough_at_every_size(epsilon, dimension):
    mechanism = Separated.calibrated(
        dimension=dimension, epsilon_direction=epsilon, epsilon_magnitude=10.0, max_radius=1.0
    )
    ReportSum(mechanism=mechanism, projection=safe_projection(mechanism), mode="moments")
