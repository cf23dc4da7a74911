"""RDP of the sampled Gaussian against closed forms, dp-accounting, and where dp-accounting's grid ends."""

import math

import dp_accounting
import pytest
from dp_accounting import rdp

from p2p_labeldp.accounting import gaussian, renyi

CASES = [(1.0, 0.01, 1000, 1e-5), (3.4, 0.1, 100, 1e-9), (5.0, 0.1, 5000, 1e-6)]


@pytest.mark.parametrize(("noise", "rate", "steps", "delta"), CASES)
def test_epsilon_is_dp_accountings_where_its_orders_suffice(noise, rate, steps, delta):
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    theirs = rdp.RdpAccountant()
    theirs.compose(dp_accounting.SelfComposedDpEvent(event, steps))
    ours = renyi.epsilon(noise_multiplier=noise, sampling_probability=rate, steps=steps, delta=delta)
    assert ours == pytest.approx(theirs.get_epsilon(delta), rel=2e-5)


@pytest.mark.parametrize("order", [2, 3, 7, 16])
def test_the_integral_and_the_sum_agree_at_integers(order):
    for noise, rate in ((0.06, 0.1), (1.0, 0.01), (30.0, 0.5)):
        integral = renyi._log_moment_between(float(order), noise, rate)
        assert integral == pytest.approx(renyi.log_moment(order, noise, rate), rel=1e-9, abs=2e-12)


def test_the_chord_is_above_the_integral():
    below = renyi.divergence(1.5, noise_multiplier=0.0499, sampling_probability=0.1)
    assert below > renyi.divergence(1.5, noise_multiplier=0.0501, sampling_probability=0.1) > 0


def test_without_sampling_it_is_the_gaussian_mechanisms():
    for order in (1.5, 2, 64, 10**6):
        assert renyi.divergence(order, noise_multiplier=2.0, sampling_probability=1.0) == pytest.approx(order / 8)
    bound = renyi.epsilon(noise_multiplier=2.0, sampling_probability=1.0, steps=1, delta=1e-6)
    exact = gaussian.epsilon(0.5, 1e-6)
    assert exact < bound < 1.1 * exact


def test_tiny_epsilons_are_seen_by_orders_up_to_a_million():
    def found(orders):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(renyi, "ORDERS", orders)
            return renyi.epsilon(noise_multiplier=1000.0, sampling_probability=0.001, steps=1, delta=1e-9)

    assert renyi.ORDERS[-1] == renyi.MAX_ORDER == 10**6
    assert found(renyi.ORDERS) < 1e-5
    short = found(tuple(order for order in renyi.ORDERS if order <= 1024))  # the grid that others stop at
    assert short > 0.01


def test_no_moment_is_negative_and_none_overflows():
    for noise in (1e-3, 1e3):
        for rate in (1e-9, 0.999999):
            found = renyi.epsilon(noise_multiplier=noise, sampling_probability=rate, steps=1, delta=1e-9)
            assert 0 <= found < math.inf


def test_noise_that_can_not_be_squared_is_no_noise_or_as_much_as_can_be():
    def found(noise, rate=0.1):
        return renyi.epsilon(noise_multiplier=noise, sampling_probability=rate, steps=3, delta=1e-9)

    for noise in (1e-101, 1e-162, 1e-300, 5e-324):
        assert found(noise) == found(noise, 1.0) == math.inf
    assert 1e198 < found(1e-99) < math.inf
    for noise in (1e100, 1e160, 1e300):
        assert found(noise) == found(1e100) < 1e-5


def test_a_moment_that_is_not_a_number_claims_nothing(monkeypatch):
    usual = renyi.epsilon(noise_multiplier=1.25, sampling_probability=0.1, steps=3, delta=1e-9)
    assert usual < math.inf
    monkeypatch.setattr(renyi.special, "logsumexp", lambda _terms: math.nan)
    renyi.log_moment.cache_clear()
    assert renyi.epsilon(noise_multiplier=1.25, sampling_probability=0.1, steps=3, delta=1e-9) == math.inf
    renyi.log_moment.cache_clear()
    assert max(0.0, math.nan) == 0.0  # what would stand as a moment
