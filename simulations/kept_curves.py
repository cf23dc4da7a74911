"""Curves of a study that are kept when they are done: a run that was cut short goes on at the curve it was in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from csv import DictWriter
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from frame import Study, read_rows

Kept = TypeVar("Kept")


def once(study: Study, name: str, kind: type[Kept], rows: Callable[[], Iterable[Kept]]) -> list[Kept]:
    """The rows of a curve: read if an earlier run kept them, else found, and kept if there is a folder for it."""
    parts = study.folders.get("parts")
    path = None if parts is None else parts / f"{study.stem.name}-{name}.csv"
    if path is not None and path.is_file():
        return read_rows(path, kind)
    found = list(rows())
    if path is not None:
        keep(path, found)
    return found


def keep(path: Path, rows: Sequence[Any]) -> None:
    """Writes a curve, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    with draft.open("w", newline="") as file:
        writer = DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    draft.replace(path)
