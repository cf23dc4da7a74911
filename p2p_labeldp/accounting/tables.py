"""The laws of T, the number of ones among the reports, for all label counts of a cluster at once: tables, for pools of
up to about a thousand members.

Rows are label counts k, columns counts t. A is the law given that the victim's *flipped* label is 0, B given 1; the
laws given its true label are (1-f) A + f B and f A + (1-f) B. Only direction ``add`` is computed: swapping the two
labels maps (k, add) to (p - 1 - k, remove).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2p_labeldp.accounting.binomial import LOG_SCALE, Floats, pmf_by_share, window
from p2p_labeldp.accounting.pools import Pool

ROUNDING = 1e-11  # relative, charged upward: the sums of up to some thousand terms are good to about 1e-12
MAX_EXPONENT = 700.0  # e^eps stays a double; delta falls in eps, so a larger eps is answered by this one's delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Label counts ``first ..``: A and B times 2^900, shape (counts, columns)."""

    first: int
    zero: Floats
    one: Floats


def resampled(pool: Pool, reports: int) -> Iterator[Rows]:
    """T | m ~ Bin(r, m/p). The pool's laws carry 2^450 and are not cut."""
    by_share = pmf_by_share(reports, pool.size, (0, pool.size), (0, reports), LOG_SCALE)
    for chunk in pool.chunks():
        others = pool.laws(chunk)
        yield Rows(
            first=chunk.first,
            zero=others @ by_share[chunk.low : chunk.high + 1],
            one=others @ by_share[chunk.low + 1 : chunk.high + 2],
        )


def permuted(pool: Pool) -> Iterator[Rows]:
    """T = m: every flipped label is reported once."""
    for chunk in pool.chunks():
        others = pool.laws(chunk) * math.exp(LOG_SCALE)
        nobody = np.zeros((others.shape[0], 1))
        yield Rows(
            first=chunk.first,
            zero=np.concatenate((others, nobody), axis=1),
            one=np.concatenate((nobody, others), axis=1),
        )


def coefficients(flip_probability: float, epsilon: float) -> tuple[float, float]:
    """(1 - f - e^eps f, e^eps (1-f) - f): delta is the sum of [first A - second B]_+."""
    e = math.exp(min(epsilon, MAX_EXPONENT))
    return 1 - flip_probability - e * flip_probability, e * (1 - flip_probability) - flip_probability


def deltas(rows: Rows, flip_probability: float, epsilon: float) -> Floats:
    """delta(eps) of each row, times 2^900."""
    keep, lose = coefficients(flip_probability, epsilon)
    if keep <= 0:
        return np.zeros(rows.zero.shape[0])
    with np.errstate(over="ignore"):  # lose * one may be infinite; then the term is 0
        sums: Floats = np.maximum(keep * rows.zero - lose * rows.one, 0.0).sum(axis=1)
    return sums


def exponentials(rows: Rows, flip_probability: float, delta: float) -> Floats:
    """e^eps(delta) of each row: max over c of (P0(T <= c) - delta)/P1(T <= c); below 1 where eps = 0 will do."""
    f = flip_probability
    surplus = np.cumsum((1 - f) * rows.zero + f * rows.one, axis=1) - delta * math.exp(2 * LOG_SCALE)
    mass = np.cumsum(f * rows.zero + (1 - f) * rows.one, axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # no mass left: infinite
        quotients: Floats = np.where(surplus > 0, surplus / mass, 0.0).max(axis=1)
    return quotients


def worst_delta(pool: Pool, reports: int, epsilon: float) -> float:
    """delta(eps) of resampling over all label counts and both directions: fast, at most some ``pool.tail`` too large.

    Terms that cannot be positive are not evaluated. A(t) > e^eps B(t) needs an M in the window with
    Bin(r, M/p)(t) > e^eps Bin(r, (M+1)/p)(t), that is t ln((M+1)/M) + eps < (r-t) ln((p-M)/(p-M-1)), hence
    t/(M+1) + eps < (r-t)/(p-M-1), hence t < (M+1)/p (r - eps (p-M-1)), which is largest at the window's upper end.
    Below, a t is left out where T < t has probability at most ``tail`` even at the window's lower end. Omitted mass, of
    M or of T, adds at most (1 - f - e^eps f) times itself to delta.
    """
    p, tail = pool.size, pool.tail
    keep, lose = coefficients(pool.flip_probability, epsilon)
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
