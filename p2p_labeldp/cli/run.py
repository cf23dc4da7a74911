"""``run``: one experiment, from configuration, or somebody's table, to result."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from p2p_labeldp.cli.dashboard import DashboardPlace, check_watchable, dashboard_at, say
from p2p_labeldp.errors import ConfigurationError

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

DEFAULT = "breast-cancer"
OWN = ("label", "classes", "leave_out", "keep", "separator", "decimal", "encoding")


def command(
    configuration: Annotated[
        str | None, typer.Argument(metavar="[NAME|PATH]", help=f"What to run. Default: {DEFAULT}.", show_default=False)
    ] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="A table of your own, with a header line.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column whose values are protected.")] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B", help="Its classes. Default: those in the column.")
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that is no feature; may be repeated.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A feature though it looks like an identifier; may be repeated."),
    ] = None,
    separator: Annotated[str | None, typer.Option(metavar="C", help="Between fields. Default: found out.")] = None,
    decimal: Annotated[str | None, typer.Option(metavar=".|,", help="Decimal sign. Default: found out.")] = None,
    encoding: Annotated[str | None, typer.Option(metavar="NAME", help="Of the file. Default: found out.")] = None,
    clusters: Annotated[
        int | None, typer.Option(metavar="N", help="Clusters before merging. Default: as configured, or suggested.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(metavar="E", help="Target against the learner alone. Default: as configured, or 1.")
    ] = None,
    suggest: Annotated[bool, typer.Option("--suggest", help="Say the suggested clusters and noise, and stop.")] = False,
    engine: Annotated[
        str, typer.Option(metavar="processes|virtual|population", help="Who plays the round.")
    ] = "processes",
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of all coins: 0 to 2^64 - 1. Default: 0; with --csv none.", show_default=False),
    ] = None,
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
    dashboard: DashboardPlace = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp import config
    from p2p_labeldp.cli import owndata

    told = {
        "label": label,
        "classes": None if classes is None else [name.strip() for name in classes.split(",")],
        "leave_out": leave_out or None,
        "keep": keep or None,
        "separator": _separator(separator),
        "decimal": decimal,
        "encoding": encoding,
    }
    changes = list(overrides or [])
    if clusters is not None:
        changes.append(f"clusters.count={clusters}")
    if epsilon is not None:
        changes.append(f"mechanism.target_epsilon={epsilon}")
    if csv is None:
        given = next((name for name in OWN if told[name] is not None), "suggest" if suggest else None)
        if given is not None:
            raise ConfigurationError("--csv FILE is needed with it", field=f"--{given.replace('_', '-')}")
        chosen = config.load(configuration or DEFAULT, changes)  # complains before anything slow is imported
        seed = 0 if seed is None and chosen.data.csv is None else seed
        title = configuration or DEFAULT
    else:
        if configuration is not None:
            raise ConfigurationError(
                f"given together with {configuration!r}; one of the two is possible", field="--csv"
            )
        if label is None:
            raise ConfigurationError("missing; name the column whose values are to be protected", field="--label")
        data = {"csv": csv, **{name: value for name, value in told.items() if value is not None}}
        with owndata.refusing(own=True):
            chosen = config.from_mapping({"data": data, "clusters": {"count": 1}}, changes)
        title = csv

    from p2p_labeldp import experiment, results
    from p2p_labeldp.cli import progress
    from p2p_labeldp.reports import table

    experiment.check_engine(engine)
    check_watchable(dashboard, engine)
    with owndata.refusing(own=csv is not None):
        if csv is not None:
            fixed = any(change.partition("=")[0].strip() == "clusters.count" for change in changes)
            chosen, found = owndata.chosen_clusters(chosen, seed=seed, fixed=fixed, say=not quiet)
            noise = owndata.planned(chosen)
            if suggest:
                typer.echo(owndata.to_json(found, noise=noise) if as_json else owndata.sentence(found, noise=noise))
                return
            if not quiet and not fixed:
                typer.echo(f"note: {owndata.sentence(found, noise=noise)}", err=True)
        with results.claimed(out) if out is not None else nullcontext() as directory:
            kind = "private" if seed is None else "study"
            with (
                dashboard_at(dashboard, title=title, kind=kind, say=say) as page,
                nullcontext(None) if quiet else progress.watching(sys.stderr) as watcher,
            ):
                both = progress.Several(watcher, page)
                done = experiment.run(chosen, engine=engine, seed=seed, progress=both, data_directory=data_dir)
                if page is not None:
                    page.finished(done.result)
            if directory is not None:
                directory.write(result=done.result, facts=done.facts, noisy=done.noisy, config=done.config)
    if as_json:
        if done.result.study:  # the object has no place for it; the table says it itself
            typer.echo(f"{table.STUDY} (whoever knows seed {seed} knows every flip)", err=True)
        typer.echo(results.to_json(done.result))
    else:
        table.show(done.result, title=f"{title} on the {engine} engine", file=sys.stdout)
    if not quiet and not as_json and seed is None:
        owndata.say_yardsticks(done)


def _separator(text: str | None) -> str | None:
    """A tab is hard to type."""
    if text is not None and text not in (",", ";", "|", "\t", "\\t", "tab"):
        raise ConfigurationError(f"{text!r} given; one of , ; | tab is possible", field="--separator")
    return "\t" if text in ("\\t", "tab") else text
