"""What local privacy says when epsilon is large: nobody who did not almost know a peer's data can reconstruct it.

A breach: from everything a peer ever released, an attacker's estimate comes within alpha of f(X), X the peer's data.
Before seeing anything the best estimate succeeds with probability p(alpha), the prior. A release of level eps changes
the odds of any event, hence of a breach, by at most e^eps, so

    success <= e^eps p / (1 + (e^eps - 1) p),

never above 1, and reached by an exact Bayesian attacker of PrivUnit2 whose alpha is the cap's own radius. The paper
states the weaker e^eps p. A peer that takes part t times, each at level eps, has released t eps.

Priors: a direction uniform on the sphere of R^k, or a uniform subset of a dictionary; any other as its own log p.
Everything is in logs: p = 1e-50 and e^eps = 1e48 is the ordinary case. Bounds are rounded up, levels down.

Source: Bhowmick et al., arXiv 1812.00984, section 2 (reconstruction breaches, protection by local privacy); the tighter
bound and both priors' closed forms are derived in this project.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cap import cap, check_dimension

MAX_DICTIONARY, MAX_MEMBERS = 10**6, 10**4
"""The dictionary's prior is exact integer arithmetic; larger ones would take seconds."""


def log_sphere_prior(*, dimension: int, alpha: float, on_sphere: bool = True) -> float:
    """log of the largest chance to come within ``alpha`` of a uniform direction, without having seen anything.

    Args:
        dimension: k of the sphere of unit vectors in R^k.
        alpha: Euclidean distance that counts as a breach; positive.
        on_sphere: The estimate is a unit vector too: a ball around it holds the cap of threshold 1 - alpha^2/2.
            Otherwise it may be any vector, and the best lies inside: its ball holds the cap of sqrt(1 - alpha^2).

    Raises:
        ConfigurationError: ``dimension`` or ``alpha`` out of range.
    """
    check_dimension(dimension)
    if isinstance(alpha, bool) or not 0.0 < alpha < math.inf:
        raise ConfigurationError(f"{alpha} given; a finite positive number is possible", field="alpha")
    if alpha >= (2.0 if on_sphere else 1.0):
        return 0.0
    threshold = 1.0 - 0.5 * alpha * alpha if on_sphere else math.sqrt((1.0 - alpha) * (1.0 + alpha))
    if dimension == 1 or threshold == 0.0:
        return math.log(0.5)
    if abs(threshold) < 0.5:
        log_gap = math.log1p(-threshold * threshold)
    elif on_sphere:
        log_gap = 2.0 * math.log(alpha) + math.log1p(-0.25 * alpha * alpha)
    else:
        log_gap = 2.0 * math.log(alpha)
    c = cap(dimension, log_gap)
    return c.log_mass if threshold > 0.0 else c.log_complement


def log_dictionary_prior(*, size: int, members: int, wrong: int) -> float:
    """log of the chance to guess a uniform subset of a dictionary with at most ``wrong`` wrong members.

    sum over j <= h of C(m, j) C(N-m, j) / C(N, m): a guess of m members of which j are wrong.

    Args:
        size: N, words in the dictionary, up to 10^6.
        members: m, words in the subset, up to 10^4.
        wrong: h, wrong members that still count as a breach; h >= m is always a breach.

    Raises:
        ConfigurationError: A number out of range.
    """
    _check_count(size, "size", 1, MAX_DICTIONARY)
    _check_count(members, "members", 0, min(size, MAX_MEMBERS))
    _check_count(wrong, "wrong", 0, MAX_DICTIONARY)
    most = min(members, size - members)
    if wrong >= most:
        return 0.0
    within = term = 1
    for j in range(1, wrong + 1):  # C(m, j) C(N-m, j) from its predecessor; both divisions are exact
        term = term * (members - j + 1) // j * (size - members - j + 1) // j
        within += term
    return min(0.0, math.log(within) - math.log(math.comb(size, most)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionBound:
    """How well anyone can reconstruct what a peer released privately.

    Args:
        log_prior: log p, p the best chance before any release; at most 0.
        epsilon: Level of one release: for the separated mechanism, direction and magnitude together.
        participations: How often the peer releases.

    Raises:
        ConfigurationError: A number out of range.
    """

    log_prior: float
    epsilon: float
    participations: int = 1

    def __post_init__(self) -> None:
        _check_log_prior(self.log_prior)
        if isinstance(self.epsilon, bool) or not 0.0 <= self.epsilon < math.inf:
            raise ConfigurationError(f"{self.epsilon} given; a finite number from 0 is possible", field="epsilon")
        _check_count(self.participations, "participations", 0, 10**9)

    @property
    def total_epsilon(self) -> float:
        """Level of all releases together, by basic composition, which is exact for pure local privacy."""
        return self.epsilon * self.participations

    @property
    def log_success(self) -> float:
        """log of an upper bound on the chance of a breach: the prior odds times e^(t eps)."""
        if self.log_prior == 0.0:
            return 0.0
        log_odds = self.total_epsilon + _log_odds(self.log_prior)
        bound = -math.log1p(math.exp(-log_odds)) if log_odds > 0.0 else log_odds - math.log1p(math.exp(log_odds))
        return min(0.0, bound + _slack(self.log_prior, self.total_epsilon))

    @property
    def success(self) -> float:
        """Upper bound on the chance of a breach, at most 1."""
        return math.exp(self.log_success)

    @property
    def log_success_of_paper(self) -> float:
        """log of the paper's bound min(1, p e^(t eps)), never below ``log_success``."""
        return min(0.0, self.total_epsilon + self.log_prior + _slack(self.log_prior, self.total_epsilon))

    def summary(self) -> dict[str, float]:
        """What ``account reconstruction`` prints."""
        return {
            "log_prior": self.log_prior,
            "epsilon": self.epsilon,
            "participations": self.participations,
            "total_epsilon": self.total_epsilon,
            "success": self.success,
            "log_success": self.log_success,
            "log_success_of_paper": self.log_success_of_paper,
        }


def largest_epsilon(*, log_prior: float, success: float, participations: int = 1) -> float:
    """The largest level of one release that keeps the chance of a breach at or below ``success``.

    Args:
        log_prior: log p.
        success: Accepted chance of a breach; above the prior's.
        participations: How often the peer releases at that level.

    Raises:
        ConfigurationError: A number out of range; in particular no level helps if the prior alone succeeds as often.
    """
    _check_log_prior(log_prior)
    _check_count(participations, "participations", 1, 10**9)
    if not 0.0 < success < 1.0:
        raise ConfigurationError(f"{success} given; a number strictly between 0 and 1 is possible", field="success")
    total = -math.inf
    if log_prior < 0.0:
        total = math.log(success) - math.log1p(-success) - _log_odds(log_prior)
        total -= 2.0 * _slack(log_prior, max(total, 0.0)) / (1.0 - success)
    if not total > 0.0:
        raise ConfigurationError(
            f"{success} given; more than {math.exp(log_prior):.6g}, the chance before any release, is possible",
            field="success",
        )
    return total / participations * (1.0 - 4e-16)


def _log_odds(log_probability: float) -> float:
    """log(p / (1-p)) of log p < 0."""
    return log_probability - math.log(-math.expm1(log_probability))


def _slack(log_prior: float, total: float) -> float:
    """More than what rounding may have taken from a bound's logarithm."""
    return 3e-14 * (1.0 + abs(log_prior) + total)


def _check_log_prior(log_prior: float) -> None:
    if not -math.inf < log_prior <= 0.0:
        raise ConfigurationError(f"{log_prior} given; a finite number up to 0 is possible", field="log_prior")


def _check_count(value: int, field: str, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigurationError(f"{value} given; an integer from {low} to {high} is possible", field=field)
