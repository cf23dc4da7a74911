"""No noise, however adversarial, brings a probability below the floor."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.probability_floor import floor_of, floored, uniform

COUNTS = st.lists(st.integers(-(10**12), 10**12), min_size=2, max_size=12)


@given(COUNTS, st.integers(0, 10**9), st.fractions(0, 1))
def test_adversarial_noise_keeps_the_floor_and_the_sum(counts, size, share):
    floor = share / len(counts)
    q = floored(counts, size, floor)
    assert min(q) >= floor
    assert sum(q) == 1


def test_clip_then_divide_would_break_it():
    counts, size, floor = (10**9, 10**9, -5), 10, Fraction(1, 100)
    clipped = [min(Fraction(1), max(floor, Fraction(count, size))) for count in counts]
    assert min(clipped) / sum(clipped) < floor
    assert min(floored(counts, size, floor)) >= floor


@pytest.mark.parametrize("counts", [(-3, -2), (0, 0), (1, 0)])
def test_without_excess_it_is_uniform(counts):
    assert floored(counts, 100, Fraction(1, 10)) == uniform(2)
    assert floored((0, 0), 0, Fraction(0)) == uniform(2)
    assert floored((7, -7), 0, Fraction(1, 10)) == uniform(2)


def test_without_noise_or_floor_it_is_the_empirical_distribution():
    assert floored((3, 1, 0, 4), 8, Fraction(0)) == (Fraction(3, 8), Fraction(1, 8), 0, Fraction(1, 2))


def test_a_cluster_of_one_works():
    assert floored((1, 0), 1, Fraction(1, 10)) == (Fraction(9, 10), Fraction(1, 10))
    assert floored((5, -4), 1, Fraction(1, 10)) == (Fraction(9, 10), Fraction(1, 10))


def test_the_largest_floor_is_the_uniform_distribution():
    for num_classes in (2, 3, 7, 10, 49, 100):
        floor = floor_of(1 / num_classes, num_classes)
        assert floor <= Fraction(1, num_classes)
        assert floor == pytest.approx(1 / num_classes, rel=1e-15)
    assert floor_of(0.1, 10) == Fraction(1, 10)
    assert floor_of(Fraction(1, 3), 3) == Fraction(1, 3)
    assert floored((9, 0, 0), 9, Fraction(1, 3)) == uniform(3)


@pytest.mark.parametrize("floor", [-1e-9, 0.1000001, math.nan, math.inf, True])
def test_impossible_floors_are_refused(floor):
    with pytest.raises(ConfigurationError, match=r"floor: .* 0 to 1/10 "):
        floor_of(floor, 10)
