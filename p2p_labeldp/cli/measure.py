"""``measure``: privacy and accuracy against cluster size."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2p_labeldp.cli.answers import refusing
from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.measuring import Question, Row

HELP = """Measure privacy and accuracy over cluster sizes.

For each size: the local epsilon, the paper's order of magnitude, the exact epsilon at delta = 1/size^2 against the
learner alone and against it with one mate, a trusted shuffler's, a lower bound measured on what runs, whether that
conforms to its law, and the accuracy of models trained on the configuration's data in clusters of that size or more.

What runs is the population engine, where a million rounds take seconds; or real peers (--engine processes, or virtual),
whose rounds hold as many clusters as make --peers; or a mechanism of your own (--mechanism), which has classes = 2, a
flip_probability and sample(labels, rng).

DIR gets measure.jsonl, measure.csv, and the figure measure.png, .svg and .pdf. An interrupted command goes on where it
was: a size that stands in measure.jsonl with the same configuration, seed and trials is not measured again.

Examples:

\b
    p2p-labeldp measure breast-cancer --out measured --sizes 8,16,32,64
    p2p-labeldp measure digits --set mechanism.flip_probability=0.1 --jobs 2 --out measured
    p2p-labeldp measure --engine processes --sizes 8,16 --peers 128 --out real
    p2p-labeldp measure --mechanism mine.py:Resampling --sizes 8,16 --trials 100000 --out mine
"""

SIZES = "8,16,32,64,128,256,512,1024"
COLUMNS = {
    "size": "cluster_size",
    "flip": "flip_probability",
    "delta": "delta",
    "measured": "epsilon_lower",
    "exact": "epsilon",
    "shuffle": "shuffle_epsilon",
    "1 mate": "mate_epsilon",
    "at delta": "mate_delta",
    "local": "local_epsilon",
    "paper ~": "paper_epsilon",
    "trials": "trials",
    "conforms": "verdict",
    "accuracy": "accuracy",
    "non-private": "accuracy_non_private",
}


def command(
    configuration: Annotated[
        str, typer.Argument(metavar="[NAME|PATH]", help="What to measure.", show_default=True)
    ] = "breast-cancer",
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override one key of the configuration; may be repeated."),
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where rows, table and figure are kept.")] = ...,  # type: ignore[assignment]  # typer: required
    sizes: Annotated[str, typer.Option("--sizes", metavar="S,S,...", help="Cluster sizes.")] = SIZES,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            metavar="N",
            help="Rounds of a cluster behind each measured bound. Default: 1,000,000; of real peers, one round's.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="population|virtual|processes", help="Who plays the rounds."),
    ] = "population",
    peers: Annotated[
        int | None, typer.Option("--peers", metavar="N", help="Of a round of real peers. Default: 256.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", metavar="FILE.py:NAME", help="Measure this one, or MODULE:NAME.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the study, 0 to 2^64 - 1.")] = 0,
    confidence: Annotated[float, typer.Option("--confidence", help="Of each measured bound.")] = 0.99,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="Sizes measured at a time, a process each.")] = 1,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Measure on the workers of this Dask scheduler.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp import config

    chosen = config.load(configuration, overrides or [])  # complains before anything slow is imported
    wanted = _parsed(sizes)

    from p2p_labeldp.measuring import Question, check, kept, sweep
    from p2p_labeldp.measuring.row import plain
    from p2p_labeldp.network_source import PEERS

    if peers is not None and engine == "population":
        raise ConfigurationError(f"{peers} given; only rounds of real peers have a number of them", field="--peers")
    with refusing():
        question = Question(
            config=chosen,
            trials=trials,
            seed=seed,
            confidence=confidence,
            engine=engine,
            peers=PEERS if peers is None else peers,
            mechanism=mechanism,
        )
        check(question, sizes=wanted, jobs=jobs, dask=dask)
    directory = Path(out)
    with kept.opened(directory) as rows:
        known = sorted(set(wanted) & set(rows.answers(question)))
        count, done = len(set(wanted)), len(known)

        def say(row: Row) -> None:
            nonlocal done
            done += 1
            if not quiet:
                _say(f"{done} of {count} sizes: epsilon of {row.cluster_size} is at least {_down(row.epsilon_lower)}")

        if not quiet:
            again = f", {', '.join(map(str, known))} known already" if known else ""
            _say(f"sizes: {count}, {_played(question, wanted)}{again}")

        def playing(number: int, of: int) -> None:
            if not quiet:
                _say(f"round {number} of {of} begins")

        found = sweep(question, sizes=wanted, kept=rows, jobs=jobs, dask=dask, on_row=say, playing=playing)
        _write_csv(found, directory)
        _draw(found, directory)
    if as_json:
        typer.echo(json.dumps({"rows": [plain(row) for row in found]}, allow_nan=False))
    else:
        runs = f"{engine} engine" if mechanism is None else mechanism
        about = f"{configuration}, {runs}, {_played(question, wanted)}, confidence {confidence:g}, seed {seed}"
        typer.echo(_table(found, about))


def _played(question: Question, sizes: Sequence[int]) -> str:
    """How many rounds of a cluster: of real peers, as many of small clusters as fill their rounds."""
    trials = sorted({question.trials_at(size) for size in sizes})
    return f"{trials[0]:,} trials each" if len(trials) == 1 else f"{trials[0]:,} to {trials[-1]:,} trials"


def _parsed(sizes: str) -> list[int]:
    try:
        return [int(size) for size in sizes.split(",")]
    except ValueError as exc:
        raise ConfigurationError(
            f"{sizes!r} given; whole numbers with commas between are needed", field="--sizes"
        ) from exc


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _table(rows: Sequence[Row], title: str) -> str:
    """Right-aligned columns. Upper bounds are rounded up, measured ones down."""
    lines = [list(COLUMNS), *([_cell(row, name) for name in COLUMNS.values()] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    body = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    notes = ["epsilons of one label against the learner; measured is a lower bound, paper an order of magnitude"]
    return "\n".join([title, "", *body, "", *notes])


def _cell(row: Row, name: str) -> str:
    from p2p_labeldp.reports.table import digits_up, places_up

    value = getattr(row, name)
    if value is None:
        return "none"
    if isinstance(value, str | int):
        return str(value)
    if name in ("delta", "mate_delta"):
        return digits_up(value)
    if name == "flip_probability":
        return f"{value:.5g}"
    if name == "epsilon_lower":
        return _down(value)
    return f"{value:.3f}" if name.startswith("accuracy") else places_up(value)


def _down(value: float) -> str:
    """Three decimals, rounded down."""
    return f"{int(value * 1000) / 1000:.3f}"


def _write_csv(rows: Sequence[Row], directory: Path) -> None:
    from p2p_labeldp.measuring.row import plain

    partial = directory / ".measure.csv.partial"
    with partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(plain(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(plain(row) for row in rows)
    partial.replace(directory / "measure.csv")


def _draw(rows: Sequence[Row], directory: Path) -> None:
    from p2p_labeldp.reports import plots

    bands = [
        plots.Band(
            cluster_size=row.cluster_size,
            measured=row.epsilon_lower,
            exact=row.epsilon,
            shuffle=row.shuffle_epsilon,
            local=row.local_epsilon,
            accuracy=row.accuracy,
            accuracy_non_private=row.accuracy_non_private,
        )
        for row in rows
    ]
    trials = sorted({row.trials for row in rows})
    played = f"{trials[0]:,}" if len(trials) == 1 else f"{trials[0]:,} to {trials[-1]:,}"
    title = (
        rf"$\varepsilon$ at $\delta = 1/s^2$ against the learner: measured ({rows[0].confidence:.4g} confidence,"
        f" {played} rounds) and exact"
    )
    plots.save(plots.bands_against_size(bands, title=title), directory / "measure")
