"""Clusters are suggested from features and sizes; labels cannot move it."""

import inspect

import numpy as np
import pytest

from p2p_labeldp import datasets, suggestion
from p2p_labeldp.accounting.planning import plan_roster
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.suggestion import count_for, suggest

ASKED = {"num_classes": 2, "target_epsilon": 1.0, "tolerated_loss": 0.05, "minimum_size": 20, "seed": 0}


@pytest.mark.parametrize(
    ("rows", "classes", "count"), [(20, 2, 1), (100, 2, 5), (455, 2, 14), (1437, 10, 25), (10_000, 2, 66),
    (10**5, 2, 666), (10**5, 10, 333)]
)  # fmt: skip
def test_the_number_of_clusters_grows_with_the_rows(rows, classes, count):
    assert count_for(rows, 20, classes) == count


def test_sizes_and_flips_are_those_of_the_clusters():
    features = datasets.load("breast-cancer", seed=0, test_share=0.2).train_features
    found = suggest(features, **ASKED)
    assert sum(found.sizes) == len(features)
    assert min(found.sizes) >= 20
    flips = [plan_roster(size, 1.0, 0.05).flip_probability for size in found.sizes]
    assert found.flips == (max(flips), min(flips))
    assert not found.much_noise
    few = suggest(features[:20], **{**ASKED, "num_classes": 10, "target_epsilon": 0.2})
    assert (few.count, few.sizes, few.much_noise) == (1, (20,), True)


def test_labels_are_no_argument():
    assert not [name for name in inspect.signature(suggestion.suggest).parameters if "label" in name]


def test_fewer_rows_than_a_cluster_are_refused():
    with pytest.raises(ConfigurationError, match=r"data\.csv: 19 rows are left for training, fewer than the 20"):
        suggest(np.zeros((19, 2)), **ASKED)
