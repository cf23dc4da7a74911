"""The shuffle model, to compare with: every flipped label is reported once, by somebody. T = m.

The exact law needs a trusted shuffler. Resampling of the same flips is a post-processing of it (each report picks one
of the shuffled labels), so its guarantee is never worse, whatever the number of reports from one set of flips.

Published bounds, for any local randomizer with eps0: Feldman, McMillan, Talwar, "Hiding among the clones" (FOCS 2021),
in closed form (Theorem 3.1) and evaluated (Theorem 3.2 with Lemma 3.5: others are clones with probability e^-eps0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from p2p_labeldp.accounting.exact import Loss, loss_at_delta, loss_at_epsilon
from p2p_labeldp.accounting.multiclass import clones
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_epsilon, check_flip
from p2p_labeldp.accounting.scan import Cluster
from p2p_labeldp.mechanisms.randomized_response import local_epsilon


def profile(*, cluster_size: int, flip_probability: float, epsilons: Sequence[float]) -> list[Loss]:
    """delta(eps) of the shuffle, exact, the worst of all label counts and both directions; as in ``resampling``."""
    cluster = _cluster(cluster_size, flip_probability)
    return [loss_at_epsilon(cluster, epsilon) for epsilon in [check_epsilon(epsilon) for epsilon in epsilons]]


def loss(*, cluster_size: int, flip_probability: float, delta: float) -> Loss:
    """The least eps with delta(eps) <= ``delta``, and where it is attained."""
    return loss_at_delta(_cluster(cluster_size, flip_probability), check_delta(delta))


def epsilon(*, cluster_size: int, flip_probability: float, delta: float) -> float:
    """The least eps with delta(eps) <= ``delta``."""
    return loss(cluster_size=cluster_size, flip_probability=flip_probability, delta=delta).epsilon


def clones_epsilon(*, cluster_size: int, flip_probability: float, delta: float) -> float:
    """Hiding among the clones, evaluated: C ~ Bin(s-1, e^-eps0), of whom Bin(C, 1/2) say one. At most the local

    value.
    """
    size, target = check_count(cluster_size, "cluster_size"), check_delta(delta)
    local = local_epsilon(check_flip(flip_probability))
    if local == math.inf:
        return math.inf
    return min(local, clones(size - 1, math.exp(-local), 1 / (1 + math.exp(local))).epsilon(target))


def clones_closed_form(*, cluster_size: int, flip_probability: float, delta: float) -> float:
    """Theorem 3.1 of Hiding among the clones; the local value where it does not apply.

    eps <= ln(1 + (e^eps0 - 1)/(e^eps0 + 1) (8 sqrt(e^eps0 ln(4/delta))/sqrt(s) + 8 e^eps0/s)) if
    eps0 <= ln(s/(16 ln(2/delta))).
    """
    size, target = check_count(cluster_size, "cluster_size"), check_delta(delta)
    local = local_epsilon(check_flip(flip_probability))
    if target == 0 or local == math.inf or math.exp(local) > size / (16 * math.log(2 / target)):
        return local
    e = math.exp(local)
    grown = 8 * math.sqrt(e * math.log(4 / target)) / math.sqrt(size) + 8 * e / size
    return min(local, math.log1p((e - 1) / (e + 1) * grown))


def _cluster(cluster_size: int, flip_probability: float) -> Cluster:
    return Cluster(
        pool=check_count(cluster_size, "cluster_size"),
        reports=None,
        flip_probability=check_flip(flip_probability),
    )
