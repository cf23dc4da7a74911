"""The image sets of the papers: their classes, their files, and where these are published.

SHA-256 sums are of the decompressed content, because mirrors compress anew. Those of MNIST and Fashion-MNIST were
computed from files whose content agrees with what many others pin; those of CIFAR-10's binary version are the ones
other loaders pin, and no original was at hand to compute them from. No address was ever tried: downloads are tested
against a local server.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.labels import LabelSpace

UNTRIED = "downloads are tested against a local server; these addresses were never tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One file, decompressed.

    Args:
        name: Its name, without a suffix of compression.
        size: Bytes.
        sha256: Of the content, hexadecimal.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSet:
    """One data set with a published split.

    Args:
        name: As in ``data.name`` and as the folder within the data directory.
        classes: The public classes; label i is the i-th.
        train: Files of the training rows: images and labels, or batches of both.
        test: Files of the held-out rows.
        sources: Addresses to download from, in the order in which they are tried; each ends in a slash.
        archive: Name of the one compressed archive that holds all files; None where each is published as NAME.gz.
        folder: Within the archive, and accepted within the data directory; empty for none.
    """

    name: str
    classes: LabelSpace
    train: tuple[DataFile, ...]
    test: tuple[DataFile, ...]
    sources: tuple[str, ...]
    archive: str | None = None
    folder: str = ""

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All of them."""
        return (*self.train, *self.test)


def find(name: str) -> ImageSet:
    """The set of that name.

    Raises:
        ConfigurationError: None has it.
    """
    if name not in IMAGE_SETS:
        raise ConfigurationError(f"{name!r} given; one of {', '.join(IMAGE_SETS)} is possible", field="data.name")
    return IMAGE_SETS[name]


def _idx(sums: tuple[str, str, str, str]) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """The four files of an IDX set: images of 28 x 28 after 16 bytes, labels after 8."""
    pairs = []
    for part, rows, (images, labels) in (("train", 60_000, sums[:2]), ("t10k", 10_000, sums[2:])):
        pairs.append(
            (
                DataFile(name=f"{part}-images-idx3-ubyte", size=16 + rows * 784, sha256=images),
                DataFile(name=f"{part}-labels-idx1-ubyte", size=8 + rows, sha256=labels),
            )
        )
    return pairs[0], pairs[1]


def _batch(name: str, sha256: str) -> DataFile:
    """A batch of CIFAR-10: 10,000 records of a label and 3 x 32 x 32 bytes."""
    return DataFile(name=name, size=10_000 * 3073, sha256=sha256)


_MNIST = _idx(
    (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    )
)
_FASHION = _idx(
    (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    )
)

IMAGE_SETS: dict[str, ImageSet] = {
    found.name: found
    for found in (
        ImageSet(
            name="mnist",
            classes=LabelSpace(classes=tuple("0123456789")),
            train=_MNIST[0],
            test=_MNIST[1],
            sources=(
                "http://yann.lecun.com/exdb/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/",
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
            ),
        ),
        ImageSet(
            name="fashion-mnist",
            classes=LabelSpace(
                classes=(
                    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
                    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
                )
            ),
            train=_FASHION[0],
            test=_FASHION[1],
            sources=("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        ),
        ImageSet(
            name="cifar-10",
            classes=LabelSpace(
                classes=(
                    *("airplane", "automobile", "bird", "cat", "deer"),
                    *("dog", "frog", "horse", "ship", "truck"),
                )
            ),
            train=(
                _batch("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
                _batch("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
                _batch("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
                _batch("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
                _batch("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            ),
            test=(_batch("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),),
            sources=("https://www.cs.toronto.edu/~kriz/",),
            archive="cifar-10-binary.tar.gz",
            folder="cifar-10-batches-bin",
        ),
    )
}
