"""Bytes that are no file of their format are refused, never guessed at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_images import idx_bytes

from p2p_labeldp.datasets import formats
from p2p_labeldp.errors import ConfigurationError


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (0,)])
def test_idx_comes_back_as_it_was(shape):
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    assert np.array_equal(formats.idx(idx_bytes(array), "x"), array)


@given(st.binary(max_size=40))
def test_any_bytes_are_an_array_or_one_complaint(content):
    try:
        assert formats.idx(content, "x").dtype == np.uint8
    except ConfigurationError as error:
        assert str(error).startswith("data.name: x is altered: ")  # noqa: PT017  either is right


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\x08",
        b"\0\0\x0d\x01\0\0\0\0",
        b"\x1f\x8b\x08\0",
        b"\0\0\x08\x03\0\0\0\x01",
        idx_bytes(np.ones(3))[:-1],
    ],
)
def test_broken_idx_is_refused(content):
    with pytest.raises(ConfigurationError, match="x is altered: "):
        formats.idx(content, "x")


def test_images_and_labels_belong_together():
    images, labels = np.zeros((3, 2, 2)), np.array([0, 1, 2])
    rows, told = formats.idx_pair(idx_bytes(images), idx_bytes(labels), ("a", "b"), 3)
    assert rows.shape == (3, 4)
    assert told.tolist() == [0, 1, 2]
    for wrong in ((images[:2], labels), (images[0], labels), (images, labels[:, None]), (images[:0], labels[:0])):
        with pytest.raises(ConfigurationError, match="a is altered: shape"):
            formats.idx_pair(*map(idx_bytes, wrong), ("a", "b"), 3)
    with pytest.raises(ConfigurationError, match="b is altered: a label 2 among classes 0 to 1"):
        formats.idx_pair(idx_bytes(images), idx_bytes(labels), ("a", "b"), 2)


def test_a_cifar_record_is_a_label_and_three_planes():
    record = np.r_[7, np.repeat([1, 2, 3], 1024)].astype(np.uint8)
    rows, labels = formats.cifar_batch(record.tobytes() * 2, "x", 10)
    assert labels.tolist() == [7, 7]
    assert rows.shape == (2, 3072)
    assert (rows[0, ::1024] == [1, 2, 3]).all()
    for content in (b"", record.tobytes()[:-1], record.tobytes() + b"\0"):
        with pytest.raises(ConfigurationError, match=r"x is altered: .* records of 3073"):
            formats.cifar_batch(content, "x", 10)
    with pytest.raises(ConfigurationError, match="a label 7 among classes 0 to 6"):
        formats.cifar_batch(record.tobytes(), "x", 7)
