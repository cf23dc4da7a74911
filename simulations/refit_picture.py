"""The picture of ``refit_pretrained.py``: images and words by round; images by level; what is gained by cohort."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from frame import Study
from network_rounds import HONEST, NOT_PRIVATE, REDUCED
from refit_table import EIGHTH, LEVELS, MIDDLE, SWEPT, Row, cohorts, levels, of, share
from refit_tasks import IMAGES, NARROW, PARAMETERS, WORDS


def draw(rows: Sequence[Row], study: Study) -> None:
    """Images and words by round; images by level; what is gained by cohort."""
    with study.figure(2, 2, size=(11, 8.2)) as (_, ((left, right), (by_level, by_cohort))):
        for axis, task in ((left, IMAGES), (right, WORDS)):
            _draw_rounds(axis, rows, task)
        left.set(ylabel="accuracy on held-out clothes", ylim=(0, 0.82))
        left.set_title("Images: digits' network refitted to clothes, d = 10,250", fontsize=10)
        right.set(ylabel="perplexity on held-out chapters (lower is better)", ylim=(31.8, 40.5))
        right.set_title("Words: New Testament's model refitted to the Old, d = 8,192", fontsize=10)
        for task, colour in ((IMAGES, "tab:blue"), (NARROW, "tab:orange")):
            shown = levels(PARAMETERS[task])
            for noise, line in ((HONEST, "o-"), (REDUCED, "o:")):
                y = [of(rows, task, noise, epsilon)[-1].accuracy for epsilon in shown]
                by_level.plot(shown, y, line, ms=4, color=colour, label=f"d = {PARAMETERS[task]:,}, {noise} σ")
            plain = of(rows, task, NOT_PRIVATE, math.inf)[-1].accuracy
            by_level.axhline(plain, ls="--", lw=0.9, color=colour)
            by_level.axvline(shown[-1], lw=0.7, color=colour, alpha=0.5)
        by_level.set(xscale="log", xlabel="ε₁ (vertical: d/8; dashed: not private)", ylabel="accuracy at the end")
        by_level.set_title("Images: all features, and 128 public axes of them", fontsize=10)
        for task, colour in ((IMAGES, "tab:blue"), (NARROW, "tab:orange"), (WORDS, "tab:green")):
            x = cohorts(rows, task)
            for noise, line in ((HONEST, "o-"), (REDUCED, "o:")):
                y = [share(rows, of(rows, task, noise, SWEPT, cohort=cohort)) for cohort in x]
                by_cohort.plot(x, y, line, ms=4, color=colour, label=f"{task}, {noise} σ")
        by_cohort.axhline(0, color="k", lw=0.8)
        by_cohort.axhline(1, color="k", lw=0.8, ls="--")
        by_cohort.set(xscale="log", xlabel="expected cohort", ylabel="share of the gain without privacy")
        by_cohort.set_title(f"Which cohort the honest σ takes, ε₁ = {SWEPT:g}", fontsize=10)
        for axis in (left, right, by_level, by_cohort):
            axis.grid(alpha=0.25)
            axis.legend(fontsize=7.5, ncols=2 if axis is right else 1)


def _draw_rounds(axis: Any, rows: Sequence[Row], task: str) -> None:
    def line(found: Sequence[Row], style: str, **more: Any) -> None:
        y = [math.exp(row.loss) if task == WORDS else row.accuracy for row in found]
        axis.plot([row.round for row in found], y, style, ms=3, **more)

    line(of(rows, task, NOT_PRIVATE, math.inf), "k--", label="not private (clipped)")
    names = [f"{epsilon:g}" for epsilon in LEVELS] + [f"d/{EIGHTH}"]
    shown = list(zip(levels(PARAMETERS[task]), names, strict=True))
    for (epsilon, name), colour in zip(shown, ("#fdae61", "#f46d43", "#c51b3a", "#67001f"), strict=True):
        line(of(rows, task, HONEST, epsilon), "o-", color=colour, label=f"honest σ, ε₁ = {name}")
    for (epsilon, name), colour in zip(shown, ("#9ecae1", "#6baed6", "#3182bd", "#08306b"), strict=True):
        line(of(rows, task, REDUCED, epsilon), "-", lw=1, color=colour, label=f"reduced σ, ε₁ = {name}")
    line(of(rows, task, HONEST, MIDDLE, mode="exact"), "x", color="k", label=f"every report drawn, ε₁ = {MIDDLE:g}")
    axis.set(xlabel="round (0: not refitted)")
