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

Up to about 670 members all label counts are evaluated (``tables``); beyond, ``scan`` proves the bound it uses for
those that are not. Results are rounded up: eps by at most 1e-9; and by 1e-4 to 5e-4 of itself where f is so near to 1/2
(above 0.4) that thousands of counts are alike, where ``worst_ones`` is the worst of those that were evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

from p2p_labeldp.accounting.exact import Loss, loss_at_delta, loss_at_epsilon
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_epsilon, check_flip
from p2p_labeldp.accounting.scan import Cluster


def profile(
    *, cluster_size: int, flip_probability: float, epsilons: Sequence[float], reports: int | None = None
) -> list[Loss]:
    """delta(eps) against the learner, the worst of all label counts and both directions.

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
    cluster = _cluster(cluster_size, flip_probability, reports)
    return [loss_at_epsilon(cluster, epsilon) for epsilon in [check_epsilon(epsilon) for epsilon in epsilons]]


def loss(*, cluster_size: int, flip_probability: float, delta: float, reports: int | None = None) -> Loss:
    """The least eps with delta(eps) <= ``delta`` against the learner, and where it is attained.

    Arguments as in ``profile``; eps is infinite where none will do (f = 0, as which any f below 1e-300 counts).
    """
    return loss_at_delta(_cluster(cluster_size, flip_probability, reports), check_delta(delta))


def epsilon(*, cluster_size: int, flip_probability: float, delta: float, reports: int | None = None) -> float:
    """The least eps with delta(eps) <= ``delta`` against the learner; see ``loss``."""
    return loss(cluster_size=cluster_size, flip_probability=flip_probability, delta=delta, reports=reports).epsilon


def _cluster(cluster_size: int, flip_probability: float, reports: int | None) -> Cluster:
    size = check_count(cluster_size, "cluster_size")
    return Cluster(
        pool=size,
        reports=size if reports is None else check_count(reports, "reports"),
        flip_probability=check_flip(flip_probability),
    )
