"""Are all coins fresh? Peers, clusters and rounds that share randomness, and coins that serve two purposes.

A shared seed is invisible in any single peer: every flip and every draw has its right law. It shows when two peers make
the same choices round after round, so these checks compare peers with peers and rounds with rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.auditing import p_values

Array = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]

COMPARISONS = 50_000_000
"""Bound on element comparisons in one search over all pairs, about 0.1 s; later rounds or peers are left out beyond it.
Two peers that share all coins are found in about ten rounds, so nothing is lost by it."""

BLOCKS = 8


def repeated_choices(mates: Array, cluster_size: int) -> float:
    """Do two columns make the same choice more often than 1 / s? The most alike pair, times the number of pairs.

    Args:
        mates: Uniform choices among ``cluster_size``, shape (rows, columns); -1 is no choice. Columns are peers and
            rows rounds, or the other way round.
        cluster_size: s.
    """
    rows, columns = _affordable(*mates.shape)
    if columns < 2 or cluster_size < 2:
        return 1.0
    by_column = np.ascontiguousarray(mates[:rows, :columns].T.astype(np.int32))
    complete = bool((by_column >= 0).all())
    best = 1.0
    for distance in range(1, columns):
        left, right = by_column[:-distance], by_column[distance:]
        agreements = np.count_nonzero((left == right) & (complete or left >= 0), axis=1)
        if complete:
            best = min(best, p_values.binomial_at_least(int(agreements.max()), rows, 1.0 / cluster_size))
        else:
            both = np.count_nonzero((left >= 0) & (right >= 0), axis=1)
            for seen, n in {(int(a), int(b)) for a, b in zip(agreements, both, strict=True)}:
                best = min(best, p_values.binomial_at_least(seen, n, 1.0 / cluster_size))
    return min(1.0, best * columns * (columns - 1) / 2)


def common_events(events: Bools, chance_of_both: float) -> float:
    """Do two columns share a rare event more often than ``chance_of_both``? The most alike pair, times the pairs.

    Args:
        events: Shape (rows, columns); rows are independent.
        chance_of_both: Probability that an event befalls both of two columns in one row.
    """
    rows, columns = _affordable(*events.shape)
    if columns < 2:
        return 1.0
    values = events[:rows, :columns].astype(np.float32)  # whole numbers up to 2^24 are exact in it
    together = values.T @ values
    np.fill_diagonal(together, 0.0)
    best = p_values.binomial_at_least(int(together.max()), rows, chance_of_both)
    return min(1.0, best * columns * (columns - 1) / 2)


def lagged_choices(mates: Array, cluster_size: int, lag: int) -> float:
    """Does a choice follow from the one ``lag`` before it?

    Differences modulo s of independent uniform choices are themselves independent and uniform (along each of the
    ``lag`` interleaved chains), so both their agreements and their whole distribution have exact laws.

    Args:
        mates: Shape (n,), in the order of peers; -1 is no choice.
        cluster_size: s.
        lag: Distance in that order.
    """
    if lag >= mates.size or cluster_size < 2:
        return 1.0
    later, earlier = mates[lag:].astype(np.int64), mates[:-lag].astype(np.int64)
    differences = (later - earlier)[(later >= 0) & (earlier >= 0)] % cluster_size
    counts = np.bincount(differences, minlength=cluster_size)
    uniform = np.full(cluster_size, 1.0 / cluster_size)
    equal = p_values.binomial(int(counts[0]), int(counts.sum()), 1.0 / cluster_size)
    return p_values.bonferroni((equal, p_values.multinomial(counts, uniform)))


def lagged_events(events: Bools, chance: float, lag: int) -> float:
    """Does an event of probability ``chance`` follow from the one ``lag`` before it? Shape (n,).

    Every place is used in one pair only, so the pairs are independent: blocks of 2 ``lag`` places, first half against
    second. A second set of pairs starts one lag later.
    """
    found = []
    for start in (0, lag):
        blocks = (events.size - start) // (2 * lag)
        if blocks < 1:
            continue
        pairs = events[start : start + blocks * 2 * lag].reshape(blocks, 2, lag)
        both = int(np.count_nonzero(pairs[:, 0] & pairs[:, 1]))
        alike = int(np.count_nonzero(pairs[:, 0] == pairs[:, 1]))
        n = blocks * lag
        found.append(p_values.binomial(both, n, chance**2))
        found.append(p_values.binomial(alike, n, chance**2 + (1.0 - chance) ** 2))
    return p_values.bonferroni(found)


def choices_given(events: Bools, mates: Array, cluster_size: int) -> float:
    """Do members to whom an event happened choose as uniformly as all others? Same shape for both arrays.

    One coin that decides flip and mate would send all who flipped to the first members of the roster.
    """
    blocks = min(BLOCKS, cluster_size)
    of_position = np.arange(cluster_size) * blocks // cluster_size
    law = np.bincount(of_position, minlength=blocks) / cluster_size
    counts = np.bincount(of_position[mates[events & (mates >= 0)]], minlength=blocks)
    return p_values.multinomial(counts, law)


def _affordable(rows: int, columns: int) -> tuple[int, int]:
    """As many rows, then columns, as COMPARISONS allows; at least 64 rows are kept if there are so many."""
    columns = min(columns, max(2, int((COMPARISONS / min(rows, 64)) ** 0.5)))
    return min(rows, max(1, COMPARISONS // columns**2)), columns
