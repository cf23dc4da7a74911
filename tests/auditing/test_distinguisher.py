"""The law of T agrees with enumeration and with exact values; the events are the best and fixed beforehand."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from p2p_labeldp.auditing.distinguisher import (
    Direction,
    best_event,
    binomial_law,
    flipped_law,
    ones_law,
    tail_probabilities,
)
from p2p_labeldp.errors import ConfigurationError


def enumerated_law(size, ones, flip, reports, classes):
    """T by going through all flips and all draws, in fractions; a flipped label either is the one or is not."""
    f = Fraction(flip)
    law = [Fraction(0)] * (reports + 1)
    rises = [1 - f] * ones + [f / (classes - 1)] * (size - ones)
    for bits in itertools.product((0, 1), repeat=size):
        chance = math.prod((p if bit else 1 - p for p, bit in zip(rises, bits, strict=True)), start=Fraction(1))
        for draws in itertools.product(range(size), repeat=reports):
            law[sum(bits[d] for d in draws)] += chance / size**reports
    return [float(p) for p in law]


@pytest.mark.parametrize(
    ("size", "ones", "flip", "reports", "classes"),
    [
        *[(1, 0, ".3", 1, 2), (2, 1, ".25", 2, 2), (3, 0, ".1", 3, 2), (4, 4, ".02", 4, 2), (5, 2, ".1", 5, 2)],
        *[(4, 1, ".2", 2, 2), (4, 2, ".3", 5, 2), (4, 1, ".3", 4, 3), (3, 3, ".5", 3, 5), (4, 2, "0", 4, 2)],
    ],
)
def test_the_law_of_t_is_what_enumeration_says(size, ones, flip, reports, classes):
    law = ones_law(cluster_size=size, ones=ones, flip_probability=float(flip), reports=reports, classes=classes)
    np.testing.assert_allclose(law, enumerated_law(size, ones, flip, reports, classes), rtol=1e-12, atol=1e-18)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize(
    ("size", "flip", "ones", "add", "remove"),
    [
        (10, 0.1, 3, 0.73907875017115651, 0.73322714249038983),
        (100, 0.01, 0, 0.98490188532528691, 1.4014753278633715),
        (100, 0.25, 50, 0.19940686902779808, 0.20008326893367722),
    ],
)
def test_neighbouring_laws_reach_delta_one_over_s_squared_at_the_known_epsilon(size, flip, ones, add, remove):
    low, high = (ones_law(cluster_size=size, ones=k, flip_probability=flip) for k in (ones, ones + 1))
    assert hockey_stick(low, high, add) == pytest.approx(1 / size**2, rel=1e-9)
    assert hockey_stick(high, low, remove) == pytest.approx(1 / size**2, rel=1e-9)


def test_the_law_is_the_same_seen_from_the_other_label():
    for ones in (0, 3, 17):
        law = ones_law(cluster_size=20, ones=ones, flip_probability=0.07)
        other = ones_law(cluster_size=20, ones=20 - ones, flip_probability=0.07)
        np.testing.assert_allclose(law, other[::-1], rtol=1e-10)


def test_large_clusters_have_a_law_with_the_right_mean_and_spread():
    size, flip = 5000, 0.1
    law = ones_law(cluster_size=size, ones=0, flip_probability=flip)
    t = np.arange(size + 1)
    mean = law @ t
    assert mean == pytest.approx(size * flip, rel=1e-11)
    # Var T = E Var(T | m) + Var m = s f (1 - f) (2 - 1/s)
    assert law @ (t - mean) ** 2 == pytest.approx(size * flip * (1 - flip) * (2 - 1 / size), rel=1e-9)


def test_without_flips_the_law_keeps_every_label():
    assert binomial_law(3, 0.0).tolist() == [1, 0, 0, 0]
    assert binomial_law(3, 1.0).tolist() == [0, 0, 0, 1]
    assert ones_law(cluster_size=4, ones=0, flip_probability=0.0)[0] == 1.0
    assert flipped_law(cluster_size=4, ones=3, flip_probability=0.0)[3] == 1.0


def test_the_likelihood_ratio_of_neighbours_is_monotone_in_t():
    for size, flip, ones in ((10, 0.1, 0), (50, 0.02, 3), (100, 0.25, 50)):
        low, high = (ones_law(cluster_size=size, ones=k, flip_probability=flip) for k in (ones, ones + 1))
        ratio = np.log(high) - np.log(low)
        assert (np.diff(ratio) > -1e-9).all()


def test_no_other_set_of_values_beats_the_best_tail():
    size, flip, delta = 7, 0.1, 1 / 49
    low, high = (ones_law(cluster_size=size, ones=k, flip_probability=flip) for k in (0, 1))
    for way, p, q in ((Direction.ADD, low, high), (Direction.REMOVE, high, low)):
        best = max(
            math.log((p[list(e)].sum() - delta) / q[list(e)].sum())
            for n in range(1, size + 2)
            for e in itertools.combinations(range(size + 1), n)
            if p[list(e)].sum() > delta
        )
        tails = tail_probabilities(p, way), tail_probabilities(q, way)
        with np.errstate(divide="ignore"):
            reached = np.log(np.maximum(tails[0] - delta, 0.0)) - np.log(tails[1])
        assert reached.max() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(("trials", "expected"), [(10**4, 0.27), (10**5, 0.46), (10**6, 0.59), (10**7, 0.69)])
def test_the_expected_bound_at_s_100_grows_towards_the_exact_epsilon(trials, expected):
    event = best_event(cluster_size=100, flip_probability=0.1, trials=trials, delta=1e-4, alpha=0.025)
    assert event.expected_epsilon_lower == pytest.approx(expected, abs=0.01)
    assert event.expected_epsilon_lower < 0.7299


def test_events_count_their_own_side():
    values = np.array([0, 1, 2, 3, 4])
    for way in Direction:
        event = best_event(
            cluster_size=4, flip_probability=0.1, trials=1000, delta=0.0, alpha=0.01, direction=way, ones=1
        )
        assert event.direction is way
        assert (event.favoured_ones, event.other_ones) == ((1, 2) if way is Direction.ADD else (2, 1))
        beyond = values <= event.threshold if way is Direction.ADD else values >= event.threshold
        assert event.hits(values) == beyond.sum() <= 5
        assert event.probability > event.probability_neighbour


def test_a_pure_coin_promises_nothing_and_still_has_an_event():
    event = best_event(cluster_size=10, flip_probability=0.5, trials=1000, delta=0.0, alpha=0.01)
    assert event.expected_epsilon_lower == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"cluster_size": 0},
        {"cluster_size": True},
        {"cluster_size": 2.5},
        {"ones": -1},
        {"ones": 11},
        {"flip_probability": 0.51},
        {"flip_probability": -0.1},
        {"flip_probability": math.nan},
        {"flip_probability": math.inf},
        {"flip_probability": True},
        {"reports": -1},
        {"classes": 1},
    ],
)
def test_numbers_out_of_range_are_refused_by_name(wrong):
    right = {"cluster_size": 10, "ones": 3, "flip_probability": 0.1}
    assert ones_law(**right).sum() == pytest.approx(1.0)
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        ones_law(**right | wrong)
