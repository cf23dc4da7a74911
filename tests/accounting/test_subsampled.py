"""DP-SGD's epsilon: PLD within RDP, replacing dearer than removing, exact where nothing is sampled."""

import math

import pytest

from p2p_labeldp.accounting import gaussian, subsampled
from p2p_labeldp.accounting.subsampled import SubsampledGaussian, noise_for
from p2p_labeldp.errors import ConfigurationError

TRAINING = SubsampledGaussian(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)


def test_the_accountants_keep_their_order():
    removed = TRAINING.pld_epsilon(1e-5, relation="add_or_remove")
    assert removed < TRAINING.rdp_epsilon(1e-5) < 1.3 * removed
    assert removed < TRAINING.pld_epsilon(1e-5) < 2 * removed
    # what dp-accounting 0.6 says
    assert removed == pytest.approx(1.828243645591767, rel=1e-3)
    assert TRAINING.rdp_epsilon(1e-5) == pytest.approx(2.101366525420273, rel=1e-3)
    assert TRAINING.pld_epsilon(1e-5) == pytest.approx(2.843445811703821, rel=1e-3)


@pytest.mark.parametrize(("relation", "distance"), [("replace", 2.0), ("add_or_remove", 1.0)])
def test_without_sampling_it_is_the_gaussian_mechanism(relation, distance):
    whole = SubsampledGaussian(noise_multiplier=4.0, sampling_probability=1.0, steps=9)
    exact = gaussian.epsilon(distance * 3 / 4, 1e-5)
    assert exact <= whole.pld_epsilon(1e-5, relation=relation) + 1e-9
    assert whole.pld_epsilon(1e-5, relation=relation) == pytest.approx(exact, rel=2e-3)


def test_noise_is_planned_from_the_side_that_holds():
    noise = noise_for(epsilon=2.0, delta=1e-5, sampling_probability=0.05, steps=5, relation="add_or_remove")
    planned = SubsampledGaussian(noise_multiplier=noise, sampling_probability=0.05, steps=5)
    found = planned.pld_epsilon(1e-5, relation="add_or_remove")
    assert 2.0 * (1 - 2e-3) <= found <= 2.0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"noise_multiplier": math.nan}, "noise_multiplier"),
        ({"sampling_probability": 0.0}, "sampling_probability"),
        ({"sampling_probability": 1.1}, "sampling_probability"),
        ({"sampling_probability": True}, "sampling_probability"),
        ({"steps": 0}, "steps"),
    ],
)
def test_impossible_trainings_are_refused(change, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        SubsampledGaussian(**{"noise_multiplier": 1.0, "sampling_probability": 0.1, "steps": 10, **change})


@pytest.mark.parametrize("delta", [0.0, 1e-13, 1.0, math.nan])
def test_deltas_beyond_the_accountants_reach_are_refused(delta):
    for question in (TRAINING.pld_epsilon, TRAINING.rdp_epsilon):
        with pytest.raises(ConfigurationError, match=r"^delta: "):
            question(delta)
    with pytest.raises(ConfigurationError, match=r"^epsilon: "):
        noise_for(epsilon=0.0, delta=1e-5, sampling_probability=0.1, steps=1)


@pytest.mark.parametrize("delta", [1e-12, 1e-9])
def test_many_steps_are_not_called_more_private_than_the_exact_mechanism_is(monkeypatch, delta):
    steps = SubsampledGaussian(noise_multiplier=500.0, sampling_probability=1.0, steps=100_000)
    exact = gaussian.epsilon(math.sqrt(100_000) / 500.0, delta)
    found = steps.pld_epsilon(delta, relation="add_or_remove")
    assert exact <= found
    assert math.isinf(found) == (delta == 1e-12)
    if delta == 1e-12:
        monkeypatch.setattr(subsampled, "CONVOLUTION_ERROR", 0.0)
        rounding = steps.pld_epsilon(delta, relation="add_or_remove")  # below with AVX-512, above without
        assert rounding != pytest.approx(exact, rel=0.01)
