"""Somebody's own table as a data set: a text file with a header in, features and labels out.

- ``reading``: bytes to rows of text: encoding, separator, quotes
- ``columns``: columns of text to numbers, labels unseen; which are left out, and why
- ``identifiers``: which of them tell rows apart instead of measuring something
- ``classes``: the label column
- ``pitfalls``: what a table gives away that its owner may not think of
- ``table``: all of it

Everything is done with the standard library and NumPy. What can't be read for certain is refused in one sentence that
says what to do: a table that is silently misread makes a guarantee about something else.
"""

from p2p_labeldp.owndata.columns import Choices
from p2p_labeldp.owndata.pitfalls import diagnostics
from p2p_labeldp.owndata.table import NAME, OwnTable, from_arrays, load

__all__ = ["load", "from_arrays", "diagnostics", "OwnTable", "Choices", "NAME"]
