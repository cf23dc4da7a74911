"""Pieces of HTML that every part of a page is made of, and how its numbers are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from p2p_labeldp.reports import drawing, words
from p2p_labeldp.reports.drawing import Drawing
from p2p_labeldp.reports.table import digits_up, places_up

HYPHEN = "\N{NON-BREAKING HYPHEN}"
"""Where a line must not end."""


def epsilon(value: float) -> str:
    """Rounded up."""
    return "unlimited" if math.isinf(value) else places_up(value)


def delta(value: float) -> str:
    """Rounded up, and as one in so many; no line ends within the number."""
    if value == 0:
        return "0"
    return f"{digits_up(value).replace('-', HYPHEN)} ({words.one_in(value)})"


def figure(drawn: Drawing, *, key: str, title: str, said: str, caption: str | None = None) -> str:
    """A drawing in its frame.

    Args:
        drawn: What is shown.
        key: Names the figure; unique on its page.
        title: What it is.
        said: What a reader sees in it, in words: for who can't see it.
        caption: Below it, for everybody; the same by default.
    """
    svg = drawing.framed(drawn, key=key, title=title, description=said)
    return f"<figure>{svg}<figcaption>{escape(said if caption is None else caption)}</figcaption></figure>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str) -> str:
    """A table whose first column names its rows."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads) if any(heads) else ""
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    head = f"<thead><tr>{top}</tr></thead>" if top else ""
    return f'<div class="table"><table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table></div>'
