"""Reconstruction bounds: priors by geometry and enumeration, and attackers that try."""

import itertools
import math

import numpy as np
import pytest

from p2p_labeldp.accounting.reconstruction import (
    ReconstructionBound,
    largest_epsilon,
    log_dictionary_prior,
    log_sphere_prior,
)
from p2p_labeldp.auditing.reconstruction import attack_dictionary, attack_direction
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cap import cap
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity


def uniform_directions(n, dimension, rng):
    x = rng.standard_normal((n, dimension))
    return x / np.linalg.norm(x, axis=1)[:, None]


# 50-digit arithmetic
@pytest.mark.parametrize(
    ("dimension", "alpha", "log_prior"),
    [
        (3, 0.5, -2.772588722239781),
        (100, 0.5, -74.90472874624962),
        (500, 1.0, -75.11517379703358),
        (784, 1.0, -116.18899426955187),
    ],
)
def test_the_sphere_s_prior_agrees_with_50_digit_arithmetic(dimension, alpha, log_prior):
    assert log_sphere_prior(dimension=dimension, alpha=alpha) == pytest.approx(log_prior, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.9, 1.2, math.sqrt(2), 1.5, 1.99])
def test_the_sphere_s_prior_is_plain_geometry_in_two_and_three_dimensions(alpha):
    angle = 2 * math.asin(alpha / 2)
    assert math.exp(log_sphere_prior(dimension=2, alpha=alpha)) == pytest.approx(angle / math.pi, rel=1e-12)
    assert math.exp(log_sphere_prior(dimension=3, alpha=alpha)) == pytest.approx(alpha**2 / 4, rel=1e-12)
    assert math.exp(log_sphere_prior(dimension=1, alpha=alpha)) == pytest.approx(0.5)


@pytest.mark.parametrize("dimension", [1, 2, 50])
def test_a_breach_that_cannot_fail_has_prior_one(dimension):
    assert log_sphere_prior(dimension=dimension, alpha=2.0) == 0.0
    assert log_sphere_prior(dimension=dimension, alpha=1.0, on_sphere=False) == 0.0
    assert ReconstructionBound(log_prior=0.0, epsilon=1.0).success == 1.0


@pytest.mark.parametrize("alpha", [0.2, 0.6, 0.95])
def test_an_estimate_off_the_sphere_does_best_at_the_chord_s_centre(alpha):
    """Monte Carlo over the sphere of R^3; fails with probability 1e-6."""
    x, n = uniform_directions(200_000, 3, np.random.default_rng(1)), 200_000
    prior = math.exp(log_sphere_prior(dimension=3, alpha=alpha, on_sphere=False))
    assert prior == pytest.approx((1 - math.sqrt(1 - alpha**2)) / 2, rel=1e-12)
    best = math.sqrt(1 - alpha**2)
    for height in (best, 0.5 * best, min(1.0, best + 0.1), 1.0):
        inside = float((np.linalg.norm(x - [0, 0, height], axis=1) <= alpha).mean())
        spread = math.sqrt(prior * (1 - prior) / n)
        if height == best:
            assert abs(inside - prior) < 4.9 * spread
        else:
            assert inside < prior + 4.9 * spread
    assert prior > math.exp(log_sphere_prior(dimension=3, alpha=alpha))


@pytest.mark.parametrize(("size", "members"), [(1, 0), (1, 1), (5, 2), (8, 3), (9, 7), (10, 5)])
def test_the_dictionary_s_prior_is_the_enumerated_share(size, members):
    guess = set(range(members))
    subsets = list(itertools.combinations(range(size), members))
    for wrong in range(members + 1):
        share = sum(len(guess.difference(s)) <= wrong for s in subsets) / len(subsets)
        prior = log_dictionary_prior(size=size, members=members, wrong=wrong)
        assert math.exp(prior) == pytest.approx(share, rel=1e-12)


def test_the_dictionary_s_prior_is_exact_for_large_dictionaries():
    expected = math.log(1 + 100 * 9900) - (math.lgamma(10_001) - math.lgamma(101) - math.lgamma(9_901))
    assert log_dictionary_prior(size=10_000, members=100, wrong=1) == pytest.approx(expected, rel=1e-9)
    assert log_dictionary_prior(size=10**6, members=10**4, wrong=100) < -1000


@pytest.mark.parametrize("log_prior", [-1e-3, -1.0, -116.0, -5000.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 50.0, 1e4])
def test_the_bound_is_the_odds_formula_below_the_paper_s_and_below_one(log_prior, epsilon):
    bound = ReconstructionBound(log_prior=log_prior, epsilon=epsilon)
    if epsilon < 100 and log_prior > -200:
        p = math.exp(log_prior)
        assert bound.success == pytest.approx(math.exp(epsilon) * p / (1 + math.expm1(epsilon) * p), rel=1e-9)
    assert log_prior <= bound.log_success <= min(0.0, bound.log_success_of_paper)
    assert bound.log_success_of_paper == pytest.approx(min(0.0, epsilon + log_prior), rel=1e-12, abs=1e-9)


def test_participations_add_their_levels():
    thrice = ReconstructionBound(log_prior=-50.0, epsilon=10.0, participations=3)
    assert thrice.total_epsilon == 30.0
    assert thrice.success == pytest.approx(ReconstructionBound(log_prior=-50.0, epsilon=30.0).success, rel=1e-12)
    never = ReconstructionBound(log_prior=-50.0, epsilon=10.0, participations=0)
    assert never.success == pytest.approx(math.exp(-50.0), rel=1e-9)


@pytest.mark.parametrize(("dimension", "epsilon"), [(784, 111.6), (500, 70.5)])
def test_the_table_of_levels_that_keep_success_below_one_per_cent(dimension, epsilon):
    log_prior = log_sphere_prior(dimension=dimension, alpha=1.0)
    assert largest_epsilon(log_prior=log_prior, success=0.01) == pytest.approx(epsilon, abs=0.05)


@pytest.mark.parametrize("log_prior", [-0.7, -20.0, -116.0, -9000.0])
@pytest.mark.parametrize("success", [0.01, 0.5, 0.999, 1e-4])
@pytest.mark.parametrize("participations", [1, 7])
def test_the_largest_level_is_just_within_its_target(log_prior, success, participations):
    if success <= math.exp(log_prior):
        return
    level = largest_epsilon(log_prior=log_prior, success=success, participations=participations)
    at, above = (
        ReconstructionBound(log_prior=log_prior, epsilon=e, participations=participations).success
        for e in (level, level * 1.001)
    )
    assert at <= success
    assert above > success
    assert at == pytest.approx(success, rel=1e-8)


@pytest.mark.parametrize("success", [0.5, 0.4999, 1e-9])
def test_no_level_is_given_where_the_prior_alone_succeeds(success):
    assert largest_epsilon(log_prior=math.log(0.5), success=0.51) > 0
    with pytest.raises(ConfigurationError, match=r"success: .* given; more than 0.5, the chance before any release"):
        largest_epsilon(log_prior=math.log(0.5), success=success)
    with pytest.raises(ConfigurationError, match="more than 1, the chance"):
        largest_epsilon(log_prior=0.0, success=0.9)


@pytest.mark.parametrize(("dimension", "epsilon"), [(1, 0.5), (2, 1.0), (3, 2.0), (10, 5.0), (60, 20.0)])
def test_where_the_bound_is_tight_the_bayes_attack_succeeds_as_the_posterior_says_and_as_the_bound_allows(
    dimension, epsilon
):
    """Uniform prior; the attacker answers V, the centre of the likeliest cap; alpha is that cap's radius.

    Fails with probability 1e-6.
    """
    mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon)
    alpha = math.sqrt(2 - 2 * mechanism.gamma)
    bound = ReconstructionBound(log_prior=log_sphere_prior(dimension=dimension, alpha=alpha), epsilon=epsilon)
    attack = attack_direction(mechanism, alpha=alpha, trials=110_000, rng=np.random.default_rng(2))
    assert attack.posterior == pytest.approx(mechanism.cap_probability, rel=1e-9)
    assert bound.success == pytest.approx(attack.posterior, rel=1e-9)
    assert attack.posterior <= bound.success
    assert abs(attack.success - attack.posterior) < 4.9 * attack.standard_error
    assert attack.success - 4.9 * attack.standard_error <= bound.success


@pytest.mark.parametrize("alpha", [0.3, 0.8, 1.2, 1.6])
def test_elsewhere_the_bayes_attack_succeeds_as_the_posterior_says_and_stays_below_the_bound(alpha):
    """Fails with probability 1e-6."""
    mechanism = PrivUnit2.calibrated(dimension=6, epsilon=4.0)
    bound = ReconstructionBound(log_prior=log_sphere_prior(dimension=6, alpha=alpha), epsilon=4.0)
    attack = attack_direction(mechanism, alpha=alpha, trials=110_000, rng=np.random.default_rng(3))
    assert attack.posterior < bound.success
    assert abs(attack.success - attack.posterior) < 4.9 * attack.standard_error
    assert attack.success < bound.success


def test_a_mechanism_that_spends_more_than_it_claims_breaks_the_bound():
    """The control: the attack is strong enough to notice."""
    spender, claim = PrivUnit2.calibrated(dimension=6, epsilon=5.0), 4.0
    alpha = math.sqrt(2 - 2 * spender.gamma)
    bound = ReconstructionBound(log_prior=log_sphere_prior(dimension=6, alpha=alpha), epsilon=claim)
    attack = attack_direction(spender, alpha=alpha, trials=40_000, rng=np.random.default_rng(4))
    assert attack.success_lower(1 - 1e-6) > bound.success


@pytest.mark.parametrize(("kind", "epsilon"), [(PrivUnitG, 4.0), (PrivUnitInfinity, 4.0), (PrivUnit2, 2.0)])
@pytest.mark.parametrize("participations", [1, 3])
def test_every_direction_and_number_of_releases_stays_below_the_bound(kind, epsilon, participations):
    mechanism = kind.calibrated(dimension=5, epsilon=epsilon)
    for alpha in (0.5, 1.0):
        bound = ReconstructionBound(
            log_prior=log_sphere_prior(dimension=5, alpha=alpha), epsilon=epsilon, participations=participations
        )
        attack = attack_direction(
            mechanism, alpha=alpha, trials=12_000, rng=np.random.default_rng(6), participations=participations
        )
        assert math.exp(bound.log_prior) < attack.success_lower(1 - 1e-6)  # it learnt something
        assert attack.success < bound.success


@pytest.mark.parametrize("kind", [PrivUnitInfinity, PrivUnit2, PrivUnitG])
@pytest.mark.parametrize("participations", [1, 2, 4])
def test_a_bayes_attacker_of_a_dictionary_stays_below_the_composed_bound(kind, participations):
    """Its hits match its own posterior within 4.9 standard errors: fails with probability 1e-6."""
    mechanism = kind.calibrated(dimension=7, epsilon=1.5)
    attack = attack_dictionary(
        mechanism, members=3, wrong=1, trials=16_000, rng=np.random.default_rng(5), participations=participations
    )
    bound = ReconstructionBound(
        log_prior=log_dictionary_prior(size=7, members=3, wrong=1), epsilon=1.5, participations=participations
    )
    assert math.exp(bound.log_prior) == pytest.approx(13 / 35, rel=1e-12)
    assert abs(attack.success - attack.posterior) < 4.9 * attack.standard_error
    assert math.exp(bound.log_prior) < attack.success < bound.success


def test_the_dictionary_attack_notices_a_mechanism_that_spends_more_than_it_claims():
    """The control: one word of two, by the sign of it, where the bound is tight."""
    spender = PrivUnitInfinity.calibrated(dimension=2, epsilon=2.0)
    attack = attack_dictionary(spender, members=1, wrong=0, trials=40_000, rng=np.random.default_rng(7))
    prior = log_dictionary_prior(size=2, members=1, wrong=0)
    assert attack.success_lower(1 - 1e-6) > ReconstructionBound(log_prior=prior, epsilon=0.8).success
    assert attack.success_lower(1 - 1e-6) < ReconstructionBound(log_prior=prior, epsilon=2.0).success


def test_the_summary_names_what_is_printed():
    summary = ReconstructionBound(log_prior=-75.0, epsilon=5.0, participations=10).summary()
    assert summary["total_epsilon"] == 50.0
    assert summary["success"] == pytest.approx(math.exp(-25.0), rel=1e-9)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("log_prior", 0.1),
        ("log_prior", math.nan),
        ("log_prior", -math.inf),
        ("epsilon", -1.0),
        ("epsilon", math.nan),
        ("epsilon", math.inf),
        ("epsilon", True),
        ("participations", -1),
        ("participations", 1.5),
        ("participations", True),
    ],
)
def test_impossible_bounds_are_refused(field, bad):
    good = {"log_prior": -1.0, "epsilon": 1.0, "participations": 1}
    assert ReconstructionBound(**good).success < 1
    with pytest.raises(ConfigurationError, match=field):
        ReconstructionBound(**{**good, field: bad})


@pytest.mark.parametrize("success", [0.0, 1.0, -0.1, math.nan])
def test_impossible_targets_are_refused(success):
    with pytest.raises(ConfigurationError, match="success"):
        largest_epsilon(log_prior=-10.0, success=success)


def test_impossible_priors_are_refused():
    for alpha in (0.0, -1.0, math.nan, math.inf, True):
        with pytest.raises(ConfigurationError, match="alpha"):
            log_sphere_prior(dimension=3, alpha=alpha)
    with pytest.raises(ConfigurationError, match="dimension"):
        log_sphere_prior(dimension=0, alpha=1.0)
    good = {"size": 5, "members": 2, "wrong": 1}
    assert log_dictionary_prior(**good) < 0
    for field, bad in (("size", 0), ("size", 10**7), ("members", 6), ("members", -1), ("wrong", -1), ("wrong", 1.0)):
        with pytest.raises(ConfigurationError, match=field):
            log_dictionary_prior(**{**good, field: bad})


def test_the_prior_is_the_cap_of_the_mechanism():
    """One geometry: the ball of radius alpha around a unit vector cuts the cap of threshold 1 - alpha^2/2."""
    assert log_sphere_prior(dimension=40, alpha=0.9) == pytest.approx(
        cap(40, math.log(0.81 * (1 - 0.81 / 4))).log_mass, rel=1e-13
    )
