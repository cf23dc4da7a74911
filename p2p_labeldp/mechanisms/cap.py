"""The spherical cap {v : |v| = 1, <v, u> >= gamma}: how much of the sphere it holds and where its mass lies.

For V uniform on the unit sphere of R^d and T = <V, u>, the density of T is (1 - t^2)^(a-1) / B(a, 1/2), a = (d-1)/2, so

    P = Pr[T >= gamma]          the cap's mass
    M = E[T; T >= gamma]        its moment: log M = a log(1 - gamma^2) - log(d-1) - log B(a, 1/2)
    P = gamma M h,              h = 2F1(d/2, 1; (d+1)/2; 1 - gamma^2)

A cap is named by ``log_gap`` = log(1 - gamma^2) and not by gamma: gamma = 0.9999999999999999 is already the last number
below 1, while log_gap still tells a cap of mass e^-100000 from its neighbours. Everything is in logs, and what is small
comes from a sum of terms of one sign; ``1 - I(a, a)`` is never formed, because it saturates.

The ratio r = gamma P / M = gamma^2 h (threshold over mean cosine within the cap) says how sharply the mass sits at the
threshold. Both log r and log(1 - r) are kept, each from the expansion in which it is not a difference:

    gamma^2 d < 4        P = 1/2 - gamma (1-gamma^2)^a / B * 2F1(a + 1/2, 1; 3/2; gamma^2), terms of one sign
    1 - gamma^2 < 1/2    1 - r = sum over n >= 1 of c_(n-1) (1-gamma^2)^n / (d + 2n - 1), c_n = (d/2)_n / ((d+1)/2)_n
    between              h by its continued fraction

Source: Bhowmick et al., arXiv 1812.00984; the forms in logs are derived here and tested against
50-digit arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2p_labeldp.errors import ConfigurationError

MAX_DIMENSION = 10**8
"""Beyond it the constants are not tested (and one vector would be 0.8 GB)."""

_SERIES_GAP = 0.5
_CENTRAL = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """Mass and moments of one spherical cap, in logs.

    Args:
        dimension: d, at least 1.
        log_gap: log(1 - gamma^2), at most 0.
        log_gamma: log of the threshold.
        log_mass: log P.
        log_complement: log(1 - P).
        log_ratio: log r, r = gamma P / M.
        log_slack: log(1 - r).
    """

    dimension: int
    log_gap: float
    log_gamma: float
    log_mass: float
    log_complement: float
    log_ratio: float
    log_slack: float

    @property
    def gamma(self) -> float:
        """The threshold; rounds to 1 for the smallest caps (``log_gap`` does not)."""
        return math.exp(self.log_gamma)


def log_beta_half(a: float) -> float:
    """log B(a, 1/2) for a > 0."""
    ratio = 1.0
    while a < 30.0:  # B(a, 1/2) = B(a + 1, 1/2) (a + 1/2) / a
        ratio *= (a + 0.5) / a
        a += 1.0
    b = 1.0 / (a * a)  # the difference of two lgammas would lose the digits that this series keeps
    series = (1 / 8 - b * (1 / 192 - b * (1 / 640 - b * 17 / 14336))) / a
    return 0.5 * math.log(math.pi / a) + series + math.log(ratio)


def check_dimension(dimension: int) -> int:
    """Returns ``dimension`` if it is an integer from 1 to ``MAX_DIMENSION``."""
    if isinstance(dimension, bool) or not isinstance(dimension, int) or not 1 <= dimension <= MAX_DIMENSION:
        raise ConfigurationError(
            f"{dimension} given; an integer from 1 to {MAX_DIMENSION} is possible", field="dimension"
        )
    return dimension


def cap(dimension: int, log_gap: float) -> Cap:
    """The cap of threshold gamma = sqrt(1 - exp(log_gap)), for log_gap < 0 (for d = 1 the mass is 1/2).

    Raises:
        ConfigurationError: ``dimension`` or ``log_gap`` out of range.
    """
    check_dimension(dimension)
    if not -math.inf < log_gap < 0.0:
        raise ConfigurationError(f"{log_gap} given; a finite negative number is possible", field="log_gap")
    gap = math.exp(log_gap)
    gamma_squared = -math.expm1(log_gap)
    log_gamma = 0.5 * (math.log1p(-gap) if gap < 0.5 else math.log(gamma_squared))
    if dimension == 1:
        log_mass = -math.log(2.0)
        gamma = math.exp(log_gamma)
        log_slack = log_gap - math.log1p(gamma)  # r = gamma here, and 1 - gamma = gap / (1 + gamma)
        return Cap(
            dimension=1, log_gap=log_gap, log_gamma=log_gamma, log_mass=log_mass, log_complement=log_mass,
            log_ratio=log_gamma, log_slack=log_slack,
        )  # fmt: skip
    a = 0.5 * (dimension - 1)
    log_moment = a * log_gap - math.log(dimension - 1) - log_beta_half(a)
    if gap < _SERIES_GAP:
        log_slack = log_gap + math.log(_slack_series(dimension, gap))
        log_ratio = math.log1p(-math.exp(log_slack))
        log_mass = log_moment - log_gamma + log_ratio
    elif gamma_squared * dimension < _CENTRAL:
        central = math.exp(log_gamma + a * log_gap - log_beta_half(a)) * _central_series(a, gamma_squared)
        log_mass = math.log(0.5) + math.log1p(-2.0 * central)
        log_ratio = log_gamma + log_mass - log_moment
        log_slack = math.log(-math.expm1(log_ratio))
    else:
        log_ratio = 2.0 * log_gamma + math.log(_continued_fraction(a, gamma_squared))
        log_mass = log_moment - log_gamma + log_ratio
        log_slack = math.log(-math.expm1(log_ratio))
    return Cap(
        dimension=dimension,
        log_gap=log_gap,
        log_gamma=log_gamma,
        log_mass=log_mass,
        log_complement=math.log1p(-math.exp(log_mass)),
        log_ratio=log_ratio,
        log_slack=log_slack,
    )


def log_gap_of(gamma: float) -> float:
    """log(1 - gamma^2) of a threshold 0 < gamma < 1 given as a plain number."""
    if not 0.0 < gamma < 1.0:
        raise ConfigurationError(f"{gamma} given; a number strictly between 0 and 1 is possible", field="gamma")
    return math.log1p(-gamma * gamma) if gamma < 0.5 else math.log1p(-gamma) + math.log1p(gamma)


def _slack_series(dimension: int, gap: float) -> float:
    """(1 - r) / gap as its series in ``gap`` < 1/2; every term is positive."""
    total, coefficient, n = 0.0, 1.0, 1
    while True:
        term = coefficient / (dimension + 2 * n - 1)
        total += term
        if term < 1e-17 * total:
            return total
        coefficient *= gap * (0.5 * dimension + n - 1) / (0.5 * (dimension + 1) + n - 1)
        n += 1


def _central_series(a: float, gamma_squared: float) -> float:
    """2F1(a + 1/2, 1; 3/2; gamma^2), all terms positive; at most about 60 of them count where gamma^2 d < 4."""
    total = term = 1.0
    n = 0
    while term > 1e-17 * total:
        term *= gamma_squared * (a + 0.5 + n) / (1.5 + n)
        total += term
        n += 1
    return total


def _continued_fraction(a: float, gamma_squared: float) -> float:
    """h = 2F1(a + 1/2, 1; a + 1; 1 - gamma^2) for gamma^2 d >= 4, where it takes at most about 60 steps.

    The form of Didonato and Morris (ACM TOMS 18, 1992), because gamma^2 enters it as itself: the fraction of DLMF
    8.17.22 knows only 1 - gamma^2 and loses 7 digits at d = 4 million. Evaluated by the modified Lentz algorithm.
    """
    gap = 1.0 - gamma_squared
    start = a * gamma_squared - 0.5 * gap + 1.0
    value = c = a * start / (a + 1.0)
    d = 0.0
    for n in range(1, 10_000):
        odd = a + 2 * n - 1
        numerator = (a + n - 1) * (a + n - 0.5) * n * (0.5 - n) * (gap / odd) ** 2
        denominator = n + n * (0.5 - n) * gap / odd + (a + n) * (start + n * (1.0 + gamma_squared)) / (odd + 2.0)
        d = 1.0 / (denominator + numerator * d)
        c = denominator + numerator / c
        value *= c * d
        if abs(c * d - 1.0) < 2e-16:
            return a / value
    raise ArithmeticError(f"the continued fraction of a cap did not converge: a = {a}, gamma^2 = {gamma_squared}")
