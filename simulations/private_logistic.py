"""Logistic regression from private gradients: what a direction's level costs, and where it starts to be worth anything.

Claim: (1) PrivUnit2 multiplies the gradient's second moment by 1/m^2: 10.73, 5.10, 2.69, 1.62 and 1.165 at eps1 = d/16,
d/8, d/4, d/2 and d for d = 500. (2) One pass of averaged stochastic gradient descent over gradients that each person
privatised has, for many people, the squared error of the sandwich formula, tr(H^-1 S H^-1)/N with S the second moment
of the *private* gradients, which grows by nearly 1/m^2 too. (3) Without eps1 >= d/8 the model is no better than
theta = 0, which costs no privacy; from d/8 on it is (Bhowmick et al., arXiv 1812.00984, their simulated logistic
regression). (4) A Gaussian with the exact first two moments stands for the exact draws.

Where the formula is not what happens: N = 1e5 is not many people at small levels. The private iterates are so
scattered that the loss is no parabola where they are: the squared error is 1.3 times the formula's at d/8 and 1.75
times at d/16, and sixteen times as many people bring both to 1.2. And the threshold is no law of the mechanism: it is
where that error passes |theta*|. |theta*| = 10 puts it between d/16 and d/8 (the settings that are known fix neither
|theta*| nor the law of x); the table's header says where the formula puts it for weaker and stronger signals.

Config: d = 500, N = 1e5; x uniform on the unit sphere, P(y = 1 | x) = 1/(1 + e^-<theta*, x>), theta* of norm 10 in a
uniform direction. Each gradient goes through ``Separated``: PrivUnit2 at eps1 times ScalarDP at eps2 = 10, r_max = 1,
which clips nothing. One pass in batches of 100; each step is 100 a times the batch's mean gradient, a = .2
sqrt(1e5/N); the average of the iterates begins anew after a tenth of the people, and the formula is taken for as many
people as are averaged over. All levels see the same people in one order, as do a pass without privacy and the MLE.
``exact``: every report drawn, 4 trials. ``moments``: a batch's mean is one Gaussian with the exact first two moments
given its gradients; its sum's covariance is sum (Var S_i + r_i^2)(1/m^2 - 1)/d I + sum Var S_i u_i u_i^T; 12 trials,
and for (2) 4 of N = 4e5 and 3 of 1.6e6. Each row names its mode. Seed 91 (--quick: 1 exact and 2 moments trials at
d/16, d/8 and d, nothing larger).

Risks are exact: the law of <theta, x> on the sphere is integrated by Gegenbauer quadrature.

Expected and tolerance: 1/m^2 to .5 %; squared distances of the MLE and of the pass without privacy within 15 % of the
formula at 1e5, of each level at 1.6e6 within 15 % from d/4 on and 25 % below, where they come nearer with N; mean
distance above |theta*| at d/16 and below it from d/8 on, the excess risk likewise against that of theta = 0; exact to
moments within 15 % (a squared distance has a standard deviation of 6.3 %, so the two means' difference 3.7 %).

    OPENBLAS_NUM_THREADS=1 python simulations/private_logistic.py [--quick] [--out simulations/results]

writes private_logistic.csv, .png and .svg (with --quick private_logistic_quick.*) and exits with 1 if a claim fails.
Two and a half minutes of CPU time on one core, --quick 20 seconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import expit, roots_gegenbauer, xlogy

import p2p_labeldp
from frame import Study
from p2p_labeldp import randomness
from p2p_labeldp.mechanisms.scalar import GridScalar
from p2p_labeldp.mechanisms.separated import Separated

SEED = 91
DIMENSION, PEOPLE, BATCH = 500, 100_000, 100
SIGNAL = 10.0  # |theta*|
EPSILON_MAGNITUDE = 10.0
STEP, WARM_UP = 0.2, 0.1
SHARES = {"d/16": 16, "d/8": 8, "d/4": 4, "d/2": 2, "d": 1}
PREDICTED = {"d/16": 10.73, "d/8": 5.10, "d/4": 2.69, "d/2": 1.62, "d": 1.165}
MLE, PLAIN, EXACT, MOMENTS = "MLE", "no privacy", "exact", "moments"
CHECKPOINTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # of the people

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model of one trial."""

    mode: str
    level: str
    epsilon_direction: float
    epsilon_magnitude: float
    inflation: float
    trial: int
    people: int
    seen: int
    distance: float
    predicted: float
    excess: float
    seed: int = SEED
    version: str = p2p_labeldp.__version__


@lru_cache
def sphere_nodes(dimension: int) -> tuple[Reals, Reals]:
    """Nodes and weights of the law of one coordinate on the unit sphere, density proportional to (1-t^2)^((d-3)/2)."""
    nodes, weights = roots_gegenbauer(40, dimension / 2 - 1)
    return nodes, weights / weights.sum()


@lru_cache
def mechanism(level: str) -> Separated:
    """What a person does to the gradient."""
    return Separated.calibrated(
        dimension=DIMENSION,
        epsilon_direction=DIMENSION / SHARES[level],
        epsilon_magnitude=EPSILON_MAGNITUDE,
        max_radius=1.0,
    )


def variances(private: Separated, radii: Reals) -> Reals:
    """Var S of each magnitude, interpolated: a hundred nodes to each of its 29 quadratic pieces."""
    grid = np.linspace(0.0, 1.0, 2901)
    return np.interp(radii, grid, _variance_grid(private.magnitude))


@lru_cache
def _variance_grid(magnitude: GridScalar) -> Reals:
    return np.array([magnitude.variance(float(r)) for r in np.linspace(0.0, 1.0, 2901)])


def sandwich(private: Separated | None, signal: float = SIGNAL) -> float:
    """tr(H^-1 S H^-1) at theta*: both matrices are a multiple of I but for the direction of theta*."""
    t, w = sphere_nodes(DIMENSION)
    p = expit(signal * t)
    across_part = (1 - t * t) / (DIMENSION - 1)
    curvature = p * (1 - p)
    h_along, h_across = w @ (curvature * t * t), w @ (curvature * across_part)
    moment, spread = np.zeros_like(t), np.zeros_like(t)  # E r^2 + Var S, and the isotropic part
    for chance, r in ((p, 1 - p), (1 - p, p)):
        second = r * r + (variances(private, r) if private else 0.0)
        moment += chance * second
        spread += chance * second * (private.direction.variance if private else 0.0) / DIMENSION
    s_along = w @ (moment * t * t + spread)
    s_across = w @ (moment * across_part + spread)
    return float(s_along / h_along**2 + (DIMENSION - 1) * s_across / h_across**2)


def predicted_distance(private: Separated | None, people: int = PEOPLE) -> float:
    """Square root of the mean squared distance to theta* by the sandwich formula."""
    return math.sqrt(sandwich(private) / people)


def break_even(signal: float) -> float:
    """eps1 / d at which the sandwich formula's error is |theta*|; inf if it is larger without privacy."""
    if sandwich(None, signal) / PEOPLE >= signal**2:
        return math.inf
    low, high = 1e-3, 10.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        private = Separated.calibrated(
            dimension=DIMENSION,
            epsilon_direction=middle * DIMENSION,
            epsilon_magnitude=EPSILON_MAGNITUDE,
            max_radius=1.0,
        )
        low, high = (middle, high) if sandwich(private, signal) / PEOPLE > signal**2 else (low, middle)
    return high


def excess_risk(theta: Reals, truth: Reals) -> float:
    """E log-loss at theta, less that at theta*."""
    t, w = sphere_nodes(DIMENSION)
    v, w_rest = sphere_nodes(DIMENSION - 1)
    u = truth / np.linalg.norm(truth)
    along = float(theta @ u)
    rest = float(np.linalg.norm(theta - along * u))
    p = expit(SIGNAL * t)[:, None]
    score = along * t[:, None] + rest * np.sqrt(1 - t * t)[:, None] * v[None, :]
    loss = p * np.logaddexp(0, -score) + (1 - p) * np.logaddexp(0, score)
    return float(w @ (loss + xlogy(p, p) + xlogy(1 - p, 1 - p)) @ w_rest)


def mle(x: npt.NDArray[np.float32], y: npt.NDArray[np.bool_], *, iterations: int = 12) -> Reals:
    """Newton's steps with the curvature of features that are the same in all directions: each gains about a digit."""
    theta = np.zeros(DIMENSION)
    for _ in range(iterations):
        p = expit(x @ theta.astype(np.float32)).astype(np.float64)
        gradient = ((p - y).astype(np.float32) @ x).astype(np.float64) / len(y)
        theta -= gradient / (float(np.mean(p * (1 - p))) / DIMENSION)
    return theta


@dataclass(slots=True)
class Pass:
    """One pass at one level: where it is, and the average of where it was."""

    mode: str
    level: str
    theta: Reals
    mean: Reals
    averaged: int = 0

    def step(self, x: Reals, y: npt.NDArray[np.bool_], size: float, rng: np.random.Generator) -> None:
        """One step on the batch's gradients as the learner gets them."""
        self.theta -= size * self.gradient(x, y, rng)
        self.averaged += 1
        self.mean += (self.theta - self.mean) / self.averaged

    def gradient(self, x: Reals, y: npt.NDArray[np.bool_], rng: np.random.Generator) -> Reals:
        """Mean of the batch's reports."""
        gaps = expit(x @ self.theta) - y
        if self.mode == PLAIN:
            return np.asarray(gaps @ x / len(y))
        private = mechanism(self.level)
        if self.mode == EXACT:
            return np.asarray(private.privatise_many(gaps[:, None] * x, rng).mean(axis=0))
        spread = variances(private, np.abs(gaps))
        isotropic = float((spread + gaps**2).sum()) * private.direction.variance / DIMENSION
        noise = math.sqrt(isotropic) * rng.standard_normal(DIMENSION)
        return np.asarray(((gaps + np.sqrt(spread) * rng.standard_normal(len(y))) @ x + noise) / len(y))


def trial(number: int, mode: str, levels: Sequence[str], people: int = PEOPLE) -> Iterator[Row]:
    """All levels on the same people."""
    rng = randomness.numpy_generator(SEED, randomness.Stream.DATA, number)
    coins = randomness.numpy_generator(SEED, randomness.Stream.DATA, 1_000_000 + number)
    truth = rng.standard_normal(DIMENSION)
    truth *= SIGNAL / np.linalg.norm(truth)
    named = [(PLAIN, ""), *((mode, level) for level in levels)]
    passes = [Pass(one, level, np.zeros(DIMENSION), np.zeros(DIMENSION)) for one, level in named]
    batches = people // BATCH
    shown = {round(share * batches): share for share in (CHECKPOINTS if people == PEOPLE else CHECKPOINTS[-1:])}
    size = STEP * BATCH * math.sqrt(PEOPLE / people)
    kept_x, kept_y = [], []
    for batch in range(1, batches + 1):
        x = rng.standard_normal((BATCH, DIMENSION))
        x /= np.linalg.norm(x, axis=1)[:, None]
        y = rng.random(BATCH) < expit(x @ truth)
        if people == PEOPLE:  # more are not kept for an MLE, which would take gigabytes
            kept_x.append(x.astype(np.float32))
            kept_y.append(y)
        for one in passes:
            if batch == round(WARM_UP * batches) + 1:
                one.averaged = 0
            one.step(x, y, size, coins)
            if batch in shown:
                yield row(one, number, people, batch * BATCH, truth)
    if kept_x:
        theta = mle(np.concatenate(kept_x), np.concatenate(kept_y))
        yield row(Pass(MLE, "", theta, theta, people // BATCH), number, people, people, truth)


@lru_cache
def predicted(level: str, averaged: int) -> float:
    """Distance to theta* by the sandwich formula, root of the mean square, averaging over so many people's steps."""
    return predicted_distance(mechanism(level) if level else None, averaged)


def row(at: Pass, number: int, people: int, seen: int, truth: Reals) -> Row:
    """The averaged model of a pass as a row."""
    private = mechanism(at.level) if at.level else None
    return Row(
        mode=at.mode,
        level=at.level,
        epsilon_direction=private.direction.epsilon if private else math.inf,
        epsilon_magnitude=private.magnitude.epsilon if private else math.inf,
        inflation=private.direction.second_moment if private else 1.0,
        trial=number,
        people=people,
        seen=seen,
        distance=float(np.linalg.norm(at.mean - truth)),
        predicted=predicted(at.level, at.averaged * BATCH),
        excess=excess_risk(at.mean, truth),
    )


def of(table: Sequence[Row], level: str, *modes: str, people: int = PEOPLE, seen: int | None = None) -> list[Row]:
    """The rows of a level (of all modes, or some) at the end of the pass, or where ``seen`` people were."""
    at = people if seen is None else seen
    return [
        row for row in table
        if (row.level, row.people, row.seen) == (level, people, at) and (not modes or row.mode in modes)
    ]  # fmt: skip


def ratio(rows: Sequence[Row]) -> float:
    """Mean squared distance over the sandwich formula's."""
    return float(np.mean([(row.distance / row.predicted) ** 2 for row in rows]))


def excess_of_zero() -> float:
    """Excess risk of theta = 0."""
    truth = np.zeros(DIMENSION)
    truth[0] = SIGNAL
    return excess_risk(np.zeros(DIMENSION), truth)


def levels_of(table: Sequence[Row]) -> list[str]:
    """Levels in the table, small ones first."""
    return [level for level in SHARES if any(row.level == level for row in table)]


def failures(table: Sequence[Row], *, slack: float = 1.0) -> Iterator[str]:
    """What of the claim does not hold."""
    zero = excess_of_zero()
    for level in levels_of(table):
        rows = of(table, level)
        if not abs(rows[0].inflation / PREDICTED[level] - 1) <= 0.005:
            yield f"{level}: 1/m^2 is {rows[0].inflation:.3f}, expected {PREDICTED[level]}"
        distance, excess = np.mean([row.distance for row in rows]), np.mean([row.excess for row in rows])
        for what, found, of_zero in (("distance", distance, SIGNAL), ("excess risk", excess, zero)):
            if (found < of_zero) != (level != "d/16"):
                yield f"{level}: {what} {found:.4g} against {of_zero:.4g} of theta = 0"
        exact, moments = ratio(of(table, level, EXACT)), ratio(of(table, level, MOMENTS))
        if not abs(exact / moments - 1) <= 0.15 * slack:
            yield f"{level}: exact draws have {exact / moments:.3f} times the squared distance of moments"
    for mode in (MLE, PLAIN):
        if not abs(ratio(of(table, "", mode)) - 1) <= 0.15 * slack:
            yield f"{mode}: {ratio(of(table, '', mode)):.3f} times the formula's squared distance"
    sizes = sorted({row.people for row in table})
    for level in levels_of(table) if len(sizes) > 1 else []:
        first, *_, last = (ratio(of(table, level, MOMENTS, people=people)) for people in sizes)
        if not abs(last - 1) <= (0.25 if level in ("d/16", "d/8") else 0.15):
            yield f"{level}: {last:.3f} times the formula's squared distance at {sizes[-1]} people"
        if level in ("d/16", "d/8") and not last < first - 0.05:
            yield f"{level}: {first:.3f} times the formula's squared distance, {last:.3f} with more people"


def summary(table: Sequence[Row]) -> Iterator[str]:
    """What the columns can't say."""
    yield f"theta = 0: distance {SIGNAL:g}, excess risk {excess_of_zero():.5f}"
    for people in sorted({row.people for row in table}):
        found = (
            f"{name} {ratio(of(table, level, *modes, people=people)):.2f}"
            for name, level, modes in [
                *(((MLE, "", (MLE,)),) if people == PEOPLE else ()),
                (PLAIN, "", (PLAIN,)),
                *((level, level, (EXACT, MOMENTS)) for level in levels_of(table)),
            ]
        )
        yield f"squared distance over the sandwich formula's, {people} people: {', '.join(found)}"
    for signal in (5.0, 7.0, 10.0, 14.0, 20.0):
        at = break_even(signal)
        where = f"eps1 = {at:.3f} d" if at < 10 else "no eps1: the MLE is not better either"
        yield f"break-even with theta = 0 by the formula, |theta*| = {signal:g}, 100000 people: {where}"


def draw(table: Sequence[Row], study: Study) -> None:
    """Error along the pass, distances at its end, and the formula."""
    levels = levels_of(table)
    colours = dict(zip(SHARES, ("tab:red", "tab:orange", "tab:olive", "tab:green", "tab:blue"), strict=True))
    with study.figure(1, 3, size=(13.5, 4.4)) as (_, axes):
        curve, box, check = axes
        seen = sorted({row.seen for row in table if row.people == PEOPLE})
        for mode, level in [*((EXACT, level) for level in levels), (PLAIN, "")]:
            y = [float(np.mean([row.excess for row in of(table, level, mode, seen=at)])) for at in seen]
            name = f"ε₁ = {level}" if level else "no privacy"
            curve.plot(seen, y, "o-", ms=3, color=colours.get(level, "0.3"), label=name)
        least = np.mean([row.excess for row in of(table, "", MLE)])
        curve.axhline(least, color="0.3", ls=":", label="MLE, all people")
        curve.axhline(excess_of_zero(), color="k", ls="--", label="θ = 0")
        curve.set(xscale="log", yscale="log", xlabel="people seen", ylabel="excess risk of the averaged iterate")
        curve.set_title("Optimisation error, exact draws", fontsize=10)
        curve.legend(fontsize=7.5)
        groups = [*levels, PLAIN, MLE]
        rows = [of(table, level) for level in levels] + [of(table, "", PLAIN), of(table, "", MLE)]
        drawn = box.boxplot([[row.distance for row in group] for group in rows], widths=0.6, patch_artist=True)
        for patch, name in zip(drawn["boxes"], groups, strict=True):
            patch.set(facecolor=colours.get(name, "0.85"), alpha=0.6)
        at = range(1, len(groups) + 1)
        box.scatter(at, [group[0].predicted for group in rows], marker="_", s=260, color="k", label="sandwich formula")
        box.axhline(SIGNAL, color="k", ls="--", label="θ = 0")
        box.axvspan(0.5, 1.5 + levels.index("d/8") - 1, color="tab:red", alpha=0.08)
        names = [f"{level}\n{PREDICTED[level]:.2f}" for level in levels] + ["no\nprivacy", "MLE"]
        box.set_xticks(list(at), names)
        box.set(xlabel="ε₁, and the inflation 1/m²", ylabel="distance to θ*", yscale="log")
        box.set_yticks([4, 6, 10, 15], ["4", "6", "10", "15"])
        box.minorticks_off()
        box.set_title(f"{len(rows[0])} trials, N = {PEOPLE:,}", fontsize=10)
        box.legend(fontsize=7.5)
        sizes = sorted({row.people for row in table})
        for level in ["", *levels]:
            modes = (MOMENTS,) if level else (PLAIN,)
            y = [ratio(of(table, level, *modes, people=people)) for people in sizes]
            check.plot(sizes, y, "o-", ms=4, color=colours.get(level, "0.3"), label=level or "no privacy")
        check.axhline(1, color="k", lw=0.8)
        check.set(xscale="log", xlabel="people", ylabel="mean squared distance / sandwich formula")
        check.set_xticks(sizes, [f"{people:.2g}".replace("e+0", "e") for people in sizes])
        check.minorticks_off()
        check.set_title("The formula is for many people (moments, 3 to 12 trials)", fontsize=10)
        check.legend(fontsize=7.5)
        for axis in axes:
            axis.grid(alpha=0.25)


def main() -> int:
    """Runs all trials, writes the table and the figure, says what held."""
    study = Study.from_command_line(__file__, __doc__, quick="3 trials at 3 levels")
    levels = ["d/16", "d/8", "d"] if study.quick else list(SHARES)
    plan = [(EXACT, PEOPLE)] * 1 + [(MOMENTS, PEOPLE)] * 2
    if not study.quick:
        plan = [(EXACT, PEOPLE)] * 4 + [(MOMENTS, PEOPLE)] * 12 + [(MOMENTS, 4 * PEOPLE)] * 4
        plan += [(MOMENTS, 16 * PEOPLE)] * 3
    table: list[Row] = []
    for number, (mode, people) in enumerate(plan):
        found = list(trial(number, mode, levels, people))
        table += found
        ends = (f"{row.level or row.mode} {row.distance:.2f}" for row in found if row.seen == people)
        print(f"trial {number} ({mode}, {people}): {', '.join(ends)}", flush=True)
    lines = list(summary(table))
    study.write_table((asdict(row) for row in table), header=lines)
    draw(table, study)
    print("\n".join(lines))
    return study.verdict(
        failures(table, slack=2.0 if study.quick else 1.0), held=f"all claims hold in {len(table)} rows"
    )


if __name__ == "__main__":
    sys.exit(main())
