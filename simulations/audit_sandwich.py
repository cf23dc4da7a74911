"""What an attacker measures lies below the exact guarantee, and that below the local one.

Claim: for cluster sizes 10 to 1,000 and flips .25, .1, .01 the population engine's reports (Algorithm 2 of
arXiv 2110.02159v1) give lower <= exact <= local in every cell: the lower bound is what the best test on the learner's
view finds in a million rounds of each of two neighbouring data sets (nobody, one member holds a one), the exact epsilon
is the accountant's over all data sets, the local one is ln((1 - f)/f). The audit knows nothing of the accountant.

Config: seed 20, 10^6 rounds of each data set (--quick: 20,000, sizes 10, 50, 200), confidence .99 a cell, direction and
tail fixed from the laws before the rounds. Two deltas: 1/s^2, the one that is promised, where the gap is inherent in
large clusters (an event as rare as delta can't be told from nothing), and 1/(10 s), where a million rounds can be
expected to reach half of the exact epsilon in every cell. The figure shows intervals, never a plug-in ratio.

Expected: every cell ordered; conformance passes in all 21; at 1/(10 s) at least 20 of 21 cells, at 1/s^2 at least 16 of
21 reach half of the exact epsilon (the laws predict 21, the least with .50, and 18). Expected and measured bound differ
by less than 0.1 in every cell. Cells: (s = 100, f = .1): exact .7299, expected .58 at 1/s^2; (1000, .01): .9801, .81;
(1000, .25): .0965, .03.
Tolerance: a bound is above the exact epsilon with probability below 10^-3 a cell; a healthy engine fails the
conformance with probability 10^-9 a cell.

    python simulations/audit_sandwich.py [--quick] [--out simulations/results]

writes audit_sandwich.csv, .png and .svg (with --quick audit_sandwich_quick.*) and exits with 1 if a cell is out of
order. About five minutes on one core, --quick a few seconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

import p2p_labeldp
from frame import Study
from p2p_labeldp.accounting import resampling
from p2p_labeldp.auditing.audit import SHOWN_LABELS, nobody_or_everybody, tally
from p2p_labeldp.auditing.conformance import conformance
from p2p_labeldp.auditing.distinguisher import best_event
from p2p_labeldp.auditing.lower_bound import lower_bound, union_bound_alpha
from p2p_labeldp.auditing.observed import OnesSample
from p2p_labeldp.engine_source import PopulationSource
from p2p_labeldp.mechanisms.randomized_response import local_epsilon

SEED = 20
CONFIDENCE = 0.99
SIZES = (10, 20, 50, 100, 200, 500, 1000)
FLIPS = (0.25, 0.1, 0.01)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One row of the table."""

    cluster_size: int
    flip_probability: float
    delta_rule: str
    delta: float
    rounds_each: int
    direction: str
    threshold: int
    hits: int
    hits_neighbour: int
    expected_epsilon_lower: float
    epsilon_lower: float
    confidence: float
    exact_epsilon: float
    local_epsilon: float
    conformance_verdict: str
    least_p_value: float
    seed: int = SEED
    version: str = p2p_labeldp.__version__

    @property
    def ordered(self) -> bool:
        return self.epsilon_lower <= self.exact_epsilon <= self.local_epsilon

    @property
    def reaches_half(self) -> bool:
        return self.epsilon_lower >= self.exact_epsilon / 2


def cells(size: int, flip: float, rounds: int) -> Iterator[Cell]:
    """The row of each delta; both read the same rounds, with events of their own."""
    engine = PopulationSource(cluster_size=size, flip_probability=flip, seed=SEED, first_round=1)
    events = {
        (rule, delta): best_event(
            cluster_size=size,
            flip_probability=flip,
            trials=rounds,
            delta=delta,
            alpha=union_bound_alpha(CONFIDENCE),
        )
        for rule, delta in (("1/s^2", 1 / size**2), ("1/(10 s)", 1 / (10 * size)))
    }
    samples = [OnesSample(cluster_size=size, ones=k, counts=engine.draw_ones(ones=k, rounds=rounds)) for k in (0, 1)]
    shown = engine.draw_rounds(labels=nobody_or_everybody(min(rounds, SHOWN_LABELS // size), size))
    found = conformance(*samples, shown, flip_probability=flip)
    for (rule, delta), event in events.items():
        bound = lower_bound(tally(event, *samples), delta=delta, confidence=CONFIDENCE)
        yield Cell(
            cluster_size=size,
            flip_probability=flip,
            delta_rule=rule,
            delta=delta,
            rounds_each=rounds,
            direction=bound.direction,
            threshold=event.threshold,
            hits=bound.tally.hits,
            hits_neighbour=bound.tally.hits_neighbour,
            expected_epsilon_lower=round(event.expected_epsilon_lower, 6),
            epsilon_lower=round(bound.epsilon_lower, 6),
            confidence=CONFIDENCE,
            exact_epsilon=resampling.epsilon(cluster_size=size, flip_probability=flip, delta=delta),
            local_epsilon=local_epsilon(flip),
            conformance_verdict=found.verdict.value,
            least_p_value=float(f"{min(found.p_values.values()):.3g}"),
        )


def draw(table: list[Cell], study: Study) -> None:
    """One panel for each flip: intervals [lower, exact] for both deltas, and the local epsilon."""
    flips = sorted({cell.flip_probability for cell in table}, reverse=True)
    styles = {
        "1/s^2": ("tab:blue", 0.93, r"$\delta = 1/s^2$"),
        "1/(10 s)": ("tab:orange", 1.08, r"$\delta = 1/(10\,s)$"),
    }
    with study.figure(1, len(flips), size=(11, 3.8)) as (figure, axes):
        for axis, flip in zip(axes, flips, strict=True):
            chosen = [cell for cell in table if cell.flip_probability == flip]
            axis.axhline(chosen[0].local_epsilon, color="0.4", linestyle="--", label=r"local, $\ln((1-f)/f)$")
            for rule, (colour, shift, name) in styles.items():
                rows = [cell for cell in chosen if cell.delta_rule == rule]
                x = np.array([cell.cluster_size for cell in rows]) * shift
                low = np.array([cell.epsilon_lower for cell in rows])
                exact = np.array([cell.exact_epsilon for cell in rows])
                axis.vlines(x, low, exact, color=colour, alpha=0.45, linewidth=4)
                axis.plot(x, exact, "v", color=colour, markersize=6, label=f"exact, {name}")
                axis.plot(x, low, "^", color=colour, markersize=6, markerfacecolor="white", label=f"measured, {name}")
            axis.set(xscale="log", title=f"f = {flip:g}", xlabel="cluster size s", ylim=(0, None))
            axis.grid(alpha=0.25)
        axes[0].set_ylabel(r"$\varepsilon$ of one cluster, learner's view")
        axes[0].legend(fontsize=8, loc="upper right", bbox_to_anchor=(1.0, 0.93))
        rounds = table[0].rounds_each
        figure.suptitle(
            f"Measured lower bound ({CONFIDENCE:.0%} confidence, {rounds:,} rounds of each data set) "
            "and exact guarantee",
            fontsize=11,
        )


def main() -> int:
    """Runs all cells, writes the table and the figure, says what held."""
    study = Study.from_command_line(__file__, __doc__, quick="20,000 rounds, three sizes")
    sizes, rounds = ((10, 50, 200), 20_000) if study.quick else (SIZES, 1_000_000)
    table = []
    for flip in FLIPS:
        for size in sizes:
            for cell in cells(size, flip, rounds):
                table.append(cell)
                print(
                    f"f {flip:<5g} s {size:<5d} delta {cell.delta_rule:<9}{cell.epsilon_lower:8.4f} <= "
                    f"{cell.exact_epsilon:7.4f} <= {cell.local_epsilon:7.4f}  "
                    f"expected {cell.expected_epsilon_lower:7.4f}  conformance {cell.conformance_verdict}",
                    flush=True,
                )
    study.write_table(asdict(cell) for cell in table)
    draw(table, study)
    for rule in sorted({cell.delta_rule for cell in table}):
        half = [cell.reaches_half for cell in table if cell.delta_rule == rule]
        print(f"delta {rule}: {sum(half)} of {len(half)} cells reach half of the exact epsilon")
    gap = max(math.fabs(cell.epsilon_lower - cell.expected_epsilon_lower) for cell in table)
    print(f"measured minus expected: {gap:.3f} at most")
    wrong = (cell for cell in table if not cell.ordered or cell.conformance_verdict != "pass")
    return study.verdict(
        (f"f {cell.flip_probability:g} s {cell.cluster_size} delta {cell.delta_rule}: not in order" for cell in wrong),
        held=f"{len(table)} cells in order",
    )


if __name__ == "__main__":
    sys.exit(main())
