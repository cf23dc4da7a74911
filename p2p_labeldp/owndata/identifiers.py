"""Which columns tell rows apart instead of measuring something: by name, and by values.

A name is looked at by its words, whatever divides them: ``PatientenNr``, ``patient_id``, ``case number``. Values alone
prove nothing, as an income may be as different from row to row as a case number is; so they are worth a note, and a
name, or numbers that count the rows, are worth leaving the column out.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

FEW = 10  # different numbers, below which even what is called an identifier is a category
MIN_ROWS = 20  # below which numbers that are all different say little
EXPECTED_REPEATS = 3
"""Numbers drawn from a range at random would repeat so often; that none does then has a chance of about e^-3."""
SPREAD = 50  # numbers in the range for each row, from which one says whose row it is much as a name does
_WORDS = re.compile(r"(?<=[a-z\u00df-\u00ff0-9])(?=[A-Z][a-z]|ID|NR|PLZ)|[\W_]+")
_ROW = re.compile(r"^(unnamed.*|index|row|row_?(no|number)|nr|no|id|uuid|key|.*_id|id_.*)$")
_WHO = r"(patient(en)?|pat|fall|case)"
_NUMBER = r"(id|nr|no|num|number|nummer|key)"
_NUMBERED = re.compile(
    rf"(^|_){_NUMBER}$|(nr|nummer)$|(^|_){_WHO}_?{_NUMBER}(_|$)|^{_NUMBER}_?{_WHO}$|(^|_)(mrn|ssn|svnr)(_|$)"
)


def words(name: str) -> str:
    """In lower case, with ``_`` between. Capitals only begin one if they look it: FeNO is one word, PatientID two."""
    return _WORDS.sub("_", name).strip("_").casefold()


def is_numbered(name: str) -> bool:
    """Whether a name says that the column numbers something."""
    told = words(name)
    return bool(_ROW.match(told) or _NUMBERED.search(told))


def is_identifier(name: str, values: npt.NDArray[np.float64], *, rows: int) -> bool:
    """Whether a column is to be left out.

    Args:
        name: Of the column.
        values: Shape (m,), m >= 1, those that are no gaps; finite.
        rows: Of the table.
    """
    different = len(np.unique(values))
    whole = _whole(values)
    counted = whole and different == rows and np.ptp(values) == rows - 1
    if different < FEW:
        return bool(counted)
    return bool(counted or _ROW.match(words(name)) or (whole and is_numbered(name)))


def may_be_identifier(values: npt.NDArray[np.float64]) -> bool:
    """Whether whole numbers, of shape (m,), are so different that only who made them knows what they are.

    All differ, and the range holds so few that this is no accident, or so many that each points at its row. In between
    are measurements of few people: twenty-five platelet counts from 150 to 400 may well all differ.
    """
    if len(values) < MIN_ROWS or not _whole(values) or len(np.unique(values)) < len(values):
        return False
    span = float(np.ptp(values)) + 1
    return len(values) * (len(values) - 1) / 2 >= EXPECTED_REPEATS * span or span >= SPREAD * len(values)


def _whole(values: npt.NDArray[np.float64]) -> bool:
    return bool((values == np.floor(values)).all())
