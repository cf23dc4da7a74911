"""The fair binomial's upper tail against exact integers."""

import math
from fractions import Fraction

import pytest

from p2p_labeldp.mechanisms.binomial_tail import log_point, tail_weights


def exact_log(numerator, power):
    """log(numerator / 2^power) of big integers."""
    shift = max(0, numerator.bit_length() - 1000)
    return math.log(numerator >> shift) + (shift - power) * math.log(2)


@pytest.mark.parametrize("d", [1, 2, 3, 12, 15, 16, 17, 33, 100, 1001, 4000])
def test_points_and_tails_agree_with_exact_integers(d):
    for k in {d // 2 + 1, d // 2 + max(1, math.isqrt(d)), (3 * d + 3) // 4, d}:
        if not d // 2 < k <= d:
            continue
        assert log_point(d, k) == pytest.approx(exact_log(math.comb(d, k), d), rel=1e-13)
        tail = sum(math.comb(d, j) for j in range(k, d + 1))
        assert tail_weights(d, k).sum() == pytest.approx(float(Fraction(tail, math.comb(d, k))), rel=1e-13)


# 40-digit arithmetic
@pytest.mark.parametrize(
    ("d", "k", "log_probability"),
    [
        (4_000_000, 2_000_001, -7.8266943746866848),
        (4_000_000, 2_010_000, -57.826889709949335),
        (4_000_000, 3_999_999, -2772573.5204348622),
    ],
)
def test_points_keep_their_digits_in_the_largest_dimensions(d, k, log_probability):
    assert log_point(d, k) == pytest.approx(log_probability, rel=1e-13)


@pytest.mark.parametrize("d", [101, 10_001, 4_000_001])
def test_the_whole_upper_half_has_mass_one_half(d):
    k = d // 2 + 1
    weights = tail_weights(d, k)
    assert math.exp(log_point(d, k)) * weights.sum() == pytest.approx(0.5, rel=1e-13)
    assert len(weights) < 5 * math.sqrt(d) + 10
