"""The curves of Figure 1: what each mechanism may choose among, and how it is played, trained and measured.

All train the same model, multinomial logistic regression with intercepts, on the same features. What releases labels is
followed by L-BFGS from weights of 0 until no entry of the gradient is above ``TOLERANCE``, after ``MOST_ITERATIONS``
iterations at the most; the corrected loss where the mechanism has a correction. The two kinds of DP-SGD train
themselves.

Chosen among are ``BUDGET`` points of a box for every mechanism, for each data set and epsilon: an additive lattice, so
that a mechanism with one parameter has that many values of it and one with four no more points, but spread.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import figure1_data as data
from figure1_data import Rows
from finished import Value
from p2p_labeldp import population, randomness
from p2p_labeldp.accounting import gaussian, planning, subsampled
from p2p_labeldp.accounting.iteration import Iteration
from p2p_labeldp.learning.corrected_loss import SoftLoss, minimise, scores, soft_targets
from p2p_labeldp.learning.dpsgd import DPSGD, predict
from p2p_labeldp.learning.projected_sgd import ProjectedSGD
from p2p_labeldp.mechanisms.cluster_rr import ClusterRR
from p2p_labeldp.mechanisms.randomized_response import largest_flip, local_epsilon
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.mechanisms.staged_rr import OneStageRR, TwoStageRR
from p2p_labeldp.mechanisms.uniform_rr import UniformRR

TOLERANCE = 1e-4
MOST_ITERATIONS = 200

BATCHES = ((0.02, 250), (0.05, 300))
"""DP-SGD: the probability that a row is in a batch, and the number of steps."""
PASSES = (1 / 500, 1 / 100, 1 / 25)
"""By iteration: a batch's share of the one pass."""

Chosen = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Values between two ends, by their logarithm or not, or one of a few."""

    low: float
    high: float
    log: bool = True

    def at(self, share: float) -> float:
        """The value at a share of the way, 0 to 1, to four digits."""
        if self.log:
            return float(f"{self.low * (self.high / self.low) ** share:.4g}")
        return float(f"{self.low + (self.high - self.low) * share:.4g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """An index into a few."""

    count: int

    def at(self, share: float) -> float:
        """The index at a share of the way."""
        return float(min(int(share * self.count), self.count - 1))


L2 = Span(low=1e-5, high=1e-1)
SHARE = Span(low=0.1, high=0.9, log=False)

BOXES: dict[str, dict[str, Span | OneOf]] = {
    "none": {"l2": L2},
    "cluster_rr": {"l2": L2, "floor": Span(low=1e-4, high=0.05), "noise_share": SHARE},
    "uniform_rr": {"l2": L2},
    "one_stage": {"l2": L2, "noise_share": SHARE},
    "two_stage": {"l2": L2, "first_share": SHARE},
    "resampling": {"l2": L2},
    "dp_sgd": {
        "l2": L2,
        "clip": Span(low=0.1, high=2.0),
        "stride": Span(low=0.5, high=20.0),  # learning rate times clip: how far one row may move the weights, times n q
        "batches": OneOf(count=len(BATCHES)),
    },
    "iteration": {
        "radius": Span(low=3.0, high=100.0),  # in place of an L2 weight
        "rate_share": Span(low=0.02, high=1.0),  # of the largest learning rate, 4/R^2
        "feature_bound": Span(low=1.0, high=2.0, log=False),
        "pass": OneOf(count=len(PASSES)),
    },
}

CURVES = tuple(BOXES)[1:]
NEED_CLUSTERS = ("cluster_rr", "one_stage", "two_stage", "resampling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One mechanism played once.

    Args:
        dataset: Name.
        part: Of its rows.
        curve: Of ``BOXES``.
        epsilon: Target; infinite for none.
        clusters: Their number.
        trial: Which coins and which clusters; a candidate's number while choosing, where the clusters are always the
            same.
        chosen: Its parameters.
        directory: Of prepared rows, clusters and accounts.
    """

    dataset: str
    part: str
    curve: str
    epsilon: float
    clusters: int
    trial: int
    chosen: tuple[tuple[str, float], ...]
    directory: Path

    @property
    def key(self) -> str:
        """All but what follows from the rest."""
        return f"{self.part} {self.dataset} {self.curve} {self.epsilon:g} {self.clusters} {self.trial}"


def candidates(curve: str, budget: int) -> list[tuple[tuple[str, float], ...]]:
    """The points of the box: multiples, from the middle, of powers of 1/phi, phi^(d+1) = phi + 1, modulo 1."""
    box = BOXES[curve]
    phi = 2.0
    for _ in range(60):
        phi = (1 + phi) ** (1 / (len(box) + 1))
    steps = [phi ** -(axis + 1) for axis in range(len(box))]
    return [
        tuple((name, span.at((0.5 + i * step) % 1.0)) for (name, span), step in zip(box.items(), steps, strict=True))
        for i in range(budget)
    ]


def play(cell: Cell) -> Value:
    """Plays, trains and measures a cell."""
    rows = data.rows(cell.dataset, cell.part, cell.directory)
    return _PLAYS[cell.curve](cell, rows, dict(cell.chosen))


def _fitted(rows: Rows, targets: Any, l2: float) -> Value:
    loss = SoftLoss(features=rows.features, targets=targets, l2=l2)
    found = minimise(loss, tolerance=TOLERANCE, max_iterations=MOST_ITERATIONS)
    guesses = scores(rows.test_features, found.weights, True).argmax(axis=1)
    return {"accuracy": rows.accuracy(guesses), "iterations": found.iterations, "converged": found.converged}


def _none(cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    return _fitted(rows, soft_targets(rows.labels, num_classes=rows.num_classes), chosen["l2"])


def _ids(cell: Cell) -> data.Ids:
    trial = 0 if cell.part == data.CHOICE else cell.trial
    return data.clusters(cell.dataset, cell.part, cell.clusters, trial, cell.directory)


def _told(mechanism: LabelMechanism, cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    """What a mechanism for labels gives, learnt from."""
    ids = _ids(cell) if cell.curve in NEED_CLUSTERS else np.zeros(len(rows.labels), dtype=np.int64)
    rng = randomness.curator(data.seed_of(cell.key))
    released = mechanism.release(rows.labels, ids, count=int(ids.max()) + 1, rng=rng)
    targets = soft_targets(
        released.labels,
        num_classes=rows.num_classes,
        distributions=None if released.distributions is None else released.distributions[ids],
        correction=released.correction,
    )
    local = math.inf if mechanism.needs_curator else mechanism.epsilon
    return _fitted(rows, targets, chosen["l2"]) | {"delta": "0", "local_epsilon": local}


def _cluster_rr(cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    mechanism = ClusterRR.calibrated(
        num_classes=rows.num_classes,
        epsilon=cell.epsilon,
        floor=chosen["floor"],
        noise_share=chosen["noise_share"],
    )
    return _told(mechanism, cell, rows, chosen)


def _uniform_rr(cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    return _told(UniformRR.calibrated(num_classes=rows.num_classes, epsilon=cell.epsilon), cell, rows, chosen)


def _one_stage(cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    mechanism = OneStageRR.calibrated(
        num_classes=rows.num_classes, epsilon=cell.epsilon, noise_share=chosen["noise_share"]
    )
    return _told(mechanism, cell, rows, chosen)


def _two_stage(cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    mechanism = TwoStageRR(num_classes=rows.num_classes, epsilon=cell.epsilon, first_share=chosen["first_share"])
    return _told(mechanism, cell, rows, chosen)


def _resampling(cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    ids = _ids(cell)
    sizes = np.bincount(ids, minlength=cell.clusters).tolist()
    flips = _accounts(cell.directory)["flips"][_number(cell.epsilon, rows.num_classes)]
    played = population.play(
        rows.labels,
        ids,
        [flips[str(max(1, size))] for size in sizes],
        seed=data.seed_of(cell.key),
        num_classes=rows.num_classes,
    )
    targets = soft_targets(played.reports.astype(np.int64), num_classes=rows.num_classes)
    locals_ = [local_epsilon(flips[str(size)], rows.num_classes) for size in sizes if size]
    return _fitted(rows, targets, chosen["l2"]) | {"delta": "1/s^2", "local_epsilon": max(locals_)}


def _dp_sgd(cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    share, steps = BATCHES[int(chosen["batches"])]
    delta = 1 / training_rows(cell)
    trainer = DPSGD(
        noise_multiplier=_accounts(cell.directory)["noise"][_number(cell.epsilon, delta, share, steps)],
        clip=chosen["clip"],
        sampling_probability=share,
        steps=steps,
        learning_rate=chosen["stride"] / chosen["clip"],
        l2=chosen["l2"],
    )
    rng = np.random.default_rng(data.seed_of(cell.key))
    weights = trainer.fit(rows.features, rows.labels, num_classes=rows.num_classes, rng=rng)
    return {"accuracy": rows.accuracy(predict(weights, rows.test_features)), "delta": f"{delta:.4g}"}


def _iteration(cell: Cell, rows: Rows, chosen: Chosen) -> Value:
    size = max(1, int(PASSES[int(chosen["pass"])] * len(rows.labels)))
    delta = 1 / training_rows(cell)
    bound = chosen["feature_bound"]
    account = iteration_account(len(rows.labels) // size, cell.epsilon, delta)
    trainer = ProjectedSGD(
        noise_scale=account.noise_multiplier * math.sqrt(2) * bound / size,
        learning_rate=chosen["rate_share"] * 4 / bound**2,
        radius=chosen["radius"],
        feature_bound=bound,
        batch_size=size,
    )
    assert trainer.noise_scale >= account.noise_multiplier * trainer.label_sensitivity() * (1 - 1e-12)
    rng = np.random.default_rng(data.seed_of(cell.key))
    weights = trainer.fit(rows.features, rows.labels, num_classes=rows.num_classes, rng=rng)
    return {
        "accuracy": rows.accuracy(predict(weights, rows.test_features)),
        "delta": f"{delta:.4g}",
        "epsilon_at_tenth_delta": account.random_order_epsilon(delta / 10),
    }


_PLAYS: dict[str, Callable[[Cell, Rows, Chosen], Value]] = {
    "none": _none,
    "cluster_rr": _cluster_rr,
    "uniform_rr": _uniform_rr,
    "one_stage": _one_stage,
    "two_stage": _two_stage,
    "resampling": _resampling,
    "dp_sgd": _dp_sgd,
    "iteration": _iteration,
}


def training_rows(cell: Cell) -> int:
    """n of the curves, whose deltas are also those of the choice."""
    return len(data.rows(cell.dataset, data.CURVES, cell.directory).labels)


@lru_cache(maxsize=64)
def iteration_account(steps: int, epsilon: float, delta: float) -> Iteration:
    """The least noise, to 1e-6 of itself, that holds (epsilon, delta) in a secret random order, by bisection."""
    remaining = np.sqrt(np.arange(1, steps + 1))
    low, high = 1e-3, 1e5
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        fits = float(gaussian.delta(1 / (middle * remaining), epsilon).mean()) <= delta
        low, high = (low, middle) if fits else (middle, high)
    account = Iteration(steps=steps, noise_multiplier=high)
    assert account.random_order_epsilon(delta) <= epsilon * (1 + 1e-9)
    return account


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCell:
    """DP-SGD's noise multiplier for (epsilon, delta), neighbours that differ in one example or its label."""

    epsilon: float
    delta: float
    sampling_probability: float
    steps: int

    @property
    def key(self) -> str:
        """Of the account."""
        return "noise " + _number(self.epsilon, self.delta, self.sampling_probability, self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipCell:
    """Algorithm 2's flip for (epsilon, 1/s^2) in clusters of these sizes, nobody of whom fails to answer.

    The least flip of a size of a coarser grid is tried on the sizes up to the next one, and is theirs if the accountant
    says that it holds there too: a hundredth of the time, and a few percent too much flipping. A cluster of one tells
    nothing: its delta would be 1.
    """

    epsilon: float
    num_classes: int
    sizes: tuple[int, ...]

    @property
    def key(self) -> str:
        """Of the account."""
        return f"flips {_number(self.epsilon, self.num_classes)} {hash_of(self.sizes)}"


def noise(cell: NoiseCell) -> Value:
    """The multiplier."""
    return {
        "noise": subsampled.noise_for(
            epsilon=cell.epsilon,
            delta=cell.delta,
            sampling_probability=cell.sampling_probability,
            steps=cell.steps,
        )
    }


GRID = 1.08
"""Sizes of the grid grow by so much."""


def flips(cell: FlipCell) -> Value:
    """The flip of each size."""
    found: dict[str, float] = {}
    for size in cell.sizes:
        if size == 1:
            found[str(size)] = largest_flip(cell.num_classes)
            continue
        floor = size if size < 12 else math.floor(GRID ** math.floor(math.log(size) / math.log(GRID)))
        flip = planning.plan_roster(min(floor, size), cell.epsilon, 0.0, num_classes=cell.num_classes).flip_probability
        delta = planning.roster_delta(size)
        if not planning.roster_fits(size, size, flip, cell.epsilon, delta, num_classes=cell.num_classes):
            flip = planning.plan_roster(size, cell.epsilon, 0.0, num_classes=cell.num_classes).flip_probability
        found[str(size)] = flip
    return {"flips": found}


def write_accounts(directory: Path, kept: Mapping[str, Value], cells: list[NoiseCell | FlipCell]) -> None:
    """Where ``play`` finds them."""
    noises, flips_ = {}, {}
    for cell in cells:
        if isinstance(cell, NoiseCell):
            noises[cell.key.removeprefix("noise ")] = kept[cell.key]["noise"]
        else:
            by_size = flips_.setdefault(_number(cell.epsilon, cell.num_classes), {})
            by_size.update(kept[cell.key]["flips"])
    (directory / "accounts.json").write_text(json.dumps({"noise": noises, "flips": flips_}))


@lru_cache(maxsize=1)
def _accounts(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "accounts.json").read_text())
    return found


def _number(*parts: float) -> str:
    return " ".join(f"{part:.6g}" for part in parts)


def hash_of(sizes: tuple[int, ...]) -> str:
    """A name for many numbers."""
    return f"{data.seed_of(repr(sizes)):016x}"
