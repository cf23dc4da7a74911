"""The corrected loss as a scikit-learn classifier. Importing it imports scikit-learn, a second."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.corrected_loss import MAX_ITERATIONS, TOLERANCE, SoftLoss, minimise, scores, soft_targets

L2 = 1e-3


class CorrectedLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Multinomial logistic regression on labels that were redrawn from known distributions.

    Minimises the mean of l~ (``corrected_loss``) plus l2/2 times the squared weights, intercepts included, by L-BFGS.

    Args:
        classes: The public classes, in the order of the distributions' columns. Default: those of the labels it is
            fitted to, as scikit-learn has it; they are released, so that costs no privacy, but a class nobody told
            is then missing.
        l2: Weight of the penalty, above 0. A classifier of scikit-learn's with C has l2 = 1/(C n).
        fit_intercept: Whether there is an intercept.
        tol: Largest entry of the gradient to stop at, above 0.
        max_iter: Iterations after which it stops with a ``ConvergenceWarning``.

    Attributes:
        classes_: Shape (K,).
        coef_: Shape (K, d).
        intercept_: Shape (K,); zeros without one.
        n_iter_: Iterations it took.
    """

    def __init__(
        self,
        *,
        classes: Sequence[Any] | None = None,
        l2: float = L2,
        fit_intercept: bool = True,
        tol: float = TOLERANCE,
        max_iter: int = MAX_ITERATIONS,
    ) -> None:
        self.classes = classes
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def fit(
        self,
        X: npt.ArrayLike,  # noqa: N803  scikit-learn's name
        y: npt.ArrayLike,
        *,
        distributions: npt.NDArray[np.float64] | None = None,
        correction: float = 0.0,
    ) -> Self:
        """Fits to told labels.

        Args:
            X: Features, shape (n, d).
            y: Told labels, shape (n,).
            distributions: q of each row, shape (n, K), or of all, shape (K,).
            correction: beta, at least 0 and below 1.

        Raises:
            ValueError: Of scikit-learn's, for data that it would refuse; a label that is no class.
            ConfigurationError: Distributions, a correction or parameters that don't fit.
        """
        features, told = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(told)
        if self.classes is None:
            self.classes_, labels = np.unique(told, return_inverse=True)
        else:
            self.classes_ = np.asarray(self.classes)
            labels = self._indices(told)
        targets = soft_targets(
            labels, num_classes=len(self.classes_), distributions=distributions, correction=correction
        )
        return self._minimise(features, targets)

    def fit_targets(self, X: npt.ArrayLike, targets: npt.NDArray[np.float64]) -> Self:  # noqa: N803  scikit-learn's name
        """Fits to soft targets, shape (n, K), rows summing to 1; ``classes`` names them, 0 .. K - 1 by default."""
        features = validate_data(self, X, dtype=[np.float64, np.float32])
        self.classes_ = np.arange(targets.shape[1]) if self.classes is None else np.asarray(self.classes)
        if targets.shape != (len(features), len(self.classes_)):
            raise ConfigurationError(
                f"shape {targets.shape} given; {(len(features), len(self.classes_))} is needed", field="targets"
            )
        return self._minimise(features, targets)

    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:  # noqa: N803  scikit-learn's name
        """Logits, shape (n, K); with two classes that of the second less that of the first, shape (n,)."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:  # noqa: N803  scikit-learn's name
        """Probabilities of the classes, shape (n, K)."""
        logits = self._logits(X)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:  # noqa: N803  scikit-learn's name
        """The likeliest class of each row, shape (n,)."""
        best = self._logits(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _indices(self, told: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        order = np.argsort(self.classes_)
        at = np.minimum(np.searchsorted(self.classes_, told, sorter=order), len(order) - 1)
        indices = order[at]
        if not (self.classes_[indices] == told).all():
            strange = told[self.classes_[indices] != told][0]
            raise ValueError(f"label {strange!r} is none of the classes {list(self.classes_)}")
        return indices

    def _minimise(self, features: npt.NDArray[Any], targets: npt.NDArray[np.float64]) -> Self:
        for name in ("l2", "tol", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not 0 < value < np.inf:
                raise ConfigurationError(f"{value} given; a finite number above 0 is possible", field=name)
        loss = SoftLoss(features=features, targets=targets, l2=self.l2, intercept=self.fit_intercept)
        found = minimise(loss, tolerance=self.tol, max_iterations=self.max_iter)
        if not found.converged:
            warnings.warn(
                f"stopped after {found.iterations} iterations; more, or a larger l2, would converge",
                ConvergenceWarning,
                stacklevel=3,
            )
        width = features.shape[1]
        self.coef_ = found.weights[:, :width]
        self.intercept_ = found.weights[:, width] if self.fit_intercept else np.zeros(len(self.classes_))
        self.n_iter_ = found.iterations
        return self

    def _logits(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:  # noqa: N803  scikit-learn's name
        check_is_fitted(self)
        features = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return scores(features, np.c_[self.coef_, self.intercept_], True)
