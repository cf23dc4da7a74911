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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr
from scipy.stats import t as student

import p2p_labeldp
from frame import Study, legend_below
from p2p_labeldp import clustering, datasets, population, randomness
from p2p_labeldp.accounting import resampling
from p2p_labeldp.accounting.federated import Rounds
from p2p_labeldp.accounting.planning import least_flip
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.learning import erm
from p2p_labeldp.learning.models import LogisticRegression
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.separated import Separated

SEED = 93
SLOPE = 4.0
MATES, OWN, UPDATES, TRUSTED, NONE = (
    "labels, mates",
    "labels, own flip",
    "updates",
    "updates, trusted learner",
    "no privacy",
)
METHODS = (MATES, OWN, UPDATES, TRUSTED, NONE)
CONTENDERS = (MATES, OWN, UPDATES)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
CLUSTERS = (8, 32, 128)
LEAST_MEMBERS = 15
FIT_ROWS = 4000
TRUSTED_ROUNDS, TRUSTED_STEP = 30, 2.0
BINARY = LabelSpace(classes=("0", "1"))

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How *updates* spends epsilon.

    Args:
        rounds: T; each person takes part in ``participations`` of them, at epsilon / participations.
        step: On the average of a round's reports.
        direction: Share of the level that the direction gets; at 1 no magnitude is sent, and the step is along the
            mean of private directions.
        radius: r_max, in units of sqrt(d + 1); no matter where no magnitude is sent.
        participations: t.
    """

    rounds: int
    step: float
    direction: float
    radius: float = 0.5
    participations: int = 1

    def __str__(self) -> str:
        sent = f"direction {self.direction:g}, r_max {self.radius:g}" if self.direction < 1 else "direction only"
        return f"T {self.rounds}, t {self.participations}, step {self.step:g}, {sent}"


PLANS = (
    Plan(rounds=1, step=1.0, direction=1.0),
    Plan(rounds=1, step=1.0, direction=0.8),
    Plan(rounds=5, step=0.5, direction=1.0),
    Plan(rounds=5, step=2.0, direction=1.0),
    Plan(rounds=5, step=2.0, direction=0.8),
    Plan(rounds=5, step=2.0, direction=0.5),
    Plan(rounds=20, step=0.2, direction=1.0),
    Plan(rounds=20, step=0.5, direction=1.0),
    Plan(rounds=20, step=0.5, direction=0.8),
    Plan(rounds=20, step=2.0, direction=0.8),
    Plan(rounds=20, step=2.0, direction=0.8, radius=1.0),
    Plan(rounds=20, step=0.5, direction=1.0, participations=4),
    Plan(rounds=50, step=1.0, direction=0.8),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """The people of a trial, and what a linear model is worth to those who are not among them.

    Args:
        x: Features, shape (n, d), standardised by public numbers.
        y: Labels, shape (n,).
        accuracy: Of the model that says 1 where w x + b > 0.
        seed: Of the trial's coins.
    """

    x: Reals
    y: Integers
    accuracy: Callable[[Reals, float], float]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A cell of the table: where people come from.

    Args:
        name: "synthetic", or a data set's.
        people: n.
        dimension: d.
    """

    name: str
    people: int
    dimension: int

    def trial(self, number: int) -> People:
        """The people of one trial."""
        seed = SEED * 10**6 + number
        if self.name != "synthetic":
            return self._split(seed)
        rng = randomness.numpy_generator(seed, randomness.Stream.DATA, self.people + self.dimension)
        u = rng.standard_normal(self.dimension)
        u /= np.linalg.norm(u)
        x = rng.standard_normal((self.people, self.dimension))
        y = (rng.random(self.people) < expit(SLOPE * (x @ u))).astype(np.int64)
        return People(x=x, y=y, accuracy=lambda w, b: exact_accuracy(w, b, u), seed=seed)

    def _split(self, seed: int) -> People:
        split = datasets.load(self.name, seed=seed, test_share=0.3)
        mean, scale = split.test_features.mean(axis=0), split.test_features.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        x, test = ((rows - mean) / scale for rows in (split.train_features, split.test_features))
        labels = split.test_labels
        x = np.clip(x, -10, 10)  # a pixel that is constant where the scale was taken may be anything elsewhere
        return People(
            x=x,
            y=split.train_labels.astype(np.int64),
            accuracy=lambda w, b: float(np.mean((test @ w + b > 0) == labels)),
            seed=seed,
        )

    @property
    def overlap(self) -> float:
        """What sharing rows adds to the variance of a mean over trials (``comparing.interval``)."""
        return 0.0 if self.name == "synthetic" else 3 / 7


@dataclass(frozen=True, kw_only=True)
class Row:
    """A pipeline at one level: means over trials, half-widths of 95 % intervals, paired differences."""

    world: str
    people: int
    dimension: int
    epsilon: float
    method: str
    plan: str
    delta: float
    epsilon_with_mates: float
    accuracy: float
    half_width: float
    over_updates: float
    over_updates_half: float
    over_own: float
    over_own_half: float
    best_possible: float
    trials: int
    seed: int = SEED
    version: str = p2p_labeldp.__version__


@lru_cache
def _normal_nodes() -> tuple[Reals, Reals]:
    nodes = np.linspace(-8, 8, 801)
    weights = np.exp(-nodes * nodes / 2)
    return nodes, weights / weights.sum()


def exact_accuracy(w: Reals, b: float, u: Reals) -> float:
    """P(model is right) on the synthetic law: given a = <u, x> the score is Gaussian."""
    a, mass = _normal_nodes()
    along = float(w @ u)
    rest = max(float(np.linalg.norm(w - along * u)), 1e-12)
    says_one = ndtr((along * a + b) / rest)
    p = expit(SLOPE * a)
    return float(mass @ (p * says_one + (1 - p) * (1 - says_one)))


def bayes_accuracy() -> float:
    """1 less the Bayes error of the synthetic law."""
    a, mass = _normal_nodes()
    return float(mass @ expit(SLOPE * np.abs(a)))


def level_of(size: int, flip: float) -> float:
    """epsilon at 1/s^2 against the learner, exact."""
    return resampling.epsilon(cluster_size=size, flip_probability=flip, delta=1 / size**2)


@lru_cache(maxsize=4096)
def least(size: int, epsilon: float) -> float:
    """The least flip of a cluster size."""
    return least_flip(lambda flip: level_of(size, flip) <= epsilon)


def ends(size: int) -> tuple[int, int]:
    """The sizes of a grid, of ratio 1.25, between which a size is."""
    below, above = 2, 3
    while above <= size:
        below, above = above, max(above + 1, int(above * 1.25))
    return below, above


@lru_cache(maxsize=16384)
def flip_for(size: int, epsilon: float) -> float:
    """A flip that keeps a cluster within (epsilon, 1/s^2), hardly above the least.

    The larger of the least flips at both ends of the grid, for a level a thousandth lower. Small sizes, whose least
    flips go up and down by a thousandth, are evaluated, and planned by themselves where that is not enough.
    """
    flip = max(least(end, 0.999 * epsilon) for end in ends(size))
    if size < 600 and level_of(size, flip) > epsilon:
        return least(size, epsilon)
    return flip


def linear(fitted: Any) -> tuple[Reals, float]:
    """Weights and intercept of a fitted pipeline of scaling and a linear classifier."""
    scaler, model = fitted[0], fitted[-1]
    if not hasattr(model, "coef_"):  # all reports were alike
        return np.zeros(len(scaler.mean_)), float(2 * model.predict(scaler.mean_[None])[0] - 1)
    w = model.coef_[0] / scaler.scale_
    return w, float(model.intercept_[0] - w @ scaler.mean_)


def learnt(people: People, labels: Integers) -> float:
    """Accuracy of the ordinary fit to some labels."""
    fitted = erm.fit(erm.CORRECTED, people.x, labels, label_space=BINARY, seed=people.seed)
    return people.accuracy(*linear(fitted))


@lru_cache(maxsize=64)
def clusters_of(people: People, count: int) -> Integers:
    """Public clusters of everybody, by features alone."""
    n = len(people.y)
    rows = people.x[:FIT_ROWS]
    count = min(count, n // (2 * LEAST_MEMBERS))
    fitted = clustering.fit(rows, count=count, minimum_size=LEAST_MEMBERS, seed=people.seed)
    found = fitted.assign(people.x)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def by_mates(people: People, epsilon: float, count: int) -> tuple[float, float, float, int]:
    """Accuracy, the largest delta of a cluster, the largest level against the learner with all mates, and clusters."""
    clusters = clusters_of(people, count)
    sizes = np.bincount(clusters)
    flips = [flip_for(int(size), epsilon) for size in sizes]
    played = population.play(people.y, clusters, flips, seed=people.seed)
    level = math.log((1 - min(flips)) / min(flips))
    return (
        learnt(people, played.reports.astype(np.int64)),
        1 / float(sizes.min()) ** 2,
        level,
        len(sizes),
    )


def by_own_flip(people: People, epsilon: float) -> float:
    """Accuracy where everybody sends its own flipped label."""
    rng = coins(people, 1)
    flips = rng.random(len(people.y)) < 1 / (1 + math.exp(epsilon))
    return learnt(people, people.y ^ flips)


def by_updates(people: People, epsilon: float, plan: Plan) -> float:
    """Accuracy of the average model of the rounds."""
    rng = coins(people, 2)
    n, model = len(people.y), LogisticRegression(features=people.x.shape[1])
    release = privately(model.dimension, epsilon / plan.participations, plan.direction, plan.radius)
    theta, mean = np.zeros(model.dimension), np.zeros(model.dimension)
    done = 0
    for _ in range(plan.participations):
        for cohort in np.array_split(rng.permutation(n), plan.rounds // plan.participations):
            gradients = gradients_of(theta, people.x[cohort], people.y[cohort])
            theta = theta - plan.step * release(gradients, rng).mean(axis=0)
            done += 1
            mean += (theta - mean) / done
    return people.accuracy(mean[:-1], float(mean[-1]))


@lru_cache
def privately(
    dimension: int, level: float, direction: float, radius: float
) -> Callable[[Reals, np.random.Generator], Reals]:
    """What is done to a cohort's gradients, of which each costs ``level``."""
    if direction == 1.0:
        return PrivUnit2.calibrated(dimension=dimension, epsilon=level).privatise_many
    return Separated.calibrated(
        dimension=dimension,
        epsilon_direction=direction * level,
        epsilon_magnitude=(1 - direction) * level,
        max_radius=radius * math.sqrt(dimension),
    ).privatise_many


def gradients_of(theta: Reals, x: Reals, y: Integers) -> Reals:
    """Everybody's own gradient, shape (m, d + 1): (p - y) (x, 1)."""
    gaps = expit(x @ theta[:-1] + theta[-1]) - y
    return np.concatenate([gaps[:, None] * x, gaps[:, None]], axis=1)


def by_trusted_learner(people: People, epsilon: float) -> float:
    """Accuracy of full rounds to which the learner adds noise for central (epsilon, 1/n^2)."""
    rng = coins(people, 3)
    n, dimension = len(people.y), people.x.shape[1] + 1
    sigma = central_sigma(n, dimension, epsilon)
    theta, mean = np.zeros(dimension), np.zeros(dimension)
    radius = 0.5 * math.sqrt(dimension)
    for done in range(TRUSTED_ROUNDS):
        gradients = gradients_of(theta, people.x, people.y)
        lengths = np.linalg.norm(gradients, axis=1)
        average = np.minimum(1, radius / np.maximum(lengths, 1e-300)) @ gradients / n
        theta = theta - TRUSTED_STEP * (average + sigma * rng.standard_normal(dimension))
        mean += (theta - mean) / (done + 1)
    return people.accuracy(mean[:-1], float(mean[-1]))


@lru_cache
def central_sigma(people: int, dimension: int, epsilon: float) -> float:
    """Noise on the average."""
    planned = Rounds(population=people, sampling_rate=1.0, rounds=TRUSTED_ROUNDS, projection=0.5 * math.sqrt(dimension))
    return planned.sigma_for(epsilon=epsilon, delta=1 / people**2)


def coins(people: People, which: int) -> np.random.Generator:
    """A pipeline's coins in a trial."""
    rng: np.random.Generator = randomness.numpy_generator(people.seed, randomness.Stream.DATA, 1_000_000 + which)
    return rng


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


def of(table: Sequence[Row], method: str, world: tuple[str, int, int]) -> list[Row]:
    """The rows of a curve, small levels first."""
    return [row for row in table if row.method == method and (row.world, row.people, row.dimension) == world]


def cells_of(table: Sequence[Row]) -> list[tuple[str, int, int]]:
    """World, people and dimension of each cell, in the table's order."""
    return list(dict.fromkeys((row.world, row.people, row.dimension) for row in table))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Who is best at a level in a cell, among the three that promise the same of a label against the learner.

    Args:
        mates, own, updates: The rows.
    """

    mates: Row
    own: Row
    updates: Row

    @property
    def best(self) -> str:
        """Of highest mean accuracy."""
        return max((self.mates, self.own, self.updates), key=lambda row: row.accuracy).method

    @property
    def certain(self) -> bool:
        """Whether the best is ahead of both others, each by more than the half-width of the difference's interval."""
        pairs = {
            (MATES, OWN): (self.mates.over_own, self.mates.over_own_half),
            (MATES, UPDATES): (self.mates.over_updates, self.mates.over_updates_half),
            (OWN, UPDATES): (self.own.over_updates, self.own.over_updates_half),
        }
        return all(
            ahead(difference if self.best == first else -difference, half)
            for (first, second), (difference, half) in pairs.items()
            if self.best in (first, second)
        )


def contests(table: Sequence[Row], cell: tuple[str, int, int]) -> list[Contest]:
    """One for each level of a cell."""
    rows = (of(table, method, cell) for method in CONTENDERS)
    return [Contest(mates=mates, own=own, updates=updates) for mates, own, updates in zip(*rows, strict=True)]


def title(cell: tuple[str, int, int]) -> str:
    """A cell's name."""
    world, people, dimension = cell
    return f"{'' if world == 'synthetic' else world + ', '}n = {people:,}, d = {dimension}"


MARGIN = 0.01
"""Differences of accuracy that are called one."""


def ahead(difference: float, half: float, margin: float = 0.0) -> bool:
    """Whether a paired difference is certainly above a margin."""
    return difference - half > margin


def within(table: Sequence[Row], cell: tuple[str, int, int], distance: float) -> float:
    """Least level from which on *updates* are at most ``distance`` behind *labels, own flip*; inf if at none."""
    from_here = math.inf
    for contest in reversed(contests(table, cell)):
        if contest.own.over_updates > distance:
            break
        from_here = contest.own.epsilon
    return from_here


def failures(table: Sequence[Row], *, quick: bool = False) -> Iterator[str]:
    """What of the claim does not hold."""
    mates_win, updates_pass, own_pass = 0, 0, 0
    for cell in cells_of(table):
        for contest in contests(table, cell):
            where = f"{title(cell)}, eps {contest.own.epsilon:g}"
            mates, own, updates = contest.mates, contest.own, contest.updates
            if ahead(-own.over_updates, own.over_updates_half, MARGIN):
                yield f"{where}: own flips are {-own.over_updates:.3f} behind updates"
            if mates.epsilon <= 1 and ahead(-mates.over_updates, mates.over_updates_half, MARGIN):
                yield f"{where}: mates are {-mates.over_updates:.3f} behind updates"
            if mates.epsilon >= 4 and ahead(mates.over_own, mates.over_own_half, MARGIN):
                yield f"{where}: mates are {mates.over_own:.3f} ahead of own flips"
            if contest.best == UPDATES and contest.certain:
                yield f"{where}: updates are the best of three"
            mates_win += mates.epsilon <= 0.5 and ahead(mates.over_own, mates.over_own_half, MARGIN)
            own_pass += own.epsilon >= 4 and ahead(-mates.over_own, mates.over_own_half, MARGIN)
            updates_pass += updates.epsilon >= 8 and ahead(-mates.over_updates, mates.over_updates_half, MARGIN)
    if not mates_win and not quick:
        yield "mates are nowhere ahead of own flips at eps .5 or less"
    if not own_pass:
        yield "own flips are nowhere ahead of mates at eps 4 or more"
    if not updates_pass:
        yield "updates are nowhere ahead of mates at eps 8 or more"


def summary(table: Sequence[Row]) -> Iterator[str]:
    """Who is best, cell by cell, and what it takes updates to keep up."""
    for cell in cells_of(table):
        of_levels = (
            f"{contest.own.epsilon:g} {contest.best.removeprefix('labels, ')}{'' if contest.certain else '?'}"
            for contest in contests(table, cell)
        )
        yield f"best of three, {title(cell)}: {', '.join(of_levels)}"
    for cell in cells_of(table):
        yield f"updates within .02 of own flips, {title(cell)}: from eps {within(table, cell, 0.02):g} on"


def draw(table: Sequence[Row], study: Study) -> None:
    """A panel for each cell, and a map of who wins."""
    from matplotlib.colors import ListedColormap

    styles = {
        MATES: ("tab:green", "^", "-"),
        OWN: ("tab:orange", "s", "-"),
        UPDATES: ("tab:blue", "o", "-"),
        TRUSTED: ("tab:blue", "", ":"),
    }
    cells = sorted(cells_of(table), key=lambda cell: (cell[0] != "synthetic", cell[0], cell[1], cell[2]))
    rows = math.ceil((len(cells) + 1) / 3)
    with study.figure(rows, 3, size=(12.5, 3.1 * rows + 0.6)) as (figure, axes):
        for axis in axes.flat[len(cells) + 1 :]:
            axis.remove()
        for axis, cell in zip(axes.flat, cells, strict=False):
            for method, (colour, marker, line) in styles.items():
                curve = of(table, method, cell)
                axis.errorbar(
                    [row.epsilon for row in curve], [row.accuracy for row in curve],
                    yerr=[row.half_width for row in curve] if marker else None, color=colour, ls=line,
                    marker=marker or None, ms=4, capsize=2, label=method,
                )  # fmt: skip
            axis.axhline(of(table, NONE, cell)[0].accuracy, color="0.5", lw=1, label=NONE)
            best = curve[0].best_possible
            if not math.isnan(best):
                axis.axhline(best, color="k", lw=1, ls="--", label="best possible (Bayes)")
            axis.set(xscale="log", title=title(cell), ylim=(0.48, 0.9) if cell[0] == "synthetic" else (0.48, 1.02))
            axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            axis.minorticks_off()
            axis.title.set_fontsize(10)
            axis.grid(alpha=0.25)
        axis = axes.flat[len(cells)]
        played = [contests(table, cell) for cell in cells]
        levels = [contest.own.epsilon for contest in played[0]]
        winners = [[CONTENDERS.index(contest.best) for contest in line] for line in played]
        colours = ListedColormap([styles[method][0] for method in CONTENDERS])
        axis.imshow(winners, cmap=colours, vmin=-0.5, vmax=2.5, aspect="auto", alpha=0.55)
        for y, of_cell in enumerate(played):
            for x, contest in enumerate(of_cell):
                points = 100 * contest.mates.over_updates
                lead = (f"{points:+.0f}" if abs(points) >= 0.5 else "0") + ("" if contest.certain else "?")
                axis.text(x, y, lead, ha="center", va="center", fontsize=7.5)
        axis.set_xticks(range(len(levels)), [f"{epsilon:g}" for epsilon in levels])
        names = [f"{n:,} x {d}" if world == "synthetic" else world for world, n, d in cells]
        axis.set_yticks(range(len(cells)), names, fontsize=7.5)
        axis.set_title("colour: best of three (?: not certain)\nnumber: mates less updates, % points", fontsize=9)
        for axis in axes[:, 0]:
            axis.set_ylabel("accuracy")
        for axis in axes[-1]:
            axis.set_xlabel("ε of a label against the learner")
        legend_below(figure, columns=6)


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
