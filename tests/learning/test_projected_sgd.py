"""Steps bring no two points apart, unless gradients are clipped; sensitivities are what gradients really differ by."""

import math

import numpy as np
import pytest

from p2p_labeldp import datasets
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.dpsgd import clipped_sum, predict, residuals, with_ones
from p2p_labeldp.learning.projected_sgd import ProjectedSGD, bounded

R = 1.5


def settings(**more):
    chosen = {"noise_scale": 0.1, "learning_rate": 4 / R**2, "radius": 20.0, "feature_bound": R}
    return ProjectedSGD(**{**chosen, **more})


@pytest.mark.parametrize("num_classes", [2, 3, 10])
def test_no_step_brings_two_points_apart(num_classes):
    rng, eta = np.random.default_rng(0), 4 / R**2
    for _ in range(300):
        row = bounded(with_ones(rng.normal(size=(1, 3)) * 3), R)
        label = rng.integers(0, num_classes, 1)
        a = rng.normal(size=(num_classes, 4)) * rng.choice([0.1, 1, 10])
        b = a + rng.normal(size=a.shape) * rng.choice([1e-3, 0.3, 3])
        moved = [w - eta * residuals(row, label, w).T @ row for w in (a, b)]
        assert np.linalg.norm(moved[0] - moved[1]) <= np.linalg.norm(a - b) * (1 + 1e-9)


def test_a_clipped_step_of_three_classes_does():
    row, label = np.ones((1, 1)), np.zeros(1, dtype=int)
    a, b = np.array([[-3.43], [0.787], [1.705]]), np.array([[-3.014], [0.705], [1.401]])
    apart = {}
    for clip in (1.198, 1e9):
        moved = [w - 3.94 * clipped_sum(row, label, w, clip) for w in (a, b)]
        apart[clip] = np.linalg.norm(moved[0] - moved[1]) / np.linalg.norm(a - b)
    assert apart[1.198] > 1.05
    assert apart[1e9] <= 1


@pytest.mark.parametrize("batch_size", [1, 4])
def test_neighbours_gradients_are_within_the_sensitivities_and_come_near(batch_size):
    rng, chosen, furthest = np.random.default_rng(1), settings(batch_size=batch_size), 0.0
    for _ in range(500):
        rows = bounded(with_ones(rng.normal(size=(batch_size, 2)) * 3), R)
        labels, weights = rng.integers(0, 3, batch_size), rng.normal(size=(3, 3)) * 5
        mean = residuals(rows, labels, weights).T @ rows / batch_size
        for label in range(3):
            other = np.r_[label, labels[1:]]
            gap = np.linalg.norm(residuals(rows, other, weights).T @ rows / batch_size - mean)
            assert gap <= chosen.label_sensitivity() * (1 + 1e-12)
            furthest = max(furthest, gap)
        swapped = np.r_[bounded(with_ones(rng.normal(size=(1, 2)) * 9), R), rows[1:]]
        gap = np.linalg.norm(residuals(swapped, np.r_[2, labels[1:]], weights).T @ swapped / batch_size - mean)
        assert gap <= chosen.example_sensitivity() * (1 + 1e-12)
    assert furthest == pytest.approx(chosen.label_sensitivity(), rel=1e-6)
    assert chosen.label_sensitivity() == pytest.approx(math.sqrt(2) * R / batch_size)


def test_rows_are_shortened_and_never_lengthened():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert bounded(rows, 1.0).tolist() == [pytest.approx([0.6, 0.8]), [0.3, 0.4], [0.0, 0.0]]


def test_it_stays_in_the_ball_learns_and_repeats():
    split = datasets.load("digits", seed=0, test_share=0.2)
    features = split.train_features / 16
    chosen = ProjectedSGD(noise_scale=0.02, learning_rate=0.05, radius=5.0, feature_bound=5.0)
    a, b, c = (
        chosen.fit(features, split.train_labels, num_classes=2, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert (a == b).all()
    assert (a != c).any()
    assert np.linalg.norm(a) <= 5.0 * (1 + 1e-12)
    assert np.mean(predict(a, split.test_features / 16) == split.test_labels) > 0.8


def test_every_example_is_used_once():
    assert settings(batch_size=7).steps(100) == 14
    seen = []

    class Watched(np.ndarray):
        def __getitem__(self, key):
            if isinstance(key, np.ndarray):
                seen.extend(key.tolist())
            return np.asarray(super().__getitem__(key))

    labels = np.zeros(100, dtype=int).view(Watched)
    settings(batch_size=7).fit(np.ones((100, 2)), labels, num_classes=2, rng=np.random.default_rng(0))
    assert len(seen) == len(set(seen)) == 98


def test_steps_of_noise_alone_move_the_weights():
    features, labels = np.ones((4, 2)), np.zeros(4, dtype=int)
    short, longer = (
        settings(noise_only_steps=m).fit(features, labels, num_classes=2, rng=np.random.default_rng(0)) for m in (0, 2)
    )
    assert (short != longer).any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise_scale", -1.0),
        ("noise_scale", math.nan),
        ("learning_rate", 4 / R**2 * 1.001),
        ("learning_rate", 0.0),
        ("learning_rate", math.nan),
        ("radius", 0.0),
        ("feature_bound", 0.0),
        ("batch_size", 0),
        ("noise_only_steps", -1),
    ],
)
def test_impossible_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"^{name}: "):
        settings(**{name: value})
