"""Bytes to arrays: IDX, and CIFAR-10's binary records. Nothing here unpickles."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError

Bytes = npt.NDArray[np.uint8]

CIFAR_RECORD = 1 + 3 * 32 * 32


def idx(content: bytes, name: str) -> Bytes:
    """An array of unsigned bytes in the shape its header says.

    The header: two zero bytes, 8 for unsigned bytes, the number of dimensions, and each of them in four bytes, most
    significant first.

    Raises:
        ConfigurationError: Another header, or a content that is not as long as it says.
    """
    if len(content) < 4 or content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise _unfit(name, "no IDX file of unsigned bytes")
    dimensions = content[3]
    shape = tuple(int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(dimensions))
    start = 4 + 4 * dimensions
    if len(content) - start != math.prod(shape):
        raise _unfit(name, f"{len(content) - start} bytes where its header says {math.prod(shape)}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def idx_pair(images: bytes, labels: bytes, names: tuple[str, str], num_classes: int) -> tuple[Bytes, Bytes]:
    """Rows of pixels, shape (n, d), and their labels, shape (n,)."""
    pixels, told = idx(images, names[0]), idx(labels, names[1])
    if pixels.ndim != 3 or told.ndim != 1 or len(pixels) != len(told) or not len(told):
        raise _unfit(names[0], f"shape {pixels.shape} with labels of shape {told.shape}")
    return pixels.reshape(len(pixels), -1), _checked(told, names[1], num_classes)


def cifar_batch(content: bytes, name: str, num_classes: int) -> tuple[Bytes, Bytes]:
    """Rows of pixels, shape (n, 3072): the red, the green, the blue plane; and their labels, shape (n,)."""
    if not content or len(content) % CIFAR_RECORD:
        raise _unfit(name, f"{len(content)} bytes are not a number of records of {CIFAR_RECORD}")
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, CIFAR_RECORD)
    return records[:, 1:], _checked(records[:, 0], name, num_classes)


def _checked(labels: Bytes, name: str, num_classes: int) -> Bytes:
    if labels.max() >= num_classes:
        raise _unfit(name, f"a label {labels.max()} among classes 0 to {num_classes - 1}")
    return labels


def _unfit(name: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"{name} is altered: {what}", field="data.name")
