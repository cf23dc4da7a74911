"""The picture of labels_or_updates.py: a panel for each cell, and a map of who wins."""

from __future__ import annotations

import math
from collections.abc import Sequence

from frame import Study, legend_below
from labels_or_updates_contest import (
    CONTENDERS,
    EPSILONS,
    MATES,
    NONE,
    OWN,
    TRUSTED,
    UPDATES,
    Row,
    cells_of,
    contests,
    of,
    title,
)


def draw(table: Sequence[Row], study: Study) -> None:
    """A panel for each cell, and a map of who wins."""
    from matplotlib.colors import ListedColormap

    styles = {
        MATES: ("tab:green", "^", "-"),
        OWN: ("tab:orange", "s", "-"),
        UPDATES: ("tab:blue", "o", "-"),
        TRUSTED: ("tab:blue", "", ":"),
    }
    cells = sorted(cells_of(table), key=lambda cell: (cell[0] != "synthetic", cell[0], cell[1], cell[2]))
    rows = math.ceil((len(cells) + 1) / 3)
    with study.figure(rows, 3, size=(12.5, 3.1 * rows + 0.6)) as (figure, axes):
        for axis in axes.flat[len(cells) + 1 :]:
            axis.remove()
        for axis, cell in zip(axes.flat, cells, strict=False):
            for method, (colour, marker, line) in styles.items():
                curve = of(table, method, cell)
                axis.errorbar(
                    [row.epsilon for row in curve], [row.accuracy for row in curve],
                    yerr=[row.half_width for row in curve] if marker else None, color=colour, ls=line,
                    marker=marker or None, ms=4, capsize=2, label=method,
                )  # fmt: skip
            axis.axhline(of(table, NONE, cell)[0].accuracy, color="0.5", lw=1, label=NONE)
            best = curve[0].best_possible
            if not math.isnan(best):
                axis.axhline(best, color="k", lw=1, ls="--", label="best possible (Bayes)")
            axis.set(xscale="log", title=title(cell), ylim=(0.48, 0.9) if cell[0] == "synthetic" else (0.48, 1.02))
            axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            axis.minorticks_off()
            axis.title.set_fontsize(10)
            axis.grid(alpha=0.25)
        axis = axes.flat[len(cells)]
        played = [contests(table, cell) for cell in cells]
        levels = [contest.own.epsilon for contest in played[0]]
        winners = [[CONTENDERS.index(contest.best) for contest in line] for line in played]
        colours = ListedColormap([styles[method][0] for method in CONTENDERS])
        axis.imshow(winners, cmap=colours, vmin=-0.5, vmax=2.5, aspect="auto", alpha=0.55)
        for y, of_cell in enumerate(played):
            for x, contest in enumerate(of_cell):
                points = 100 * contest.mates.over_updates
                lead = (f"{points:+.0f}" if abs(points) >= 0.5 else "0") + ("" if contest.certain else "?")
                axis.text(x, y, lead, ha="center", va="center", fontsize=7.5)
        axis.set_xticks(range(len(levels)), [f"{epsilon:g}" for epsilon in levels])
        names = [f"{n:,} x {d}" if world == "synthetic" else world for world, n, d in cells]
        axis.set_yticks(range(len(cells)), names, fontsize=7.5)
        axis.set_title("colour: best of three (?: not certain)\nnumber: mates less updates, % points", fontsize=9)
        for axis in axes[:, 0]:
            axis.set_ylabel("accuracy")
        for axis in axes[-1]:
            axis.set_xlabel("ε of a label against the learner")
        legend_below(figure, columns=6)
