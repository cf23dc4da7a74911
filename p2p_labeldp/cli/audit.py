"""``audit``: what an attacker measures on the engine that plays studies."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from p2p_labeldp.cli.answers import answer, refusing
from p2p_labeldp.errors import ConfigurationError

HELP = """Play many rounds of one cluster; bound epsilon from below, and check that what ran has the law it claims.

The rounds are those of the population engine, half of them with nobody holding a one, half with one member. Delta is
1/s^2 unless given. A verdict of `fail` is a result: the exit status is 0.

Example:

\b
    p2p-labeldp audit --cluster-size 10 --flip 0.1 --trials 100000
"""

MAX_TRIALS = 10**8
MAX_CLUSTER_SIZE = 20_000
"""The laws an audit compares with take time and memory in the square of it."""
SECONDS_BETWEEN_LINES = 5.0


def command(
    cluster_size: Annotated[int, typer.Option(metavar="S", help="Members, 1 to 20,000.")],
    flip: Annotated[float, typer.Option(metavar="F", help="Flip probability, 0 to 1/2.")],
    trials: Annotated[int, typer.Option(metavar="N", help="Rounds, 2 to 10^8.")],
    delta: Annotated[float | None, typer.Option(metavar="D", help="0 <= D < 1. Default: 1/s^2.")] = None,
    confidence: Annotated[float, typer.Option(metavar="C", help="Of the bound, between 0 and 1.")] = 0.99,
    seed: Annotated[int, typer.Option(metavar="N", help="Of all coins: 0 to 2^64 - 1.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    for option, value, least, most in (
        ("--cluster-size", cluster_size, 1, MAX_CLUSTER_SIZE),
        ("--trials", trials, 2, MAX_TRIALS),
    ):
        if not least <= value <= most:
            raise ConfigurationError(f"{value} given; {least} to {most} are possible", field=option)

    from p2p_labeldp.auditing.audit import audit
    from p2p_labeldp.engine_source import PopulationSource, unwatched
    from p2p_labeldp.mechanisms.randomized_response import check_flip_probability
    from p2p_labeldp.randomness import check_seed

    with refusing():
        source = PopulationSource(
            cluster_size=cluster_size,
            flip_probability=check_flip_probability(flip),
            seed=check_seed(seed),
            drawn=unwatched if quiet else _progress(trials),
        )
        found = audit(
            source.draw_ones,
            cluster_size=cluster_size,
            flip_probability=flip,
            trials=trials,
            draw_rounds=source.draw_rounds,
            delta=delta,
            confidence=confidence,
        ).record()
    record = {name: found[name] for name in ("epsilon_lower", "confidence", "delta", "conformance", "verdict")}
    if as_json:
        answer(record, as_json=True)
        return
    from p2p_labeldp.reports import answers

    answer(record, *answers.audited(record, failed=found["failed"], threshold=found["threshold"]), as_json=False)


def _progress(trials: int, clock: Callable[[], float] = time.monotonic) -> Callable[[int], None]:
    """Says on stderr how many rounds were played, now and then if it lasts."""
    done, said = 0, clock()

    def drawn(rounds: int) -> None:
        nonlocal done, said
        done += rounds
        if (now := clock()) - said >= SECONDS_BETWEEN_LINES:
            said = now
            print(f"{done:,} of {trials:,} rounds played", file=sys.stderr, flush=True)

    return drawn
