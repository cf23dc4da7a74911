"""The figures of a page, each with the words for who can't see it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from p2p_labeldp.auditing.lower_bound import clopper_pearson_high, clopper_pearson_low
from p2p_labeldp.reports import drawing, markup, profiles
from p2p_labeldp.reports.drawing import Row, Series
from p2p_labeldp.reports.kept_run import RESAMPLING, KeptRun, Phase
from p2p_labeldp.reports.plots import Band
from p2p_labeldp.reports.profiles import Profile
from p2p_labeldp.reports.table import places_up

CONFIDENCE = 0.95
MOST_COLUMNS = 400
"""Bars of clusters; of more clusters every so-manyth is drawn."""
SIZE = "members of the cluster"
RIGHT = "share of held-out rows labelled rightly"


def timeline(phases: Sequence[Phase], *, key: str, simulated: bool) -> str:
    """When what happened."""
    lines = [
        Row(name=phase.name, start=phase.begin, value=phase.end, text=f"{phase.end - phase.begin:.1f} s")
        for phase in phases
    ]
    total = phases[-1].end
    clock = " Its clock was simulated." if simulated else ""
    return markup.figure(
        drawing.rows(lines, most=total, label="seconds since the round opened"),
        key=f"{key}-timeline",
        title="Phases of the round",
        said="; ".join(f"{phase.name} from {phase.begin:.1f} to {phase.end:.1f} s" for phase in phases),
        caption=f"The phases of the round, which took {total:.1f} seconds.{clock}",
    )


def sizes(ascending: Sequence[int], *, key: str) -> str:
    """Of the clusters."""
    count, middle = len(ascending), ascending[len(ascending) // 2]
    drawn = [ascending[number * count // MOST_COLUMNS] for number in range(MOST_COLUMNS)]
    clusters = "cluster" if count == 1 else "clusters"
    said = f"{count:,} {clusters}; members of the smallest: {ascending[0]:,}, of the middle one: {middle:,}, of the"
    said += f" largest: {ascending[-1]:,}."
    return markup.figure(
        drawing.columns(
            ascending if count <= MOST_COLUMNS else drawn, x_label="clusters, the smallest first", y_label="members"
        ),
        key=f"{key}-sizes",
        title="Sizes of the clusters",
        said=said,
    )


def by_size(run: KeptRun, *, key: str) -> str:
    """Epsilon of each cluster."""
    clusters = run.result.clusters
    alone = [(cluster.size, cluster.epsilon) for cluster in clusters]
    everyone = [(cluster.size, cluster.local_epsilon) for cluster in clusters]
    series = [Series(name="learner alone", style="learner", points=alone, line=False)]
    if any(math.isfinite(value) for _, value in everyone):
        series.append(Series(name="learner with everyone", style="local", points=everyone, line=False))
    curve = profiles.by_size(run)
    said = f"Epsilon of each cluster against its size. {_range('Against the learner alone', alone)}"
    said += f" {_range('Against the learner with everyone', everyone)}" if len(series) > 1 else ""
    if curve:
        series.append(Series(name="same chance of change, other sizes", style="other", points=curve))
        said += (
            " The curve shows what size does: it is for the learner alone at δ one in the square of the size, for the"
            " chance of change of the worst cluster, if nobody fails to answer."
        )
    return markup.figure(
        drawing.curves(series, x_log=True, x_label=SIZE, y_label="epsilon"),
        key=f"{key}-by-size",
        title="Epsilon against cluster size",
        said=said,
    )


def profile(run: KeptRun, found: Profile, *, key: str) -> str:
    """Delta of the worst cluster as a function of epsilon; nothing where neither curve is known."""
    if not found.learner and not found.local:
        return ""
    cluster = found.cluster
    series = [Series(name="promised", style="measured", points=[(cluster.epsilon, cluster.delta)], line=False)]
    if found.learner:
        series.insert(0, Series(name="learner alone", style="learner", points=_visible(found.learner)))
    if found.local:
        series.append(Series(name="learner with everyone", style="local", points=_visible(found.local)))
    said = f"Every ε has its δ. For cluster {cluster.id} ({cluster.size:,} members), where the guarantee is weakest,"
    said += f" ε = {markup.epsilon(cluster.epsilon)} is promised with δ = {markup.delta(cluster.delta)}; a lower curve"
    said += " is better."
    if found.learner and not found.losses and run.mechanism == RESAMPLING:
        said += " The curve is that of a round in which nobody fails to answer; the promise allows for losses."
    if found.bound:
        said += " With more than two labels the curve is a bound, which is proved, and may be more than is lost."
    return markup.figure(
        drawing.curves(series, y_log=True, x_label="epsilon", y_label="delta"),
        key=f"{key}-profile",
        title="Delta against epsilon in the worst cluster",
        said=said,
    )


def measured(bands: Sequence[Band], *, key: str) -> str:
    """Lower bounds beside exact values, by size."""
    said = "How much the best test really told, in many repeated rounds, beside what it can tell at most. A measured"
    said += " value is a lower bound: it is no guarantee, but one above the exact value would point to an error."
    above = [band for band in bands if band.measured > band.exact]
    said += f" {len(above)} of {len(bands)} lie above." if above else " None lies above."
    series = [
        Series(name="exact", style="learner", points=[(band.cluster_size, band.exact) for band in bands]),
        Series(name="measured", style="measured", points=[(b.cluster_size, b.measured) for b in bands], line=False),
        Series(name="learner with everyone", style="local", points=[(b.cluster_size, b.local) for b in bands]),
    ]
    return markup.figure(
        drawing.curves(series, x_log=True, x_label=SIZE, y_label="epsilon"),
        key=f"{key}-measured",
        title="Measured and exact epsilon",
        said=said,
    )


def accuracy(lines: Sequence[Row], *, intervals: bool, key: str) -> str:
    """Of one run's model, and what it is compared with."""
    said = "; ".join(f"{line.name} {line.text}" for line in lines)
    bars = f" Lines are {CONFIDENCE:.0%} binomial intervals for a model as it is." if intervals else ""
    return markup.figure(
        drawing.rows(lines, most=1.0, dots=True, label=RIGHT),
        key=f"{key}-accuracy",
        title="Accuracy on held-out rows",
        said=said,
        caption=f"Accuracy: {said}.{bars}",
    )


def accuracies(lines: Sequence[Row]) -> str:
    """Of several runs' models."""
    said = "; ".join(f"{line.name} {line.text}" for line in lines)
    return markup.figure(
        drawing.rows(lines, most=1.0, dots=True, label=RIGHT),
        key="compared",
        title="Accuracy of the runs",
        said=said,
        caption=f"Accuracy of the models trained on reports: {said}.",
    )


def dot(name: str, share: float, rows: int | None) -> Row:
    """A share of so many rows, with its interval if their number is known."""
    if not rows:
        return Row(name=name, value=share, text=f"{share:.3f}")
    low, high = interval(share, rows)
    return Row(name=name, value=share, text=f"{share:.3f} ({low:.3f}{markup.HYPHEN}{high:.3f})", interval=(low, high))


def interval(share: float, rows: int) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval of a share of so many independent rows, at ``CONFIDENCE``."""
    right, alpha = round(share * rows), (1 - CONFIDENCE) / 2
    return float(clopper_pearson_low(right, rows, alpha)), float(clopper_pearson_high(right, rows, alpha))


def _visible(curve: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without what would only stretch the axis."""
    return [(epsilon, delta) for epsilon, delta in curve if delta >= 1e-9]


def _range(who: str, points: Sequence[tuple[float, float]]) -> str:
    values = [value for _, value in points if math.isfinite(value)]
    low, high = places_up(min(values, default=math.inf)), places_up(max(values, default=math.inf))
    return f"{who} it is {high}." if low == high else f"{who} it is between {low} and {high}."
