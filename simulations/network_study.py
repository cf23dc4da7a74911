"""The studies of networks, run: all curves of a plan, measured; the table, the picture and what held."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace

from frame import Study
from kept_curves import once
from network_picture import draw
from network_rounds import EPSILONS, HONEST, NOT_PRIVATE, REDUCED, Curve, Data, Plan, one_thread, played
from network_table import Claims, Row, failures, header

FOLDERS = {
    "data-dir": "folder of the data set's files",
    "parts": "folder that keeps each curve when it is done, and where those of an earlier run are found",
}
QUICK = "4 rounds of cohorts of 4 at eps1 = 500; only the count is claimed"


def curves(plan: Plan) -> list[Curve]:
    """All that are run."""
    moments = [(REDUCED, epsilon) for epsilon in plan.levels] + [(HONEST, epsilon) for epsilon in plan.honest]
    return [
        Curve(noise=NOT_PRIVATE, epsilon=math.inf, mode="clipped", rounds=plan.rounds),
        *(Curve(noise=noise, epsilon=epsilon, mode="moments", rounds=plan.rounds) for noise, epsilon in moments),
        Curve(noise=REDUCED, epsilon=max(plan.levels), mode="exact", rounds=plan.every),
    ]


def quick(plan: Plan) -> Plan:
    """Enough to see that it runs."""
    return replace(plan, rounds=4, cohort=4.0, every=2, levels=EPSILONS[-1:], honest=EPSILONS[-1:])


def train(plan: Plan, curve: Curve, data: Data) -> Iterator[Row]:
    """Plays a curve and measures it on held-out rows."""
    for at in played(plan, curve, data):
        seen = plan.network.predict(at.parameters, plan.seen(data.test)) == data.test_labels
        yield Row(
            noise=curve.noise,
            epsilon_direction=curve.epsilon,
            mode=curve.mode,
            round=at.round,
            accuracy=round(float(seen.mean()), 4),
            tested=len(seen),
            sigma=at.sigma,
            honest_sigma=at.honest_sigma,
            central_epsilon=at.central_epsilon,
            central_delta=plan.target[1],
            rate=at.rate,
            reports=at.reports,
            refused=at.refused,
            cpu_seconds=at.cpu_seconds,
            parameters=plan.network.dimension,
            population=plan.population,
            expected_cohort=plan.cohort,
            images=plan.images,
            data="verified" if data.verified else "unverified",
        )


def play(plan: Plan, chosen: Iterable[Curve], data: Data, study: Study) -> list[Row]:
    """All curves; those that an earlier run kept are read."""
    one_thread()
    rows: list[Row] = []
    for curve in chosen:
        rows += once(study, curve.name, Row, lambda curve=curve: _told(curve, train(plan, curve, data)))
    return rows


def _told(curve: Curve, rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        print(f"{curve.name:<30} round {row.round:>4}  {row.accuracy:.4f}  {row.cpu_seconds:7.1f} s", flush=True)
        yield row


def run(study: Study, plan: Plan, data: Data, *, claims: Claims, title: str) -> int:
    """Plays all curves, writes table and figure; gives the exit code."""
    if study.quick:
        plan = quick(plan)
    rows = play(plan, curves(plan), data, study)
    study.write_table((asdict(row) for row in rows), header=header(rows, plan))
    draw(rows, study, plan, title)
    found = list(failures(rows, plan, claims))
    if study.quick:
        found = [line for line in found if "parameters" in line]
    return study.verdict(found, held="the count is right" if study.quick else "all claims hold")
