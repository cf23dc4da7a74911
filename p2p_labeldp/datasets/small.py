"""Data sets that come with scikit-learn or are made up: rows without a published split."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from p2p_labeldp.labels import LabelSpace

_SITES, _DIMENSIONS, _RARE = 15, 8, 0.05

Rows = tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8], LabelSpace]


def _breast_cancer(random: np.random.RandomState, wanted: int) -> Rows:
    """Wisconsin diagnostic breast cancer, as scikit-learn carries it: 569 rows, 30 features."""
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    return _floats(features), labels.astype(np.uint8), LabelSpace(classes=("malignant", "benign"))


def _digits(random: np.random.RandomState, wanted: int) -> Rows:
    """Handwritten digits of 8 x 8 pixels, as scikit-learn carries them, even against odd: 1,797 rows, 64 features."""
    from sklearn.datasets import load_digits

    features, digits = load_digits(return_X_y=True)
    return _floats(features), (digits % 2).astype(np.uint8), LabelSpace(classes=("even", "odd"))


def _synthetic(random: np.random.RandomState, wanted: int) -> Rows:
    """Load for benchmarks in any size: 15 sites in 8 dimensions, at each a Gaussian blob of either class.

    The first feature of a site tells which of its blobs is the common one (95 % of its rows), as it would where a
    clustering suits its task; the other features keep the sites apart, and the blobs of a site overlap.
    """
    centres = random.uniform(-20, 20, size=(_SITES, _DIMENSIONS))
    common = np.arange(_SITES) % 2
    centres[:, 0] = np.where(common == 1, 6.0, -6.0)
    site = random.randint(_SITES, size=wanted)
    labels = np.where(random.uniform(size=wanted) < _RARE, 1 - common[site], common[site]).astype(np.uint8)
    features = centres[site] + random.standard_normal((wanted, _DIMENSIONS))
    features[:, 1] += labels  # the two blobs: one standard deviation apart
    return features, labels, LabelSpace(classes=("a", "b"))


SOURCES: dict[str, Callable[[np.random.RandomState, int], Rows]] = {
    "breast-cancer": _breast_cancer,
    "digits": _digits,
    "synthetic": _synthetic,
}


def _floats(features: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(features, dtype=np.float64)
