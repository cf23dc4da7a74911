"""What ``compare`` found, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from p2p_labeldp.reports.answers import small
from p2p_labeldp.reports.table import places_up

CENTRAL = "inf: somebody sees true labels"


def compared(record: Mapping[str, Any], *, title: str) -> list[RenderableType]:
    """Numbers, then each guarantee in words.

    Args:
        record: As ``comparing.plain`` gives it.
        title: What was compared on.
    """
    least, most = record["cluster_sizes"]
    about = (
        f"{title}: {record['trials']} trials, each with {record['held_out']:,} other rows held out and"
        f" {record['trained_on']:,} to train on, {len(record['classes'])} classes, clusters of {least} to {most};"
        f" model: {record['model'].replace('_', ' ')}"
    )
    rows = record["rows"]
    numbers = [
        ("mechanism", "accuracy", f"{record['confidence']:.0%} interval", "epsilon", "at delta", "local epsilon")
    ]
    numbers += [
        (
            row["name"],
            f"{row['accuracy']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            places_up(row["epsilon"]),
            small(row["delta"]),
            places_up(row["local_epsilon"]),
        )
        for row in rows
    ]
    trusts = [("mechanism", "whom it trusts", "what it releases")]
    trusts += [(row["name"], row["trusted"], row["releases"]) for row in rows]
    sentences = [f"{row['name']}: {row['guarantee']}" for row in rows]
    return [
        Text(about, style="bold"),
        Text(record["warning"], style="bold red"),
        Text(),
        _aligned(numbers, left=1),
        Text(CENTRAL),
        Text(),
        _aligned(trusts, left=3),
        Text(),
        Text("\n".join(sentences)),
    ]


def _aligned(rows: Sequence[Sequence[str]], *, left: int) -> Text:
    """Columns, the first ``left`` of them to the left. Lines, since a table would be cut to a terminal's width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return Text("\n".join(lines))
