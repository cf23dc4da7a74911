"""``audit``: what an attacker measures on the engine that plays studies."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from p2p_labeldp.cli.answers import answer, refusing
from p2p_labeldp.errors import ConfigurationError

HELP = """Play many rounds of one cluster; bound epsilon from below, and check that what ran has the law it claims.

The rounds are those of the population engine, half of them with nobody holding a one, half with one member. Delta is
1/s^2 unless given. A verdict of `fail` is a result: the exit status is 0.

With --engine processes, or virtual, they are rounds of real peers, as many clusters at a time as make --peers; in a
third of the clusters everybody holds a one.

With --mechanism it is one of your own: an object with `classes` and `sample(labels, rng)`, both of shape (rounds,
members), or what makes one. It is held to the contract of all mechanisms; if it has a flip_probability it claims to be
resampling, and is audited as such; else it is audited without knowing its law, at its own delta.

Examples:

\b
    p2p-labeldp audit --cluster-size 10 --flip 0.1 --trials 100000
    p2p-labeldp audit --cluster-size 16 --flip 0.1 --trials 16 --engine processes --peers 128
    p2p-labeldp audit --cluster-size 16 --trials 100000 --mechanism mine.py:Mechanism
"""

MAX_TRIALS = 10**8
MAX_CLUSTER_SIZE = 20_000
"""The laws an audit compares with take time and memory in the square of it."""
ENGINES = ("population", "virtual", "processes")
SECONDS_BETWEEN_LINES = 5.0


def command(
    cluster_size: Annotated[int, typer.Option(metavar="S", help="Members, 1 to 20,000.")],
    trials: Annotated[int, typer.Option(metavar="N", help="Rounds of the cluster, 2 to 10^8.")],
    flip: Annotated[
        float | None, typer.Option(metavar="F", help="Flip probability, 0 to 1/2. Needed but with --mechanism.")
    ] = None,
    delta: Annotated[float | None, typer.Option(metavar="D", help="0 <= D < 1. Default: 1/s^2.")] = None,
    confidence: Annotated[float, typer.Option(metavar="C", help="Of the bound, between 0 and 1.")] = 0.99,
    seed: Annotated[int, typer.Option(metavar="N", help="Of all coins: 0 to 2^64 - 1.")] = 0,
    engine: Annotated[
        str, typer.Option(metavar="population|virtual|processes", help="Who plays the rounds.")
    ] = "population",
    peers: Annotated[int | None, typer.Option(metavar="N", help="Of a round of real peers. Default: 256.")] = None,
    mechanism: Annotated[
        str | None, typer.Option(metavar="FILE.py:NAME", help="Audit this one, or MODULE:NAME.")
    ] = None,
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
    if engine not in ENGINES:
        raise ConfigurationError(f"{engine!r} given; one of {', '.join(ENGINES)} is allowed", field="--engine")
    if mechanism is None and flip is None:
        raise ConfigurationError("missing; 0 to 0.5 is possible", field="--flip")
    if engine == "population" and peers is not None:
        raise ConfigurationError(f"{peers} given; only rounds of real peers have a number of them", field="--peers")
    if mechanism is not None and engine != "population":
        raise ConfigurationError(f"{engine!r} given; a mechanism of one's own runs by itself", field="--engine")

    from p2p_labeldp.randomness import check_seed

    asked = _Asked(cluster_size, trials, delta, confidence, seed)
    with refusing():
        check_seed(seed)
        if mechanism is not None:
            from p2p_labeldp.own_mechanism import blaming

            with blaming(mechanism):
                found = _of_mechanism(mechanism, asked, flip)
        elif engine == "population":
            found = _of_population(asked, flip, quiet)
        else:
            found = _of_peers(asked, flip, engine, peers, quiet)
    record = {name: found[name] for name in ("epsilon_lower", "confidence", "delta", "conformance", "verdict")}
    if "contract" in found:
        record["contract"] = found["contract"]
    if as_json:
        answer(record, as_json=True)
        return
    from p2p_labeldp.reports import answers

    answer(record, *answers.audited(record, failed=found["failed"], threshold=found["threshold"]), as_json=False)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of any audit."""

    cluster_size: int
    trials: int
    delta: float | None
    confidence: float
    seed: int


def _of_population(asked: _Asked, flip: float | None, quiet: bool) -> dict[str, Any]:
    from p2p_labeldp.auditing.audit import audit
    from p2p_labeldp.engine_source import PopulationSource, unwatched
    from p2p_labeldp.mechanisms.randomized_response import check_flip_probability

    assert flip is not None
    source = PopulationSource(
        cluster_size=asked.cluster_size,
        flip_probability=check_flip_probability(flip),
        seed=asked.seed,
        drawn=unwatched if quiet else _progress(asked.trials),
    )
    return audit(
        source.draw_ones,
        cluster_size=asked.cluster_size,
        flip_probability=flip,
        trials=asked.trials,
        draw_rounds=source.draw_rounds,
        delta=asked.delta,
        confidence=asked.confidence,
    ).record()


def _of_peers(asked: _Asked, flip: float | None, engine: str, peers: int | None, quiet: bool) -> dict[str, Any]:
    from p2p_labeldp.auditing.audit import audit_of_rounds, none_one_or_all
    from p2p_labeldp.mechanisms.randomized_response import check_flip_probability
    from p2p_labeldp.network_source import PEERS, NetworkSource, unwatched

    assert flip is not None

    def playing(number: int, of: int) -> None:
        print(f"round {number} of {of} begins", file=sys.stderr, flush=True)

    source = NetworkSource(
        engine=engine,
        cluster_size=asked.cluster_size,
        flip_probability=check_flip_probability(flip),
        seed=asked.seed,
        peers=PEERS if peers is None else peers,
        playing=unwatched if quiet else playing,
    )
    labels = none_one_or_all(source.whole_rounds(asked.trials), asked.cluster_size)
    return audit_of_rounds(
        source.draw_rounds(labels=labels), flip_probability=flip, delta=asked.delta, confidence=asked.confidence
    ).record()


def _of_mechanism(reference: str, asked: _Asked, flip: float | None) -> dict[str, Any]:
    """Held to the contract, and audited by what it claims to be."""
    import numpy as np

    from p2p_labeldp import own_mechanism
    from p2p_labeldp.auditing import contract
    from p2p_labeldp.auditing.audit import SHOWN_LABELS, audit
    from p2p_labeldp.auditing.conformance import SIGNIFICANCE
    from p2p_labeldp.auditing.mechanism import Source, measured_epsilon

    own = own_mechanism.load(reference, flip_probability=flip)
    claimed = getattr(own, "flip_probability", None)
    if flip is not None and claimed != flip:
        raise ConfigurationError(f"{flip} given, and {reference} has {claimed}", field="--flip")
    held = contract.check(
        own,
        cluster_size=asked.cluster_size,
        seed=asked.seed,
        trials=min(asked.trials, 100_000),
        rows=max(2, min(2_000, SHOWN_LABELS // asked.cluster_size)),
    )
    rng = np.random.default_rng([asked.seed, 6])
    found: dict[str, Any] = {"conformance": {}, "threshold": SIGNIFICANCE, "failed": [], "verdict": "pass"}
    if "outputs" in held.broken:  # nothing can be counted
        found |= {"epsilon_lower": 0.0, "confidence": asked.confidence, "delta": asked.delta or 0.0}
    elif own_mechanism.flips(own):
        source = Source(mechanism=own, cluster_size=asked.cluster_size, rng=rng)
        found |= audit(
            source.ones,
            cluster_size=asked.cluster_size,
            flip_probability=claimed,  # type: ignore[arg-type]  # a number: checked above that the mechanism flips
            trials=asked.trials,
            draw_rounds=source.rounds,
            delta=asked.delta,
            confidence=asked.confidence,
        ).record()
    else:
        bound = measured_epsilon(
            own,
            cluster_size=asked.cluster_size,
            trials=asked.trials,
            rng=rng,
            delta=getattr(own, "delta", 0.0) if asked.delta is None else asked.delta,
            confidence=asked.confidence,
        )
        found |= {name: getattr(bound, name) for name in ("epsilon_lower", "confidence", "delta")}
    if held.broken:
        found |= {"verdict": "fail", "failed": sorted({*found["failed"], *held.broken})}
    return {**found, "contract": held.clauses}


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
