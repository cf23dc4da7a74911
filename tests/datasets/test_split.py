"""A data set is split by its seed alone, one training row per peer."""

import subprocess
import sys

import numpy as np
import pytest

from p2p_labeldp import datasets
from p2p_labeldp.errors import ConfigurationError


def rows(*parts):
    return sorted(map(bytes, np.concatenate(parts)))


@pytest.mark.parametrize(
    ("name", "train", "test", "features", "classes"),
    [
        ("breast-cancer", 455, 114, 30, ("malignant", "benign")),
        ("digits", 1437, 360, 64, ("even", "odd")),
        ("digits-10", 1437, 360, 64, tuple("0123456789")),
        ("iris", 120, 30, 4, ("setosa", "versicolor", "virginica")),
        ("synthetic", 1000, 250, 8, ("a", "b")),
        ("wine", 142, 36, 13, ("class_0", "class_1", "class_2")),
    ],
)
def test_shapes_types_and_classes_are_as_documented(name, train, test, features, classes):
    split = datasets.load(name, seed=3, test_share=0.2)
    assert split.train_features.shape == (train, features)
    assert split.test_features.shape == (test, features)
    assert split.train_labels.shape == (train,)
    assert split.test_labels.shape == (test,)
    assert split.train_features.dtype == np.float64
    assert split.train_labels.dtype == split.test_labels.dtype == np.uint8
    assert split.label_space.classes == datasets.label_space_of(name).classes == classes
    assert set(split.train_labels) == set(range(len(classes)))
    assert split.name == name


def test_training_and_held_out_rows_are_the_data_set_without_overlap():
    from sklearn.datasets import load_breast_cancer

    split = datasets.load("breast-cancer", seed=0, test_share=0.2)
    whole = np.ascontiguousarray(np.c_[load_breast_cancer().data, load_breast_cancer().target])
    train = np.c_[split.train_features, split.train_labels]
    assert rows(train, np.c_[split.test_features, split.test_labels]) == rows(whole)


def test_a_digit_is_even_or_odd():
    from sklearn.datasets import load_digits

    split = datasets.load("digits", seed=0, test_share=0.5)
    parity = {bytes(x): y % 2 for x, y in zip(load_digits().data, load_digits().target, strict=True)}
    assert all(parity[bytes(x)] == y for x, y in zip(split.train_features, split.train_labels, strict=True))


@pytest.mark.parametrize("name", ["breast-cancer", "synthetic"])
def test_one_seed_gives_one_split_and_another_seed_another(name):
    a, b, c = (datasets.load(name, seed=seed, test_share=0.2) for seed in (1, 1, 2))
    assert (a.train_features == b.train_features).all()
    assert (a.train_labels == b.train_labels).all()
    assert (a.train_features != c.train_features).any()


def test_fewer_peers_are_the_first_ones_and_measured_on_the_same_rows():
    whole, few = (datasets.load("breast-cancer", seed=1, test_share=0.2, peers=n) for n in (None, 50))
    assert (few.train_features == whole.train_features[:50]).all()
    assert (few.test_features == whole.test_features).all()


@pytest.mark.parametrize("peers", [2, 3, 7, 1000, 12_345])
@pytest.mark.parametrize("share", [0.01, 0.2, 1 / 3, 0.58, 0.9])
def test_synthetic_comes_in_the_size_asked_for(peers, share):
    split = datasets.load("synthetic", seed=0, test_share=share, peers=peers)
    assert len(split.train_labels) == peers
    assert len(split.test_labels) >= 1


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"name": "irises"},
            "data.name: 'irises' given; the known names are breast-cancer, cifar-10, digits, digits-10, fashion-mnist,"
            " iris, mnist, synthetic, wine",
        ),
        ({"peers": 456}, "data.peers: 456 given; breast-cancer has 2 to 455 training rows"),
        ({"peers": 1}, "data.peers: 1 given; at least 2 are needed"),
        ({"test_share": 1.0}, "data.test_share: 1.0 given; a number above 0 and below 1 is allowed"),
        ({"test_share": float("nan")}, "data.test_share: nan given; a number above 0 and below 1 is allowed"),
        ({"test_share": 0.999}, "data.test_share: 0.999 leaves 0 training rows; 2 are needed"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changes, line):
    good = {"name": "breast-cancer", "seed": 0, "test_share": 0.2, "peers": 455}
    assert len(datasets.load(**good).train_labels) == 455
    with pytest.raises(ConfigurationError) as caught:
        datasets.load(**{**good, "peers": changes.get("peers"), **changes})
    assert str(caught.value) == line


def test_classes_of_image_sets_are_known_without_their_files():
    assert datasets.label_space_of("mnist").classes == tuple("0123456789")
    assert [len(datasets.label_space_of(name)) for name in datasets.known()] == [2, 10, 2, 10, 10, 3, 10, 2, 3]
    with pytest.raises(ConfigurationError, match=r"data\.name: 'irises' given"):
        datasets.label_space_of("irises")


def test_importing_datasets_does_not_import_scikit_learn():
    code = "import sys, p2p_labeldp.datasets; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
