"""The model of an experiment, and how well it does on the held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.experiment.preparing import Prepared
from p2p_labeldp.learning import erm
from p2p_labeldp.results import Accuracy, Noisy


def fit(prepared: Prepared, noisy: Noisy) -> Any:
    """Fitted to the reports; None if there are none."""
    return _fitted(prepared, noisy.features, noisy.labels, noisy.targets) if len(noisy.labels) else None


def _fitted(
    prepared: Prepared,
    features: npt.NDArray[np.float64],
    labels: npt.NDArray[np.integer[Any]],
    targets: npt.NDArray[np.float64] | None = None,
) -> Any:
    name, label_space = prepared.config.learner.model, prepared.split.label_space
    if targets is not None and name == erm.CORRECTED:
        return erm.fit_targets(features, targets)
    return erm.fit(name, features, labels, label_space=label_space, seed=prepared.public_seed)


def measured(prepared: Prepared, model: Any) -> float:
    return erm.accuracy(model, prepared.split.test_features, prepared.split.test_labels)


def accuracy_of(prepared: Prepared, model: Any) -> Accuracy:
    private = None if model is None else measured(prepared, model)
    if prepared.study.seed is None:  # the result may be passed on; peers' true labels are no part of it
        non_private = majority = None
    else:
        non_private, majority = yardsticks(prepared)
    held_out = len(prepared.split.test_labels)
    return Accuracy(private=private, non_private=non_private, majority=majority, held_out=held_out)


def yardsticks(prepared: Prepared) -> tuple[float, float]:
    """Accuracy of a model of the peers' true labels, and of always saying the commonest. READS THEM: not private."""
    split = prepared.split
    model = _fitted(prepared, split.train_features, split.train_labels)
    return measured(prepared, model), erm.majority(split.train_labels, split.test_labels, label_space=split.label_space)
