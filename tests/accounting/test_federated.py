"""The three ledgers of private rounds: the design's table of noise, sigma, budgets, and who is shrunk."""

import math

import numpy as np
import pytest

from p2p_labeldp.accounting import gaussian
from p2p_labeldp.accounting.federated import (
    PeerLedger,
    Rounds,
    most_participations,
    safe_projection,
    shrunk_share,
    side_by_side,
)
from p2p_labeldp.accounting.reconstruction import log_sphere_prior
from p2p_labeldp.errors import BudgetExhausted, ConfigurationError
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
from p2p_labeldp.mechanisms.scalar import ScalarDP
from p2p_labeldp.mechanisms.separated import Separated

DELTA = 1e-9
# epsilon, T, q: the least noise multiplier by RDP and by PLD; the paper's targets for MNIST and CIFAR-10
TABLE = [
    (1.9, 100, 0.01, 1.100, 0.991),
    (1.9, 100, 0.1, 3.455, 3.290),
    (1.76, 200, 0.01, 1.167, 1.048),
    (1.76, 200, 0.1, 4.994, 4.756),
]
SMALL = Rounds(population=1000, sampling_rate=0.1, rounds=20, projection=1.5)


def rounds(**changes):
    return Rounds(**{"population": 1000, "sampling_rate": 0.1, "rounds": 20, "projection": 1.5, **changes})


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
@pytest.mark.parametrize(("epsilon", "steps", "rate", "by_rdp", "by_pld"), TABLE)
def test_the_papers_targets_take_the_noise_of_the_table(epsilon, steps, rate, by_rdp, by_pld, accountant):
    played = rounds(sampling_rate=rate, rounds=steps)
    z = by_rdp if accountant == "rdp" else by_pld

    def spent(multiplier):
        return played.epsilon(sigma=played.sigma(multiplier), delta=DELTA, accountant=accountant)

    assert spent(z) <= epsilon < spent(z - 1.5e-3)  # the table is rounded up to three digits


def test_sigma_is_the_multiplier_in_units_of_the_projection_over_the_expected_cohort():
    assert SMALL.expected_cohort == 100
    assert SMALL.sigma(2.0) == pytest.approx(2.0 * 1.5 / 100)
    assert SMALL.noise_multiplier(SMALL.sigma(2.0)) == pytest.approx(2.0)
    assert rounds(projection=3.0).sigma(2.0) == 2 * SMALL.sigma(2.0)


def test_the_tighter_accountant_is_named_and_both_are_upper_bounds():
    by = {name: SMALL.epsilon(sigma=0.03, delta=DELTA, accountant=name) for name in ("rdp", "pld", "tighter")}
    assert by["tighter"] == by["pld"] < by["rdp"]
    stated = SMALL.guarantee(sigma=0.03, delta=DELTA)
    assert (stated.epsilon, stated.method) == (by["pld"], "subsampled gaussian, pld")


def test_a_sigma_for_a_target_meets_it_and_wastes_little():
    sigma = SMALL.sigma_for(epsilon=2.0, delta=DELTA)
    assert 2.0 * (1 - 2e-3) <= SMALL.epsilon(sigma=sigma, delta=DELTA) <= 2.0


def test_when_everybody_takes_part_the_rounds_are_one_gaussian_mechanism():
    everybody = rounds(sampling_rate=1.0, rounds=9)
    found = everybody.epsilon(sigma=everybody.sigma(6.0), delta=DELTA)
    assert found == gaussian.epsilon(0.5, DELTA)


def test_little_noise_is_no_reason_to_claim_little():
    one = rounds(rounds=1)
    found = [one.epsilon(sigma=one.sigma(z), delta=DELTA) for z in (0.01, 0.06, 0.3)]
    assert found == sorted(found, reverse=True)
    for z, epsilon in zip((0.01, 0.06, 0.3), found, strict=True):
        assert epsilon > 0.9 * (0.5 / z**2 - 5 / z)  # the loss of a peer that is in, less five deviations


def test_what_an_accountant_can_not_do_it_does_not_claim_to_have_done():
    little = SMALL.sigma(0.05)
    assert set(SMALL.epsilons(sigma=little, delta=DELTA)) == {"rdp"}
    with pytest.raises(ConfigurationError, match=r"^sigma: noise multiplier 0.05 given"):
        SMALL.epsilon(sigma=little, delta=DELTA, accountant="pld")
    assert set(SMALL.epsilons(sigma=SMALL.sigma(2.0), delta=DELTA)) == {"rdp", "pld"}
    assert set(rounds(sampling_rate=1.0).epsilons(sigma=1.0, delta=DELTA)) == {"exact"}


def test_an_accountant_that_can_not_see_delta_after_so_many_rounds_is_not_asked():
    many = rounds(sampling_rate=0.99, rounds=100_000)
    assert set(many.epsilons(sigma=many.sigma(1000.0), delta=1e-12)) == {"rdp"}
    assert many.epsilon(sigma=many.sigma(1000.0), delta=1e-12, accountant="pld") == math.inf


def test_a_reduced_sigma_stands_beside_the_honest_one_and_its_larger_epsilon():
    both = side_by_side(SMALL, epsilon=2.0, delta=DELTA, sigma=0.02)
    assert both.reduced
    assert both.honest.epsilon <= 2.0 < both.stated.epsilon
    assert both.honest_sigma > both.sigma == 0.02
    assert both.stated.epsilon == SMALL.epsilon(sigma=0.02, delta=DELTA)
    silent = side_by_side(SMALL, epsilon=2.0, delta=DELTA, sigma=0.0)
    assert silent.reduced
    assert not silent.stated.private
    alone = side_by_side(SMALL, epsilon=2.0, delta=DELTA)
    assert not alone.reduced
    assert alone.stated == alone.honest == both.honest


def test_a_peers_ledger_counts_reports_and_refuses_beyond_its_budget():
    ledger = PeerLedger(epsilon=60.0, budget=120.0)
    ledger = ledger.spend().spend()
    assert (ledger.local_epsilon, ledger.spent_up) == (120.0, True)
    with pytest.raises(BudgetExhausted, match="2 reports at epsilon 60"):
        ledger.spend()
    unlimited = PeerLedger(epsilon=60.0, participations=2)  # the same peer without a budget goes on
    assert unlimited.spend().local_epsilon == 180.0


def test_a_budget_of_three_tenths_is_three_reports_at_a_tenth():
    ledger = PeerLedger(epsilon=0.1, budget=0.3)
    assert 0.3 / 0.1 < 3
    assert ledger.affordable == 3
    assert PeerLedger(epsilon=0.1, budget=0.2999).affordable == 2


def test_the_reconstruction_ledger_is_that_of_all_reports_together():
    prior = log_sphere_prior(dimension=500, alpha=1.0)
    once = PeerLedger(epsilon=60.0, participations=1).reconstruction(prior)
    twice = PeerLedger(epsilon=60.0, participations=2).reconstruction(prior)
    assert once.success < 1e-6
    assert twice.success == pytest.approx(1.0)
    assert PeerLedger(epsilon=60.0).reconstruction(prior).log_success == pytest.approx(prior, rel=1e-12)


def test_no_peer_takes_part_more_often_than_is_said():
    most = most_participations(sampling_rate=0.1, rounds=100, population=200, tail=1e-9)
    counts = np.random.default_rng(0).binomial(100, 0.1, size=(1000, 200)).max(axis=1)
    assert counts.max() <= most  # fails with probability 1e-6
    assert most <= 40  # mean 10, deviation 3
    assert most_participations(sampling_rate=1.0, rounds=7, population=3) == 7


@pytest.mark.parametrize("magnitude", ["absolute", "relative"])
def test_a_report_is_shrunk_as_often_as_is_said(magnitude):
    mechanism = Separated.calibrated(
        dimension=5, epsilon_direction=4.0, epsilon_magnitude=3.0, max_radius=2.0, magnitude=magnitude
    )
    rng = np.random.default_rng(0)
    for share_of_norm in (0.3, 0.8, 0.9999):
        rho = share_of_norm * mechanism.output_norm
        for radius in (0.0, 0.7, 2.0):
            update = np.array([radius, 0, 0, 0, 0])
            norms = np.linalg.norm(mechanism.privatise_many(np.tile(update, (20_000, 1)), rng), axis=1)
            said = shrunk_share(mechanism, rho, radius)
            assert np.mean(norms > rho * (1 + 1e-9)) == pytest.approx(said, abs=0.018)  # 5 deviations
            assert said <= shrunk_share(mechanism, rho) + 1e-12


def test_the_safe_projection_shrinks_nothing_and_is_the_paper_settings_norm():
    mechanism = Separated.calibrated(dimension=500, epsilon_direction=50.0, epsilon_magnitude=10.0, max_radius=1.0)
    rho = safe_projection(mechanism)
    assert rho * mechanism.direction.m == pytest.approx(1.0007, abs=2e-4)  # the design's 1.0007 r_max/m, k = 29
    assert mechanism.magnitude.levels == 29
    assert shrunk_share(mechanism, rho) == 0.0
    assert shrunk_share(mechanism, 0.999 * rho, 1.0) > 0.9
    relative = Separated.calibrated(
        dimension=500, epsilon_direction=50.0, epsilon_magnitude=10.0, max_radius=1.0, magnitude="relative"
    )
    assert safe_projection(relative) * relative.direction.m == pytest.approx(1.1728, abs=2e-4)


def test_a_direction_without_a_bound_has_no_projection_that_shrinks_nothing():
    direction = PrivUnitG.calibrated(dimension=5, epsilon=4.0)
    mechanism = Separated(direction=direction, magnitude=ScalarDP.calibrated(epsilon=3.0, max_radius=1.0))
    with pytest.raises(ConfigurationError, match=r"^projection: "):
        shrunk_share(mechanism, 1.0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"population": 0}, "population"),
        ({"population": True}, "population"),
        ({"sampling_rate": 0.0}, "sampling_rate"),
        ({"sampling_rate": 1.5}, "sampling_rate"),
        ({"sampling_rate": math.nan}, "sampling_rate"),
        ({"rounds": 0}, "rounds"),
        ({"projection": 0.0}, "projection"),
        ({"projection": math.inf}, "projection"),
    ],
)
def test_impossible_rounds_are_refused(change, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        rounds(**change)


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"sigma": 0.0, "delta": 1e-9}, "sigma"),
        ({"sigma": math.nan, "delta": 1e-9}, "sigma"),
        ({"sigma": 1.0, "delta": 0.0}, "delta"),
        ({"sigma": 1.0, "delta": 1e-13}, "delta"),
        ({"sigma": 1.0, "delta": 1e-9, "accountant": "best"}, "accountant"),
    ],
)
def test_impossible_questions_are_refused(question, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        SMALL.epsilon(**question)


@pytest.mark.parametrize("change", [{"epsilon": 0.0}, {"participations": -1}, {"budget": math.nan}])
def test_impossible_ledgers_are_refused(change):
    with pytest.raises(ConfigurationError, match=f"^{next(iter(change))}: "):
        PeerLedger(**{"epsilon": 1.0, **change})
