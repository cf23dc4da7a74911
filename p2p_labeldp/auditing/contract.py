"""A contract suite for mechanisms: what anybody can run on their own object before believing its numbers.

    report = contract.check(mine, cluster_size=8)
    assert not report.broken, report

The clauses, each named as it is reported:

    outputs            whole numbers 0 .. K - 1 in the shape of the labels, which are left as they were
    determinism        the same generator gives the same outputs; no other entropy is drawn, no global state is touched
    randomness         another generator gives other outputs, if a finite epsilon is claimed
    channel            (if there is one) shape (K, K), finite, not negative, rows sum to 1
    channel_observed   (if there is one) outputs follow it, at every label
    channel_epsilon    (with a claim) the channel's own hockey-stick divergence at epsilon is at most delta
    claim              (with a claim) an audit does not refute it: epsilon_lower <= epsilon
    conformance        (if it shows rounds) the one verdict of Algorithm 2

A mechanism that keeps the contract is called broken with probability at most 3 SIGNIFICANCE (the clauses that observe:
channel_observed, claim, conformance).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.auditing import checked, p_values
from p2p_labeldp.auditing.conformance import SIGNIFICANCE, Conformance, Verdict, conformance
from p2p_labeldp.auditing.lower_bound import LowerBound
from p2p_labeldp.auditing.mechanism import Mechanism, ShowsRounds, measured_epsilon
from p2p_labeldp.auditing.observed import Array

Reals = npt.NDArray[np.float64]

ROUNDING = 1e-9  # what a claim may miss by floating point


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReport:
    """What became of each clause that applies.

    Args:
        clauses: Name to "" if it holds, else to what was seen instead.
        bound: The audit behind ``claim``, if there was a claim.
        conformance: If the mechanism shows rounds.
    """

    clauses: dict[str, str]
    bound: LowerBound | None = None
    conformance: Conformance | None = None

    @property
    def broken(self) -> dict[str, str]:
        """The clauses that don't hold; empty is good."""
        return {name: seen for name, seen in self.clauses.items() if seen}

    def __str__(self) -> str:
        return "\n".join(f"{name}: {seen or 'holds'}" for name, seen in self.clauses.items())


def check(
    mechanism: Mechanism, *, cluster_size: int, seed: int, trials: int = 100_000, rows: int = 2_000
) -> ContractReport:
    """Runs every clause that applies to the mechanism.

    Args:
        mechanism: Yours.
        cluster_size: Members of a row; 1 will do for a local mechanism.
        seed: Of the generators handed to it.
        trials: Runs on each data set of the audit.
        rows: Runs for the other clauses.

    Raises:
        ConfigurationError: A number out of range.
    """
    classes = checked.whole("classes", mechanism.classes, least=2)
    checked.whole("cluster_size", cluster_size, least=1)
    checked.whole("rows", rows, least=2)
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, size=(rows, cluster_size), dtype=np.int64)
    clauses = {"outputs": _outputs(mechanism, labels, seed)}
    if clauses["outputs"]:
        return ContractReport(clauses=clauses)  # nothing else can be asked of it
    epsilon, delta = _claim(mechanism)
    clauses["determinism"] = _determinism(mechanism, labels, seed)
    if epsilon < math.inf:
        clauses["randomness"] = _randomness(mechanism, labels, seed)
    channel = getattr(mechanism, "channel", None)
    if channel is not None:
        matrix = np.asarray(channel() if callable(channel) else channel, dtype=np.float64)
        clauses["channel"] = _channel(matrix, classes)
        if not clauses["channel"]:
            clauses["channel_observed"] = _channel_observed(mechanism, labels, matrix, seed)
            if epsilon < math.inf:
                clauses["channel_epsilon"] = _channel_epsilon(matrix, epsilon, delta)
    bound = None
    if epsilon < math.inf:
        bound = measured_epsilon(
            mechanism,
            cluster_size=cluster_size,
            trials=trials,
            rng=np.random.default_rng([seed, 1]),
            delta=delta,
            confidence=1.0 - SIGNIFICANCE,
        )
        refuted = bound.epsilon_lower > epsilon + ROUNDING
        clauses["claim"] = f"epsilon {epsilon:.6g} is claimed, but {bound}" if refuted else ""
    found = None
    if isinstance(mechanism, ShowsRounds):
        shown = mechanism.show(labels, np.random.default_rng([seed, 2]))
        found = conformance(shown, flip_probability=mechanism.flip_probability)
        clauses["conformance"] = f"failed: {', '.join(found.failed)}" if found.verdict is Verdict.FAIL else ""
    return ContractReport(clauses=clauses, bound=bound, conformance=found)


def _claim(mechanism: Mechanism) -> tuple[float, float]:
    """(epsilon, delta); no claim is an infinite epsilon."""
    epsilon: Any = getattr(mechanism, "epsilon", math.inf)
    if epsilon != math.inf:
        epsilon = checked.real("mechanism.epsilon", epsilon, "0 or more", least=0.0, most=math.inf)
    return epsilon, checked.delta(getattr(mechanism, "delta", 0.0))


def _outputs(mechanism: Mechanism, labels: Array, seed: int) -> str:
    given = labels.copy()
    outputs = np.asarray(mechanism.sample(given, np.random.default_rng(seed)))
    if outputs.shape != labels.shape:
        return f"shape {outputs.shape} for labels of shape {labels.shape}"
    if outputs.dtype.kind not in "iu":
        return f"dtype {outputs.dtype}, not whole numbers"
    if int(outputs.min()) < 0 or int(outputs.max()) >= mechanism.classes:
        return f"values {outputs.min()} to {outputs.max()} outside 0 to {mechanism.classes - 1}"
    if not np.array_equal(given, labels):
        return "the labels it was given were changed"
    return ""


def _determinism(mechanism: Mechanism, labels: Array, seed: int) -> str:
    before = (random.getstate(), repr(np.random.get_state()))
    first, second = (mechanism.sample(labels.copy(), np.random.default_rng(seed)) for _ in range(2))
    if not np.array_equal(first, second):
        return "two runs with the same generator differ"
    if before != (random.getstate(), repr(np.random.get_state())):
        return "a global generator was used"
    return ""


def _randomness(mechanism: Mechanism, labels: Array, seed: int) -> str:
    first, second = (mechanism.sample(labels.copy(), np.random.default_rng([seed, i])) for i in (3, 4))
    return "two runs with different generators are the same" if np.array_equal(first, second) else ""


def _channel(matrix: Reals, classes: int) -> str:
    if matrix.shape != (classes, classes):
        return f"shape {matrix.shape}, not {(classes, classes)}"
    if not np.isfinite(matrix).all() or (matrix < 0.0).any():
        return "an entry is negative or not finite"
    sums = matrix.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    return f"row {worst} sums to {sums[worst]:.12g}, not 1" if abs(sums[worst] - 1.0) > 1e-12 else ""


def _channel_observed(mechanism: Mechanism, labels: Array, matrix: Reals, seed: int) -> str:
    outputs = mechanism.sample(labels.copy(), np.random.default_rng([seed, 5]))
    found = []
    for label, row in enumerate(matrix):
        counts = np.bincount(outputs[labels == label].astype(np.int64), minlength=row.size)
        found.append(p_values.multinomial(counts, row))
    p = p_values.bonferroni(found)
    return f"outputs of label {int(np.argmin(found))} don't follow its row (p = {p:.2g})" if p < SIGNIFICANCE else ""


def _channel_epsilon(matrix: Reals, epsilon: float, delta: float) -> str:
    factor = math.exp(min(epsilon, 700.0))
    excess = np.maximum(matrix[:, None, :] - factor * matrix[None, :, :], 0.0).sum(axis=2)
    worst = float(excess.max())
    return f"the channel needs delta {worst:.6g} at epsilon {epsilon:.6g}" if worst > delta + ROUNDING else ""
