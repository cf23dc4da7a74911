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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

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
MODES = (
    "mode moments: the sum of a cohort's reports as one Gaussian with their first two moments; exact: every report"
    " drawn; clipped: no privacy"
)
"""What stands above a table that has a curve's mode in a column."""


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


def one_thread() -> None:
    """XLA reads it when JAX is first imported: CPU seconds then mean what they say."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
