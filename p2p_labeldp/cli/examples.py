"""``examples``: rows of a data set as files that ``peer`` reads, to try a round by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from p2p_labeldp.errors import ConfigurationError

HELP = """Write a few training rows of a data set as example files, one peer each.

Example:

\b
    p2p-labeldp examples breast-cancer --count 3 --out people
"""


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Data set.")] = "breast-cancer",
    count: Annotated[int, typer.Option(metavar="N", help="How many.")] = 3,
    out: Annotated[str, typer.Option(metavar="DIR", help="Where to write them; made if missing.")] = "people",
) -> None:
    """See ``HELP``."""
    from p2p_labeldp import datasets

    if count < 2:
        raise ConfigurationError(f"{count} given; at least 2 are needed", field="--count")
    split = datasets.load(name, seed=0, test_share=0.2, peers=count)
    directory = Path(out)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for i in range(count):
            label = split.label_space.classes[int(split.train_labels[i])]
            content = json.dumps({"features": split.train_features[i].tolist(), "label": label})
            (directory / f"{i}.json").write_text(content + "\n", encoding="utf-8")
    except OSError as exc:
        raise ConfigurationError(f"{out!r} can't be written to: {exc.strerror}", field="--out") from exc
    typer.echo(f"{count} examples in {out}; classes: {','.join(split.label_space.classes)}")
