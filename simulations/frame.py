"""The frame of a study: its two arguments, its table, its picture and what it says at the end.

A study is run as ``python simulations/NAME.py``, which puts this folder on the path, so it imports this file as
``frame``; pytest has the folder on its path too (pyproject.toml), so a test imports ``frame`` and the studies alike.

    study = Study.from_command_line(__file__, __doc__, quick="what --quick leaves out")
    study.write_table(rows, header=["what the columns can't say"])
    with study.figure(1, 3, size=(11, 3.8)) as (figure, axes): ...
    return study.verdict(failures, held="all claims hold")
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

RESULTS = Path(__file__).parent / "results"

Row = TypeVar("Row")


def arguments(doc: str | None, *, quick: str) -> argparse.ArgumentParser:
    """``--quick`` and ``--out``; see ``Study.from_command_line``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the table and the picture")
    return parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One run of one study.

    Args:
        name: Of the script, without its ending.
        quick: Whether ``--quick`` was given; files are then called NAME_quick.
        out: Folder for the table and the picture.
        folders: What else was given, by the option's name.
    """

    name: str
    quick: bool
    out: Path
    folders: Mapping[str, Path | None] = field(default_factory=dict)

    @classmethod
    def from_command_line(
        cls, script: str, doc: str | None, *, quick: str, folders: Mapping[str, str] | None = None
    ) -> Study:
        """Reads ``--quick``, ``--out`` and the study's own options; ``--help`` prints the script's docstring.

        Args:
            script: The script's ``__file__``.
            doc: Its ``__doc__``.
            quick: What ``--quick`` leaves out.
            folders: Options that name folders, and what is in them.
        """
        parser = arguments(doc, quick=quick)
        for option, help_text in (folders or {}).items():
            parser.add_argument(f"--{option}", dest=option, type=Path, help=help_text)
        given = parser.parse_args()
        return cls.of(script, given, folders={option: getattr(given, option) for option in folders or {}})

    @classmethod
    def of(
        cls, script: str, given: argparse.Namespace, *, folders: Mapping[str, Path | None] = MappingProxyType({})
    ) -> Study:
        """From what ``arguments`` read, for a study that adds arguments of its own."""
        return cls(name=Path(script).stem, quick=given.quick, out=given.out, folders=folders)

    @property
    def stem(self) -> Path:
        """Path of the results, without an ending."""
        return self.out / (f"{self.name}_quick" if self.quick else self.name)

    def write_table(self, rows: Iterable[Mapping[str, object]], *, header: Sequence[str] = ()) -> None:
        """Writes the CSV: ``header``, a line each after "# ", then the columns' names, then the rows (at least one)."""
        table = list(rows)
        self.out.mkdir(parents=True, exist_ok=True)
        with self.stem.with_suffix(".csv").open("w", newline="") as file:
            file.writelines(f"# {line}\n" for line in header)
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)

    @contextmanager
    def figure(self, rows: int = 1, columns: int = 1, *, size: tuple[float, float], **axes: Any) -> Iterator[Any]:
        """Gives (figure, axes) of matplotlib's ``subplots`` to draw on, then saves .png and .svg.

        The same drawing gives the same bytes, with the same matplotlib.

        Args:
            rows: Of panels.
            columns: Of panels.
            size: Width and height, inches.
            axes: What else ``subplots`` takes.
        """
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        matplotlib.rcParams["svg.hashsalt"] = self.name
        drawn = plt.subplots(rows, columns, figsize=size, layout="constrained", **axes)
        try:
            yield drawn
            self.out.mkdir(parents=True, exist_ok=True)
            drawn[0].savefig(self.stem.with_suffix(".png"), dpi=150)
            drawn[0].savefig(self.stem.with_suffix(".svg"), metadata={"Date": None})
        finally:
            plt.close(drawn[0])

    def verdict(self, failures: Iterable[str], *, held: str) -> int:
        """Prints which claims fail, or else ``held``; gives the exit code, 1 if any fails."""
        failed = list(failures)
        print("\n".join(f"FAILS: {line}" for line in failed) if failed else held)
        return 1 if failed else 0


def legend_below(figure: Any, *, columns: int) -> None:
    """One legend for all panels of a figure of matplotlib's: each name once, in the order of the panels."""
    named: dict[str, Any] = {}
    for axis in figure.axes:
        handles, labels = axis.get_legend_handles_labels()
        named |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in named}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def read_table(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The header's lines, without "# ", and the rows of a table that ``write_table`` wrote."""
    lines = path.read_text().splitlines()
    above = [line for line in lines if line.startswith("#")]
    return [line.removeprefix("# ") for line in above], list(csv.DictReader(lines[len(above) :]))


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """The rows of a table as values of the frozen dataclass they were written from: str, int and float fields."""
    read = {"str": str, "int": int, "float": float}
    types = {field.name: read[str(field.type)] for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    return [kind(**{name: types[name](value) for name, value in row.items()}) for row in read_table(path)[1]]
