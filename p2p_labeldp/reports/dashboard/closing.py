"""What stays on the dashboard when a round is over: how it ended, and what is promised."""

from __future__ import annotations

import math
from typing import Any

from p2p_labeldp.reports.table import HELD_OUT, SCOPE, STUDY, UNVERIFIED, VIEWS, digits_up, places_up
from p2p_labeldp.results import Result, ViewResult


def closing_of(result: Result) -> dict[str, Any]:
    """The last words; numbers as the terminal prints them, bounds rounded up.

    ``guarantee`` is a list of (who, epsilon, delta), ``remarks`` what has to stand beside it.
    """
    remarks = []
    if result.study:
        remarks.append(f"{STUDY}: whoever knows seed {result.seed} knows every flip")
    if not result.complete:
        remarks.append("the round was ended before its time")
    if result.unverified:
        remarks.append(UNVERIFIED)
    if not result.views:
        remarks.append("no cluster got a roster: nothing was released, and there is no guarantee to state")
    if not result.study and result.accuracy.private is not None:
        remarks.append(HELD_OUT)
    return {
        "outcomes": result.outcomes,
        "guarantee": [_row(view) for view in result.views],
        "remarks": [*remarks, SCOPE],
        "accuracy": None if result.accuracy.private is None else f"{result.accuracy.private:.3f}",
        "seconds": result.seconds.get("total"),
    }


def _row(view: ViewResult) -> tuple[str, str, str]:
    delta = "0" if view.delta == 0 else digits_up(view.delta)
    epsilon = "no limit" if math.isinf(view.epsilon) else places_up(view.epsilon)
    return VIEWS.get(view.view, view.view), epsilon, delta
