"""What a round promises: the guarantee of each cluster, and, of the worst cluster, who learns how much.

Two exchanges. *Resampling* is promised for a roster some of whose members may fail to answer
(``accounting.planning``). A *permutation* is made by a trusted shuffler, who loses nobody: its flip is the given one,
or the least, found by bisection, whose exact shuffle epsilon at 1/s^2 is within the target, and ``tolerated_loss``
plays no part.

The coalition of a large roster takes long to account for (seconds at s = 200, half a minute at s = 1000), while a run
should end when its round does. So above ``SEARCHED_SIZE`` a few values are tried instead of searching, and above
``TRIED_SIZE`` the local value stands in, which holds against any coalition. Either way the method says ``bound``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from p2p_labeldp.accounting import multiclass, planning, shuffle
from p2p_labeldp.accounting.guarantee import Guarantee
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.accounting.planning import RosterPlan
from p2p_labeldp.accounting.views import (
    LOCAL_METHOD,
    MATES_METHOD,
    PERMUTE,
    roster_method,
    roster_views,
    views,
    worst_of_clusters,
)
from p2p_labeldp.config import Config
from p2p_labeldp.mechanisms import randomized_response
from p2p_labeldp.network.study import CollectedRoster
from p2p_labeldp.results import ClusterResult, ViewResult

SEARCHED_SIZE = 100
"""Members up to which a coalition's epsilon is searched for: a quarter of a second."""
TRIED_SIZE = 1000
"""Members up to which a few values of it are tried: a second or two each."""
TRIED = (1.0, 1.1, 1.5)
"""What is tried, in multiples of the epsilon against the learner alone."""


def of_clusters(rosters: Iterable[CollectedRoster], config: Config, num_classes: int) -> list[ClusterResult]:
    """The guarantee of each roster, worked out from its size, its holding minimum and its flip."""
    return [_of_cluster(roster, config, num_classes) for roster in rosters]


def of_views(
    rosters: Sequence[CollectedRoster], clusters: Sequence[ClusterResult], config: Config, num_classes: int
) -> list[ViewResult]:
    """What the learner alone, with one mate, with everyone, and mates alone can learn in the worst cluster.

    Args:
        rosters: Of the round; none give no views.
        clusters: Their guarantees, in the same order.
        config: Of the run.
        num_classes: K.
    """
    stated = [
        _views(roster, promised, config.exchange.kind, num_classes)
        for roster, promised in zip(rosters, clusters, strict=True)
    ]
    by_view: dict[str, list[Guarantee]] = {}
    for guarantee in (guarantee for cluster in stated for guarantee in cluster):
        by_view.setdefault(guarantee.view, []).append(guarantee)
    return [_worst(guarantees) for guarantees in by_view.values()]


@lru_cache(maxsize=1024)
def plan_permutation(size: int, target_epsilon: float, num_classes: int = 2) -> RosterPlan:
    """The least flip, to five significant digits, whose permutation holds (target_epsilon, 1/s^2), by bisection.

    Raises:
        ClusterTooSmall: A cluster of one.
    """
    delta = planning.roster_delta(size)
    room = delta * (1 - planning.MARGIN)

    def holds(flip: float) -> bool:
        if num_classes > 2:
            classes = Classes(cluster_size=size, num_classes=num_classes, flip_probability=flip)
            return min(multiclass.shuffled(classes).delta(target_epsilon), classes.local_delta(target_epsilon)) <= room
        [loss] = shuffle.profile(cluster_size=size, flip_probability=flip, epsilons=[target_epsilon])
        return loss.delta <= room

    flip = planning.least_flip(holds, num_classes)
    while _shuffled(size, flip, delta, num_classes) > target_epsilon:  # rounding of eps itself; a step or two
        flip = planning.next_flip(flip, num_classes)
    return RosterPlan(size=size, delta=delta, holding_minimum=size, flip_probability=flip, num_classes=num_classes)


def plan_for_permutation(
    size: int, target_epsilon: float | None, flip_probability: float | None, num_classes: int = 2
) -> RosterPlan:
    """With the flip that is given, or else planned."""
    if flip_probability is None:
        assert target_epsilon is not None  # a configuration has one of the two
        return plan_permutation(size, target_epsilon, num_classes)
    return RosterPlan(
        size=size,
        delta=planning.roster_delta(size),
        holding_minimum=size,
        flip_probability=flip_probability,
        num_classes=num_classes,
    )


def _of_cluster(roster: CollectedRoster, config: Config, num_classes: int) -> ClusterResult:
    f, target = roster.flip_probability, config.mechanism.target_epsilon
    if config.exchange.kind == PERMUTE:
        epsilon = _shuffled(roster.size, f, roster.delta, num_classes)
    else:
        epsilon = _resampled(roster.size, roster.holding_minimum, f, roster.delta, target, num_classes)
    return ClusterResult(
        id=roster.cluster,
        size=roster.size,
        flip_probability=f,
        epsilon=epsilon,
        delta=roster.delta,
        local_epsilon=randomized_response.local_epsilon(f, num_classes),
    )


@lru_cache(maxsize=1024)
def _shuffled(size: int, flip_probability: float, delta: float, num_classes: int) -> float:
    if num_classes > 2:
        classes = Classes(cluster_size=size, num_classes=num_classes, flip_probability=flip_probability)
        local = randomized_response.local_epsilon(flip_probability, num_classes)
        return min(local, multiclass.shuffled(classes).epsilon(delta))
    return shuffle.epsilon(cluster_size=size, flip_probability=flip_probability, delta=delta)


@lru_cache(maxsize=1024)
def _resampled(
    size: int, holding_minimum: int, flip_probability: float, delta: float, target: float | None, num_classes: int
) -> float:
    """The roster's epsilon: the target it was planned for, if it holds. The least epsilon is within the digits of the
    flip below it, and to search for that takes twenty times as long."""
    roster = (size, holding_minimum, flip_probability)
    if target is not None and planning.roster_fits(*roster, target, delta, num_classes=num_classes):
        return target
    return planning.roster_epsilon(*roster, delta, num_classes=num_classes)


def _views(roster: CollectedRoster, promised: ClusterResult, exchange: str, num_classes: int) -> list[Guarantee]:
    if exchange == PERMUTE:
        return _permuted_views(roster.size, roster.flip_probability, num_classes)
    plan = RosterPlan(
        size=roster.size,
        delta=planning.roster_delta(roster.size),
        holding_minimum=roster.holding_minimum,
        flip_probability=roster.flip_probability,
        num_classes=num_classes,
    )
    return _roster_views(plan, promised.epsilon)


@lru_cache(maxsize=1024)
def _permuted_views(size: int, flip_probability: float, num_classes: int) -> list[Guarantee]:
    return views(cluster_size=size, flip_probability=flip_probability, exchange=PERMUTE, num_classes=num_classes)


@lru_cache(maxsize=1024)
def _roster_views(plan: RosterPlan, epsilon: float) -> list[Guarantee]:
    """``accounting.views.roster_views``, but for coalitions of rosters too large for it."""
    known = None if epsilon in (0.0, math.inf) else epsilon  # what was worked out for the cluster need not be again
    if plan.size <= SEARCHED_SIZE:
        return roster_views(plan=plan, target_epsilon=known)
    local = randomized_response.local_epsilon(plan.flip_probability, plan.num_classes)
    alone = Guarantee(view="learner", epsilon=epsilon, delta=plan.delta, method=roster_method(plan))
    everyone = Guarantee(view="learner+all", epsilon=local, delta=0.0, method=LOCAL_METHOD)
    mates = Guarantee(view="mates", epsilon=0.0, delta=0.0, method=MATES_METHOD)
    return [alone, _with_one_mate(plan, epsilon, local), everyone, mates]


def _with_one_mate(plan: RosterPlan, alone: float, local: float) -> Guarantee:
    """At the delta of ``accounting.views``: where the mate asks the victim, plus 1/s^2."""
    if plan.size <= TRIED_SIZE and math.isfinite(local):
        delta = (1 - plan.flip_probability) / plan.size + plan.delta
        roster = (plan.size, plan.holding_minimum, plan.flip_probability)
        for epsilon in (factor * alone for factor in TRIED):
            if epsilon < local and planning.roster_fits(*roster, epsilon, delta, 1, num_classes=plan.num_classes):
                return Guarantee(
                    view="learner+1",
                    epsilon=epsilon,
                    delta=delta,
                    method="bound: coalition in the roster, not searched",
                )
    return Guarantee(view="learner+1", epsilon=local, delta=0.0, method="bound: the local value")


def _worst(guarantees: list[Guarantee]) -> ViewResult:
    """One view over all clusters; the method is that of the cluster with the largest epsilon."""
    worst = worst_of_clusters(guarantees)
    method = max(guarantees, key=lambda guarantee: guarantee.epsilon).method
    return ViewResult(
        view=worst.view,
        epsilon=worst.epsilon,
        delta=worst.delta,
        method=method if len(guarantees) == 1 else f"{method}; {worst.method}",
    )
