"""The exact guarantee of resampling against the learner: Algorithm 2 of arXiv 2110.02159v1, binary labels.

p members flip their label with probability f; r reports each tell the flipped label of a member drawn uniformly. Given
the flipped labels, m of them ones, the reports are independent Bernoulli(m/p), whoever made them, so the number T of
ones is sufficient: T | m ~ Bin(r, m/p), m = M + (the victim's flipped label), M ~ Bin(k, 1 - f) + Bin(p - 1 - k, f) for
k ones among the others' true labels. r > p are memoised rounds (r = R p); r < p are lost reports.

With A, B the laws of T given that the victim's *flipped* label is 0, 1, the laws given its *true* label are
(1-f) A + f B and f A + (1-f) B, and direction ``add`` is

    delta(eps) = sum_t [ (1 - f - e^eps f) A(t) - (e^eps (1-f) - f) B(t) ]_+ .

- Swapping the two labels maps (k, add) to (p - 1 - k, remove): add over all k is both directions over all k.
- B/A increases in t (M has a log-concave law and Bin(r, m/p) increases in m in the likelihood ratio order), so the best
  events are T <= c and the log ratio sorts itself: eps(delta) = max_c ln((P0(T <= c) - delta)/P1(T <= c)), the exact
  inverse of the piecewise linear delta.
- delta = 0: the largest log ratio, at T = 0. For T = 0 it is largest at k = p - 1: with h(M) = (1 - M/p)^r,
  P(T=0 | B)/P(T=0 | A) is the mean of h(M+1)/h(M), which falls in M, under the law of M tilted by h, which rises in k.
- Never worse than the local guarantee: reports are a function of the flipped labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from p2p_labeldp.accounting.binomial import Floats, log_factorials, pmf_by_share, window
from p2p_labeldp.accounting.pools import LOG_SCALE, Pool
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import check_flip_probability, local_epsilon

ADD, REMOVE = "add", "remove"
ROUNDING = 1e-11  # relative, charged upward: the sums of up to some thousand terms are good to about 1e-12
TIE = 1e-9  # relative: values that differ by less are one value, reached by two counts
MAX_EXPONENT = 700.0  # e^eps stays a double; delta falls in eps, so a larger eps is answered by this one's delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One point of the privacy profile.

    Args:
        epsilon: At least 0.
        delta: The exact hockey-stick divergence, rounded up.
        worst_ones: Number of ones among the other members' true labels that attains it (the least, if several do).
        direction: ``add``: HS(law with the victim's label 0 || law with label 1); ``remove``: the other way.
    """

    epsilon: float
    delta: float
    worst_ones: int
    direction: str


def check_count(value: int, field: str, least: int = 1) -> int:
    """Returns ``value`` as an int if it is an integer and at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ConfigurationError(f"{value} given; an integer of at least {least} is needed", field=field)
    return int(value)


def check_epsilon(epsilon: float, field: str = "epsilon") -> float:
    """Returns ``epsilon`` if it is finite and at least 0."""
    if isinstance(epsilon, bool) or not 0 <= epsilon < math.inf:
        raise ConfigurationError(f"{epsilon} given; a finite number of at least 0 is needed", field=field)
    return float(epsilon)


def check_delta(delta: float, field: str = "delta") -> float:
    """Returns ``delta`` if it is in [0, 1)."""
    if isinstance(delta, bool) or not 0 <= delta < 1:
        raise ConfigurationError(f"{delta} given; at least 0 and below 1 is needed", field=field)
    return float(delta)


def local_delta(flip_probability: float, epsilon: float) -> float:
    """[1 - f - e^eps f]_+: what the flip alone promises at ``epsilon``, to anyone."""
    return max(0.0, 1 - flip_probability - math.exp(min(epsilon, MAX_EXPONENT)) * flip_probability)


def _joint_laws(pool: Pool, reports: int) -> list[tuple[int, Floats, Floats]]:
    """(first k, A, B) chunk by chunk, rows k, columns t = 0 .. r; everything times 2^900."""
    by_share = pmf_by_share(reports, pool.size, (0, pool.size), (0, reports), LOG_SCALE)
    laws = []
    for chunk in pool.chunks():
        others = pool.laws(chunk)
        a = others @ by_share[chunk.low : chunk.high + 1]
        b = others @ by_share[chunk.low + 1 : chunk.high + 2]
        laws.append((chunk.first, a, b))
    return laws


def profile(
    *, cluster_size: int, flip_probability: float, epsilons: Sequence[float], reports: int | None = None
) -> list[Loss]:
    """delta(eps) against the learner, exact, the worst of all label counts and both directions.

    Args:
        cluster_size: p, the members able to answer.
        flip_probability: f, 0 to 1/2.
        epsilons: Where to evaluate.
        reports: r; the cluster size if not given.

    Returns:
        One ``Loss`` per epsilon, in their order.

    Raises:
        ConfigurationError: An argument out of range.
    """
    size = check_count(cluster_size, "cluster_size")
    f = check_flip_probability(flip_probability)
    r = size if reports is None else check_count(reports, "reports")
    points = [check_epsilon(epsilon) for epsilon in epsilons]
    by_count = np.zeros((len(points), size))
    with np.errstate(over="ignore"):  # c_b B may be infinite; then the term is 0
        for first, a, b in _joint_laws(Pool(size, f, 0.0, LOG_SCALE), r):
            for i, epsilon in enumerate(points):
                e = math.exp(min(epsilon, MAX_EXPONENT))
                keep, lose = 1 - f - e * f, e * (1 - f) - f
                if keep > 0:
                    by_count[i, first : first + a.shape[0]] = np.maximum(keep * a - lose * b, 0.0).sum(axis=1)
    return [_worst(f, epsilon, row * math.exp(-2 * LOG_SCALE)) for epsilon, row in zip(points, by_count, strict=True)]


def _worst(flip_probability: float, epsilon: float, added: Floats) -> Loss:
    """The worst of both directions, from direction ``add`` at every label count."""
    largest = float(added.max())
    attained = np.flatnonzero(added >= largest * (1 - TIE))
    add, remove = int(attained[0]), added.size - 1 - int(attained[-1])
    return Loss(
        epsilon=epsilon,
        delta=min(largest * (1 + ROUNDING), local_delta(flip_probability, epsilon)),
        worst_ones=min(add, remove),
        direction=ADD if add <= remove else REMOVE,
    )


def epsilon(*, cluster_size: int, flip_probability: float, delta: float, reports: int | None = None) -> float:
    """The least eps with delta(eps) <= ``delta`` against the learner, rounded up; arguments as in ``profile``.

    Infinite where no eps will do (f = 0).
    """
    size = check_count(cluster_size, "cluster_size")
    f = check_flip_probability(flip_probability)
    r = size if reports is None else check_count(reports, "reports")
    target = check_delta(delta)
    if f == 0.5:
        return 0.0
    local = local_epsilon(f)
    if target == 0:
        return min(_rounded_up(_largest_log_ratio(size, r, f)), local)
    largest = 0.0
    for _, a, b in _joint_laws(Pool(size, f, 0.0, LOG_SCALE), r):
        with_zero = np.cumsum((1 - f) * a + f * b, axis=1) - target * math.exp(2 * LOG_SCALE)
        with_one = np.cumsum(f * a + (1 - f) * b, axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # no mass left: the local value
            ratio = np.where(with_zero > 0, with_zero / with_one, 0.0)
        largest = max(largest, float(ratio.max()))
    if largest <= 1:
        return 0.0
    return min(_rounded_up(math.log(largest)), local)


def worst_delta(pool: Pool, reports: int, epsilon: float) -> float:
    """delta(eps) over all label counts and both directions: fast, at most some ``pool.tail`` above the exact value.

    Terms that cannot be positive are not evaluated. A(t) > e^eps B(t) needs an M in the window with
    Bin(r, M/p)(t) > e^eps Bin(r, (M+1)/p)(t), that is t ln((M+1)/M) + eps < (r-t) ln((p-M)/(p-M-1)), hence
    t/(M+1) + eps < (r-t)/(p-M-1), hence t < (M+1)/p (r - eps (p-M-1)), which is largest at the window's upper end.
    Below, a t is left out where T < t has probability at most ``tail`` even at the window's lower end. Omitted mass, of
    M or of T, adds at most (1 - f - e^eps f) times itself to delta.
    """
    p, f, tail = pool.size, pool.flip_probability, pool.tail
    e = math.exp(min(epsilon, MAX_EXPONENT))
    keep, lose = 1 - f - e * f, e * (1 - f) - f
    if keep <= 0:
        return 0.0
    worst = 0.0
    for chunk in pool.chunks():
        last = math.floor((chunk.high + 1) / p * (reports - epsilon * (p - chunk.high - 1)))
        share = chunk.low / p
        first, _ = window(reports, reports * share, reports * share, reports * share * (1 - share), tail)
        if min(last, reports) < first:
            continue
        by_share = pmf_by_share(reports, p, (chunk.low, chunk.high + 1), (first, min(last, reports)))
        terms = pool.laws(chunk) @ (keep * by_share[:-1] - lose * by_share[1:])
        worst = max(worst, float(np.maximum(terms, 0.0).sum(axis=1).max()))
    return min(worst * (1 + ROUNDING) + keep * (pool.omitted + tail), keep)


def _rounded_up(value: float) -> float:
    return value * (1 + ROUNDING) + ROUNDING / 10 if value > 0 else 0.0


def _largest_log_ratio(size: int, reports: int, flip_probability: float) -> float:
    """ln of P(T = 0 | victim's label 0)/P(T = 0 | 1) at k = p - 1; in logs, since both may be far below any double."""
    f = flip_probability
    if f == 0 or size == 1:
        return local_epsilon(f)
    n = size - 1
    m = np.arange(size)
    logs = log_factorials(n)
    log_law = logs[n] - logs[m] - logs[n - m] + m * math.log1p(-f) + (n - m) * math.log(f)
    a = _log_sum(log_law + reports * np.log1p(-m / size))
    b = _log_sum(log_law + reports * np.log1p(-(m + 1) / size, where=m < n, out=np.full(size, -math.inf)))
    return math.log1p((1 - 2 * f) * -math.expm1(b - a) / (f + (1 - f) * math.exp(b - a)))


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
