"""Several releases of the same label: composition through Google's dp-accounting, and only here.

Fresh flips in every round make the rounds independent given the labels, so their privacy loss distributions add up
(memoised flips do not: there T ~ Bin(R s, m/s), see ``resampling`` with ``reports``). Labels are the same in every
round, so the worst label count is that of the composed loss, not of one round: branch and bound over counts as in
``scan``. A block's pair has the larger hockey-stick divergence at every eps, hence also after composition (Zhu, Dong,
Wang 2022, theorem on dominating pairs), and the probability of exceeding its quantiles is charged once a round.

dp-accounting rounds losses up to a grid. Two of its ways are turned off here: ``from_two_probability_mass_functions``
assumes a symmetric pair unless told otherwise and then under-reports, and it accepts masses that do not sum to one.
Composing truncates, so that eps(delta) is infinite for delta below about 1e-15; basic composition stands in there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from p2p_labeldp.accounting import scan
from p2p_labeldp.accounting.binomial import LOG_SCALE, Floats, half_width
from p2p_labeldp.accounting.divergence import Pair
from p2p_labeldp.accounting.exact import loss_at_delta
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_flip
from p2p_labeldp.accounting.scan import Cluster
from p2p_labeldp.accounting.tails import Mixture, walk
from p2p_labeldp.errors import ConfigurationError, UnsupportedComposition
from p2p_labeldp.mechanisms.randomized_response import local_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import (
        PrivacyLossDistribution,
    )

INTERVAL = 1e-4  # of the grid of losses where eps is of order 1; finer in proportion where losses are small
TAIL = 1e-18
MAX_LOSS = 3000.0  # of all rounds together: their grid takes a gigabyte


def fresh_rounds_epsilon(
    *,
    cluster_size: int,
    flip_probability: float,
    rounds: int,
    delta: float,
    reports: int | None = None,
) -> float:
    """Least eps at ``delta`` of R rounds with fresh flips and fresh draws, over all label counts; rounded up.

    Args:
        cluster_size: s.
        flip_probability: f, in every round.
        rounds: R.
        delta: Of all rounds together.
        reports: r of each round; the cluster size if not given.

    Raises:
        ConfigurationError: An argument out of range, or so many rounds that their losses would not fit in memory.
    """
    cluster = Cluster(
        pool=check_count(cluster_size, "cluster_size"),
        reports=check_count(cluster_size if reports is None else reports, "reports"),
        flip_probability=check_flip(flip_probability),
    )
    count, target = check_count(rounds, "rounds"), check_delta(delta)
    single = loss_at_delta(cluster, target).epsilon
    if count == 1 or single == math.inf:
        return single
    basic = count * loss_at_delta(cluster, target / count).epsilon  # at delta/R each: basic composition
    if target < 1e-13 or basic == 0:
        return basic
    local = local_epsilon(cluster.flip_probability)
    if count * local > MAX_LOSS:
        raise ConfigurationError(
            f"{count} given; 1 to {int(MAX_LOSS / local)} are possible with fresh flips at this probability",
            field="rounds",
        )
    interval = min(INTERVAL, INTERVAL * basic)

    def evaluate(low: int, high: int, fine: bool, floor: float) -> tuple[float, int]:
        if fine:
            return math.inf, 0  # nothing finer is composed: cut the block
        mixture, exceeded = cluster.block(low, high, TAIL)
        losses = _losses(mixture_pair(mixture), interval)
        return float(losses.self_compose(count).get_epsilon_for_delta(target - count * exceeded)), 1

    worst = scan.worst_count(cluster.pool, evaluate, lambda best: 1e-4 * best)
    return min(basic, worst.value)


def mixture_pair(mixture: Mixture) -> Pair:
    """The laws of T given the victim's true label 0 and 1, for one label count."""
    f = mixture.flip_probability
    last = _last_count(mixture)
    blocks, count = [], 0
    for block in walk(mixture, TAIL):
        blocks.append(block)
        count += block.zero.size
        if count > last:
            break
    zero = np.concatenate([block.zero for block in blocks]) * math.exp(-2 * LOG_SCALE)
    one = np.concatenate([block.one for block in blocks]) * math.exp(-2 * LOG_SCALE)
    return Pair(left=(1 - f) * zero + f * one, right=f * zero + (1 - f) * one, omitted=blocks[-1].omitted + TAIL)


def _last_count(mixture: Mixture) -> int:
    """A T that is exceeded with probability at most ``TAIL``, M being within its window: walking further is in vain."""
    if mixture.reports is None:
        return mixture.pool
    low, law = mixture.others(TAIL)
    share = min(1.0, (low + law.size) / mixture.pool)  # of ones at most, the victim's among them
    mean = mixture.reports * share
    return math.ceil(mean + half_width(mean * (1 - share), TAIL))


def loss_distribution(
    *, cluster_size: int, flip_probability: float, ones: int, reports: int | None = None, interval: float = INTERVAL
) -> PrivacyLossDistribution:
    """The privacy loss of one label count as dp-accounting knows it, to compose with another mechanism's.

    Args:
        cluster_size: s.
        flip_probability: f.
        ones: k, of the s - 1 other members.
        reports: r; the cluster size if not given.
        interval: Of the grid.

    Raises:
        UnsupportedComposition: The count does not exist.
    """
    size = check_count(cluster_size, "cluster_size")
    if not 0 <= ones < size:
        raise UnsupportedComposition(f"{ones} of the other {size - 1} members can't be ones")
    pair = mixture_pair(
        Mixture(
            ones=ones,
            zeros=size - 1 - ones,
            uniform=0,
            reports=check_count(size if reports is None else reports, "reports"),
            flip_probability=check_flip(flip_probability),
        )
    )
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_two_probability_mass_functions(
        _log_masses(pair.right, pair.omitted),
        _log_masses(pair.left, pair.omitted),
        value_discretization_interval=interval,
        symmetric=False,
    )


def _log_masses(law: Floats, omitted: float) -> dict[Any, float]:
    """Outcome to log mass, summing to 1: what was cut becomes an outcome the other law does not have (infinite

    loss).
    """
    masses: dict[Any, float] = {t: math.log(mass) for t, mass in enumerate(law) if mass > 0}
    missing = max(1.0 - float(law.sum()), omitted)
    if missing > 0:
        masses[id(law)] = math.log(missing)
    return masses


def _losses(pair: Pair, interval: float) -> Any:
    """dp-accounting's distribution of ln(left/right) under ``left``, losses rounded up."""
    from dp_accounting.pld import pld_pmf

    seen = pair.left > 0
    left, right = pair.left[seen], pair.right[seen]
    with np.errstate(divide="ignore"):
        losses = np.log(left) - np.log(right)
    infinite = ~np.isfinite(losses)
    steps = np.ceil(losses[~infinite] / interval).astype(np.int64)
    masses: dict[int, float] = {}
    for step, mass in zip(steps.tolist(), left[~infinite].tolist(), strict=True):
        masses[step] = masses.get(step, 0.0) + mass
    return pld_pmf.create_pmf(masses, interval, float(left[infinite].sum()) + pair.omitted, True)
