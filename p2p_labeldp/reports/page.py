"""The report of one run or several as one HTML page: nothing is fetched, nothing runs, and it prints.

The page is made of totals, sizes and times (``kept_run`` lets nothing else through), so it can be shown to anybody who
may know that the round took place.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from p2p_labeldp.reports import comparison, sections
from p2p_labeldp.reports.kept_run import KeptRun
from p2p_labeldp.reports.plots import Band
from p2p_labeldp.reports.style import STYLE


def render(runs: Sequence[KeptRun], measured: Sequence[Sequence[Band]]) -> str:
    """The page.

    Args:
        runs: At least one.
        measured: Measurements kept with each run; none where there are none.
    """
    title = "Label privacy report: " + ", ".join(run.name for run in runs)
    parts = [f"<h1>{escape(title)}</h1>", _introduction()]
    if len(runs) > 1:
        parts.append(comparison.comparison(runs))
    for number, (run, bands) in enumerate(zip(runs, measured, strict=True), start=1):
        parts.append(sections.section(run, f"r{number}", bands, headed=len(runs) > 1))
    parts.append(_ending())
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="color-scheme" content="light dark">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{STYLE}</style>'
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body><main>\n'
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def _introduction() -> str:
    return (
        "<p>A <strong>label</strong> is the one sensitive fact about a person that is to be protected, a diagnosis for"
        " example. This page says how much others can learn about a person's label from a round of learning, and from"
        " whom that is protected. It shows totals only: no participant's label, and nothing of who asked whom.</p>"
    )


def _ending() -> str:
    return (
        "<footer><p>Guarantees are worst cases, computed and rounded up, after Esfandiari, Mirrokni, Syed and"
        " Vassilvitskii, <cite>Label differential privacy via clustering</cite> (arXiv 2110.02159). This page describes"
        " a run; it does not decide whether the protection is enough for a purpose.</p></footer>"
    )
