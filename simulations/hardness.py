"""No label mechanism names who holds what, in small clusters of many labels, better than a curve that privacy draws.

Claim: on the task of section 6 of arXiv 2110.02159v1, pairs (cluster, label), no mechanism here beats the curve below,
whichever way its release is read, for r eps .5 to 6; true labels beat it everywhere, and so does UniformRR where it is
run at eps + 1. The curve is attained: UniformRR meets it with one member a cluster. Precision is bought with larger
clusters: the curve goes with r eps, r the members that share a label. Of what is reached, that of the mechanisms whose
curator counts labels rises with r; the others, in which everybody randomizes alone, hardly gain at eps = .5.

The task: each cluster has m of K labels, drawn uniformly, each held by r members (s = m r). A reading of the release
names labels; precision is the share of those named that are present, recall the share of those present that are
named, both over all clusters. The curve [derived]: exchange a present label k for an absent one, which changes r
labels; so T = P(k named | present) and F = P(k named | absent) have

    T <= e^(r eps) F + delta_r,    delta_r = delta (e^(r eps) - 1)/(e^eps - 1),

whence, precision being m T/(m T + (K-m) F),

    precision <= m e^(r eps) / (m e^(r eps) + K - m)        at delta = 0, whenever recall is above 0.

Algorithm 2 has delta = 1/s^2, so its curve is m T/(m T + (K-m) (T - delta_r)/e^(r eps)) with the T it shows: higher,
and 1 where T <= delta_r. In clusters this small that matters: with m = 4, r = 1, eps = .5 it has .31, above the .29 of
the curve of delta = 0, by what delta = 1/16 allows.

Config: K = 20; (m, r) = (1, 1), (4, 1), (4, 4) with r eps = .5 to 6, and m = 4, eps = .5, r = 1 to 12; 4,000 clusters
a cell (--quick: 800, r eps to 4), seed 80. ClusterRR with floor .01 and half of eps for the counts, UniformRR,
RRWithPrior with priors of one stage and of two, Algorithm 2 (s >= 4; its flip is the least at (eps, 1/s^2)). Readings:
told at all; told by half of r or more; the m told most; the one told most; the m of largest released probability
(ClusterRR).

Expected and tolerance: the mean over clusters of TP/m - e^(r eps) FP/(K-m) - delta_r is at most 5 of its standard
errors for every private row (some 300; a healthy run fails with probability 1e-4) and above 5 for the two controls,
and within 5 of 0 for UniformRR at m = r = 1. At eps = .5, m = 4 the best precision of ClusterRR is below .3 at r = 1
and above .4 at r = 12, where UniformRR stays .1 below it or more; the curve has .29 and .99.

    OPENBLAS_NUM_THREADS=1 python simulations/hardness.py [--quick] [--out simulations/results]

writes hardness.csv, .png and .svg (with --quick hardness_quick.*) and exits with 1 if a claim fails. About a minute on
one core, --quick ten seconds.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

import p2p_labeldp
from frame import Study, legend_below
from p2p_labeldp import population, randomness
from p2p_labeldp.accounting import multiclass
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.accounting.planning import least_flip
from p2p_labeldp.mechanisms.cluster_rr import ClusterRR
from p2p_labeldp.mechanisms.no_privacy import NoPrivacy
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.mechanisms.staged_rr import OneStageRR, TwoStageRR
from p2p_labeldp.mechanisms.uniform_rr import UniformRR

SEED = 80
K = 20
MOST_Z = 5.0
EXPONENTS = (0.5, 1.0, 2.0, 4.0, 6.0)
"""r eps."""
FIXED_EPSILON = 0.5
TRUE, CHEAT, PEERS = "true labels", "UniformRR at eps + 1", "Algorithm 2"
UNIFORM, CLUSTER, ONE_STAGE, TWO_STAGES = "UniformRR", "ClusterRR", "RRWithPrior, one stage", "RRWithPrior, two stages"
CONTROLS = (TRUE, CHEAT)
ANY, HALF, TOP, FIRST, PROBABLE = "told", "told by half", "told most, m", "told most, one", "most probable, m"

Labels = npt.NDArray[np.int64]
Named = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked in one cell.

    Args:
        panel: Where it is drawn.
        present: m.
        members: r.
        epsilon: Of one label.
    """

    panel: str
    present: int
    members: int
    epsilon: float

    @property
    def size(self) -> int:
        """s."""
        return self.present * self.members

    @property
    def group(self) -> float:
        """e^(r eps)."""
        return math.exp(self.members * self.epsilon)

    def draw(self, clusters: int, rng: np.random.Generator) -> Labels:
        """True labels, shape (clusters, s)."""
        labels = rng.permuted(np.tile(np.arange(K), (clusters, 1)), axis=1)[:, : self.present]
        return np.repeat(labels, self.members, axis=1)

    def group_delta(self, delta: float) -> float:
        """delta_r."""
        return delta * (self.group - 1) / math.expm1(self.epsilon)

    def curve(self, *, delta: float = 0.0, recall: float = 1.0) -> float:
        """The highest precision at that recall."""
        absent = (K - self.present) * max(0.0, recall - self.group_delta(delta)) / self.group
        return self.present * recall / (self.present * recall + absent) if recall else 1.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table."""

    panel: str
    present: int
    members: int
    cluster_size: int
    epsilon: float
    delta: float
    mechanism: str
    reading: str
    precision: float
    precision_error: float
    recall: float
    curve: float
    z_score: float
    clusters: int
    seed: int = SEED
    version: str = p2p_labeldp.__version__


def tasks(quick: bool) -> Iterator[Task]:
    """All cells; few clusters don't show what is rare at r eps = 6."""
    for present, members in ((1, 1), (4, 1), (4, 4)):
        for exponent in EXPONENTS[:-1] if quick else EXPONENTS:
            panel = f"m = {present}, r = {members}"
            yield Task(panel=panel, present=present, members=members, epsilon=exponent / members)
    for members in (1, 2, 4, 8, 12):
        yield Task(panel="by r", present=4, members=members, epsilon=FIXED_EPSILON)


@lru_cache
def flip_for(size: int, epsilon: float) -> float:
    """Algorithm 2's least flip that is certified at (epsilon, 1/s^2) for K labels."""

    def holds(flip: float) -> bool:
        classes = Classes(cluster_size=size, num_classes=K, flip_probability=flip)
        return multiclass.epsilon(classes, 1 / size**2) <= epsilon

    return least_flip(holds, K)


def central(task: Task) -> Iterator[tuple[str, LabelMechanism | TwoStageRR]]:
    """Everything that is played in one place, the controls first."""
    epsilon = task.epsilon
    yield TRUE, NoPrivacy(num_classes=K)
    if task.size == 1:
        yield CHEAT, UniformRR.calibrated(num_classes=K, epsilon=epsilon + 1)
    yield UNIFORM, UniformRR.calibrated(num_classes=K, epsilon=epsilon)
    yield CLUSTER, ClusterRR.calibrated(num_classes=K, epsilon=epsilon, floor=0.01)
    yield ONE_STAGE, OneStageRR.calibrated(num_classes=K, epsilon=epsilon)
    yield TWO_STAGES, TwoStageRR(num_classes=K, epsilon=epsilon)


def releases(
    task: Task, labels: Labels, seed: int
) -> Iterator[tuple[str, float, Labels, npt.NDArray[np.float64] | None]]:
    """Name, delta, told labels of shape (clusters, s) and, of ClusterRR, probabilities of shape (clusters, K)."""
    clusters = np.repeat(np.arange(len(labels)), task.size)
    rng = randomness.curator(seed)
    for name, mechanism in central(task):
        coins = random.Random(rng.random())  # noqa: S311  a study is replayable
        released = mechanism.release(labels.ravel(), clusters, count=len(labels), rng=coins)
        yield name, 0.0, released.labels.reshape(labels.shape), released.distributions if name == CLUSTER else None
    if task.size >= 4:
        flips = [flip_for(task.size, task.epsilon)] * len(labels)
        played = population.play(labels.ravel(), clusters, flips, seed=seed, num_classes=K)
        yield PEERS, 1 / task.size**2, played.reports.astype(np.int64).reshape(labels.shape), None


def readings(task: Task, told: Labels, probabilities: npt.NDArray[np.float64] | None) -> Iterator[tuple[str, Named]]:
    """Labels named in each cluster, shape (clusters, K); ties go by label, which says nothing: labels are random."""
    counts = tally(told)
    yield ANY, counts > 0
    if task.members > 1:
        yield HALF, 2 * counts >= task.members
    if task.present > 1:
        yield TOP, largest(counts, task.present) & (counts > 0)
        yield FIRST, largest(counts, 1)
    if probabilities is not None:
        yield PROBABLE, largest(probabilities, task.present)


def tally(labels: Labels) -> Labels:
    """How often each label is told in each cluster, shape (clusters, K)."""
    rows = np.arange(len(labels))[:, None] * K
    return np.bincount((rows + labels).ravel(), minlength=K * len(labels)).reshape(len(labels), K)


def largest(scores: npt.NDArray[np.int64] | npt.NDArray[np.float64], count: int) -> Named:
    """Where the ``count`` largest of each row are."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    named = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(named, best, True, axis=1)
    return named


def measure(task: Task, *, clusters: int, seed: int) -> Iterator[Row]:
    """A row for each mechanism and reading."""
    labels = task.draw(clusters, randomness.numpy_generator(seed, randomness.Stream.DATA))
    true = tally(labels) > 0
    for name, delta, told, probabilities in releases(task, labels, seed):
        for reading, named in readings(task, told, probabilities):
            hits, misses = (named & true).sum(axis=1), (named & ~true).sum(axis=1)
            found = int(named.sum())
            precision = hits.sum() / found if found else math.nan
            recall = hits.mean() / task.present
            excess = hits / task.present - task.group * misses / (K - task.present) - task.group_delta(delta)
            yield Row(
                panel=task.panel,
                present=task.present,
                members=task.members,
                cluster_size=task.size,
                epsilon=task.epsilon,
                delta=delta,
                mechanism=name,
                reading=reading,
                precision=float(precision),
                precision_error=float(np.std(hits - precision * (hits + misses)) * math.sqrt(clusters) / max(1, found)),
                recall=float(recall),
                curve=task.curve(delta=delta, recall=float(recall)),
                z_score=standard_score(excess),
                clusters=clusters,
            )


def standard_score(excess: npt.NDArray[np.float64]) -> float:
    """The mean in standard errors; infinite where a positive mean has none, as that of true labels."""
    mean, error = float(excess.mean()), float(excess.std(ddof=1)) / math.sqrt(len(excess))
    return mean / error if error else math.copysign(math.inf, mean) if mean else 0.0


def failures(table: Sequence[Row]) -> Iterator[str]:
    """What of the claim does not hold."""
    for row in table:
        where = f"{row.mechanism} ({row.reading}), {row.panel}, eps {row.epsilon:g}, r {row.members}"
        shown = f"precision {row.precision:.3f}, curve {row.curve:.3f}, z {row.z_score:.1f}"
        if row.mechanism in CONTROLS:
            if not row.z_score > MOST_Z:
                yield f"{where}: does not beat the curve, so nothing is shown by those that don't; {shown}"
        elif not row.z_score <= MOST_Z:
            yield f"{where}: beats the curve; {shown}"
        elif row.mechanism == UNIFORM and row.cluster_size == 1 and not row.z_score >= -MOST_Z:
            yield f"{where}: does not attain the curve; {shown}"
    by_members = {row.members: row.precision for row in best(table, "by r", CLUSTER)}
    if not by_members[1] < 0.3 < 0.4 < by_members[12]:
        yield f"ClusterRR at r = 1 and 12 has precision {by_members[1]:.3f} and {by_members[12]:.3f}"
    alone = best(table, "by r", UNIFORM)[-1].precision
    if not alone < by_members[12] - 0.1:
        yield f"UniformRR at r = 12 has precision {alone:.3f}, ClusterRR {by_members[12]:.3f}"


def best(table: Sequence[Row], panel: str, mechanism: str) -> list[Row]:
    """In each cell the reading with the highest precision."""
    found: dict[tuple[float, int], Row] = {}
    for row in table:
        key = (row.epsilon, row.members)
        if (row.panel, row.mechanism) == (panel, mechanism) and not row.precision <= (
            found[key].precision if key in found else -1.0
        ):
            found[key] = row
    return list(found.values())


def draw(table: Sequence[Row], study: Study) -> None:
    """A panel each; of the readings that with the highest precision."""
    styles = {
        TRUE: ("0.4", "x"), CHEAT: ("0.4", "+"), UNIFORM: ("tab:orange", "s"), CLUSTER: ("tab:blue", "o"),
        ONE_STAGE: ("tab:purple", "D"), TWO_STAGES: ("tab:brown", "v"), PEERS: ("tab:green", "^"),
    }  # fmt: skip
    panels = list(dict.fromkeys(row.panel for row in table))
    with study.figure(1, len(panels), size=(15, 4.6), sharey=True) as (figure, axes):
        for axis, panel in zip(axes, panels, strict=True):
            along = "members" if panel == "by r" else "epsilon"
            ticks = sorted({getattr(row, along) for row in table if row.panel == panel})
            for name, (colour, marker) in styles.items():
                rows = best(table, panel, name)
                x = [getattr(row, along) for row in rows]
                errors = [1.96 * row.precision_error for row in rows]
                line = "none" if name in CONTROLS else "-"
                axis.errorbar(
                    x, [row.precision for row in rows], yerr=errors, color=colour, marker=marker, ms=5, ls=line,
                    capsize=2, label=name,
                )  # fmt: skip
                if name == UNIFORM:
                    axis.plot(x, [row.curve for row in rows], "--", color="tab:red", label="curve, δ = 0")
                elif name == PEERS and rows:
                    axis.plot(x, [row.curve for row in rows], ":", color="tab:green", label="curve, Algorithm 2's δ")
            axis.set(xscale="log", xlabel="members a label, r" if along == "members" else "ε", ylim=(0, 1.05))
            axis.set_title(f"m = 4, ε = {FIXED_EPSILON:g}" if panel == "by r" else panel)
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
            axis.grid(alpha=0.25)
        axes[0].set_ylabel("precision")
        legend_below(figure, columns=5)
        figure.suptitle(f"Naming the labels of small clusters, K = {K}: the best reading of each release", fontsize=11)


def main() -> int:
    """Runs all cells, writes the table and the figure, says what held."""
    study = Study.from_command_line(__file__, __doc__, quick="800 clusters a cell, r eps up to 4")
    table: list[Row] = []
    for number, task in enumerate(tasks(study.quick)):
        for row in measure(task, clusters=800 if study.quick else 4000, seed=SEED * 1000 + number):
            table.append(row)
            print(
                f"{row.panel:<14} r {row.members:<3d}eps {row.epsilon:<6g}{row.mechanism:<24}{row.reading:<17}"
                f"precision {row.precision:.3f} <= {row.curve:.3f}  recall {row.recall:.3f}  z {row.z_score:8.2f}",
                flush=True,
            )
    study.write_table(asdict(row) for row in table)
    draw(table, study)
    return study.verdict(failures(table), held=f"all claims hold in {len(table)} rows")


if __name__ == "__main__":
    sys.exit(main())
