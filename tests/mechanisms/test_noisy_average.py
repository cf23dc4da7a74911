"""The learner's average: the expected divisor, the norm of one report, the noise of an empty round."""

import math

import numpy as np
import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.noisy_average import NoisyAverage
from p2p_labeldp.mechanisms.norms import clip

AVERAGE = NoisyAverage(dimension=3, projection=5.0, expected_cohort=4.0, sigma=0.5)


def quiet():
    return NoisyAverage(dimension=3, projection=5.0, expected_cohort=4.0, sigma=0.0)


def test_the_sum_is_divided_by_what_was_expected_whoever_came():
    one = np.array([4.0, 0.0, 0.0])
    for count in (0, 1, 9):
        assert quiet().release([one] * count, np.random.default_rng(0)).tolist() == [float(count), 0.0, 0.0]


def test_one_report_moves_the_sum_by_the_projection_at_most():
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1.0, 7.0, 1e300):
        for _ in range(50):
            shrunk = AVERAGE.shrink(scale * rng.standard_normal(3))
            assert np.linalg.norm(shrunk) <= 5.0
    assert np.linalg.norm(1e300 * np.array([1.0, 2.0, 2.0]) / 1e300) <= 5.0
    assert AVERAGE.shrink(np.array([3e300, 0.0, 4e300])) == pytest.approx([3.0, 0.0, 4.0])
    report = np.array([3.0, 4.0, 0.0])
    assert AVERAGE.shrink(report) is not None
    assert (AVERAGE.shrink(report) == report).all()  # on the sphere: nothing is changed


def test_noise_has_its_deviation_and_does_not_depend_on_the_cohort():
    draws = np.array([AVERAGE.release([], np.random.default_rng(i)) for i in range(4000)])
    assert draws.mean(axis=0) == pytest.approx([0, 0, 0], abs=5 * 0.5 / 4000**0.5)
    assert draws.std(axis=0) == pytest.approx([0.5] * 3, rel=5 / 8000**0.5)
    report = np.array([4.0, 0.0, 0.0])
    with_one = AVERAGE.release([report], np.random.default_rng(7))
    assert with_one == pytest.approx(draws[7] + report / 4.0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_refused_before_norms_are_compared(value):
    for report in (np.array([value, 0.0, 0.0]), np.array([0.0, 0.0, value])):
        with pytest.raises(ConfigurationError, match="NaN or infinite"):
            AVERAGE.release([report], np.random.default_rng(0))
    norm = math.nan
    assert not norm > 5.0  # what a comparison alone would have let pass


def test_another_shape_is_refused():
    with pytest.raises(ConfigurationError, match="shape"):
        AVERAGE.release([np.zeros(4)], np.random.default_rng(0))


@pytest.mark.parametrize(
    "change",
    [{"projection": 0.0}, {"projection": math.nan}, {"expected_cohort": 0.0}, {"sigma": -1.0}, {"sigma": math.inf}],
)
def test_impossible_averages_are_refused(change):
    with pytest.raises(ConfigurationError, match=f"^{next(iter(change))}: "):
        NoisyAverage(**{"dimension": 3, "projection": 5.0, "expected_cohort": 4.0, "sigma": 0.5, **change})


def test_clipping_keeps_the_direction_and_takes_any_width():
    for kind in (np.float32, np.float64, np.int64):
        clipped = clip(np.array([30, 40], dtype=kind), 5.0, 2)
        assert clipped.dtype == np.float64
        assert clipped == pytest.approx([3.0, 4.0])
    assert np.linalg.norm(clip(np.full(10**5, 1e-3), 0.1, 10**5)) == pytest.approx(0.1, rel=1e-12)
