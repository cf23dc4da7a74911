"""Images for ``refit_pretrained.py``: the MNIST network, pretrained on digits; clothes as its last layer sees them.

Everything but the clothes is public: the digits, the network, and the axes below, which are those of digits.

The network is trained on the first digits by gradient descent with momentum, in batches, once over them. Features of an
image are what enters its last layer, 1,024 numbers. They are centred by the digits' mean, turned to the digits'
principal axes, each divided by the root of the digits' standard deviation along it (in between leaving them and
whitening them, which would blow up what digits hardly use), cut to the first ``axes`` of them, scaled to norm 1, and
given a last entry of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from network_rounds import SEED, Data
from p2p_labeldp import randomness
from p2p_labeldp.datasets import read_images
from p2p_labeldp.datasets.images import Images
from p2p_labeldp.learning.models import Vector
from p2p_labeldp.learning.networks import MNIST, Network

BODY = Network(side=28, channels=1, filters=(32, 64), dense=(1024,))
"""All but the last layer."""
CLASSES = 10
BATCH, RATE, MOMENTUM = 50, 0.02, 0.9
AT_ONCE = 5000
FLOOR = 1e-3
"""Of an axis's deviation, as a share of the largest: what digits never do has no scale of its own."""

Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clothes:
    """Clothes as a network's last layer sees them, and digits, by which features are scaled.

    Args:
        train: Shape (N, 1024).
        test: Shape (t, 1024).
        digits: Shape (n, 1024).
        train_labels: Shape (N,).
        test_labels: Shape (t,).
        verified: Whether all files are the published ones.
    """

    train: Rows
    test: Rows
    digits: Rows
    train_labels: npt.NDArray[np.int64]
    test_labels: npt.NDArray[np.int64]
    verified: bool

    def data(self, axes: int) -> Data:
        """One image a client, as ``axes`` + 1 numbers."""
        mean = self.digits.mean(axis=0)
        centred = self.digits - mean
        variances, vectors = np.linalg.eigh((centred.T @ centred / np.float32(len(centred))).astype(np.float64))
        deviations = np.sqrt(np.maximum(variances[::-1], 0.0))[:axes]
        turned = (vectors[:, ::-1][:, :axes] / np.sqrt(np.maximum(deviations, FLOOR * deviations[0]))).astype(
            np.float32
        )

        def scaled(rows: Rows) -> Rows:
            seen = (rows - mean) @ turned
            seen /= np.linalg.norm(seen, axis=1, keepdims=True)
            return np.concatenate([seen, np.ones((len(seen), 1), dtype=np.float32)], axis=1)

        return Data(
            clients=scaled(self.train)[:, None],
            labels=self.train_labels[:, None],
            test=scaled(self.test),
            test_labels=self.test_labels,
            verified=self.verified,
        )


def pretrained(digits: Images, steps: int) -> Vector:
    """Parameters after so many batches of the first digits."""
    parameters = MNIST.initial(SEED)
    velocity = np.zeros_like(parameters)
    order = randomness.numpy_generator(SEED, randomness.Stream.DATA, 10).permutation(steps * BATCH)
    for batch in order.reshape(steps, BATCH):
        rows = digits.train_pixels[batch] / np.float32(255)
        velocity = MOMENTUM * velocity + MNIST.gradient(parameters, rows, digits.train_labels[batch])
        parameters = parameters - RATE * velocity
    return parameters


def read(folder: Path | None) -> tuple[Images, Images]:
    """Digits and clothes."""
    digits, clothes = (read_images(name, directory=folder, verify=False) for name in ("mnist", "fashion-mnist"))
    return digits, clothes


def seen_by(parameters: Vector, digits: Images, clothes: Images, *, people: int, tested: int, public: int) -> Clothes:
    """The first clothes and digits, as the last layer of a network sees them."""
    train, test, axes = (
        _features(parameters, pixels)
        for pixels in (clothes.train_pixels[:people], clothes.test_pixels[:tested], digits.train_pixels[:public])
    )
    return Clothes(
        train=train,
        test=test,
        digits=axes,
        train_labels=clothes.train_labels[:people].astype(np.int64),
        test_labels=clothes.test_labels[:tested].astype(np.int64),
        verified=digits.verified and clothes.verified,
    )


def accuracy(parameters: Vector, images: Images, tested: int) -> float:
    """Of the whole network as it is, on the first test images."""
    guesses = MNIST.predict(parameters, images.test_pixels[:tested] / np.float32(255))
    return float((guesses == images.test_labels[:tested]).mean())


def _features(parameters: Vector, pixels: npt.NDArray[np.uint8]) -> Rows:
    body = parameters[: BODY.dimension]
    pieces = (pixels[first : first + AT_ONCE] / np.float32(255) for first in range(0, len(pixels), AT_ONCE))
    return np.concatenate([np.maximum(BODY.logits(body, piece), 0) for piece in pieces])
