"""Files are used if they are the published ones; what is cut off, changed or missing is one clear line."""

import gzip

import numpy as np
import pytest
import tiny_images
from altering import altered

from p2p_labeldp import datasets
from p2p_labeldp.datasets import catalogue, files
from p2p_labeldp.errors import ConfigurationError

IMAGES = "train-images-idx3-ubyte"


def refusal(directory, name="mnist", **more):
    with pytest.raises(ConfigurationError) as caught:
        datasets.read_images(name, directory=directory, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_published_files_are_read_compressed_and_plain(tiny, tmp_path):
    compressed = datasets.read_images("mnist", directory=tiny)
    tiny_images.write(tmp_path / "plain", compressed=False)
    plain = datasets.read_images("mnist", directory=tmp_path / "plain")
    for one in (compressed, plain):
        assert one.verified
        assert one.train_pixels.shape == (tiny_images.TRAIN, tiny_images.SIDE**2)
        assert one.test_pixels.shape == (tiny_images.TEST, tiny_images.SIDE**2)
        assert one.train_labels.tolist() == [i % 8 for i in range(tiny_images.TRAIN)]
        assert len(one.label_space) == 10  # two classes have no row
    assert (compressed.train_pixels == plain.train_pixels).all()


@pytest.mark.parametrize("place", ["cifar-10", "cifar-10/cifar-10-batches-bin", "cifar-10-batches-bin"])
def test_cifar_is_found_in_its_folder_and_beside(tiny, place):
    (tiny / place).mkdir(parents=True)
    for name, content in tiny_images.CONTENTS["cifar-10"].items():
        (tiny / place / name).write_bytes(content)
    read = datasets.read_images("cifar-10", directory=tiny)
    assert read.train_pixels.shape == (5 * tiny_images.BATCH, 3072)
    assert read.verified


def test_the_environment_says_where_and_an_argument_overrides_it(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("P2P_LABELDP_DATA", str(tiny))
    assert datasets.read_images("mnist").verified
    assert files.data_directory() == tiny
    assert files.data_directory(tmp_path) == tmp_path
    monkeypatch.delenv("P2P_LABELDP_DATA")
    assert files.data_directory().name == "p2p-labeldp"


def test_a_missing_file_says_how_to_get_it(tiny):
    (tiny / "mnist" / f"{IMAGES}.gz").unlink()
    line = refusal(tiny)
    assert line.startswith(f"data.name: mnist/{IMAGES} is missing in {str(tiny)!r}: p2p-labeldp data fetch mnist; or")
    assert refusal(tiny, verify=False) == line


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_truncated_file_is_refused_verified_or_not(tiny, compressed, verify):
    path = tiny / "mnist" / f"{IMAGES}.gz"
    content = path.read_bytes()
    if compressed:
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()
        path = path.with_suffix("")
        path.write_bytes(gzip.decompress(content)[:-1])
    assert refusal(tiny, verify=verify).startswith(f"data.name: {str(path)!r} is truncated: ")


def test_an_altered_file_is_refused_or_marked(tiny):
    path = tiny / "mnist" / f"{IMAGES}.gz"
    path.write_bytes(gzip.compress(altered(gzip.decompress(path.read_bytes()))))
    line = refusal(tiny)
    assert line.startswith(f"data.name: {str(path)!r} is altered: SHA-256 ")
    assert "data.verify = false" in line
    assert not datasets.read_images("mnist", directory=tiny, verify=False).verified


def test_what_is_unverified_must_still_be_of_its_format(tiny):
    path = tiny / "mnist" / "train-labels-idx1-ubyte.gz"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[-1] = 10
    path.write_bytes(gzip.compress(bytes(content)))
    line = refusal(tiny, verify=False)
    assert line == "data.name: mnist/train-labels-idx1-ubyte is altered: a label 10 among classes 0 to 9"


def test_more_than_was_published_is_altered_and_is_not_read_whole(tiny):
    path = tiny / "mnist" / f"{IMAGES}.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + bytes(10**6)))
    assert "is altered" in refusal(tiny)
    assert "is altered" in refusal(tiny, verify=False)
    assert len(files.read(path, most=100)) == 100


def test_what_is_no_gzip_file_is_said_so(tiny):
    (tiny / "mnist" / f"{IMAGES}.gz").write_bytes(b"<html>not found</html>")
    assert "can't be read: Not a gzipped file" in refusal(tiny)


def test_not_verifying_is_no_mark_on_files_that_are_right(tiny):
    assert datasets.read_images("mnist", directory=tiny, verify=False).verified


def test_the_split_is_the_published_one_with_the_training_rows_shuffled(tiny):
    images = datasets.read_images("mnist", directory=tiny)
    one, again, other = (datasets.load("mnist", seed=seed, test_share=0.5, directory=tiny) for seed in (1, 1, 2))
    assert (one.test_features == images.test_pixels / 255).all()
    assert sorted(map(bytes, one.train_features)) == sorted(map(bytes, images.train_pixels / 255))
    assert (one.train_features == again.train_features).all()
    assert (one.train_features != other.train_features).any()
    assert one.train_features.max() <= 1
    pairs = {bytes(x): y for x, y in zip(images.train_pixels / 255, images.train_labels, strict=True)}
    assert all(pairs[bytes(x)] == y for x, y in zip(one.train_features, one.train_labels, strict=True))
    few = datasets.load("mnist", seed=1, test_share=0.5, directory=tiny, peers=20)
    assert (few.train_features == one.train_features[:20]).all()
    assert few.verified
    with pytest.raises(ConfigurationError, match=r"data\.peers: 121 given; mnist has 2 to 120 training rows"):
        datasets.load("mnist", seed=1, test_share=0.5, directory=tiny, peers=121)


def test_unknown_sets_are_refused():
    with pytest.raises(ConfigurationError, match="one of mnist, fashion-mnist, cifar-10 is possible"):
        datasets.read_images("svhn")


def test_the_catalogue_is_in_order():
    assert list(catalogue.IMAGE_SETS) == ["mnist", "fashion-mnist", "cifar-10"]
    sums = [file.sha256 for one in catalogue.IMAGE_SETS.values() for file in one.files]
    assert len(set(sums)) == len(sums) == 14
    assert all(len(each) == 64 and int(each, 16) for each in sums)
    for one in catalogue.IMAGE_SETS.values():
        assert len(one.classes) == 10
        assert all(source.endswith("/") for source in one.sources)
    rows = np.array([file.size for file in catalogue.IMAGE_SETS["cifar-10"].files]) / 3073
    assert rows.tolist() == [10_000] * 6
