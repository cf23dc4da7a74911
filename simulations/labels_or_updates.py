"""Labels or updates? Both pipelines on the same people, at one guarantee for a label against the learner.

Claim: (1) *updates* are nowhere for certain the best of the three, nor ahead of *own flip*; what it takes them to come
within .02 of it grows with d and falls with n (the table's header): epsilon .5 to 2 at d = 2, 2 to 16 at d = 10, 8 or
more than 16 at d = 50. (2) Up to epsilon 1 *mates* are nowhere behind *updates*, and up to .5 they are ahead of *own
flip* where clusters tell something of labels and flips cost something: on digits, and at d = 2 with 500 people. (3)
From epsilon 4 on *mates* are nowhere ahead of *own flip*, and behind *updates* where clusters tell nothing (d = 50, and
d = 10 with 500 people): what they lose then is no flip but the mixing of unlike people, which no epsilon buys back.

So: if features may be seen, send labels: through mates below epsilon 1, if clusters mean something and mates are
trusted; else one's own flip. Updates are for features that must be hidden too, and then take many people, few
dimensions or a large epsilon.

Where the expectation is not what happens: labels with mates were expected to win wherever epsilon is small, and at
d = 50 without clusters one's own flip beats them at every epsilon. On breast-cancer up to epsilon 1 *updates* have a
higher mean than *own flip* (.81 against .70 at .25; not certain): that is the fit, not the message. The same flips give
.87 by one step along the mean, which is what such updates are, where the ordinary loss follows the noise of 398 labels.

What "equal guarantee" means here. Each person has one example (x, y). The learner sees every message by name. Two data
sets are neighbours if one *label* differs; what the learner sees may tell them apart by epsilon at most.

- *labels, mates*: Algorithm 2 (arXiv 2110.02159v1). Features are public; flip once, resample within public clusters,
  fit with the ordinary loss. (epsilon, 1/s^2) against the learner by the exact accountant, a cluster of s members. It
  trusts mates not to help the learner: against the learner with all of them the level is ln((1-f)/f), in the table.
- *updates*: private rounds (arXiv 1812.00984). A report of level eps1 + eps2 hides the whole example, hence the label;
  t reports of one person spend t (eps1 + eps2), which is held to epsilon, pure. Sampling and the learner's noise
  protect against those who see models only, and nothing shuffles: against the learner itself nothing is amplified. It
  trusts nobody and hides features too: it protects *more*, and what it loses is the price of that.
- *labels, own flip*: what is between. Everybody flips its own label once with probability 1/(1 + e^epsilon) and sends
  it with its features: pure epsilon, nobody trusted. Updates that hide the label alone come down to it: a gradient is
  a function of public features, the public model and the label, so from a label flipped once and kept it is
  post-processing in any number of rounds. It is also what the first pipeline falls back to without mates to trust.
- *updates, trusted learner* (a further curve, another guarantee): clipped gradients as they are, Gaussian noise by the
  learner for central (epsilon, 1/n^2) of a whole example, 30 full rounds. Only where the learner may see everything.

Each pipeline of the first three has the best plan of its list for each cell and epsilon, at no charge in privacy: a
gift to whoever has the longer list, which is *updates* (PLANS: rounds, step, epsilon's share for the direction or all
of it and no magnitude sent, 1 or 4 participations, clipping; *mates*: 8, 32 or 128 clusters, of at least 15 of the rows
that are clustered and 30 on average; *own flip*: nothing to choose). Plans are chosen on other trials; up to epsilon 1
and n = 4000, where few of those can't tell plans from guessing, in hindsight on the reported ones, which flatters the
longer list again.

Config: synthetic, x ~ N(0, I_d), P(y = 1 | x) = 1/(1 + e^(-4 <u, x>)), u a random direction: no clusters in the
features, the worst that can happen to mates. n = 500, 4000, 16000; d = 2, 10, 50. Accuracies are exact integrals, and
so is the best possible one (Bayes). Real: breast-cancer and digits (even or odd), three tenths held out anew in each
trial. epsilon .25 to 16. Clusters by KMeans on at most 4,000 rows of features. 10 trials and 3 (where n = 16000: 2) to
choose plans (--quick: 4 and 1, fewer cells and levels). Intervals are Student's, of paired differences where two are
compared, and widened for trials that share rows (``comparing.interval``). Seed 93.

Expected and tolerance: "ahead" and "behind" mean that the 95 % interval of the paired difference is beyond .01; each
claim is over all cells.

    OPENBLAS_NUM_THREADS=1 python simulations/labels_or_updates.py [--quick] [--out simulations/results]

writes labels_or_updates.csv, .png and .svg (with --quick labels_or_updates_quick.*) and exits with 1 if a claim fails.
About three minutes of CPU time on one core, --quick 15 seconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import t as student

from frame import Study
from labels_or_updates_contest import (
    EPSILONS,
    MATES,
    METHODS,
    NONE,
    OWN,
    TRUSTED,
    UPDATES,
    Row,
    cells_of,
    failures,
    summary,
)
from labels_or_updates_people import People, World, bayes_accuracy
from labels_or_updates_picture import draw
from labels_or_updates_pipelines import (
    CLUSTERS,
    FIT_ROWS,
    PLANS,
    Plan,
    by_mates,
    by_own_flip,
    by_trusted_learner,
    by_updates,
    learnt,
)


def half_width(values: Sequence[float], overlap: float) -> float:
    """Of the 95 % interval of a mean over trials."""
    trials = len(values)
    spread = math.sqrt((1 / trials + overlap) * float(np.var(values, ddof=1)))
    return float(student.ppf(0.975, trials - 1)) * spread


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plans of a cell at one level."""

    clusters: int
    updates: Plan


def in_hindsight(world: World, epsilon: float) -> bool:
    """Whether plans are chosen on the reported trials: where a few others can't tell them from guessing."""
    return epsilon <= 1 and world.people <= FIT_ROWS


def choose(tuning: Sequence[People], epsilon: float) -> Chosen:
    """The best on some trials."""
    return Chosen(
        clusters=max(CLUSTERS, key=lambda count: sum(by_mates(one, epsilon, count)[0] for one in tuning)),
        updates=max(PLANS, key=lambda plan: sum(by_updates(one, epsilon, plan) for one in tuning)),
    )


def measure(world: World, epsilons: Sequence[float], *, trials: int, tuning: int) -> Iterator[Row]:
    """All pipelines at all levels, on the same people."""
    everybody = [world.trial(number) for number in range(trials)]
    if world.people > FIT_ROWS:
        tuning = min(tuning, 2)  # enough where so many people make trials alike
    others = [world.trial(1000 + number) for number in range(tuning)]
    without = [learnt(people, people.y) for people in everybody]
    for epsilon in epsilons:
        chosen = choose(everybody if in_hindsight(world, epsilon) else others, epsilon)
        mates = [by_mates(people, epsilon, chosen.clusters) for people in everybody]
        found = {
            MATES: [accuracy for accuracy, _, _, _ in mates],
            OWN: [by_own_flip(people, epsilon) for people in everybody],
            UPDATES: [by_updates(people, epsilon, chosen.updates) for people in everybody],
            TRUSTED: [by_trusted_learner(people, epsilon) for people in everybody],
            NONE: without,
        }
        plans = {MATES: f"{np.mean([count for _, _, _, count in mates]):.0f} clusters", UPDATES: str(chosen.updates)}
        deltas = {MATES: max(delta for _, delta, _, _ in mates), TRUSTED: 1 / world.people**2}
        with_mates = {MATES: max(level for _, _, level, _ in mates), OWN: epsilon, UPDATES: epsilon}
        for method in METHODS:
            over = {
                rival: [a - b for a, b in zip(found[method], found[rival], strict=True)] for rival in (UPDATES, OWN)
            }
            yield Row(
                world=world.name,
                people=world.people,
                dimension=world.dimension,
                epsilon=math.inf if method == NONE else epsilon,
                method=method,
                plan=plans.get(method, ""),
                delta=deltas.get(method, 0.0),
                epsilon_with_mates=with_mates.get(method, math.inf),
                accuracy=float(np.mean(found[method])),
                half_width=half_width(found[method], world.overlap),
                over_updates=float(np.mean(over[UPDATES])),
                over_updates_half=half_width(over[UPDATES], world.overlap),
                over_own=float(np.mean(over[OWN])),
                over_own_half=half_width(over[OWN], world.overlap),
                best_possible=bayes_accuracy() if world.name == "synthetic" else math.nan,
                trials=trials,
            )


def worlds(quick: bool) -> Iterator[World]:
    """What is run, cheap cells first."""
    yield World(name="breast-cancer", people=398, dimension=30)
    if not quick:
        yield World(name="digits", people=1257, dimension=64)
    cells = [(500, 10), (4000, 2), (4000, 10)] if quick else [(n, d) for n in (500, 4000, 16000) for d in (2, 10, 50)]
    for n, d in cells:
        yield World(name="synthetic", people=n, dimension=d)


def main() -> int:
    """Runs all cells, writes the table and the figure, says what held."""
    study = Study.from_command_line(__file__, __doc__, quick="4 trials, fewer cells and levels")
    levels, trials, tuning = ((0.5, 2.0, 8.0), 4, 1) if study.quick else (EPSILONS, 10, 3)
    table: list[Row] = []
    for world in worlds(study.quick):
        for row in measure(world, levels, trials=trials, tuning=tuning):
            table.append(row)
            print(
                f"{row.world:<14}n {row.people:<6d} d {row.dimension:<3d} eps {row.epsilon:<5g}{row.method:<25}"
                f"{row.accuracy:.3f} +- {row.half_width:.3f}  {row.plan}",
                flush=True,
            )
    lines = list(summary(table))
    study.write_table((asdict(row) for row in table), header=lines)
    draw(table, study)
    print("\n".join(lines))
    return study.verdict(failures(table, quick=study.quick), held=f"all claims hold in {len(cells_of(table))} cells")


if __name__ == "__main__":
    sys.exit(main())
