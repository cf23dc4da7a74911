"""One audit: a lower bound on epsilon and a verdict on the law, from rounds that really ran.

The audit never sees how the rounds are made: it is given something that draws T, and, for the checks that need to look
inside, something that shows whole rounds. The population engine offers both, and so does anybody's mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_labeldp.auditing import checked
from p2p_labeldp.auditing.conformance import Conformance, Verdict, conformance
from p2p_labeldp.auditing.distinguisher import Direction, TailEvent, best_event
from p2p_labeldp.auditing.lower_bound import CONFIDENCE, LowerBound, Tally, lower_bound, union_bound_alpha
from p2p_labeldp.auditing.observed import Array, DrawsOnes, DrawsRounds, OnesSample, Rounds
from p2p_labeldp.errors import ConfigurationError

SHOWN_LABELS = 500_000
"""Labels in the rounds that are looked into: 5,000 rounds of 100, from which a flip 5 % too small is seen at f = .1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found.

    Args:
        bound: The lower bound on epsilon; of the larger of two directions if both were tried.
        events: The tail events, fixed before the data.
        conformance: The p-values.
        trials: Rounds behind the bound, on both data sets together.
    """

    bound: LowerBound
    events: tuple[TailEvent, ...]
    conformance: Conformance
    trials: int

    @property
    def verdict(self) -> Verdict:
        """Of the conformance; a lower bound alone accuses nobody."""
        return self.conformance.verdict

    def record(self) -> dict[str, Any]:
        """Plain values for JSON, by the names of the contract."""
        return {
            "epsilon_lower": self.bound.epsilon_lower,
            "confidence": self.bound.confidence,
            "delta": self.bound.delta,
            "direction": self.bound.direction,
            "trials": self.trials,
            **self.conformance.record(),
        }


def default_delta(cluster_size: int) -> float:
    """1 / s^2, the delta of the paper.

    Raises:
        ConfigurationError: s = 1, where 1 / s^2 = 1 says nothing.
    """
    if checked.whole("cluster_size", cluster_size, least=1) == 1:
        raise ConfigurationError(
            "1/s^2 is 1 for a cluster of one and says nothing; give delta in [0, 1)", field="delta"
        )
    return 1.0 / cluster_size**2


def audit(
    draw_ones: DrawsOnes,
    *,
    cluster_size: int,
    flip_probability: float,
    trials: int,
    draw_rounds: DrawsRounds | None = None,
    delta: float | None = None,
    confidence: float = CONFIDENCE,
    ones: int = 0,
    both_directions: bool = False,
    against_itself: bool = False,
) -> Audit:
    """Audits a mechanism that claims to be Algorithm 2 with binary labels.

    Args:
        draw_ones: Draws T.
        cluster_size: s.
        flip_probability: The f that is claimed. The events are chosen from the laws it implies; the bound is valid
            whatever really runs.
        trials: Rounds in all for the bound, half of them with k ones and half with k + 1.
        draw_rounds: Shows whole rounds: SHOWN_LABELS labels' worth, or ``trials`` rounds if that is less, run beside
            the trials, nobody or everybody holding a one. Without it the verdict rests on T alone, where a self left
            out of the draw can't be seen; then a tenth of ``trials`` more draw T where everybody holds a one.
        delta: 1 / s^2 unless given.
        confidence: Of the bound.
        ones: k.
        both_directions: Take the larger bound of both directions, at alpha / 4 an end; else the direction that
            promises more by the laws is fixed beforehand, at alpha / 2.
        against_itself: A control: both halves run the same data, so the bound must be 0.

    Raises:
        ConfigurationError: A number out of range.
    """
    checked.cluster(cluster_size=cluster_size, ones=ones, flip_probability=flip_probability, classes=2)
    checked.whole("ones", ones, least=0, most=cluster_size - 1)
    checked.whole("trials", trials, least=2)
    delta = default_delta(cluster_size) if delta is None else checked.delta(delta)
    directions = tuple(Direction) if both_directions else (None,)
    events = tuple(
        best_event(
            cluster_size=cluster_size,
            flip_probability=flip_probability,
            trials=trials // 2,
            delta=delta,
            alpha=union_bound_alpha(confidence, len(directions)),
            ones=ones,
            direction=direction,
        )
        for direction in directions
    )
    halves = (trials - trials // 2, trials // 2)
    held = (ones, ones if against_itself else ones + 1)
    samples = [
        OnesSample(cluster_size=cluster_size, ones=k, counts=draw_ones(ones=k, rounds=rounds))
        for k, rounds in zip(held, halves, strict=True)
    ]
    bound = lower_bound(*(tally(event, *samples) for event in events), delta=delta, confidence=confidence)
    looked_at: list[Rounds | OnesSample] = list(samples)
    if draw_rounds is not None:
        shown = max(2, min(trials, SHOWN_LABELS // cluster_size))
        looked_at.append(draw_rounds(labels=nobody_or_everybody(shown, cluster_size)))
    else:
        counts = draw_ones(ones=cluster_size, rounds=max(1, trials // 10))
        looked_at.append(OnesSample(cluster_size=cluster_size, ones=cluster_size, counts=counts))
    return Audit(
        bound=bound,
        events=events,
        conformance=conformance(*looked_at, flip_probability=flip_probability),
        trials=trials,
    )


def audit_of_rounds(
    rounds: Rounds,
    *,
    flip_probability: float,
    delta: float | None = None,
    confidence: float = CONFIDENCE,
    ones: int = 0,
) -> Audit:
    """Audits rounds that were played already, as the facts of any engine show them, if their true labels are known.

    The bound counts those in which k or k + 1 members hold a one and everybody reported. The event is fixed by their
    numbers, not by what was reported. The conformance looks at all rounds.

    Args:
        rounds: With labels and reports.
        flip_probability: The f that is claimed.
        delta: 1 / s^2 unless given.
        confidence: Of the bound.
        ones: k.

    Raises:
        ConfigurationError: A number out of range, or no whole round on one of the two data sets.
    """
    size = rounds.cluster_size
    checked.whole("ones", ones, least=0, most=size - 1)
    delta = default_delta(size) if delta is None else checked.delta(delta)
    if rounds.labels is None or rounds.reports is None:
        raise ConfigurationError("none shown; the bound needs them", field="labels and reports")
    whole = (rounds.reports >= 0).all(axis=1) & (rounds.labels >= 0).all(axis=1)
    held = np.count_nonzero(rounds.labels == 1, axis=1)
    told = np.count_nonzero(rounds.reports == 1, axis=1)
    for k in (ones, ones + 1):
        if not (whole & (held == k)).any():
            raise ConfigurationError(f"no round with {k} ones in which all of {size} reported", field="rounds")
    samples = [OnesSample(cluster_size=size, ones=k, counts=told[whole & (held == k)]) for k in (ones, ones + 1)]
    event = best_event(
        cluster_size=size,
        flip_probability=flip_probability,
        trials=min(sample.counts.size for sample in samples),
        delta=delta,
        alpha=union_bound_alpha(confidence),
        ones=ones,
    )
    return Audit(
        bound=lower_bound(tally(event, *samples), delta=delta, confidence=confidence),
        events=(event,),
        conformance=conformance(rounds, flip_probability=flip_probability),
        trials=sum(sample.counts.size for sample in samples),
    )


def none_one_or_all(rows: int, cluster_size: int) -> Array:
    """True labels, shape (rows, cluster_size): in turn nobody, the first member and everybody holds a one: what both
    the bound and the conformance need, where every round is dear."""
    labels = np.zeros((rows, cluster_size), dtype=np.uint8)
    labels[1::3, 0] = 1
    labels[2::3] = 1
    return labels


def nobody_or_everybody(rows: int, cluster_size: int) -> Array:
    """True labels, shape (rows, cluster_size): all 0 in the first half of the rows, all 1 in the second."""
    labels = np.zeros((rows, cluster_size), dtype=np.uint8)
    labels[rows // 2 :] = 1
    return labels


def tally(event: TailEvent, fewer: OnesSample, more: OnesSample) -> Tally:
    """Counts an event on both data sets, the one with k ones first."""
    favoured, other = (fewer, more) if event.direction is Direction.ADD else (more, fewer)
    return Tally(
        direction=event.direction.value,
        hits=event.hits(favoured.counts),
        trials=favoured.counts.size,
        hits_neighbour=event.hits(other.counts),
        trials_neighbour=other.counts.size,
    )
