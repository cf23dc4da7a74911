"""What the table of Figure 1 shows: means with intervals, who leads whom, and the picture."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95
PLACE = tuple[str, str, float, int]
"""Data set, curve, epsilon, clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean, or a difference of means, and its interval of ``CONFIDENCE`` by Student's t."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> str:
        """``+`` or ``-`` where the interval is on one side of 0, else ``0``."""
        return "+" if self.low > 0 else "-" if self.high < 0 else "0"


class Shape:
    """The table.

    Intervals are over trials: coins and starts of KMeans. Training and test rows are the same in all of them.

    Args:
        rows: As the CSV has them.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        found: dict[PLACE, list[float]] = defaultdict(list)
        verified = {}
        for row in rows:
            place = (str(row["dataset"]), str(row["curve"]), float(row["epsilon"]), int(row["clusters"]))
            found[place].append(float(row["normalised_accuracy"]))
            verified[place[0]] = str(row["verified"]) == "True"
            if place[1] == "none":
                self.usual_clusters = place[3]
        self._found = {place: np.array(values) for place, values in found.items()}
        self.unverified = [name for name, is_published in verified.items() if not is_published]
        self.datasets = list(verified)

    def levels(self, dataset: str, curve: str) -> list[float]:
        """Epsilons with the usual number of clusters, ascending."""
        return sorted({e for d, c, e, k in self._found if (d, c, k) == (dataset, curve, self.usual_clusters)})

    def counts(self, dataset: str, curve: str, epsilon: float) -> list[int]:
        """Numbers of clusters, ascending."""
        return sorted({k for d, c, e, k in self._found if (d, c, e) == (dataset, curve, epsilon)})

    def mean(self, dataset: str, curve: str, epsilon: float, clusters: int | None = None) -> Estimate:
        """Normalised accuracy."""
        from scipy import stats

        values = self._found[dataset, curve, epsilon, clusters or self.usual_clusters]
        half = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
        return Estimate(mean=float(values.mean()), low=float(values.mean() - half), high=float(values.mean() + half))

    def lead(self, dataset: str, first: str, second: str, epsilon: float) -> Estimate:
        """Normalised accuracy of the first curve less that of the second, the trials taken as independent (Welch)."""
        from scipy import stats

        ours, theirs = (self._found[dataset, curve, epsilon, self.usual_clusters] for curve in (first, second))
        interval = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(CONFIDENCE)
        return Estimate(mean=float(ours.mean() - theirs.mean()), low=float(interval.low), high=float(interval.high))

    def signs(self, dataset: str, first: str, second: str) -> str:
        """The sign of the lead at each level."""
        return "".join(self.lead(dataset, first, second, level).sign for level in self.levels(dataset, first))


NAMES = {
    "cluster_rr": "ClusterRR (curator)",
    "one_stage": "RRWithPrior, one stage (curator)",
    "two_stage": "RRWithPrior, two stages (nobody)",
    "uniform_rr": "UniformRR (nobody)",
    "resampling": r"Algorithm 2, $(\varepsilon, 1/s^2)$ (nobody)",
    "dp_sgd": "DP-SGD, subsampled (trainer)",
    "iteration": "DP-SGD, by iteration (trainer)",
}
"""And who is trusted with the labels."""

_LOOKS: dict[str, dict[str, Any]] = {
    "cluster_rr": {"color": "tab:blue", "marker": "o"},
    "one_stage": {"color": "tab:cyan", "marker": "D"},
    "two_stage": {"color": "tab:olive", "marker": "d"},
    "uniform_rr": {"color": "tab:orange", "marker": "s"},
    "resampling": {"color": "tab:red", "marker": "v"},
    "dp_sgd": {"color": "black", "marker": "^", "linestyle": "--"},
    "iteration": {"color": "0.55", "marker": "x", "linestyle": "--"},
}
_LINES = ("-", "--", ":")


def draw(shape: Shape, figure: Any, axes: Any, *, by_clusters: tuple[str, ...], epsilon: float) -> None:
    """A panel for each data set by epsilon, and one by the number of clusters at one ``epsilon``, on a 2 x 2 grid."""
    panels = list(axes.flat)
    for dataset, axis in zip(shape.datasets, panels, strict=False):
        for curve, name in NAMES.items():
            levels = shape.levels(dataset, curve)
            _line(axis, levels, [shape.mean(dataset, curve, level) for level in levels], label=name, **_LOOKS[curve])
        mark = ", unverified" if dataset in shape.unverified else ""
        axis.set(title=f"{dataset}{mark}, {shape.usual_clusters} clusters", xscale="log", xlabel=r"$\varepsilon$")
        axis.set_xticks(levels, [f"{level:g}" for level in levels], minor=False)
        axis.minorticks_off()
    for axis in panels[len(shape.datasets) : -1]:
        axis.set_visible(False)
    last = panels[-1]
    for dataset, line in zip(shape.datasets, _LINES, strict=False):
        for curve in by_clusters:
            counts = shape.counts(dataset, curve, epsilon)
            points = [shape.mean(dataset, curve, epsilon, count) for count in counts]
            look = _LOOKS[curve] | {"linestyle": line}
            _line(last, counts, points, label=f"{NAMES[curve].split(',')[0].split(' (')[0]}, {dataset}", **look)
    last.set(title=rf"$\varepsilon$ = {epsilon:g}", xscale="log", xlabel="number of clusters")
    last.set_xticks(counts, [str(count) for count in counts], minor=False)
    last.minorticks_off()
    last.legend(fontsize=7, frameon=False)
    for axis in panels:
        axis.set_ylim(0, 1.02)
        axis.grid(alpha=0.25)
    for axis in axes[:, 0]:
        axis.set_ylabel("accuracy / non-private accuracy")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def _line(axis: Any, x: list[Any], points: list[Estimate], **look: Any) -> None:
    middle = [point.mean for point in points]
    spread = [[point.mean - point.low for point in points], [point.high - point.mean for point in points]]
    axis.errorbar(x, middle, yerr=spread, ms=4, lw=1.3, elinewidth=0.8, capsize=2, **look)
