"""Excess risk against n, phi and eps, on distributions whose true risk is known in closed form.

Claim: (1) with homogeneous clusters the excess risk of ClusterRR and of Algorithm 2 (arXiv 2110.02159v1) falls as
n^(-1/2), the exponent of the paper's O~(sqrt(d/(eps n)) + phi), and so do UniformRR's and that of the true labels: here
ClusterRR pays at most 1.5 times the true labels' excess, UniformRR 2 times or more. (2) With heterogeneity phi
ClusterRR and Algorithm 2 stay at a floor proportional to phi (exponent 1), however many rows; UniformRR, which is
unbiased, has none and passes them. (3) eps hardly matters to ClusterRR and Algorithm 2 where clusters are large, and
UniformRR's excess grows as 1/eps below 1. (4) Every excess of ClusterRR and Algorithm 2 is below
sqrt(d/(eps n)) + max(phi, 1/(s eps^2)), the paper's bound with constant 1 and without logarithms, under its condition
s >= 1/(phi eps^2).

Where the paper's exponents are not what happens: they are a worst case. Logistic loss, being curved, has n^(-1) on the
same releases; and Algorithm 2's eps^(-1/2) is not seen in these large clusters. What is seen is its flip, .096 at
eps .1 and at most .034 from .2 on, which makes an exponent of about -.1.

Config: K = 2. C = 11 equal clusters of s members, 4 cells each; X is a cell, one weight a cell (d = 44). In cell j
P(Y = 1) = (1 + g_j)/2. Hinge loss 1 - y w, y = +-1, |w| <= 1, whose minimiser on soft targets t is the sign of
t - 1/2 and whose excess risk is 2 sum_j P(j) |g_j| [sign wrong]; logistic loss with |w| <= 4 likewise. No solver, no
test sample. Every margin: |g| = .8/2^j in cluster j, so at each n some margin is hardest, and one distribution has the
worst case's exponent. Wide: |g| = .8, estimation is easy, and what remains is bias. Heterogeneity: one cell of each
cluster, of mass a, has -g; phi = 4 a (1-a) mean |g| (heterogeneity.py computes the same). The floor tau is phi/4, .01
where phi = 0; half of ClusterRR's eps is spent on counts; Algorithm 2's flip is the least at (eps, 1/s^2).
(1) every margin, s = 2^9 to 2^15, eps .5; (2) the same at a = .05, and s = 2^13, wide, a = .0025 to .08; (3) every
margin, s = 2^13, eps .1 to 1. Seed 70, 160 runs a cell (--quick: 12, fewer cells).

Expected and tolerance: exponents of hinge loss -.5 in n, 1 in phi, and in eps -1 (UniformRR), 0 (ClusterRR) and -.1
(Algorithm 2), each within .1; logistic -1 in n within .15 (--quick: .3 for all). Fits are weighted least squares on
logarithms of means; their 95 % intervals are in the table's header.

    OPENBLAS_NUM_THREADS=1 python simulations/excess_risk.py [--quick] [--out simulations/results]

writes excess_risk.csv, .png and .svg (with --quick excess_risk_quick.*) and exits with 1 if a claim fails. About 75
seconds on one core, --quick ten.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

import p2p_labeldp
from frame import Study
from p2p_labeldp import population, randomness
from p2p_labeldp.accounting import resampling
from p2p_labeldp.accounting.planning import least_flip
from p2p_labeldp.mechanisms.cluster_rr import ClusterRR
from p2p_labeldp.mechanisms.no_privacy import NoPrivacy
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.mechanisms.uniform_rr import UniformRR

SEED = 70
CELLS = 4  # of a cluster
EVERY_MARGIN = tuple((-1) ** j * 0.8 / 2**j for j in range(11))
WIDE = tuple((-1) ** j * 0.8 for j in range(11))
LARGEST_WEIGHT = 4.0  # of logistic loss
TRUE, CLUSTER, UNIFORM, PEERS = "true labels", "ClusterRR", "UniformRR", "Algorithm 2"
MECHANISMS = (TRUE, CLUSTER, PEERS, UNIFORM)
WITH_CLUSTERS = (CLUSTER, PEERS)

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A distribution of (X, Y).

    Args:
        margins: g of each cluster.
        minority: a, the mass within each cluster of the cell that has -g; 0 for four cells alike.
    """

    margins: tuple[float, ...]
    minority: float = 0.0

    @property
    def cell_margins(self) -> Reals:
        """g of each cell, shape (C, 4)."""
        g = np.repeat(np.array(self.margins)[:, None], CELLS, axis=1)
        if self.minority:
            g[:, -1] *= -1
        return g

    @property
    def masses(self) -> Reals:
        """P of each cell within its cluster, shape (4,)."""
        if not self.minority:
            return np.full(CELLS, 1 / CELLS)
        return np.array([*[(1 - self.minority) / (CELLS - 1)] * (CELLS - 1), self.minority])

    @property
    def phi(self) -> float:
        """The true heterogeneity: both label probabilities of a cell differ from its cluster's."""
        return float(4 * self.minority * (1 - self.minority) * np.abs(self.margins).mean())

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        """``size`` members of each cluster: cells 0 .. 4 C - 1, clusters and labels, each of shape (C size,)."""
        clusters = np.repeat(np.arange(len(self.margins)), size)
        cells = CELLS * clusters + rng.choice(CELLS, size=len(clusters), p=self.masses)
        labels = rng.random(len(cells)) < (1 + self.cell_margins.ravel()[cells]) / 2
        return cells, clusters, labels.astype(np.int64)

    def excess(self, targets: Reals) -> tuple[float, float]:
        """Excess risk, over the least, of the minimisers for mean soft targets of the cells: hinge, logistic loss."""
        g, mass = self.cell_margins.ravel(), np.tile(self.masses, len(self.margins)) / len(self.margins)
        wrong = (targets >= 0.5) != (g > 0)
        p, least = (1 + g) / 2, 1 / (1 + math.exp(LARGEST_WEIGHT))
        guess, best = np.clip(targets, least, 1 - least), np.clip(p, least, 1 - least)
        more = p * np.log(best / guess) + (1 - p) * np.log((1 - best) / (1 - guess))
        return float(2 * mass @ (np.abs(g) * wrong)), float(mass @ more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One cell of the table, for all mechanisms."""

    study: str
    world: World
    cluster_size: int
    epsilon: float = 0.5

    @property
    def floor(self) -> float:
        return self.world.phi / 4 or 0.01


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table: means over runs, and their standard errors."""

    study: str
    mechanism: str
    rows: int
    cluster_size: int
    phi: float
    epsilon: float
    delta: float
    hinge: float
    hinge_error: float
    logistic: float
    logistic_error: float
    bound: float
    runs: int
    seed: int = SEED
    version: str = p2p_labeldp.__version__


@dataclass(frozen=True, kw_only=True)
class Fit:
    """log excess = exponent log x + constant; half_width of the 95 % interval."""

    exponent: float
    half_width: float


def settings(quick: bool) -> Iterator[Setting]:
    """What is run."""
    sizes = [2**k for k in ((9, 11, 13) if quick else range(9, 16))]
    for size in sizes:
        yield Setting(study="n", world=World(margins=EVERY_MARGIN), cluster_size=size)
    for size in sizes:
        yield Setting(study="n, phi > 0", world=World(margins=EVERY_MARGIN, minority=0.05), cluster_size=size)
    for minority in (0.01, 0.04) if quick else (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08):
        yield Setting(study="phi", world=World(margins=WIDE, minority=minority), cluster_size=2**13)
    for epsilon in (0.1, 0.3, 1.0) if quick else (0.1, 0.2, 0.35, 0.5, 0.7, 1.0):
        yield Setting(study="eps", world=World(margins=EVERY_MARGIN), cluster_size=2**13, epsilon=epsilon)


@lru_cache
def flip_for(size: int, epsilon: float) -> float:
    """Algorithm 2's least flip at (epsilon, 1/s^2) against the learner."""
    return least_flip(lambda f: resampling.epsilon(cluster_size=size, flip_probability=f, delta=1 / size**2) <= epsilon)


def central(name: str, setting: Setting) -> LabelMechanism:
    """The mechanisms that are played in one place."""
    if name == TRUE:
        return NoPrivacy(num_classes=2)
    if name == UNIFORM:
        return UniformRR.calibrated(num_classes=2, epsilon=setting.epsilon)
    return ClusterRR.calibrated(num_classes=2, epsilon=setting.epsilon, floor=setting.floor)


def told(name: str, setting: Setting, labels: Integers, clusters: Integers, seed: int) -> Reals:
    """Soft targets of class 1 that the learner gets, shape (n,)."""
    count = int(clusters.max()) + 1
    if name == PEERS:
        flip = flip_for(setting.cluster_size, setting.epsilon)
        return population.play(labels, clusters, [flip] * count, seed=seed).reports.astype(np.float64)
    released = central(name, setting).release(labels, clusters, count=count, rng=randomness.curator(seed))
    if released.correction == 0:
        return released.labels.astype(np.float64)
    assert released.distributions is not None
    q = released.distributions[clusters, 1]
    return np.asarray((released.labels - released.correction * q) / (1 - released.correction))


def measure(setting: Setting, *, runs: int, first_seed: int) -> Iterator[Row]:
    """A row for each mechanism; in each run all get the same labels."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in MECHANISMS}
    for seed in range(first_seed, first_seed + runs):
        rng = randomness.numpy_generator(seed, randomness.Stream.DATA)
        cells, clusters, labels = setting.world.draw(setting.cluster_size, rng)
        count = CELLS * len(setting.world.margins)
        members = np.maximum(np.bincount(cells, minlength=count), 1)
        for name in MECHANISMS:
            sums = np.bincount(cells, weights=told(name, setting, labels, clusters, seed), minlength=count)
            found[name].append(setting.world.excess(sums / members))
    rows, size, epsilon = len(labels), setting.cluster_size, setting.epsilon
    for name, risks in found.items():
        mean, error = np.mean(risks, axis=0), np.std(risks, axis=0, ddof=1) / math.sqrt(runs)
        yield Row(
            study=setting.study,
            mechanism=name,
            rows=rows,
            cluster_size=size,
            phi=setting.world.phi,
            epsilon=math.inf if name == TRUE else epsilon,
            delta=1 / size**2 if name == PEERS else 0.0,
            hinge=float(mean[0]),
            hinge_error=float(error[0]),
            logistic=float(mean[1]),
            logistic_error=float(error[1]),
            bound=math.sqrt(count / (epsilon * rows)) + max(setting.world.phi, 1 / (size * epsilon**2)),
            runs=runs,
        )


def of(table: Sequence[Row], study: str, mechanism: str) -> list[Row]:
    """The rows of a curve."""
    return [row for row in table if (row.study, row.mechanism) == (study, mechanism)]


def fit(rows: Sequence[Row], along: str, loss: str) -> Fit:
    """Weighted least squares on logarithms, each mean's weight from its standard error."""
    x = np.log([getattr(row, along) for row in rows])
    mean = np.array([getattr(row, loss) for row in rows])
    relative = np.array([getattr(row, f"{loss}_error") for row in rows]) / mean
    weights = np.maximum(relative, 1e-3) ** -2.0  # a bias that no run differs in has no standard error
    centred = x - weights @ x / weights.sum()
    spread = float(weights @ centred**2)
    return Fit(exponent=float(weights @ (centred * np.log(mean)) / spread), half_width=1.96 / math.sqrt(spread))


FITS = (
    *((name, "n", "rows", "hinge", -0.5, 0.1) for name in MECHANISMS),
    *((name, "n", "rows", "logistic", -1.0, 0.15) for name in MECHANISMS),
    *((name, "phi", "phi", "hinge", 1.0, 0.1) for name in WITH_CLUSTERS),
    (CLUSTER, "eps", "epsilon", "hinge", 0.0, 0.1),
    (PEERS, "eps", "epsilon", "hinge", -0.1, 0.1),
    (UNIFORM, "eps", "epsilon", "hinge", -1.0, 0.1),
)
"""Curve, against what, which loss, expected exponent, tolerance."""


def exponents(table: Sequence[Row]) -> Iterator[tuple[str, Fit, float, float]]:
    """What is fitted, the fit, what is expected, within which tolerance."""
    for name, study, along, loss, expected, tolerance in FITS:
        yield f"{name}, {loss} loss against {along}", fit(of(table, study, name), along, loss), expected, tolerance


def failures(table: Sequence[Row], *, least_tolerance: float = 0.0) -> Iterator[str]:
    """What of the claim does not hold."""
    for what, found, expected, tolerance in exponents(table):
        if not abs(found.exponent - expected) <= max(tolerance, least_tolerance):
            yield f"{what}: exponent {found.exponent:.3f}, expected {expected:g}"
    for true, cluster, uniform in zip(*(of(table, "n", name) for name in (TRUE, CLUSTER, UNIFORM)), strict=True):
        noise = 3 * (true.hinge_error + cluster.hinge_error)
        if cluster.hinge > 1.5 * true.hinge + noise:
            yield f"n {true.rows}: ClusterRR has {cluster.hinge / true.hinge:.2f} times the true labels' excess"
        if uniform.hinge < 2 * true.hinge - noise - 3 * uniform.hinge_error:
            yield f"n {true.rows}: UniformRR has {uniform.hinge / true.hinge:.2f} times the true labels' excess"
    for name in WITH_CLUSTERS:
        first, *_, last = of(table, "n, phi > 0", name)
        if not last.hinge >= last.phi / 4:
            yield f"{name} has no floor at phi {last.phi:g}: {last.hinge:.4g}"
        if not of(table, "n, phi > 0", UNIFORM)[0].hinge > first.hinge:
            yield f"UniformRR is ahead of {name} at n {first.rows} already"
    last, uniform = of(table, "n, phi > 0", CLUSTER)[-1], of(table, "n, phi > 0", UNIFORM)[-1]
    if not least_tolerance and not uniform.hinge < last.hinge:
        yield f"UniformRR does not pass ClusterRR by n {last.rows}"
    for row in table:
        if row.mechanism in WITH_CLUSTERS and not row.hinge - 5 * row.hinge_error <= row.bound:
            yield f"{row.mechanism}, {row.study}, n {row.rows}: {row.hinge:.4g} is above the bound {row.bound:.4g}"


def draw(table: Sequence[Row], study: Study) -> None:
    """A panel for each study."""
    styles = {TRUE: ("0.4", "x"), CLUSTER: ("tab:blue", "o"), PEERS: ("tab:green", "^"), UNIFORM: ("tab:orange", "s")}
    panels = (
        ("n", "rows", "n", "Homogeneous clusters, ε = .5"),
        ("n, phi > 0", "rows", "n", ""),
        ("phi", "phi", "φ", "Wide margins: what is left is bias, ε = .5"),
        ("eps", "epsilon", "ε", "Homogeneous clusters"),
    )
    with study.figure(2, 2, size=(10.5, 8)) as (figure, axes):
        for axis, (name, along, label, title) in zip(axes.flat, panels, strict=True):
            for mechanism, (colour, marker) in styles.items():
                rows = of(table, name, mechanism)
                if name == "eps" and mechanism == TRUE:
                    axis.axhline(np.mean([row.hinge for row in rows]), color=colour, ls="-", label=mechanism)
                    continue
                x = [getattr(row, along) for row in rows]
                for loss, line in (("hinge", "-"), ("logistic", ":")):
                    y = np.array([getattr(row, loss) for row in rows])
                    if not y.any() or (loss == "logistic" and name != "n"):
                        continue
                    exponent = f" {fit(rows, along, loss).exponent:+.2f}" if name == "n" else ""
                    axis.errorbar(
                        x, y, yerr=[1.96 * getattr(row, f"{loss}_error") for row in rows], color=colour, ls=line,
                        marker=marker, ms=4, mfc=colour if loss == "hinge" else "white", capsize=2,
                        label=f"{mechanism}{exponent}{'' if loss == 'hinge' else ', logistic'}",
                    )  # fmt: skip
            rows = of(table, name, CLUSTER)
            axis.plot(
                [getattr(row, along) for row in rows], [row.bound for row in rows], "--", color="tab:red",
                label="√(d/(εn)) + max(φ, 1/(sε²))",
            )  # fmt: skip
            axis.set(xscale="log", yscale="log", xlabel=label, title=title or f"φ = {rows[0].phi:.3f}, ε = .5")
            axis.grid(alpha=0.25)
            axis.legend(fontsize=7.5, ncols=2 if name == "n" else 1)
            if name == "n":
                axis.set_ylim(bottom=axis.get_ylim()[0] / 30)  # room for the names
            elif name == "phi":
                axis.set_ylim(bottom=1e-4)  # UniformRR's is nothing but rare errors in the least cells
            elif name == "eps":
                axis.set_ylim(1e-3, 0.3)
        for axis in axes[:, 0]:
            axis.set_ylabel("excess risk, hinge loss")
        figure.suptitle("Excess risk over the best model's, true risk in closed form; exponents fitted", fontsize=11)


def main() -> int:
    """Runs all cells, writes the table and the figure, says what held."""
    study = Study.from_command_line(__file__, __doc__, quick="12 runs, fewer cells")
    runs, table = 12 if study.quick else 160, []
    for number, setting in enumerate(settings(study.quick)):
        for row in measure(setting, runs=runs, first_seed=SEED * 10**6 + number * 1000):
            table.append(row)
            print(
                f"{row.study:<11} n {row.rows:<7d} phi {row.phi:<7.4f} eps {row.epsilon:<5g}{row.mechanism:<12} "
                f"hinge {row.hinge:.5f} +- {row.hinge_error:.5f}  logistic {row.logistic:.6f}",
                flush=True,
            )
    lines = [
        f"exponent of {what}: {found.exponent:.3f} +- {found.half_width:.3f} (expected {expected:g})"
        for what, found, expected, _ in exponents(table)
    ]
    study.write_table((asdict(row) for row in table), header=lines)
    draw(table, study)
    print("\n".join(lines))
    return study.verdict(
        failures(table, least_tolerance=0.3 if study.quick else 0.0), held=f"all claims hold in {len(table)} cells"
    )


if __name__ == "__main__":
    sys.exit(main())
