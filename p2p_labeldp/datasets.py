"""Data sets by name, split into one training row per peer and held-out rows that measure the model.

The classes of a data set are written here, never read off its labels: inferring them would leak who holds a rare one.
scikit-learn is imported where it is used, since it takes a second and peers never need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.randomness import Stream

SYNTHETIC_PEERS = 1000
"""Training rows of ``synthetic`` when no number of peers is given."""
_SITES, _DIMENSIONS, _RARE = 15, 8, 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """A data set shared out.

    Args:
        train_features: One row per peer, shape (n, d), float64; peer i holds row i. Public.
        train_labels: The private labels, shape (n,), uint8, indices into ``label_space``.
        test_features: Held-out rows, shape (m, d), float64.
        test_labels: Their labels, shape (m,), uint8. They measure the model and are not protected.
        label_space: The public classes.
        name: The data set's name.
        feature_names: Of the features, if they have names.
    """

    train_features: npt.NDArray[np.float64]
    train_labels: npt.NDArray[np.uint8]
    test_features: npt.NDArray[np.float64]
    test_labels: npt.NDArray[np.uint8]
    label_space: LabelSpace
    name: str
    feature_names: tuple[str, ...] | None = None


def load(name: str, *, seed: int, test_share: float, peers: int | None = None) -> Split:
    """Loads a data set and splits it by a random shuffle that the seed alone decides.

    Args:
        name: One of :func:`known`.
        seed: Of the study; the split is ordinal 0 of the DATA stream.
        test_share: Share of all rows held out, above 0 and below 1; rounded up to whole rows.
        peers: Number of training rows kept, the first of the shuffle; by default all. The held-out rows do not depend
            on it, so that numbers of peers can be compared; ``synthetic`` is made in the size asked for.

    Raises:
        ConfigurationError: An unknown name, a share outside its range, or more peers than training rows.
    """
    _check_name(name)
    if not 0 < test_share < 1:
        raise ConfigurationError(
            f"{test_share!r} given; a number above 0 and below 1 is allowed", field="data.test_share"
        )
    if peers is not None and peers < 2:
        raise ConfigurationError(f"{peers!r} given; at least 2 are needed", field="data.peers")
    # RandomState, not Generator: its streams are frozen, so a seed gives the same split under every NumPy.
    random = np.random.RandomState(randomness.generator_seed(seed, Stream.DATA, 0))
    label_space = label_space_of(name)
    features, labels = _SOURCES[name].rows(random, _rows_for(peers or SYNTHETIC_PEERS, test_share))
    order = random.permutation(len(labels))
    held_out = math.ceil(len(labels) * test_share)
    available = len(labels) - held_out
    if peers is not None and peers > available:
        raise ConfigurationError(f"{peers} given; {name} has 2 to {available} training rows", field="data.peers")
    if available < 2:
        raise ConfigurationError(
            f"{test_share!r} leaves {available} training rows; 2 are needed", field="data.test_share"
        )
    test, train = order[:held_out], order[held_out:][:peers]
    return Split(
        train_features=features[train],
        train_labels=labels[train],
        test_features=features[test],
        test_labels=labels[test],
        label_space=label_space,
        name=name,
    )


def _rows_for(training_rows: int, test_share: float) -> int:
    rows = math.ceil(training_rows / (1 - test_share))
    while rows - math.ceil(rows * test_share) < training_rows:  # where the division was rounded down
        rows += 1
    return rows


def known() -> list[str]:
    """Names of the data sets."""
    return sorted(_SOURCES)


def label_space_of(name: str) -> LabelSpace:
    """The classes of a data set.

    Raises:
        ConfigurationError: An unknown name.
    """
    _check_name(name)
    return LabelSpace(classes=_SOURCES[name].classes)


def _check_name(name: str) -> None:
    if name not in _SOURCES:
        raise ConfigurationError(f"{name!r} given; the known names are {', '.join(known())}", field="data.name")


_Rows = tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]


def _breast_cancer(random: np.random.RandomState, wanted: int) -> _Rows:
    """Wisconsin diagnostic breast cancer, as scikit-learn carries it: 569 rows, 30 features."""
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    return _floats(features), labels.astype(np.uint8)


def _digits(random: np.random.RandomState, wanted: int) -> _Rows:
    """Handwritten digits of 8 x 8 pixels, as scikit-learn carries them, even against odd: 1,797 rows, 64 features."""
    features, digits = _ten_digits(random, wanted)
    return features, digits % 2


def _ten_digits(random: np.random.RandomState, wanted: int) -> _Rows:
    """The same digits, all ten told apart."""
    from sklearn.datasets import load_digits

    features, digits = load_digits(return_X_y=True)
    return _floats(features), digits.astype(np.uint8)


def _iris(random: np.random.RandomState, wanted: int) -> _Rows:
    """Fisher's iris, as scikit-learn carries it: 150 rows, 4 features."""
    from sklearn.datasets import load_iris

    features, labels = load_iris(return_X_y=True)
    return _floats(features), labels.astype(np.uint8)


def _wine(random: np.random.RandomState, wanted: int) -> _Rows:
    """Wines of three cultivars, as scikit-learn carries them: 178 rows, 13 features."""
    from sklearn.datasets import load_wine

    features, labels = load_wine(return_X_y=True)
    return _floats(features), labels.astype(np.uint8)


def _synthetic(random: np.random.RandomState, wanted: int) -> _Rows:
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


@dataclass(frozen=True, slots=True)
class _Source:
    """Classes, and what makes the rows."""

    classes: tuple[str, ...]
    rows: Callable[[np.random.RandomState, int], _Rows]


_SOURCES = {
    "breast-cancer": _Source(("malignant", "benign"), _breast_cancer),
    "digits": _Source(("even", "odd"), _digits),
    "digits-10": _Source(tuple("0123456789"), _ten_digits),
    "iris": _Source(("setosa", "versicolor", "virginica"), _iris),
    "synthetic": _Source(("a", "b"), _synthetic),
    "wine": _Source(("class_0", "class_1", "class_2"), _wine),
}


def _floats(features: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(features, dtype=np.float64)
