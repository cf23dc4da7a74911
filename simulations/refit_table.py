"""The table of ``refit_pretrained.py``: its rows, by curve, and how much of the gain a curve gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import p2p_labeldp
from network_rounds import MODES, NOT_PRIVATE, SEED
from refit_tasks import ALPHA, FROM_ZEROS, PLAN, WORDS, WRONG

LEVELS, EIGHTH = (4.0, 16.0, 64.0), 8
"""eps1, and d/8 beside them."""
MIDDLE, SWEPT = 16.0, 64.0
"""eps1 of the curves beside the others, and of cohorts."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measurement: the model after ``round`` rounds on held-out rows, and what was guaranteed for all rounds."""

    task: str
    noise: str
    epsilon_direction: float
    mode: str
    expected_cohort: float
    round: int
    accuracy: float
    loss: float
    tested: int
    sigma: float
    honest_sigma: float
    central_epsilon: float
    central_delta: float
    local_epsilon: float
    most_reports: int
    local_epsilon_of_all: float
    log_prior: float
    log_success_one: float
    log_success_all: float
    rate: float
    reports: int
    cpu_seconds: float
    parameters: int
    population: int
    rows: int
    data: str
    seed: int = SEED
    version: str = p2p_labeldp.__version__


def levels(parameters: int) -> tuple[float, ...]:
    """All eps1 of a task of so many parameters."""
    return (*LEVELS, parameters / EIGHTH)


def of(
    rows: Sequence[Row], task: str, noise: str, epsilon: float, *, cohort: float | None = None, mode: str | None = None
) -> list[Row]:
    """A curve, in the order of rounds; of the largest cohort unless another is asked for."""
    mode = mode or ("clipped" if noise == NOT_PRIVATE else "moments")
    found = [
        row for row in rows if (row.task, row.noise, row.epsilon_direction, row.mode) == (task, noise, epsilon, mode)
    ]
    wanted = cohort or max((row.expected_cohort for row in found), default=0.0)
    return sorted((row for row in found if row.expected_cohort == wanted), key=lambda row: row.round)


def cohorts(rows: Sequence[Row], task: str) -> list[float]:
    """Expected ones of a task, small ones first."""
    return sorted({row.expected_cohort for row in rows if row.task == task})


def share(rows: Sequence[Row], curve: Sequence[Row]) -> float:
    """How much of what refitting without privacy gains a curve gains: in accuracy for images, in loss for words."""
    plain = of(rows, curve[0].task, NOT_PRIVATE, math.inf)

    def worth(row: Row) -> float:
        return -row.loss if row.task in (WORDS, FROM_ZEROS) else row.accuracy

    start = worth(plain[0])
    return (worth(curve[-1]) - start) / (worth(plain[-1]) - start)


def header(rows: Sequence[Row], said: Sequence[str]) -> list[str]:
    """What stands above the table."""
    lines = [
        MODES,
        f"central_epsilon is that of sigma at central_delta; the honest sigma is for ({PLAN.target[0]:g},"
        f" {PLAN.target[1]:g})",
        "local_epsilon is of one report, against the learner; most_reports is what no client exceeds but with"
        " probability 1e-6; local_epsilon_of_all is theirs together",
        "log_prior: natural log of the best chance to reconstruct a client's data before any report, a uniform prior;"
        " log_success_one, log_success_all: of its bound after one report and after most_reports",
        f"reconstructed is, of images, features to within {ALPHA:g} in direction; of words, all but {WRONG}",
        "loss is in nats",
        *said,
    ]
    if any(row.data == "unverified" for row in rows):
        lines.append("unverified: the data files are not the published ones")
    return lines
