"""What a table gives away that its owner may not think of.

``warnings`` looks at names and features only, so what it says may be passed on. ``diagnostics`` reads the labels too:
what it says is for the screen of whoever holds the table, is not private, and is kept nowhere.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import numpy.typing as npt

from p2p_labeldp.owndata.columns import Features, is_missing
from p2p_labeldp.owndata.identifiers import is_numbered, words
from p2p_labeldp.owndata.reading import Rows

TELLS = 0.98
"""Share of rows whose label one column tells, from which it is named."""
_BINS = 32
_PERSON = re.compile(
    r"(?i)(patient|person|subject|user|customer|client|member|participant|case|student|employee|pat|fall|mrn|ssn|svnr)"
)
_PLACE = re.compile(r"(^|_)(plz|zip)|post(al|leitzahl|_?code)")
_PERSONAL = re.compile(r"(?i)(name|mail|phone|telefon|address|adresse|street|stra(ss|ß)e|birth|ssn|iban|passport)")


def warnings(rows: Rows, found: Features, *, label: str) -> list[str]:
    """From names and features alone, a line each."""
    said = []
    kept = set(found.source)
    for name in rows.names:
        if name != label and name in kept and (_PERSONAL.search(name) or _PLACE.search(words(name))):
            said.append(f"{name!r} may say who somebody is: features are public; --leave-out takes it out")
    stem = re.sub(r"[\W_]", "", label.casefold())
    for name in sorted(kept):
        if len(stem) > 2 and stem in re.sub(r"[\W_]", "", name.casefold()):
            said.append(f"{name!r} is called like the label: if it tells it, no label is protected; --leave-out it")
    most = max((_repeats(rows, name) for name in rows.names if name != label and _names_people(name)), default=(1, ""))
    if most[0] > 1:
        said.append(
            f"{most[1]!r} repeats, up to {most[0]} rows for one: the guarantee is for one row, and {most[0]} times"
            " weaker for whoever has that many; keep one row a person"
        )
    matrix = found.matrix()
    same = len(matrix) - len(np.unique(matrix, axis=0))
    if same:
        said.append(
            f"rows with the features of another row: {same}; if they are the same person, that label leaves more than"
            " once: keep one row a person"
        )
    return said


def diagnostics(
    features: npt.NDArray[np.float64], names: tuple[str, ...], labels: npt.NDArray[np.integer]
) -> list[str]:
    """Which single features tell the label. READS LABELS: for the local screen only.

    Args:
        features: Shape (n, d).
        names: Of the features.
        labels: Shape (n,).
    """
    commonest = np.bincount(labels).max() / len(labels)
    said = []
    for name, column in zip(names, features.T, strict=True):
        told = _told(column, labels)
        if told >= TELLS and told - commonest > (1 - commonest) / 2:
            said.append(
                f"{name!r} alone tells the label of {told:.0%} of the rows: features are public, so these labels are as"
                " good as published; leave it out unless everybody may know it"
            )
    return said


def _told(column: npt.NDArray[np.float64], labels: npt.NDArray[np.integer]) -> float:
    """Share of rows that the commonest label of their value, or of their range, gets right."""
    values, place = np.unique(column, return_inverse=True)
    bins = min(_BINS, max(2, len(labels) // 20))
    if len(values) > bins:
        cuts = np.quantile(column, np.arange(1, bins) / bins)
        place = np.searchsorted(cuts, column)
    counts = np.zeros((int(place.max()) + 1, int(labels.max()) + 1), dtype=np.int64)
    np.add.at(counts, (place, labels), 1)
    return float(counts.max(axis=1).sum() / len(labels))


def _names_people(name: str) -> bool:
    return is_numbered(name) and bool(_PERSON.search(name))


def _repeats(rows: Rows, name: str) -> tuple[int, str]:
    present = [cell for cell in rows.columns[rows.names.index(name)] if not is_missing(cell)]
    return max(Counter(present).values(), default=1), name
