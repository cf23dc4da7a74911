"""Convolutional networks for images, as a ``Model``: parameters one flat vector, gradients of many clients at once.

Definition. An image of s x s pixels and c channels goes through blocks of

    convolution k x k with f filters, zero-padded to keep the size; maximum over 2 x 2 pixels; max(0, .);
    and, if ``normalised``, local response normalisation: x_i / (1 + (alpha/9) sum over |j-i| <= 4 of x_j^2)^beta,
    alpha = .001, beta = .75 (Krizhevsky, Sutskever, Hinton, "ImageNet classification", 2012, section 3.3),

then through dense layers with max(0, .) between them to one logit a class; the loss is cross-entropy. The vector holds
the layers in order, weights before biases, each in C order: (k, k, in, out) and (in, out).

    network    image        filters   dense           parameters
    ``MNIST``  28 x 28 x 1  32, 64    1024, 10        3,274,634
    ``CIFAR``  24 x 24 x 3  64, 64    384, 192, 10    1,068,298   normalised

The counts are those of Bhowmick et al., arXiv 1812.00984, section 5; the layers that have them are this project's
reading of it.

JAX differentiates. It is imported when it is first needed and comes with the extra ``jax``; what a network is and how
many parameters it has can be asked without it. Gradients are float32; who needs a norm takes it in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.models import Features, Labels, Vector
from p2p_labeldp.randomness import Stream

Rows = npt.NDArray[np.float32]

NEIGHBOURS, ALPHA, BETA = 4, 1e-3, 0.75
"""Of local response normalisation."""

PREDICTED_AT_ONCE = 500
_START = 2  # ordinal of the stream DATA: learning


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What a network is.

    Args:
        side: s; divisible by 2 as often as there are convolutions.
        channels: c.
        filters: f of each convolution.
        dense: Units of each dense layer, the last of which are the classes.
        kernel: k, odd.
        normalised: Whether responses are normalised.

    Raises:
        ConfigurationError: A number out of range.
    """

    side: int
    channels: int
    filters: tuple[int, ...]
    dense: tuple[int, ...]
    kernel: int = 5
    normalised: bool = False

    def __post_init__(self) -> None:
        for name in ("side", "channels", "filters", "dense", "kernel"):
            value = getattr(self, name)
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, bool) or not isinstance(one, int) or one < 1:
                    raise ConfigurationError(f"{value} given; integers of at least 1 are possible", field=name)
        if not self.dense or self.dense[-1] < 2:
            raise ConfigurationError(f"{self.dense} given; at least 2 classes at the end are needed", field="dense")
        if self.kernel % 2 == 0:
            raise ConfigurationError(f"{self.kernel} given; an odd number is possible", field="kernel")
        if self.side % 2 ** len(self.filters):
            raise ConfigurationError(
                f"{self.side} given; a multiple of {2 ** len(self.filters)} is halved that often", field="side"
            )

    @property
    def inputs(self) -> int:
        """Length of a row: pixels, row by row, the channels of each together."""
        return self.side * self.side * self.channels

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of weights and biases, layer after layer."""
        shapes: list[tuple[int, ...]] = []
        width = self.channels
        for filters in self.filters:
            shapes += [(self.kernel, self.kernel, width, filters), (filters,)]
            width = filters
        width *= (self.side >> len(self.filters)) ** 2
        for units in self.dense:
            shapes += [(width, units), (units,)]
            width = units
        return tuple(shapes)

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return sum(math.prod(shape) for shape in self.shapes)

    def initial(self, seed: int) -> Vector:
        """Weights N(0, 2 / inputs of a unit), biases 0 (He et al., "Delving deep into rectifiers", 2015)."""
        rng = randomness.numpy_generator(seed, Stream.DATA, _START)
        parts = [
            np.zeros(shape) if len(shape) == 1 else rng.standard_normal(shape) * math.sqrt(2 / math.prod(shape[:-1]))
            for shape in self.shapes
        ]
        return np.concatenate([part.ravel() for part in parts])

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> Vector:
        """Of the mean loss over one client's rows, shape (dimension,).

        Raises:
            ConfigurationError: No JAX.
        """
        (rows,) = self.gradients(parameters, features[None], labels[None])
        return rows.astype(np.float64)

    def gradients(self, parameters: Vector, features: Features, labels: Labels, *, block: int = 1) -> Iterator[Rows]:
        """Of the mean loss over each client's rows, n vectors of shape (dimension,), one after the other.

        Args:
            parameters: Shape (dimension,).
            features: Shape (n, m, inputs): m rows of each of n clients.
            labels: Shape (n, m).
            block: Clients that are differentiated at once, each with a gradient in memory. On one CPU core a client at
                a time costs least, because convolutions by as many kernels as clients are slow there.

        Raises:
            ConfigurationError: No JAX, or another shape.
        """
        if features.ndim != 3 or features.shape[2] != self.inputs or labels.shape != features.shape[:2]:
            raise ConfigurationError(
                f"shapes {features.shape} and {labels.shape} given; (n, m, {self.inputs}) and (n, m) are needed",
                field="features",
            )
        weights, calls = self._layers(parameters), _calls(self)
        for start in range(0, len(features), block):
            chosen = np.minimum(np.arange(start, start + block), len(features) - 1)  # one size is compiled once
            layers = calls.gradients(weights, self._images(features[chosen]), labels[chosen].astype(np.int32))
            parts = [np.asarray(layer) for layer in layers]
            for i in range(min(block, len(features) - start)):
                yield np.concatenate([part[i].ravel() for part in parts])

    def logits(self, parameters: Vector, features: Features) -> Rows:
        """Shape (m, classes).

        Raises:
            ConfigurationError: No JAX.
        """
        weights, calls = self._layers(parameters), _calls(self)
        pieces = np.array_split(features, max(1, math.ceil(len(features) / PREDICTED_AT_ONCE)))
        return np.concatenate([np.asarray(calls.logits(weights, self._images(piece))) for piece in pieces])

    def predict(self, parameters: Vector, features: Features) -> npt.NDArray[np.int64]:
        """The class of the largest logit."""
        return np.asarray(self.logits(parameters, features).argmax(axis=1), dtype=np.int64)

    def _layers(self, parameters: Vector) -> list[Any]:
        """The vector cut into layers, in float32, where JAX has them."""
        jax = _jax()
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(np.asarray(parameters, dtype=np.float32), ends[:-1])
        return [jax.numpy.asarray(part.reshape(shape)) for part, shape in zip(parts, self.shapes, strict=True)]

    def _images(self, features: Features) -> Rows:
        return features.reshape(*features.shape[:-1], self.side, self.side, self.channels).astype(np.float32)


MNIST = Network(side=28, channels=1, filters=(32, 64), dense=(1024, 10))
CIFAR = Network(side=24, channels=3, filters=(64, 64), dense=(384, 192, 10), normalised=True)
MNIST_PARAMETERS, CIFAR_PARAMETERS = 3_274_634, 1_068_298
"""As published."""


def _jax() -> Any:
    try:
        import jax
    except ImportError as exc:
        raise ConfigurationError(
            "a network given; it needs JAX: pip install 'p2p-labeldp[jax]'", field="model"
        ) from exc
    return jax


@dataclass(frozen=True, slots=True, kw_only=True)
class _Calls:
    """Compiled: gradients of (layers, images (n, m, s, s, c), labels (n, m)), and logits of (layers, images)."""

    gradients: Any
    logits: Any


@lru_cache(maxsize=8)
def _calls(network: Network) -> _Calls:
    jax = _jax()
    jnp = jax.numpy
    near = np.abs(np.subtract.outer(*[np.arange(max(network.filters, default=1))] * 2)) <= NEIGHBOURS

    def logits(layers: list[Any], images: Any) -> Any:
        x, rest = images, list(layers)
        for _ in network.filters:
            weights, biases, *rest = rest
            x = jax.lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            m, s, _, f = x.shape
            x = jax.nn.relu(x.reshape(m, s // 2, 2, s // 2, 2, f).max(axis=(2, 4)) + biases)
            if network.normalised:
                scale = ALPHA / (2 * NEIGHBOURS + 1)
                x = x / (1 + scale * (x * x) @ near[:f, :f].astype(np.float32)) ** BETA
        x = x.reshape(len(x), -1)
        while rest:
            weights, biases, *rest = rest
            x = x @ weights + biases
            x = jax.nn.relu(x) if rest else x
        return x

    def loss(layers: list[Any], images: Any, labels: Any) -> Any:
        chances = jax.nn.log_softmax(logits(layers, images))
        return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], axis=1))

    return _Calls(gradients=jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0))), logits=jax.jit(logits))
