"""``simulate``: a hostile world replayed from its seed; or many, searched for one that breaks an invariant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.network.swarm.scenario import Verdict
    from p2p_labeldp.network.swarm.searching import Failure, Summary

HELP = """Play rounds of 5 to 15 peers in which things go wrong, and check what must hold whatever does.

All of it comes from the seed: the same one gives the same trace hash in any process. Each scenario is one seed; a
failing one is shrunk to the faults it needs, and the line that replays it is printed. Exit status 1 if an invariant
broke.

--faults is one of none, network, partitions, crashes, stops, byzantine, learner, any.

Examples:

\b
    p2p-labeldp simulate --seed 285 --faults any
    p2p-labeldp simulate --seed 0 --faults crashes --scenarios 300
    p2p-labeldp simulate --seed 285 --faults any --only 0,2   # two of its faults
"""

MAX_SCENARIOS = 10**6
BROKEN = 1


def command(
    seed: Annotated[int, typer.Option(metavar="N", help="Of the first scenario: 0 to 2^64 - 1.")] = 0,
    faults: Annotated[str, typer.Option(metavar="PRESET", help="Which faults a seed draws.")] = "any",
    scenarios: Annotated[int, typer.Option(metavar="COUNT", help="Seeds in a row, 1 to 10^6.")] = 1,
    only: Annotated[
        str | None, typer.Option(metavar="I,J", help="Of one scenario: play these of its faults alone; '' for none.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """See ``HELP``."""
    if not 1 <= scenarios <= MAX_SCENARIOS:
        raise ConfigurationError(f"{scenarios} given; 1 to {MAX_SCENARIOS} are possible", field="--scenarios")
    from p2p_labeldp.network.swarm import presets
    from p2p_labeldp.randomness import MAX_SEED

    if not 0 <= seed <= MAX_SEED + 1 - scenarios:
        raise ConfigurationError(f"{seed} given; 0 to 2^64 - 1 are possible", field="--seed")
    if faults not in presets.NAMES:
        raise ConfigurationError(f"{faults!r} given; one of {', '.join(presets.NAMES)} is allowed", field="--faults")
    if scenarios > 1 and only is not None:
        raise ConfigurationError("given with --scenarios; it picks among the faults of one", field="--only")
    return _one(seed, faults, only, as_json) if scenarios == 1 else _many(seed, faults, scenarios, as_json)


def _one(seed: int, faults: str, only: str | None, as_json: bool) -> int:
    import msgspec

    from p2p_labeldp.network.swarm import scenario, searching

    drawn = scenario.draw(seed, faults)
    if only is not None:
        drawn = searching.only(drawn, _places(only))
    verdict = scenario.play(drawn)
    failure = searching.failure(drawn, verdict) if verdict.broken else None
    if as_json:
        record = {**msgspec.to_builtins(verdict), "preset": faults, "shrunk": msgspec.to_builtins(failure)}
        del record["shifts"]
        typer.echo(msgspec.json.encode(record).decode())
    else:
        for line in _told(verdict, failure):
            typer.echo(line)
    return BROKEN if verdict.broken else 0


def _places(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigurationError(f"{text!r} given; numbers with commas between are needed", field="--only") from None


def _told(verdict: Verdict, failure: Failure | None) -> list[str]:
    lines = [
        f"seed        {verdict.seed}: {verdict.peers} peers in {verdict.clusters} clusters",
        f"trace       {verdict.trace_hash}",
        f"messages    {verdict.messages:,}",
        *(f"fault {i:<5} {fault}" for i, fault in enumerate(verdict.faults)),
        *(f"outcome     {count} {outcome}" for outcome, count in verdict.outcomes.items()),
        *(f"BROKEN      {line}" for line in verdict.broken),
    ]
    if failure is None:
        return [*lines, "every invariant holds"]
    return [*lines, f"needed      faults {', '.join(map(str, failure.kept)) or 'none'} of these"]


def _many(seed: int, faults: str, scenarios: int, as_json: bool) -> int:
    import msgspec

    from p2p_labeldp.network.swarm import searching

    found = searching.search(seed, faults, scenarios)
    if as_json:
        typer.echo(msgspec.json.encode({**msgspec.to_builtins(found), "failed": found.failed}).decode())
    else:
        for line in _summary(found):
            typer.echo(line)
    return BROKEN if found.failed else 0


def _summary(found: Summary) -> list[str]:
    lines = [
        f"scenarios   {found.scenarios:,} from seed {found.first_seed}, faults {found.preset}",
        f"messages    {found.messages:,}",
        f"mates       {found.mates_drawn:,} drawn; uniform: p = {found.mate_p_value:.3g}",
        *(f"outcome     {count:,} {outcome}" for outcome, count in found.outcomes.items()),
    ]
    for failure in found.failures:
        kept = ",".join(map(str, failure.kept))
        lines += [f"BROKEN      seed {failure.seed}: {line}" for line in failure.broken]
        lines.append(f"replay      p2p-labeldp simulate --seed {failure.seed} --faults {found.preset} --only '{kept}'")
    return lines if found.failed else [*lines, "every invariant holds"]
