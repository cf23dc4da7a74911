"""``run``: one experiment, from configuration to result."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

HELP = """Play one round and train on what it reports.

Every peer holds one example of the data set. By default each is an operating system process of its own; the other
engines play the same round, with the same seed to the same reports, in memory or as arrays.

The configuration is a name (see `p2p-labeldp configs`) or a path to a TOML file.

Examples:

\b
    p2p-labeldp run breast-cancer
    p2p-labeldp run digits --engine population --seed 7 --json
    p2p-labeldp run --set mechanism.target_epsilon=0.5 --set data.peers=200 --out runs/half
    p2p-labeldp run digits --engine population --set mechanism.kind=cluster_rr
"""


def command(
    configuration: Annotated[
        str, typer.Argument(metavar="[NAME|PATH]", help="What to run.", show_default=True)
    ] = "breast-cancer",
    engine: Annotated[
        str, typer.Option(metavar="processes|virtual|population", help="Who plays the round.")
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
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Keep result, facts and reports in a new or empty directory."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp import config

    chosen = config.load(configuration, overrides or [])  # complains before anything slow is imported

    from p2p_labeldp import experiment, results
    from p2p_labeldp.cli import progress
    from p2p_labeldp.reports import table

    experiment.check_engine(engine)
    with results.claimed(out) if out is not None else nullcontext() as directory:
        with nullcontext(None) if quiet else progress.watching(sys.stderr) as watcher:
            done = experiment.run(chosen, engine=engine, seed=seed, progress=watcher, data_directory=data_dir)
        if directory is not None:
            directory.write(result=done.result, facts=done.facts, noisy=done.noisy, config=done.config)
    if as_json:
        if done.result.study:  # the object has no place for it; the table says it itself
            typer.echo(f"{table.STUDY} (whoever knows seed {seed} knows every flip)", err=True)
        typer.echo(results.to_json(done.result))
    else:
        table.show(done.result, title=f"{configuration} on the {engine} engine", file=sys.stdout)
