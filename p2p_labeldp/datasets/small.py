"""Data sets that come with scikit-learn or are made up: rows without a published split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp.labels import LabelSpace

_SITES, _DIMENSIONS, _RARE = 15, 8, 0.05

Rows = tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]


def _breast_cancer(random: np.random.RandomState, wanted: int) -> Rows:
    """Wisconsin diagnostic breast cancer, as scikit-learn carries it: 569 rows, 30 features."""
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    return _floats(features), labels.astype(np.uint8)


def _digits(random: np.random.RandomState, wanted: int) -> Rows:
    """Handwritten digits of 8 x 8 pixels, as scikit-learn carries them, even against odd: 1,797 rows, 64 features."""
    features, digits = _ten_digits(random, wanted)
    return features, digits % 2


def _ten_digits(random: np.random.RandomState, wanted: int) -> Rows:
    """The same digits, all ten told apart."""
    from sklearn.datasets import load_digits

    features, digits = load_digits(return_X_y=True)
    return _floats(features), digits.astype(np.uint8)


def _iris(random: np.random.RandomState, wanted: int) -> Rows:
    """Fisher's iris, as scikit-learn carries it: 150 rows, 4 features."""
    from sklearn.datasets import load_iris

    features, labels = load_iris(return_X_y=True)
    return _floats(features), labels.astype(np.uint8)


def _wine(random: np.random.RandomState, wanted: int) -> Rows:
    """Wines of three cultivars, as scikit-learn carries them: 178 rows, 13 features."""
    from sklearn.datasets import load_wine

    features, labels = load_wine(return_X_y=True)
    return _floats(features), labels.astype(np.uint8)


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
    return features, labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows come from.

    Args:
        classes: The public classes; label i is the i-th.
        rows: What makes the rows: from a generator, which only those that are made up read, and how many are wanted.
    """

    classes: LabelSpace
    rows: Callable[[np.random.RandomState, int], Rows]


def _source(classes: tuple[str, ...], rows: Callable[[np.random.RandomState, int], Rows]) -> Source:
    return Source(classes=LabelSpace(classes=classes), rows=rows)


SOURCES: dict[str, Source] = {
    "breast-cancer": _source(("malignant", "benign"), _breast_cancer),
    "digits": _source(("even", "odd"), _digits),
    "digits-10": _source(tuple("0123456789"), _ten_digits),
    "iris": _source(("setosa", "versicolor", "virginica"), _iris),
    "synthetic": _source(("a", "b"), _synthetic),
    "wine": _source(("class_0", "class_1", "class_2"), _wine),
}


def _floats(features: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(features, dtype=np.float64)
