"""One word, one coin: exact thresholds, the same bits in scalar and bulk form."""

import math
from collections import Counter

import numpy as np
import pytest

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import randomized_response as rr


@pytest.mark.parametrize(
    ("flip_probability", "threshold"),
    [(0.0, 0), (0.5, 2**63), (0.25, 2**62), (2.0**-70, 1), (0.1, 1844674407370955264), (5e-324, 1)],
)
def test_the_threshold_is_the_exact_ceiling(flip_probability, threshold):
    assert rr.flip_threshold(flip_probability) == threshold


def test_a_word_flips_only_below_the_threshold():
    threshold = rr.flip_threshold(0.3)
    assert [rr.flip(0, word, threshold) for word in (0, threshold - 1, threshold, 2**64 - 1)] == [1, 1, 0, 0]
    assert [rr.flip(1, word, threshold) for word in (0, threshold - 1, threshold, 2**64 - 1)] == [0, 0, 1, 1]


@pytest.mark.parametrize(("num_classes", "flip_probability"), [(2, 0.3), (3, 0.4), (10, 0.9), (256, 0.01), (5, 0.0)])
def test_scalar_and_bulk_flip_the_same_bits(num_classes, flip_probability):
    words = randomness.bulk_label_words(11, 0, 2000)[:, 0]
    labels = (np.arange(2000) % num_classes).astype(np.int64)
    threshold = rr.flip_threshold(flip_probability, num_classes)
    alone = [rr.flip(int(y), int(w), threshold, num_classes) for y, w in zip(labels, words, strict=True)]
    assert rr.flip_all(labels, words, threshold, num_classes).tolist() == alone


def test_labels_keep_their_type_in_bulk():
    labels = np.zeros(4, dtype=np.uint8)
    words = np.array([0, 1, 2**63 + 2, 2**64 - 1], dtype=np.uint64)
    for num_classes in (2, 4):
        told = rr.flip_all(labels, words, rr.flip_threshold(0.5, num_classes), num_classes)
        assert told.dtype == np.uint8
        assert told.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("num_classes", [2, 3, 7, 256])
def test_every_other_label_owns_the_same_number_of_words(num_classes):
    threshold = rr.flip_threshold(0.37, num_classes)
    width = threshold // (num_classes - 1)
    assert threshold == width * (num_classes - 1)
    assert 0.37 / (num_classes - 1) <= width / 2**64 <= 0.37 / (num_classes - 1) + 2**-60
    edges = [edge for j in range(num_classes - 1) for edge in (j * width, (j + 1) * width - 1)]
    told = Counter(rr.flip(1, word, threshold, num_classes) for word in edges)
    assert told == {label: 2 for label in range(num_classes) if label != 1}


def test_the_flip_rate_is_the_stated_one():
    words = randomness.bulk_label_words(5, 0, 400_000)[:, 0]
    told = rr.flip_all(np.zeros(words.size, dtype=np.int64), words, rr.flip_threshold(0.1, 3), 3)
    counts = np.bincount(told, minlength=3) / words.size
    # five standard deviations a side: fails by chance with probability below 1e-6
    assert np.abs(counts - [0.9, 0.05, 0.05]).max() < 5 * math.sqrt(0.09 / words.size)


def test_local_epsilon_runs_from_infinity_to_zero():
    assert rr.local_epsilon(0.0) == math.inf
    assert rr.local_epsilon(0.5) == 0.0
    assert rr.local_epsilon(0.1) == pytest.approx(math.log(9), rel=1e-15)
    assert rr.local_epsilon(1e-12) == pytest.approx(27.631021115927547, rel=1e-14)
    assert rr.local_epsilon(2 / 3, 3) == pytest.approx(0.0, abs=1e-15)
    assert rr.local_epsilon(0.1, 3) == pytest.approx(math.log(18), rel=1e-15)


def test_the_channel_says_output_given_input():
    assert rr.channel(0.1, 3) == pytest.approx(np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]]))
    assert rr.channel(0.2).tolist() == [[0.8, 0.2], [0.2, 0.8]]


@pytest.mark.parametrize("flip_probability", [-1e-9, 0.5000001, math.nan, math.inf, -math.inf, True])
def test_impossible_flip_probabilities_are_refused_and_the_range_is_named(flip_probability):
    for question in (rr.flip_threshold, rr.local_epsilon, rr.channel):
        with pytest.raises(ConfigurationError, match=r"flip_probability: .* 0 to 0\.5 "):
            question(flip_probability)


def test_more_classes_allow_more_flips():
    assert rr.check_flip_probability(0.6, 3) == 0.6
    with pytest.raises(ConfigurationError, match=r"0\.666667"):
        rr.check_flip_probability(0.67, 3)


@pytest.mark.parametrize("num_classes", [1, 257, True])
def test_impossible_numbers_of_classes_are_refused(num_classes):
    with pytest.raises(ConfigurationError, match="num_classes"):
        rr.check_classes(num_classes)


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_outside_the_space_is_refused(label):
    with pytest.raises(ConfigurationError, match="label"):
        rr.flip(label, 0, 1)
