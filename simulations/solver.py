"""L-BFGS and SAGA find the same minimiser, and L-BFGS finds it many times sooner.

Claim: on the loss that models are fitted with here (``learning.corrected_loss``: multinomial cross-entropy on soft
targets plus l2/2 times the squared weights), the package's L-BFGS and SAGA, the solver of arXiv 2110.02159v1, end at
the same weights, so the choice moves no result that is run to convergence. scikit-learn's compiled SAGA needs more CPU
time on every problem here; how much more depends on the features. With standardised ones, of which a few are rare and
long, it needs over 10 times as much, and after scikit-learn's default of 100 epochs at l2 = 1e-3 its loss is still
over 1e-3 above the least: such a fit is a reference of its own. With pixels of one scale SAGA takes fewer passes over
the data than L-BFGS, and the gain is small: it is each pass that costs less.

Config: digits-10 (1,347 rows of 64 pixels, seed 0), pixels over 16 or standardised, and a mixture of ten Gaussians in
100 dimensions (10,000 rows, unit covariance, means of length 2); a column of ones for the intercept, which is
penalised like the rest. Labels: true; of ClusterRR at eps 1, 30 KMeans clusters, floor .01; of UniformRR at eps 2 with
the corrected loss, whose targets have negative entries. scikit-learn's SAGA takes none of those, so there it is the one
below: one row a step, step 1/(3 L), L = l2 + max |x|^2/2, in NumPy, whose CPU time says nothing. l2 = 1e-2 and 1e-3.
Each solver is run from 0, longer and longer (lengths sqrt 2 apart; an iteration of L-BFGS is about one pass, an epoch
of SAGA is one), until its loss is within 1e-9 of the least, that of L-BFGS run until no gradient entry exceeds 1e-9.

Expected and tolerance: last losses within 1e-9 of the least, weights there within 1e-3 of the minimiser, relative to
its norm. CPU time is process time on one thread, the least of three runs where one is short; SAGA's over L-BFGS's,
where both are within 1e-6 of the least loss, is at least 1 (found: 1.3 to 2.9 for pixels of one scale, 5.7 to 7.5 for
the mixture) and at least 10 for standardised pixels (found: 53 at l2 = 1e-2, 312 at 1e-3).

    OPENBLAS_NUM_THREADS=1 python simulations/solver.py [--quick] [--out simulations/results]

writes solver.csv, .png and .svg (with --quick solver_quick.*) and exits with 1 if a claim fails. About 75 seconds on
one core, --quick ten.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import p2p_labeldp
from frame import Study, legend_below
from p2p_labeldp import clustering, randomness
from p2p_labeldp.datasets import split
from p2p_labeldp.learning.corrected_loss import SoftLoss, minimise, soft_targets
from p2p_labeldp.mechanisms.cluster_rr import ClusterRR
from p2p_labeldp.mechanisms.uniform_rr import UniformRR

SEED = 0
CLASSES = 10
L2S = (1e-2, 1e-3)
LBFGS, SAGA, OWN_SAGA = "L-BFGS", "SAGA (scikit-learn)", "SAGA (NumPy)"
SAME_LOSS, SAME_WEIGHTS = 1e-9, 1e-3
REACHED = 1e-6
"""Above the least loss, where times are compared."""
DEFAULT_EPOCHS, EARLY_GAP = 100, 1e-3
LENGTHS = tuple(round(100 * 2 ** (k / 2)) for k in range(-8, 16))
SHORT = 0.2
"""CPU seconds below which a run is repeated."""
STANDARDISED = "standardised digits"

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """A loss to minimise.

    Args:
        name: Data and labels.
        loss: Without an intercept of its own.
        labels: Told labels where the loss is the ordinary one, shape (n,); None where targets are corrected.
    """

    name: str
    loss: SoftLoss
    labels: Integers | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run of one solver."""

    problem: str
    l2: float
    solver: str
    iterations: int
    cpu_seconds: float
    gap: float
    weight_distance: float
    rows: int
    dimension: int
    seed: int = SEED
    version: str = p2p_labeldp.__version__


def digits() -> tuple[Reals, Integers]:
    """Pixels, shape (1347, 64), and labels."""
    loaded = split.load("digits-10", seed=SEED, test_share=0.25)
    return loaded.train_features / 16, loaded.train_labels.astype(np.int64)


def standardised(features: Reals) -> Reals:
    """Of mean 0 and variance 1; a pixel that is always the same becomes 0."""
    spread = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1))


def mixture(rows: int) -> tuple[Reals, Integers]:
    """Rows of ten Gaussians in 100 dimensions, and which drew them."""
    rng = randomness.numpy_generator(SEED, randomness.Stream.DATA)
    means = rng.standard_normal((CLASSES, 100))
    means *= 2 / np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.integers(CLASSES, size=rows)
    return means[labels] + rng.standard_normal((rows, 100)), labels


def problems(quick: bool) -> Iterator[Problem]:
    """What is solved."""
    features, labels = digits()
    groups = clustering.fit(features, count=30, minimum_size=1, seed=SEED)
    clusters = groups.assign(features)
    by_cluster = ClusterRR.calibrated(num_classes=CLASSES, epsilon=1.0, floor=0.01).release(
        labels, clusters, count=groups.count, rng=randomness.curator(SEED)
    )
    alone = UniformRR.calibrated(num_classes=CLASSES, epsilon=2.0).release(
        labels, clusters, count=groups.count, rng=randomness.curator(SEED)
    )
    assert alone.distributions is not None
    corrected = soft_targets(
        alone.labels, num_classes=CLASSES, distributions=alone.distributions[0], correction=alone.correction
    )
    for l2 in L2S[:1] if quick else L2S:
        yield ordinary("digits, true labels", features, labels, l2)
        yield ordinary("digits, ClusterRR", features, by_cluster.labels, l2)
        yield ordinary(STANDARDISED, standardised(features), labels, l2)
        if not quick:
            yield ordinary("mixture of Gaussians", *mixture(10_000), l2)
        yield Problem(name="digits, UniformRR, corrected", loss=loss_of(features, corrected, l2), labels=None)


def ordinary(name: str, features: Reals, labels: Integers, l2: float) -> Problem:
    """The ordinary loss of told labels."""
    loss = loss_of(features, soft_targets(labels, num_classes=CLASSES), l2)
    return Problem(name=name, loss=loss, labels=labels)


def loss_of(features: Reals, targets: Reals, l2: float) -> SoftLoss:
    """With a column of ones, since scikit-learn doesn't penalise an intercept of its own."""
    return SoftLoss(features=np.c_[features, np.ones(len(features))], targets=targets, l2=l2, intercept=False)


def by_lbfgs(problem: Problem, iterations: int) -> Reals:
    """The package's solver."""
    return minimise(problem.loss, tolerance=1e-12, max_iterations=iterations).weights


def by_saga(problem: Problem, iterations: int) -> Reals:
    """scikit-learn's; its sum of losses plus |W|^2/(2 C) is n times ours at C = 1/(l2 n)."""
    from sklearn.linear_model import LogisticRegression

    loss = problem.loss
    model = LogisticRegression(
        C=1 / (loss.l2 * len(loss.features)), solver="saga", fit_intercept=False, tol=0.0, max_iter=iterations,
        random_state=SEED,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is what is measured
        return np.asarray(model.fit(loss.features, problem.labels).coef_)


def by_own_saga(problem: Problem, iterations: int) -> Reals:
    """SAGA (Defazio, Bach, Lacoste-Julien, arXiv 1407.0202) on soft targets, which may be negative.

    A row's gradient is residual x^T, so a table of residuals, shape (n, K), is its memory. The L2 term is no part of
    the table: its gradient is known at every step.
    """
    loss = problem.loss
    x, targets, l2 = loss.features, loss.targets, loss.l2
    rows = len(x)
    step = 1 / (3 * (l2 + (x**2).sum(axis=1).max() / 2))  # the softmax's Hessian is at most 1/2
    rng = randomness.numpy_generator(SEED, randomness.Stream.DATA, 1)
    weights = np.zeros(loss.shape)
    table = np.full(targets.shape, 1 / targets.shape[1]) - targets
    mean = table.T @ x / rows
    for _ in range(iterations):
        for i in rng.integers(rows, size=rows).tolist():
            row = x[i]
            logits = weights @ row
            powers = np.exp(logits - logits.max())
            residual = powers / powers.sum() - targets[i]
            change = np.multiply.outer(residual - table[i], row)
            weights -= step * (change + mean + l2 * weights)
            mean += change / rows
            table[i] = residual
    return weights


def solve(problem: Problem, *, most_iterations: int) -> Iterator[Row]:
    """Longer and longer runs of each solver, until each is at the least loss."""
    best = minimise(problem.loss, tolerance=1e-9, max_iterations=100_000)
    solvers: dict[str, Callable[[Problem, int], Reals]] = {
        LBFGS: by_lbfgs,
        **({OWN_SAGA: by_own_saga} if problem.labels is None else {SAGA: by_saga}),
    }
    for name, solver in solvers.items():
        for iterations in (length for length in LENGTHS if length <= most_iterations):
            weights, seconds = timed(solver, problem, iterations)
            gap = problem.loss(weights.ravel())[0] - best.value
            yield Row(
                problem=problem.name,
                l2=problem.loss.l2,
                solver=name,
                iterations=iterations,
                cpu_seconds=round(seconds, 6),
                gap=gap,
                weight_distance=float(np.linalg.norm(weights - best.weights) / np.linalg.norm(best.weights)),
                rows=len(problem.loss.features),
                dimension=weights.size,
            )
            if gap <= SAME_LOSS:
                break


def timed(solver: Callable[[Problem, int], Reals], problem: Problem, iterations: int) -> tuple[Reals, float]:
    """The weights, and the CPU seconds they took."""
    least = math.inf
    with threadpool_limits(limits=1):  # scikit-learn's own dependency
        for _ in range(3):
            start = time.process_time()
            weights = solver(problem, iterations)
            least = min(least, time.process_time() - start)
            if least > SHORT:
                break
    return weights, least


def curves(table: Sequence[Row]) -> dict[tuple[str, float], dict[str, list[Row]]]:
    """Rows of each problem and l2, by solver."""
    found: dict[tuple[str, float], dict[str, list[Row]]] = {}
    for row in table:
        found.setdefault((row.problem, row.l2), {}).setdefault(row.solver, []).append(row)
    return found


def reached(rows: Sequence[Row]) -> Row:
    """The first run that is within ``REACHED`` of the least loss, else the last."""
    return next((row for row in rows if row.gap <= REACHED), rows[-1])


def failures(table: Sequence[Row]) -> Iterator[str]:
    """What of the claim does not hold."""
    for (problem, l2), solvers in curves(table).items():
        where = f"{problem}, l2 {l2:g}"
        for name, rows in solvers.items():
            last = rows[-1]
            if not (abs(last.gap) <= SAME_LOSS and last.weight_distance <= SAME_WEIGHTS):
                yield f"{where}: {name} ends {last.gap:.2g} above the least, weights {last.weight_distance:.2g} away"
        if SAGA not in solvers:
            continue
        quick, slow = reached(solvers[LBFGS]), reached(solvers[SAGA])
        least = 10 if problem == STANDARDISED else 1
        if not slow.cpu_seconds >= least * quick.cpu_seconds:
            yield f"{where}: {quick.cpu_seconds:.3f} s of L-BFGS, {slow.cpu_seconds:.3f} s of SAGA"
        if problem.startswith("digits") and not slow.iterations < quick.iterations:
            yield f"{where}: {quick.iterations} iterations of L-BFGS, {slow.iterations} epochs of SAGA"
        early = [row.gap for row in solvers[SAGA] if row.iterations == DEFAULT_EPOCHS]
        if (problem, l2) == (STANDARDISED, 1e-3) and not min(early) > EARLY_GAP:
            yield f"{where}: {DEFAULT_EPOCHS} epochs of SAGA end {min(early):.2g} above the least"


def ratios(table: Sequence[Row]) -> Iterator[str]:
    """SAGA over L-BFGS where both are within ``REACHED``."""
    for (problem, l2), solvers in curves(table).items():
        quick, slow = (reached(rows) for rows in solvers.values())
        line = f"{problem}, l2 {l2:g}: {slow.iterations} epochs of SAGA, {quick.iterations} iterations of L-BFGS"
        if slow.solver == SAGA:
            line += f", {slow.cpu_seconds / quick.cpu_seconds:.1f} times the CPU time"
        yield line


def draw(table: Sequence[Row], study: Study) -> None:
    """Loss above the least against CPU time, a panel for each problem."""
    found = curves(table)
    names = list(dict.fromkeys(problem for problem, _ in found))
    colours = {LBFGS: "tab:blue", SAGA: "tab:orange", OWN_SAGA: "tab:purple"}
    with study.figure(1, len(names), size=(3.2 * len(names), 4.2), sharex=True, sharey=True, squeeze=False) as (
        figure,
        axes,
    ):
        for axis, name in zip(axes[0], names, strict=True):
            for (problem, l2), solvers in found.items():
                for solver, rows in solvers.items():
                    if problem == name:
                        axis.plot(
                            [row.cpu_seconds for row in rows], [max(row.gap, 1e-12) for row in rows],
                            "o-" if l2 == L2S[0] else "s--", ms=4, color=colours[solver],
                            label=f"{solver}, l2 = {l2:g}",
                        )  # fmt: skip
            axis.axhline(REACHED, color="0.6", lw=1, ls=":")
            axis.set(xscale="log", yscale="log", title=name, xlabel="CPU time, s")
            axis.grid(alpha=0.25)
        axes[0][0].set_ylabel("loss above the least")
        legend_below(figure, columns=3)
        figure.suptitle("Runs of growing length", fontsize=11)


def main() -> int:
    """Solves all problems, writes the table and the figure, says what held."""
    study = Study.from_command_line(__file__, __doc__, quick="no mixture, l2 = 1e-2 alone")
    table: list[Row] = []
    for problem in problems(study.quick):
        for row in solve(problem, most_iterations=20_000):
            table.append(row)
            print(
                f"{row.problem:<29} l2 {row.l2:<7g}{row.solver:<20}{row.iterations:>6} iterations "
                f"{row.cpu_seconds:9.4f} s  gap {row.gap:9.2e}  weights {row.weight_distance:.2e} away",
                flush=True,
            )
    lines = list(ratios(table))
    study.write_table((asdict(row) for row in table), header=lines)
    draw(table, study)
    print("\n".join(lines))
    return study.verdict(failures(table), held=f"all claims hold in {len(table)} runs")


if __name__ == "__main__":
    sys.exit(main())
