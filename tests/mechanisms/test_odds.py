"""Rare coins come up as often as they should, never less; logarithms do not overflow."""

import math

import numpy as np
import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.odds import check_epsilon, just_below, log_expm1, log_sigmoid, tosses


@pytest.mark.parametrize("log_probability", [-1e-3, -0.5, -1.0, -1.7, -3.0, -6.5])
def test_coins_come_up_with_their_probability(log_probability):
    n, p = 400_000, math.exp(log_probability)
    ups = int(tosses(log_probability, n, np.random.default_rng(1)).sum())
    assert abs(ups - n * p) < 4.9 * math.sqrt(n * p * (1 - p))  # fails with probability 1e-6


def test_a_coin_of_probability_e_to_minus_100000_ends_quickly_and_stays_down():
    counted = _Counting(np.random.PCG64(2))
    assert not tosses(-1e5, 1000, counted).any()
    assert counted.drawn < 3000  # about 1.6 draws a coin


def test_a_coin_rarer_than_the_smallest_double_step_still_comes_up():
    """Compared in one draw with e^-800 = 0.0 not even the smallest positive draw would be below it."""
    assert tosses(-800.0, 3, _Always(np.random.PCG64(2), 2.0**-53)).all()
    assert not tosses(-800.0, 3, _Always(np.random.PCG64(2), 0.4)).any()  # 0.4 > 1/e fails the first stage


def test_a_certain_coin_always_comes_up():
    assert tosses(0.0, 1000, np.random.default_rng(3)).all()


def test_no_coins_are_no_draws():
    assert tosses(-5.0, 0, np.random.default_rng(3)).shape == (0,)


class _Always(np.random.Generator):
    def __init__(self, bits, value):
        super().__init__(bits)
        self.value = value

    def random(self, size):
        return np.full(size, self.value)


class _Counting(np.random.Generator):
    drawn = 0

    def random(self, size):
        self.drawn += size
        return super().random(size)


@pytest.mark.parametrize("x", [-1e5, -800.0, -1.0, 0.0, 1e-9, 1.0, 40.0, 1e5])
def test_log_sigmoid_neither_overflows_nor_rounds_to_certainty(x):
    value = log_sigmoid(x)
    assert math.isfinite(value)
    assert value <= 0.0
    if abs(x) < 30:
        assert value == pytest.approx(-math.log(1.0 + math.exp(-x)), rel=1e-14)
    if x < -30:
        assert value == x


def test_log_expm1_keeps_its_digits_at_both_ends():
    assert log_expm1(1e-6) == pytest.approx(math.log(math.expm1(1e-6)), rel=1e-15)
    assert log_expm1(1e5) == 1e5


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 9e-7, 1.1e5, math.inf, math.nan, True])
def test_levels_outside_the_tested_range_are_refused(epsilon):
    assert check_epsilon(1e-6) == 1e-6
    assert check_epsilon(100_000) == 1e5
    with pytest.raises(ConfigurationError, match=r"epsilon: .* given; 1e-06 to 100000 are possible"):
        check_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e5])
def test_calibration_aims_below_the_level(epsilon):
    assert 0 < just_below(epsilon) < epsilon
    assert just_below(epsilon) == pytest.approx(epsilon, rel=1e-7)
