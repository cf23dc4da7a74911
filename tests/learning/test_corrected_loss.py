"""The corrected loss is unbiased, by enumeration, and its minimiser is scikit-learn's where both exist."""

import math

import numpy as np
import pytest
from scipy.optimize import check_grad

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.corrected_loss import SoftLoss, minimise, soft_targets

RNG = np.random.default_rng(0)


def channel(redraw, q):
    return (1 - redraw) * np.eye(len(q)) + redraw * q


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize(("redraw", "correction"), [(0.3, 0.3), (0.9, 0.9), (0.9, 0.4), (0.5, 0.0), (0.99, 0.99)])
def test_its_mean_over_all_outputs_is_the_loss_of_the_effective_channel(num_classes, redraw, correction):
    q = RNG.dirichlet(np.ones(num_classes))
    told = soft_targets(np.arange(num_classes), num_classes=num_classes, distributions=q, correction=correction)
    mean = channel(redraw, q) @ told  # row y: the mean target of true label y
    left = (redraw - correction) / (1 - correction)
    assert mean == pytest.approx(channel(left, q), abs=1e-12)
    losses = RNG.exponential(size=num_classes)  # of the labels, at some weights
    if redraw == correction:
        assert mean @ losses == pytest.approx(losses, abs=1e-12)


def test_without_the_correction_the_mean_is_biased():
    told = soft_targets(np.arange(3), num_classes=3)
    assert np.abs(channel(0.5, np.full(3, 1 / 3)) @ told - np.eye(3)).max() > 0.3


def test_targets_sum_to_one_and_have_a_column_for_every_class():
    told = soft_targets(np.array([0, 0, 1]), num_classes=5, distributions=np.full((3, 5), 0.2), correction=0.5)
    assert told.shape == (3, 5)
    assert told.sum(axis=1) == pytest.approx(1)
    assert told[0] == pytest.approx([1.8, -0.2, -0.2, -0.2, -0.2])


@pytest.mark.parametrize("intercept", [True, False])
def test_the_gradient_is_that_of_the_value(intercept):
    features, targets = (
        RNG.normal(size=(20, 3)),
        soft_targets(RNG.integers(0, 4, 20), num_classes=4, distributions=np.full(4, 0.25), correction=0.6),
    )
    loss = SoftLoss(features=features, targets=targets, l2=0.01, intercept=intercept)
    at = RNG.normal(size=math.prod(loss.shape))
    assert check_grad(lambda w: loss(w)[0], lambda w: loss(w)[1], at) < 1e-6


def test_large_logits_do_not_overflow():
    loss = SoftLoss(features=np.array([[1e4], [-1e4]]), targets=np.eye(2), l2=1e-9, intercept=False)
    value, gradient = loss(np.array([1.0, -1.0]))
    assert math.isfinite(value)
    assert np.isfinite(gradient).all()


def test_the_minimum_is_where_the_gradient_is_nothing():
    features = RNG.normal(size=(200, 4))
    targets = soft_targets(RNG.integers(0, 3, 200), num_classes=3, distributions=np.full(3, 1 / 3), correction=0.8)
    loss = SoftLoss(features=features, targets=targets, l2=0.1)
    found = minimise(loss, tolerance=1e-8)
    assert found.converged
    value, gradient = loss(found.weights.ravel())
    assert np.abs(gradient).max() < 1e-7
    assert value == found.value


def test_single_precision_features_give_nearly_the_same():
    features = RNG.normal(size=(300, 5))
    targets = soft_targets(RNG.integers(0, 3, 300), num_classes=3)
    double, single = (
        minimise(SoftLoss(features=features.astype(kind), targets=targets, l2=0.01), tolerance=1e-5)
        for kind in (np.float64, np.float32)
    )
    assert single.weights == pytest.approx(double.weights, abs=1e-3)


def test_the_corrected_minimiser_approaches_the_clean_one():
    """Uniformly redrawn labels of 60,000 rows: far nearer to the clean minimiser with the correction than without."""
    rows, redraw = 60_000, 0.6
    features = RNG.normal(size=(rows, 2))
    clean = (features @ [1.0, -0.5] + RNG.logistic(size=rows) > 0).astype(int)
    told = np.where(RNG.random(rows) < redraw, RNG.integers(0, 2, rows), clean)

    def slope(labels, correction):
        targets = soft_targets(labels, num_classes=2, distributions=np.full(2, 0.5), correction=correction)
        weights = minimise(SoftLoss(features=features, targets=targets, l2=1e-6)).weights
        return weights[1] - weights[0]

    wanted, corrected, plain = slope(clean, 0.0), slope(told, redraw), slope(told, 0.0)
    assert np.abs(corrected - wanted).max() < 0.1  # standard error about .02
    assert np.abs(plain - wanted).max() > 0.4


@pytest.mark.parametrize("correction", [-0.1, 1.0, math.nan, True])
def test_impossible_corrections_are_refused(correction):
    with pytest.raises(ConfigurationError, match="correction: "):
        soft_targets(np.array([0]), num_classes=2, distributions=np.full(2, 0.5), correction=correction)


@pytest.mark.parametrize("distributions", [None, np.full(3, 1 / 3), np.full((2, 2), 0.5)])
def test_distributions_must_fit(distributions):
    with pytest.raises(ConfigurationError, match="distributions: "):
        soft_targets(np.array([0]), num_classes=2, distributions=distributions, correction=0.5)


@pytest.mark.parametrize("labels", [[2], [-1], [0.5], [[0]]])
def test_labels_must_be_indices(labels):
    with pytest.raises(ConfigurationError, match="labels: "):
        soft_targets(np.array(labels), num_classes=2)
