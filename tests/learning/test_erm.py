"""Any of the classifiers learns from labels, true, noisy or all alike, and none of them warns."""

import subprocess
import sys
import typing

import numpy as np
import pytest

from p2p_labeldp import config, datasets
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.learning import erm

TWO = LabelSpace(classes=("a", "b"))
SPLIT = datasets.load("breast-cancer", seed=0, test_share=0.2)


def test_the_table_has_the_names_of_the_configuration():
    assert tuple(erm.MODELS) == typing.get_args(config.ModelName)


@pytest.mark.parametrize("name", erm.MODELS)
def test_every_model_learns_true_labels(name):
    model = erm.fit(name, SPLIT.train_features, SPLIT.train_labels, label_space=SPLIT.label_space, seed=0)
    assert erm.accuracy(model, SPLIT.test_features, SPLIT.test_labels) > 0.9


@pytest.mark.parametrize("name", erm.MODELS)
@pytest.mark.parametrize("only", [0, 1])
def test_one_class_alone_gives_a_constant_prediction(name, only):
    labels = np.full(20, only, dtype=np.uint8)
    model = erm.fit(name, SPLIT.train_features[:20], labels, label_space=TWO, seed=0)
    assert set(model.predict(SPLIT.test_features)) == {only}


@pytest.mark.parametrize("name", erm.MODELS)
def test_three_rows_are_enough(name):
    model = erm.fit(name, SPLIT.train_features[:3], np.array([0, 1, 1]), label_space=TWO, seed=0)
    assert set(model.predict(SPLIT.test_features)) <= {0, 1}


@pytest.mark.parametrize("name", erm.MODELS)
def test_pure_noise_constant_features_and_wide_scales_warn_nobody(name):
    random = np.random.default_rng(0)
    features = np.c_[random.standard_normal((60, 30)) * 10.0 ** np.arange(-15, 15), np.full(60, 0.1)]
    labels = random.integers(0, 2, 60)
    model = erm.fit(name, features, labels, label_space=TWO, seed=0)
    assert 0 <= erm.accuracy(model, features, labels) <= 1


def test_a_class_that_no_label_names_is_allowed():
    three = LabelSpace(classes=("a", "b", "c"))
    model = erm.fit("logistic_regression", SPLIT.train_features, SPLIT.train_labels * 2, label_space=three, seed=0)
    assert set(model.predict(SPLIT.test_features)) == {0, 2}


@pytest.mark.parametrize("num_classes", [2, 3])
def test_soft_targets_of_labels_teach_what_the_labels_do(num_classes):
    """Without a correction the two regressions differ by the penalty on the intercept alone."""
    labels = SPLIT.train_labels + (num_classes - 2) * (SPLIT.train_features[:, 0] > 15)
    space = LabelSpace(classes=tuple("abc"[:num_classes]))
    plain = erm.fit("logistic_regression", SPLIT.train_features, labels, label_space=space, seed=0)
    soft = erm.fit_targets(SPLIT.train_features, np.eye(num_classes)[labels])
    told = [model.predict(SPLIT.test_features) for model in (plain, soft)]
    assert np.mean(told[0] == told[1]) > 0.97


def test_one_seed_gives_one_model():
    a, b, c = (
        erm.fit("random_forest", SPLIT.train_features, SPLIT.train_labels, label_space=TWO, seed=seed).predict_proba(
            SPLIT.test_features
        )
        for seed in (1, 1, 2)
    )
    assert (a == b).all()
    assert (a != c).any()


def test_the_majority_is_that_of_the_training_labels():
    assert erm.majority(np.array([0, 1, 1]), np.array([0, 0, 0, 1]), label_space=TWO) == 0.25
    assert erm.majority(np.array([0, 1]), np.array([0, 0, 0, 1]), label_space=TWO) == 0.75


@pytest.mark.parametrize(
    ("name", "features", "labels", "line"),
    [
        ("perceptron", np.ones((2, 1)), np.array([0, 1]), "learner.model: 'perceptron' given; one of logistic"),
        ("naive_bayes", np.ones((2, 1)), np.array([0, 2]), "labels: indices 0 to 1 are needed"),
        ("naive_bayes", np.ones((2, 1)), np.array([-1, 1]), "labels: indices 0 to 1 are needed"),
        ("naive_bayes", np.ones((2, 1)), np.array([0.0, 1.0]), "labels: indices 0 to 1 are needed"),
        ("naive_bayes", np.ones((3, 1)), np.array([0, 1]), "labels: shapes (3, 1) and (2,) given"),
        ("naive_bayes", np.ones((0, 1)), np.array([], dtype=int), "labels: shapes (0, 1) and (0,) given"),
        ("naive_bayes", np.ones(2), np.array([0, 1]), "labels: shapes (2,) and (2,) given"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_line(name, features, labels, line):
    erm.fit("naive_bayes", np.array([[0.0], [1.0]]), np.array([0, 1]), label_space=TWO, seed=0)
    with pytest.raises(ConfigurationError) as caught:
        erm.fit(name, features, labels, label_space=TWO, seed=0)
    assert str(caught.value).startswith(line)


def test_importing_the_learner_does_not_import_scikit_learn():
    code = "import sys, p2p_labeldp.learning.erm; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
