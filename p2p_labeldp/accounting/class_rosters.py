"""K classes: what a roster promises, whoever of it fails to answer. The bound of ``multiclass``, for every pool.

A roster names s peers, of whom any p answer (``planning``); r ~ Bin(s, p/s) of the s asks find an answer, and reports
leave only if r >= h. Given r, they are r draws from a pool of p, for which ``multiclass`` proves, with q = f/(K-1),

    delta_{r,p}(eps) <= (1-f+q) E_n E_N [ D(n, N) ],   n ~ Bin(p-1, 2q),   N ~ Bin(r, (n+1)/p),

D(n, N) being the divergence of T ~ Bin(N, M/(n+1)), M = Bin(n, 1/2) + the victim's bit, wrong with probability
q/(1-f+q). What is promised is the largest over p of sum_{r>=h} P(r) delta_{r,p}(eps): a maximum of certified bounds, so
certified. The exact three-category law, which only K = 3 has and only as far as enumeration goes, is not used.

With t mates beside the learner, as in ``planning``: one of them asked the victim, which costs the local delta, or at
most 2t members are known, and n ~ Bin(p-2t-1, 2q) of the others.

D depends on neither s, f nor K but through the wrong bit, so the laws behind it are kept. Four facts make it cheap:

- D grows with N: leaving reports out is post-processing. It falls with n: told which reports come from one of n + 1
  others, one has at most N of n + 1 members left. So n and N are taken in cells, D by the least n and the largest N.
- N grows with n, so a cell's N is that of its largest n.
- D(n, N) <= D(n, inf), the divergence of M itself, the shuffle's: that stands in for an N far above n + 1, and for all
  N where n is in the thousands.
- Over pools p0 .. p1 together: r grows with p (take p1), the share (n+1)/p falls (take p0), and n grows with p, which
  is harmless once D's mean at n is replaced by the largest at n or above (take p0). Pools are halved until they fit.

Cut off and charged: ``TAIL`` on each side of each window, and ``SUMS`` for differences of cumulated probabilities.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_labeldp.accounting.binomial import TABLE, Floats, half_width, log_factorials, log_pmf, pmf, pmf_by_share
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.accounting.tables import MAX_EXPONENT, ROUNDING
from p2p_labeldp.mechanisms.resampling import INDEX_BIAS

TAIL = 1e-20
SUMS = 1e-14
FINE = 48  # n and N up to here one by one, then in cells of a 48th of themselves: 1 % of eps at the most
LARGEST_N = 1500  # beyond it, the shuffle's divergence, which needs no law of T
BAND = 1e-6  # N further from n + 1 than a Poisson variable is with this probability have no law of their own
REPORT_CELLS = 16


@lru_cache(maxsize=1)
def _grid() -> npt.NDArray[np.int64]:
    """0 .. FINE, then by steps of a FINE-th, up to more people than there are."""
    points = list(range(FINE + 1))
    while points[-1] < 10**9:
        points.append(points[-1] + max(1, points[-1] // FINE))
    return np.array(points, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """Of n fair bits and the victim's 0: the law of their sum, and of T for each N of ``tops``, padded with zeros."""

    n: int
    sum_law: Floats
    tops: npt.NDArray[np.int64]
    laws: Floats

    def divergences(self, wrong: float, exp_epsilon: float) -> tuple[Floats, float]:
        """D(n, N) for N in ``tops``, shape (len(tops),), and D(n, inf)."""
        zero, one = np.append(self.sum_law, 0.0), np.append(0.0, self.sum_law)
        whole = float(_divergence(zero, one, wrong, exp_epsilon))
        if not self.tops.size:
            return np.zeros(0), whole
        # with the victim's bit 1 the law of T is that of N - T: all bits flipped
        place = self.tops[:, None] - np.arange(self.laws.shape[1])
        mirrored = np.where(place >= 0, np.take_along_axis(self.laws, np.maximum(place, 0), axis=1), 0.0)
        return np.minimum(_divergence(self.laws, mirrored, wrong, exp_epsilon), whole), whole


def _divergence(zero: Floats, one: Floats, wrong: float, exp_epsilon: float) -> Floats:
    left, right = (1 - wrong) * zero + wrong * one, wrong * zero + (1 - wrong) * one
    summed: Floats = np.maximum(left - exp_epsilon * right, 0.0).sum(axis=-1)
    return summed


@lru_cache(maxsize=512)
def _told(n: int) -> _Told:
    bits = pmf(n, 0.5, 0, n)
    if n > LARGEST_N:
        return _Told(n, bits, np.zeros(0, dtype=np.int64), np.zeros((0, 0)))
    width = half_width(n + 1, BAND)
    tops = _grid()
    tops = tops[(tops >= n + 1 - width) & (tops <= n + 1 + width)]
    heavy = np.flatnonzero(bits > TAIL / (n + 1))
    first, last = int(heavy[0]), int(heavy[-1])
    laws = np.zeros((tops.size, int(tops[-1]) + 1))
    for row, top in enumerate(tops.tolist()):
        laws[row, : top + 1] = bits[first : last + 1] @ pmf_by_share(top, n + 1, (first, last), (0, top))
    return _Told(n, bits, tops, laws)


class ClassRoster:
    """One roster of K classes.

    Args:
        size: s.
        holding: h.
        colluders: t, below s.
        num_classes: K.
    """

    def __init__(self, size: int, holding: int, colluders: int, num_classes: int) -> None:
        self.size, self.holding, self.colluders, self.num_classes = size, holding, colluders, num_classes
        self.hit = 1 - (1 - 1 / size) ** colluders

    def fits(self, flip_probability: float, epsilon: float, delta: float) -> bool:
        """Whether the bound at ``epsilon`` is at most ``delta``; evaluates no more than that takes."""
        question = _Question(self, flip_probability, epsilon)
        if question.local <= delta:
            return True
        room = (delta - question.coins - self.hit * question.local) / (1 - self.hit)
        blocks = [(1, self.size - 1), (self.size, self.size)]
        while blocks and room >= 0:
            first, last = blocks.pop()
            if first > last or question.bound(first, last) <= room:
                continue
            if first == last:
                return False
            middle = (first + last) // 2
            blocks += [(first, middle), (middle + 1, last)]
        return room >= 0

    def delta(self, flip_probability: float, epsilon: float) -> float:
        """The bound at ``epsilon``."""
        question = _Question(self, flip_probability, epsilon)
        if question.local == 0:
            return 0.0
        blocks = [(-math.inf, 1, self.size)]
        while True:
            bound, first, last = heapq.heappop(blocks)
            if first == last:
                worst = question.bound(first, last)
                return min(question.local, self.hit * question.local + (1 - self.hit) * worst + question.coins)
            middle = (first + last) // 2
            for half in ((first, middle), (middle + 1, last)):
                heapq.heappush(blocks, (max(-question.bound(*half), bound), *half))


class _Question:
    """One roster at one flip probability and one epsilon."""

    def __init__(self, roster: ClassRoster, flip_probability: float, epsilon: float) -> None:
        self._roster = roster
        classes = Classes(cluster_size=roster.size, num_classes=roster.num_classes, flip_probability=flip_probability)
        self.local = classes.local_delta(epsilon)
        exp_epsilon = math.exp(min(epsilon, MAX_EXPONENT))
        # s draws of a mate, each within s/2^64 of uniform; s flips, each within (K-1)/2^64 of the stated probability
        words = roster.size**2 + roster.size * (roster.num_classes - 1)
        self.coins = words * INDEX_BIAS * (1 + exp_epsilon)
        self._hiding = min(1.0, 2 * classes.other)
        self._mass, self._wrong, self._exp_epsilon = classes.pair_mass, classes.pair_flip, exp_epsilon
        self._divergences: dict[int, tuple[Floats, float]] = {}
        self._tables: dict[tuple[int, int], tuple[npt.NDArray[np.int64], Floats, Floats]] = {}

    def bound(self, first: int, last: int) -> float:
        """Of the worst of the pools ``first`` .. ``last``, holding included; at most the local delta."""
        reports = list(self._reports(last))
        held = math.fsum(weight for _, weight in reports) + TAIL
        if held * self.local <= 2 * TAIL:
            return held * self.local
        least, most = (max(1, pool - 2 * self._roster.colluders) - 1 for pool in (first, last))
        low, high, weights = self._hiders(least, most)
        by_cell = np.zeros(low.size)
        shares = np.minimum(1.0, (high + 1) / first)
        for count, weight in reports:
            by_cell += weight * self._means(low, shares, count)
        if first < last:
            by_cell = np.maximum.accumulate(by_cell[::-1])[::-1]
        found = self._mass * float(by_cell @ weights) * (1 + ROUNDING) + 6 * TAIL + SUMS * self.local
        return min(found, held * self.local)

    def _reports(self, pool: int) -> Iterator[tuple[int, float]]:
        """(largest r, probability) of cells of r ~ Bin(s, pool/s), from h up to where the tail begins."""
        size, least = self._roster.size, self._roster.holding
        mean = pool
        most = min(size, max(least, math.ceil(mean + half_width(mean * (1 - pool / size), TAIL))))
        law = pmf(size, pool / size, least, most)
        width = -(-law.size // REPORT_CELLS)
        for start in range(0, law.size, width):
            weight = float(law[start : start + width].sum())
            if weight > 0:
                yield least + min(start + width, law.size) - 1, weight

    def _hiders(self, least: int, most: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
        """Cells of n: first and last n, and probabilities under Bin(least, 2q); up to what Bin(most, 2q) needs."""
        spread = self._hiding * (1 - self._hiding)
        bottom = max(0, math.floor(least * self._hiding - half_width(least * spread, TAIL)))
        top = min(most, math.ceil(most * self._hiding + half_width(most * spread, TAIL)))
        grid = _grid()
        place = int(np.searchsorted(grid, bottom, side="right")) - 1
        starts = grid[place : int(np.searchsorted(grid, top, side="right"))]
        ends = np.minimum(grid[place + 1 : place + 1 + starts.size] - 1, top)
        law = np.zeros(int(ends[-1]) - int(starts[0]) + 1)
        reach = min(least, int(ends[-1]))
        law[: reach - int(starts[0]) + 1] = pmf(least, self._hiding, int(starts[0]), reach)
        return starts, ends, np.add.reduceat(law, starts - starts[0])

    def _means(self, low: npt.NDArray[np.int64], shares: Floats, reports: int) -> Floats:
        """E_N D for each cell of n, N ~ Bin(reports, share)."""
        tops, values, whole = self._table(low)
        means = whole.copy()
        lawful = len(tops)
        if lawful:
            below = _cumulated(reports, shares[:lawful], tops)
            within = np.maximum(np.diff(below, axis=1, prepend=0.0), 0.0)
            above = np.maximum(1 - below[:, -1], 0.0)
            means[:lawful] = (within * values).sum(axis=1) + above * whole[:lawful]
        return means

    def _table(self, low: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
        """Rows for those n of ``low`` that have laws: the N of their cells and D, padded with the last; and D(n, inf)
        for all of them."""
        key = (int(low[0]), int(low[-1]))
        if key not in self._tables:
            for n in low.tolist():
                if n not in self._divergences:
                    self._divergences[n] = _told(n).divergences(self._wrong, self._exp_epsilon)
            rows = [(_told(n).tops, self._divergences[n][0]) for n in low[low <= LARGEST_N].tolist()]
            tops = np.empty((len(rows), max((row.size for row, _ in rows), default=0)), dtype=np.int64)
            values = np.empty(tops.shape)
            for place, (row, divergences) in enumerate(rows):
                tops[place, : row.size], tops[place, row.size :] = row, row[-1]
                values[place, : row.size], values[place, row.size :] = divergences, divergences[-1]
            whole = np.array([self._divergences[n][1] for n in low.tolist()])
            self._tables[key] = tops, values, whole
        return self._tables[key]


def _cumulated(reports: int, shares: Floats, tops: npt.NDArray[np.int64]) -> Floats:
    """P(Bin(reports, share) <= top), row by row, shape of ``tops``."""
    most = min(int(tops.max()), reports)
    counts = np.arange(most + 1)
    sure = shares >= 1  # every report comes from these
    inner = np.where(sure, 0.5, shares)
    if reports <= TABLE:
        logs = log_factorials(reports)
        law = np.multiply.outer(np.log(inner), counts.astype(np.float64))
        law += np.multiply.outer(np.log1p(-inner), (reports - counts).astype(np.float64))
        law += logs[reports] - logs[counts] - logs[reports - counts]
    else:
        law = log_pmf(reports, inner[:, None], counts)
    cumulated = np.cumsum(np.exp(law), axis=1)
    cumulated[sure] = counts == reports
    picked: Floats = np.take_along_axis(cumulated, np.minimum(tops, most), axis=1)
    return picked
