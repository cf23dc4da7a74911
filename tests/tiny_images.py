"""Image sets of a few rows in the published formats, which take the place of the real ones in a test's catalogue."""

import dataclasses
import gzip
import hashlib
import io
import tarfile

import numpy as np

from p2p_labeldp.datasets import catalogue
from p2p_labeldp.datasets.catalogue import DataFile

TRAIN, TEST, SIDE = 120, 30, 6
BATCH = 8


def idx_bytes(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return header + array.astype(np.uint8).tobytes()


def pixels(labels, rng):
    """Squares whose brightest row is that of their label, so that there is something to learn."""
    images = rng.integers(0, 60, size=(len(labels), SIDE, SIDE))
    images[np.arange(len(labels)), labels % SIDE] += 150 + 8 * (labels[:, None] // SIDE)
    return images


def mnist_contents():
    """Name to content, decompressed. Classes 0 to 7 only: two of the ten have no row."""
    rng, contents = np.random.default_rng(0), {}
    for part, rows in (("train", TRAIN), ("t10k", TEST)):
        labels = np.arange(rows) % 8
        contents[f"{part}-images-idx3-ubyte"] = idx_bytes(pixels(labels, rng))
        contents[f"{part}-labels-idx1-ubyte"] = idx_bytes(labels)
    return contents


def cifar_contents():
    rng = np.random.default_rng(1)
    records = {
        name: np.c_[np.arange(BATCH) % 10, rng.integers(0, 256, size=(BATCH, 3072))].astype(np.uint8)
        for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
    }
    return {name: array.tobytes() for name, array in records.items()}


CONTENTS = {"mnist": mnist_contents(), "cifar-10": cifar_contents()}


def install(monkeypatch):
    """Puts the tiny sets into the catalogue until the test ends."""
    for name, contents in CONTENTS.items():
        real = catalogue.IMAGE_SETS[name]

        def tiny(files, contents=contents):
            return tuple(
                DataFile(
                    name=file.name,
                    size=len(contents[file.name]),
                    sha256=hashlib.sha256(contents[file.name]).hexdigest(),
                )
                for file in files
            )

        small = dataclasses.replace(real, train=tiny(real.train), test=tiny(real.test))
        monkeypatch.setitem(catalogue.IMAGE_SETS, name, small)


def write(directory, name="mnist", *, compressed=True):
    """The files of a set where they are looked for; returns their folder."""
    folder = directory / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in CONTENTS[name].items():
        if compressed:
            (folder / f"{file}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / file).write_bytes(content)
    return folder


def archive(contents, folder="cifar-10-batches-bin"):
    """A compressed archive of these files, and of one that nobody wants."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as members:
        for name, content in {**contents, "../escaped": b"x"}.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
