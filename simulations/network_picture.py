"""The picture of a study of a network: accuracy over rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from frame import Study
from network_rounds import EPSILONS, HONEST, NOT_PRIVATE, REDUCED, Plan
from network_table import Row, of_curve


def draw(rows: Sequence[Row], study: Study, plan: Plan, title: str) -> None:
    """Accuracy over rounds: both sigmas by level, no privacy, and what a guess would have."""
    with study.figure(size=(8.4, 4.2)) as (_, axis):
        plain = of_curve(rows, NOT_PRIVATE, math.inf)
        axis.plot(plain.keys(), plain.values(), "--", color="0.3", label="not private (clipped)")
        for noise, mark, colour in ((REDUCED, "o-", (0.1, 0.3, 0.75)), (HONEST, "s-", (0.8, 0.1, 0.1))):
            for epsilon, shade in zip(EPSILONS, (0.35, 0.55, 0.75, 0.95), strict=True):
                if line := of_curve(rows, noise, epsilon):
                    name = f"{noise} σ, ε₁ = {epsilon:g}"
                    axis.plot(line.keys(), line.values(), mark, ms=3, color=(*colour, shade), label=name)
        exact = of_curve(rows, REDUCED, max(EPSILONS), "exact")
        axis.plot(exact.keys(), exact.values(), "x", color="k", label=f"every report drawn, ε₁ = {max(EPSILONS):g}")
        axis.axhline(1 / plan.network.dense[-1], ls=":", lw=1, color="0.5", label="a guess")
        axis.set(xlabel="round", ylabel="accuracy on held-out images", title=title)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
