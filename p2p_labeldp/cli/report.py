"""``report``: one page about one run or several, to be shown to others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.reports.plots import Band

HELP = """Write one HTML page about a run, or several side by side: for whoever has to judge it.

DIR is a directory that `run --out` or `learner --out` kept. The page says what was run, who can learn what about a
label, in plain words and as curves, how the round went, how good the model is, and what to be warned of. It holds
totals only: no label of a peer, nothing of who asked whom. It is one file that fetches nothing and prints.

What `measure --out DIR` measured into the same directory is shown against the exact values.

Examples:

\b
    p2p-labeldp run breast-cancer --engine virtual --out runs/one
    p2p-labeldp report runs/one
    p2p-labeldp report runs/one runs/half --out both.html
"""

NAME = "report.html"


def command(
    directories: Annotated[list[str], typer.Argument(metavar="DIR...", help="Directories of runs.")],
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help=f"The page; DIR/{NAME} of the first by default.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the page's path and the warnings as one JSON object.")
    ] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp.reports import cautions, kept_run, page

    runs = [kept_run.read(directory) for directory in directories]
    measured = [
        _measured(Path(directory), run.result.config_hash) for directory, run in zip(directories, runs, strict=True)
    ]
    target = Path(directories[0]) / NAME if out is None else Path(out)
    _write(target, page.render(runs, measured))
    warnings = [(run.name, caution) for run in runs for caution in cautions.due(run.result)]
    if as_json:
        stated = [{"run": name, "code": caution.code, "text": caution.text} for name, caution in warnings]
        typer.echo(json.dumps({"page": str(target), "warnings": stated}))
        return
    typer.echo(str(target))
    for name, caution in warnings:
        typer.echo(f"{name}: {caution.code}: {caution.text}")


def _measured(directory: Path, config_hash: str) -> Sequence[Band]:
    """What was measured beside the run, of its own configuration, not of a mechanism of somebody's own."""
    from p2p_labeldp.measuring import kept
    from p2p_labeldp.measuring.row import from_line
    from p2p_labeldp.reports.plots import Band

    try:
        content = (directory / kept.NAME).read_bytes()
    except FileNotFoundError:
        return []
    whole = content[: content.rfind(b"\n") + 1]  # a line that is still being written is none
    return [
        Band(
            cluster_size=row.cluster_size,
            measured=row.epsilon_lower,
            exact=row.epsilon,
            shuffle=row.shuffle_epsilon,
            local=row.local_epsilon,
        )
        for row in map(from_line, whole.splitlines())
        if row.config_hash == config_hash and not row.mechanism
    ]


def _write(target: Path, text: str) -> None:
    """Whole or not at all."""
    try:
        partial = target.with_name(f".{target.name}.partial")
        try:
            partial.write_text(text, encoding="utf-8", newline="\n")
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, ValueError) as exc:  # a path without a name or with a null character
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise ConfigurationError(f"{str(target)!r} can't be written to: {reason}", field="--out") from exc
