"""The classifier is one of scikit-learn's, agrees with its logistic regression, and keeps the classes it is given."""

import random

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from p2p_labeldp import datasets
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.corrected_logistic import CorrectedLogisticRegression
from p2p_labeldp.mechanisms.uniform_rr import UniformRR

SPLIT = datasets.load("digits", seed=0, test_share=0.2)
X = SPLIT.train_features[:300] / 16
Y = SPLIT.train_labels[:300]


def test_it_keeps_scikit_learns_contract():
    check_estimator(CorrectedLogisticRegression(), on_skip=None)  # skipped: array API, pandas where they are missing


@pytest.mark.parametrize("num_classes", [2, 3])
def test_without_correction_it_is_scikit_learns(num_classes):
    y = (Y + (X[:, 20] > 0.5)) % num_classes
    l2 = 0.01
    tol = 1e-8  # below it rounding ends the search, on some data and processors, before it is reached
    ours = CorrectedLogisticRegression(l2=l2, fit_intercept=False, tol=tol, max_iter=5000).fit(X, y)
    C = 1 / (l2 * len(X)) if num_classes > 2 else 2 / (l2 * len(X))
    theirs = LogisticRegression(C=C, fit_intercept=False, tol=tol, max_iter=5000).fit(X, y)
    # two classes: scikit-learn has one vector, the softmax two opposite halves of it, and half the penalty
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-5)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_soft_targets_of_labels_are_the_labels():
    labels = CorrectedLogisticRegression().fit(X, Y)
    targets = CorrectedLogisticRegression().fit_targets(X, np.eye(2)[Y])
    assert (labels.coef_ == targets.coef_).all()
    assert (labels.intercept_ == targets.intercept_).all()


def test_corrected_labels_teach():
    mechanism = UniformRR.calibrated(num_classes=2, epsilon=2.0)
    features = SPLIT.train_features / 16
    told = mechanism.release(SPLIT.train_labels, np.zeros(len(features), dtype=int), count=1, rng=random.Random(0))
    model = CorrectedLogisticRegression(l2=0.05).fit(
        features, told.labels, distributions=told.distributions[0], correction=told.correction
    )
    assert model.score(SPLIT.test_features / 16, SPLIT.test_labels) > 0.75


def test_an_absent_class_keeps_its_column():
    model = CorrectedLogisticRegression(classes=range(4)).fit(X, Y + 1, distributions=np.full(4, 0.25), correction=0.5)
    assert model.coef_.shape == (4, 64)
    assert model.predict_proba(X).shape == (300, 4)
    assert set(model.predict(X)) <= {1, 2}  # their corrected frequency is negative: never predicted, and finite
    assert np.isfinite(model.intercept_).all()


def test_classes_may_be_names_in_any_order():
    names = np.array(["no", "yes"])[Y]
    model = CorrectedLogisticRegression(classes=("yes", "no")).fit(X, names)
    assert model.classes_.tolist() == ["yes", "no"]
    assert model.score(X, names) > 0.9
    assert (model.predict(X) == CorrectedLogisticRegression().fit(X, names).predict(X)).all()
    with pytest.raises(ValueError, match="none of the classes"):
        CorrectedLogisticRegression(classes=("yes", "maybe")).fit(X, names)


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        CorrectedLogisticRegression(max_iter=2).fit(X, Y)


@pytest.mark.parametrize("name", ["l2", "tol", "max_iter"])
@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, True])
def test_impossible_parameters_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"{name}: "):
        CorrectedLogisticRegression(**{name: value}).fit(X, Y)


def test_targets_must_fit():
    with pytest.raises(ConfigurationError, match="targets: "):
        CorrectedLogisticRegression().fit_targets(X, np.ones((3, 2)))
