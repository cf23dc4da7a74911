"""Plain empirical risk minimisation: any scikit-learn classifier, fitted to reported labels with its ordinary loss.

The last step of Algorithm 2 (Esfandiari, Mirrokni, Syed, Vassilvitskii, arXiv 2110.02159v1): the reports are private
already, so what is fitted to them, and how often, costs nothing more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.randomness import Stream

Labels = npt.NDArray[np.integer[Any]]

CORRECTED = "logistic_regression"
"""The model that a corrected loss can be fitted with; the others learn the noisy labels themselves."""
LOGISTIC_C = 0.1
"""A tenth of scikit-learn's, because some labels are wrong on purpose. On the default configuration, seeds 100 to 179:
private .946 and non-private .975, against .941 and .978 at C = 1."""


def fit(
    model_name: str, features: npt.NDArray[np.float64], labels: Labels, *, label_space: LabelSpace, seed: int
) -> Any:
    """Fits standard scaling and a classifier.

    A class that no label names is simply never predicted; if all labels name one class, so does every prediction.
    Warnings of the fit (a solver that stops early on noise, say) are not passed on: the accuracy tells.

    Args:
        model_name: A key of ``MODELS``.
        features: Shape (n, d), finite.
        labels: Shape (n,), indices into ``label_space``.
        label_space: The public classes.
        seed: Of the study; learning is ordinal 2 of the DATA stream.

    Returns:
        A fitted scikit-learn pipeline; ``predict`` takes rows as they were given here, unscaled.

    Raises:
        ConfigurationError: An unknown model, no rows, lengths that differ, or a label outside the label space.
    """
    if model_name not in MODELS:
        raise ConfigurationError(f"{model_name!r} given; one of {', '.join(MODELS)} is allowed", field="learner.model")
    _check(features, labels, label_space)
    from sklearn.dummy import DummyClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(np.unique(labels)) == 1:
        model = DummyClassifier(strategy="most_frequent")
    else:
        model = MODELS[model_name](randomness.generator_seed(seed, Stream.DATA, 2), len(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(StandardScaler(), model).fit(features, labels)


def fit_targets(features: npt.NDArray[np.float64], targets: npt.NDArray[np.float64]) -> Any:
    """Fits standard scaling and the corrected logistic regression, with the penalty of the table's.

    Args:
        features: Shape (n, d), finite.
        targets: Soft targets, shape (n, K), rows summing to 1; see ``corrected_loss``.

    Returns:
        A fitted scikit-learn pipeline that predicts indices 0 .. K - 1.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from p2p_labeldp.learning.corrected_logistic import CorrectedLogisticRegression

    rows, classes = targets.shape
    # Two classes: scikit-learn penalises one vector, which the softmax has in two halves.
    l2 = (2 if classes == 2 else 1) / (LOGISTIC_C * rows)
    scaler = StandardScaler().fit(features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CorrectedLogisticRegression(l2=l2).fit_targets(scaler.transform(features), targets)
    return make_pipeline(scaler, model)


def accuracy(model: Any, features: npt.NDArray[np.float64], labels: Labels) -> float:
    """Share of rows whose label the model predicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(np.mean(model.predict(features) == labels))


def majority(train_labels: Labels, test_labels: Labels, *, label_space: LabelSpace) -> float:
    """Accuracy of always predicting the commonest training label (of equally common ones the first).

    The yardstick for a model that learnt nothing. It reads true labels, so a deployment has none.
    """
    commonest = np.bincount(train_labels, minlength=len(label_space)).argmax()
    return float(np.mean(test_labels == commonest))


def _check(features: npt.NDArray[np.float64], labels: Labels, label_space: LabelSpace) -> None:
    if features.ndim != 2 or labels.ndim != 1 or len(features) != len(labels) or not len(labels):
        raise ConfigurationError(
            f"shapes {features.shape} and {labels.shape} given; (n, d) and (n,) with n >= 1 are needed", field="labels"
        )
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= len(label_space):
        raise ConfigurationError(f"indices 0 to {len(label_space) - 1} are needed", field="labels")


def _logistic_regression(seed: int, rows: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=LOGISTIC_C, max_iter=1000, random_state=seed)


def _linear_svm(seed: int, rows: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(random_state=seed)


def _naive_bayes(seed: int, rows: int) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _random_forest(seed: int, rows: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    # Leaves of five rows: a leaf of one would learn a single noisy label by heart.
    return RandomForestClassifier(n_estimators=100, min_samples_leaf=5, random_state=seed, n_jobs=1)


def _nearest_neighbours(seed: int, rows: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(n_neighbors=min(15, rows))  # a vote of fifteen outlives a few flips


MODELS: dict[str, Callable[[int, int], Any]] = {
    "logistic_regression": _logistic_regression,
    "linear_svm": _linear_svm,
    "naive_bayes": _naive_bayes,
    "random_forest": _random_forest,
    "nearest_neighbours": _nearest_neighbours,
}
"""Name to a function of (seed, number of rows) that makes the classifier."""
