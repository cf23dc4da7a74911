"""Figures fit for a paper: PNG, SVG and PDF of the same drawing, text as text, the same bytes for the same numbers.

The only importer of matplotlib, which takes a second; its windows are never opened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMATS = ("png", "svg", "pdf")
_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "pdf.fonttype": 42,  # letters that stay letters; some journals refuse Type 3
    "svg.fonttype": "none",
    "svg.hashsalt": "p2p_labeldp",
}
_WITHOUT_DATE: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
BAND, SHUFFLE, LOCAL, MODEL = "tab:blue", "tab:orange", "0.35", "tab:green"


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """What is drawn at one cluster size.

    Args:
        cluster_size: s.
        measured: Lower bound on epsilon.
        exact: Upper bound, of resampling.
        shuffle: Upper bound, of a trusted shuffler.
        local: Upper bound against everyone.
        accuracy: Of models trained on reports; None if there is none.
        accuracy_non_private: Of models trained on true labels.
    """

    cluster_size: int
    measured: float
    exact: float
    shuffle: float
    local: float
    accuracy: float | None = None
    accuracy_non_private: float | None = None


def bands_against_size(bands: Sequence[Band], *, title: str) -> Any:
    """[measured, exact] as a band, the shuffle and the local value as lines; accuracy beside, if there is any.

    Args:
        bands: By cluster size; infinite epsilons are left out.
        title: Says what was measured, at which delta and confidence.

    Returns:
        A matplotlib figure, not bound to any window.
    """
    import matplotlib
    from matplotlib.figure import Figure

    modelled = [band for band in bands if band.accuracy is not None]
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(7.0 if modelled else 4.6, 3.6), layout="constrained")
        axes = figure.subplots(1, 2 if modelled else 1, squeeze=False)[0]
        _draw_epsilons(axes[0], [band for band in bands if math.isfinite(band.exact)])
        if modelled:
            _draw_accuracy(axes[1], modelled)
        figure.suptitle(title, fontsize=9)
        # below, since wherever the curves of one study leave room, those of another run
        handles = [handle for axis in axes for handle in axis.get_legend_handles_labels()[0]]
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=3 if modelled else 2)
    return figure


def save(figure: Any, path: Path) -> list[Path]:
    """Writes ``path`` with each of ``FORMATS`` as its suffix, whole or not at all; returns what was written."""
    import matplotlib

    written = []
    with matplotlib.rc_context(_STYLE):
        for kind in FORMATS:
            target = path.with_suffix(f".{kind}")
            partial = target.with_name(f".{target.name}.partial")
            figure.savefig(partial, format=kind, dpi=200, metadata=_WITHOUT_DATE[kind])
            partial.replace(target)
            written.append(target)
    return written


def _draw_epsilons(axis: Any, bands: Sequence[Band]) -> None:
    if not bands:
        axis.text(0.5, 0.5, r"no flips: $\varepsilon$ is infinite", transform=axis.transAxes, ha="center")
        return
    sizes = [band.cluster_size for band in bands]
    measured, exact = [band.measured for band in bands], [band.exact for band in bands]
    axis.plot(sizes, [band.local for band in bands], "--", color=LOCAL, label=r"local, $\ln((1-f)/f)$")
    axis.plot(
        sizes, [band.shuffle for band in bands], "s-", color=SHUFFLE, markersize=3.5, label="trusted shuffler, exact"
    )
    axis.fill_between(sizes, measured, exact, color=BAND, alpha=0.2, linewidth=0)
    axis.plot(sizes, exact, "v-", color=BAND, markersize=4.5, label="resampling, exact")
    axis.plot(sizes, measured, "^-", color=BAND, markersize=4.5, markerfacecolor="white", label="resampling, measured")
    axis.set(xscale="log", xlabel="cluster size $s$", ylabel=r"$\varepsilon$ of one label")
    axis.set_ylim(0, None)
    _sizes_as_ticks(axis, sizes)


def _draw_accuracy(axis: Any, bands: Sequence[Band]) -> None:
    sizes = [band.cluster_size for band in bands]
    axis.plot(
        sizes, [band.accuracy_non_private for band in bands], ":", color=MODEL, label="accuracy, trained on true labels"
    )
    axis.plot(
        sizes,
        [band.accuracy for band in bands],
        "o-",
        color=MODEL,
        markersize=4.5,
        label="accuracy, trained on reports",
    )
    axis.set(xscale="log", xlabel="least cluster size $s$", ylabel="accuracy on held-out rows")
    _sizes_as_ticks(axis, sizes)


def _sizes_as_ticks(axis: Any, sizes: Sequence[int]) -> None:
    if 0 < len(sizes) <= 10:
        axis.set_xticks(sizes, [str(size) for size in sizes], rotation=45 if len(sizes) > 6 else 0)
        axis.minorticks_off()
