"""``compare``: mechanisms side by side on one's own data, at one guarantee."""

from __future__ import annotations

from typing import Annotated

import typer

from p2p_labeldp.cli import answers, owndata, subject

HELP = """Compare mechanisms on a table of your own, or a data set, at one epsilon: what each costs, and whom it trusts.

Algorithm 2 (what peers do), RRWithPrior in two stages and in one, UniformRR, ClusterRR, DP-SGD, and no privacy. Each is
played several times, on arrays, each time with other rows held out and other coins; the interval is of the mean
accuracy, and allows for trials that share rows. The same epsilon is not the same protection: the table says against
whom it holds, who is trusted with the true labels, and what leaves.

Settings are those of `run`, and none is chosen by looking at labels. The accuracies themselves do look at them, at
every row's: do it with data you may look at, and don't publish what you see as if it were private.

Examples:

\b
    p2p-labeldp compare --csv patients.csv --label diagnosis --epsilon 1
    p2p-labeldp compare digits --epsilon 0.5 --trials 20 --json
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
    epsilon: Annotated[
        float | None, typer.Option(metavar="E", help="Of every mechanism. Default: as configured, or 1.")
    ] = None,
    trials: Annotated[int, typer.Option(metavar="N", help="How often each is played, 2 to 1000.")] = 10,
    seed: subject.Seed = None,
    overrides: subject.Overrides = None,
    data_dir: subject.DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
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

    from p2p_labeldp import comparing
    from p2p_labeldp.reports import compared

    def say(number: int) -> None:
        if not quiet:
            typer.echo(f"trial {number} of {trials}", err=True)

    chosen = about.config
    with answers.refusing(**about.options):
        comparing.check(chosen, seed=about.seed, trials=trials)
        if about.own:
            chosen, found = owndata.chosen_clusters(chosen, seed=about.seed, fixed=about.fixed, say=not quiet)
            if not quiet and not about.fixed:
                typer.echo(f"note: {owndata.sentence(found, noise=True)}", err=True)
        done = comparing.compare(chosen, seed=about.seed, trials=trials, data_directory=data_dir, on_trial=say)
    record = comparing.plain(done)
    answers.answer(record, *(() if as_json else compared.compared(record, title=about.title)), as_json=as_json)
