"""Columns of text to columns of numbers. Labels are no argument.

A column of numbers stays one, its gaps filled by its median and marked in a column of their own. A column of a few
words becomes a 0/1 column for each word (one column if there are two). Left out, each with a line that says so: a
column that never changes, that tells rows apart (an identifier), or of more words than can be categories. What mixes
numbers with words, or is mostly empty, is refused: only its owner knows what it should be.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.owndata.identifiers import is_identifier, may_be_identifier
from p2p_labeldp.owndata.reading import FIELD, Rows

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "?", ".", "-", "--"})
MAX_MISSING = 0.3
MAX_CATEGORIES = 20
MAX_FEATURES = 500
MAX_NUMBER = 1e150  # as in clustering
_POINT = re.compile(r"^[+-]?\d*\.\d+([eE][+-]?\d+)?$|^[+-]?\d{1,3}(,\d{3})+\.\d+$")
_COMMA = re.compile(r"^[+-]?\d*,(\d{1,2}|\d{4,})$|^[+-]?\d{1,3}(\.\d{3})+,\d+$|^[+-]?0,\d+$")
_SPACED = re.compile(r"^[+-]?\d{1,3}([ '’\u00a0\u202f]\d{3})+([.,]\d+)?$")
_THOUSANDS = re.compile(r"^[+-]?\d{1,3}(,\d{3})+$")
_GROUPED = {
    ",": re.compile(r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"),
    ".": re.compile(r"^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$"),
}
"""What a comma, or a point, between thousands stands in. In anything else it divides a date, an address, a version."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the owner of a table says about it.

    Args:
        classes: The label space, in order; read off the label column if not given.
        decimal: ``.`` or ``,``; found out if not given.
        separator: Found out if not given.
        encoding: Found out if not given.
        leave_out: Columns that are no features.
        keep: Columns that are features though they look like identifiers.
    """

    classes: tuple[str, ...] | None = None
    decimal: str | None = None
    separator: str | None = None
    encoding: str | None = None
    leave_out: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Features:
    """What became of the columns.

    Args:
        names: Of the features, length d.
        columns: Their values, shape (n,) each.
        source: Name of the table's column that each came from.
        notes: What was done that the owner should know, a line each.
    """

    names: list[str] = field(default_factory=list)
    columns: list[Floats] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, values: Floats, source: str) -> None:
        self.names.append(name)
        self.columns.append(values)
        self.source.append(source)

    def matrix(self) -> Floats:
        """Shape (n, d)."""
        return np.ascontiguousarray(np.stack(self.columns, axis=1))


def is_missing(cell: str) -> bool:
    """Whether a cell of a feature says nothing."""
    return cell.lower() in MISSING


def features(rows: Rows, *, label: str, choices: Choices) -> Features:
    """All columns but the label.

    Raises:
        ConfigurationError: A column that is not understood, or no feature at all.
    """
    for key, named in (("data.leave_out", choices.leave_out), ("data.keep", choices.keep)):
        for name in named:
            check_column(name, rows, key)
    found = Features()
    wanted = [name for name in rows.names if name != label and name not in choices.leave_out]
    cells = {name: rows.columns[rows.names.index(name)] for name in wanted}
    comma = _decimal_comma(cells, choices.decimal)
    for name in wanted:
        _add(found, name, cells[name], rows, comma=comma, keep=name in choices.keep)
    if not found.columns:
        raise ConfigurationError(
            f"no column beside {label!r} can be a feature; one that changes from row to row is needed", field=FIELD
        )
    if len(found.columns) > MAX_FEATURES:
        raise ConfigurationError(
            f"{len(found.columns)} features; {MAX_FEATURES} are possible: name columns to leave out with --leave-out",
            field=FIELD,
        )
    return found


def check_column(name: str, rows: Rows, key: str) -> str:
    """Returns ``name`` if the table has such a column; ``key`` of the configuration says so."""
    if name not in rows.names:
        import difflib

        near = difflib.get_close_matches(name, rows.names, n=1, cutoff=0.0)
        listed = ", ".join(rows.names[:12]) + (", ..." if len(rows.names) > 12 else "")
        raise ConfigurationError(f"no column {name!r}; did you mean {near[0]!r}? there are {listed}", field=key)
    return name


def _add(found: Features, name: str, cells: Sequence[str], rows: Rows, *, comma: bool, keep: bool) -> None:
    present = [cell for cell in cells if not is_missing(cell)]
    share = 1 - len(present) / len(cells)
    if not present:
        found.notes.append(f"left out {name!r}: it is empty")
        return
    different = Counter(present)
    if len(different) == 1 and share == 0:
        found.notes.append(f"left out {name!r}: it never changes")
        return
    if share > MAX_MISSING:
        raise ConfigurationError(
            f"column {name!r} is empty in {share:.0%} of the rows, more than {MAX_MISSING:.0%}; fill it in, or"
            f" --leave-out {_quoted(name)}",
            field=FIELD,
        )
    numbers = {text: _number(text, comma) for text in different}
    wrong = [text for text, number in numbers.items() if number is None]
    if not wrong:
        _add_numbers(found, name, cells, numbers, keep=keep)
    elif sum(different[text] for text in wrong) <= len(present) / 2:
        place = rows.place(cells.index(wrong[0]))
        raise ConfigurationError(
            f"column {name!r} holds numbers, but {wrong[0][:40]!r} in {place}; put a number or nothing there, or"
            f" --leave-out {_quoted(name)}",
            field=FIELD,
        )
    elif len(different) > MAX_CATEGORIES:
        what = "an identifier or free text" if len(different) > len(present) / 2 else "too many for categories"
        found.notes.append(f"left out {name!r}: {len(different)} different texts, {what}")
    else:
        _add_words(found, name, cells, sorted(different))


def _add_numbers(
    found: Features, name: str, cells: Sequence[str], numbers: dict[str, float | None], *, keep: bool
) -> None:
    values = np.array([np.nan if is_missing(cell) else numbers[cell] for cell in cells], dtype=np.float64)
    known = ~np.isnan(values)
    present = values[known]
    if not keep and is_identifier(name, present, rows=len(cells)):
        found.notes.append(f"left out {name!r}: an identifier (--keep {_quoted(name)} if it is none)")
        return
    if not keep and may_be_identifier(present):
        found.notes.append(
            f"{name!r} has another whole number in every row, as an identifier has: features are public; --leave-out"
            f" {_quoted(name)} takes it out, --keep {_quoted(name)} if it is a measurement"
        )
    if not known.all():
        gaps = int((~known).sum())
        found.notes.append(
            f"{name!r}: {gaps} gap{'s' if gaps > 1 else ''} filled with the median, and marked in a column"
        )
        values[~known] = np.median(present)
    found.add(name, values, name)
    if not known.all():
        found.add(f"{name} missing", (~known).astype(np.float64), name)


def _add_words(found: Features, name: str, cells: Sequence[str], words: list[str]) -> None:
    gaps = [is_missing(cell) for cell in cells]
    if any(gaps):
        words = [*words, "missing"]
    told = ["missing" if gap else cell for cell, gap in zip(cells, gaps, strict=True)]
    for word in words[1:] if len(words) == 2 else words:
        found.add(f"{name}={word}", np.array([cell == word for cell in told], dtype=np.float64), name)


def _number(text: str, comma: bool) -> float | None:
    """A finite number, or None. Spaces and apostrophes between thousands, and a percent sign, are no part of it."""
    text = text.removesuffix("%").rstrip()
    if _SPACED.match(text):
        text = re.sub(r"[ '’\u00a0\u202f]", "", text)
    thousands = "." if comma else ","
    if thousands in text:
        if not _GROUPED[thousands].match(text):
            return None
        text = text.replace(thousands, "")
    text = text.replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < MAX_NUMBER and "_" not in text else None


def _decimal_comma(cells: dict[str, list[str]], decimal: str | None) -> bool:
    """Whether the table writes 1,5 for one and a half."""
    if decimal is not None:
        if decimal not in (".", ","):
            raise ConfigurationError(f"{decimal!r} given; . or , is possible", field="data.decimal")
        return decimal == ","
    points = commas = unsure = None
    for name, column in cells.items():
        for cell in column:
            if "," not in cell and "." not in cell:
                continue
            if _COMMA.match(cell):
                commas = commas or (name, cell)
            elif _THOUSANDS.match(cell):
                unsure = unsure or (name, cell)
            elif _POINT.match(cell):
                points = points or (name, cell)
    if commas and points:
        raise ConfigurationError(
            f"{commas[1]!r} in {commas[0]!r} has a decimal comma and {points[1]!r} in {points[0]!r} a decimal point;"
            " make them alike, or say --decimal",
            field=FIELD,
        )
    if unsure and not points and not commas:
        raise ConfigurationError(
            f"{unsure[1]!r} in {unsure[0]!r} may be a thousand or a fraction; say --decimal , or --decimal .",
            field=FIELD,
        )
    return commas is not None


def _quoted(name: str) -> str:
    """As a shell takes it."""
    import shlex

    return shlex.quote(name)
