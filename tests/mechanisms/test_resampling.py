"""The mate is uniform over the whole cluster, oneself included, and the same in scalar and bulk form."""

from itertools import pairwise

import numpy as np
import pytest

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import resampling


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 2**31 + 11, 2**32 - 1])
def test_scalar_and_bulk_ask_the_same_mate(size):
    words = np.concatenate(
        [randomness.bulk_label_words(3, 0, 500)[:, 1], np.array([0, 1, 2**32 - 1, 2**32, 2**64 - 1], dtype=np.uint64)]
    )
    alone = [resampling.mate_index(int(word), size) for word in words]
    assert resampling.mate_indices(words, size).tolist() == alone
    assert max(alone) < size


def test_every_word_may_have_its_own_cluster_size():
    words = randomness.bulk_label_words(4, 0, 300)[:, 1]
    sizes = np.arange(1, 301)
    alone = [resampling.mate_index(int(word), int(size)) for word, size in zip(words, sizes, strict=True)]
    assert resampling.mate_indices(words, sizes).tolist() == alone


def test_the_range_of_words_is_cut_evenly():
    for size in (3, 10, 1000):
        firsts = [-(-index * 2**64 // size) for index in range(size + 1)]
        assert all(resampling.mate_index(first, size) == index for index, first in enumerate(firsts[:-1]))
        assert all(resampling.mate_index(first - 1, size) == index for index, first in enumerate(firsts[1:]))
        widths = {b - a for a, b in pairwise(firsts)}
        assert widths <= {2**64 // size, 2**64 // size + 1}  # hence the documented bias
    assert resampling.INDEX_BIAS == 2**-64


def test_oneself_is_drawn_as_often_as_any_other():
    size, rounds = 8, 40_000
    words = randomness.bulk_label_words(9, 0, size * rounds)[:, 1].reshape(rounds, size)
    drawn = resampling.mate_indices(words, size)
    for member in range(size):
        counts = np.bincount(drawn[:, member].astype(np.int64), minlength=size)
        # 64 counts within 5.8 standard deviations: fails by chance with probability below 1e-6
        assert np.abs(counts - rounds / size).max() < 5.8 * np.sqrt(rounds / size * (1 - 1 / size))


@pytest.mark.parametrize("size", [0, -1, 2**32])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ConfigurationError, match="cluster size"):
        resampling.mate_index(0, size)
