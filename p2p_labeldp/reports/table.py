"""The result of one run for a terminal.

What a bound promises is never printed smaller than it is: epsilons and deltas are rounded up.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from p2p_labeldp.results import ClusterResult, Result, ViewResult

STUDY = "study: no privacy for these labels"
UNVERIFIED = "unverified: the data are not the published ones"
SCOPE = "protects labels, not features"
HELD_OUT = "the accuracy is of held-out rows, whose labels are not protected"
VIEWS = {
    "learner": "learner alone",
    "learner+1": "learner with 1 mate",
    "learner+all": "learner with everyone",
    "mates": "mates alone",
    "curator": "the curator",
}


def show(result: Result, *, title: str, file: IO[str]) -> None:
    """Writes the table; without colour where ``file`` is no terminal."""
    Console(file=file, highlight=False, soft_wrap=True).print(render(result, title=title))


def render(result: Result, *, title: str) -> RenderableType:
    """The table as rich knows it. Its end is what to remember: the scope, and each cluster's guarantee."""
    parts: list[RenderableType] = [Text(title, style="bold")]
    if result.study:
        parts.append(Text(f"{STUDY} (whoever knows seed {result.seed} knows every flip)", style="bold red"))
    if result.unverified:
        parts.append(Text(UNVERIFIED, style="bold red"))
    parts += [Text(), _summary(result), Text(), _views(result.views), Text()]
    if not result.study and result.accuracy.private is not None:
        parts.append(Text(HELD_OUT))
    parts += [Text(SCOPE, style="bold"), _clusters(result.clusters)]
    if any(math.isinf(cluster.epsilon) for cluster in result.clusters):
        parts.append(Text("inf: no privacy at this flip probability", style="bold red"))
    return Group(*parts)


def _summary(result: Result) -> Text:
    accuracy = result.accuracy
    models = {"private": accuracy.private, "non-private": accuracy.non_private, "majority": accuracy.majority}
    rows = {
        "peers": str(result.peers),
        "outcomes": ", ".join(f"{count} {name}" for name, count in result.outcomes.items()),
        "accuracy": ", ".join(
            f"{name} {_share(value)}" for name, value in models.items() if value is not None or name == "private"
        ),
        "seconds": ", ".join(f"{name} {seconds:.1f}" for name, seconds in result.seconds.items()),
    }
    if result.messages is not None:
        size = "" if result.bytes is None else f", {result.bytes / 1e6:,.1f} MB"
        rows["messages"] = f"{result.messages:,}{size}"
    return Text("\n".join(f"{name:<10}{value}" for name, value in rows.items()))


def _views(views: list[ViewResult]) -> Text:
    """Who learns what, the worst of all clusters. Lines, since a table would cut the method to a terminal's width."""
    rows = [("who learns what", "epsilon", "at delta", "how it is known")]
    for view in views:
        delta = "0" if view.delta == 0 else digits_up(view.delta)
        rows.append((VIEWS.get(view.view, view.view), places_up(view.epsilon), delta, view.method))
    return Text("\n".join(f"{who:<21}  {epsilon:>7}  {delta:>8}  {method}" for who, epsilon, delta, method in rows))


def _clusters(clusters: list[ClusterResult]) -> Table:
    """Both epsilons in columns of one style: the local one is no footnote."""
    table = Table(box=None, padding=(0, 0, 0, 2), pad_edge=False, header_style="")
    for name in ("cluster", "size", "flip", "epsilon", "at delta", "local epsilon"):
        table.add_column(name, justify="right", no_wrap=True)
    for cluster in clusters:
        table.add_row(
            str(cluster.id),
            str(cluster.size),
            "-" if cluster.flip_probability is None else f"{cluster.flip_probability:.5g}",
            places_up(cluster.epsilon),
            "0" if cluster.delta == 0 else digits_up(cluster.delta),
            places_up(cluster.local_epsilon),
        )
    return table


def _share(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def places_up(value: float) -> str:
    """Three decimals, rounded up."""
    return "inf" if math.isinf(value) else str(Decimal(value).quantize(Decimal("0.001"), rounding=ROUND_CEILING))


def digits_up(value: float) -> str:
    """Three significant digits, rounded up."""
    # The shortest decimal that means this number: its exact binary value may lie a hair above a round one.
    return f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(value)):.2e}"
