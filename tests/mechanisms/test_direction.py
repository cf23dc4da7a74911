"""What holds for every private direction: its two-valued density is that of its samples, and what it states is true."""

import math

import numpy as np
import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity
from p2p_labeldp.mechanisms.projunit import ProjUnit
from p2p_labeldp.mechanisms.scalar import ScalarDP, ScalarRelDP
from p2p_labeldp.mechanisms.separated import Separated

DIRECTIONS = [PrivUnit2, PrivUnitG, PrivUnitInfinity]
THEOREM1 = PrivUnit2.calibrated(dimension=9, epsilon=3.0, calibration="theorem1")
STATED = {"output_norm", "epsilon_exact", "variance"}


def points(kind, dimension):
    """Two points with a common direction, of length 1 in the mechanism's norm."""
    corners = np.ones((2, dimension))
    corners[1, : dimension // 3] = -1.0
    return corners if kind is PrivUnitInfinity else corners / math.sqrt(dimension)


@pytest.mark.parametrize("kind", DIRECTIONS)
@pytest.mark.parametrize("dimension", [3, 7, 30])
def test_the_density_is_the_samples_whoever_they_were_drawn_for(kind, dimension):
    """Under the law of u the density of u' over that of u has mean 1, its square root the affinity of the two laws
    from either side. Fails with probability 1e-6 in each of three."""
    mechanism, n = kind.calibrated(dimension=dimension, epsilon=2.0), 60_000
    both, rng = points(kind, dimension), np.random.default_rng(dimension)
    ratios = []
    for i, u in enumerate(both):
        z = mechanism.privatise_many(np.tile(u, (n, 1)), rng)
        log_density = mechanism.log_density(z, both)
        assert log_density.shape == (n, 2)
        share = float((log_density[:, i] > 0).mean())
        p = mechanism.cap_probability
        assert abs(share - p) < 4.9 * math.sqrt(p * (1 - p) / n)
        ratios.append(np.exp(log_density[:, 1 - i] - log_density[:, i]))
    for ratio in ratios:
        assert abs(ratio.mean() - 1) < 4.9 * ratio.std() / math.sqrt(n)
        assert ratio.max() <= math.exp(2.0)
        assert ratio.max() >= math.exp(1.99)  # and the level is spent
    roots = [np.sqrt(ratio) for ratio in ratios]
    assert abs(roots[0].mean() - roots[1].mean()) < 4.9 * math.hypot(*(r.std() for r in roots)) / math.sqrt(n)


def test_a_cap_whose_threshold_rounds_to_one_still_holds_its_draws():
    mechanism, rng = PrivUnit2.calibrated(dimension=5, epsilon=1000.0), np.random.default_rng(1)
    assert mechanism.gamma == 1.0
    u = points(PrivUnit2, 5)[1]
    z = mechanism.privatise_many(np.tile(u, (100, 1)), rng)
    assert mechanism.in_cap(z, u[None]).all()
    assert not mechanism.in_cap(-z, u[None]).any()


def test_the_density_of_a_point_within_the_cube_is_refused():
    mechanism = PrivUnitInfinity.calibrated(dimension=3, epsilon=1.0)
    assert mechanism.in_cap(np.ones((1, 3)), np.ones((1, 3))).all()
    with pytest.raises(ConfigurationError, match="points: an entry is neither"):
        mechanism.in_cap(np.ones((1, 3)), np.full((1, 3), 0.5))


@pytest.mark.parametrize(
    "mechanism",
    [
        *(kind.calibrated(dimension=9, epsilon=3.0) for kind in DIRECTIONS),
        THEOREM1,
        ProjUnit.calibrated(dimension=9, epsilon=3.0, projected=4),
        ProjUnit.calibrated(dimension=9, epsilon=3.0, projected=4, projection="gaussian"),
        *(kind.calibrated(epsilon=3.0, max_radius=2.0) for kind in (ScalarDP, ScalarRelDP)),
        Separated.calibrated(dimension=9, epsilon_direction=2.0, epsilon_magnitude=1.0, max_radius=2.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_every_mechanism_states_its_exact_level_its_variance_and_its_largest_output(mechanism):
    summary = mechanism.summary()
    assert set(summary) >= STATED
    assert 2.0 < summary["epsilon_exact"] <= 3.0  # theorem1 spends less than it claims
    if mechanism != THEOREM1:
        assert summary["epsilon_exact"] > 3.0 - 1e-12
    assert summary["output_norm"] == mechanism.output_norm
    assert all(type(value) in (int, float) and not math.isnan(value) for value in summary.values())
    variance = mechanism.variance
    assert summary["variance"] == (variance(summary["radius"]) if callable(variance) else variance)
    assert summary["variance"] > 0


@pytest.mark.parametrize("kind", DIRECTIONS)
@pytest.mark.parametrize("dimension", [1, 2, 4_000_000])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e5])
def test_what_is_stated_is_finite_at_the_ends_of_the_range(kind, dimension, epsilon):
    mechanism = kind.calibrated(dimension=dimension, epsilon=epsilon)
    assert mechanism.m > 0
    assert mechanism.output_norm >= 1
    assert mechanism.second_moment == pytest.approx(mechanism.variance + mechanism.squared_length)
    assert all(math.isfinite(v) for name, v in mechanism.summary().items() if v != math.inf or name != "output_norm")
    assert all(map(math.isfinite, mechanism.log_densities))
