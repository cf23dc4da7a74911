"""Amplification by iteration against values from 50-digit arithmetic, and its quantiles in the right order."""

import math

import pytest

from p2p_labeldp.accounting import gaussian
from p2p_labeldp.accounting.iteration import Iteration
from p2p_labeldp.errors import ConfigurationError


def passed(examples, sigma, lipschitz=1.0, **more):
    return Iteration(steps=examples, noise_multiplier=sigma / (2 * lipschitz), **more)


@pytest.mark.parametrize(
    ("lipschitz", "sigma", "examples", "position", "alpha", "renyi", "mu"),
    [
        (1, 4, 100, 100, 8, 1.0, 0.5),
        (1, 4, 100, 1, 8, 0.01, 0.05),
        (1, 4, 100, 51, 8, 0.02, 0.07071067811865475),
        (2, 10, 60000, 59001, 32, 0.00256, 0.01264911064067352),
        (0.5, 1.5, 1000, 501, 2.5, 0.001111111111111111, 0.02981423969999720),
    ],
)
def test_a_position_is_hidden_by_the_noise_after_it(lipschitz, sigma, examples, position, alpha, renyi, mu):
    one = passed(examples, sigma, lipschitz)
    remaining = examples - position + 1
    assert one.mu(remaining) == pytest.approx(mu, rel=1e-13)
    assert one.renyi_at(remaining, alpha) == pytest.approx(renyi, rel=1e-13)


@pytest.mark.parametrize(
    ("examples", "sigma", "delta", "random_order", "last"),
    [
        (100, 1, 1e-2, 1.354948731256497, 5.997892529818920),
        (100, 1, 1e-3, 3.903728764574010, 7.581279924570114),
        (100, 2, 1e-2, 0.3701201564131833, 2.317789040304050),
        (100, 2, 1e-4, 2.329748649272975, 3.804435909337386),
        (100, 8, 1e-2, 0.02251592970809867, 0.3598509092454650),
        (100, 8, 1e-4, 0.3791080208409900, 0.7733832734578289),
        (1000, 1, 1e-3, 1.354948731257664, 7.581279924570114),
        (1000, 1, 1e-4, 3.903728764574010, 8.876869463663342),
        (1000, 4, 1e-6, 1.354009754532569, 2.254084650219741),
        (1000, 8, 1e-3, 0.02776079574607630, 0.5920067183621291),
        (1000, 8, 1e-6, 0.5941911161312951, 1.060701862328274),
    ],
)
def test_a_secret_random_order_is_the_mean_over_positions(examples, sigma, delta, random_order, last):
    one = passed(examples, sigma)
    assert one.random_order_epsilon(delta) == pytest.approx(random_order, rel=1e-9)
    assert one.worst_epsilon(delta) == pytest.approx(last, rel=1e-9)
    assert one.random_order_epsilon(delta) >= random_order * (1 - 1e-12)  # rounded up


@pytest.mark.parametrize(
    ("examples", "sigma", "alpha", "renyi"),
    [(100, 4, 8, 0.3631505249856985), (1000, 8, 16, 0.07130893032808165), (1000, 4, 2, 0.001924203513486389)],
)
def test_renyi_of_a_random_order(examples, sigma, alpha, renyi):
    assert passed(examples, sigma).random_order_renyi(alpha) == pytest.approx(renyi, rel=1e-12)


def test_quantiles_bound_the_share_they_say():
    one, delta = passed(100, 2), 1e-3
    every = sorted(one.epsilon_at(j, delta) for j in range(1, 101))
    for share in (1, 0.99, 0.9, 0.5, 0.01):
        bound = one.quantile_epsilon(share, delta)
        assert sum(epsilon <= bound for epsilon in every) == round(100 * share)
    assert one.quantile_epsilon(1, delta) == one.worst_epsilon(delta)


def test_noise_alone_at_the_end_helps_the_last():
    assert passed(100, 2, noise_only_steps=3).mu(1) == passed(100, 2).mu(4)
    assert passed(100, 2, noise_only_steps=99).worst_epsilon(1e-4) < passed(100, 2).random_order_epsilon(1e-4)


def test_one_over_n_is_no_delta():
    """At delta = 1/n most of the loss of the last positions is forgiven: at 1/(10 n) it costs several times more."""
    one = passed(1000, 8)
    assert one.random_order_epsilon(1e-4) > 4 * one.random_order_epsilon(1e-3)
    assert one.random_order_epsilon(1e-3) < one.quantile_epsilon(0.99, 1e-4)


def test_one_step_is_the_gaussian_mechanism():
    assert Iteration(steps=1, noise_multiplier=2.0).random_order_epsilon(1e-5) == pytest.approx(
        gaussian.epsilon(0.5, 1e-5)
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 10**8}, "steps"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"noise_multiplier": math.nan}, "noise_multiplier"),
        ({"noise_multiplier": math.inf}, "noise_multiplier"),
        ({"noise_multiplier": True}, "noise_multiplier"),
        ({"noise_only_steps": -1}, "noise_only_steps"),
    ],
)
def test_impossible_passes_are_refused(change, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        Iteration(**{"steps": 10, "noise_multiplier": 1.0, **change})


def test_impossible_questions_are_refused():
    one = Iteration(steps=10, noise_multiplier=1.0)
    for question, field in (
        (lambda: one.mu(11), "remaining"),
        (lambda: one.mu(0), "remaining"),
        (lambda: one.renyi_at(1, 1.0), "alpha"),
        (lambda: one.quantile_epsilon(0, 1e-5), "share"),
        (lambda: one.quantile_epsilon(1.5, 1e-5), "share"),
        (lambda: one.random_order_epsilon(1.0), "delta"),
    ):
        with pytest.raises(ConfigurationError, match=f"^{field}: "):
            question()
