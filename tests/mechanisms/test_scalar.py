"""Private magnitudes: constants and variances against 50-digit vectors, the law by enumeration and on samples."""

import math

import numpy as np
import pytest
from mechanisms.scalar_values import ABSOLUTE, RELATIVE
from scipy.stats import beta, chisquare

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.scalar import MAX_GRID_EPSILON, MAX_LEVELS, ScalarDP, ScalarRelDP

MECHANISMS = [
    ScalarDP.calibrated(epsilon=0.5, max_radius=1.0),
    ScalarDP.calibrated(epsilon=4.0, max_radius=2.0),
    ScalarDP(epsilon=1.0, max_radius=1.0, levels=7),
    ScalarRelDP.calibrated(epsilon=0.5, max_radius=1.0),
    ScalarRelDP.calibrated(epsilon=4.0, max_radius=3.0),
    ScalarRelDP.calibrated(epsilon=7.0, max_radius=1.0),
]


@pytest.mark.parametrize(("epsilon", "levels", "radius", "max_radius", "scale", "offset", "keep", "variance"), ABSOLUTE)
def test_scalar_dp_agrees_with_50_digit_arithmetic(epsilon, levels, radius, max_radius, scale, offset, keep, variance):
    mechanism = ScalarDP.calibrated(epsilon=epsilon, max_radius=max_radius)
    assert mechanism.levels == levels
    assert mechanism.scale == pytest.approx(scale, rel=1e-9)
    assert mechanism.offset == pytest.approx(offset, rel=1e-9)
    assert mechanism.keep_probability == pytest.approx(keep, rel=1e-9)
    assert mechanism.variance(radius) == pytest.approx(variance, rel=1e-9)
    outputs = mechanism.scale * (np.array([0, levels]) - mechanism.offset)  # Z = A (J' - b)
    assert mechanism.output_range == pytest.approx(tuple(outputs), rel=1e-9)


@pytest.mark.parametrize("row", RELATIVE)
def test_scalar_rel_dp_agrees_with_50_digit_arithmetic(row):
    epsilon, max_radius, radius, nu, alpha, ends, last, scale, offset, keep, lower, upper, variance, low, high = row
    mechanism = ScalarRelDP.calibrated(epsilon=epsilon, max_radius=max_radius)
    assert mechanism.nu == pytest.approx(nu, rel=1e-12)
    assert mechanism.alpha == pytest.approx(alpha, rel=1e-12)
    assert mechanism.levels + 1 == ends
    points = mechanism.end_points(np.arange(ends))
    assert points[0] == 0.0
    assert points[-1] == pytest.approx(last, rel=1e-12)
    assert mechanism.scale == pytest.approx(scale, rel=1e-9)
    assert mechanism.offset == pytest.approx(offset, rel=1e-9)
    assert mechanism.keep_probability == pytest.approx(keep, rel=1e-9)
    clipped = min(radius, max_radius)
    i = int(mechanism.lower_index(np.array([clipped]))[0])
    assert i == lower
    assert (clipped - points[i]) / (points[i + 1] - points[i]) == pytest.approx(upper, rel=1e-9, abs=1e-15)
    assert mechanism.variance(radius) == pytest.approx(variance, rel=1e-9)
    assert mechanism.output_range == pytest.approx((low, high), rel=1e-9)


def law(mechanism, radius):
    """Probability of every index J' for a magnitude, from the definition; and the outputs."""
    k, level = mechanism.levels, mechanism.epsilon_exact
    points = mechanism.end_points(np.arange(k + 1))
    r = min(radius, mechanism.max_radius)
    i = next(i for i in range(k) if points[i] <= r <= points[i + 1])
    rounded = np.zeros(k + 1)
    rounded[i + 1] = (r - points[i]) / (points[i + 1] - points[i])
    rounded[i] = 1.0 - rounded[i + 1]
    keep = math.exp(level) / (math.exp(level) + k)
    channel = np.full((k + 1, k + 1), (1.0 - keep) / k)
    np.fill_diagonal(channel, keep)
    t = math.exp(-level)
    weight = (1 - t) / (1 + k * t)
    return rounded @ channel, (points - (1 - weight) * points.mean()) / weight


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_by_enumeration_it_is_unbiased_private_and_has_its_variance(mechanism):
    top = mechanism.max_radius
    laws = []
    for radius in [0.0, 1e-9, 0.01 * top, 0.37 * top, 0.5 * top, 0.93 * top, top, 4 * top]:
        probability, outputs = law(mechanism, radius)
        mean = probability @ outputs
        assert mean == pytest.approx(min(radius, top), rel=1e-11, abs=1e-11)
        assert mechanism.variance(radius) == pytest.approx(probability @ (outputs - mean) ** 2, rel=1e-9)
        assert mechanism.output_range == pytest.approx((outputs.min(), outputs.max()), rel=1e-11)
        assert mechanism.output_norm == pytest.approx(np.abs(outputs).max(), rel=1e-11)
        laws.append(probability)
    ratios = np.log(np.max(laws, axis=0) / np.min(laws, axis=0))
    assert ratios.max() <= mechanism.epsilon


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_samples_have_the_enumerated_law(mechanism):
    n, rng = 40_000, np.random.default_rng(1)
    for radius in (0.0, 0.4 * mechanism.max_radius, 2.0 * mechanism.max_radius):
        probability, outputs = law(mechanism, radius)
        drawn = mechanism.privatise_many(np.full(n, radius), rng)
        nearest = np.abs(drawn[:, None] - outputs).argmin(axis=1)
        assert drawn == pytest.approx(outputs[nearest], rel=1e-9, abs=1e-12)
        counts = np.bincount(nearest, minlength=len(outputs))
        assert chisquare(counts, probability * n).pvalue > 1e-6


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("share", [0.05, 0.62, 1.0])
def test_it_is_unbiased_with_its_exact_variance_on_samples(mechanism, share):
    """z-scores of mean and variance; fails with probability 1e-6."""
    n, radius = 100_000, share * mechanism.max_radius
    errors = mechanism.privatise_many(np.full(n, radius), np.random.default_rng(2)) - radius
    assert abs(errors.mean()) < 4.9 * errors.std() / math.sqrt(n)
    squares = errors**2
    assert abs(squares.mean() - mechanism.variance(radius)) < 4.9 * squares.std() / math.sqrt(n)


@pytest.mark.parametrize(("claim", "spent", "caught"), [(2.0, 2.0, False), (2.0, 2.6, True)])
@pytest.mark.parametrize("kind", [ScalarDP, ScalarRelDP])
def test_the_local_guarantee_holds_on_samples_and_overspending_is_caught(kind, claim, spent, caught):
    """At confidence 1 - 1e-6, from the event "the largest output" under the largest magnitude and under 0."""
    mechanism, n, rng = kind.calibrated(epsilon=spent, max_radius=1.0), 200_000, np.random.default_rng(3)
    top = float(mechanism.end_points(np.array([mechanism.levels]))[0])
    wide = (
        mechanism
        if top == 1.0
        else ScalarRelDP(epsilon=spent, max_radius=top, levels=mechanism.levels, nu=mechanism.nu, alpha=mechanism.alpha)
    )
    middle = wide.output_range[1] * (1 - 1e-9)
    hits = [int((wide.privatise_many(np.full(n, r), rng) >= middle).sum()) for r in (top, 0.0)]
    seen = math.log(beta.ppf(5e-7, hits[0], n - hits[0] + 1) / beta.ppf(1 - 5e-7, hits[1] + 1, n - hits[1]))
    assert seen > 0.85 * spent
    assert (seen > claim) is caught


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_worst_variance_is_the_largest_on_a_fine_grid(mechanism):
    grid = np.linspace(0, mechanism.max_radius, 4001)
    largest = max(mechanism.variance(r) for r in grid)
    assert largest <= mechanism.worst_variance() * (1 + 1e-12)
    assert largest == pytest.approx(mechanism.worst_variance(), rel=1e-3)


@pytest.mark.parametrize("epsilon", [2.0, 4.0, 7.0, 10.0, 14.0])
def test_the_default_levels_are_near_the_best(epsilon):
    chosen = ScalarDP.calibrated(epsilon=epsilon, max_radius=1.0)
    assert chosen.levels == math.ceil(math.exp(epsilon / 3))
    best = min(
        ScalarDP(epsilon=epsilon, max_radius=1.0, levels=k).worst_variance() for k in range(1, 3 * chosen.levels)
    )
    assert chosen.worst_variance() <= 1.08 * best


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 1.4, 1.5, 1.9])
def test_small_levels_use_the_better_of_one_and_two(epsilon):
    both = [ScalarDP(epsilon=epsilon, max_radius=1.0, levels=k).worst_variance() for k in (1, 2)]
    assert ScalarDP.calibrated(epsilon=epsilon, max_radius=1.0).worst_variance() == min(both)


@pytest.mark.parametrize("epsilon", [6.0, 9.0, 12.0, 18.0, 24.0, 30.0])
def test_the_relative_error_has_the_stated_rates(epsilon):
    """O(r_max^2 e^(-5 eps/6)) below r_max e^(-eps/4), O(r^2 e^(-eps/3)) above."""
    mechanism, border = ScalarRelDP.calibrated(epsilon=epsilon, max_radius=1.0), math.exp(-epsilon / 4)
    for radius in np.geomspace(1e-6, border, 200):
        assert mechanism.variance(radius) < 3.0 * math.exp(-5 * epsilon / 6)
    for radius in np.geomspace(border, 1.0, 200):
        assert mechanism.variance(radius) < 3.0 * radius**2 * math.exp(-epsilon / 3)


def test_the_output_norms_of_the_paper_s_setting():
    """What the learner's projection must let pass, in units of r_max, at eps2 = 10."""
    absolute, relative = (kind.calibrated(epsilon=10.0, max_radius=1.0) for kind in (ScalarDP, ScalarRelDP))
    assert absolute.levels == 29
    assert absolute.output_norm == pytest.approx(1.0007, abs=5e-5)
    assert relative.output_norm == pytest.approx(1.1728, abs=5e-5)


@pytest.mark.parametrize("kind", [ScalarDP, ScalarRelDP])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 39.9, 41.0, 745.0, 800.0, 1e5])
@pytest.mark.parametrize("max_radius", [1e-100, 1.0, 1e100])
def test_nothing_saturates_at_any_level_and_size(kind, epsilon, max_radius):
    mechanism = kind.calibrated(epsilon=epsilon, max_radius=max_radius)
    assert all(math.isfinite(value) for value in mechanism.summary().values())
    assert mechanism.levels <= MAX_LEVELS
    assert mechanism.worst_variance() > 0
    assert mechanism.variance(0.3 * max_radius) > 0
    assert math.isfinite(mechanism.log_replace)  # the replacement still happens once in e^epsilon times
    assert mechanism.log_replace == pytest.approx(math.log(mechanism.levels) - epsilon, rel=1e-9) or epsilon < 30
    z = mechanism.privatise(0.3 * max_radius, np.random.default_rng(4))
    assert mechanism.output_range[0] <= z <= mechanism.output_range[1]
    if epsilon > 30:
        assert z == pytest.approx(0.3 * max_radius, rel=2e-3)


def test_large_levels_keep_the_end_points_of_the_largest_grid():
    capped = ScalarRelDP.calibrated(epsilon=1000.0, max_radius=1.0)
    at = ScalarRelDP.calibrated(epsilon=MAX_GRID_EPSILON, max_radius=1.0)
    assert (capped.nu, capped.alpha, capped.levels) == (at.nu, at.alpha, at.levels)
    assert capped.worst_variance() < 4.1e-7


@pytest.mark.parametrize("mechanism", MECHANISMS[:1] + MECHANISMS[-1:])
def test_magnitudes_that_are_none_are_refused_before_clipping(mechanism):
    rng = np.random.default_rng(5)
    for bad in (math.nan, math.inf, -math.inf, -1e-300, -1.0):
        with pytest.raises(ConfigurationError, match="radius"):
            mechanism.privatise(bad, rng)
        with pytest.raises(ConfigurationError, match="radius"):
            mechanism.variance(bad)
    for bad in (True, 1j, "1"):
        with pytest.raises(ConfigurationError, match="radius"):
            mechanism.privatise(bad, rng)
    for good in (0, 1, 1e300, np.float32(0.1), -0.0):
        assert math.isfinite(mechanism.privatise(good, rng))


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("epsilon", 0.0),
        ("epsilon", math.nan),
        ("epsilon", math.inf),
        ("max_radius", 0.0),
        ("max_radius", math.nan),
        ("max_radius", math.inf),
        ("max_radius", -1.0),
        ("max_radius", True),
        ("levels", 0),
        ("levels", 2.0),
        ("levels", True),
        ("levels", MAX_LEVELS + 1),
    ],
)
def test_impossible_parameters_are_refused(field, bad):
    good = {"epsilon": 1.0, "max_radius": 1.0, "levels": 2}
    assert ScalarDP(**good).scale > 0
    with pytest.raises(ConfigurationError, match=f"{field}: .* given"):
        ScalarDP(**{**good, field: bad})
    relative = {**good, "nu": 2.0, "alpha": 0.5}
    assert ScalarRelDP(**relative).scale > 0
    with pytest.raises(ConfigurationError, match=f"{field}: .* given"):
        ScalarRelDP(**{**relative, field: bad})


@pytest.mark.parametrize(
    ("field", "bad"),
    [("nu", 1.0), ("nu", math.nan), ("alpha", 0.0), ("alpha", math.nan), ("alpha", 0.01), ("alpha", 1e200)],
)
def test_end_points_that_cannot_be_or_do_not_reach_the_largest_magnitude_are_refused(field, bad):
    good = {"epsilon": 1.0, "max_radius": 1.0, "levels": 2, "nu": 2.0, "alpha": 0.5}
    with pytest.raises(ConfigurationError, match=r"nu|alpha"):
        ScalarRelDP(**{**good, field: bad})
