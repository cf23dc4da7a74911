"""``examples``: rows of a data set as files that ``peer`` reads, to try a round by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from p2p_labeldp.errors import ConfigurationError, naming

HELP = """Write a few training rows of a data set, or of a table of your own, as example files, one peer each.

Each holds a true label, so it is readable by its owner alone. Files that exist are not overwritten.

Examples:

\b
    p2p-labeldp examples breast-cancer --count 3 --out people
    p2p-labeldp examples --csv patients.csv --label diagnosis --count 3 --out people
"""
DEFAULT = "breast-cancer"


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help=f"Data set. Default: {DEFAULT}.", show_default=False)
    ] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="A table of your own, with a header line.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Its column that is protected.")] = None,
    count: Annotated[int, typer.Option(metavar="N", help="How many.")] = 3,
    out: Annotated[str, typer.Option(metavar="DIR", help="Where to write them; made if missing.")] = "people",
) -> None:
    """See ``HELP``."""
    from p2p_labeldp import config, experiment
    from p2p_labeldp.cli import new_file, subject

    if count < 2:
        raise ConfigurationError(f"{count} given; at least 2 are needed", field="--count")
    if (csv is None) != (label is None):
        raise ConfigurationError("--csv and --label go together", field="--csv")
    if csv is not None and name is not None:
        raise ConfigurationError(f"given together with {name!r}; one of the two is possible", field="--csv")
    directory = Path(out)
    files = [directory / f"{i}.json" for i in range(count)]
    present = next((file for file in files if file.exists()), None)
    if present is not None:
        raise ConfigurationError(f"{str(present)!r} exists already; a new directory is needed", field="--out")
    data = {"name": name or DEFAULT} if csv is None else {"csv": csv, "label": label}
    with naming({**subject.OF_A_TABLE, "data.name": "NAME", "data.peers": "--count"}):
        split = experiment.split_of(
            config.from_mapping({"data": {**data, "peers": count}}), seed=experiment.PUBLIC_SEED
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigurationError(f"{out!r} can't be written to: {exc.strerror}", field="--out") from exc
    for i, file in enumerate(files):
        label = split.label_space.classes[int(split.train_labels[i])]
        content = json.dumps({"features": split.train_features[i].tolist(), "label": label})
        new_file.write(str(file), content.encode() + b"\n", mode=0o600, field="--out")
    typer.echo(f"{count} examples in {out}; classes: {','.join(split.label_space.classes)}")
