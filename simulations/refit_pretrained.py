"""DOC"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

import p2p_labeldp
import refit_images
import refit_words
from frame import Study
from last_layer import LastLayer
from network_rounds import FOLDERS, HONEST, NOT_PRIVATE, REDUCED, SEED, Curve, Data, Plan, once, one_thread, played
from p2p_labeldp.accounting.federated import PeerLedger, most_participations
from p2p_labeldp.accounting.reconstruction import log_dictionary_prior, log_sphere_prior
from p2p_labeldp.learning.networks import MNIST

IMAGES, NARROW, UNTRAINED = "images", "images, 128 axes", "images, untrained network"
WORDS, FROM_ZEROS = "words", "words, from zeros"
NAMES = (IMAGES, NARROW, UNTRAINED, WORDS, FROM_ZEROS)
PARAMETERS = {IMAGES: 10_250, NARROW: 1_290, UNTRAINED: 10_250, WORDS: 8_192, FROM_ZEROS: 8_192}
LEVELS, EIGHTH = (4.0, 16.0, 64.0), 8
"""eps1, and d/8 beside them."""
MIDDLE, SWEPT = 16.0, 64.0
"""eps1 of the curves beside the others, and of cohorts."""
SHARES = (100, 10)
"""Smaller cohorts: the expected one divided by these."""
EXACT_ROUNDS = 12
DIGITS_STEPS, PUBLIC = 200, 10_000
ALPHA, WRONG = 0.5, 4
"""What counts as reconstructed: features within ALPHA; all but WRONG of a client's words."""
QUICK = "6 rounds of cohorts of 200 over 2,000 clients with a hardly pretrained model; only counts are claimed"

PLAN = Plan(
    network=LastLayer(start=np.zeros((10, 1025))),
    rounds=40,
    target=(1.9, 1e-9),
    population=60_000,
    cohort=6_000.0,
    images=1,
    radius=1.0,
    rate=16.0,
    noise_length=8.0,
    every=4,
    block=100,
)
WORDS_COHORT, WORDS_RATE, WORDS_NOISE_LENGTH = 5_000.0, 4.0, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is refitted on whom.

    Args:
        name: One of ``NAMES``.
        plan: With the last layer as its network.
        data: The new population.
        log_prior: log of the best chance to reconstruct a client's data before any report, under a uniform prior.
    """

    name: str
    plan: Plan
    data: Data
    log_prior: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measurement: the model after ``round`` rounds on held-out rows, and what was guaranteed for all rounds."""

    task: str
    noise: str
    epsilon_direction: float
    mode: str
    expected_cohort: float
    round: int
    accuracy: float
    loss: float
    tested: int
    sigma: float
    honest_sigma: float
    central_epsilon: float
    central_delta: float
    local_epsilon: float
    most_reports: int
    local_epsilon_of_all: float
    log_prior: float
    log_success_one: float
    log_success_all: float
    rate: float
    reports: int
    cpu_seconds: float
    parameters: int
    population: int
    rows: int
    data: str
    seed: int = SEED
    version: str = p2p_labeldp.__version__


def images(folder: Path | None, *, quick: bool) -> tuple[dict[str, Callable[[], Task]], list[str]]:
    """The three tasks of images, made when they are played, and what is to be said of the network."""
    digits, clothes = refit_images.read(folder)
    trained = refit_images.pretrained(digits, 20 if quick else DIGITS_STEPS)
    people, tested, public = (2_000, 500, 2_000) if quick else (PLAN.population, 10_000, PUBLIC)

    def task(name: str, seen: refit_images.Clothes, axes: int) -> Task:
        layer = LastLayer(start=np.zeros((refit_images.CLASSES, axes + 1)))
        plan = replace(PLAN, network=layer, population=people)
        return Task(name=name, plan=plan, data=seen.data(axes), log_prior=log_sphere_prior(dimension=axes, alpha=ALPHA))

    found = {
        of: refit_images.seen_by(parameters, digits, clothes, people=people, tested=tested, public=public)
        for of, parameters in (("trained", trained), ("untrained", MNIST.initial(SEED)))
    }
    said = [
        f"the network as it is: {refit_images.accuracy(trained, digits, tested):.4f} of digits,"
        f" {refit_images.accuracy(trained, clothes, tested):.4f} of clothes by the digits' own last layer"
    ]
    return {
        IMAGES: lambda: task(IMAGES, found["trained"], 1024),
        NARROW: lambda: task(NARROW, found["trained"], 128),
        UNTRAINED: lambda: task(UNTRAINED, found["untrained"], 1024),
    }, said


def words(*, quick: bool) -> tuple[dict[str, Callable[[], Task]], list[str]]:
    """The two tasks of words, and what is to be said of the text."""
    chapters, verified = refit_words.read()
    public, old = refit_words.halves(chapters)
    known = refit_words.vocabulary(public)
    chosen, measuring = refit_words.held_out(old)
    learned, clients, held = (refit_words.texts(half.values(), known) for half in (public, chosen, measuring))
    if quick:
        learned, clients = (
            refit_words.Texts(contexts=t.contexts[:2_000], words=t.words[:2_000]) for t in (learned, clients)
        )
    model = refit_words.pretrained(learned, len(known), epochs=1 if quick else refit_words.EPOCHS)
    data = refit_words.data(model, clients, held, verified=verified)
    prior = log_dictionary_prior(size=len(known), members=refit_words.PREDICTED, wrong=WRONG)
    covered = sum(word in set(known) for words in old.values() for word in words)

    def task(name: str, layer: LastLayer) -> Task:
        plan = replace(
            PLAN,
            network=layer,
            population=len(clients.words),
            cohort=WORDS_COHORT,
            images=refit_words.PREDICTED,
            rate=WORDS_RATE,
            noise_length=WORDS_NOISE_LENGTH,
        )
        return Task(name=name, plan=plan, data=data, log_prior=prior)

    said = [
        f"words: the vocabulary covers {covered / sum(map(len, old.values())):.3f} of the new population's words; the"
        f" rest is neither learned nor measured; a client has {refit_words.PREDICTED}"
    ]
    return {
        WORDS: lambda: task(WORDS, LastLayer(start=model.last)),
        FROM_ZEROS: lambda: task(FROM_ZEROS, LastLayer(start=np.zeros_like(model.last))),
    }, said


def levels(parameters: int) -> tuple[float, ...]:
    """All eps1 of a task of so many parameters."""
    return (*LEVELS, parameters / EIGHTH)


def runs(name: str, plan: Plan) -> Iterator[tuple[Plan, Curve]]:
    """All curves of a task, each with its cohort."""

    def curve(noise: str, epsilon: float, mode: Literal["moments", "exact"] = "moments", rounds: int = 0) -> Curve:
        return Curve(noise=noise, epsilon=epsilon, mode=mode, rounds=rounds or plan.rounds)

    yield plan, Curve(noise=NOT_PRIVATE, epsilon=math.inf, mode="clipped", rounds=plan.rounds)
    if name in (UNTRAINED, FROM_ZEROS):
        yield from ((plan, curve(HONEST, epsilon)) for epsilon in (MIDDLE, SWEPT))
        return
    for epsilon in levels(plan.network.dimension):
        yield from ((plan, curve(noise, epsilon)) for noise in (HONEST, REDUCED))
    if name != NARROW:
        yield plan, curve(HONEST, MIDDLE, "exact", min(EXACT_ROUNDS, plan.rounds))
    for share in SHARES:
        yield from ((replace(plan, cohort=plan.cohort / share), curve(noise, SWEPT)) for noise in (HONEST, REDUCED))


def quick(plan: Plan) -> Plan:
    """Enough to see that it runs."""
    return replace(plan, rounds=6, cohort=200.0, population=min(plan.population, 2_000), every=3)


def measured(task: Task, plan: Plan, curve: Curve) -> Iterator[Row]:
    """Plays a curve and measures it; says how it goes."""
    layer = plan.network
    assert isinstance(layer, LastLayer)
    private = curve.noise != NOT_PRIVATE
    level = plan.mechanism(curve.epsilon).epsilon if private else math.inf
    most = most_participations(sampling_rate=plan.sampling_rate, rounds=plan.rounds, population=plan.population)

    def log_success(reports: int) -> float:
        if not private:
            return 0.0
        return PeerLedger(epsilon=level, participations=reports).reconstruction(task.log_prior).log_success

    for at in played(plan, curve, task.data):
        accuracy, loss = layer.measure(at.parameters, task.data.test, task.data.test_labels)
        print(
            f"{task.name:<26} {curve.name:<22} {plan.cohort:>6g} round {at.round:>3}"
            f"  {accuracy:.4f}  {loss:.4f}  {at.cpu_seconds:6.1f} s",
            flush=True,
        )
        yield Row(
            task=task.name,
            noise=curve.noise,
            epsilon_direction=curve.epsilon,
            mode=curve.mode,
            expected_cohort=plan.cohort,
            round=at.round,
            accuracy=round(accuracy, 4),
            loss=round(loss, 4),
            tested=len(task.data.test_labels),
            sigma=at.sigma,
            honest_sigma=at.honest_sigma,
            central_epsilon=at.central_epsilon,
            central_delta=plan.target[1],
            local_epsilon=level,
            most_reports=most,
            local_epsilon_of_all=most * level,
            log_prior=task.log_prior,
            log_success_one=log_success(1),
            log_success_all=log_success(most),
            rate=at.rate,
            reports=at.reports,
            cpu_seconds=at.cpu_seconds,
            parameters=layer.dimension,
            population=plan.population,
            rows=plan.images,
            data="verified" if task.data.verified else "unverified",
        )
        assert at.refused == 0


def play(study: Study, task: Task) -> list[Row]:
    """All curves of a task; those that an earlier run kept are read."""
    rows: list[Row] = []
    plan = quick(task.plan) if study.quick else task.plan
    for of, curve in runs(task.name, plan):
        name = f"{task.name}-{curve.name}-{of.cohort:g}".replace(" ", "-").replace(",", "")
        rows += once(study, name, Row, lambda of=of, curve=curve: measured(task, of, curve))
    return rows


if __name__ == "__main__":
    study = Study.from_command_line(__file__, __doc__, quick=QUICK, folders=FOLDERS)
    one_thread()
    tasks, said = images(study.folders["data-dir"], quick=study.quick)
    w, more = words(quick=study.quick)
    print(said + more)
    rows = []
    for make in (tasks | w).values():
        rows += play(study, make())
    study.write_table((asdict(row) for row in rows), header=said + more)
