"""The numbers behind the curves of a page: delta of the worst cluster as a function of epsilon, and epsilon as one of
the cluster's size. Asked of the accountant, not estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from p2p_labeldp.accounting import planning, resampling, shuffle
from p2p_labeldp.reports.kept_run import RESAMPLING, KeptRun
from p2p_labeldp.results import ClusterResult

POINTS = 25
ROSTER_SIZE = 100
"""Members up to which the roster's whole curve is drawn, 20 ms a point; beyond, that of a round without losses."""
ROSTER_LOSSES = 5
"""Members that may fail, up to which the same holds; with many the curve takes minutes."""
MOST_SIZE = 5000

Curve = list[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Of the worst cluster.

    Args:
        cluster: Which one: the largest epsilon, then the largest delta.
        learner: (epsilon, delta) against the learner alone; empty where only the point is known.
        local: The same against the learner with everyone; empty if that is infinite.
        losses: Whether ``learner`` covers members that fail to answer.
    """

    cluster: ClusterResult
    learner: Curve
    local: Curve
    losses: bool


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
    local = [] if math.isinf(cluster.local_epsilon) else [(at, pure(cluster.local_epsilon, at)) for at in grid]
    delta, losses = _delta(run, cluster)
    learner = [] if delta is None else [(at, delta(at)) for at in grid]
    return Profile(cluster=cluster, learner=learner, local=local, losses=losses)


def by_size(run: KeptRun) -> Curve:
    """Epsilon at 1/s^2 of a round without losses over sizes around the run's, at the flip of its worst cluster; empty
    where it does not depend on the size."""
    cluster = worst(run.result.clusters)
    f = cluster.flip_probability
    if f is None or f == 0 or run.mechanism not in (RESAMPLING, "permute") or classes_of(cluster) != 2:
        return []
    sizes = [one.size for one in run.result.clusters]
    low, high = max(2, min(sizes) // 3), min(MOST_SIZE, 3 * max(sizes))
    wanted = sorted({round(low * (high / low) ** (step / (POINTS - 1))) for step in range(POINTS)})
    law = shuffle.epsilon if run.mechanism == "permute" else resampling.epsilon
    return [(s, law(cluster_size=s, flip_probability=f, delta=planning.roster_delta(s))) for s in wanted]


def _delta(run: KeptRun, cluster: ClusterResult) -> tuple[Callable[[float], float] | None, bool]:
    f, s = cluster.flip_probability, cluster.size
    if run.mechanism not in (RESAMPLING, "permute"):
        return (None if math.isinf(cluster.epsilon) else lambda at: pure(cluster.epsilon, at)), False
    if f is None or f == 0:
        return None, False
    if classes_of(cluster) > 2:  # a curve takes too long; the point that was promised is drawn
        return None, False
    if run.mechanism == "permute":
        return (lambda at: shuffle.profile(cluster_size=s, flip_probability=f, epsilons=[at])[0].delta), False
    holding = run.happened.holding.get(cluster.id)
    if holding is None:
        holding = planning.holding_minimum(s, float(run.config["mechanism"]["tolerated_loss"]))
    if s <= ROSTER_SIZE and s - holding <= ROSTER_LOSSES:
        return (lambda at: planning.roster_profile(s, holding, f, at)), True
    return (lambda at: resampling.profile(cluster_size=s, flip_probability=f, epsilons=[at])[0].delta), False
