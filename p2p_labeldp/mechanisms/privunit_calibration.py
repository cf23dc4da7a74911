"""The parameters of PrivUnit2 for a total privacy level: the cap's ``log_gap`` and its exact level.

The exact level is log(p/(1-p)) + log((1-P)/P), p the probability of drawing from the cap and P the cap's mass; given
the cap it says the same as p, and at small levels, where p and P differ in their last digits, it says it better.

``exact`` spends epsilon on it. With p eliminated the debiasing constant is

    m(gamma) = (e^eps - 1) M / (1 + (e^eps - 1) P),     dm/dgamma = m (d-1) (m - gamma) / (1 - gamma^2)

so m rises while m > gamma and falls after: the one optimum is the fixed point m(gamma) = gamma. There the output has
norm 1/gamma and covariance (1/gamma^2 - 1)/d times the identity.

``theorem1`` is the paper's Theorem 1: eps0 = log_odds, and gamma bounded by a sufficient condition at eps - eps0,
(16a) gamma <= (e^e - 1)/(e^e + 1) sqrt(pi/(2(d-1))), or
(16b) e >= log(d)/2 + log 6 - (d-1)/2 log(1-gamma^2) + log gamma and gamma >= sqrt(2/d);
the split with the smallest error is searched for. It is kept to reproduce the paper: it is never better than ``exact``.

Source: Bhowmick et al., arXiv 1812.00984, Theorem 1, equations (15), (16a), (16b); the fixed point is derived
in this project.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq, minimize_scalar

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cap import Cap, cap, check_dimension, log_beta_half
from p2p_labeldp.mechanisms.odds import check_epsilon, just_below, log_expm1, log_sigmoid

Cost = Callable[[float], float]
"""What Theorem 1 charges for a cap of the given log_gap."""

_HALF = math.log(0.5)


def exact(dimension: int, epsilon: float) -> tuple[float, float]:
    """(log_gap, level) with the smallest error among all PrivUnit2 of exact level ``epsilon``.

    For d = 1 the mechanism is binary randomized response whatever the threshold; it is put at m = tanh(eps/2).
    """
    check_dimension(dimension)
    target = just_below(check_epsilon(epsilon))
    if dimension == 1:
        gamma = math.tanh(0.5 * target)
        decay = math.exp(-target)
        log_gap = math.log1p(-gamma * gamma) if gamma < 0.5 else math.log(4.0) - target - 2.0 * math.log1p(decay)
        return log_gap, target
    log_excess = log_expm1(target)

    def surplus(log_gap: float) -> float:
        """Has the sign of m - gamma; for small caps, where both round to 1, from 1 - r and 1 - m r / gamma."""
        c = cap(dimension, log_gap)
        balance = log_excess + c.log_mass
        if log_gap < _HALF:
            return c.log_slack - log_sigmoid(-balance)
        return log_sigmoid(balance) - c.log_ratio

    a = 0.5 * (dimension - 1)
    if surplus(_HALF) > 0.0:
        return _root(surplus, -(target + 20.0) / a, _HALF), target
    # m at threshold 0, a lower bound of the greatest m; a hair lower, so that it is one in floating point too
    start = math.tanh(0.5 * target) / (a * math.exp(log_beta_half(a))) * (1.0 - 1e-9)
    log_gamma = _root(lambda x: surplus(math.log1p(-math.exp(2.0 * x))), math.log(start), 0.5 * _HALF)
    return math.log1p(-math.exp(2.0 * log_gamma)), target


def theorem1(dimension: int, epsilon: float) -> tuple[float, float]:
    """(log_gap, level) with the smallest error that Theorem 1 of the paper allows at eps + eps0 = ``epsilon``.

    Raises:
        ConfigurationError: ``dimension`` below 3, where condition (16a) does not bound the privacy loss.
    """
    if check_dimension(dimension) < 3:
        raise ConfigurationError(
            f"{dimension} given; theorem1 holds from 3 on, exact holds for every dimension", field="dimension"
        )
    target = just_below(check_epsilon(epsilon))
    limit = math.sqrt(math.pi / (2.0 * (dimension - 1)))

    def cost_16a(log_gap: float) -> float:
        return 2.0 * math.atanh(math.sqrt(-math.expm1(log_gap)) / limit)

    def cost_16b(log_gap: float) -> float:
        log_gamma = 0.5 * math.log(-math.expm1(log_gap))
        return 0.5 * math.log(dimension) + math.log(6.0) - 0.5 * (dimension - 1) * log_gap + log_gamma

    def level(log_gap: float, cost: Cost) -> float:
        c = cap(dimension, log_gap)  # in exact arithmetic at most the target, by Theorem 1
        return min(target, target - cost(log_gap) + c.log_complement - c.log_mass)

    best = (math.inf, 0.0, 0.0)
    # (16a) is searched in gamma; (16b), which may come close to gamma = 1, in -log_gap; each while affordable
    branches: list[tuple[Cost, Callable[[float], float], float, float]] = [
        (cost_16a, lambda gamma: math.log1p(-gamma * gamma), 0.0, limit * math.tanh(0.5 * target)),
    ]
    low, high = -math.log1p(-2.0 / dimension), 2.0 * target / (dimension - 1)
    if high > low and cost_16b(-low) < target:
        branches.append((cost_16b, lambda depth: -depth, low, _root(lambda x: cost_16b(-x) - target, low, high)))
    for cost, gap_at, low, high in branches:

        def error(x: float, cost: Cost = cost, gap_at: Callable[[float], float] = gap_at) -> float:
            return -log_constant(cap(dimension, gap_at(x)), level(gap_at(x), cost))

        found = minimize_scalar(error, bounds=(low, high), method="bounded", options={"xatol": 1e-7 * (high - low)})
        log_gap = gap_at(float(found.x))
        best = min(best, (float(found.fun), log_gap, level(log_gap, cost)))
    return best[1:]


def log_constant(c: Cap, level: float) -> float:
    """log m, m = M [p/P - (1-p)/(1-P)], for odds p/(1-p) = e^level P/(1-P): E[V | u] = m u (equation (15)). At most 0.

    As gamma/r (1 - (1-p)/(1-P)), where no large logarithms cancel.
    """
    balance = log_expm1(level) + c.log_mass
    return min(0.0, c.log_gamma + log_sigmoid(balance) - c.log_ratio)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-15, rtol=1e-15))
