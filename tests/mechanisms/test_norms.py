"""Updates are checked before anything else, and measured in double precision whatever they come as."""

import math

import numpy as np
import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.norms import euclidean, euclidean_rows, maximum, maximum_rows

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("measure", [euclidean, maximum])
@pytest.mark.parametrize("bad", [[1.0, NAN], [INF, 1.0], [-INF, INF], [NAN, 1e300]])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nan_and_infinity_are_refused(measure, bad, dtype):
    with np.errstate(over="ignore"):
        update = np.array(bad).astype(dtype)
    with pytest.raises(ConfigurationError, match="update: an entry is NaN or infinite"):
        measure(update, 2)
    assert measure(np.array([1.0, 2.0], dtype=dtype), 2).norm > 0


@pytest.mark.parametrize("rows", [euclidean_rows, maximum_rows])
def test_rows_with_nan_or_infinity_are_refused(rows):
    for bad in (NAN, INF):
        with pytest.raises(ConfigurationError, match="NaN or infinite"):
            rows(np.array([[1.0, 2.0], [bad, 0.0]]), 2)


@pytest.mark.parametrize(
    "update",
    [np.array([True, False]), np.array([1j, 0]), np.array(["1", "2"]), np.array([1, None]), np.array([2**70, 1])],
)
def test_entries_that_are_no_real_numbers_are_refused(update):
    with pytest.raises(ConfigurationError, match="update: entries of type"):
        euclidean(update, 2)


@pytest.mark.parametrize("update", [np.zeros(3), np.zeros((2, 1)), np.float64(1.0), np.zeros((1, 2))])
def test_other_shapes_are_refused(update):
    with pytest.raises(ConfigurationError, match="update: shape"):
        euclidean(update, 2)


@pytest.mark.parametrize("size", [1e300, 1e-300, 5e-324, 1e160, 1e-160, 1.0])
def test_norms_of_extreme_updates_neither_overflow_nor_vanish(size):
    measured = euclidean(np.array([3.0, 4.0]) * size, 2)
    assert measured.norm > 0
    assert measured.radius == pytest.approx(5.0 * size, rel=1e-12) or size == 5e-324
    assert measured.radius > 0
    units, norms = euclidean_rows(np.array([[3.0, 4.0]]) * size, 2)
    assert np.linalg.norm(units[0]) == pytest.approx(1.0, rel=1e-12)
    assert norms[0] == pytest.approx(measured.radius, rel=1e-12)


def test_a_norm_beyond_the_doubles_is_infinite_and_its_direction_stays():
    huge = np.full(100, 1.7e308)
    measured = euclidean(huge, 100)
    assert measured.radius == INF
    assert measured.values / measured.norm == pytest.approx(np.full(100, 0.1), rel=1e-12)
    units, norms = euclidean_rows(huge[None, :], 100)
    assert norms[0] == INF
    assert units[0] == pytest.approx(np.full(100, 0.1), rel=1e-12)


def test_zero_has_norm_zero():
    assert euclidean(np.zeros(4), 4).radius == 0.0
    units, norms = euclidean_rows(np.zeros((2, 4)), 4)
    assert not units.any()
    assert not norms.any()


def test_float32_is_summed_in_float64():
    update = np.full(3_000_000, 0.1, dtype=np.float32)  # a float32 sum of so many squares is off by 1e-5 and more
    exact = math.sqrt(3_000_000) * float(np.float32(0.1))
    assert euclidean(update, 3_000_000).norm == pytest.approx(exact, rel=1e-12)
    tiny = np.full(4, 1e-30, dtype=np.float32)  # its squares are 0 in float32
    assert euclidean(tiny, 4).norm == pytest.approx(2 * float(np.float32(1e-30)), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float16, np.longdouble])
def test_integers_and_other_floats_are_taken(dtype):
    assert euclidean(np.array([3, 4], dtype=dtype), 2).norm == 5.0


def test_lists_and_strided_views_are_taken():
    assert euclidean([3, 4], 2).norm == 5.0
    assert euclidean(np.arange(10.0)[::2], 5).norm == pytest.approx(math.sqrt(4 + 16 + 36 + 64))


def test_the_maximum_norm_is_the_largest_entry():
    assert maximum(np.array([1.0, -3.0, 2.0]), 3).norm == 3.0
    units, peaks = maximum_rows(np.array([[1.0, -4.0], [0.0, 0.0], [1e-320, 0.0]]), 2)
    assert peaks.tolist() == [4.0, 0.0, 1e-320]
    assert units.tolist() == [[0.25, -1.0], [0.0, 0.0], [1.0, 0.0]]
