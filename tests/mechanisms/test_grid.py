"""The last digits of a release tell nothing: every output is on a grid that does not depend on the update."""

import numpy as np
import pytest

from p2p_labeldp.mechanisms import direction
from p2p_labeldp.mechanisms.grid import on_grid, stretch
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
from p2p_labeldp.mechanisms.separated import Separated

DIMENSION, DRAWS = 64, 4000


def trailing_zeros(values):
    mantissa = (np.frexp(values)[0] * 2.0**53).astype(np.int64)
    return np.log2(np.maximum(1, mantissa & -mantissa)).astype(int)


def share_of_round_numbers(draw, rng):
    """In how many draws an update along e_0, and one along e_1, ends in 6 zeros at coordinate 0."""
    return [np.mean([trailing_zeros(draw(row, rng)[0]) >= 6 for _ in range(DRAWS)]) for row in np.eye(DIMENSION)[:2]]


@pytest.mark.parametrize("kind", [PrivUnit2, PrivUnitG])
def test_last_digits_do_not_tell_which_entry_of_an_update_is_zero(monkeypatch, kind):
    mechanism = kind.calibrated(dimension=DIMENSION, epsilon=0.01)
    rng = np.random.default_rng(0)
    assert share_of_round_numbers(mechanism.privatise, rng) == [1.0, 1.0]
    monkeypatch.setattr(direction, "on_grid", lambda out, _length: out)
    along, across = share_of_round_numbers(mechanism.privatise, rng)
    assert along > 2.5 * across  # at a level of .01: without a grid it is some four times as likely


@pytest.mark.parametrize("update", [np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([1e-3, 7.0, 1e-300])])
def test_one_at_a_time_or_many_at_once_all_are_on_the_grid(update):
    mechanism = PrivUnit2.calibrated(dimension=3, epsilon=2.0)
    step = np.ldexp(1.0, int(np.frexp(mechanism.output_norm)[1]) - 30)
    rng = np.random.default_rng(1)
    for out in (mechanism.privatise(update, rng), mechanism.privatise_many(np.tile(update, (5, 1)), rng)):
        assert (np.rint(out / step) == out / step).all()
        assert np.linalg.norm(out, axis=-1) == pytest.approx(mechanism.output_norm, rel=stretch(3))


def test_in_one_dimension_the_size_of_the_update_does_not_show():
    mechanism = Separated.calibrated(dimension=1, epsilon_direction=1.0, epsilon_magnitude=1.0, max_radius=1.0)
    outputs = {
        abs(float(mechanism.privatise(np.array([size]), np.random.default_rng(seed))[0]))
        for size in (0.1, 0.3, 0.7, 1 / 3)
        for seed in range(50)
    }
    assert len(outputs) == mechanism.magnitude.levels + 1


@pytest.mark.parametrize("length", [1e-100, 0.7, 3.0, 1e100])
def test_rounding_is_to_the_nearest_of_2_to_the_30(length):
    x = length * np.random.default_rng(2).standard_normal((3, 5))
    assert np.abs(on_grid(x.copy(), length) - x).max() <= length * 2.0**-30
    assert (on_grid(np.zeros(2), 0.0) == 0.0).all()
