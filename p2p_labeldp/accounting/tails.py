"""The lower tail of T for one label count, in a window, for pools of any size.

The two laws of T for one label count of a pool too large for tables are needed only where the best events T <= c lie.
So T is walked upward from where its tail is negligible, vectorised over M. Between the restarts (exact binomial
probabilities every ``BLOCK`` counts) the probabilities follow from P(t+1) = P(t) (r-t)/(t+1) q/(1-q). All terms are
positive; what is cut off is bounded and returned, to be charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp.accounting.binomial import LOG_SCALE, Floats, half_width, log_pmf, pmf, window

BLOCK, END_BLOCK = 64, 16  # at the ends (r-t)/(t+1) changes so fast that longer ones would leave the doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """A victim among ``ones`` true ones, ``zeros`` true zeros and ``uniform`` fair bits, and r reports of them all.

    Args:
        ones: Others whose label is one before the flip.
        zeros: Others whose label is zero before the flip.
        uniform: Others who tell a fair bit.
        reports: r; None for a permutation, T = m.
        flip_probability: f of the victim and of the first two kinds.
    """

    ones: int
    zeros: int
    uniform: int
    reports: int | None
    flip_probability: float

    @property
    def pool(self) -> int:
        return self.ones + self.zeros + self.uniform + 1

    def others(self, tail: float) -> tuple[int, Floats]:
        """The law of M times 2^450: its first M, and P(M = first + i); six tails of mass are cut."""
        f = self.flip_probability
        flipped = self._told(self.ones, f, tail, LOG_SCALE)  # by flips: 1 - f would lose the digits of a tiny f
        risen, fair = self._told(self.zeros, f, tail), self._told(self.uniform, 0.5, tail)
        low = self.ones - (flipped[0] + flipped[1].size - 1) + risen[0] + fair[0]
        law = np.convolve(np.convolve(flipped[1][::-1], risen[1]), fair[1])
        return low, law

    @staticmethod
    def _told(people: int, probability: float, tail: float, log_scale: float = 0.0) -> tuple[int, Floats]:
        mean = people * probability
        first, last = window(people, mean, mean, mean * (1 - probability), tail)
        return first, pmf(people, probability, first, last, log_scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class TailBlock:
    """Consecutive counts T: the laws given that the victim's *flipped* label is 0 (``zero``) or 1 (``one``), times
    2^900. ``omitted`` (plain) bounds the mass either law has lost, below these counts or anywhere."""

    zero: Floats
    one: Floats
    omitted: float


def walk(mixture: Mixture, tail: float) -> Iterator[TailBlock]:
    """The laws of T block by block, from the lowest count that matters to r.

    Args:
        mixture: Whose reports.
        tail: Mass that may be cut on one side of one window; nothing is cut for 0.
    """
    low, law = mixture.others(tail)
    if mixture.reports is None:
        zero = np.concatenate((law, [0.0])) * math.exp(LOG_SCALE)
        yield TailBlock(zero=zero, one=np.roll(zero, 1), omitted=6 * tail)
        return
    r, pool = mixture.reports, mixture.pool
    share = np.arange(low, low + law.size + 1) / pool  # of ones, for M and for M + 1
    weights = np.zeros((2, law.size + 1))
    weights[0, :-1] = weights[1, 1:] = law
    # Reports at share 0 and 1 are point masses; a lower tail needs the first, at T = 0, and of the second nothing but T
    # = r.
    inner = (share > 0) & (share < 1)
    odds = np.where(inner, share, 0.0) / np.where(inner, 1 - share, 1.0)
    start, below = _start(r, weights, share, tail)
    omitted = 6 * tail + below
    at_start = _given_share(r, share, inner, start)
    while start <= r:
        stop = min(start + (BLOCK if 4 * BLOCK <= start <= r - 4 * BLOCK else END_BLOCK), r + 1)
        at_stop = _given_share(r, share, inner, stop) if stop <= r else np.zeros(share.size)
        kept = _kept(weights, share * r, (start, stop), (at_start, at_stop), tail)
        if kept.size < share.size:
            omitted += tail
        powers = np.empty((stop - start, kept.size))
        powers[0] = at_start[kept]
        centre = max(1, r - start) / (start + 1)
        ratio = odds[kept] * centre
        done = 1
        while done < stop - start:  # doubling: six products of many rows are sooner done than 63 of one
            more = min(done, stop - start - done)
            np.multiply(powers[:more], ratio, out=powers[done : done + more])
            done += more
            ratio = ratio * ratio
        counts = np.arange(start, stop - 1, dtype=np.float64)
        scalars = np.concatenate(([1.0], np.cumprod((r - counts) / ((counts + 1) * centre))))
        laws = (weights[:, kept] @ powers.T) * scalars
        if stop == r + 1:
            laws[:, -1] += weights @ np.where(share >= 1, math.exp(LOG_SCALE), 0.0)
        yield TailBlock(zero=laws[0], one=laws[1], omitted=omitted)
        start, at_start = stop, at_stop


def _kept(
    weights: Floats, means: Floats, counts: tuple[int, int], ends: tuple[Floats, Floats], tail: float
) -> npt.NDArray[np.int64]:
    """Which M matter to a block of counts: all but those that give it less than ``tail`` together.

    A binomial law has one mode; where that is outside the block, its largest value within is at one of the ends.
    """
    if tail <= 0:
        return np.arange(means.size)
    heaviest = weights.max(axis=0)
    least = tail / (means.size * BLOCK) * math.exp(LOG_SCALE)
    mode_within = (means > counts[0] - 2) & (means < counts[1] + 2)
    kept: npt.NDArray[np.int64] = np.flatnonzero(
        mode_within | (heaviest * np.maximum(*ends) > least * math.exp(LOG_SCALE))
    )
    return kept


def _given_share(reports: int, share: Floats, inner: npt.NDArray[np.bool_], count: int) -> Floats:
    """2^450 P(Bin(r, share) = count) for count < r or shares below 1."""
    law = np.zeros(share.size)
    law[inner] = np.exp(log_pmf(reports, share[inner], count) + LOG_SCALE)
    if count == 0:
        law[share == 0] = math.exp(LOG_SCALE)
    return law


def _start(r: int, weights: Floats, share: Floats, tail: float) -> tuple[int, float]:
    """A count to begin with, and a bound on P(T below it) given that the victim's flipped label is 0.

    For each M, P(Bin(r,q) <= c) <= P(Bin(r,q) = c)/(1 - rho) with rho = c (1-q)/((r-c+1) q), when that is below 1.
    """
    if tail <= 0:
        return 0, 0.0
    scale = math.exp(-LOG_SCALE)
    law, q = weights[0, :-1] * scale, share[:-1]
    mass = float(law.sum())
    mean = float(law @ q) / mass
    variance = r * mean * (1 - mean) + r * r * max(0.0, float(law @ (q - mean) ** 2) / mass)
    width = half_width(variance, tail)
    for stretch in (0.75, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0):
        count = math.floor(r * mean - stretch * width)
        if count <= 0:
            return 0, 0.0
        with np.errstate(divide="ignore"):
            rho = count * (1 - q) / ((r - count + 1) * q)
        close = rho >= 0.99
        bound = float(law[close].sum())
        far = ~close & (q < 1)
        bound += float(law[far] @ (np.exp(log_pmf(r, q[far], count)) / (1 - rho[far])))
        if bound <= 10 * tail:
            return count + 1, bound
    return 0, 0.0
