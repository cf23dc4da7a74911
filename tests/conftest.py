"""What tests of several packages share."""

import asyncio
import re

import numpy as np
import pytest
import tiny_images
from hypothesis import HealthCheck, settings

from p2p_labeldp import topology
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.network import loops
from p2p_labeldp.network.study import Study, Terms
from p2p_labeldp.protocol.manifest import Deadlines

# How long an example takes, or to make one, says how busy the machine is; counts of examples bound the time of a test.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

ON_BOTH_LOOPS = re.compile(r"(^|\.)network\.(over_http\.|test_host$)")


def pytest_asyncio_loop_factories(config, item):
    """What stands on sockets has to hold on the loop of a process with one peer and on that of one with many."""
    loops_of_peers = {"one peer": asyncio.new_event_loop, "many peers": loops.busy}
    if ON_BOTH_LOOPS.search(item.module.__name__):
        return loops_of_peers
    return {"one peer": asyncio.new_event_loop}


SIZES = (5, 12, 23, 40)  # unequal; the first is the least a cluster may have


def make_study(*, seed=0, sizes=SIZES, labels=None, topology_seed=None, degree=4, **terms):
    """A study of synthetic peers: one cluster around each of the points (0, 0), (20, 0), ..., ordinals shuffled.

    The label is, nine times in ten, whether the second feature is positive; of more than two classes the third part of
    the second feature's range, or the tenth.
    """
    rng = np.random.default_rng(len(sizes))
    centres = np.array([[20.0 * i, 0.0] for i in range(len(sizes))])
    features = np.repeat(centres, sizes, axis=0) + rng.normal(size=(sum(sizes), 2))
    rng.shuffle(features)
    noise = rng.random(len(features)) < 0.1
    clustering = Clustering(mean=[0.0, 0.0], scale=[1.0, 1.0], centroids=centres, cluster_of_centroid=range(len(sizes)))
    values = {
        "classes": ("no", "yes"),
        "clustering": clustering.to_payload(),
        "target_epsilon": None,
        "flip_probability": 0.1,
        "tolerated_loss": 0.05,
        "minimum_size": min(sizes),
        # Sixteen and eight periods of gossip: 300 rounds of 80 peers on as many graphs all went without a loss.
        "deadlines": Deadlines(join=16.0, exchange=24.0, closing=32.0, report=40.0),
        "gossip_period": 1.0,
        "study": True,
    }
    if "target_epsilon" in terms:
        values["flip_probability"] = None
    graph = topology.neighbours("random_regular", len(features), degree=degree, seed=topology_seed or seed)
    return Study(
        terms=Terms(**{**values, **terms}),
        features=features,
        labels=_labels(features[:, 1], noise, len(terms.get("classes", "ab")))
        if labels is None
        else np.asarray(labels),
        neighbours=graph,
        seed=seed,
    )


def _labels(feature, noise, num_classes):
    if num_classes == 2:
        return ((feature > 0) ^ noise).astype(int)
    parts = np.searchsorted(np.quantile(feature, np.arange(1, num_classes) / num_classes), feature)
    return (parts + noise) % num_classes


@pytest.fixture(scope="session")
def study_of():
    """``make_study``."""
    return make_study


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A data directory with tiny sets in place of MNIST and CIFAR-10; MNIST's files are in it."""
    tiny_images.install(monkeypatch)
    monkeypatch.delenv("P2P_LABELDP_DATA", raising=False)
    directory = tmp_path / "data"
    tiny_images.write(directory)
    return directory
