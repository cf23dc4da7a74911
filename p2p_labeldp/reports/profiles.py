"""The numbers behind the curves of a page: delta of the worst cluster as a function of epsilon, and epsilon as one of
the cluster's size. Asked of the accountant, not estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from p2p_labeldp.accounting import multiclass, planning, resampling, shuffle
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.mechanisms.randomized_response import local_epsilon
from p2p_labeldp.reports.kept_run import RESAMPLING, KeptRun
from p2p_labeldp.results import ClusterResult

POINTS = 25
ROSTER_SIZE = 100
"""Members up to which the roster's whole curve is drawn, 20 ms a point; beyond, that of a round without losses."""
ROSTER_LOSSES = 5
"""Members that may fail, up to which the same holds; with many the curve takes minutes."""
CLASS_ROSTER_SIZE = 400
"""The same for more than two classes, whose bound is sooner found: 50 ms a point."""
MOST_SIZE, MOST_CLASS_SIZE = 5000, 1000
"""Members up to which epsilon is drawn over sizes, for two classes and for more, half a second a point."""
CLASS_POINTS = 10
"""Of that curve for more than two classes."""

Curve = list[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Of the worst cluster.

    Args:
        cluster: Which one: the largest epsilon, then the largest delta.
        learner: (epsilon, delta) against the learner alone; empty where only the point is known.
        local: The same against the learner with everyone; empty if that is infinite.
        losses: Whether ``learner`` covers members that fail to answer.
        bound: Whether ``learner`` is a certified bound where the exact law is not known: with more than two classes.
    """

    cluster: ClusterResult
    learner: Curve
    local: Curve
    losses: bool
    bound: bool


def worst(clusters: Sequence[ClusterResult]) -> ClusterResult:
    """The cluster with the weakest guarantee."""
    return max(clusters, key=lambda cluster: (cluster.epsilon, cluster.delta))


def classes_of(cluster: ClusterResult) -> int:
    """K, from f and ln((1 - f)(K - 1)/f)."""
    f = cluster.flip_probability
    if f is None or not 0 < f < 1 or math.isinf(cluster.local_epsilon):
        return 2
    return 1 + round(math.exp(cluster.local_epsilon) * f / (1 - f))


def pure(epsilon: float, at: float) -> float:
    """The most delta that (epsilon, 0)-privacy leaves at ``at``: that of randomized response with two labels, which
    dominates every such mechanism (Kairouz, Oh and Viswanath, arXiv 1311.0776)."""
    return max(0.0, (math.exp(epsilon) - math.exp(at)) / (1 + math.exp(epsilon))) if epsilon < 700 else 1.0


def profile(run: KeptRun) -> Profile:
    """delta(epsilon) of the run's worst cluster. The run has at least one cluster."""
    cluster = worst(run.result.clusters)
    finite = [value for value in (cluster.epsilon, cluster.local_epsilon) if math.isfinite(value)]
    most = max(finite, default=1.0)
    grid = sorted({*(most * step / (POINTS - 1) for step in range(POINTS)), *finite})
    local = [] if math.isinf(cluster.local_epsilon) else [(at, _local(run, cluster, at)) for at in grid]
    found, losses = _delta(run, cluster)
    return Profile(
        cluster=cluster,
        learner=[] if found is None else [(at, found(at)) for at in grid],
        local=local,
        losses=losses,
        bound=_exchanged(run) and classes_of(cluster) > 2,
    )


def by_size(run: KeptRun) -> Curve:
    """Epsilon at 1/s^2 of a round without losses over sizes around the run's, at the flip of its worst cluster; empty
    where it does not depend on the size."""
    cluster = worst(run.result.clusters)
    f, num_classes = cluster.flip_probability, classes_of(cluster)
    if f is None or f == 0 or not _exchanged(run):
        return []
    sizes = [one.size for one in run.result.clusters]
    most, points = (MOST_SIZE, POINTS) if num_classes == 2 else (MOST_CLASS_SIZE, CLASS_POINTS)
    low, high = max(2, min(sizes) // 3), min(most, 3 * max(sizes))
    if low >= high:
        return []
    wanted = sorted({round(low * (high / low) ** (step / (points - 1))) for step in range(points)})
    return [(s, _epsilon_without_losses(run, s, f, num_classes)) for s in wanted]


def _epsilon_without_losses(run: KeptRun, s: int, f: float, num_classes: int) -> float:
    delta = planning.roster_delta(s)
    if num_classes == 2:
        law = shuffle.epsilon if run.mechanism == "permute" else resampling.epsilon
        return law(cluster_size=s, flip_probability=f, delta=delta)
    if run.mechanism == "permute":
        classes = Classes(cluster_size=s, num_classes=num_classes, flip_probability=f)
        return min(multiclass.shuffled(classes).epsilon(delta), local_epsilon(f, num_classes))
    return planning.roster_epsilon(s, s, f, delta, num_classes=num_classes)


def _exchanged(run: KeptRun) -> bool:
    """Whether labels changed hands; else who looks does not matter."""
    return run.mechanism in (RESAMPLING, "permute")


def _local(run: KeptRun, cluster: ClusterResult, at: float) -> float:
    f = cluster.flip_probability
    if f is None or not _exchanged(run):
        return pure(cluster.local_epsilon, at)
    return Classes(cluster_size=cluster.size, num_classes=classes_of(cluster), flip_probability=f).local_delta(at)


def _delta(run: KeptRun, cluster: ClusterResult) -> tuple[Callable[[float], float] | None, bool]:
    """delta as a function of epsilon against the learner alone, and whether it covers losses."""
    f, s, num_classes = cluster.flip_probability, cluster.size, classes_of(cluster)
    if not _exchanged(run):
        return (None if math.isinf(cluster.epsilon) else lambda at: pure(cluster.epsilon, at)), False
    if f is None or f == 0:
        return None, False
    classes = Classes(cluster_size=s, num_classes=num_classes, flip_probability=f)
    if run.mechanism == "permute":
        if num_classes > 2:
            law = multiclass.shuffled(classes)
            return (lambda at: min(law.delta(at), classes.local_delta(at))), False
        return (lambda at: shuffle.profile(cluster_size=s, flip_probability=f, epsilons=[at])[0].delta), False
    holding = run.happened.holding.get(cluster.id)
    if holding is None:
        holding = planning.holding_minimum(s, float(run.config["mechanism"]["tolerated_loss"]))
    few = s <= ROSTER_SIZE and s - holding <= ROSTER_LOSSES if num_classes == 2 else s <= CLASS_ROSTER_SIZE
    if few:
        return (lambda at: planning.roster_profile(s, holding, f, at, num_classes=num_classes)), True
    if num_classes > 2:
        bound = multiclass.resampled_bound(classes)
        return (lambda at: min(bound.delta(at), classes.local_delta(at))), False
    return (lambda at: resampling.profile(cluster_size=s, flip_probability=f, epsilons=[at])[0].delta), False
