"""Rounds of private updates: what may be claimed, for whom, against whom. Three ledgers.

*Central.* Each of N peers takes part in a round with probability q, by its own coin. The learner shrinks each report to
norm rho at most, adds the reports up, divides by the expected cohort q N, which is public where the cohort's size is
not, and adds N(0, sigma^2 I). In units of rho that is Gaussian noise of deviation z = sigma q N / rho on a Poisson
sample, T times (``subsampled``). It protects a peer (all its reports are there or none; that it is one of the N is
public, since where all places are taken its place would be another's) against whoever sees the models and not who took
part. A budget that ends a peer's part only lowers its chance to be in a round, whatever came before. Both accountants
are upper bounds, so the smaller one holds.

*Local.* Against the learner, who sees each report by name, there is no central guarantee. A report is private by itself
at level eps1 + eps2 (``mechanisms.separated``), and t of them at t (eps1 + eps2), exactly.

*Reconstruction.* At levels where the local guarantee says little in words of epsilon, it still bounds the chance that
anyone who saw all of a peer's reports reconstructs what it had (``reconstruction``).

The three are about the same rounds. Noise that a small cohort can't bear is often reduced in experiments; the central
guarantee is then the larger one of the noise that was added, and ``side_by_side`` states both.

Source: Bhowmick et al., arXiv 1812.00984, sections 2 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from p2p_labeldp.accounting import gaussian
from p2p_labeldp.accounting.guarantee import Guarantee
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_target
from p2p_labeldp.accounting.reconstruction import ReconstructionBound
from p2p_labeldp.accounting.subsampled import LEAST_DELTA, SubsampledGaussian, least_noise
from p2p_labeldp.errors import BudgetExhausted, ConfigurationError
from p2p_labeldp.mechanisms.grid import stretch
from p2p_labeldp.mechanisms.separated import Separated

Accountant = Literal["tighter", "rdp", "pld"]

LEAST_PLD_NOISE = 0.1
"""Noise multiplier below which one round's losses would fill any grid, and RDP stands alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """T rounds over N peers, of reports whose norm is at most rho.

    Args:
        population: N, peers that toss a coin in each round.
        sampling_rate: q, with which each takes part, on its own; above 0 and at most 1.
        rounds: T.
        projection: rho, above 0.

    Raises:
        ConfigurationError: A number out of range.
    """

    population: int
    sampling_rate: float
    rounds: int
    projection: float

    def __post_init__(self) -> None:
        check_count(self.population, "population")
        check_count(self.rounds, "rounds")
        if isinstance(self.sampling_rate, bool) or not 0 < self.sampling_rate <= 1:
            raise ConfigurationError(
                f"{self.sampling_rate} given; above 0 and at most 1 is possible", field="sampling_rate"
            )
        _check_positive(self.projection, "projection")

    @property
    def expected_cohort(self) -> float:
        """q N."""
        return self.sampling_rate * self.population

    def noise_multiplier(self, sigma: float) -> float:
        """z = sigma q N / rho."""
        return _check_positive(sigma, "sigma") * self.expected_cohort / self.projection

    def sigma(self, noise_multiplier: float) -> float:
        """sigma = z rho / (q N), of the noise on the average."""
        return noise_multiplier * self.projection / self.expected_cohort

    def epsilon(self, *, sigma: float, delta: float, accountant: Accountant = "tighter") -> float:
        """Upper bound at ``delta``.

        Args:
            sigma: Deviation of the noise on each coordinate of the average, above 0.
            delta: 1e-12 or more, below 1.
            accountant: Whose.
        """
        z = self.noise_multiplier(sigma)
        return min(_accountants(self.sampling_rate, self.rounds, z, _check_delta(delta), accountant).values())

    def epsilons(self, *, sigma: float, delta: float) -> dict[str, float]:
        """Upper bounds by the name of who found them: ``rdp``, and ``pld`` unless there is hardly any noise, or too
        many rounds for it to see ``delta``; ``exact`` alone where everybody takes part in every round."""
        z = self.noise_multiplier(sigma)
        return _accountants(self.sampling_rate, self.rounds, z, _check_delta(delta), "tighter")

    def guarantee(self, *, sigma: float, delta: float) -> Guarantee:
        """The central guarantee, by the tighter accountant, which is named."""
        return guarantee_of(self.epsilons(sigma=sigma, delta=delta), delta=delta)

    def sigma_for(self, *, epsilon: float, delta: float, accountant: Accountant = "tighter") -> float:
        """A sigma that keeps the central guarantee within (epsilon, delta), its epsilon at most .2 % below.

        Raises:
            ConfigurationError: A number out of range, or more noise than a thousand times rho is needed.
        """
        check_target(epsilon, "epsilon")
        _check_delta(delta)
        return self.sigma(_multiplier_for(self.sampling_rate, self.rounds, epsilon, delta, accountant))


def guarantee_of(epsilons: Mapping[str, float], *, delta: float) -> Guarantee:
    """What is claimed of several upper bounds: the least."""
    name = min(epsilons, key=lambda one: epsilons[one])
    return Guarantee(view="models", epsilon=epsilons[name], delta=delta, method=f"subsampled gaussian, {name}")


@lru_cache(maxsize=64)
def _multiplier_for(rate: float, rounds: int, epsilon: float, delta: float, accountant: Accountant) -> float:
    """The least z of a target, a search of some seconds; the same for any population and any rho."""
    return least_noise(lambda z: min(_accountants(rate, rounds, z, delta, accountant).values()), epsilon)


def _accountants(rate: float, rounds: int, z: float, delta: float, wanted: Accountant) -> dict[str, float]:
    """Upper bounds by name."""
    if wanted not in ("tighter", "rdp", "pld"):
        raise ConfigurationError(f"{wanted!r} given; tighter, rdp and pld are possible", field="accountant")
    if rate == 1.0:  # nothing is sampled: T Gaussian mechanisms are one
        return {"exact": gaussian.epsilon(math.sqrt(rounds) / z, delta)}
    sampled = SubsampledGaussian(noise_multiplier=z, sampling_probability=rate, steps=rounds)
    if wanted == "pld" and z < LEAST_PLD_NOISE:
        raise ConfigurationError(
            f"noise multiplier {z:g} given; PLD takes {LEAST_PLD_NOISE:g} and above, RDP any", field="sigma"
        )
    of = {}
    if wanted != "pld":
        of["rdp"] = sampled.rdp_epsilon(delta)
    if wanted != "rdp" and z >= LEAST_PLD_NOISE:
        of["pld"] = sampled.pld_epsilon(delta, relation="add_or_remove")
        if wanted == "tighter" and of["pld"] == math.inf:
            del of["pld"]  # so many rounds that it sees nothing at this delta
    return of


_NOTHING = Guarantee(view="models", epsilon=math.inf, delta=0.0, method="no noise, no central guarantee")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """What noise a target takes, and what is promised with the noise that is added instead.

    Args:
        honest_sigma: Meets the target.
        honest: Its guarantee.
        sigma: What is added.
        stated: The guarantee of that.
    """

    honest_sigma: float
    honest: Guarantee
    sigma: float
    stated: Guarantee

    @property
    def reduced(self) -> bool:
        """Whether less noise is added than the target takes."""
        return self.sigma < self.honest_sigma


def side_by_side(rounds: Rounds, *, epsilon: float, delta: float, sigma: float | None = None) -> SideBySide:
    """The honest sigma of a target beside the one that is used.

    Args:
        rounds: What is played.
        epsilon: The target, at ``delta``.
        delta: Of both.
        sigma: What is used; the honest one if not given, and 0 for none, which guarantees nothing.
    """
    needed = rounds.sigma_for(epsilon=epsilon, delta=delta)
    honest = rounds.guarantee(sigma=needed, delta=delta)
    if sigma is None:
        return SideBySide(honest_sigma=needed, honest=honest, sigma=needed, stated=honest)
    stated = rounds.guarantee(sigma=sigma, delta=delta) if sigma != 0 else _NOTHING
    return SideBySide(honest_sigma=needed, honest=honest, sigma=sigma, stated=stated)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerLedger:
    """What one peer has released, against whoever sees its reports: the learner.

    Args:
        epsilon: eps1 + eps2, level of one report.
        participations: t, reports so far.
        budget: Largest total the peer allows; None: no limit.

    Raises:
        ConfigurationError: A number out of range.
    """

    epsilon: float
    participations: int = 0
    budget: float | None = None

    def __post_init__(self) -> None:
        check_target(self.epsilon, "epsilon")
        check_count(self.participations, "participations", least=0)
        if self.budget is not None:
            check_target(self.budget, "budget")

    @property
    def local_epsilon(self) -> float:
        """t (eps1 + eps2): basic composition, exact for pure levels."""
        return self.participations * self.epsilon

    @property
    def affordable(self) -> int | None:
        """Reports that fit the budget, those made included; None without one.

        A budget written as t times a level that doubles can't hold is t reports all the same.
        """
        return None if self.budget is None else math.floor(self.budget / self.epsilon * (1.0 + 1e-12))

    @property
    def spent_up(self) -> bool:
        """Whether one more report would exceed the budget."""
        return self.affordable is not None and self.participations >= self.affordable

    def spend(self) -> PeerLedger:
        """The ledger after one more report.

        Raises:
            BudgetExhausted: It does not fit the budget.
        """
        if self.spent_up:
            raise BudgetExhausted(
                f"{self.participations} reports at epsilon {self.epsilon:g}; the budget of {self.budget:g} has no more"
            )
        return PeerLedger(epsilon=self.epsilon, participations=self.participations + 1, budget=self.budget)

    def reconstruction(self, log_prior: float) -> ReconstructionBound:
        """How well anyone who saw all reports can reconstruct what was guessed with chance e^log_prior before."""
        return ReconstructionBound(log_prior=log_prior, epsilon=self.epsilon, participations=self.participations)


def most_participations(*, sampling_rate: float, rounds: int, population: int, tail: float = 1e-6) -> int:
    """A number of reports that with probability 1 - ``tail`` no peer of the population exceeds in ``rounds`` rounds.

    The (1 - tail/N)-quantile of Bin(T, q), by the union bound over the peers.
    """
    from scipy import stats

    planned = Rounds(population=population, sampling_rate=sampling_rate, rounds=rounds, projection=1.0)
    return int(stats.binom.isf(tail / planned.population, planned.rounds, planned.sampling_rate))


def shrunk_share(mechanism: Separated, projection: float, radius: float | None = None) -> float:
    """Probability that a report exceeds norm rho, and so is shrunk, which biases the average.

    Args:
        mechanism: What the peers use; its direction's outputs all have one norm, or there is no share to know.
        projection: rho.
        radius: Norm of the update; the worst one by default.

    Raises:
        ConfigurationError: The direction's outputs have no one norm (PrivUnitG), or a number is out of range.
    """
    _check_positive(projection, "projection")
    length = mechanism.direction.output_norm
    if not math.isfinite(length):
        raise ConfigurationError("given with a direction of unbounded norm; none shrinks nothing", field="projection")
    magnitude = mechanism.magnitude
    outputs = magnitude.outputs()
    exceeds = np.abs(outputs) * length > projection * (1.0 + 1e-12)
    if not exceeds.any():
        return 0.0
    share = float(exceeds.mean())  # of a uniform index
    keep, redraw = magnitude.weight, magnitude.redraw
    if radius is None:
        return min(1.0, keep + redraw * share)
    r = np.array([min(radius, magnitude.max_radius)])
    low = magnitude.lower_index(r)
    ends = magnitude.end_points(np.array([low[0], low[0] + 1]))
    up = float((r[0] - ends[0]) / (ends[1] - ends[0]))
    kept = (1.0 - up) * exceeds[low[0]] + up * exceeds[low[0] + 1]
    return float(keep * kept + redraw * share)


def safe_projection(mechanism: Separated) -> float:
    """The least rho that shrinks no report: the largest possible output, rounded up, and to its grid."""
    return mechanism.output_norm * (1.0 + 1e-9 + stretch(mechanism.dimension))


def _check_positive(value: float, field: str) -> float:
    if isinstance(value, bool) or not 0 < value < math.inf:
        raise ConfigurationError(f"{value} given; a finite number above 0 is possible", field=field)
    return float(value)


def _check_delta(delta: float) -> float:
    if check_delta(delta) < LEAST_DELTA:
        raise ConfigurationError(f"{delta} given; {LEAST_DELTA:g} and above is possible", field="delta")
    return float(delta)
