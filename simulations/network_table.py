"""The table of a study of a network: its rows, and what a study claims of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import p2p_labeldp
from network_rounds import EPSILONS, HONEST, MAGNITUDE_EPSILON, MODES, NOT_PRIVATE, REDUCED, SEED, Plan


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measurement: the model after ``round`` rounds on the held-out images."""

    noise: str
    epsilon_direction: float
    mode: str
    round: int
    accuracy: float
    tested: int
    sigma: float
    honest_sigma: float
    central_epsilon: float
    central_delta: float
    rate: float
    reports: int
    refused: int
    cpu_seconds: float
    parameters: int
    population: int
    expected_cohort: float
    images: int
    data: str
    seed: int = SEED
    version: str = p2p_labeldp.__version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a study claims of its rows; accuracies are those after the last round.

    Args:
        parameters: Of the network.
        not_private: Least accuracy without privacy.
        least: Least accuracy at the smallest eps1 with the reduced sigma.
        most: Least accuracy at the largest one.
        slack: By how much accuracy may fall from one eps1 to the next: one seed is one draw.
        honest: Largest accuracy with the honest sigma, in all rounds.
        exact: Largest difference between exact reports and moments, in all rounds both have.
    """

    parameters: int
    not_private: float
    least: float
    most: float
    slack: float
    honest: float
    exact: float


def of_curve(rows: Iterable[Row], noise: str, epsilon: float, mode: str | None = None) -> dict[int, float]:
    """Accuracy by round."""
    wanted = mode or ("clipped" if noise == NOT_PRIVATE else "moments")
    return {
        row.round: row.accuracy
        for row in rows
        if (row.noise, row.epsilon_direction, row.mode) == (noise, epsilon, wanted)
    }


def failures(rows: Sequence[Row], plan: Plan, claims: Claims) -> Iterator[str]:
    """What of the claims the rows contradict."""
    if wrong := {row.parameters for row in rows} - {claims.parameters}:
        yield f"a network of {wrong} parameters, {claims.parameters} are claimed"
    plain = of_curve(rows, NOT_PRIVATE, math.inf).get(plan.rounds, 0.0)
    if not plain >= claims.not_private:
        yield f"without privacy accuracy ends at {plain}, {claims.not_private} is claimed"
    last = [of_curve(rows, REDUCED, epsilon).get(plan.rounds, 0.0) for epsilon in EPSILONS]
    for (low, high), (before, after) in zip(pairwise(EPSILONS), pairwise(last), strict=True):
        if not after >= before - claims.slack:
            yield f"accuracy falls from {before} at eps1 = {low:g} to {after} at {high:g}"
    for epsilon, accuracy, least in ((EPSILONS[0], last[0], claims.least), (EPSILONS[-1], last[-1], claims.most)):
        if not accuracy >= least:
            yield f"with the reduced sigma at eps1 = {epsilon:g} accuracy ends at {accuracy}, {least} is claimed"
    honest = [row for row in rows if row.noise == HONEST]
    for epsilon in plan.honest:
        accuracies = of_curve(rows, HONEST, epsilon)
        if plan.rounds not in accuracies or not max(accuracies.values()) <= claims.honest:
            yield f"with the honest sigma at eps1 = {epsilon:g} accuracy is not below {claims.honest} all the way"
    if any(row.central_epsilon > plan.target[0] for row in honest):
        yield f"the honest sigma does not meet epsilon {plan.target[0]}"
    exact = of_curve(rows, REDUCED, max(EPSILONS), "exact")
    if not exact:
        yield "no round with every report drawn"
    for number, drawn in exact.items():
        beside = of_curve(rows, REDUCED, max(EPSILONS)).get(number, math.nan)
        if not abs(drawn - beside) <= claims.exact:
            yield f"round {number}: {drawn} with every report drawn, {beside} by moments"


def header(rows: Sequence[Row], plan: Plan) -> list[str]:
    """What stands above the table."""
    lines = [
        MODES,
        f"reports are {MAGNITUDE_EPSILON:g} more than epsilon_direction private each, against the learner",
        f"the honest sigma is for central ({plan.target[0]:g}, {plan.target[1]:g}); central_epsilon is that of sigma",
    ]
    if any(row.data == "unverified" for row in rows):
        lines.append("unverified: the data files are not the published ones")
    return lines
