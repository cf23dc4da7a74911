"""What others state or approximate, as columns to compare with. Nothing here is a guarantee of this package."""

from __future__ import annotations

import math

from p2p_labeldp.accounting.ranges import check_count, check_delta, check_flip, check_target
from p2p_labeldp.errors import ConfigurationError


def paper_epsilon(*, cluster_size: int, flip_probability: float) -> float:
    """The statement of arXiv 2110.02159v1 for Algorithm 2, solved for eps: (f s)^(-1/2), at delta = 1/s^2.

    The paper: (eps, 1/s^2)-label DP for eps < 1 when every cluster has s >= 1/(phi eps^2) users, labels being flipped
    with a probability of the order of phi. Constants and logarithms are left out there, so this is an order of
    magnitude; infinite where it would not be below 1, since nothing is stated there.
    """
    product = check_count(cluster_size, "cluster_size") * check_flip(flip_probability)
    return 1 / math.sqrt(product) if product > 1 else math.inf


def paper_cluster_size(*, epsilon: float, flip_probability: float) -> float:
    """1/(f eps^2), the size of cluster the same statement asks for.

    Raises:
        ConfigurationError: f = 0, or eps not in (0, 1).
    """
    target, f = check_target(epsilon, "epsilon"), check_flip(flip_probability)
    if f == 0 or target >= 1:
        raise ConfigurationError("the statement is for eps below 1 and a flip above 0", field="epsilon")
    return 1 / (f * target**2)


def rule_of_thumb_flip(*, cluster_size: int, epsilon: float) -> float:
    """c ln(s)/(s eps^2), at most 1/2: for sanity checks of a plan, not for planning.

    c = 2 covers eps <= 0.5 up to s = 10^5, 3.3 every tabulated eps < 1, 1 eps >= 1.
    """
    size, target = check_count(cluster_size, "cluster_size", least=2), check_target(epsilon, "epsilon")
    constant = 2.0 if target <= 0.5 else 3.3 if target < 1 else 1.0
    return min(0.5, constant * math.log(size) / (size * target**2))


def gaussian_epsilon(*, cluster_size: int, flip_probability: float, delta: float) -> float:
    """The Gaussian limit, mu = (1-2f)/sqrt(2 s f (1-f)). It under-reports: never publish it as a bound.

    delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle, Wang 2018).
    """
    size, f, target = (
        check_count(cluster_size, "cluster_size"),
        check_flip(flip_probability),
        check_delta(delta),
    )
    if f == 0.5:
        return 0.0
    if f == 0 or target == 0:
        return math.inf
    mu = (1 - 2 * f) / math.sqrt(2 * size * f * (1 - f))
    low, high = 0.0, 1.0
    while _gaussian_delta(mu, high) > target:
        high *= 2
    if _gaussian_delta(mu, 0.0) <= target:
        return 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(mu, middle) > target else (low, middle)
    return high


def _gaussian_delta(mu: float, epsilon: float) -> float:
    return _phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * _phi(-mu / 2 - epsilon / mu)


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
