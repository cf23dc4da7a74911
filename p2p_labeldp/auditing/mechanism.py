"""Anybody's mechanism, and what can be measured of it without knowing how it works.

A mechanism turns true labels into outputs, one for each member. If it is local, an output depends on its own member's
label only; if it works on clusters, the row is the cluster. Whoever sees the outputs sees which member each is of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from p2p_labeldp.auditing import checked
from p2p_labeldp.auditing.lower_bound import (
    CONFIDENCE,
    LowerBound,
    Tally,
    clopper_pearson_high,
    clopper_pearson_low,
    lower_bound,
    union_bound_alpha,
)
from p2p_labeldp.auditing.observed import Array, OnesSample, Rounds
from p2p_labeldp.errors import ConfigurationError

CHUNK = 1_000_000  # labels handed to a mechanism at a time: 8 MB


@runtime_checkable
class Mechanism(Protocol):
    """What every mechanism offers.

    Three more attributes are looked at if they are there: ``epsilon`` and ``delta`` (0 if missing), the guarantee it
    claims for one label against whoever sees all outputs; ``channel``, shape (K, K), channel[i, j] = P(output j | label
    i), which says that it is local; and ``show(labels, rng) -> Rounds``, which says that it is Algorithm 2 with
    ``flip_probability`` and lets conformance look inside.
    """

    classes: int

    def sample(self, labels: Array, rng: np.random.Generator) -> Array:
        """Runs once on each row.

        Args:
            labels: True labels 0 .. classes - 1, shape (rows, size). Rows are independent runs. Not to be changed.
            rng: The only source of randomness.

        Returns:
            Outputs 0 .. classes - 1, shape (rows, size).
        """
        ...


@runtime_checkable
class ShowsRounds(Protocol):
    """Algorithm 2, and willing to be looked into."""

    flip_probability: float
    classes: int

    def show(self, labels: Array, rng: np.random.Generator) -> Rounds:
        """Like ``sample``, with flips and draws."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A mechanism as something that draws T or shows rounds, for ``audit``.

    Args:
        mechanism: Binary.
        cluster_size: s.
        rng: Its randomness; calls continue it.
    """

    mechanism: Mechanism
    cluster_size: int
    rng: np.random.Generator

    def ones(self, *, ones: int, rounds: int) -> Array:
        """T of ``rounds`` new rounds, shape (rounds,); the first ``ones`` members hold a one."""
        row = np.zeros(self.cluster_size, dtype=np.int64)
        row[:ones] = 1
        return np.concatenate(
            [np.count_nonzero(outputs == 1, axis=1) for outputs in _runs(self.mechanism, row, rounds, self.rng)]
        )

    def rounds(self, *, labels: Array) -> Rounds:
        """Whole rounds, as far as the mechanism shows them."""
        if isinstance(self.mechanism, ShowsRounds):
            return self.mechanism.show(labels, self.rng)
        outputs = self.mechanism.sample(labels.astype(np.int64), self.rng)
        return Rounds(labels=labels, reports=outputs, classes=self.mechanism.classes)

    def sample(self, *, ones: int, rounds: int) -> OnesSample:
        """``ones`` with its circumstances."""
        return OnesSample(cluster_size=self.cluster_size, ones=ones, counts=self.ones(ones=ones, rounds=rounds))


def measured_epsilon(
    mechanism: Mechanism,
    *,
    cluster_size: int,
    trials: int,
    rng: np.random.Generator,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
) -> LowerBound:
    """A lower bound on epsilon of any mechanism, found without knowing its law.

    For each pair of labels (a, b) the victim, member 0, holds a or b and everybody else the label 0, or everybody else
    the last label. The outcome is the victim's own output together with how many other outputs equal a. A first half of
    the runs ranks outcomes by likelihood ratio and picks an event, a set of the best ones; the second half, which had
    no say in that, gives the counts. The error is shared among all pairs.

    Args:
        mechanism: Any.
        cluster_size: s, members of a row; 1 shows what a local mechanism does to one label.
        trials: Runs on each data set of each pair.
        rng: Randomness of the runs.
        delta: The delta of the bound.
        confidence: Of the bound, over all pairs.

    Raises:
        ConfigurationError: A number out of range.
    """
    checked.whole("cluster_size", cluster_size, least=1)
    checked.whole("trials", trials, least=2)
    checked.delta(delta)
    classes = checked.whole("classes", mechanism.classes, least=2)
    surroundings = (0,) if cluster_size == 1 else (0, classes - 1)
    cases = [(a, b, other) for other in surroundings for a in range(classes) for b in range(classes) if a != b]
    alpha = union_bound_alpha(confidence, len(cases))
    tallies = []
    for a, b, other in cases:
        seen = []
        for victim in (a, b):
            row = np.full(cluster_size, other, dtype=np.int64)
            row[0] = victim
            parts = _runs(mechanism, row, trials, rng)
            seen.append(np.concatenate([_outcomes(outputs, a, cluster_size) for outputs in parts]))
        tallies.append(_split_tally(f"{a} against {b}", seen[0], seen[1], delta, alpha))
    return lower_bound(*tallies, delta=delta, confidence=confidence)


def _runs(mechanism: Mechanism, row: Array, rounds: int, rng: np.random.Generator) -> list[Array]:
    chunk = max(1, CHUNK // row.size)
    outputs = []
    for start in range(0, rounds, chunk):
        labels = np.tile(row, (min(chunk, rounds - start), 1))
        answer = np.asarray(mechanism.sample(labels, rng))
        if answer.shape != labels.shape or answer.dtype.kind not in "iu":
            raise ConfigurationError(
                f"{answer.dtype} of shape {answer.shape} returned; whole numbers of shape {labels.shape} are needed",
                field="mechanism.sample",
            )
        outputs.append(answer)
    return outputs


def _outcomes(outputs: Array, label: int, cluster_size: int) -> Array:
    """(own output, others equal to ``label``) as one number, shape (rows,)."""
    others = np.count_nonzero(outputs[:, 1:] == label, axis=1)
    own: Array = outputs[:, 0].astype(np.int64)
    return np.asarray(own * cluster_size + others)


def _split_tally(name: str, favoured: Array, other: Array, delta: float, alpha: float) -> Tally:
    half = favoured.size // 2
    outcomes = int(max(favoured.max(), other.max())) + 1
    p = np.bincount(favoured[:half], minlength=outcomes)
    q = np.bincount(other[:half], minlength=outcomes)
    order = np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")  # unseen outcomes come in the middle
    hits, hits_other = np.cumsum(p[order]), np.cumsum(q[order])
    low = np.maximum(clopper_pearson_low(hits, half, alpha) - delta, 1e-300)
    best = int(np.argmax(np.log(low) - np.log(clopper_pearson_high(hits_other, half, alpha))))
    event = np.zeros(outcomes, dtype=bool)
    event[order[: best + 1]] = True
    return Tally(
        direction=name,
        hits=int(event[favoured[half:]].sum()),
        trials=favoured.size - half,
        hits_neighbour=int(event[other[half:]].sum()),
        trials_neighbour=other.size - half,
    )
