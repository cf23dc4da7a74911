"""One mate that talks to the learner is enough to undo 1/s^2, and rounds of the population engine show it.

Claim: mates that follow the protocol and keep query logs (which members asked them, and whose flipped label they got)
change what holds at delta = 1/s^2 from the epsilon against the learner alone to nearly the local value: a mate asks the
victim with probability 1/s, far above 1/s^2, and then its flipped label is known. Beyond that a coalition of t can do
little: at delta = p (1-f) + 1/s^2, with p = 1 - (1-1/s)^t the probability that it asked the victim, one mate has no
more than the learner alone has at 1/s^2, and no coalition here more than 1.3 times as much. At 1/s^2 the query logs add
nothing to that, since being told the answer is all that counts there; at the larger delta they do, most in a small
cluster (s = 20, f = .1, t = 10: .431 with, .276 without), so numbers without them would promise too much.

Config: s = 20, 100, 1,000; f = .1, .01; t = 0, 1, 2, 5, 10; the accountant exact where its sum is affordable and a
proven bound elsewhere (column ``method``). Measured: seed 40, rounds of the population engine, the victim being member
0 and the coalition members 1 to t; 200,000 rounds of each of two neighbouring data sets (nobody, the victim alone holds
a one), 100,000 for s = 1,000 (--quick: 4,000); the event, fixed beforehand: somebody of the coalition asked the victim,
and its flipped label is 0; confidence .99 a cell.

Expected at delta = 1/s^2, (t = 0, t = 1): s = 1,000, f = .01: .980, 4.594 (tolerance 10^-3; local 4.595). In every cell
measured <= epsilon with logs <= local, and without logs <= with logs; at s = 1,000, f = .01, t = 1 measured exceeds
what holds against the learner alone, so the coalition is no artefact of the accounting. A bound is above the epsilon
with probability below 10^-2 a cell (the event leaves room, which makes it far less).

    python simulations/coalitions.py [--quick] [--out simulations/results]

writes coalitions.csv, .png and .svg (with --quick coalitions_quick.*) and exits with 1 if a cell is not as claimed.
About two minutes on one core, --quick about ten seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

import p2p_labeldp
from frame import Study, legend_below
from p2p_labeldp import population
from p2p_labeldp.accounting import coalition
from p2p_labeldp.accounting.coalition import Coalition
from p2p_labeldp.auditing.lower_bound import Tally, lower_bound
from p2p_labeldp.mechanisms.randomized_response import local_epsilon

SEED = 40
CONFIDENCE = 0.99
SIZES = (20, 100, 1000)
FLIPS = (0.1, 0.01)
MATES = (0, 1, 2, 5, 10)
ROUNDS = {20: 200_000, 100: 200_000, 1000: 100_000}
QUICK_ROUNDS = 4000
BLOCK = 1_000_000  # labels played at a time
EXPECTED = {(1000, 0.01, 0): 0.980, (1000, 0.01, 1): 4.594}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One row of the table. Epsilons are at ``delta`` unless the name says otherwise."""

    cluster_size: int
    flip_probability: float
    colluders: int
    delta: float
    hit_probability: float
    hit_share_measured: float
    epsilon_without_logs: float
    epsilon_with_logs: float
    method: str
    meaningful_delta: float
    epsilon_at_meaningful_delta: float
    epsilon_without_logs_at_meaningful_delta: float
    epsilon_lower: float
    rounds_each: int
    hits: int
    hits_neighbour: int
    confidence: float
    local_epsilon: float
    seed: int = SEED
    version: str = p2p_labeldp.__version__

    @property
    def as_claimed(self) -> bool:
        expected = EXPECTED.get((self.cluster_size, self.flip_probability, self.colluders), self.epsilon_with_logs)
        ordered = self.epsilon_lower <= self.epsilon_with_logs <= self.local_epsilon
        # bounds of the two are found apart, each to 1e-6 of itself
        logs_tell = self.epsilon_without_logs <= self.epsilon_with_logs * (1 + 1e-5)
        trials = 2 * self.rounds_each
        spread = (self.hit_probability * (1 - self.hit_probability) / trials) ** 0.5
        drawn = abs(self.hit_share_measured - self.hit_probability) <= 6 * spread
        return ordered and logs_tell and drawn and abs(self.epsilon_with_logs - expected) <= 1e-3


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the coalition and the learner know of the victim, over rounds.

    Args:
        first_asker: The least number of a mate that asked the victim, of 1 to the largest coalition; beyond it if none
            did. Shape (rounds,).
        flipped: The victim's flipped label, shape (rounds,).
    """

    first_asker: npt.NDArray[np.int64]
    flipped: npt.NDArray[np.uint8]


def play(size: int, flip: float, rounds: int, *, victim: int, number: int) -> Seen:
    """Rounds in which the victim, member 0, holds ``victim`` and everybody else a zero."""
    most = max(1, BLOCK // size)
    askers, bits = [], []
    for block, start in enumerate(range(0, rounds, most)):
        rows = min(most, rounds - start)
        labels = np.zeros((rows, size), dtype=np.uint8)
        labels[:, 0] = victim
        clusters = np.repeat(np.arange(rows), size)
        played = population.play(
            labels.ravel(), clusters, [flip] * rows, seed=SEED, round_number=(number << 16) + block
        )
        asked = played.mates.reshape(rows, size)[:, 1 : max(MATES) + 1] % size == 0
        askers.append(np.where(asked.any(axis=1), asked.argmax(axis=1) + 1, size))
        bits.append(played.flipped.reshape(rows, size)[:, 0])
    return Seen(first_asker=np.concatenate(askers), flipped=np.concatenate(bits))


def cells(size: int, flip: float, rounds: int, number: int) -> list[Cell]:
    """A row for each coalition; all read the same rounds."""
    seen = [play(size, flip, rounds, victim=bit, number=2 * number + bit) for bit in (0, 1)]
    return [cell(size, flip, mates, seen) for mates in MATES]


def cell(size: int, flip: float, mates: int, seen: Sequence[Seen]) -> Cell:
    """One row."""
    delta, rounds = 1 / size**2, seen[0].flipped.size
    told = [int(((part.first_asker <= mates) & (part.flipped == 0)).sum()) for part in seen]
    asked = [int((part.first_asker <= mates).sum()) for part in seen]
    tally = Tally(direction="add", hits=told[0], trials=rounds, hits_neighbour=told[1], trials_neighbour=rounds)
    with_logs = Coalition(cluster_size=size, colluders=mates, flip_probability=flip)
    without = Coalition(cluster_size=size, colluders=mates, flip_probability=flip, query_logs=False)
    hit = with_logs.hit if mates else 0.0
    meaningful = hit * (1 - flip) + delta
    return Cell(
        cluster_size=size,
        flip_probability=flip,
        colluders=mates,
        delta=delta,
        hit_probability=hit,
        hit_share_measured=sum(asked) / (2 * rounds),
        epsilon_without_logs=coalition.epsilon(without, delta),
        epsilon_with_logs=coalition.epsilon(with_logs, delta),
        method="exact" if mates == 0 or coalition.is_exact(with_logs) else "bound",
        meaningful_delta=meaningful,
        epsilon_at_meaningful_delta=coalition.epsilon(with_logs, meaningful),
        # forgetting the logs costs a coalition, so where the sum is too long the bound with logs may be the better one
        epsilon_without_logs_at_meaningful_delta=min(
            coalition.epsilon(without, meaningful), coalition.epsilon(with_logs, meaningful)
        ),
        epsilon_lower=lower_bound(tally, delta=delta, confidence=CONFIDENCE).epsilon_lower,
        rounds_each=rounds,
        hits=told[0],
        hits_neighbour=told[1],
        confidence=CONFIDENCE,
        local_epsilon=local_epsilon(flip),
    )


def draw(table: Sequence[Cell], study: Study) -> None:
    """A panel for each size and flip, by the number of mates."""
    sizes = sorted({cell.cluster_size for cell in table})
    with study.figure(len(FLIPS), len(sizes), size=(9, 5.6), sharex=True, sharey="row", squeeze=False) as (
        figure,
        axes,
    ):
        for row, flip in enumerate(FLIPS):
            for column, size in enumerate(sizes):
                axis = axes[row][column]
                chosen = [cell for cell in table if (cell.cluster_size, cell.flip_probability) == (size, flip)]
                x = np.arange(len(chosen))
                axis.axhline(chosen[0].local_epsilon, color="0.35", linestyle="--", label="local: everyone")
                axis.plot(
                    x, [cell.epsilon_with_logs for cell in chosen], "v-", color="tab:red",
                    label=r"$\varepsilon$ at $1/s^2$, with query logs",
                )  # fmt: skip
                axis.plot(
                    x, [cell.epsilon_without_logs for cell in chosen], "x:", color="black",
                    label=r"$\varepsilon$ at $1/s^2$, without",
                )  # fmt: skip
                axis.plot(  # without a mate nobody is told anything
                    x[1:], [cell.epsilon_lower for cell in chosen[1:]], "^", color="tab:red", mfc="white",
                    label=r"measured at $1/s^2$",
                )  # fmt: skip
                axis.plot(
                    x, [cell.epsilon_at_meaningful_delta for cell in chosen], "o-", color="tab:blue", ms=4,
                    label=r"$\varepsilon$ at $p(1-f) + 1/s^2$, with query logs",
                )  # fmt: skip
                axis.plot(
                    x, [cell.epsilon_without_logs_at_meaningful_delta for cell in chosen], "x:", color="tab:blue", ms=4,
                    label=r"$\varepsilon$ at $p(1-f) + 1/s^2$, without",
                )  # fmt: skip
                axis.set(title=f"s = {size}, f = {flip:g}", ylim=(0, None))
                axis.set_xticks(x, [str(cell.colluders) for cell in chosen])
                axis.grid(alpha=0.25)
                if column == 0:
                    axis.set_ylabel(r"$\varepsilon$ of one label")
                if row == len(FLIPS) - 1:
                    axis.set_xlabel("mates with the learner")
        legend_below(figure, columns=3)


def main() -> int:
    """Runs all cells, writes the table and the figure, says what held."""
    study = Study.from_command_line(__file__, __doc__, quick=f"{QUICK_ROUNDS:,} rounds")
    table: list[Cell] = []
    for size in SIZES:
        for flip in FLIPS:
            for found in cells(size, flip, QUICK_ROUNDS if study.quick else ROUNDS[size], len(table)):
                table.append(found)
                print(
                    f"s {size:<5d} f {flip:<5g} t {found.colluders:<3d}{found.epsilon_lower:8.4f} <= "
                    f"{found.epsilon_with_logs:7.4f} <= {found.local_epsilon:7.4f}  "
                    f"without logs {found.epsilon_without_logs:7.4f}  "
                    f"at {found.meaningful_delta:.2e} {found.epsilon_at_meaningful_delta:7.4f}, without logs "
                    f"{found.epsilon_without_logs_at_meaningful_delta:7.4f}  {found.method}",
                    flush=True,
                )
    study.write_table(asdict(cell) for cell in table)
    draw(table, study)
    failures = [
        f"s {cell.cluster_size} f {cell.flip_probability:g} t {cell.colluders}: not as claimed"
        for cell in table
        if not cell.as_claimed
    ]
    by_key = {(cell.cluster_size, cell.flip_probability, cell.colluders): cell for cell in table}
    failures += [
        f"s {size} f {flip:g}: one mate, at its own delta, has more than the learner alone"
        for size in SIZES
        for flip in FLIPS
        if by_key[size, flip, 1].epsilon_at_meaningful_delta > by_key[size, flip, 0].epsilon_with_logs
    ]
    if by_key[1000, 0.01, 1].epsilon_lower <= by_key[1000, 0.01, 0].epsilon_with_logs and not study.quick:
        failures.append("the coalition was not seen: what is measured is within the learner's own epsilon")
    return study.verdict(failures, held=f"{len(table)} cells as claimed")


if __name__ == "__main__":
    sys.exit(main())
