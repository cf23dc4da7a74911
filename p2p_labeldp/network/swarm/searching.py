"""Many scenarios, and a failing one shrunk to the faults that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec

from p2p_labeldp.auditing import invariants
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.swarm import scenario
from p2p_labeldp.network.swarm.faults import AnyFault
from p2p_labeldp.network.swarm.scenario import Scenario, Verdict


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario in which an invariant broke. ``kept`` are the places, among its faults, of those it needs."""

    seed: int
    broken: list[str]
    trace_hash: str
    kept: list[int]
    faults: tuple[AnyFault, ...]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What came of many scenarios."""

    first_seed: int
    preset: str
    scenarios: int
    messages: int
    reports: int
    outcomes: dict[str, int]
    mates_drawn: int
    mate_p_value: float
    failures: list[Failure]

    @property
    def failed(self) -> bool:
        """Whether an invariant broke, in one scenario or over all."""
        return bool(self.failures) or self.mate_p_value < invariants.MATE_FAILURE


def only(drawn: Scenario, places: Iterable[int]) -> Scenario:
    """The scenario with no faults but those at ``places``.

    Raises:
        ConfigurationError: It has no such fault.
    """
    kept = sorted(set(places))
    if kept and not 0 <= kept[0] <= kept[-1] < len(drawn.faults):
        raise ConfigurationError(f"{kept} given; the scenario has {len(drawn.faults)} faults", field="--only")
    return replace(drawn, faults=tuple(drawn.faults[i] for i in kept))


def shrink(drawn: Scenario) -> list[int]:
    """Drops faults one by one while an invariant stays broken, until each of those left is needed; their places."""
    kept = list(range(len(drawn.faults)))
    shrunk = True
    while shrunk:
        shrunk = False
        for place in list(kept):
            fewer = [one for one in kept if one != place]
            if scenario.play(only(drawn, fewer)).broken:
                kept, shrunk = fewer, True
    return kept


def search(
    first_seed: int,
    preset: str,
    count: int,
    *,
    enough: int = 10,
    watch: Callable[[Verdict], None] = lambda _: None,
) -> Summary:
    """Plays the scenarios of ``count`` seeds in a row.

    Args:
        first_seed: Of the first.
        preset: Which faults they draw.
        count: How many.
        enough: Failing scenarios after which the search stops.
        watch: Is told of each.
    """
    outcomes: dict[str, int] = {}
    shifts: dict[int, dict[int, int]] = {}
    failures: list[Failure] = []
    messages = reports = played = 0
    for seed in range(first_seed, first_seed + count):
        drawn = scenario.draw(seed, preset)
        verdict = scenario.play(drawn)
        watch(verdict)
        played += 1
        messages += verdict.messages
        reports += verdict.reports
        for outcome, times in verdict.outcomes.items():
            outcomes[outcome] = outcomes.get(outcome, 0) + times
        for size, shift in verdict.shifts:
            counts = shifts.setdefault(size, {})
            counts[shift] = counts.get(shift, 0) + 1
        if verdict.broken:
            failures.append(failure(drawn, verdict))
            if len(failures) >= enough:
                break
    return Summary(
        first_seed=first_seed,
        preset=preset,
        scenarios=played,
        messages=messages,
        reports=reports,
        outcomes=dict(sorted(outcomes.items())),
        mates_drawn=sum(sum(counts.values()) for counts in shifts.values()),
        mate_p_value=invariants.mate_p_value(shifts),
        failures=failures,
    )


def failure(drawn: Scenario, verdict: Verdict) -> Failure:
    """A failing scenario, shrunk."""
    kept = shrink(drawn)
    return Failure(
        seed=drawn.seed,
        broken=verdict.broken,
        trace_hash=verdict.trace_hash,
        kept=kept,
        faults=tuple(drawn.faults[i] for i in kept),
    )
