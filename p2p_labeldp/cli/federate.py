"""``federate``: rounds of private updates, from configuration to accuracy and three ledgers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Annotated

import typer

from p2p_labeldp.cli import subject
from p2p_labeldp.errors import naming
from p2p_labeldp.facts import Averaged, Fact

if TYPE_CHECKING:
    from p2p_labeldp.federated.result import FederatedResult

HELP = """Train a model in rounds of private updates, and say what they promise.

Every peer holds one example. In each round its own coin decides whether it takes part; then it computes an update of
the model, privatises direction and magnitude, and sends it sealed. The learner shrinks, adds up, divides by the
expected cohort, adds Gaussian noise and steps. By default each peer is an operating system process of its own; the
other engines play the same rounds, with the same seed to the same model, in memory or as arrays.

In the end stand the accuracy and three ledgers: central (what the models tell of a peer), local (what the learner can
tell, who sees the reports) and reconstruction (how well anybody can guess a peer's update). The section `updates` of a
configuration says how (see p2p_labeldp/config/updates.py); a configuration without it is played with the defaults.

Examples:

\b
    p2p-labeldp federate
    p2p-labeldp federate updates --engine population --json
    p2p-labeldp federate digits --engine virtual --set data.peers=200 --set updates.central_epsilon=8
    p2p-labeldp federate --engine population --set updates.sigma=0.05
"""

DEFAULT = "updates"
SECONDS_BETWEEN_LINES = 5.0
STUDY = "study: no privacy for these examples"


def command(
    configuration: Annotated[
        str | None, typer.Argument(metavar="[NAME|PATH]", help=f"What to run. Default: {DEFAULT}.", show_default=False)
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="processes|virtual|population", help="Who plays the rounds.")
    ] = "processes",
    seed: Annotated[int, typer.Option(metavar="N", help="Of all coins: 0 to 2^64 - 1.")] = 0,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.KEY=VALUE", help="Replace a value of the configuration; may be repeated."
        ),
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option("--data-dir", metavar="DIR", help="Files of image sets; see `p2p-labeldp data`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp import config

    chosen = config.load(configuration or DEFAULT, overrides or [])  # complains before anything slow is imported

    from p2p_labeldp.federated import experiment, result

    with naming(subject.OF_ROUNDS):
        prepared = experiment.prepare(chosen, engine=engine, seed=seed, data_directory=data_dir)
    for warning in prepared.warnings:
        typer.echo(f"warning: {warning}", err=True)
    planned = prepared.planned
    if not quiet:
        typer.echo(
            f"{planned.population} peers, {planned.rounds} rounds of about {planned.expected_cohort:.3g} each, on the"
            f" {engine} engine",
            err=True,
        )
    with nullcontext(_ignore) if quiet else watching(sys.stderr, rounds=planned.rounds) as on_fact:
        played = experiment.play(prepared, on_fact=on_fact)
    done = experiment.conclude(prepared, played)
    if as_json:
        typer.echo(f"{STUDY} (whoever knows seed {seed} knows every update)", err=True)
        typer.echo(result.to_json(done))
    else:
        for line in told(done, title=f"{configuration or DEFAULT} on the {engine} engine"):
            typer.echo(line)


def _ignore(_fact: Fact) -> None:
    """Nobody watches."""


@contextmanager
def watching(file: IO[str], *, rounds: int) -> Iterator[Callable[[Fact], None]]:
    """Tells of rounds as they end: on a terminal in one line that changes, elsewhere now and then in another."""
    if file.isatty():
        from rich.console import Console
        from rich.text import Text

        with Console(file=file, highlight=False).status("peers are starting") as status:

            def update(fact: Fact) -> None:
                if isinstance(fact, Averaged):
                    status.update(Text(_round(fact, rounds)))

            yield update
        return
    last = time.monotonic()

    def write(fact: Fact) -> None:
        nonlocal last
        if isinstance(fact, Averaged) and time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            file.write(_round(fact, rounds) + "\n")
            file.flush()

    yield write


def _round(fact: Averaged, rounds: int) -> str:
    return f"round {fact.round + 1} of {rounds}: {fact.answers} peers answered"


def told(done: FederatedResult, *, title: str) -> list[str]:
    """The result for a reader: the model, then the three ledgers. What a bound promises is rounded up."""
    from p2p_labeldp.reports.answers import small
    from p2p_labeldp.reports.table import digits_up, places_up

    accuracy, central, local, guess = done.accuracy, done.central, done.local, done.reconstruction
    noise = f"sigma {central.sigma:.4g}"
    if central.reduced:
        noise += f", reduced: epsilon {central.target_epsilon:g} takes {central.honest_sigma:.4g}"
    budget = "no budget" if local.budget is None else f"budget {local.budget:g}"
    messages = "" if done.messages is None else f", {done.messages:,} messages"
    size = "" if done.bytes is None else f", {done.bytes / 1e6:,.1f} MB"
    unfinished = "" if done.complete else ", ended early"
    rows = {
        "peers": f"{done.peers}, {sum(done.cohorts) / max(1, done.rounds):.1f} in a round",
        "model": f"{done.model}, {done.dimension} parameters, {done.rounds} rounds{unfinished}",
        "accuracy": f"private {accuracy.private:.3f}, non-private {accuracy.non_private:.3f},"
        f" majority {accuracy.majority:.3f}",
        "took": f"{done.seconds:.1f} s{messages}{size}",
        "central": f"epsilon {places_up(central.epsilon)} at delta {small(central.delta)}, against whoever sees the"
        f" models ({central.method}; {noise})",
        "local": f"epsilon {places_up(local.epsilon)}, against the learner: at most {local.participations} reports of"
        f" a peer at {local.epsilon_report:g} ({budget})",
        "reconstruction": f"at most {digits_up(guess.success)}, of a peer's direction to within"
        f" {guess.breach_distance:g}; {digits_up(guess.prior)} before",
        "digest": done.parameters_digest[:16],
    }
    return [
        title,
        f"{STUDY} (whoever knows seed {done.seed} knows every update)",
        "",
        *(f"{name:<16}{text}" for name, text in rows.items()),
    ]
