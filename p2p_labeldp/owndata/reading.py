"""Bytes of a text file to named columns of stripped text.

The encoding is what a byte order mark or a pattern of zero bytes says, else UTF-8 if the bytes are, else Windows-1252,
else Latin-1 (which every sequence of bytes is). The separator is the one of , ; tab | that gives the first records the
same number of fields, more than one; of several such, the one that gives the most.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from p2p_labeldp.errors import ConfigurationError

FIELD = "data.csv"
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
MAX_BYTES = 1 << 30
_SAMPLE = 200  # records by which a separator is chosen
_MAX_CELL = 1 << 20
_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_NOT_TEXT = {
    b"PK\x03\x04": "an Excel workbook or a zip archive; save the sheet as CSV (UTF-8)",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV (UTF-8)",
    b"\x1f\x8b": "compressed by gzip; unpack it first",
    b"PAR1": "a Parquet file; write it as CSV first",
    b"SQLite format 3": "an SQLite database; export the table as CSV first",
    b"%PDF": "a PDF; a table of text is needed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A table of text.

    Args:
        names: Of the columns, each once.
        columns: Their cells, stripped, one list a column.
        separator: By which the fields were told apart.
        notes: How the file was read, where it was not obvious.
        lines: On which each row ends, counted from 1 at the top of the file; none if there is no file.
    """

    names: list[str]
    columns: list[list[str]]
    separator: str
    notes: list[str]
    lines: list[int] | None = None

    def place(self, row: int) -> str:
        """Where a row is found, counted as whoever opens the file counts; ``row`` is from 0."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def __len__(self) -> int:
        return len(self.columns[0])


def read(path: str | Path, *, encoding: str | None = None, separator: str | None = None) -> Rows:
    """Reads a file.

    Args:
        path: Of the file.
        encoding: A name that Python knows; found out if not given.
        separator: One of ``SEPARATORS``; found out if not given.

    Raises:
        ConfigurationError: It can't be read for certain; the text says what to do.
    """
    data = _bytes(path)
    text, notes = _decoded(data) if encoding is None else (_as_said(data, encoding), [])
    declared = re.match(r"sep=(.)\r?\n", text)  # a line that Excel writes and reads
    if declared:
        text = text[declared.end() :]
        separator = separator or declared.group(1)
    if separator is not None and separator not in SEPARATORS:
        raise ConfigurationError(f"{separator!r} given; one of , ; | or a tab is possible", field="data.separator")
    if not text.strip():
        raise ConfigurationError("the file is empty; a header line and a row a person are needed", field=FIELD)
    skipped = 1 if declared else 0
    chosen = separator or _separator(text)
    records = _records(text, chosen)
    names = _names(next(records)[1])
    columns: list[list[str]] = [[] for _ in names]
    lines: list[int] = []
    for line, record in records:
        if len(record) != len(names):
            if len(record) > len(names) and not any(record[len(names) :]):
                record = record[: len(names)]  # separators at the end of a line
            else:
                raise ConfigurationError(
                    f"line {line + skipped} has {len(record)} field{'s' if len(record) > 1 else ''} and the header"
                    f" {len(names)}; put quotes around a field that holds a {SEPARATORS[chosen]}, or mend the line",
                    field=FIELD,
                )
        for column, cell in zip(columns, record, strict=True):
            column.append(cell)
        lines.append(line + skipped)
    if not columns[0]:
        raise ConfigurationError("the file has a header and no rows; a row a person is needed", field=FIELD)
    named = [place for place, name in enumerate(names) if name or any(columns[place])]
    return Rows(
        names=_unique([names[place] or f"column {place + 1}" for place in named]),
        columns=[columns[place] for place in named],
        separator=chosen,
        notes=notes,
        lines=lines,
    )


def _bytes(path: str | Path) -> bytes:
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ConfigurationError(f"{str(path)!r} is larger than 1 GiB; take a part of it", field=FIELD)
        data = file.read_bytes()
    except OSError as exc:
        raise ConfigurationError(f"{str(path)!r} can't be read: {exc.strerror}", field=FIELD) from exc
    except ValueError as exc:  # a null character in the path
        raise ConfigurationError(f"{str(path)!r} given; {exc}", field=FIELD) from exc
    for mark, what in _NOT_TEXT.items():
        if data.startswith(mark):
            raise ConfigurationError(f"{str(path)!r} is {what}", field=FIELD)
    return data


def _as_said(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError as exc:
        raise ConfigurationError(f"{encoding!r} given; there is no such encoding", field="data.encoding") from exc
    except UnicodeError as exc:
        raise ConfigurationError(f"{encoding!r} given; the file is in another one", field="data.encoding") from exc


def _decoded(data: bytes) -> tuple[str, list[str]]:
    """The text, and a note if its encoding is a guess."""
    head = data[:4096]
    marked = [name for mark, name in _MARKS.items() if data.startswith(mark)][:1]
    if marked:
        candidates = marked
    elif head[1::2].count(0) > len(head) // 4:
        candidates = ["utf-16-le"]
    elif head[::2].count(0) > len(head) // 4:
        candidates = ["utf-16-be"]
    else:
        candidates = ["utf-8", "cp1252", "latin-1"]
    for name in candidates:
        try:
            text = data.decode(name)
        except UnicodeError:
            continue
        if "\0" in text:
            break
        guessed = name in ("cp1252", "latin-1")
        return text, [f"read as {name}, not being UTF-8; if names look wrong, say --encoding"] if guessed else []
    raise ConfigurationError("the file is no text; save the table as CSV (UTF-8)", field=FIELD)


def _separator(text: str) -> str:
    """The one that makes a table of the first records."""
    found: dict[str, tuple[bool, int]] = {}
    troubles: list[ConfigurationError] = []
    for candidate in SEPARATORS:
        try:
            widths = [len(record) for _, record in islice(_records(text, candidate), _SAMPLE)]
        except ConfigurationError as exc:
            troubles.append(exc)
            continue
        width, count = Counter(widths).most_common(1)[0]
        if widths[0] > 1 and width > 1:
            found[candidate] = (count > 0.9 * len(widths) and widths[0] >= width, width)
    if found:
        return max(found, key=lambda candidate: found[candidate])
    if troubles:
        raise troubles[0]
    raise ConfigurationError(
        "no comma, semicolon, tab or bar divides its lines; a header line and two columns or more are needed",
        field=FIELD,
    )


def _records(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Number of a record's last line, and its fields, stripped; records without any are passed over."""
    limit = csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=True)
    try:
        for record in reader:
            cells = [cell.strip() for cell in record]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as exc:
        raise ConfigurationError(
            f"the quotes up to line {reader.line_num} don't match; close them, and double a quote within a field",
            field=FIELD,
        ) from exc
    finally:
        csv.field_size_limit(limit)


def _names(header: list[str]) -> list[str]:
    names = [" ".join(name.split()) for name in header]
    if names and all(_is_number(name) for name in names if name):
        raise ConfigurationError(
            f"the first line holds numbers ({', '.join(names[:3])}, ...) and no names; add a header line", field=FIELD
        )
    return names


def _unique(names: list[str]) -> list[str]:
    for name, count in Counter(names).items():
        if count > 1:
            raise ConfigurationError(f"{count} columns are called {name!r}; give each a name of its own", field=FIELD)
    return names


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
