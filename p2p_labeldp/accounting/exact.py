"""The exact privacy of one cluster against the learner, whatever its size: tables for small ones, branch and bound for
large ones. ``resampling`` and ``shuffle`` state the two laws and are what to call."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2p_labeldp.accounting import scan, tables
from p2p_labeldp.accounting.binomial import LOG_SCALE, Floats, log_pmf
from p2p_labeldp.accounting.pools import Pool
from p2p_labeldp.accounting.scan import TIE, Cluster
from p2p_labeldp.accounting.tables import MAX_EXPONENT, ROUNDING
from p2p_labeldp.mechanisms.randomized_response import local_epsilon

ADD, REMOVE = "add", "remove"
TABLE_WORK = 3e8  # multiplications; up to here, s = 670, tables take well under a tenth of a second
TABLE_ENTRIES = 5e6  # many rounds of a small cluster
LEAST_TAIL = 1e-305
COARSE = 1e-8  # of delta, cut from the laws of blocks, and charged; of those of single counts a tenthousandth of it
EPSILON_SLACK = 3e-10  # by how much branch and bound may exceed the exact eps


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One point of the privacy profile.

    Args:
        epsilon: At least 0.
        delta: The hockey-stick divergence at ``epsilon``, or what ``epsilon`` was asked for; rounded up.
        worst_ones: Number of ones among the other members' true labels that attains it (the least, if several do).
        direction: ``add``: HS(law with the victim's label 0 || law with label 1); ``remove``: the other way.
    """

    epsilon: float
    delta: float
    worst_ones: int
    direction: str


def local_delta(flip_probability: float, epsilon: float) -> float:
    """[1 - f - e^eps f]_+: what the flip alone promises at ``epsilon``, to anyone."""
    return max(0.0, 1 - flip_probability - math.exp(min(epsilon, MAX_EXPONENT)) * flip_probability)


def loss_at_epsilon(cluster: Cluster, epsilon: float) -> Loss:
    """The largest delta over all label counts and both directions."""
    f, p = cluster.flip_probability, cluster.pool
    local = local_delta(f, epsilon)
    first, last, value = 0, p - 1, 0.0
    if local > 0:
        if _by_tables(cluster):
            by_count = np.concatenate([tables.deltas(rows, f, epsilon) for rows in _rows(cluster)])
            first, last, value = _attained(by_count * math.exp(-2 * LOG_SCALE))
        elif epsilon < _largest_log_ratio(cluster):
            tail = _tail_for_epsilon(cluster, epsilon)
            coarse = tail if tail == LEAST_TAIL else 1e4 * tail
            worst = scan.worst_count(
                p,
                lambda low, high, fine, _: _block_delta(
                    cluster, low, high, epsilon, tail if low == high else coarse, fine
                ),
                lambda best: 1e-8 * best,
            )
            first, last, value = worst.first, worst.last, worst.value
    return _loss(epsilon, min(value * (1 + ROUNDING), local), p, first, last)


def loss_at_delta(cluster: Cluster, delta: float) -> Loss:
    """The least eps with delta(eps) <= ``delta``, over all label counts and both directions; infinite if none will

    do.
    """
    f, p = cluster.flip_probability, cluster.pool
    local = local_epsilon(f)
    first, last, value = 0, p - 1, 0.0
    if delta == 0:
        first, last, value = p - 1, p - 1, _largest_log_ratio(cluster)  # of T = 0; see resampling
    elif _by_tables(cluster):
        by_count = np.concatenate([tables.exponentials(rows, f, delta) for rows in _rows(cluster)])
        first, last, value = _attained(np.log(np.maximum(by_count, 1.0)))
    elif f < 0.5:
        tail = max(delta * 1e-12, LEAST_TAIL)
        if delta < 1e10 * tail:
            first, last, value = p - 1, p - 1, _largest_log_ratio(cluster)  # covers any delta
        else:
            coarse = max(delta * COARSE, tail)
            worst = scan.worst_count(
                p,
                lambda low, high, fine, floor: _block_epsilon(
                    cluster, low, high, delta, tail if low == high else coarse, fine, floor
                ),
                lambda best: EPSILON_SLACK,
            )
            first, last, value = worst.first, worst.last, worst.value
    if value == 0:
        first, last = 0, p - 1  # every count attains it
    else:
        value = min(value * (1 + ROUNDING) + ROUNDING / 10, local)
    return _loss(value, delta, p, first, last)


def _by_tables(cluster: Cluster) -> bool:
    entries = cluster.pool * (cluster.reports or cluster.pool)
    return cluster.pool * entries <= TABLE_WORK or (cluster.pool <= 200 and entries <= TABLE_ENTRIES)


def _rows(cluster: Cluster) -> Iterator[tables.Rows]:
    pool = Pool(cluster.pool, cluster.flip_probability, 0.0, LOG_SCALE)
    return tables.permuted(pool) if cluster.reports is None else tables.resampled(pool, cluster.reports)


def _attained(by_count: Floats) -> tuple[int, int, float]:
    largest = float(by_count.max())
    attained = np.flatnonzero(by_count >= largest * (1 - TIE))
    return int(attained[0]), int(attained[-1]), largest


def _loss(epsilon: float, delta: float, pool: int, first: int, last: int) -> Loss:
    """From the least and the largest count that attain the worst of direction ``add``."""
    mirrored = pool - 1 - last
    return Loss(
        epsilon=epsilon, delta=delta, worst_ones=min(first, mirrored), direction=ADD if first <= mirrored else REMOVE
    )


def _block_epsilon(
    cluster: Cluster, low: int, high: int, delta: float, tail: float, fine: bool = False, floor: float = 0.0
) -> tuple[float, int]:
    """A bound on eps(delta) of a block, and the laws it took."""
    if fine and floor > 0:
        block = cluster.cells(low, high, tail)
        return scan.epsilon_of_cells(block, delta, tail, floor), len(block.cells)
    mixture, exceeded = cluster.block(low, high, tail)
    return scan.epsilon_of(mixture, delta - exceeded, tail), 1


def _block_delta(
    cluster: Cluster, low: int, high: int, epsilon: float, tail: float, fine: bool = False
) -> tuple[float, int]:
    """A bound on delta(eps) of a block, and the laws it took."""
    if fine:
        block = cluster.cells(low, high, tail)
        deltas = [probability * scan.delta_of(mixture, epsilon, tail) for probability, mixture in block.cells]
        return sum(deltas) + block.exceeded, len(deltas)
    mixture, exceeded = cluster.block(low, high, tail)
    return scan.delta_of(mixture, epsilon, tail) + exceeded, 1


def _tail_for_epsilon(cluster: Cluster, epsilon: float) -> float:
    """A tail that is nothing beside the delta that will come out; found by trying the two ends."""
    tail = 1e-20
    while True:
        largest = max(_block_delta(cluster, k, k, epsilon, tail)[0] for k in (0, cluster.pool - 1))
        if tail == LEAST_TAIL or largest > 1e4 * tail:
            return max(min(tail, largest * 1e-12), LEAST_TAIL)
        tail = max(tail * tail, LEAST_TAIL)


def _largest_log_ratio(cluster: Cluster) -> float:
    """ln P(T = 0 | victim's label 0)/P(T = 0 | 1) at k = p - 1; in logs, since both may be far below any double."""
    f, p = cluster.flip_probability, cluster.pool
    if f == 0 or p == 1 or cluster.reports is None:  # a permutation may show a cluster without a single one
        return local_epsilon(f)
    m = np.arange(p)
    log_law = log_pmf(p - 1, f, m)[::-1]  # by flips
    zero = _log_sum(log_law + cluster.reports * np.log1p(-m / p))
    one = _log_sum(log_law[:-1] + cluster.reports * np.log1p(-(m[:-1] + 1) / p))
    return math.log1p((1 - 2 * f) * -math.expm1(one - zero) / (f + (1 - f) * math.exp(one - zero)))


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
