"""PrivUnitG: its constants against 50-digit vectors, and its law on samples."""

import math

import numpy as np
import pytest
from scipy.stats import beta, kstest, norm

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG

# epsilon, gamma, p, log P, sigma
VECTORS = [
    (0.5, 0.1992844481022281, 0.5452292503270099, -0.8650746509509277, 5.017953029064387),
    (1.0, 0.3974630104671865, 0.5893257280994977, -1.062724925634907, 2.515957393933535),
    (10.0, 3.260060241628991, 0.9246665560478061, -7.493048084331804, 0.3067427979491320),
    (100.0, 13.50960587404393, 0.9946085183985224, -94.78247101593728, 0.07402140442315230),
    (500.0, 31.26501253306403, 0.9989801068974353, -493.1129629549623, 0.03198463454772197),
]


@pytest.mark.parametrize(("epsilon", "gamma", "p", "log_tail", "sigma"), VECTORS)
def test_constants_agree_with_50_digit_arithmetic(epsilon, gamma, p, log_tail, sigma):
    mechanism = PrivUnitG.calibrated(dimension=7, epsilon=epsilon)
    assert mechanism.summary() == {
        "gamma": pytest.approx(gamma, rel=1e-9),
        "p": pytest.approx(p, rel=1e-9),
        "sigma": pytest.approx(sigma, rel=1e-9),
        "log_cap_mass": pytest.approx(log_tail, rel=1e-9),
        "output_norm": math.inf,
        "epsilon_exact": pytest.approx(epsilon, rel=1e-9),
        "variance": pytest.approx(7 * sigma**2, rel=1e-9),
    }
    assert mechanism.epsilon_exact <= epsilon


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 50.0, 745.0, 1e4, 1e5])
@pytest.mark.parametrize("dimension", [1, 2, 1000, 4_000_000])
def test_the_optimum_is_the_fixed_point_and_isotropic_at_every_level_and_dimension(epsilon, dimension):
    mechanism = PrivUnitG.calibrated(dimension=dimension, epsilon=epsilon)
    assert mechanism.m == pytest.approx(mechanism.gamma, rel=1e-12)
    along, across = mechanism.covariance
    assert along == pytest.approx(across, rel=1e-9, abs=1e-15)
    assert mechanism.variance == pytest.approx(dimension * mechanism.sigma**2, rel=1e-9)
    assert math.isfinite(mechanism.log_odds)
    assert mechanism.log_odds + float(norm.logsf(-mechanism.gamma)) - mechanism.log_cap_mass <= epsilon * (1 + 1e-12)
    assert mechanism.output_norm == math.inf


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 100.0])
def test_no_other_threshold_has_a_greater_m_at_the_level(epsilon):
    best = PrivUnitG.calibrated(dimension=1, epsilon=epsilon)
    for factor in (0.1, 0.8, 0.99, 1.01, 1.2, 3.0):
        other = PrivUnitG(dimension=1, epsilon=epsilon, gamma=best.gamma * factor, epsilon_exact=best.epsilon_exact)
        assert other.m <= best.m


@pytest.mark.parametrize("epsilon", [1.0, 8.0, 100.0])
def test_it_is_the_limit_of_privunit2_in_many_dimensions(epsilon):
    sphere = PrivUnit2.calibrated(dimension=10_000_000, epsilon=epsilon)
    limit = PrivUnitG.calibrated(dimension=10_000_000, epsilon=epsilon)
    assert sphere.gamma * math.sqrt(10_000_000) == pytest.approx(limit.gamma, rel=1e-4)
    assert sphere.variance == pytest.approx(limit.variance, rel=1e-4)
    assert sphere.variance < limit.variance


@pytest.mark.parametrize(
    "mechanism",
    [
        PrivUnitG.calibrated(dimension=1, epsilon=1.0),
        PrivUnitG.calibrated(dimension=3, epsilon=1.0),
        PrivUnitG.calibrated(dimension=20, epsilon=6.0),
        PrivUnitG(dimension=4, epsilon=2.0, gamma=0.2, epsilon_exact=2.0),
        PrivUnitG(dimension=4, epsilon=2.0, gamma=2.0, epsilon_exact=2.0),
    ],
)
def test_it_is_unbiased_with_its_exact_variance(mechanism):
    """Largest z-score; fails with probability 1e-6."""
    d, n = mechanism.dimension, 40_000
    u = np.random.default_rng(d).standard_normal(d)
    unit = u / np.linalg.norm(u)
    errors = mechanism.privatise_many(np.tile(u, (n, 1)), np.random.default_rng(2)) - unit
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0)).max() * math.sqrt(n) < 6.0
    squares, along = (errors**2).sum(axis=1), (errors @ unit) ** 2
    assert abs(squares.mean() - mechanism.variance) < 4.9 * squares.std() / math.sqrt(n)
    assert abs(along.mean() - mechanism.covariance[0]) < 4.9 * along.std() / math.sqrt(n)


@pytest.mark.parametrize("gamma", [0.3, 0.7, 2.5])
def test_heights_have_the_two_sided_gaussian_law(gamma):
    mechanism = PrivUnitG(dimension=1, epsilon=1.0, gamma=gamma, epsilon_exact=1.0)
    t = mechanism.heights(40_000, np.random.default_rng(3))
    high = t >= gamma
    p, n = mechanism.cap_probability, t.size
    assert abs(int(high.sum()) - n * p) < 4.9 * math.sqrt(n * p * (1 - p))
    assert kstest(norm.sf(t[high]) / norm.sf(gamma), "uniform").pvalue > 1e-6
    assert kstest(norm.cdf(t[~high]) / norm.cdf(gamma), "uniform").pvalue > 1e-6


@pytest.mark.parametrize(("claim", "spent", "caught"), [(2.0, 2.0, False), (2.0, 2.6, True)])
def test_the_local_guarantee_holds_on_samples_and_overspending_is_caught(claim, spent, caught):
    """At confidence 1 - 1e-6, from the event "beyond the threshold along u" under u and under -u."""
    mechanism, n, rng = PrivUnitG.calibrated(dimension=3, epsilon=spent), 100_000, np.random.default_rng(4)
    u = np.array([1.0, 0.0, 0.0])
    hits = [
        int((mechanism.privatise_many(np.tile(v, (n, 1)), rng) @ u * mechanism.m >= mechanism.gamma).sum())
        for v in (u, -u)
    ]
    seen = math.log(beta.ppf(5e-7, hits[0], n - hits[0] + 1) / beta.ppf(1 - 5e-7, hits[1] + 1, n - hits[1]))
    assert seen > 0.8 * spent
    assert (seen > claim) is caught


def test_one_draw_has_the_law_of_many_also_without_a_direction():
    mechanism, rng, n = PrivUnitG.calibrated(dimension=3, epsilon=2.0), np.random.default_rng(5), 5000
    for u in (np.array([0.6, 0.0, 0.8]), np.zeros(3)):
        one = np.array([mechanism.privatise(u, rng) for _ in range(n)])
        many = mechanism.privatise_many(np.tile(u, (n, 1)), rng)
        for z in (one, many):
            assert np.abs((z - u).mean(axis=0) / z.std(axis=0)).max() * math.sqrt(n) < 5.2
            squares = (z**2).sum(axis=1)
            assert abs(squares.mean() - mechanism.second_moment) < 4.9 * squares.std() / math.sqrt(n)


@pytest.mark.parametrize("field", ["gamma", "epsilon_exact", "epsilon", "dimension"])
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf])
def test_impossible_parameters_are_refused(field, bad):
    good = {"dimension": 3, "epsilon": 1.0, "gamma": 0.5, "epsilon_exact": 1.0}
    assert PrivUnitG(**good).m > 0
    with pytest.raises(ConfigurationError, match=field):
        PrivUnitG(**{**good, field: bad})
