"""Integer noise follows its law, whatever the rational scale."""

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import discrete_laplace


@pytest.mark.parametrize(
    ("scale", "at_zero", "at_three", "from_five", "variance"),
    [
        ("2", 0.2449186624037091, 0.05464874036547884, 0.1021891466902744, 7.835396178065528),
        ("4", 0.1243530017715962, 0.05874019876984620, 0.3221325283717161, 31.83385287773731),
        ("8", 0.06241874674751251, 0.04289973543513422, 0.5686717760694289, 127.8334634609765),
        ("3/2", 0.3215127375316343, 0.04351201739802245, 0.04714363660701283, 4.336972717625868),
        ("1/2", 0.7615941559557649, 0.001887803171811730, 7.997625095039551e-5, 0.3620308304831552),
    ],
)
def test_the_law_is_the_two_sided_geometric(scale, at_zero, at_three, from_five, variance):
    scale = Fraction(scale)
    assert discrete_laplace.mass(0, scale) == pytest.approx(at_zero, rel=1e-12)
    assert discrete_laplace.mass(3, scale) == pytest.approx(at_three, rel=1e-12)
    assert discrete_laplace.mass(-3, scale) == discrete_laplace.mass(3, scale)
    assert 1 - sum(discrete_laplace.mass(k, scale) for k in range(-4, 5)) == pytest.approx(from_five, abs=1e-12)
    assert discrete_laplace.variance(scale) == pytest.approx(variance, rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(2), Fraction(3, 2), Fraction(1, 2), Fraction(1), Fraction(22, 7)])
def test_draws_follow_the_law(scale):
    rng, trials = random.Random(1), 20_000
    seen = Counter(discrete_laplace.draw(scale, rng) for _ in range(trials))
    edge = max(k for k in range(50) if trials * discrete_laplace.mass(k, scale) > 20)
    expected = [trials * discrete_laplace.mass(k, scale) for k in range(-edge, edge + 1)]
    found = [seen[k] for k in range(-edge, edge + 1)]
    tail = trials - sum(expected)
    # the p-value of the right law is uniform: below 1e-6 by chance with probability 1e-6
    assert chisquare([*found, trials - sum(found)], [*expected, tail]).pvalue > 1e-6


def test_a_wrong_scale_would_be_seen():
    rng, trials = random.Random(1), 20_000
    seen = Counter(discrete_laplace.draw(Fraction(21, 10), rng) for _ in range(trials))
    expected = [trials * discrete_laplace.mass(k, Fraction(2)) for k in range(-8, 9)]
    found = [seen[k] for k in range(-8, 9)]
    rest = chisquare([*found, trials - sum(found)], [*expected, trials - sum(expected)])
    assert rest.pvalue < 1e-6


def test_one_seed_gives_one_noise_and_another_seed_another():
    a, b, c = ([discrete_laplace.draw(Fraction(50), rng) for _ in range(20)] for rng in map(random.Random, (1, 1, 2)))
    assert a == b
    assert a != c


def test_the_operating_systems_coins_serve_as_well():
    assert isinstance(discrete_laplace.draw(Fraction(3), random.SystemRandom()), int)


def test_scales_are_rounded_up_only():
    for scale in (0.1, 1.0, 2 / 3, 1e-9, 12345.678):
        up = discrete_laplace.scale_up(scale)
        assert Fraction(scale) <= up < Fraction(scale) + Fraction(1, 2**40)
    assert discrete_laplace.scale_up(4.0) == 4


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, True, 1e10])
def test_impossible_scales_are_refused(scale):
    with pytest.raises(ConfigurationError, match="noise_scale: "):
        discrete_laplace.scale_up(scale)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), 1.0, 2])
def test_a_scale_is_a_positive_fraction(scale):
    with pytest.raises(ConfigurationError, match="noise_scale: "):
        discrete_laplace.check_scale(scale)


def test_a_narrow_scale_adds_next_to_nothing():
    rng = random.Random(0)
    assert not np.any([discrete_laplace.draw(Fraction(1, 1000), rng) for _ in range(100)])
    assert discrete_laplace.variance(Fraction(1, 10_000)) == 0.0
