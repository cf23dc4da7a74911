"""Who learns what: one ``Guarantee`` per view, for every report and table.

- ``learner``: the learner alone, at delta (1/s^2 unless given).
- ``learner+t``: with t mates that follow the protocol and keep query logs. At 1/s^2 it is nearly the local value,
because a
  mate asks the victim with probability t/s; unless a delta is given it is stated where it means something, at
  delta = p (1-f) + 1/s^2, p = 1 - (1-1/s)^t.
- ``learner+all``: everyone, or one mate that asks everybody: the local value, at delta 0.
- ``mates``: nothing, by encryption; what the learner publishes is bounded by the coalition's.

Clusters are disjoint, and a label is in one of them: several clusters cost the worst of them, not the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from p2p_labeldp.accounting import coalition, composition, multiclass, resampling, shuffle
from p2p_labeldp.accounting.coalition import Coalition
from p2p_labeldp.accounting.guarantee import Guarantee
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.accounting.planning import RosterPlan, roster_delta, roster_epsilon, roster_fits
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_flip
from p2p_labeldp.errors import ConfigurationError, UnsupportedComposition
from p2p_labeldp.mechanisms.randomized_response import local_epsilon

RESAMPLE, PERMUTE = "resample", "permute"
LOCAL_METHOD = "local: randomized response"
MATES_METHOD = "encryption: boxes only the learner opens"


def views(
    *,
    cluster_size: int,
    flip_probability: float,
    delta: float | None = None,
    colluders: Sequence[int] = (1,),
    exchange: str = RESAMPLE,
    num_classes: int = 2,
    reports: int | None = None,
    rounds: int = 1,
    fresh: bool = False,
) -> list[Guarantee]:
    """The guarantee of every view, in the order of the module.

    Args:
        cluster_size: s.
        flip_probability: f.
        delta: For all views; if not given, 1/s^2 for the learner and the meaningful one for coalitions.
        colluders: Sizes t of coalitions to state; those that s does not have are left out.
        exchange: ``resample``, or ``permute`` (a trusted shuffler).
        num_classes: K.
        reports: r of each round; s if not given.
        rounds: R.
        fresh: Whether each round flips afresh.

    Raises:
        ConfigurationError: An argument out of range.
        ClusterTooSmall: s = 1 without a delta.
        UnsupportedComposition: A combination that is not accounted: an error, never a guess.
    """
    size = check_count(cluster_size, "cluster_size")
    f = check_flip(flip_probability, num_classes)
    if exchange not in (RESAMPLE, PERMUTE):
        raise ConfigurationError(f"{exchange} given; {RESAMPLE} or {PERMUTE} is possible", field="exchange")
    count = check_count(rounds, "rounds")
    at = roster_delta(size) if delta is None else check_delta(delta)
    local = local_epsilon(f, num_classes) * (count if fresh else 1)
    release = _Release(size, f, exchange, num_classes, reports, count, fresh and count > 1)
    stated = [release.learner(at)]
    for mates in sorted(set(colluders)):
        if 0 < check_count(mates, "colluders", least=0) < size:
            stated.append(release.coalition(mates, at if delta is not None else None))
    stated.append(Guarantee(view="learner+all", epsilon=local, delta=0.0, method=LOCAL_METHOD))
    stated.append(Guarantee(view="mates", epsilon=0.0, delta=0.0, method=MATES_METHOD))
    return stated


def roster_views(
    *, plan: RosterPlan, target_epsilon: float | None = None, colluders: Sequence[int] = (1,)
) -> list[Guarantee]:
    """The views of a planned roster, which hold whoever of it fails to answer.

    Args:
        plan: What the learner signed.
        target_epsilon: Stated for the learner if the roster holds it at 1/s^2, which is sooner told than the least eps.
        colluders: Sizes of coalitions to state, each at the delta where it means something.
    """
    size, holding, f, classes = plan.size, plan.holding_minimum, plan.flip_probability, plan.num_classes
    if target_epsilon is not None and roster_fits(size, holding, f, target_epsilon, plan.delta, num_classes=classes):
        alone = target_epsilon
    else:
        alone = roster_epsilon(size, holding, f, plan.delta, num_classes=classes)
    stated = [Guarantee(view="learner", epsilon=alone, delta=plan.delta, method=roster_method(plan))]
    for mates in sorted(set(colluders)):
        if 0 < check_count(mates, "colluders", least=0) < size:
            hit = 1 - (1 - 1 / size) ** mates
            at = min(hit * (1 - f) + plan.delta, math.nextafter(1.0, 0.0))
            found = roster_epsilon(size, holding, f, at, mates, num_classes=classes)
            stated.append(
                Guarantee(view=f"learner+{mates}", epsilon=found, delta=at, method="bound: coalition in the roster")
            )
    local = local_epsilon(f, classes)
    stated.append(Guarantee(view="learner+all", epsilon=local, delta=0.0, method=LOCAL_METHOD))
    stated.append(Guarantee(view="mates", epsilon=0.0, delta=0.0, method=MATES_METHOD))
    return stated


def roster_method(plan: RosterPlan) -> str:
    """How a roster's epsilon against the learner alone is known."""
    kind = "exact: resampling" if plan.num_classes == 2 else f"certified bound: resampling, {plan.num_classes} classes"
    return f"{kind}, {plan.holding_minimum} or more of {plan.size} holding an answer"


def worst_of_clusters(guarantees: Iterable[Guarantee]) -> Guarantee:
    """One view over disjoint clusters: the largest eps and the largest delta hold for everyone."""
    stated = list(guarantees)
    if len({guarantee.view for guarantee in stated}) != 1:
        raise ConfigurationError("guarantees of one view, and at least one, are needed", field="guarantees")
    return Guarantee(
        view=stated[0].view,
        epsilon=max(guarantee.epsilon for guarantee in stated),
        delta=max(guarantee.delta for guarantee in stated),
        method=f"worst of {len(stated)} disjoint clusters",
    )


class _Release:
    """What is released of one cluster."""

    def __init__(
        self, size: int, flip: float, exchange: str, num_classes: int, reports: int | None, rounds: int, fresh: bool
    ) -> None:
        self.size, self.flip, self.exchange, self.num_classes = size, flip, exchange, num_classes
        self.rounds, self.fresh = rounds, fresh
        each = size if reports is None else check_count(reports, "reports")
        self.reports = each if fresh else each * rounds  # memoised flips: one long round
        self.each = each
        if exchange == PERMUTE and (fresh or each != size):
            raise UnsupportedComposition("a permutation is accounted for one round of s reports from s members")
        if fresh and num_classes > 2:
            raise UnsupportedComposition("fresh rounds are accounted for two classes")

    def learner(self, delta: float) -> Guarantee:
        if self.exchange == PERMUTE:
            if self.num_classes > 2:
                classes = Classes(cluster_size=self.size, num_classes=self.num_classes, flip_probability=self.flip)
                local = local_epsilon(self.flip, self.num_classes)
                epsilon = min(local, multiclass.shuffled(classes).epsilon(delta))
            else:
                epsilon = shuffle.epsilon(cluster_size=self.size, flip_probability=self.flip, delta=delta)
            return Guarantee(view="learner", epsilon=epsilon, delta=delta, method="exact: permutation")
        if self.num_classes > 2:
            classes = Classes(
                cluster_size=self.size,
                num_classes=self.num_classes,
                flip_probability=self.flip,
                reports=self.reports,
            )
            return Guarantee(
                view="learner",
                epsilon=multiclass.epsilon(classes, delta),
                delta=delta,
                method=f"certified bound: resampling, {self.num_classes} classes",
            )
        if self.fresh:
            epsilon = composition.fresh_rounds_epsilon(
                cluster_size=self.size,
                flip_probability=self.flip,
                rounds=self.rounds,
                delta=delta,
                reports=self.each,
            )
            return Guarantee(
                view="learner", epsilon=epsilon, delta=delta, method=f"composition: {self.rounds} fresh rounds"
            )
        epsilon = resampling.epsilon(
            cluster_size=self.size, flip_probability=self.flip, delta=delta, reports=self.reports
        )
        return Guarantee(view="learner", epsilon=epsilon, delta=delta, method="exact: resampling")

    def coalition(self, mates: int, delta: float | None) -> Guarantee:
        if self.fresh or self.each != self.size:
            raise UnsupportedComposition("coalitions are accounted for rounds of s reports and one set of flips")
        view = f"learner+{mates}"
        if self.exchange == PERMUTE:  # mates know their own flips; the shuffler hides the rest
            rest = _Release(self.size - mates, self.flip, PERMUTE, self.num_classes, None, 1, False)
            at = roster_delta(self.size) if delta is None else delta
            found = rest.learner(at)
            return Guarantee(view=view, epsilon=found.epsilon, delta=at, method=found.method)
        group = Coalition(
            cluster_size=self.size,
            colluders=mates,
            flip_probability=self.flip,
            rounds=self.rounds,
            num_classes=self.num_classes,
        )
        if delta is None:
            at = min(group.hit * (1 - self.flip) + roster_delta(self.size), math.nextafter(1.0, 0.0))
        else:
            at = delta
        method = "exact: coalition with query logs" if coalition.is_exact(group) else "bound: coalition with query logs"
        return Guarantee(view=view, epsilon=coalition.epsilon(group, at), delta=at, method=method)
