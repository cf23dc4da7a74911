"""An attacker who tries to reconstruct what a peer released privately, and how often it succeeds.

The truth is drawn from the attacker's own prior, released by the mechanism, once or several times, and guessed from the
releases alone. A breach: the guess comes near enough. What may be promised about it is the accountant's business; here
it is counted.

    prior                                      guess
    a uniform direction of R^d                 the direction of the sum of the releases. For one release of PrivUnit2
                                               or PrivUnitG no guess is better: given the output, likelier truths are
                                               a cap around it. For all others it is one attacker among many.
    a uniform set of m of N = d words, as a    among all sets of m words the one most likely to have few enough words
    vector of signs: 1 for a member, else -1   wrong, by the posterior of every set: no guess is better

A Bayesian knows its chances. Where the posterior chance of each guess is known, their mean is stated beside the share
that succeeded: a mechanism whose samples have not the density it states makes the two differ.

Source: Bhowmick et al., arXiv 1812.00984, section 2 (reconstruction breaches); the attackers are this project's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from p2p_labeldp.auditing import checked
from p2p_labeldp.auditing.lower_bound import CONFIDENCE, clopper_pearson_low
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cap import cap
from p2p_labeldp.mechanisms.privunit import PrivUnit2

Vector = npt.NDArray[np.float64]

MAX_SETS = 1000
"""All sets of a dictionary are enumerated, and every guess weighed against every truth."""

_ENTRIES_AT_ONCE = 1 << 20


class Releases(Protocol):
    """What can be attacked: any mechanism of ``mechanisms`` that privatises rows, or one's own."""

    @property
    def dimension(self) -> int: ...
    def privatise_many(self, updates: Vector, rng: np.random.Generator) -> Vector: ...


class StatesDensity(Releases, Protocol):
    """A mechanism that states its law, as every ``mechanisms.direction`` does."""

    def unit_rows(self, updates: Vector) -> tuple[Vector, Vector]: ...
    def log_density(self, outputs: Vector, points: Vector) -> Vector: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What an attacker achieved.

    Args:
        trials: Truths that were guessed.
        breaches: Guesses that came near enough.
        posterior: Mean chance of the guesses by the law the mechanism states; None where it is not known.
        standard_error: Of the share of breaches about ``posterior``, or about itself if that is None.
    """

    trials: int
    breaches: int
    posterior: float | None
    standard_error: float

    @property
    def success(self) -> float:
        """Share of breaches."""
        return self.breaches / self.trials

    def success_lower(self, confidence: float = CONFIDENCE) -> float:
        """The attacker's true chance is at least this, unless a chance of 1 - ``confidence`` has struck."""
        alpha = 1.0 - checked.confidence(confidence)
        return float(clopper_pearson_low(self.breaches, self.trials, alpha))


def attack_direction(
    mechanism: Releases, *, alpha: float, trials: int, rng: np.random.Generator, participations: int = 1
) -> Attack:
    """Guesses uniform directions.

    Args:
        mechanism: It is given unit vectors of R^d.
        alpha: Euclidean distance between guess and truth, two unit vectors, that counts as a breach.
        trials: How many truths.
        rng: Of truths and releases.
        participations: Releases of each truth.

    Raises:
        ConfigurationError: A number out of range.
    """
    checked.real("alpha", alpha, "above 0, finite", least=math.nextafter(0.0, 1.0), most=math.inf)
    _check_counts(trials, participations)
    breaches = 0
    for n in _blocks(trials, mechanism.dimension):
        truth = _normalised(rng.standard_normal((n, mechanism.dimension)))
        releases = sum(mechanism.privatise_many(truth, rng) for _ in range(participations))
        distance = np.linalg.norm(_normalised(np.asarray(releases)) - truth, axis=1)  # guesses have length 1
        breaches += int(np.count_nonzero(distance <= alpha))
    chance = None
    if isinstance(mechanism, PrivUnit2) and participations == 1:
        chance = posterior_chance(mechanism, alpha)
    share = breaches / trials if chance is None else chance
    return Attack(
        trials=trials,
        breaches=breaches,
        posterior=chance,
        standard_error=math.sqrt(max(0.0, share * (1.0 - share)) / trials),
    )


def posterior_chance(mechanism: PrivUnit2, alpha: float) -> float:
    """Exact chance that a uniform direction is within ``alpha`` of V, given V: the ball around V holds the cap of
    threshold 1 - alpha^2/2, of share W, on which the posterior has the values p/P near V and (1-p)/(1-P) beyond."""
    if alpha >= 2.0:
        return 1.0
    threshold = 1.0 - 0.5 * alpha * alpha
    if mechanism.dimension == 1 or threshold == 0.0:
        log_share = math.log(0.5)
    else:
        gap_of_alpha = 2.0 * math.log(alpha) + math.log1p(-0.25 * alpha * alpha)
        log_gap = gap_of_alpha if abs(threshold) > 0.5 else math.log1p(-threshold * threshold)
        ball = cap(mechanism.dimension, log_gap)
        log_share = ball.log_mass if threshold > 0.0 else ball.log_complement
    near, beyond = mechanism.log_densities
    if log_share <= mechanism.log_cap_mass:
        return math.exp(near + log_share)
    rest = math.exp(beyond + log_share) * -math.expm1(mechanism.log_cap_mass - log_share)
    return min(1.0, mechanism.cap_probability + rest)


def attack_dictionary(
    mechanism: StatesDensity,
    *,
    members: int,
    wrong: int,
    trials: int,
    rng: np.random.Generator,
    participations: int = 1,
) -> Attack:
    """Guesses uniform sets of ``members`` of as many words as the mechanism has dimensions.

    Args:
        mechanism: It is given vectors of signs.
        members: Words in the set.
        wrong: Words of the guess outside the set that still count as a breach.
        trials: How many truths.
        rng: Of truths and releases.
        participations: Releases of each truth.

    Raises:
        ConfigurationError: A number out of range; in particular more than ``MAX_SETS`` sets.
    """
    words = mechanism.dimension
    checked.whole("members", members, least=0, most=words)
    checked.whole("wrong", wrong, least=0)
    _check_counts(trials, participations)
    count = math.comb(words, members)
    if count > MAX_SETS:
        raise ConfigurationError(
            f"{members} of {words} words given; at most {MAX_SETS} sets can be enumerated, not {count}", field="members"
        )
    sets = np.zeros((count, words))
    for row, chosen in zip(sets, itertools.combinations(range(words), members), strict=True):
        row[list(chosen)] = 1.0
    near = (members - sets @ sets.T <= wrong).astype(np.float64)
    points, _ = mechanism.unit_rows(2.0 * sets - 1.0)
    breaches, expected, variance = 0, 0.0, 0.0
    for n in _blocks(trials, max(words, count)):
        truth = rng.integers(count, size=n)
        log_posterior = np.zeros((n, count))
        for _ in range(participations):
            log_posterior += mechanism.log_density(mechanism.privatise_many(points[truth], rng), points)
        posterior = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        chances = posterior @ near
        guess = chances.argmax(axis=1)
        chance = np.minimum(chances[np.arange(n), guess], 1.0)
        breaches += int(near[guess, truth].sum())
        expected += float(chance.sum())
        variance += float((chance * (1.0 - chance)).sum())
    return Attack(
        trials=trials, breaches=breaches, posterior=expected / trials, standard_error=math.sqrt(variance) / trials
    )


def _check_counts(trials: int, participations: int) -> None:
    checked.whole("trials", trials, least=1)
    checked.whole("participations", participations, least=1)


def _blocks(trials: int, width: int) -> Iterator[int]:
    """``trials`` in parts whose arrays are of a few megabytes."""
    rows = max(1, _ENTRIES_AT_ONCE // width)
    for start in range(0, trials, rows):
        yield min(rows, trials - start)


def _normalised(rows: Vector) -> Vector:
    """Directions; that of zeros is the first axis."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    directions = rows / np.where(lengths > 0.0, lengths, 1.0)
    directions[lengths[:, 0] == 0.0, 0] = 1.0
    return np.asarray(directions)
