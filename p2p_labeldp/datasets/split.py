"""Rows by name, split into one training row per peer and held-out rows that measure the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.datasets.catalogue import IMAGE_SETS
from p2p_labeldp.datasets.images import read_images
from p2p_labeldp.datasets.small import SOURCES
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.randomness import Stream

SYNTHETIC_PEERS = 1000
"""Training rows of ``synthetic`` when no number of peers is given."""


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
        verified: Whether the rows are the published ones, for sets that are; else results must say ``unverified``.
        feature_names: Of the features, if they have names.
    """

    train_features: npt.NDArray[np.float64]
    train_labels: npt.NDArray[np.uint8]
    test_features: npt.NDArray[np.float64]
    test_labels: npt.NDArray[np.uint8]
    label_space: LabelSpace
    name: str
    verified: bool = True
    feature_names: tuple[str, ...] | None = None


def load(
    name: str,
    *,
    seed: int,
    test_share: float,
    peers: int | None = None,
    directory: str | Path | None = None,
    verify: bool = True,
) -> Split:
    """Loads a data set and splits it by a random shuffle that the seed alone decides.

    The image sets keep their published split: the test rows are all held out, in their order, and only the training
    rows are shuffled. Their pixels are divided by 255.

    Args:
        name: One of ``known``.
        seed: Of the study; the split is ordinal 0 of the DATA stream.
        test_share: Share of all rows held out, above 0 and below 1; rounded up to whole rows. Image sets don't read it.
        peers: Number of training rows kept, the first of the shuffle; by default all. The held-out rows do not depend
            on it, so that numbers of peers can be compared; ``synthetic`` is made in the size asked for.
        directory: Where the files of image sets are; see ``files``.
        verify: Whether image files that are not the published ones are refused.

    Raises:
        ConfigurationError: An unknown name, a share outside its range, more peers than training rows, or files that are
            missing, truncated or altered.
    """
    label_space = label_space_of(name)
    if not 0 < test_share < 1:
        raise ConfigurationError(
            f"{test_share!r} given; a number above 0 and below 1 is allowed", field="data.test_share"
        )
    if peers is not None and peers < 2:
        raise ConfigurationError(f"{peers!r} given; at least 2 are needed", field="data.peers")
    # RandomState, not Generator: its streams are frozen, so a seed gives the same split under every NumPy.
    random = np.random.RandomState(randomness.generator_seed(seed, Stream.DATA, 0))
    if name in IMAGE_SETS:
        return _images(name, random, peers, directory, verify)
    features, labels = SOURCES[name].rows(random, _rows_for(peers or SYNTHETIC_PEERS, test_share))
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


def _images(
    name: str, random: np.random.RandomState, peers: int | None, directory: str | Path | None, verify: bool
) -> Split:
    found = read_images(name, directory=directory, verify=verify)
    available = len(found.train_labels)
    if peers is not None and peers > available:
        raise ConfigurationError(f"{peers} given; {name} has 2 to {available} training rows", field="data.peers")
    train = random.permutation(available)[:peers]
    return Split(
        train_features=found.train_pixels[train] / 255.0,
        train_labels=found.train_labels[train],
        test_features=found.test_pixels / 255.0,
        test_labels=found.test_labels,
        label_space=found.label_space,
        name=name,
        verified=found.verified,
    )


def _rows_for(training_rows: int, test_share: float) -> int:
    rows = math.ceil(training_rows / (1 - test_share))
    while rows - math.ceil(rows * test_share) < training_rows:  # where the division was rounded down
        rows += 1
    return rows


def known() -> list[str]:
    """Names of the data sets."""
    return sorted([*SOURCES, *IMAGE_SETS])


def label_space_of(name: str) -> LabelSpace:
    """The classes of a data set; none of its rows are read.

    Raises:
        ConfigurationError: An unknown name.
    """
    known_sets = SOURCES | IMAGE_SETS
    if name not in known_sets:
        raise ConfigurationError(f"{name!r} given; the known names are {', '.join(known())}", field="data.name")
    return known_sets[name].classes
