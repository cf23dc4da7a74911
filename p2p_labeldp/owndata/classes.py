"""The label column: which classes there are, and whose is which.

Classes are read off the column unless they are said: which of them occur is then public. A class that is spelt in
several ways is refused unless the classes are said, as only then is it certain that the spellings mean one.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.labels import MAX_CLASSES, LabelSpace
from p2p_labeldp.owndata.columns import MAX_MISSING, MISSING

MAX_READ = 20  # classes read off a column; more are a measurement, or must be said
FIELD, CLASSES = "data.label", "data.classes"
UNLABELLED = MISSING - {"-", "--", "."}
"""What says that there is no label. A dash may be a class: some tables tell + from -."""


def labels(
    cells: list[str], *, name: str, classes: tuple[str, ...] | None
) -> tuple[npt.NDArray[np.int64], LabelSpace, list[str]]:
    """Indices into the label space, -1 where there is no label; the label space; and notes.

    Raises:
        ConfigurationError: It is not certain what the classes are; the text says what to do.
    """
    present = {cell for cell in cells if cell.lower() not in UNLABELLED}
    gaps = sum(cell.lower() in UNLABELLED for cell in cells)
    if not present:
        raise ConfigurationError(f"column {name!r} is empty; choose the column that holds the label", field=FIELD)
    if gaps > MAX_MISSING * len(cells):
        raise ConfigurationError(
            f"column {name!r} is empty in {gaps / len(cells):.0%} of the rows; take the rows that have a label",
            field=FIELD,
        )
    notes = []
    if gaps:
        notes.append(f"{gaps} row{'s' if gaps > 1 else ''} without a label in {name!r} take{'s' * (gaps == 1)} no part")
    spellings = {cell: _same(cell) for cell in present}
    if classes is None:
        space = LabelSpace(classes=_read(spellings, name, len(cells) - gaps))
        notes.append(
            f"classes {', '.join(space.classes)}: read off {name!r}, so that they occur is public; --classes says them"
            " beforehand"
        )
    else:
        space = _said(classes)
    place = {_same(one): i for i, one in enumerate(space.classes)}
    unknown = sorted(cell for cell, same in spellings.items() if same not in place)
    if unknown:
        raise ConfigurationError(
            f"{unknown[0][:40]!r} in column {name!r} is none of {', '.join(space.classes)}; correct it, or add it",
            field=CLASSES,
        )
    index = {cell: place[same] for cell, same in spellings.items()}
    return np.array([index.get(cell, -1) for cell in cells], dtype=np.int64), space, notes


def _said(classes: tuple[str, ...]) -> LabelSpace:
    try:
        space = LabelSpace(classes=classes)
    except ConfigurationError as exc:
        raise ConfigurationError(str(exc).removeprefix("label space: "), field=CLASSES) from exc
    if len({_same(one) for one in classes}) < len(classes):
        raise ConfigurationError("two classes differ only in case or spaces; name each once", field=CLASSES)
    return space


def _read(spellings: dict[str, str], name: str, rows: int) -> tuple[str, ...]:
    groups: dict[str, list[str]] = defaultdict(list)
    for cell, same in sorted(spellings.items()):
        groups[same].append(cell)
    if len(groups) == 1:
        raise ConfigurationError(
            f"column {name!r} says {min(spellings)[:40]!r} in every row; two classes or more are needed",
            field=FIELD,
        )
    numeric = all(_number(same) is not None for same in groups)
    for alike in groups.values():
        if len(alike) > 1 and not numeric:
            said = ",".join(sorted(group[0] for group in groups.values())[:MAX_CLASSES])
            raise ConfigurationError(
                f"column {name!r} spells one class in {len(alike)} ways ({', '.join(map(repr, alike))}); make them one,"
                f" or say --classes {said}",
                field=FIELD,
            )
    if len(groups) > MAX_READ or (len(groups) > 2 and len(groups) > rows / 5):
        raise ConfigurationError(
            f"column {name!r} has {len(groups)} different values, so it is no class; make ranges of it first (low,"
            f" high), or name up to {MAX_CLASSES} with --classes",
            field=FIELD,
        )
    if numeric:
        return tuple(sorted(groups, key=lambda same: _number(same) or 0.0))
    return tuple(sorted(group[0] for group in groups.values()))


def _same(cell: str) -> str:
    """Spellings of one class give one text: 1, 1.0 and 01; Yes, yes and YES."""
    number = _number(cell)
    return " ".join(cell.split()).casefold() if number is None else f"{number:.15g}"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e15 and "_" not in text else None
