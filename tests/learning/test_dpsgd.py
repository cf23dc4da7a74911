"""Clipping by factorised norms is clipping of per-example gradients; noise is what it is said to be."""

import math

import numpy as np
import pytest

from p2p_labeldp import datasets
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.dpsgd import DPSGD, clipped_sum, predict, residuals, with_ones

RNG = np.random.default_rng(0)
ROWS, LABELS, WEIGHTS = with_ones(RNG.normal(size=(40, 5))), RNG.integers(0, 3, 40), RNG.normal(size=(3, 6))


def settings(**more):
    chosen = {"noise_multiplier": 1.0, "clip": 1.0, "sampling_probability": 0.5, "steps": 5, "learning_rate": 0.1}
    return DPSGD(**{**chosen, **more})


@pytest.mark.parametrize("clip", [0.1, 1.0, 3.0, 1e9])
def test_the_clipped_sum_is_that_of_explicit_gradients(clip):
    total = np.zeros_like(WEIGHTS)
    for row, gap in zip(ROWS, residuals(ROWS, LABELS, WEIGHTS), strict=True):
        gradient = np.outer(gap, row)
        total += gradient * min(1.0, clip / np.linalg.norm(gradient))
    assert clipped_sum(ROWS, LABELS, WEIGHTS, clip) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("clip", [0.1, 1.0])
def test_one_example_moves_the_sum_by_the_clip_at_most_and_one_label_by_twice(clip):
    whole = clipped_sum(ROWS, LABELS, WEIGHTS, clip)
    for i in range(len(ROWS)):
        rest = np.arange(len(ROWS)) != i
        assert np.linalg.norm(whole - clipped_sum(ROWS[rest], LABELS[rest], WEIGHTS, clip)) <= clip * (1 + 1e-12)
        for label in range(3):
            other = np.where(rest, LABELS, label)
            assert np.linalg.norm(whole - clipped_sum(ROWS, other, WEIGHTS, clip)) <= 2 * clip * (1 + 1e-12)


def test_without_the_clip_one_example_moves_it_further():
    rest = np.arange(len(ROWS)) != 0
    gap = clipped_sum(ROWS, LABELS, WEIGHTS, 1e9) - clipped_sum(ROWS[rest], LABELS[rest], WEIGHTS, 1e9)
    assert np.linalg.norm(gap) > 1.0


def test_an_empty_batch_is_noise_alone():
    assert (clipped_sum(ROWS[:0], LABELS[:0], WEIGHTS, 1.0) == 0).all()
    trained = settings(sampling_probability=1e-12, steps=1).fit(ROWS[:, :5], LABELS, num_classes=3, rng=RNG)
    assert trained.any()


def test_without_noise_it_is_gradient_descent():
    plain = settings(noise_multiplier=0.0, clip=1e9, sampling_probability=1.0, steps=30, learning_rate=0.5, l2=0.1)
    trained = plain.fit(ROWS[:, :5], LABELS, num_classes=3, rng=np.random.default_rng(0))
    weights = np.zeros((3, 6))
    for _ in range(30):
        weights -= 0.5 * (residuals(ROWS, LABELS, weights).T @ ROWS / len(ROWS) + 0.1 * weights)
    assert trained == pytest.approx(weights, abs=1e-12)


def test_the_noise_has_the_stated_deviation():
    """One step on one example of no gradient's size worth speaking of: the weights are the noise."""
    tiny = DPSGD(noise_multiplier=2.0, clip=1e-9, sampling_probability=1.0, steps=1, learning_rate=1.0)
    trained = tiny.fit(np.zeros((4, 20_000)), np.zeros(4, dtype=int), num_classes=2, rng=np.random.default_rng(1))
    # expected deviation 2e-9/4 over 40,000 draws: five standard errors of 1/sqrt(2 * 40,000)
    assert trained[:, :-1].std() == pytest.approx(0.5e-9, rel=5 / math.sqrt(80_000))


def test_it_learns_and_one_seed_gives_one_model():
    split = datasets.load("digits", seed=0, test_share=0.2)
    chosen = settings(sampling_probability=0.2, steps=100, learning_rate=2.0, noise_multiplier=1.0)
    a, b, c = (
        chosen.fit(split.train_features / 16, split.train_labels, num_classes=2, rng=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert (a == b).all()
    assert (a != c).any()
    assert np.mean(predict(a, split.test_features / 16) == split.test_labels) > 0.8


def test_an_absent_class_keeps_its_row():
    assert settings().fit(ROWS[:, :5], LABELS, num_classes=7, rng=RNG).shape == (7, 6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise_multiplier", -1.0),
        ("noise_multiplier", math.nan),
        ("clip", 0.0),
        ("clip", math.inf),
        ("learning_rate", 0.0),
        ("sampling_probability", 0.0),
        ("sampling_probability", math.nan),
        ("steps", 0),
        ("l2", -0.1),
    ],
)
def test_impossible_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"^{name}: "):
        settings(**{name: value})


def test_labels_must_fit():
    for labels in (LABELS[:-1], LABELS - 1, LABELS.astype(float)):
        with pytest.raises(ConfigurationError, match=r"^labels: "):
            settings().fit(ROWS, labels, num_classes=3, rng=RNG)
