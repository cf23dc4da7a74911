"""ProjUnit: its constant against 50-digit vectors, unbiased with its exact error over matrix and report."""

import math

import numpy as np
import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
from p2p_labeldp.mechanisms.projunit import ProjUnit

# dimension, projected, c of the rotation, c of the Gaussian matrix
VECTORS = [
    (20, 5, 0.9634966686586402, 0.9515328619481446),
    (1000, 10, 0.9755939451060959, 0.9753500771452293),
    (1000, 100, 0.9977525708790926, 0.9975031639551051),
    (32768, 800, 0.9996951759442060, 0.9996875489043938),
    (3274634, 5000, 0.9999500775909081, 0.9999500012503125),
]


@pytest.mark.parametrize(("dimension", "projected", "rotation", "gaussian"), VECTORS)
def test_c_agrees_with_50_digit_arithmetic(dimension, projected, rotation, gaussian):
    inner = PrivUnitG.calibrated(dimension=projected, epsilon=1.0)
    assert ProjUnit(dimension=dimension, inner=inner).c == pytest.approx(rotation, rel=1e-12)
    assert ProjUnit(dimension=dimension, inner=inner, projection="gaussian").c == pytest.approx(gaussian, rel=1e-12)


@pytest.mark.parametrize("projection", ["rotation", "gaussian"])
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_it_is_unbiased_with_its_exact_variance_over_matrix_and_report(projection, epsilon):
    """Largest z-score; fails with probability 1e-6."""
    mechanism = ProjUnit.calibrated(dimension=12, epsilon=epsilon, projected=4, projection=projection)
    rng, n = np.random.default_rng(1), 8000
    u = np.arange(1.0, 13.0)
    unit = u / np.linalg.norm(u)
    errors = np.empty((n, 12))
    for i in range(n):
        matrix = mechanism.draw_projection(rng)
        errors[i] = mechanism.estimate(mechanism.privatise(u, matrix, rng), matrix) - unit
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0)).max() * math.sqrt(n) < 5.5
    squares = (errors**2).sum(axis=1)
    assert abs(squares.mean() - mechanism.variance) < 4.9 * squares.std() / math.sqrt(n)


def test_rows_of_the_rotation_are_orthogonal_and_of_the_stated_length():
    matrix = ProjUnit.calibrated(dimension=30, epsilon=1.0, projected=6).draw_projection(np.random.default_rng(2))
    assert matrix @ matrix.T == pytest.approx(5.0 * np.eye(6), abs=1e-12)


def test_projecting_to_all_dimensions_is_privunit_g_itself():
    mechanism = ProjUnit.calibrated(dimension=30, epsilon=4.0)
    assert mechanism.projected == 30
    assert mechanism.c == pytest.approx(1.0, rel=1e-14)
    assert mechanism.variance == pytest.approx(mechanism.inner.variance, rel=1e-12)


def test_the_default_projection_loses_a_few_per_cent():
    for epsilon in (1.0, 8.0):
        mechanism = ProjUnit.calibrated(dimension=100_000, epsilon=epsilon)
        assert mechanism.projected == max(50, math.ceil(50 * epsilon))
        full = PrivUnitG.calibrated(dimension=100_000, epsilon=epsilon)
        assert 1.0 < mechanism.variance / full.variance < 1.06
        assert mechanism.epsilon_exact <= mechanism.epsilon == epsilon


def test_extreme_updates_and_zero_are_taken_and_nan_is_refused():
    mechanism, rng = ProjUnit.calibrated(dimension=5, epsilon=1.0, projected=2), np.random.default_rng(3)
    matrix = mechanism.draw_projection(rng)
    for scale in (0.0, 1e-320, 1.0, 1e307):
        assert np.isfinite(mechanism.privatise(np.ones(5) * scale, matrix, rng)).all()
    with pytest.raises(ConfigurationError, match="NaN"):
        mechanism.privatise(np.array([1.0, math.nan, 0.0, 0.0, 0.0]), matrix, rng)


def test_impossible_parameters_are_refused():
    with pytest.raises(ConfigurationError, match="projected: 6 given; 1 to 5"):
        ProjUnit.calibrated(dimension=5, epsilon=1.0, projected=6)
    with pytest.raises(ConfigurationError, match="projection: 'hadamard' given"):
        ProjUnit.calibrated(dimension=5, epsilon=1.0, projected=2, projection="hadamard")
    with pytest.raises(ConfigurationError, match="epsilon"):
        ProjUnit.calibrated(dimension=5, epsilon=0.0)
    with pytest.raises(ConfigurationError, match=r"at most 50000000 entries"):
        ProjUnit.calibrated(dimension=4_000_000, epsilon=1.0).draw_projection(np.random.default_rng(1))
    mechanism = ProjUnit.calibrated(dimension=5, epsilon=1.0, projected=2)
    for report in (np.zeros(3), np.zeros((2, 1)), np.array([1.0, math.nan]), np.array([math.inf, 0.0])):
        with pytest.raises(ConfigurationError, match=r"report: shape .* given; 2 finite numbers are needed"):
            mechanism.estimate(report, np.zeros((2, 5)))
    with pytest.raises(ConfigurationError, match="matrix: shape"):
        ProjUnit.calibrated(dimension=5, epsilon=1.0, projected=2).estimate(np.zeros(2), np.zeros((5, 2)))
