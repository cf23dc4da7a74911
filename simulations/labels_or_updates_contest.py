"""What the table of labels_or_updates.py shows: who is best in each cell at each level, and what of the claim fails."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import p2p_labeldp
from labels_or_updates_people import SEED

MATES, OWN, UPDATES, TRUSTED, NONE = (
    "labels, mates",
    "labels, own flip",
    "updates",
    "updates, trusted learner",
    "no privacy",
)
METHODS = (MATES, OWN, UPDATES, TRUSTED, NONE)
CONTENDERS = (MATES, OWN, UPDATES)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
MARGIN = 0.01
"""Differences of accuracy that are called one."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A pipeline at one level: means over trials, half-widths of 95 % intervals, paired differences."""

    world: str
    people: int
    dimension: int
    epsilon: float
    method: str
    plan: str
    delta: float
    epsilon_with_mates: float
    accuracy: float
    half_width: float
    over_updates: float
    over_updates_half: float
    over_own: float
    over_own_half: float
    best_possible: float
    trials: int
    seed: int = SEED
    version: str = p2p_labeldp.__version__


def of(table: Sequence[Row], method: str, world: tuple[str, int, int]) -> list[Row]:
    """The rows of a curve, small levels first."""
    return [row for row in table if row.method == method and (row.world, row.people, row.dimension) == world]


def cells_of(table: Sequence[Row]) -> list[tuple[str, int, int]]:
    """World, people and dimension of each cell, in the table's order."""
    return list(dict.fromkeys((row.world, row.people, row.dimension) for row in table))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Who is best at a level in a cell, among the three that promise the same of a label against the learner.

    Args:
        mates, own, updates: The rows.
    """

    mates: Row
    own: Row
    updates: Row

    @property
    def best(self) -> str:
        """Of highest mean accuracy."""
        return max((self.mates, self.own, self.updates), key=lambda row: row.accuracy).method

    @property
    def certain(self) -> bool:
        """Whether the best is ahead of both others, each by more than the half-width of the difference's interval."""
        pairs = {
            (MATES, OWN): (self.mates.over_own, self.mates.over_own_half),
            (MATES, UPDATES): (self.mates.over_updates, self.mates.over_updates_half),
            (OWN, UPDATES): (self.own.over_updates, self.own.over_updates_half),
        }
        return all(
            ahead(difference if self.best == first else -difference, half)
            for (first, second), (difference, half) in pairs.items()
            if self.best in (first, second)
        )


def contests(table: Sequence[Row], cell: tuple[str, int, int]) -> list[Contest]:
    """One for each level of a cell."""
    rows = (of(table, method, cell) for method in CONTENDERS)
    return [Contest(mates=mates, own=own, updates=updates) for mates, own, updates in zip(*rows, strict=True)]


def title(cell: tuple[str, int, int]) -> str:
    """A cell's name."""
    world, people, dimension = cell
    return f"{'' if world == 'synthetic' else world + ', '}n = {people:,}, d = {dimension}"


def ahead(difference: float, half: float, margin: float = 0.0) -> bool:
    """Whether a paired difference is certainly above a margin."""
    return difference - half > margin


def within(table: Sequence[Row], cell: tuple[str, int, int], distance: float) -> float:
    """Least level from which on *updates* are at most ``distance`` behind *labels, own flip*; inf if at none."""
    from_here = math.inf
    for contest in reversed(contests(table, cell)):
        if contest.own.over_updates > distance:
            break
        from_here = contest.own.epsilon
    return from_here


def failures(table: Sequence[Row], *, quick: bool = False) -> Iterator[str]:
    """What of the claim does not hold."""
    mates_win, updates_pass, own_pass = 0, 0, 0
    for cell in cells_of(table):
        for contest in contests(table, cell):
            where = f"{title(cell)}, eps {contest.own.epsilon:g}"
            mates, own, updates = contest.mates, contest.own, contest.updates
            if ahead(-own.over_updates, own.over_updates_half, MARGIN):
                yield f"{where}: own flips are {-own.over_updates:.3f} behind updates"
            if mates.epsilon <= 1 and ahead(-mates.over_updates, mates.over_updates_half, MARGIN):
                yield f"{where}: mates are {-mates.over_updates:.3f} behind updates"
            if mates.epsilon >= 4 and ahead(mates.over_own, mates.over_own_half, MARGIN):
                yield f"{where}: mates are {mates.over_own:.3f} ahead of own flips"
            if contest.best == UPDATES and contest.certain:
                yield f"{where}: updates are the best of three"
            mates_win += mates.epsilon <= 0.5 and ahead(mates.over_own, mates.over_own_half, MARGIN)
            own_pass += own.epsilon >= 4 and ahead(-mates.over_own, mates.over_own_half, MARGIN)
            updates_pass += updates.epsilon >= 8 and ahead(-mates.over_updates, mates.over_updates_half, MARGIN)
    if not mates_win and not quick:
        yield "mates are nowhere ahead of own flips at eps .5 or less"
    if not own_pass:
        yield "own flips are nowhere ahead of mates at eps 4 or more"
    if not updates_pass:
        yield "updates are nowhere ahead of mates at eps 8 or more"


def summary(table: Sequence[Row]) -> Iterator[str]:
    """Who is best, cell by cell, and what it takes updates to keep up."""
    for cell in cells_of(table):
        of_levels = (
            f"{contest.own.epsilon:g} {contest.best.removeprefix('labels, ')}{'' if contest.certain else '?'}"
            for contest in contests(table, cell)
        )
        yield f"best of three, {title(cell)}: {', '.join(of_levels)}"
    for cell in cells_of(table):
        yield f"updates within .02 of own flips, {title(cell)}: from eps {within(table, cell, 0.02):g} on"
