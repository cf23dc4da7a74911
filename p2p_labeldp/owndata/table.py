"""A whole table: features, labels and what was noticed on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.datasets import Split
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.owndata import classes as classes_of
from p2p_labeldp.owndata import columns, pitfalls, reading
from p2p_labeldp.owndata.columns import Choices
from p2p_labeldp.randomness import Stream

NAME = "own data"
MIN_ROWS = 10
"""Rows with a label, below which there is nothing to hide among and nothing to measure with."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnTable:
    """Somebody's table, understood.

    Args:
        features: Shape (n, d). Public.
        labels: Shape (n,), indices into ``label_space``.
        label_space: The classes.
        names: Of the features, length d.
        notes: How it was read and what to beware of; says nothing of anybody's label.
    """

    features: npt.NDArray[np.float64]
    labels: npt.NDArray[np.uint8]
    label_space: LabelSpace
    names: tuple[str, ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def split(self, *, seed: int, test_share: float, peers: int | None = None) -> Split:
        """Held-out rows and a training row per peer, by a shuffle that the seed alone decides.

        Raises:
            ConfigurationError: A share out of range, or too few rows.
        """
        if not 0 < test_share < 1:
            raise ConfigurationError(
                f"{test_share!r} given; a number above 0 and below 1 is allowed", field="data.test_share"
            )
        random = np.random.RandomState(randomness.generator_seed(randomness.check_seed(seed), Stream.DATA, 0))
        order = random.permutation(len(self))
        held_out = math.ceil(len(self) * test_share)
        available = len(self) - held_out
        if not 2 <= (peers or available) <= available:
            raise ConfigurationError(f"{peers} given; 2 to {available} training rows are there", field="data.peers")
        test, train = order[:held_out], order[held_out:][:peers]
        return Split(
            train_features=self.features[train],
            train_labels=self.labels[train],
            test_features=self.features[test],
            test_labels=self.labels[test],
            label_space=self.label_space,
            name=NAME,
            feature_names=self.names,
        )


def load(path: str | Path, *, label: str, choices: Choices | None = None) -> OwnTable:
    """Reads a table.

    Args:
        path: Of a text file with a header.
        label: Name of the column whose values are to be protected.
        choices: What its owner says of it.

    Raises:
        ConfigurationError: Something is not certain; one sentence says what to do.
    """
    said = choices or Choices()
    rows = reading.read(path, encoding=said.encoding, separator=said.separator)
    columns.check_column(label, rows, classes_of.FIELD)
    return _understood(rows, rows.columns[rows.names.index(label)], label=label, choices=said)


def from_arrays(features: npt.ArrayLike, labels: npt.ArrayLike, *, classes: tuple[str, ...] | None = None) -> OwnTable:
    """The same of what scikit-learn takes: X of shape (n, d) and y of shape (n,).

    Args:
        features: Finite numbers, or a frame, whose columns are understood as those of a file are.
        labels: Numbers or words.
        classes: The label space; read off ``labels`` if not given.

    Raises:
        ConfigurationError: Shapes that don't fit, numbers that are missing, or no classes.
    """
    cells = [_text(one) for one in np.asarray(labels, dtype=object).ravel().tolist()]
    names = getattr(features, "columns", None)
    try:
        table = np.asarray(features, dtype=np.float64 if names is None else object)
    except (TypeError, ValueError) as exc:
        raise ConfigurationError("numbers are needed, or a frame, whose words are encoded", field="X") from exc
    if table.ndim != 2 or not table.size or len(table) != len(cells):
        raise ConfigurationError(
            f"shapes {table.shape} and ({len(cells)},) given; (n, d) and (n,) are needed", field="X, y"
        )
    try:
        if names is not None:
            written = [[_text(cell) for cell in column] for column in table.T.tolist()]
            rows = reading.Rows(names=[str(name) for name in names], columns=written, separator=";", notes=[])
            return _understood(rows, cells, label="y", choices=Choices(classes=classes, decimal="."))
        told, label_space, notes = classes_of.labels(cells, name="y", classes=classes)
    except ConfigurationError as exc:
        field = "y" if exc.field in (classes_of.FIELD, classes_of.CLASSES) else "X"
        raise ConfigurationError(str(exc).partition(": ")[2], field=field) from exc
    if not (np.abs(table) < columns.MAX_NUMBER).all():
        raise ConfigurationError("a value is missing or infinite; fill it in, or give a frame", field="X")
    has_label = told >= 0
    return OwnTable(
        features=np.ascontiguousarray(table[has_label]),
        labels=told[has_label].astype(np.uint8),
        label_space=label_space,
        names=tuple(f"x{i}" for i in range(table.shape[1])),
        notes=tuple(notes),
    )


def _understood(rows: reading.Rows, cells: list[str], *, label: str, choices: Choices) -> OwnTable:
    told, label_space, about_labels = classes_of.labels(cells, name=label, classes=choices.classes)
    found = columns.features(rows, label=label, choices=choices)
    has_label = told >= 0
    labelled = int(has_label.sum())
    if labelled < MIN_ROWS:
        raise ConfigurationError(
            f"{labelled} row{'s' if labelled > 1 else ''} with a label; {MIN_ROWS} or more are needed, and some"
            " hundreds to learn anything",
            field=reading.FIELD,
        )
    return OwnTable(
        features=found.matrix()[has_label],
        labels=told[has_label].astype(np.uint8),
        label_space=label_space,
        names=tuple(found.names),
        notes=(*rows.notes, *about_labels, *found.notes, *pitfalls.warnings(rows, found, label=label)),
    )


def _text(value: object) -> str:
    """As a file would have it; None and NaN are gaps, and so is pandas' NA."""
    if value is None or value != value or str(value) == "<NA>":
        return ""
    return str(value).strip()
