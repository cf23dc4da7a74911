"""A clustering is found from features alone, and everyone finds the same cluster for the same row."""

import inspect
import itertools
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from p2p_labeldp import clustering, datasets
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.errors import ConfigurationError


def blobs(sizes, seed=0, width=3):
    random = np.random.default_rng(seed)
    centres = 20.0 * np.arange(len(sizes))
    return np.concatenate(
        [centre + random.standard_normal((n, width)) for centre, n in zip(centres, sizes, strict=True)]
    )


def test_labels_are_no_argument():
    assert list(inspect.signature(clustering.fit).parameters) == ["features", "count", "minimum_size", "seed"]
    assert list(inspect.signature(Clustering.assign).parameters) == ["self", "features"]


def test_permuting_labels_changes_nothing():
    split = datasets.load("breast-cancer", seed=0, test_share=0.2)
    before = clustering.fit(split.train_features, count=15, minimum_size=20, seed=0).to_payload()
    np.random.default_rng(1).shuffle(split.train_labels)
    assert clustering.fit(split.train_features, count=15, minimum_size=20, seed=0).to_payload() == before


@pytest.mark.parametrize("seed", range(20))
def test_a_row_alone_gets_the_cluster_and_the_very_distances_it_has_among_others(seed):
    split = datasets.load("breast-cancer", seed=seed, test_share=0.2)
    fitted = clustering.fit(split.train_features, count=15, minimum_size=20, seed=seed)
    together = fitted.assign(split.train_features)
    assert [int(fitted.assign(row)[0]) for row in split.train_features] == together.tolist()
    assert [int(fitted.assign(row.tolist())[0]) for row in split.train_features[:20]] == together[:20].tolist()
    assert (np.bincount(together) >= 20).all()
    assert len(np.bincount(together)) == fitted.count


def test_nearly_equal_distances_are_decided_alike_alone_and_among_others():
    # Rows half-way between two centres up to rounding, in a width where sums in another order do differ.
    random = np.random.default_rng(5)
    centroids = random.standard_normal((2, 301))
    rows = centroids.mean(axis=0) + 1e-16 * random.standard_normal((10_000, 301))
    fitted = Clustering(mean=np.zeros(301), scale=np.ones(301), centroids=centroids, cluster_of_centroid=[0, 1])
    together = fitted.assign(rows)
    assert 0 < together.sum() < len(rows)
    alone = np.array([fitted.assign(row)[0] for row in rows])
    strided = fitted.assign(np.asfortranarray(rows))
    assert (alone == together).all()
    assert (strided == together).all()


def test_separate_blobs_are_found():
    rows = blobs([30, 40, 50])
    found = clustering.fit(rows, count=3, minimum_size=2, seed=0).assign(rows)
    assert sorted(np.bincount(found)) == [30, 40, 50]
    assert all(len(set(part)) == 1 for part in np.split(found, [30, 70]))


def test_the_smallest_is_merged_first_into_the_nearest_until_all_are_large_enough():
    rows = blobs([3, 5, 30, 30])  # on a line: 3 joins 5 (now 8, still too small), then 8 joins the first 30
    found = clustering.fit(rows, count=4, minimum_size=9, seed=0).assign(rows)
    assert sorted(np.bincount(found)) == [30, 38]
    assert len(set(found[:38])) == 1
    positive = clustering.fit(rows, count=4, minimum_size=8, seed=0).assign(rows)
    assert sorted(np.bincount(positive)) == [8, 30, 30]


def test_merging_ends_at_the_whole():
    rows = blobs([5, 5, 5])
    assert clustering.fit(rows, count=3, minimum_size=15, seed=0).count == 1


def test_the_merge_order_is_the_documented_one():
    centroids = np.array([[0.0], [1.0], [10.0], [10.4]])
    # 3 (size 1) joins 2 at .4; then 0 (size 2) joins 1 at 1.
    assert clustering._merge(centroids, np.array([2, 9, 9, 1]), 5).tolist() == [0, 0, 1, 1]
    # Equally small: the lowest-numbered one goes first, and may thereby save the other.
    assert clustering._merge(centroids, np.array([1, 9, 9, 1]), 2).tolist() == [0, 0, 1, 1]
    assert clustering._merge(np.array([[0.0], [1.0], [1.5]]), np.array([2, 2, 9]), 4).tolist() == [0, 0, 1]
    # Empty clusters vanish too.
    assert clustering._merge(centroids, np.array([0, 0, 9, 9]), 2).tolist() == [0, 0, 0, 1]


def test_fewer_distinct_rows_than_clusters_warn_nobody():
    rows = np.repeat([[0.0, 1.0], [5.0, 2.0]], 10, axis=0)
    assert clustering.fit(rows, count=6, minimum_size=2, seed=0).count == 2


def test_a_constant_feature_has_scale_one_and_changes_no_cluster():
    rows = blobs([20, 20])
    with_constant = np.c_[rows, np.full(40, 0.1)]
    fitted = clustering.fit(with_constant, count=2, minimum_size=2, seed=0)
    assert (fitted.scale[-1], fitted.mean[-1]) == (1.0, 0.1)
    plain = clustering.fit(rows, count=2, minimum_size=2, seed=0)
    assert (fitted.assign(with_constant) == plain.assign(rows)).all()


def test_one_seed_gives_one_clustering_and_another_seed_another():
    rows = datasets.load("digits", seed=0, test_share=0.2).train_features
    a, b, c = (clustering.fit(rows, count=10, minimum_size=20, seed=seed).to_payload() for seed in (0, 0, 1))
    assert a == b
    assert a != c


def test_a_payload_survives_msgpack_exactly():
    rows = blobs([20, 30])
    fitted = clustering.fit(rows, count=2, minimum_size=2, seed=0)
    wire = msgspec.msgpack.decode(msgspec.msgpack.encode(fitted.to_payload()))
    again = Clustering.from_payload(wire)
    assert again.to_payload() == fitted.to_payload()
    assert (again.assign(rows) == fitted.assign(rows)).all()


PAYLOAD = {"mean": [0.0], "scale": [1.0], "centroids": [[0.0], [1.0]], "cluster_of_centroid": [0, 1]}


@pytest.mark.parametrize(
    "changes",
    [
        {"mean": []},
        {"mean": [float("nan")]},
        {"mean": 0.0},
        {"mean": ["x"]},
        {"scale": [0.0]},
        {"scale": [-1.0]},
        {"scale": [float("inf")]},
        {"scale": [1.0, 1.0]},
        {"centroids": []},
        {"centroids": [[0.0], [1.0, 2.0]]},
        {"centroids": [[0.0], [float("inf")]]},
        {"centroids": [0.0, 1.0]},
        {"cluster_of_centroid": [0]},
        {"cluster_of_centroid": [0, 2]},
        {"cluster_of_centroid": [-1, 0]},
        {"cluster_of_centroid": [0, 2**70]},
        {"more": 1},
    ],
)
def test_a_payload_that_is_none_is_refused(changes):
    assert Clustering.from_payload(PAYLOAD).count == 2
    with pytest.raises(ConfigurationError, match=r"^clustering: "):
        Clustering.from_payload({**PAYLOAD, **changes})


def test_a_clustering_can_not_be_written_to():
    fitted = Clustering.from_payload(PAYLOAD)
    with pytest.raises(ValueError, match="read-only"):
        fitted.mean[0] = 1
    with pytest.raises(AttributeError):
        fitted.mean = np.zeros(1)


@pytest.mark.parametrize(
    ("count", "minimum_size", "line"),
    [
        (21, 2, "clusters.count: 21 given; 1 to 20 are possible with 20 rows"),
        (0, 2, "clusters.count: 0 given; 1 to 20 are possible with 20 rows"),
        (2, 21, "clusters.minimum_size: 21 given; 1 to 20 are possible with 20 rows"),
    ],
)
def test_impossible_sizes_are_refused(count, minimum_size, line):
    rows = blobs([10, 10])
    assert clustering.fit(rows, count=20, minimum_size=20, seed=0).count == 1
    with pytest.raises(ConfigurationError) as caught:
        clustering.fit(rows, count=count, minimum_size=minimum_size, seed=0)
    assert str(caught.value) == line


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_features_that_are_not_finite_are_refused(value):
    rows = blobs([10, 10])
    fitted = clustering.fit(rows, count=2, minimum_size=2, seed=0)
    rows[3, 1] = value
    for attempt in (lambda: clustering.fit(rows, count=2, minimum_size=2, seed=0), lambda: fitted.assign(rows[3])):
        with pytest.raises(ConfigurationError, match=r"^features: "):
            attempt()


def test_another_number_of_features_is_refused():
    fitted = Clustering.from_payload(PAYLOAD)
    for bad in ([1.0, 2.0], [[1.0, 2.0]], [], [[[1.0]]]):
        with pytest.raises(ConfigurationError, match=r"^features: shape .* rows of 1 features are needed"):
            fitted.assign(bad)


def test_assigning_does_not_import_scikit_learn():
    code = (
        "import sys; from p2p_labeldp.clustering import Clustering as C;"
        f"C.from_payload({PAYLOAD!r}).assign([1.0]); sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_training_row_of_every_seed_lies_in_a_cluster_of_at_least_the_minimum():
    rows = blobs([4, 9, 2, 40, 7])
    for seed, minimum in itertools.product(range(5), (2, 5, 10, 30)):
        fitted = clustering.fit(rows, count=8, minimum_size=minimum, seed=seed)
        assert np.bincount(fitted.assign(rows), minlength=fitted.count).min() >= minimum
