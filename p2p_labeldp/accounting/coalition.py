"""The learner with t mates that follow the protocol.

A mate that asked you gives the learner your box, opened; and mates know who asked them. With R rounds of one set of
flips each of the t mates draws R times. The victim is hit with probability p = 1 - (1 - 1/s)^(tR); then its flipped
label is known: the local guarantee. Else, of the h = s-t-1 other honest members u distinct ones are hit (D = tR draws,
uniform over the s - 1 cells other than the victim), j of whom have true label one and a flipped label one. What the
learner still has not seen is the reports of the s - t honest members:

- with query logs it knows which of them asked the coalition, so the n ~ Bin(R(s-t), 1 - t/s) others are draws from the
s-t
  honest members: T ~ Bin(n, (a + M)/(s-t));
- without logs all n = R(s-t) are draws from all s, of whom the coalition's c flipped ones are known too:
  T ~ Bin(n, (a + c + M)/s).

M counts the ones among the s-t-u members still unknown, the victim included. So

    delta(eps) = p [1-f-e^eps f]_+ + (1-p) sum_u P(u) sum_j P(j) sum_{a,c} P(a) P(c) sum_n P(n) HS_eps(T),

maximised over the true labels of the honest others and of the colluders, and over both directions (all zeros may be 2.7
% too low). Confirmed by full enumeration for s = 4, 5. A mate that deviates may ask everybody: then it is the local
value.

Where the sum is too long (``EXACT_WORK``) a bound stands in: let the learner also see which reports come from the u
members that were hit. The rest is resampling from s-t-u members by N ~ Bin(n, (s-t-u)/(s-t)) reports, and delta grows
with u and N: take both at a quantile, and charge the probability of exceeding it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from p2p_labeldp.accounting import exact, multiclass, tables
from p2p_labeldp.accounting.binomial import LOG_SCALE, Floats, half_width, pmf, pmf_by_share
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.accounting.pools import Pool, laws_within
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_epsilon, check_flip
from p2p_labeldp.accounting.scan import Cluster
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import local_epsilon

LEAST_WEIGHT = 1e-13  # counts less likely than this are put on the next larger one, which has the larger delta
EXACT_WORK = 2e9  # multiplications per epsilon; a second
MANY_DRAWS = 1000  # beyond it the law of the members hit takes too long
PRECISION = 1e-6  # relative, of an inverted eps; the upper end is returned


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalition:
    """The learner and ``colluders`` mates of one cluster.

    Args:
        cluster_size: s.
        colluders: t, 0 to s - 1.
        flip_probability: f.
        query_logs: Whether mates tell the learner who asked them.
        rounds: R, releases of one set of flips.
        num_classes: K; beyond 2 the bound stands in, with the first term [1-f-e^eps f/(K-1)]_+.
    """

    cluster_size: int
    colluders: int
    flip_probability: float
    query_logs: bool = True
    rounds: int = 1
    num_classes: int = 2

    def __post_init__(self) -> None:
        check_count(self.cluster_size, "cluster_size")
        if check_count(self.colluders, "colluders", least=0) >= self.cluster_size:
            raise ConfigurationError(
                f"{self.colluders} given; 0 to {self.cluster_size - 1} are possible", field="colluders"
            )
        object.__setattr__(self, "flip_probability", check_flip(self.flip_probability, self.num_classes))
        check_count(self.rounds, "rounds")

    @property
    def draws(self) -> int:
        """D = tR."""
        return self.colluders * self.rounds

    @property
    def hit(self) -> float:
        """p: some colluder asked the victim."""
        return -math.expm1(self.draws * math.log1p(-1 / self.cluster_size)) if self.cluster_size > 1 else 1.0

    @property
    def honest(self) -> int:
        """s - t, the victim included."""
        return self.cluster_size - self.colluders

    @property
    def reports(self) -> int:
        """R (s - t), the reports of honest members."""
        return self.rounds * self.honest

    def members(self, pool: int, reports: int) -> Classes:
        """Resampling among so many of the members."""
        return Classes(
            cluster_size=pool,
            num_classes=self.num_classes,
            flip_probability=self.flip_probability,
            reports=reports,
        )


def delta(coalition: Coalition, epsilon: float) -> float:
    """delta(eps), rounded up: the sum above where that is affordable, else the bound."""
    point = check_epsilon(epsilon)
    local = coalition.members(1, 1).local_delta(point)
    if local == 0:
        return 0.0
    if coalition.colluders == 0:
        return _resampled(coalition, coalition.cluster_size, coalition.reports, point)
    unseen = _unseen_exactly(coalition, point) if is_exact(coalition) else _unseen_bounded(coalition, point)
    return min(local, coalition.hit * local + (1 - coalition.hit) * unseen)


def epsilon(coalition: Coalition, delta_target: float) -> float:
    """The least eps, to 1e-6 of itself, whose ``delta`` was evaluated to be at most ``delta_target``."""
    target = check_delta(delta_target, "delta")
    local = local_epsilon(coalition.flip_probability, coalition.num_classes)
    if coalition.colluders == 0:
        members = coalition.members(coalition.cluster_size, coalition.reports)
        return multiclass.epsilon(members, target) if coalition.num_classes > 2 else _inverted(members, target)
    if local == 0 or delta(coalition, 0.0) <= target:
        return 0.0
    if target == 0 or local == math.inf:
        return _without_flips(coalition, target) if local == math.inf else local
    if not is_exact(coalition):
        return _bounded_epsilon(coalition, target, local)
    low, high = 0.0, local
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if coalition.hit * coalition.members(1, 1).local_delta(middle) > target:
            low = middle  # told without the sum
        elif delta(coalition, middle) <= target:
            high = middle
        else:
            low = middle
    return high


def _bounded_epsilon(coalition: Coalition, target: float, local: float) -> float:
    """The least eps of the bound, to 1e-6 of itself, from few of the inversions that take seconds in a large cluster.

    Let g(e) be the eps of the members not hit at the delta that the first term leaves them at e. It falls in e, and e
    will do if and only if g(e) <= e. So g of an e that won't do is one that will, and g of one that will is no larger
    than the least: the two ends are found from each other, and halved where that is slow.
    """
    pool, reports, charged = _not_hit(coalition)
    members = coalition.members(pool, reports)

    def needed(point: float) -> float:
        first = coalition.hit * coalition.members(1, 1).local_delta(point)
        room = (target - first) / (1 - coalition.hit) - charged
        if room <= 0:
            return local
        return multiclass.epsilon(members, room) if coalition.num_classes > 2 else _inverted(members, room)

    low, high, point, width = 0.0, local, 0.0, math.inf
    while high - low > PRECISION * high:
        found = needed(point)
        at_low = found > point
        low, high = (point, min(high, found)) if at_low else (max(low, found), point)
        slow = high - low > 0.5 * width
        width = high - low
        point = (low + high) / 2 if slow else high if at_low else low
    return high


def _without_flips(coalition: Coalition, target: float) -> float:
    """f = 0: either an eps of the doubles will do or none."""
    if target == 0 or delta(coalition, tables.MAX_EXPONENT) > target:
        return math.inf
    low, high = 0.0, tables.MAX_EXPONENT
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta(coalition, middle) <= target else (middle, high)
    return high


def is_exact(coalition: Coalition) -> bool:
    """Whether ``delta`` is the sum itself and not the bound."""
    if coalition.num_classes > 2:
        return False
    u = min(coalition.draws, coalition.honest - 1)
    known = (u + 1) * (u + 2) / 2 * (1 if coalition.query_logs else coalition.colluders + 1)
    outcomes = 2 * half_width(coalition.reports * 0.25, 1e-6) if coalition.query_logs else 1
    return known * outcomes * coalition.honest**2 * coalition.reports <= EXACT_WORK


def occupancy(draws: int, cells: int, marked: int) -> Floats:
    """P(u of the ``marked`` cells are hit by ``draws`` uniform draws over ``cells`` cells), u = 0 .. min(draws,

    marked).
    """
    law = np.zeros(min(draws, marked) + 1)
    law[0] = 1.0
    hit = np.arange(law.size)
    for _ in range(draws):
        fresh = law * (marked - hit) / cells
        law = law * (1 - (marked - hit) / cells)
        law[1:] += fresh[:-1]
    return law


def _unseen_exactly(coalition: Coalition, epsilon: float) -> float:
    """The sum over u, j, a, c, n, worst over labels; both directions by relabelling."""
    f, h = coalition.flip_probability, coalition.honest - 1
    total = coalition.honest if coalition.query_logs else coalition.cluster_size
    outside = 0 if coalition.query_logs else coalition.colluders
    told = laws_within(outside, f)  # of the colluders: row true ones, column flipped ones
    by_labels = np.zeros((h + 1, outside + 1))  # true ones among honest others, among colluders
    counts = _report_counts(coalition)
    for u, probability in enumerate(occupancy(coalition.draws, coalition.cluster_size - 1, h)):
        pool = Pool(h - u + 1, f, 0.0, LOG_SCALE)
        chosen = _hypergeometric(h, u)
        flipped = laws_within(u, f)
        for known in range(u + outside + 1):  # flipped ones known to the coalition
            divergences = np.zeros(h - u + 1)  # by true ones among the honest others not hit
            for n, weight in counts:
                divergences += weight * _divergences(pool, n, known, total, epsilon)
            for c in range(max(0, known - u), min(outside, known) + 1):
                a = known - c
                for j in range(u + 1):
                    k = np.arange(j, h - u + j + 1)  # true ones among all honest others
                    by_labels[k] += np.outer(probability * chosen[k, j] * flipped[j, a] * divergences, told[:, c])
    return float(by_labels.max()) * (1 + tables.ROUNDING)


def _report_counts(coalition: Coalition) -> list[tuple[int, float]]:
    """(n, P(n)) of the reports not known to have asked the coalition; the negligible are put on the next larger n."""
    if not coalition.query_logs:
        return [(coalition.reports, 1.0)]
    law = pmf(coalition.reports, 1 - coalition.colluders / coalition.cluster_size, 0, coalition.reports)
    counts, carried = [], 0.0
    for n, weight in enumerate(law):
        carried += float(weight)
        if carried > LEAST_WEIGHT or n == coalition.reports:
            counts.append((n, carried))
            carried = 0.0
    return counts


def _divergences(pool: Pool, reports: int, known: int, total: int, epsilon: float) -> Floats:
    """HS_eps of T ~ Bin(reports, (known + m)/total), direction ``add``, by the true ones among the pool's others."""
    by_share = pmf_by_share(reports, total, (known, known + pool.size), (0, reports), LOG_SCALE)
    rows = []
    for chunk in pool.chunks():
        others = pool.laws(chunk)
        law = tables.Rows(
            first=chunk.first,
            zero=others @ by_share[chunk.low : chunk.high + 1],
            one=others @ by_share[chunk.low + 1 : chunk.high + 2],
        )
        rows.append(tables.deltas(law, pool.flip_probability, epsilon))
    return np.concatenate(rows) * math.exp(-2 * LOG_SCALE)


@lru_cache(maxsize=64)
def _hypergeometric(people: int, drawn: int) -> Floats:
    """P(j ones among ``drawn`` of ``people``), row = ones among all, column j = 0 .. drawn."""
    table = np.zeros((people + 1, drawn + 1))
    whole = math.comb(people, drawn)
    for ones in range(people + 1):
        for j in range(min(ones, drawn) + 1):
            table[ones, j] = math.comb(ones, j) * math.comb(people - ones, drawn - j) / whole
    return table


def _unseen_bounded(coalition: Coalition, epsilon: float) -> float:
    """Resampling from the members not hit, u and N at a quantile; query logs or not, this bounds both."""
    pool, reports, charged = _not_hit(coalition)
    return _resampled(coalition, pool, reports, epsilon) + charged


def _not_hit(coalition: Coalition) -> tuple[int, int, float]:
    """Members not hit, victim included, and their reports, at a quantile; and what exceeding it adds to delta."""
    u, exceeded = _most_hit(coalition)
    left = coalition.honest - u
    share = left / coalition.cluster_size  # of all draws: asked neither the coalition nor a member hit
    mean = coalition.reports * share
    reports = min(coalition.reports, math.ceil(mean + half_width(mean * (1 - share), 1e-12)))
    return left, max(1, reports), exceeded + 1e-12


def _most_hit(coalition: Coalition) -> tuple[int, float]:
    """A number of honest others that the draws hit, and the probability that they hit more.

    With many draws by Bernstein's inequality, which holds for occupied cells: they are negatively associated (Dubhashi,
    Ranjan, "Balls and bins", 1998).
    """
    cells, marked = coalition.cluster_size - 1, coalition.honest - 1
    if coalition.draws > MANY_DRAWS:
        occupied = -math.expm1(coalition.draws * math.log1p(-1 / cells))
        mean = marked * occupied
        most = math.ceil(mean + half_width(mean * (1 - occupied), 1e-12))
        return min(most, marked, coalition.draws), 1e-12
    beyond = np.append(np.cumsum(occupancy(coalition.draws, cells, marked)[::-1])[::-1], 0.0)  # P(at least u)
    u = max(0, int(np.argmax(beyond <= 1e-12)) - 1)
    return u, float(beyond[u + 1])


def _resampled(coalition: Coalition, pool: int, reports: int, epsilon: float) -> float:
    if coalition.num_classes > 2:
        return multiclass.delta(coalition.members(pool, reports), epsilon)
    cluster = Cluster(pool=pool, reports=reports, flip_probability=coalition.flip_probability)
    return exact.loss_at_epsilon(cluster, epsilon).delta


def _inverted(members: Classes, delta: float) -> float:
    cluster = Cluster(
        pool=members.cluster_size,
        reports=members.reports,
        flip_probability=members.flip_probability,
    )
    return exact.loss_at_delta(cluster, delta).epsilon
