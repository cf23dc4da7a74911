"""PrivUnit-infinity: by enumeration where 2^d is small, against 50-digit vectors where it is not, and on samples."""

import collections
import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta, chisquare

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import privunit_infinity
from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity, _subset

# dimension, epsilon, k, m, output norm, p
VECTORS = [
    (3, 1.0, 2, 0.23105857863000487, 4.327906827477306, 0.7310585786300049),
    (10, 2.0, 7, 0.24979624790964816, 4.003262692567353, 0.6053012277718002),
    (101, 5.0, 60, 0.18383085838381527, 5.439783117979725, 0.8485507689233741),
    (1000, 1.0, 507, 0.012570684174364459, 79.55016498141855, 0.5839437827654892),
    (1000, 50.0, 645, 0.289156748241028, 3.458331877374846, 0.9889583927579607),
]


@pytest.mark.parametrize(("dimension", "epsilon", "k", "m", "output_norm", "p"), VECTORS)
def test_constants_agree_with_50_digit_arithmetic(dimension, epsilon, k, m, output_norm, p):
    mechanism = PrivUnitInfinity.calibrated(dimension=dimension, epsilon=epsilon)
    summary = mechanism.summary()
    assert summary["threshold_agreements"] == k
    assert summary["m"] == pytest.approx(m, rel=1e-9)
    assert summary["output_norm"] == pytest.approx(output_norm, rel=1e-9)
    assert summary["p"] == pytest.approx(p, rel=1e-9)
    assert summary["epsilon_exact"] == pytest.approx(epsilon, rel=1e-9)
    assert summary["variance"] == pytest.approx(dimension * (output_norm**2 - 1), rel=1e-9)
    assert mechanism.epsilon_exact <= epsilon


def vertices(dimension):
    return np.array(list(itertools.product((-1.0, 1.0), repeat=dimension)))


def law(mechanism, signs):
    """Probability of every sign vector, given the rounded one."""
    d, k = mechanism.dimension, mechanism.threshold_agreements
    v = vertices(d)
    agreements = (v == signs).sum(axis=1)
    many, few = (math.exp(x) / 2**d for x in mechanism.log_densities)
    return np.where(agreements >= k, many, few)


@pytest.mark.parametrize("dimension", range(1, 13))
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 9.0])
def test_by_enumeration_it_is_a_law_unbiased_and_never_above_e_to_the_epsilon(dimension, epsilon):
    best = PrivUnitInfinity.calibrated(dimension=dimension, epsilon=epsilon)
    for k in range(dimension // 2 + 1, dimension + 1):
        mechanism = PrivUnitInfinity(
            dimension=dimension, epsilon=epsilon, threshold_agreements=k, epsilon_exact=best.epsilon_exact
        )
        probability = law(mechanism, np.ones(dimension))
        assert probability.sum() == pytest.approx(1.0, rel=1e-12)
        assert probability @ vertices(dimension) == pytest.approx(np.full(dimension, mechanism.m), rel=1e-11)
        assert math.log(probability.max() / probability.min()) <= epsilon
        assert mechanism.m <= best.m * (1 + 1e-12)
        assert mechanism.variance == pytest.approx(dimension * (1 / mechanism.m**2 - 1), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
def test_by_enumeration_it_is_unbiased_and_private_within_the_cube(dimension):
    """The rounding to signs enumerated too."""
    mechanism = PrivUnitInfinity.calibrated(dimension=dimension, epsilon=2.0)
    v = vertices(dimension)
    channel = np.array([law(mechanism, signs) for signs in v])
    laws = []
    for u in np.random.default_rng(dimension).uniform(-1, 1, (20, dimension)):
        rounding = np.prod((1 + v * u) / 2, axis=1)
        laws.append(rounding @ channel)
        assert laws[-1] @ v * mechanism.output_norm == pytest.approx(u, abs=1e-12)
        squares = (((v * mechanism.output_norm - u) ** 2).sum(axis=1) * laws[-1]).sum()
        assert squares == pytest.approx(mechanism.second_moment - u @ u, rel=1e-11)
    laws = np.array(laws)
    assert np.log(laws.max(axis=0) / laws.min(axis=0)).max() <= 2.0


@pytest.mark.parametrize("dimension", [13, 101, 1000, 20_000])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0, 500.0])
def test_no_neighbouring_threshold_is_better(dimension, epsilon):
    mechanism = PrivUnitInfinity.calibrated(dimension=dimension, epsilon=epsilon)
    level, k = mechanism.epsilon_exact, mechanism.threshold_agreements
    for other in {k - 1, k + 1, k - 7, k + 20, (k + dimension) // 2, dimension // 2 + 1}:
        if dimension // 2 < other <= dimension:
            m = math.exp(privunit_infinity._log_constant(dimension, other, level))
            assert m <= mechanism.m * (1 + 1e-13)


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 1000, 100_001, 4_000_000])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 50.0, 745.0, 1e5])
def test_nothing_saturates_at_any_level_and_dimension(dimension, epsilon):
    mechanism = PrivUnitInfinity.calibrated(dimension=dimension, epsilon=epsilon)
    for value in mechanism.summary().values():
        assert math.isfinite(value)
    assert 1.0 <= mechanism.output_norm < 1e11
    assert mechanism.variance >= 0.0
    assert mechanism.epsilon_exact <= epsilon
    on, off = mechanism.log_densities
    assert on - off <= epsilon
    assert math.isfinite(mechanism.log_odds)


def test_the_search_looks_at_no_more_thresholds_than_a_bisection(monkeypatch):
    """What keeps it below 5 ms: at d = 4 million one look sums at most 9,000 terms."""
    looked = 0
    original = privunit_infinity._log_constant

    def counted(*arguments):
        nonlocal looked
        looked += 1
        return original(*arguments)

    monkeypatch.setattr(privunit_infinity, "_log_constant", counted)
    PrivUnitInfinity.calibrated(dimension=4_000_000, epsilon=8.0)
    assert looked <= 22


@pytest.mark.parametrize(("dimension", "k"), [(1, 1), (3, 2), (4, 3), (4, 4)])
def test_samples_have_the_enumerated_law(dimension, k):
    mechanism = PrivUnitInfinity(dimension=dimension, epsilon=1.5, threshold_agreements=k, epsilon_exact=1.5)
    u, n, rng = np.linspace(-1.0, 0.5, dimension), 40_000, np.random.default_rng(dimension)
    v = vertices(dimension)
    rounding = np.prod((1 + v * u) / 2, axis=1)
    expected = rounding @ np.array([law(mechanism, signs) for signs in v]) * n
    many = mechanism.privatise_many(np.tile(u, (n, 1)), rng)
    single = np.array([mechanism.privatise(u, rng) for _ in range(n // 10)])
    powers = 2 ** np.arange(dimension)[::-1]
    for z in (many, single):
        assert np.abs(z) == pytest.approx(mechanism.output_norm, rel=1e-14)
        counts = np.bincount(((z > 0) @ powers).astype(int), minlength=2**dimension)
        assert chisquare(counts, expected * len(z) / n).pvalue > 1e-6


@pytest.mark.parametrize(("d", "size"), [(6, 3), (6, 1), (6, 5), (5, 0), (5, 5)])
def test_a_subset_has_its_size_and_every_one_is_as_likely(d, size):
    n, rng = 20_000, np.random.default_rng(5)
    seen = collections.Counter(tuple(np.flatnonzero(_subset(d, size, rng)).tolist()) for _ in range(n))
    assert set(seen) == set(itertools.combinations(range(d), size))
    assert len(seen) == 1 or chisquare(list(seen.values())).pvalue > 1e-6


@pytest.mark.parametrize("size", [0, 1, 40_000, 70_000, 99_999, 100_000])
def test_a_large_subset_has_its_size_and_no_favourite_half(size):
    """Fails with probability 1e-6."""
    chosen = _subset(100_000, size, np.random.default_rng(6))
    assert chosen.sum() == size
    spread = math.sqrt(size * (100_000 - size) / (4 * 99_999))  # of the hypergeometric law
    assert abs(chosen[:50_000].sum() - size / 2) <= max(0.5, 4.9 * spread)


@pytest.mark.parametrize(("dimension", "epsilon"), [(30, 3.0), (200, 12.0)])
def test_it_is_unbiased_with_its_exact_variance(dimension, epsilon):
    """Largest z-score of the coordinates and of the variance; fails with probability 1e-6."""
    mechanism, n = PrivUnitInfinity.calibrated(dimension=dimension, epsilon=epsilon), 20_000
    u = np.random.default_rng(1).uniform(-1, 1, dimension)
    u[0] = 1.0
    errors = mechanism.privatise_many(np.tile(u, (n, 1)), np.random.default_rng(2)) - u
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0)).max() * math.sqrt(n) < 6.0
    squares = (errors**2).sum(axis=1)
    assert abs(squares.mean() - (mechanism.second_moment - u @ u)) < 4.9 * squares.std() / math.sqrt(n)


@pytest.mark.parametrize(("claim", "spent", "caught"), [(2.0, 2.0, False), (2.0, 2.6, True)])
def test_the_local_guarantee_holds_on_samples_and_overspending_is_caught(claim, spent, caught):
    """At confidence 1 - 1e-6, from the event "at least k agreements with u" under u and under -u."""
    mechanism, n, rng = PrivUnitInfinity.calibrated(dimension=9, epsilon=spent), 100_000, np.random.default_rng(3)
    u = np.ones(9)
    hits = [
        int(
            (
                (mechanism.privatise_many(np.tile(s * u, (n, 1)), rng) > 0).sum(axis=1)
                >= mechanism.threshold_agreements
            ).sum()
        )
        for s in (1.0, -1.0)
    ]
    seen = math.log(beta.ppf(5e-7, hits[0], n - hits[0] + 1) / beta.ppf(1 - 5e-7, hits[1] + 1, n - hits[1]))
    assert seen > 0.8 * spent
    assert (seen > claim) is caught


def test_the_largest_dimension_is_drawn():
    mechanism = PrivUnitInfinity.calibrated(dimension=4_000_000, epsilon=100.0)
    z = mechanism.privatise(np.ones(4_000_000, dtype=np.float32), np.random.default_rng(4))
    assert np.abs(z) == pytest.approx(mechanism.output_norm, rel=1e-14)
    assert int((z > 0).sum()) >= mechanism.threshold_agreements  # with this seed p came up


def test_points_outside_the_cube_and_no_numbers_are_refused():
    mechanism, rng = PrivUnitInfinity.calibrated(dimension=2, epsilon=1.0), np.random.default_rng(5)
    assert mechanism.privatise(np.array([1, -1]), rng).shape == (2,)
    for bad in (1.0000001, -3.0):
        with pytest.raises(ConfigurationError, match="-1 to 1 is possible"):
            mechanism.privatise(np.array([0.0, bad]), rng)
        with pytest.raises(ConfigurationError, match="-1 to 1 is possible"):
            mechanism.privatise_many(np.array([[0.0, bad]]), rng)
    for bad in (math.nan, math.inf):
        with pytest.raises(ConfigurationError, match="NaN or infinite"):
            mechanism.privatise(np.array([0.0, bad]), rng)
        with pytest.raises(ConfigurationError, match=r"NaN or infinite|-1 to 1"):
            mechanism.privatise_many(np.array([[0.0, bad]]), rng)


@pytest.mark.parametrize("k", [0, 2, 6, 3.0, True])
def test_impossible_thresholds_are_refused(k):
    good = PrivUnitInfinity(dimension=5, epsilon=1.0, threshold_agreements=3, epsilon_exact=1.0)
    assert good.m > 0
    with pytest.raises(ConfigurationError, match=r"threshold_agreements: .* given; 3 to 5 is possible"):
        PrivUnitInfinity(dimension=5, epsilon=1.0, threshold_agreements=k, epsilon_exact=1.0)


def test_a_claim_below_the_exact_level_is_refused():
    with pytest.raises(ConfigurationError, match=r"epsilon: .* the exact level"):
        PrivUnitInfinity(dimension=5, epsilon=0.9, threshold_agreements=3, epsilon_exact=1.0)
