"""Networks: the published counts, gradients against NumPy and against differences, and life without JAX."""

import builtins
import math
import sys

import numpy as np
import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning import networks
from p2p_labeldp.learning.local_update import LocalUpdate
from p2p_labeldp.learning.models import Model
from p2p_labeldp.learning.networks import CIFAR, CIFAR_PARAMETERS, MNIST, MNIST_PARAMETERS, Network

TINY = Network(side=4, channels=2, filters=(3, 2), dense=(5, 3), kernel=3)
NORMALISED = Network(side=4, channels=1, filters=(7,), dense=(3,), kernel=3, normalised=True)
DENSE = Network(side=2, channels=1, filters=(), dense=(3,))


def images(network, *shape, seed=1):
    rng = np.random.default_rng(seed)
    return rng.random((*shape, network.inputs)), rng.integers(network.dense[-1], size=shape)


def moved(network, seed=0):
    """Parameters of which no bias is 0."""
    return network.initial(seed) + 0.1 * np.random.default_rng(seed).standard_normal(network.dimension)


def by_hand(network, parameters, features):
    """Logits in float64, by loops."""
    layers, at = [], 0
    for shape in network.shapes:
        layers.append(parameters[at : at + math.prod(shape)].reshape(shape))
        at += math.prod(shape)
    x = features.reshape(-1, network.side, network.side, network.channels)
    for weights, biases in zip(layers[::2], layers[1::2], strict=True):
        if weights.ndim == 4:
            k = len(weights)
            padded = np.pad(x, ((0, 0), (k // 2, k // 2), (k // 2, k // 2), (0, 0)))
            side = x.shape[1]
            y = sum(padded[:, i : i + side, j : j + side] @ weights[i, j] for i in range(k) for j in range(k))
            y = y.reshape(len(y), side // 2, 2, side // 2, 2, -1).max(axis=(2, 4))
            x = np.maximum(y + biases, 0)
            if network.normalised:
                squares = np.stack([(x[..., max(0, c - 4) : c + 5] ** 2).sum(-1) for c in range(x.shape[-1])], -1)
                x = x / (1 + 1e-3 / 9 * squares) ** 0.75
        else:
            x = x.reshape(len(x), -1) @ weights + biases
            if weights is not layers[-2]:
                x = np.maximum(x, 0)
    return x


def loss_by_hand(network, parameters, features, labels):
    logits = by_hand(network, parameters, features)
    logits -= logits.max(axis=1, keepdims=True)
    return -(logits - np.log(np.exp(logits).sum(1, keepdims=True)))[np.arange(len(labels)), labels].mean()


def test_the_networks_have_the_published_number_of_parameters():
    assert (MNIST.dimension, CIFAR.dimension) == (3_274_634, 1_068_298) == (MNIST_PARAMETERS, CIFAR_PARAMETERS)
    assert (MNIST.inputs, CIFAR.inputs) == (784, 1728)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"side": 6}, "side"),
        ({"channels": 0}, "channels"),
        ({"filters": (3, 0)}, "filters"),
        ({"filters": (True,)}, "filters"),
        ({"dense": ()}, "dense"),
        ({"dense": (4, 1)}, "dense"),
        ({"kernel": 4}, "kernel"),
    ],
)
def test_what_is_no_network_is_refused(change, field):
    with pytest.raises(ConfigurationError, match=field):
        Network(**{"side": 4, "channels": 1, "filters": (3, 2), "dense": (5, 3), **change})


def test_the_start_is_public_and_of_the_scale_that_rectifiers_need():
    start = MNIST.initial(0)
    assert start.shape == (3_274_634,)
    assert (start == MNIST.initial(0)).all()
    assert (start != MNIST.initial(1)).any()
    dense = start[800 + 32 + 51_200 + 64 :][: 3136 * 1024]
    assert dense.std() == pytest.approx(math.sqrt(2 / 3136), rel=0.01)  # 3.2 million draws: 25 deviations


def test_without_jax_a_network_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.split(".")[0] == "jax":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    features, labels = images(TINY, 2)
    for asked in (lambda: TINY.gradient(TINY.initial(0), features, labels), lambda: networks._jax()):
        with pytest.raises(ConfigurationError, match=r"pip install 'p2p-labeldp\[jax\]'"):
            asked()
    assert TINY.dimension == sum(math.prod(shape) for shape in TINY.shapes)


class TestWithJax:
    """What differentiates."""

    @pytest.fixture(autouse=True)
    def _needs_jax(self):
        pytest.importorskip("jax")

    @pytest.mark.parametrize("network", [TINY, NORMALISED, DENSE])
    def test_logits_are_those_of_the_definition(self, network):
        features, _ = images(network, 6)
        parameters = moved(network)
        assert network.logits(parameters, features) == pytest.approx(by_hand(network, parameters, features), abs=1e-5)
        assert (network.predict(parameters, features) == by_hand(network, parameters, features).argmax(1)).all()

    @pytest.mark.parametrize("network", [TINY, NORMALISED, DENSE])
    def test_the_gradient_is_the_loss_by_differences(self, network):
        features, labels = images(network, 4)
        parameters, step = moved(network), 1e-6
        gradient = network.gradient(parameters, features, labels)
        differences = [
            (loss_by_hand(network, parameters + e, features, labels)
             - loss_by_hand(network, parameters - e, features, labels)) / (2 * step)
            for e in step * np.eye(network.dimension)
        ]  # fmt: skip
        assert gradient == pytest.approx(np.array(differences), abs=2e-6)
        assert np.linalg.norm(gradient) > 0.1

    def test_clients_at_once_have_the_gradients_they_have_alone(self):
        features, labels = images(TINY, 5, 3)
        parameters = moved(TINY)
        alone = np.array([TINY.gradient(parameters, x, y) for x, y in zip(features, labels, strict=True)])
        for block in (2, 8):
            together = np.array(list(TINY.gradients(parameters, features, labels, block=block)))
            assert together == pytest.approx(alone, abs=1e-6)
        assert np.abs(alone[0] - alone[1]).max() > 1e-3

    def test_nobody_has_no_gradients(self):
        features, labels = images(TINY, 0, 3)
        assert list(TINY.gradients(TINY.initial(0), features, labels)) == []

    def test_another_shape_is_refused(self):
        features, labels = images(TINY, 2, 3)
        for wrong in ((features[..., 1:], labels), (features, labels[:1]), (features[0], labels[0])):
            with pytest.raises(ConfigurationError, match="features"):
                list(TINY.gradients(TINY.initial(0), *wrong))

    def test_a_network_is_a_model_of_the_rounds(self):
        assert isinstance(TINY, Model)
        features, labels = images(TINY, 3)
        parameters = moved(TINY)
        update = LocalUpdate(model=TINY, max_radius=0.5, steps=2, rate=0.1).compute(parameters, features, labels)
        assert np.linalg.norm(update) == pytest.approx(0.5)
        with pytest.raises(ConfigurationError, match="NaN or infinite"):
            LocalUpdate(model=TINY, max_radius=0.5).compute(parameters * math.nan, features, labels)
