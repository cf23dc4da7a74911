"""What a reader of a result has to be warned of. Each caution is due by one condition, stated in ``due``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from p2p_labeldp.reports.table import digits_up, places_up
from p2p_labeldp.reports.words import one_in
from p2p_labeldp.results import Result, ViewResult

SMALL_CLUSTER = 20
"""Members below which delta = 1/s^2 is above one in 400."""
LARGE_EPSILON = 3.0
"""Above it one observation may shift odds more than twentyfold, e^3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """One warning.

    Args:
        code: For a machine.
        text: For a person.
    """

    code: str
    text: str


def due(result: Result) -> list[Caution]:
    """The cautions of one result, the gravest first."""
    return list(_due(result))


def _due(result: Result) -> Iterator[Caution]:
    views = {view.view: view for view in result.views}
    learner, everyone = views.get("learner"), views.get("learner+all")
    if result.study:
        yield Caution(
            code="study",
            text=f"This was a study with a known seed ({result.seed}). Whoever knows the seed can undo every random"
            " change, so these labels have no privacy at all. The numbers below tell what the same procedure promises"
            " when it is run without a seed.",
        )
    if learner is None:
        yield Caution(code="no-guarantee", text="No cluster took part, so there is no guarantee to state.")
    elif math.isinf(learner.epsilon):
        yield Caution(code="no-privacy", text="Nothing is promised against the learner: the labels were not changed.")
    elif learner.epsilon > LARGE_EPSILON:
        yield Caution(
            code="large-epsilon",
            text=f"Epsilon against the learner is {places_up(learner.epsilon)}, above {LARGE_EPSILON:g}: a weak"
            " protection.",
        )
    if learner is not None and result.peers and learner.delta >= 1 / result.peers:
        yield Caution(
            code="delta",
            text=f"Delta is {digits_up(learner.delta)} ({one_in(learner.delta)}), not below one in the"
            f" {result.peers:,} participants. A delta of that size would by itself allow a procedure that gives away"
            " somebody's label outright. This procedure does not do that, but the number alone does not rule it out."
            " Larger clusters make delta smaller.",
        )
    small = [cluster for cluster in result.clusters if cluster.size < SMALL_CLUSTER and cluster.delta > 0]
    if small:
        least = min(cluster.size for cluster in small)
        yield Caution(
            code="small-clusters",
            text=f"{_count(len(small), 'cluster has', 'clusters have')} fewer than {SMALL_CLUSTER} members (the least"
            f" {least}). People in small clusters have few others to hide among.",
        )
    weaker = [view for view in result.views if _weaker(view, learner)]
    if weaker:
        yield Caution(
            code="coalitions",
            text="The guarantee against the learner alone does not hold if other participants, or somebody who watches"
            " the network, work with the learner. Read the lines for them, too.",
        )
    if everyone is not None and LARGE_EPSILON < everyone.epsilon < math.inf:
        yield Caution(
            code="large-local",
            text=f"Against the learner with everyone else epsilon is {places_up(everyone.epsilon)}, above"
            f" {LARGE_EPSILON:g}: in that case little protection is left.",
        )
    if "curator" in views:
        yield Caution(code="curator", text="One party sees all true labels and has to be trusted with them.")
    if not result.complete:
        yield Caution(
            code="incomplete", text="The round was ended before its time; reports that came later are missing."
        )
    if result.unverified:
        yield Caution(code="unverified", text="The data are not the published data set of that name.")


def _weaker(view: ViewResult, learner: ViewResult | None) -> bool:
    if learner is None or not view.view.startswith("learner+"):
        return False
    return view.epsilon > learner.epsilon or view.delta > learner.delta


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
