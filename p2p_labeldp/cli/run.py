"""``run``: one experiment, from configuration, or somebody's table, to result."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from p2p_labeldp.cli import owndata, subject
from p2p_labeldp.cli.dashboard import DashboardPlace, check_watchable, dashboard_at, say
from p2p_labeldp.errors import ConfigurationError, naming

HELP = """Play one round and train on what it reports.

Every peer holds one example of the data set. By default each is an operating system process of its own; the other
engines play the same round, with the same seed to the same reports, in memory or as arrays.

The configuration is a name (see `p2p-labeldp configs`) or a path to a TOML file. In its place --csv takes a table of
your own: a text file with a header line, a row a person, --label naming the column to protect. A number of clusters is
suggested from the features alone, and coins come from the operating system: with --seed, whoever knows the seed knows
every flip, and nothing is protected from them.

Examples:

\b
    p2p-labeldp run breast-cancer
    p2p-labeldp run breast-cancer --dashboard
    p2p-labeldp run digits --engine population --seed 7 --json
    p2p-labeldp run --set mechanism.target_epsilon=0.5 --set data.peers=200 --out runs/half
    p2p-labeldp run digits --engine population --set mechanism.kind=cluster_rr
    p2p-labeldp run --csv patients.csv --label diagnosis --epsilon 1 --suggest
    p2p-labeldp run --csv patients.csv --label diagnosis --epsilon 1 --out runs/patients
"""


def command(
    configuration: subject.Configuration = None,
    csv: subject.Csv = None,
    label: subject.Label = None,
    classes: subject.Classes = None,
    leave_out: subject.LeaveOut = None,
    keep: subject.Keep = None,
    separator: subject.Separator = None,
    decimal: subject.Decimal = None,
    encoding: subject.Encoding = None,
    clusters: subject.Clusters = None,
    epsilon: subject.Epsilon = None,
    suggest: Annotated[bool, typer.Option("--suggest", help="Say the suggested clusters and noise, and stop.")] = False,
    engine: Annotated[
        str, typer.Option(metavar="processes|virtual|population", help="Who plays the round.")
    ] = "processes",
    seed: subject.Seed = None,
    overrides: subject.Overrides = None,
    data_dir: subject.DataDir = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Keep result, facts and reports in a new or empty directory."),
    ] = None,
    dashboard: DashboardPlace = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    if suggest and csv is None:
        raise ConfigurationError("--csv FILE is needed with it", field="--suggest")
    about = subject.asked(
        configuration,
        csv=csv,
        label=label,
        classes=classes,
        leave_out=leave_out,
        keep=keep,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        clusters=clusters,
        epsilon=epsilon,
        seed=seed,
        overrides=overrides,
    )
    chosen, seed = about.config, about.seed

    from p2p_labeldp import experiment, results
    from p2p_labeldp.cli import progress
    from p2p_labeldp.reports import table

    with naming(about.options):
        experiment.check_engine(engine)
        check_watchable(dashboard, engine)
        if about.own:
            chosen, found = owndata.chosen_clusters(chosen, seed=seed, fixed=about.fixed, say=not quiet)
            noise = owndata.planned(chosen)
            if suggest:
                typer.echo(owndata.to_json(found, noise=noise) if as_json else owndata.sentence(found, noise=noise))
                return
            if not quiet and not about.fixed:
                typer.echo(f"note: {owndata.sentence(found, noise=noise)}", err=True)
        with results.claimed(out) if out is not None else nullcontext() as directory:
            kind = "private" if seed is None else "study"
            with (
                dashboard_at(dashboard, title=about.title, kind=kind, say=say) as page,
                nullcontext(None) if quiet else progress.watching(sys.stderr) as watcher,
            ):
                both = progress.Several(watcher, page)
                done = experiment.run(chosen, engine=engine, seed=seed, progress=both, data_directory=data_dir)
                if page is not None:
                    page.finished(done.result)
            if directory is not None:
                experiment.keep(done, directory)
    if as_json:
        if done.result.study:  # the object has no place for it; the table says it itself
            typer.echo(f"{table.STUDY} (whoever knows seed {seed} knows every flip)", err=True)
        typer.echo(results.to_json(done.result))
    else:
        table.show(done.result, title=f"{about.title} on the {engine} engine", file=sys.stdout)
    if not quiet and not as_json and seed is None:
        owndata.say_yardsticks(done)
