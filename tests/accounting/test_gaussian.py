"""The exact Gaussian mechanism against 50-digit values and dp-accounting."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from p2p_labeldp.accounting import gaussian
from p2p_labeldp.errors import ConfigurationError


def reference(mu, epsilon):
    with mp.workdps(60):
        m, e = mpf(mu), mpf(epsilon)
        return float(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5, 3.0, 20.0])
def test_delta_is_exact_to_many_digits(mu, epsilon):
    assert float(gaussian.delta(mu, epsilon)) == pytest.approx(reference(mu, epsilon), rel=1e-9, abs=1e-300)


def test_delta_works_elementwise():
    assert gaussian.delta(np.array([0.5, 1.0]), 1.0) == pytest.approx([reference(0.5, 1), reference(1, 1)], rel=1e-9)


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0, 30.0])
@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-12])
def test_epsilon_inverts_delta_from_above(mu, delta):
    epsilon = gaussian.epsilon(mu, delta)
    assert reference(mu, epsilon) <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert reference(mu, epsilon * (1 - 1e-8) - 1e-12) > delta * (1 - 1e-9)


@pytest.mark.parametrize("mu", [1e6, 1e8, 1e10, 1e12, 1e150])
@pytest.mark.parametrize("delta", [0.4, 1e-9])
def test_hardly_any_noise_is_not_called_more_private_than_it_is(mu, delta):
    """There the first term alone is all there is: s = mu/2 - eps/mu is the quantile of delta."""
    with mp.workdps(400):
        s = mp.findroot(lambda x: mp.log(mp.ncdf(x)) - mp.log(mpf(delta)), -0.25 if delta > 0.1 else -6.0)
        least = mpf(mu) * (mpf(mu) / 2 - s)
        found = mpf(gaussian.epsilon(mu, delta))
    assert least * (1 - mpf("1e-14")) <= found <= least * (1 + mpf("2e-10"))


def test_noise_beyond_the_doubles_promises_nothing():
    assert gaussian.epsilon(1e160, 1e-9) == math.inf


def test_the_ends_are_zero_and_infinity():
    assert gaussian.epsilon(1.0, 0.0) == math.inf
    assert gaussian.epsilon(0.1, 0.5) == 0.0


def test_it_is_dp_accountings():
    from dp_accounting import gaussian_mechanism

    for mu, delta in ((0.5, 1e-5), (2.0, 1e-6)):
        theirs = gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta)
        assert gaussian.epsilon(mu, delta) == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("mu", [0, -1, math.nan, math.inf, True])
def test_impossible_means_are_refused(mu):
    with pytest.raises(ConfigurationError, match="mu: "):
        gaussian.epsilon(mu, 1e-5)
