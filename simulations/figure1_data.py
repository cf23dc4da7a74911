"""The rows of Figure 1: projected features of one half of the training rows for the curves, of the other for choosing.

Half of the published training rows, drawn by a shuffle, train what the curves show, and the published test rows measure
it. The other half chooses hyper-parameters: five sixths of it train, one sixth measures. So no label behind a curve was
looked at for a choice.

Features are public. Pixels are centred and projected to the ``DIMENSIONS`` directions in which all training rows vary
most, and divided by one number, so that rows have a root mean squared norm of 1. Clusters are KMeans on the features of
the half that trains, one start, at most ``ITERATIONS`` iterations; each trial has a start of its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import datasets
from p2p_labeldp.datasets.catalogue import IMAGE_SETS

SEED = 11
DIMENSIONS = 100
ITERATIONS = 50
MEASURES = 6  # one row of so many of the choosing half
BLOCK = 5000  # rows whose pixels are floats at a time

CURVES, CHOICE = "curves", "choice"

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """What trains and what measures.

    Args:
        features: Shape (n, d), float32.
        labels: Shape (n,), int64.
        test_features: Shape (m, d), float32.
        test_labels: Shape (m,), int64.
        num_classes: K.
        verified: Whether they are the published rows.
    """

    features: npt.NDArray[np.float32]
    labels: Ids
    test_features: npt.NDArray[np.float32]
    test_labels: Ids
    num_classes: int
    verified: bool

    def accuracy(self, guesses: npt.NDArray[np.integer[Any]]) -> float:
        """Share of the test rows guessed."""
        return float((guesses == self.test_labels).mean())


def seed_of(name: str, bits: int = 64) -> int:
    """The seed of what is called so."""
    return int.from_bytes(hashlib.sha256(f"{SEED} {name}".encode()).digest()[:8], "big") >> (64 - bits)


def prepare(name: str, directory: Path, data_dir: Path | None) -> None:
    """Reads and projects a data set, once for a directory."""
    path = directory / f"{name}.npz"
    if path.exists():
        return
    train, labels, test, test_labels, num_classes, verified = _published(name, data_dir)
    order = np.random.default_rng(seed_of(f"{name} halves")).permutation(len(train))
    mean, directions = _directions(train)
    scores = _projected(train, mean, directions)
    scale = np.sqrt((scores**2).sum(axis=1).mean())
    directory.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(
        partial,
        features=scores[order] / scale,
        labels=labels[order].astype(np.int64),
        test_features=_projected(test, mean, directions) / scale,
        test_labels=test_labels.astype(np.int64),
        num_classes=num_classes,
        verified=verified,
    )
    partial.rename(path)


@lru_cache(maxsize=8)
def rows(name: str, part: str, directory: Path) -> Rows:
    """Of a prepared data set: those of the ``CURVES`` or of the ``CHOICE``."""
    with np.load(directory / f"{name}.npz") as kept:
        features, labels = kept["features"], kept["labels"]
        half = len(labels) // 2
        measuring = half // MEASURES
        first, last = (0, half) if part == CURVES else (half, 2 * half - measuring)
        held_out = slice(last, 2 * half)
        return Rows(
            features=np.ascontiguousarray(features[first:last]),
            labels=labels[first:last],
            test_features=kept["test_features"] if part == CURVES else features[held_out],
            test_labels=kept["test_labels"] if part == CURVES else labels[held_out],
            num_classes=int(kept["num_classes"]),
            verified=bool(kept["verified"]),
        )


@lru_cache(maxsize=32)
def clusters(name: str, part: str, count: int, trial: int, directory: Path) -> Ids:
    """Cluster of each training row, 0 .. count - 1; found once for a directory."""
    path = directory / f"{name}.{part}.{count}.{trial}.npy"
    if not path.exists():
        from sklearn.cluster import KMeans

        model = KMeans(
            n_clusters=count, n_init=1, max_iter=ITERATIONS, random_state=seed_of(path.name, 32), algorithm="lloyd"
        )
        partial = path.with_suffix(".partial.npy")
        np.save(partial, model.fit(rows(name, part, directory).features).labels_.astype(np.int64))
        partial.rename(path)
    found: Ids = np.load(path)
    return found


def _published(name: str, data_dir: Path | None) -> tuple[Any, Any, Any, Any, int, bool]:
    if name in IMAGE_SETS:
        found = datasets.read_images(name, directory=data_dir, verify=False)
        pixels = (found.train_pixels, found.train_labels, found.test_pixels, found.test_labels)
        return *pixels, len(found.label_space), found.verified
    split = datasets.load(name, seed=SEED, test_share=0.2)
    parts = (split.train_features, split.train_labels, split.test_features, split.test_labels)
    return *parts, len(split.label_space), True


def _directions(pixels: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Mean, shape (d,), and the directions of most variance, shape (d, DIMENSIONS)."""
    from scipy.linalg import eigh

    width = pixels.shape[1]
    mean = pixels.mean(axis=0, dtype=np.float64).astype(np.float32)
    products = np.zeros((width, width))
    for start in range(0, len(pixels), BLOCK):
        block = pixels[start : start + BLOCK].astype(np.float32) - mean
        products += block.T @ block
    kept = min(DIMENSIONS, width)
    _, vectors = eigh(products, subset_by_index=(width - kept, width - 1))
    return mean, vectors[:, ::-1].astype(np.float32)


def _projected(
    pixels: npt.NDArray[Any], mean: npt.NDArray[np.float32], directions: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    starts = range(0, len(pixels), BLOCK)
    parts = [(pixels[start : start + BLOCK].astype(np.float32) - mean) @ directions for start in starts]
    return np.concatenate(parts)
