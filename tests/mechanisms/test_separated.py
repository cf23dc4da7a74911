"""Direction times magnitude: unbiased with its exact variance, and safe with every input."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.grid import stretch
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity
from p2p_labeldp.mechanisms.scalar import ScalarDP, ScalarRelDP
from p2p_labeldp.mechanisms.separated import Separated


def separated(direction, magnitude=ScalarDP, dimension=5, epsilon=3.0, max_radius=2.0):
    return Separated(
        direction=direction.calibrated(dimension=dimension, epsilon=epsilon),
        magnitude=magnitude.calibrated(epsilon=4.0, max_radius=max_radius),
    )


DIRECTIONS = [PrivUnit2, PrivUnitG, PrivUnitInfinity]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("magnitude", [ScalarDP, ScalarRelDP])
@pytest.mark.parametrize("scale", [0.0, 0.2, 1.0])
def test_it_is_unbiased_with_its_exact_second_moment(direction, magnitude, scale):
    """Largest z-score; fails with probability 1e-6."""
    mechanism, n = separated(direction, magnitude), 40_000
    w = scale * np.array([1.0, -0.5, 0.25, 0.0, 0.8])
    radius = float(np.abs(w).max()) if direction is PrivUnitInfinity else float(np.linalg.norm(w))
    z = mechanism.privatise_many(np.tile(w, (n, 1)), np.random.default_rng(1))
    assert np.abs((z - w).mean(axis=0) / z.std(axis=0)).max() * math.sqrt(n) < 5.8
    squares = (z**2).sum(axis=1)
    assert abs(squares.mean() - mechanism.second_moment(radius)) < 4.9 * squares.std() / math.sqrt(n)
    errors = ((z - w) ** 2).sum(axis=1)
    expected = mechanism.variance(radius)
    if direction is PrivUnitInfinity:  # stated for corners
        expected += radius**2 * w.size - w @ w
    assert abs(errors.mean() - expected) < 4.9 * errors.std() / math.sqrt(n)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_draw_has_the_law_of_many(direction):
    mechanism, n, rng = separated(direction), 5000, np.random.default_rng(2)
    w = np.array([0.1, -0.5, 0.25, 0.0, 0.8])
    z = np.array([mechanism.privatise(w, rng) for _ in range(n)])
    assert np.abs((z - w).mean(axis=0) / z.std(axis=0)).max() * math.sqrt(n) < 5.5
    radius = 0.8 if direction is PrivUnitInfinity else float(np.linalg.norm(w))
    squares = (z**2).sum(axis=1)
    assert abs(squares.mean() - mechanism.second_moment(radius)) < 4.9 * squares.std() / math.sqrt(n)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_levels_add_up(direction):
    mechanism = separated(direction)
    assert mechanism.epsilon == 7.0
    assert mechanism.epsilon_exact == pytest.approx(7.0, rel=1e-9)
    assert mechanism.epsilon_exact <= 7.0


@pytest.mark.parametrize(("spent", "caught"), [(0.75, False), (1.2, True)])
@pytest.mark.parametrize("direction", [PrivUnit2, PrivUnitInfinity])
@pytest.mark.parametrize("magnitude", [ScalarDP, ScalarRelDP])
def test_the_local_guarantee_holds_on_samples_and_overspending_is_caught(direction, magnitude, spent, caught):
    """At confidence 1 - 1e-6, for a claim of 1.5 in all. The event is the largest output along u, under the longest
    update along u and under almost none the other way: both levels are spent on it."""
    mechanism = Separated(
        direction=direction.calibrated(dimension=1, epsilon=spent),
        magnitude=magnitude.calibrated(epsilon=spent, max_radius=1.0),
    )
    n, rng = 100_000, np.random.default_rng(4)
    hits = [
        int((mechanism.privatise_many(np.full((n, 1), w), rng) > 0.999 * mechanism.output_norm).sum())
        for w in (1.0, -1e-12)
    ]
    seen = math.log(beta.ppf(5e-7, hits[0], n - hits[0] + 1) / beta.ppf(1 - 5e-7, hits[1] + 1, n - hits[1]))
    assert 0.8 * 2 * spent < seen <= 2 * spent
    assert (seen > 1.5) is caught


def test_no_output_is_larger_than_stated():
    mechanism, rng = separated(PrivUnit2), np.random.default_rng(3)
    z = mechanism.privatise_many(np.tile([1.0, 0.0, 0.0, 0.0, 1.7], (5000, 1)), rng)
    largest = np.linalg.norm(z, axis=1).max()
    assert largest <= mechanism.output_norm * (1 + stretch(5))
    assert largest == pytest.approx(mechanism.output_norm, rel=stretch(5))  # and the bound is reached
    corner = separated(PrivUnitInfinity)
    z = corner.privatise_many(np.tile([1.0, 0.0, 0.0, 0.0, 1.7], (5000, 1)), rng)
    assert np.abs(z).max() == pytest.approx(corner.output_norm, rel=1e-9)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_before_clipping(direction, bad):
    mechanism, rng = separated(direction), np.random.default_rng(4)
    before = rng.bit_generator.state
    w = np.array([1e9, bad, 0.0, 0.0, 0.0])
    with pytest.raises(ConfigurationError, match="update: an entry is NaN or infinite"):
        mechanism.privatise(w, rng)
    with pytest.raises(ConfigurationError, match="update: an entry is NaN or infinite"):
        mechanism.privatise_many(w[None, :], rng)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("size", [1.7e308, 1e200, 1e30, 3.0])
def test_updates_beyond_the_largest_magnitude_are_clipped_whatever_their_size(direction, size):
    """Clipped to norm r_max: the draw is that of the clipped update."""
    mechanism = separated(direction)
    w = np.ones(5)
    length = 1.0 if direction is PrivUnitInfinity else math.sqrt(5)
    clipped = mechanism.privatise(w * (2.0 / length), np.random.default_rng(5))
    assert mechanism.privatise(w * size, np.random.default_rng(5)) == pytest.approx(clipped, rel=1e-9)
    z = mechanism.privatise_many(np.tile(w * size, (20_000, 1)), np.random.default_rng(6))
    scores = (z - w * (2.0 / length)).mean(axis=0) / z.std(axis=0) * math.sqrt(20_000)
    assert np.abs(scores).max() < 5.2


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_tiny_updates_keep_their_direction_and_integers_are_taken(direction):
    mechanism = separated(direction, max_radius=1e-98)
    w = np.array([3.0, 0.0, -4.0, 0.0, 0.0])
    z = mechanism.privatise(w * 1e-99, np.random.default_rng(7))
    assert np.isfinite(z).all()
    assert np.abs(z).max() > 0
    whole = separated(direction, max_radius=10.0)
    integers = whole.privatise(np.array([3, 0, -4, 0, 0]), np.random.default_rng(8))
    assert integers == pytest.approx(whole.privatise(w, np.random.default_rng(8)), rel=1e-12)


def test_a_float32_update_whose_square_vanishes_in_float32_is_measured_in_double():
    mechanism = Separated.calibrated(dimension=4, epsilon_direction=60.0, epsilon_magnitude=30.0, max_radius=1e-29)
    w = np.array([0.0, 3e-30, 0.0, -4e-30], dtype=np.float32)
    z = mechanism.privatise(w, np.random.default_rng(9))
    assert z == pytest.approx(w.astype(np.float64), abs=1e-31)


def test_calibrated_takes_either_norm_and_either_calibration():
    good = {"dimension": 40, "epsilon_direction": 4.0, "epsilon_magnitude": 2.0, "max_radius": 1.0}
    cube = Separated.calibrated(**good, norm="l-infinity")
    assert isinstance(cube.direction, PrivUnitInfinity)
    assert cube.output_norm == cube.direction.output_norm * cube.magnitude.output_norm
    paper = Separated.calibrated(**good, calibration="theorem1")
    assert paper.direction == PrivUnit2.calibrated(dimension=40, epsilon=4.0, calibration="theorem1")
    assert paper.variance(1.0) > Separated.calibrated(**good).variance(1.0)
    assert paper.epsilon_exact <= paper.epsilon == 6.0
    for field, bad in (
        ("norm", {"norm": "l1"}),
        ("calibration", {"calibration": "best"}),
        ("calibration", {"calibration": "theorem1", "norm": "l-infinity"}),
    ):
        with pytest.raises(ConfigurationError, match=f"{field}: '.*' given"):
            Separated.calibrated(**good, **bad)


def test_the_summary_is_for_the_largest_update_unless_a_radius_is_given():
    mechanism = separated(PrivUnit2)
    assert mechanism.summary()["radius"] == 2.0
    assert mechanism.summary()["variance"] == mechanism.variance(2.0) == mechanism.variance(7.0)
    assert mechanism.summary(0.5)["variance"] == mechanism.variance(0.5)
    assert mechanism.variance(0.5) == pytest.approx(mechanism.second_moment(0.5) - 0.25, rel=1e-12)
    with pytest.raises(ConfigurationError, match="radius"):
        mechanism.summary(math.nan)


def test_calibrated_takes_privunit2_and_either_magnitude():
    for kind, magnitude in (("absolute", ScalarDP), ("relative", ScalarRelDP)):
        mechanism = Separated.calibrated(
            dimension=3, epsilon_direction=1.0, epsilon_magnitude=2.0, max_radius=1.0, magnitude=kind
        )
        assert isinstance(mechanism.direction, PrivUnit2)
        assert isinstance(mechanism.magnitude, magnitude)
        assert (mechanism.dimension, mechanism.epsilon) == (3, 3.0)
    with pytest.raises(ConfigurationError, match="magnitude: 'both' given; absolute and relative are possible"):
        Separated.calibrated(
            dimension=3, epsilon_direction=1.0, epsilon_magnitude=2.0, max_radius=1.0, magnitude="both"
        )
