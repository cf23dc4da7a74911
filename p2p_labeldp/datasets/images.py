"""The image sets as arrays of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from p2p_labeldp.datasets import catalogue, formats
from p2p_labeldp.datasets.catalogue import DataFile, ImageSet
from p2p_labeldp.datasets.files import Found, State, data_directory, look
from p2p_labeldp.datasets.formats import Bytes
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.labels import LabelSpace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Images:
    """A set with its published split.

    Args:
        train_pixels: Shape (n, d), uint8.
        train_labels: Shape (n,), uint8, indices into ``label_space``.
        test_pixels: Shape (m, d), uint8.
        test_labels: Shape (m,), uint8.
        label_space: The public classes; whether or not every class has a row.
        verified: Whether every file is the published one. If not, results must say ``unverified``.
    """

    train_pixels: Bytes
    train_labels: Bytes
    test_pixels: Bytes
    test_labels: Bytes
    label_space: LabelSpace
    verified: bool


def read_images(name: str, *, directory: str | Path | None = None, verify: bool = True) -> Images:
    """Reads a set.

    Args:
        name: ``mnist``, ``fashion-mnist`` or ``cifar-10``.
        directory: The data directory; see ``files``.
        verify: Whether to refuse content that is not the published one. What is cut off, or no file of its format, is
            refused either way.

    Raises:
        ConfigurationError: No such set, or a file that is missing, truncated or altered: what, and what to do.
    """
    wanted, place = catalogue.find(name), data_directory(directory)
    parts, verified = [], True
    for files in (wanted.train, wanted.test):
        found = [_accepted(look(wanted, file, place), verify=verify) for file in files]
        verified = verified and all(one.state is State.VERIFIED for one in found)
        parts.append(_parsed(wanted, files, [one.content for one in found]))
    (train_pixels, train_labels), (test_pixels, test_labels) = parts
    if train_pixels.shape[1] != test_pixels.shape[1]:
        raise ConfigurationError(
            f"{name} is altered: {train_pixels.shape[1]} and {test_pixels.shape[1]} pixels", field="data.name"
        )
    return Images(
        train_pixels=train_pixels,
        train_labels=train_labels,
        test_pixels=test_pixels,
        test_labels=test_labels,
        label_space=wanted.classes,
        verified=verified,
    )


def _accepted(found: Found, *, verify: bool) -> Found:
    if found.state is State.VERIFIED or (found.state is State.UNVERIFIED and not verify):
        return found
    raise ConfigurationError(found.detail, field="data.name")


def _parsed(wanted: ImageSet, files: tuple[DataFile, ...], contents: list[bytes]) -> tuple[Bytes, Bytes]:
    count, names = len(wanted.classes), [f"{wanted.name}/{file.name}" for file in files]
    if wanted.archive is None:
        return formats.idx_pair(contents[0], contents[1], (names[0], names[1]), count)
    batches = [formats.cifar_batch(content, name, count) for content, name in zip(contents, names, strict=True)]
    return np.concatenate([pixels for pixels, _ in batches]), np.concatenate([labels for _, labels in batches])
