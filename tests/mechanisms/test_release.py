"""The interface of mechanisms in one place: members, words, and the one that does nothing."""

import math
import random

import numpy as np
import pytest

from p2p_labeldp.mechanisms.no_privacy import NoPrivacy
from p2p_labeldp.mechanisms.release import LabelMechanism, draw_words, members_of


def test_members_are_listed_in_order_and_empty_clusters_too():
    clusters = np.array([2, 0, 2, 2, 0])
    found = list(members_of(np.zeros(5, dtype=int), clusters, num_classes=2, count=4))
    assert [members.tolist() for members in found] == [[1, 4], [], [0, 2, 3], []]


def test_words_are_uniform_in_every_bit():
    words = draw_words(40_000, random.Random(1))
    assert words.dtype == np.uint64
    ones = [(words >> np.uint64(bit) & np.uint64(1)).mean() for bit in range(64)]
    # 64 rates, six standard deviations each at 2e-9
    assert max(abs(rate - 0.5) for rate in ones) < 6 * 0.5 / 200
    assert draw_words(0, random.Random(1)).shape == (0,)


def test_words_of_the_operating_system_are_words_too():
    assert len(set(draw_words(10, random.SystemRandom()).tolist())) == 10


def test_no_privacy_is_said_to_be_none():
    built, labels = NoPrivacy(num_classes=5), np.array([4, 0, 2], dtype=np.uint8)
    released = built.release(labels, np.array([0, 1, 0]), count=2, rng=random.Random(0))
    assert released.labels.tolist() == [4, 0, 2]
    assert released.correction == 0
    assert built.epsilon == built.summary()["epsilon"] == math.inf
    assert isinstance(built, LabelMechanism)


@pytest.mark.parametrize("labels", [[5], [-1], [0.5]])
def test_labels_outside_the_space_are_refused_by_it_as_well(labels):
    from p2p_labeldp.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match="labels: "):
        NoPrivacy(num_classes=5).release(np.array(labels), np.array([0]), count=1, rng=random.Random(0))
