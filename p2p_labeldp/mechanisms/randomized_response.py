"""Randomized response: a peer keeps its label with probability 1 - f and otherwise tells one of the others.

The coin is one 64-bit word, compared as an integer. Of the 2^64 words, ``width = ceil(f 2^64 / (K - 1))`` belong to
each of the K - 1 other labels and the rest to one's own, so

- the realised flip probability is at least the stated one, and exceeds it by less than (K - 1)/2^64;
- all other labels are equally likely, exactly;
- for K = 2 a word flips iff ``word < ceil(f 2^64)``: the same bits as the binary mechanism of the paper.

``channel[i, j]`` = P(output j | input i): 1 - f on the diagonal, f/(K - 1) elsewhere. Against someone who sees the
output itself it is ln((1 - f)(K - 1)/f)-label differentially private (Warner 1965; Kairouz, Oh, Viswanath 2014).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError

WORDS = 1 << 64
MIN_CLASSES, MAX_CLASSES = 2, 256

Labels = npt.NDArray[np.integer[Any]]


def check_classes(num_classes: int) -> int:
    """Returns ``num_classes`` if it is 2 to 256."""
    if isinstance(num_classes, bool) or not MIN_CLASSES <= num_classes <= MAX_CLASSES:
        raise ConfigurationError(
            f"{num_classes} given; {MIN_CLASSES} to {MAX_CLASSES} are possible", field="num_classes"
        )
    return int(num_classes)


def largest_flip(num_classes: int = 2) -> float:
    """(K - 1)/K, at which the channel tells nothing; beyond, it would tell the label again, by leaving it out."""
    return (check_classes(num_classes) - 1) / num_classes


def check_flip_probability(flip_probability: float, num_classes: int = 2) -> float:
    """Returns ``flip_probability`` as a float if it is in [0, (K - 1)/K].

    Raises:
        ConfigurationError: NaN, an infinity, a bool, or out of range.
    """
    largest = largest_flip(num_classes)
    if isinstance(flip_probability, bool) or not 0 <= flip_probability <= largest:  # NaN compares false
        raise ConfigurationError(
            f"{flip_probability} given; 0 to {largest:.6g} is possible with {num_classes} classes",
            field="flip_probability",
        )
    return float(flip_probability)


def flip_threshold(flip_probability: float, num_classes: int = 2) -> int:
    """How many of the 2^64 words flip: the least multiple of K - 1 that is at least f 2^64, computed exactly."""
    numerator, denominator = check_flip_probability(flip_probability, num_classes).as_integer_ratio()
    others = num_classes - 1
    width = -(-numerator * WORDS // (denominator * others))
    return width * others


def flip(label: int, word: int, threshold: int, num_classes: int = 2) -> int:
    """The label that is told instead of ``label``.

    Args:
        label: 0 to K - 1.
        word: 64 uniform bits, used for nothing else.
        threshold: From ``flip_threshold`` with the same ``num_classes``.

    Returns:
        ``label`` unless ``word < threshold``; else the other label number ``word // width``, one's own left out.
    """
    if not 0 <= label < num_classes:
        raise ConfigurationError(f"{label} given; 0 to {num_classes - 1} are possible", field="label")
    if word >= threshold:
        return label
    other = word // (threshold // (num_classes - 1))
    return other + (other >= label)


def flip_all(labels: Labels, words: npt.NDArray[np.uint64], threshold: int, num_classes: int = 2) -> Labels:
    """``flip`` for many peers at once, bit for bit.

    Args:
        labels: Shape (...,), any integer type; it is the type of the result.
        words: Shape of ``labels``, uint64.
    """
    if threshold == 0:
        return labels.copy()
    flips = words < np.uint64(threshold)
    if num_classes == 2:
        return labels ^ flips.astype(labels.dtype)
    other = (words // np.uint64(threshold // (num_classes - 1))).astype(np.int64)
    other += other >= labels
    return np.where(flips, other, labels).astype(labels.dtype)


def local_epsilon(flip_probability: float, num_classes: int = 2) -> float:
    """ln((1 - f)(K - 1)/f): the guarantee against someone who sees the flipped label with its owner's name.

    Infinite at f = 0, zero at f = (K - 1)/K.
    """
    f = check_flip_probability(flip_probability, num_classes)
    if f == 0:
        return math.inf
    return max(0.0, math.log1p(-f) - math.log(f) + math.log(num_classes - 1))


def channel(flip_probability: float, num_classes: int = 2) -> npt.NDArray[np.float64]:
    """``channel[i, j]`` = P(output j | input i), shape (K, K); rows sum to 1."""
    f = check_flip_probability(flip_probability, num_classes)
    matrix = np.full((num_classes, num_classes), f / (num_classes - 1))
    np.fill_diagonal(matrix, 1 - f)
    return matrix
