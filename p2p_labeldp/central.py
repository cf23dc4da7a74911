"""Mechanisms that a run plays in one place instead of among peers: which a configuration means, and what it promises.

``mechanism.kind`` = ``uniform_rr`` (each label randomized alone), ``cluster_rr`` (a curator redraws labels from noisy
distributions of clusters) or ``none``. All are pure: delta is 0 and, apart from the curator, who looks does not matter,
since each bound holds against someone who knows every other label.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.config import Config
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Ended, Fact, Outcome
from p2p_labeldp.learning.corrected_loss import soft_targets
from p2p_labeldp.mechanisms.cluster_rr import ClusterRR
from p2p_labeldp.mechanisms.no_privacy import NoPrivacy
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.mechanisms.uniform_rr import UniformRR
from p2p_labeldp.results import ClusterResult, ViewResult

RESAMPLING = "resampling"
"""The kind that is not played here: Algorithm 2, among peers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Play:
    """One release of all labels.

    Args:
        mechanism: What was done.
        clusters: Cluster of each peer, shape (n,).
        labels: Its noisy label, shape (n,).
        targets: Soft targets of the corrected loss, shape (n, K); None where the loss is the ordinary one.
    """

    mechanism: LabelMechanism
    clusters: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    targets: npt.NDArray[np.float64] | None

    def facts(self) -> Iterator[Fact]:
        """A report and an end for each peer; nobody asked anybody."""
        for peer, (cluster, label) in enumerate(zip(self.clusters.tolist(), self.labels.tolist(), strict=True)):
            yield Accepted(peer=peer, cluster=cluster, label=label)
            yield Ended(peer=peer, outcome=Outcome.REPORTED)


def mechanism_of(config: Config, num_classes: int) -> LabelMechanism:
    """What ``mechanism.kind`` means for K classes.

    Raises:
        ConfigurationError: A level or a floor that is impossible for so many classes.
    """
    chosen = config.mechanism
    if chosen.kind == "none":
        return NoPrivacy(num_classes=num_classes)
    assert chosen.target_epsilon is not None  # the configuration refuses a flip probability beside these kinds
    try:
        if chosen.kind == "uniform_rr":
            return UniformRR.calibrated(num_classes=num_classes, epsilon=chosen.target_epsilon)
        return ClusterRR.calibrated(
            num_classes=num_classes,
            epsilon=chosen.target_epsilon,
            floor=chosen.floor,
            noise_share=chosen.noise_share,
        )
    except ConfigurationError as exc:
        key = "target_epsilon" if exc.field == "epsilon" else exc.field
        raise ConfigurationError(str(exc).removeprefix(f"{exc.field}: "), field=f"mechanism.{key}") from exc


def play(
    mechanism: LabelMechanism,
    labels: npt.NDArray[np.integer[Any]],
    clusters: npt.NDArray[np.int64],
    *,
    seed: int | None,
) -> Play:
    """Releases all labels with the coins of a study, or the operating system's if it has no seed.

    Clusters are 0 .. max, none of them empty.
    """
    count = int(clusters.max()) + 1
    released = mechanism.release(labels, clusters, count=count, rng=randomness.curator(seed))
    targets = None
    if released.correction > 0:
        assert released.distributions is not None
        targets = soft_targets(
            released.labels,
            num_classes=mechanism.num_classes,
            distributions=released.distributions[clusters],
            correction=released.correction,
        )
    return Play(mechanism=mechanism, clusters=clusters, labels=released.labels, targets=targets)


def of_clusters(mechanism: LabelMechanism, sizes: Sequence[int]) -> list[ClusterResult]:
    """The guarantee of each cluster: everywhere the same."""
    return [
        ClusterResult(
            id=cluster,
            size=size,
            flip_probability=_flip(mechanism),
            epsilon=mechanism.epsilon,
            delta=0.0,
            local_epsilon=math.inf if mechanism.needs_curator else mechanism.epsilon,
        )
        for cluster, size in enumerate(sizes)
    ]


def of_views(mechanism: LabelMechanism) -> list[ViewResult]:
    """Who learns what."""
    method = "no mechanism"
    if isinstance(mechanism, UniformRR):
        method = "exact: randomized response"
    elif mechanism.needs_curator:
        method = "bound: noisy counts, then redrawn labels; the curator apart"
    views = [
        ViewResult(view=view, epsilon=mechanism.epsilon, delta=0.0, method=method)
        for view in ("learner", "learner+all")
    ]
    if mechanism.needs_curator:
        views.append(ViewResult(view="curator", epsilon=math.inf, delta=0.0, method="trusted: counts the true labels"))
    return views


def _flip(mechanism: LabelMechanism) -> float | None:
    """Probability that the label told is another, where it is one number."""
    if isinstance(mechanism, UniformRR):
        return mechanism.flip_probability
    return 0.0 if isinstance(mechanism, NoPrivacy) else None
