"""Models of the rounds: gradients against differences, against scikit-learn, and behind one interface."""

import math

import numpy as np
import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.models import MODELS, LogisticRegression, Model, MultinomialRegression, build

RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((7, 4))


def loss(model, parameters, features, labels):
    """Mean of -log p(label), written anew."""
    weights = parameters.reshape(-1, features.shape[1] + 1)
    if len(weights) == 1:
        weights = np.vstack([np.zeros_like(weights), weights])
    logits = features @ weights[:, :-1].T + weights[:, -1]
    return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_gradients_are_the_slopes_of_the_loss(classes):
    model = build("logistic_regression", features=4, classes=classes)
    parameters, labels = RNG.standard_normal(model.dimension), RNG.integers(0, classes, 7)
    step = 1e-6 * np.eye(model.dimension)
    slopes = [
        (loss(model, parameters + e, FEATURES, labels) - loss(model, parameters - e, FEATURES, labels)) / 2e-6
        for e in step
    ]
    assert model.gradient(parameters, FEATURES, labels) == pytest.approx(slopes, abs=1e-8)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_clients_gradient_is_the_mean_of_its_rows(classes):
    model = build("logistic_regression", features=4, classes=classes)
    parameters, labels = RNG.standard_normal(model.dimension), RNG.integers(0, classes, 7)
    rows = [model.gradient(parameters, FEATURES[i : i + 1], labels[i : i + 1]) for i in range(7)]
    assert model.gradient(parameters, FEATURES, labels) == pytest.approx(np.mean(rows, axis=0), abs=1e-14)


def test_descent_finds_what_scikit_learn_finds():
    from sklearn.linear_model import LogisticRegression as Theirs

    features = np.random.default_rng(1).standard_normal((200, 3))
    labels = (features @ [1.0, -2.0, 0.5] + np.random.default_rng(2).logistic(size=200) > 0).astype(int)
    model = LogisticRegression(features=3)
    parameters = model.initial(0)
    for _ in range(2000):
        parameters = parameters - model.gradient(parameters, features, labels)
    theirs = Theirs(C=math.inf, tol=1e-10).fit(features, labels)
    assert parameters == pytest.approx([*theirs.coef_[0], theirs.intercept_[0]], abs=1e-4)
    assert (model.predict(parameters, features) == theirs.predict(features)).all()


def test_every_model_keeps_the_interface():
    for name in MODELS:
        for classes in (2, 3):
            model = build(name, features=4, classes=classes)
            assert isinstance(model, Model)
            start = model.initial(0)
            assert start.shape == (model.dimension,)
            assert (start == model.initial(0)).all()
            labels = np.zeros(7, dtype=np.int64)
            assert model.gradient(start, FEATURES, labels).shape == (model.dimension,)
            assert set(model.predict(start, FEATURES)) <= set(range(classes))


def test_dimensions_count_the_intercepts():
    assert LogisticRegression(features=30).dimension == 31
    assert MultinomialRegression(features=64, classes=10).dimension == 650


def test_large_logits_neither_overflow_nor_warn():
    for classes in (2, 3):
        model = build("logistic_regression", features=4, classes=classes)
        gradient = model.gradient(np.full(model.dimension, 1e5), FEATURES, np.zeros(7, dtype=np.int64))
        assert np.isfinite(gradient).all()
        model.gradient(np.full(model.dimension, 1e308), FEATURES, np.zeros(7, dtype=np.int64))  # not finite, no warning


@pytest.mark.parametrize(
    ("features", "classes", "field"), [(0, 2, "features"), (True, 2, "features"), (4, 1, "classes")]
)
def test_impossible_models_are_refused(features, classes, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        build("logistic_regression", features=features, classes=classes)


def test_an_unknown_model_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r"^model: 'oracle' given; one of logistic_regression"):
        build("oracle", features=1, classes=2)
