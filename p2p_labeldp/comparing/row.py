"""What a comparison found: a row a mechanism."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from p2p_labeldp.comparing.interval import CONFIDENCE

READS = (
    "this comparison reads the true labels, of every row and many times over: do it only with data you may look at, and"
    " publish neither these accuracies nor what you chose by them as if they were private"
)
"""What has to be said of every comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One mechanism.

    Args:
        key: For a machine.
        name: For a person.
        accuracy: Mean over the trials, of a model trained on what is released, on held-out rows.
        low: Where the accuracy's interval begins.
        high: Where it ends.
        accuracies: Of each trial.
        epsilon: Upper bound, in the worst cluster of the worst trial; infinite without privacy.
        delta: Where ``epsilon`` holds.
        neighbours: Tables that ``epsilon`` is about.
        against: Whom it holds against.
        local_epsilon: Against everyone but oneself; infinite where somebody is shown the true labels.
        trusted: With the true labels.
        releases: What leaves.
        guarantee: All this in words.
    """

    key: str
    name: str
    accuracy: float
    low: float
    high: float
    accuracies: tuple[float, ...]
    epsilon: float
    delta: float
    neighbours: str
    against: str
    local_epsilon: float
    trusted: str
    releases: str
    guarantee: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All of them.

    Args:
        rows: Those with a guarantee, Algorithm 2 first; then those without.
        epsilon: What was asked of each.
        trained_on: Rows that a trial trains on.
        held_out: Rows that measure it.
        classes: Names of the labels.
        cluster_sizes: The least and the largest cluster of all trials.
        trials: How many.
        seed: Of the first of them; None took coins from the operating system.
        model: What is trained on released labels.
    """

    rows: tuple[Compared, ...]
    epsilon: float
    trained_on: int
    held_out: int
    classes: tuple[str, ...]
    cluster_sizes: tuple[int, int]
    trials: int
    seed: int | None
    model: str


def plain(found: Comparison) -> dict[str, Any]:
    """Values for JSON; infinities are still floats."""
    return {"warning": READS, "confidence": CONFIDENCE, **asdict(found)}
