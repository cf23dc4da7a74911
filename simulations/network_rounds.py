"""What the studies of networks share: rounds over a population of clients with a few images each, curve by curve.

A curve is one training run. N clients, each with its own m images, take part in a round with probability q each.
Updates are gradients, clipped to norm r_max, made private by PrivUnit2 x ScalarDP and added up
(``mechanisms.report_sum``: the mode is a column of the table), divided by the expected cohort q N, and N(0, sigma^2 I)
is added. The model moves against the result by the rate eta = min(eta_0, c / nu), where nu^2 = d sigma^2 + E|Z|^2/(q N)
bounds the second moment of all the noise in it: a function of public numbers. eta_0 and c were chosen by hand on short
runs, which no guarantee covers.

Curves:

    "not private"   sums of clipped gradients, sigma = 0
    "reduced"       sigma such that the central noise is as long as that of the reports: d sigma^2 = rho^2 / (q N)
    "honest"        the sigma that the paper's central target needs

Sums of reports are drawn by their moments; one curve more, with the reduced sigma at the largest eps1 and up to the
first measurement, draws every report.

``central_epsilon`` is what is guaranteed at the target's delta by the sigma that was added. All curves have the same
initial model, the same cohorts, and the same coins in each round.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from csv import DictWriter
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

import p2p_labeldp
from frame import Study, read_rows
from p2p_labeldp import randomness
from p2p_labeldp.accounting.federated import Rounds, safe_projection
from p2p_labeldp.learning.models import Labels, Vector
from p2p_labeldp.mechanisms.noisy_average import NoisyAverage
from p2p_labeldp.mechanisms.report_sum import Mode, ReportSum
from p2p_labeldp.mechanisms.separated import Separated
from p2p_labeldp.randomness import Replay

SEED = 0
EPSILONS = (50.0, 100.0, 250.0, 500.0)
"""eps1; the paper does not say which it used."""
MAGNITUDE_EPSILON = 10.0
NOT_PRIVATE, REDUCED, HONEST = "not private", "reduced", "honest"

FOLDERS = {
    "data-dir": "folder of the data set's files",
    "parts": "folder that keeps each curve when it is done, and where those of an earlier run are found",
}
QUICK = "4 rounds of cohorts of 4 at eps1 = 500; only the count is claimed"

Pixels = npt.NDArray[np.uint8]
Kept = TypeVar("Kept")


class Trained(Protocol):
    """What rounds train: a ``Network``, or a part of one."""

    @property
    def dimension(self) -> int: ...

    def initial(self, seed: int) -> Vector: ...

    def gradients(
        self, parameters: Vector, features: npt.NDArray[np.float32], labels: Labels, *, block: int
    ) -> Iterator[npt.NDArray[np.float32]]: ...

    def predict(self, parameters: Vector, features: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Data:
    """Clients' and held-out rows: images, unless a study has others.

    Args:
        clients: Shape (N, m, inputs).
        labels: Shape (N, m).
        test: Shape (t, inputs).
        test_labels: Shape (t,).
        verified: Whether the files are the published ones.
    """

    clients: npt.NDArray[Any]
    labels: Labels
    test: npt.NDArray[Any]
    test_labels: Labels
    verified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What all curves of a study have in common.

    Args:
        network: What is trained.
        rounds: T.
        target: Central (eps, delta).
        population: N.
        cohort: q N.
        images: m, of each client.
        radius: r_max.
        rate: eta_0.
        noise_length: c.
        every: Rounds between measurements.
        block: Clients whose gradients are taken at once.
        between: What pixels of 0 and 255 are to the network; a rule that no image has a part in.
        levels: eps1 with the reduced sigma.
        honest: eps1 with the honest one.
    """

    network: Trained
    rounds: int
    target: tuple[float, float]
    population: int
    cohort: float
    images: int
    radius: float
    rate: float
    noise_length: float
    every: int = 10
    block: int = 3
    between: tuple[float, float] = (0.0, 1.0)
    levels: tuple[float, ...] = EPSILONS
    honest: tuple[float, ...] = EPSILONS

    @property
    def sampling_rate(self) -> float:
        """q."""
        return self.cohort / self.population

    def seen(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Rows as they are learned from, in the same shape: bytes are pixels, others stay as they are."""
        if rows.dtype != np.uint8:
            return np.asarray(rows, dtype=np.float32)
        low, high = (np.float32(bound) for bound in self.between)
        return rows / np.float32(255) * (high - low) + low

    def mechanism(self, epsilon: float) -> Separated:
        """What clients use at a level of the direction."""
        return Separated.calibrated(
            dimension=self.network.dimension,
            epsilon_direction=epsilon,
            epsilon_magnitude=MAGNITUDE_EPSILON,
            max_radius=self.radius,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One training run.

    Args:
        noise: NOT_PRIVATE, REDUCED or HONEST.
        epsilon: eps1; infinite if not private.
        mode: How reports were added up.
        rounds: How many are played.
    """

    noise: str
    epsilon: float
    mode: Mode
    rounds: int

    @property
    def name(self) -> str:
        """For the eye and for files."""
        return f"{self.noise} {self.epsilon:g} {self.mode}".replace(" ", "-")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """Where a curve is, and what is guaranteed.

    Args:
        round: Rounds so far.
        parameters: Of the model, shape (d,).
        sigma: What the learner adds.
        honest_sigma: What the target takes.
        central_epsilon: Of sigma, at the target's delta.
        rate: eta.
        reports: So far.
        refused: Of these, updates that were not finite.
        cpu_seconds: So far, measurements included.
    """

    round: int
    parameters: Vector
    sigma: float
    honest_sigma: float
    central_epsilon: float
    rate: float
    reports: int
    refused: int
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measurement: the model after ``round`` rounds on the held-out images."""

    noise: str
    epsilon_direction: float
    mode: str
    round: int
    accuracy: float
    tested: int
    sigma: float
    honest_sigma: float
    central_epsilon: float
    central_delta: float
    rate: float
    reports: int
    refused: int
    cpu_seconds: float
    parameters: int
    population: int
    expected_cohort: float
    images: int
    data: str
    seed: int = SEED
    version: str = p2p_labeldp.__version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a study claims of its rows; accuracies are those after the last round.

    Args:
        parameters: Of the network.
        not_private: Least accuracy without privacy.
        least: Least accuracy at the smallest eps1 with the reduced sigma.
        most: Least accuracy at the largest one.
        slack: By how much accuracy may fall from one eps1 to the next: one seed is one draw.
        honest: Largest accuracy with the honest sigma, in all rounds.
        exact: Largest difference between exact reports and moments, in all rounds both have.
    """

    parameters: int
    not_private: float
    least: float
    most: float
    slack: float
    honest: float
    exact: float


def curves(plan: Plan) -> list[Curve]:
    """All that are run."""
    moments = [(REDUCED, epsilon) for epsilon in plan.levels] + [(HONEST, epsilon) for epsilon in plan.honest]
    return [
        Curve(noise=NOT_PRIVATE, epsilon=math.inf, mode="clipped", rounds=plan.rounds),
        *(Curve(noise=noise, epsilon=epsilon, mode="moments", rounds=plan.rounds) for noise, epsilon in moments),
        Curve(noise=REDUCED, epsilon=max(plan.levels), mode="exact", rounds=plan.every),
    ]


def quick(plan: Plan) -> Plan:
    """Enough to see that it runs."""
    return replace(plan, rounds=4, cohort=4.0, every=2, levels=EPSILONS[-1:], honest=EPSILONS[-1:])


def played(plan: Plan, curve: Curve, data: Data) -> Iterator[Played]:
    """Plays a curve and stops where it is measured: every so many rounds, before the first and after the last."""
    private = curve.noise != NOT_PRIVATE
    network, delta = plan.network, plan.target[1]
    mechanism = plan.mechanism(curve.epsilon if private else max(EPSILONS))
    projection = safe_projection(mechanism)
    rounds = Rounds(
        population=plan.population, sampling_rate=plan.sampling_rate, rounds=plan.rounds, projection=projection
    )
    honest = rounds.sigma_for(epsilon=plan.target[0], delta=delta) if private else 0.0
    reduced = projection / math.sqrt(plan.cohort * network.dimension) if private else 0.0
    sigma = honest if curve.noise == HONEST else reduced
    guaranteed = rounds.guarantee(sigma=sigma, delta=delta).epsilon if private else math.inf
    second = mechanism.second_moment(plan.radius) if private else 0.0
    length = math.sqrt(network.dimension * sigma**2 + second / plan.cohort)
    rate = min(plan.rate, plan.noise_length / length) if private else plan.rate
    adding = ReportSum(mechanism=mechanism, projection=projection, mode=curve.mode)
    average = NoisyAverage(dimension=network.dimension, projection=projection, expected_cohort=plan.cohort, sigma=sigma)
    parameters, reports, refused, coins = network.initial(SEED), 0, 0, Replay(SEED, 0)
    began = time.process_time()
    for number in range(curve.rounds + 1):
        if number % plan.every == 0 or number == curve.rounds:
            yield Played(
                round=number,
                parameters=parameters,
                sigma=sigma,
                honest_sigma=honest,
                central_epsilon=guaranteed,
                rate=rate,
                reports=reports,
                refused=refused,
                cpu_seconds=round(time.process_time() - began, 1),
            )
        if number == curve.rounds:
            return
        words = randomness.bulk_sampling_words(SEED, 0, plan.population, number)
        cohort = np.flatnonzero(words < np.uint64(int(plan.sampling_rate * 2**64)))
        images = plan.seen(data.clients[cohort])
        updates = network.gradients(parameters, images, data.labels[cohort], block=plan.block)
        summed = adding.of(updates, coins.update_generator(round_id=b"", number=number))
        released = summed.total / plan.cohort
        if sigma > 0.0:  # an empty round's release is its noise
            released += average.release([], coins.noise_generator(round_id=b"", number=number, reports=b""))
        parameters = parameters - rate * released
        reports, refused = reports + summed.reports, refused + summed.refused


def train(plan: Plan, curve: Curve, data: Data) -> Iterator[Row]:
    """Plays a curve and measures it on held-out rows."""
    for at in played(plan, curve, data):
        seen = plan.network.predict(at.parameters, plan.seen(data.test)) == data.test_labels
        yield Row(
            noise=curve.noise,
            epsilon_direction=curve.epsilon,
            mode=curve.mode,
            round=at.round,
            accuracy=round(float(seen.mean()), 4),
            tested=len(seen),
            sigma=at.sigma,
            honest_sigma=at.honest_sigma,
            central_epsilon=at.central_epsilon,
            central_delta=plan.target[1],
            rate=at.rate,
            reports=at.reports,
            refused=at.refused,
            cpu_seconds=at.cpu_seconds,
            parameters=plan.network.dimension,
            population=plan.population,
            expected_cohort=plan.cohort,
            images=plan.images,
            data="verified" if data.verified else "unverified",
        )


def play(plan: Plan, chosen: Iterable[Curve], data: Data, study: Study) -> list[Row]:
    """All curves; those that an earlier run kept are read."""
    one_thread()
    rows: list[Row] = []
    for curve in chosen:
        rows += once(study, curve.name, Row, lambda curve=curve: _told(curve, train(plan, curve, data)))
    return rows


def once(study: Study, name: str, kind: type[Kept], rows: Callable[[], Iterable[Kept]]) -> list[Kept]:
    """The rows of a curve: read if an earlier run kept them, else found, and kept if there is a folder for it."""
    parts = study.folders.get("parts")
    path = None if parts is None else parts / f"{study.stem.name}-{name}.csv"
    if path is not None and path.is_file():
        return read_rows(path, kind)
    found = list(rows())
    if path is not None:
        keep(path, found)
    return found


def _told(curve: Curve, rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        print(f"{curve.name:<30} round {row.round:>4}  {row.accuracy:.4f}  {row.cpu_seconds:7.1f} s", flush=True)
        yield row


def keep(path: Path, rows: Sequence[Any]) -> None:
    """Writes a curve, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    with draft.open("w", newline="") as file:
        writer = DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    draft.replace(path)


def one_thread() -> None:
    """XLA reads it when JAX is first imported: CPU seconds then mean what they say."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")


def of_curve(rows: Iterable[Row], noise: str, epsilon: float, mode: str | None = None) -> dict[int, float]:
    """Accuracy by round."""
    wanted = mode or ("clipped" if noise == NOT_PRIVATE else "moments")
    return {
        row.round: row.accuracy
        for row in rows
        if (row.noise, row.epsilon_direction, row.mode) == (noise, epsilon, wanted)
    }


def failures(rows: Sequence[Row], plan: Plan, claims: Claims) -> Iterator[str]:
    """What of the claims the rows contradict."""
    if wrong := {row.parameters for row in rows} - {claims.parameters}:
        yield f"a network of {wrong} parameters, {claims.parameters} are claimed"
    plain = of_curve(rows, NOT_PRIVATE, math.inf).get(plan.rounds, 0.0)
    if not plain >= claims.not_private:
        yield f"without privacy accuracy ends at {plain}, {claims.not_private} is claimed"
    last = [of_curve(rows, REDUCED, epsilon).get(plan.rounds, 0.0) for epsilon in EPSILONS]
    for (low, high), (before, after) in zip(pairwise(EPSILONS), pairwise(last), strict=True):
        if not after >= before - claims.slack:
            yield f"accuracy falls from {before} at eps1 = {low:g} to {after} at {high:g}"
    for epsilon, accuracy, least in ((EPSILONS[0], last[0], claims.least), (EPSILONS[-1], last[-1], claims.most)):
        if not accuracy >= least:
            yield f"with the reduced sigma at eps1 = {epsilon:g} accuracy ends at {accuracy}, {least} is claimed"
    honest = [row for row in rows if row.noise == HONEST]
    for epsilon in plan.honest:
        accuracies = of_curve(rows, HONEST, epsilon)
        if plan.rounds not in accuracies or not max(accuracies.values()) <= claims.honest:
            yield f"with the honest sigma at eps1 = {epsilon:g} accuracy is not below {claims.honest} all the way"
    if any(row.central_epsilon > plan.target[0] for row in honest):
        yield f"the honest sigma does not meet epsilon {plan.target[0]}"
    exact = of_curve(rows, REDUCED, max(EPSILONS), "exact")
    if not exact:
        yield "no round with every report drawn"
    for number, drawn in exact.items():
        beside = of_curve(rows, REDUCED, max(EPSILONS)).get(number, math.nan)
        if not abs(drawn - beside) <= claims.exact:
            yield f"round {number}: {drawn} with every report drawn, {beside} by moments"


def header(rows: Sequence[Row], plan: Plan) -> list[str]:
    """What stands above the table."""
    lines = [
        "mode moments: the sum of a cohort's reports as one Gaussian with their first two moments; exact: every report"
        " drawn; clipped: no privacy",
        f"reports are {MAGNITUDE_EPSILON:g} more than epsilon_direction private each, against the learner",
        f"the honest sigma is for central ({plan.target[0]:g}, {plan.target[1]:g}); central_epsilon is that of sigma",
    ]
    if any(row.data == "unverified" for row in rows):
        lines.append("unverified: the data files are not the published ones")
    return lines


def draw(rows: Sequence[Row], study: Study, plan: Plan, title: str) -> None:
    """Accuracy over rounds: both sigmas by level, no privacy, and what a guess would have."""
    with study.figure(size=(8.4, 4.2)) as (_, axis):
        plain = of_curve(rows, NOT_PRIVATE, math.inf)
        axis.plot(plain.keys(), plain.values(), "--", color="0.3", label="not private (clipped)")
        for noise, mark, colour in ((REDUCED, "o-", (0.1, 0.3, 0.75)), (HONEST, "s-", (0.8, 0.1, 0.1))):
            for epsilon, shade in zip(EPSILONS, (0.35, 0.55, 0.75, 0.95), strict=True):
                if line := of_curve(rows, noise, epsilon):
                    name = f"{noise} σ, ε₁ = {epsilon:g}"
                    axis.plot(line.keys(), line.values(), mark, ms=3, color=(*colour, shade), label=name)
        exact = of_curve(rows, REDUCED, max(EPSILONS), "exact")
        axis.plot(exact.keys(), exact.values(), "x", color="k", label=f"every report drawn, ε₁ = {max(EPSILONS):g}")
        axis.axhline(1 / plan.network.dense[-1], ls=":", lw=1, color="0.5", label="a guess")
        axis.set(xlabel="round", ylabel="accuracy on held-out images", title=title)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def run(study: Study, plan: Plan, data: Data, *, claims: Claims, title: str) -> int:
    """Plays all curves, writes table and figure; gives the exit code."""
    if study.quick:
        plan = quick(plan)
    rows = play(plan, curves(plan), data, study)
    study.write_table((asdict(row) for row in rows), header=header(rows, plan))
    draw(rows, study, plan, title)
    found = list(failures(rows, plan, claims))
    if study.quick:
        found = [line for line in found if "parameters" in line]
    return study.verdict(found, held="the count is right" if study.quick else "all claims hold")
