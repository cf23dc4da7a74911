"""PrivUnit2: its constants against 50-digit vectors, its law on samples, what it takes and what it refuses."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.grid import stretch
from p2p_labeldp.mechanisms.privunit import PrivUnit2

# dimension, epsilon, gamma, output norm, log P, p
ON_GRID = stretch(40)
VECTORS = [
    (2, 1.0, 0.3082871299048065, 3.2437293126987883, -0.9156802969410403, 0.6446381282519038),
    (3, 1.0, 0.24491866240370913, 4.082988165073597, -0.9740769841801067, 0.6224593312018546),
    (5, 2.0, 0.3567535713566174, 2.8030553308753894, -1.4114640542261714, 0.7043224885604249),
    (10, 4.0, 0.462532080533785, 2.1620121978262574, -2.5769816162267327, 0.8178822479244647),
    (100, 6.0, 0.21459271611114128, 4.65999041403662, -4.161601672756038, 0.8646081921022258),
    (500, 31.25, 0.3053168520782133, 3.275285963395919, -27.27237485854492, 0.9816142976296095),
    (500, 62.5, 0.44282584251850216, 2.2582241233091946, -57.67850848185417, 0.9920095964694469),
    (500, 500.0, 0.9265965594925838, 1.0792183391524925, -491.9791857080159, 0.9996715555349183),
    (1000, 10.0, 0.10284435006394227, 9.723431567978812, -7.487292737068751, 0.9250667082330416),
    (10000, 8.0, 0.027424974638879402, 36.463114849423995, -5.793985750038653, 0.9010605771363651),
]
# of 40,000 draws some hundreds or more are off the cap: what comes up once tells no mean and no variance
SETTINGS = [(1, 1.0), (2, 0.5), (2, 6.0), (3, 1.0), (5, 12.0), (10, 4.0), (50, 8.0), (300, 40.0)]


def unit(dimension, seed=0):
    u = np.random.default_rng([dimension, seed]).standard_normal(dimension)
    return u / np.linalg.norm(u)


@pytest.mark.parametrize(("dimension", "epsilon", "gamma", "output_norm", "log_cap_mass", "p"), VECTORS)
def test_constants_agree_with_50_digit_arithmetic(dimension, epsilon, gamma, output_norm, log_cap_mass, p):
    summary = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon).summary()
    assert summary == {
        "gamma": pytest.approx(gamma, rel=1e-9),
        "p": pytest.approx(p, rel=1e-9),
        "output_norm": pytest.approx(output_norm, rel=1e-9),
        "log_cap_mass": pytest.approx(log_cap_mass, rel=1e-9),
        "epsilon_exact": pytest.approx(epsilon, rel=1e-9),
        "variance": pytest.approx(output_norm**2 - 1, rel=1e-9),
    }
    assert summary["epsilon_exact"] <= epsilon


def test_the_published_inflations_of_the_simulated_regression_are_reproduced():
    """1/m^2 at d = 500 for eps1 = d/16, d/8, d/4, d/2, d."""
    inflations = [PrivUnit2.calibrated(dimension=500, epsilon=500 / k).second_moment for k in (16, 8, 4, 2, 1)]
    assert inflations == pytest.approx([10.73, 5.10, 2.69, 1.62, 1.165], abs=5e-3)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 3.0, 50.0, 1e3, 1e5])
def test_in_one_dimension_it_is_binary_randomized_response(epsilon):
    mechanism = PrivUnit2.calibrated(dimension=1, epsilon=epsilon)
    assert mechanism.m == pytest.approx(math.tanh(epsilon / 2), rel=1e-7)
    assert mechanism.log_odds == pytest.approx(epsilon, rel=1e-7)


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 1000, 100_000, 4_000_000])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 50.0, 745.0, 1e4, 1e5])
@pytest.mark.parametrize("calibration", ["exact", "theorem1"])
def test_nothing_saturates_at_any_level_and_dimension(dimension, epsilon, calibration):
    if calibration == "theorem1" and dimension < 3:
        return
    mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon, calibration=calibration)
    for value in mechanism.summary().values():
        assert math.isfinite(value)
    assert 1.0 <= mechanism.output_norm < 1e11
    assert mechanism.variance >= 0
    assert 0 < mechanism.epsilon_exact <= epsilon
    assert mechanism.epsilon_exact == pytest.approx(epsilon, rel=1e-6 if calibration == "exact" else 1)
    assert math.isfinite(mechanism.log_odds)  # p may round to 1, its odds do not to infinity


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 1000, 4_000_000])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 50.0, 1e3, 1e5])
@pytest.mark.parametrize("calibration", ["exact", "theorem1"])
def test_the_two_valued_density_s_ratio_is_never_above_e_to_the_epsilon(dimension, epsilon, calibration):
    if calibration == "theorem1" and dimension < 3:
        return
    mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon, calibration=calibration)
    on, off = mechanism.log_densities
    assert on - off <= epsilon
    assert on >= 0 >= off  # a uniform direction, for an update of zeros, lies between
    mass = mechanism.log_cap_mass
    if mass > -700:
        assert math.exp(on + mass) + math.exp(off) * -math.expm1(mass) == pytest.approx(1.0, rel=1e-11)


def test_a_claim_below_the_exact_level_is_refused():
    good = PrivUnit2.calibrated(dimension=10, epsilon=2.0)
    parameters = {"dimension": 10, "log_gap": good.log_gap, "epsilon_exact": good.epsilon_exact}
    assert PrivUnit2(epsilon=2.0, **parameters) == good
    for claim in (1.99, -1.0, math.nan, math.inf):
        with pytest.raises(ConfigurationError, match=r"epsilon: .* the exact level"):
            PrivUnit2(epsilon=claim, **parameters)


@pytest.mark.parametrize(("dimension", "epsilon"), SETTINGS)
def test_it_is_unbiased(dimension, epsilon):
    """Largest z-score of the coordinates and of the component along u; fails with probability 1e-6."""
    mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon)
    u, n = unit(dimension), 40_000
    z = mechanism.privatise_many(np.tile(7 * u, (n, 1)), np.random.default_rng(dimension))
    errors = np.append(z - u, (z @ u - 1.0)[:, None], axis=1)
    scores = errors.mean(axis=0) / errors.std(axis=0) * math.sqrt(n)
    assert np.abs(scores).max() < 6.0


@pytest.mark.parametrize("dimension", [1, 2, 3, 40])
def test_one_draw_has_the_law_of_many(dimension):
    mechanism, u, n = PrivUnit2.calibrated(dimension=dimension, epsilon=3.0), unit(dimension), 6000
    rng = np.random.default_rng(9)
    z = np.array([mechanism.privatise(u, rng) for _ in range(n)])
    assert np.linalg.norm(z, axis=1) == pytest.approx(mechanism.output_norm, rel=ON_GRID)
    errors = z @ u - 1.0
    assert abs(errors.mean()) / errors.std() * math.sqrt(n) < 4.9
    hits = int(mechanism.in_cap(z, u[None]).sum())
    p = mechanism.cap_probability
    assert abs(hits - n * p) < 4.9 * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize(("dimension", "epsilon"), SETTINGS)
def test_the_exact_variance_is_the_sampled_one(dimension, epsilon):
    mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon)
    u, n = unit(dimension), 40_000
    squares = ((mechanism.privatise_many(np.tile(u, (n, 1)), np.random.default_rng(3)) - u) ** 2).sum(axis=1)
    assert abs(squares.mean() - mechanism.variance) < 4.9 * squares.std() / math.sqrt(n)


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 1000, 4_000_000])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0, 200.0, 1e4])
def test_the_covariance_is_isotropic_at_the_optimum(dimension, epsilon):
    mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon)
    along, across = mechanism.covariance
    expected = mechanism.variance / dimension
    assert along == pytest.approx(expected, rel=1e-8, abs=1e-16)
    if dimension > 1:
        assert across == pytest.approx(expected, rel=1e-8, abs=1e-16)
        assert expected == pytest.approx(
            math.exp(mechanism.log_gap) / -math.expm1(mechanism.log_gap) / dimension, rel=1e-8, abs=1e-16
        )


@pytest.mark.parametrize(
    "mechanism",
    [
        PrivUnit2.calibrated(dimension=6, epsilon=3.0),
        PrivUnit2.of_parameters(dimension=6, gamma=0.1, cap_probability=0.9),
        PrivUnit2.of_parameters(dimension=6, gamma=0.8, cap_probability=0.7),
        PrivUnit2.of_parameters(dimension=2, gamma=0.9, cap_probability=0.95),
    ],
)
def test_the_covariance_is_the_sampled_one_at_and_off_the_optimum(mechanism):
    d, n = mechanism.dimension, 60_000
    u = unit(d)
    z = mechanism.privatise_many(np.tile(u, (n, 1)), np.random.default_rng(4))
    basis, _ = np.linalg.qr(np.column_stack([u, np.random.default_rng(5).standard_normal((d, d - 1))]))
    coordinates = (z - u) @ basis
    along, across = mechanism.covariance
    for axis in range(d):
        squares = coordinates[:, axis] ** 2
        expected = along if axis == 0 else across
        assert abs(squares.mean() - expected) < 5.5 * squares.std() / math.sqrt(n)
    mixed = coordinates[:, 0] * coordinates[:, 1]
    assert abs(mixed.mean()) < 4.9 * mixed.std() / math.sqrt(n)


def audited_epsilon(mechanism, n, rng):
    """Lower bound of the level, at confidence 1 - 1e-6, from the event "V in the cap of u" under u and -u."""
    u = unit(mechanism.dimension)
    hits = [
        int((mechanism.privatise_many(np.tile(s * u, (n, 1)), rng) @ u * mechanism.m >= mechanism.gamma).sum())
        for s in (1.0, -1.0)
    ]
    low = beta.ppf(5e-7, hits[0], n - hits[0] + 1)
    high = beta.ppf(1 - 5e-7, hits[1] + 1, n - hits[1])
    return math.log(low / high)


@pytest.mark.parametrize(("dimension", "epsilon"), [(1, 1.0), (2, 1.0), (3, 2.0), (20, 3.0)])
def test_the_local_guarantee_holds_on_samples_and_is_spent(dimension, epsilon):
    mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon)
    seen = audited_epsilon(mechanism, 100_000, np.random.default_rng(11))
    assert 0.8 * epsilon < seen <= epsilon


def test_the_audit_catches_a_mechanism_that_spends_more_than_it_claims():
    """The control of the test above."""
    spender = PrivUnit2.calibrated(dimension=3, epsilon=2.6)
    assert audited_epsilon(spender, 100_000, np.random.default_rng(12)) > 2.0


def test_the_scale_of_an_update_does_not_matter_and_zero_has_a_uniform_direction():
    mechanism, u = PrivUnit2.calibrated(dimension=4, epsilon=2.0), unit(4)
    reference = mechanism.privatise(u, np.random.default_rng(1))
    for scale in (1e-320, 1e-200, 1e-3, 1.0, 1e200, 1e307):
        z = mechanism.privatise(u * scale, np.random.default_rng(1))
        assert z == pytest.approx(reference, rel=1e-2 if scale == 1e-320 else 1e-9)
    n = 20_000
    z = mechanism.privatise_many(np.zeros((n, 4)), np.random.default_rng(2))
    assert np.linalg.norm(z, axis=1) == pytest.approx(mechanism.output_norm, rel=ON_GRID)
    assert np.abs(z.mean(axis=0) / z.std(axis=0)).max() * math.sqrt(n) < 5.2
    assert np.linalg.norm(mechanism.privatise(np.zeros(4), np.random.default_rng(2))) == pytest.approx(
        mechanism.output_norm, rel=ON_GRID
    )


def test_float32_and_integers_give_the_draw_of_their_double_values():
    mechanism = PrivUnit2.calibrated(dimension=70_000, epsilon=20.0)
    update = np.random.default_rng(3).standard_normal(70_000).astype(np.float32)
    narrow = mechanism.privatise(update, np.random.default_rng(4))
    wide = mechanism.privatise(update.astype(np.float64), np.random.default_rng(4))
    assert narrow.dtype == np.float64
    assert narrow == pytest.approx(wide, rel=1e-9, abs=1e-12)
    assert np.linalg.norm(narrow) == pytest.approx(mechanism.output_norm, rel=stretch(70_000))
    small = PrivUnit2.calibrated(dimension=3, epsilon=1.0)
    integers = small.privatise(np.array([1, -2, 2]), np.random.default_rng(5))
    assert integers == pytest.approx(small.privatise(np.array([1.0, -2.0, 2.0]), np.random.default_rng(5)), rel=1e-15)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_before_anything_is_drawn(bad):
    mechanism, rng = PrivUnit2.calibrated(dimension=3, epsilon=1.0), np.random.default_rng(6)
    before = rng.bit_generator.state
    with pytest.raises(ConfigurationError, match="update: an entry is NaN or infinite"):
        mechanism.privatise(np.array([1.0, bad, 0.0]), rng)
    assert rng.bit_generator.state == before


def test_the_largest_dimensions_and_levels_are_drawn():
    for dimension, epsilon in [(4_000_000, 250.0), (1000, 1e5), (2, 1e5), (1, 1e5), (3, 1e-6)]:
        mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon)
        u = np.ones(dimension, dtype=np.float32)
        z = mechanism.privatise(u, np.random.default_rng(7))
        assert np.linalg.norm(z) == pytest.approx(mechanism.output_norm, rel=stretch(dimension))
        if epsilon > 100:  # with this seed the cap was drawn
            assert z.sum() / math.sqrt(dimension) * mechanism.m >= mechanism.gamma * (1 - 1e-12) - stretch(dimension)


def test_the_same_seed_gives_the_same_draw_and_another_seed_another():
    mechanism, u = PrivUnit2.calibrated(dimension=5, epsilon=1.0), unit(5)
    first, again, other = (mechanism.privatise(u, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


def test_the_paper_s_parameters_give_their_exact_level():
    mechanism = PrivUnit2.of_parameters(dimension=3, gamma=0.4, cap_probability=0.8)
    assert mechanism.epsilon_exact == pytest.approx(math.log(4) + math.log(0.7 / 0.3), rel=1e-12)
    assert mechanism.epsilon_exact < mechanism.epsilon < mechanism.epsilon_exact * (1 + 1e-13)
    assert mechanism.gamma == pytest.approx(0.4, rel=1e-14)
    assert mechanism.cap_probability == pytest.approx(0.8, rel=1e-12)


@pytest.mark.parametrize(("gamma", "p"), [(0.0, 0.5), (1.0, 0.5), (math.nan, 0.5), (0.4, 0.0), (0.4, 1.0), (0.4, 0.29)])
def test_parameters_that_reveal_nothing_or_everything_are_refused(gamma, p):
    with pytest.raises(ConfigurationError, match=r"gamma|cap_probability"):
        PrivUnit2.of_parameters(dimension=3, gamma=gamma, cap_probability=p)


def test_an_unknown_calibration_is_refused():
    with pytest.raises(ConfigurationError, match="calibration: 'best' given; exact and theorem1 are possible"):
        PrivUnit2.calibrated(dimension=3, epsilon=1.0, calibration="best")
