"""What must hold after every round, whatever went wrong in it: a function of what happened.

``once`` says what must not have happened twice. Here is the rest: that the round ended, that what was accepted was
receipted and of the roster, that nobody answered out of place or time, that closing closed, and that the guarantee
claimed is the roster's. Each law is written anew from the protocol's text; no machine and no accountant is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from p2p_labeldp.auditing import once, p_values
from p2p_labeldp.facts import (
    Accepted,
    Asked,
    Committed,
    Ended,
    Fact,
    Flipped,
    Held,
    Name,
    Outcome,
    Ready,
    Reason,
    Reported,
    Signed,
    Tallied,
)

MATE_FAILURE = 1e-9
"""Probability that draws that are uniform are called otherwise, over all scenarios of a search."""
AFTER_ACCEPTANCE = (None, Reason.NO_RECEIPT, Reason.CRASHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the manifest says, in seconds after the opening."""

    join: float
    exchange: float
    closing: float
    end: float
    """The report deadline and its grace."""
    flip_probability: float
    tolerated_loss: float
    minimum_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterSeen:
    """A roster that the learner signed, its members in order."""

    members: tuple[Name, ...]
    flip_probability: float
    delta: float
    holding_minimum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer that left: ``box`` as it was, the ``label`` in it, whether the ask named this round and roster."""

    peer: Name
    asker: Name
    ask: bytes
    box: bytes
    label: int | None
    in_place: bool
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """All that happened in one round, as only a simulation can know it.

    Args:
        rules: The round's.
        facts: Of all lives of all parties.
        reports: What the learner has in the end: the label in the report of each peer.
        rosters: By cluster, as the learner has them in the end.
        liars: Byzantine peers; nothing is expected of them.
        honest_learner: Whether the learner keeps to the protocol.
        running: Parties that ran when all was over; ``unfinished`` are those of them that do not think so.
        unable_until: When a party was last stopped, away or waiting for its disk.
        held_up: From when until when a party was stopped, or waited for its disk, by its own clock.
        known: Whom a peer knew half a period before the join deadline.
        commitments: The digest of the roster that each peer accepted, and its members.
        asks: (peer, mate, ask) of every ask that left an honest peer.
        answers: Every answer that left an honest peer.
        sent_reports: (peer, report) of every report that left an honest peer.
        receipts: (peer, report) of every receipt that left the learner.
    """

    rules: Rules
    facts: Sequence[Fact]
    reports: Mapping[Name, int]
    rosters: Mapping[int, RosterSeen]
    liars: frozenset[Name] = frozenset()
    honest_learner: bool = True
    running: frozenset[Name] = frozenset()
    unfinished: frozenset[Name] = frozenset()
    unable_until: Mapping[Name, float] = field(default_factory=dict)
    held_up: Mapping[Name, Sequence[tuple[float, float]]] = field(default_factory=dict)
    known: Mapping[Name, frozenset[Name]] = field(default_factory=dict)
    commitments: Mapping[Name, RosterSeen] = field(default_factory=dict)
    asks: Sequence[tuple[Name, Name, bytes]] = ()
    answers: Sequence[Given] = ()
    sent_reports: Sequence[tuple[Name, bytes]] = ()
    receipts: Sequence[tuple[Name, bytes]] = ()


def broken(seen: Witnessed) -> list[str]:
    """One line for each invariant that does not hold, and for whom; none in a round as it should be."""
    found = {
        *once.violations(seen.facts, reports=seen.reports, liars=seen.liars),
        *_ending(seen),
        *_leaving(seen),
        *_answering(seen),
        *_accepting(seen),
        *_closing(seen),
        *_being_there(seen),
        *_guaranteeing(seen),
    }
    return sorted(found)


def holding_minimum(size: int, tolerated_loss: float) -> int:
    """ceil((1 - l) s), l as it is written in decimals."""
    return -int(-(1 - Fraction(str(tolerated_loss))) * size // 1)


def mate_p_value(shifts: Mapping[int, Mapping[int, int]]) -> float:
    """Whether mates are uniform over the roster, oneself included.

    Args:
        shifts: Size of a roster -> place of the mate minus one's own, modulo the size -> how often.
    """
    each = []
    for size, counts in shifts.items():
        observed = np.array([counts.get(shift, 0) for shift in range(size)])
        if observed.sum() and size > 1:
            each.append(p_values.multinomial(observed, np.full(size, 1.0 / size)))
    return p_values.bonferroni(each)


def mate_shifts(seen: Witnessed) -> Iterable[tuple[int, int]]:
    """(size, shift) of each draw of an honest peer."""
    drawn = {fact.peer: fact.mate for fact in seen.facts if isinstance(fact, Asked) and fact.peer not in seen.liars}
    for peer, mate in drawn.items():
        roster = seen.commitments.get(peer)
        if roster is not None and peer in roster.members and mate in roster.members:
            size = len(roster.members)
            yield size, (roster.members.index(mate) - roster.members.index(peer)) % size


def _honest(seen: Witnessed, kind: type[Fact]) -> Iterable[Fact]:
    return (fact for fact in seen.facts if isinstance(fact, kind) and fact.peer not in seen.liars)


def _ending(seen: Witnessed) -> Iterable[str]:
    ended = {fact.peer for fact in seen.facts if isinstance(fact, Ended)}
    for name in seen.running - seen.liars:
        if name in seen.unfinished:
            yield f"{name} does not end"
        elif name not in ended and isinstance(name, int):
            yield f"{name} has no outcome"
    for fact in _honest(seen, Ended):
        if fact.at > max(seen.rules.end, seen.unable_until.get(fact.peer, 0.0)) + 1e-6:
            yield f"{fact.peer} ended after the deadline and its grace"


def _leaving(seen: Witnessed) -> Iterable[str]:
    for what, left in (("ask", [(p, (m, a)) for p, m, a in seen.asks]), ("report", list(seen.sent_reports))):
        said: dict[Name, set[object]] = defaultdict(set)
        for peer, content in left:
            said[peer].add(content)
        for peer, contents in said.items():
            if peer not in seen.liars and len(contents) > 1:
                yield f"{peer} sent a second {what}"


def _answering(seen: Witnessed) -> Iterable[str]:
    given: dict[tuple[Name, Name], set[tuple[bytes, bytes]]] = defaultdict(set)
    labels: dict[Name, set[int | None]] = defaultdict(set)
    for one in seen.answers:
        if one.peer in seen.liars:
            continue
        given[one.peer, one.asker].add((one.ask, one.box))
        labels[one.peer].add(one.label)
        roster = seen.commitments.get(one.peer)
        if roster is None or one.asker not in roster.members:
            yield f"{one.peer} answered {one.asker}, who is not in its roster"
        if not one.in_place:
            yield f"{one.peer} answered an ask of another round or roster"
        if one.at > seen.rules.exchange + 1e-9:
            yield f"{one.peer} answered after the exchange deadline"
    for (peer, asker), boxes in given.items():
        if len(boxes) > 1:
            yield f"{peer} gave {asker} two different answers"
    for peer, different in labels.items():
        if len(different) > 1:
            yield f"{peer} gave different labels"
    for fact in _honest(seen, Held):
        if fact.at > seen.rules.exchange + 1e-9:
            yield f"{fact.peer} took an answer after the exchange deadline"


def _accepting(seen: Witnessed) -> Iterable[str]:
    receipts, sent = set(seen.receipts), set(seen.sent_reports)
    counts: dict[Name, int] = defaultdict(int)
    for fact in seen.facts:
        if isinstance(fact, Accepted):
            counts[fact.peer] += 1
            roster = seen.rosters.get(fact.cluster)
            if roster is None or fact.peer not in roster.members:
                yield f"a report of {fact.peer} was accepted from outside the roster"
            if not seen.rules.closing - 1e-9 <= fact.at <= seen.rules.end + 1e-9:
                yield f"a report of {fact.peer} was accepted out of time"
    for peer, times in counts.items():
        if times > 1:
            yield f"a report of {peer} was counted {times} times"
    for fact in _honest(seen, Ended):
        assert isinstance(fact, Ended)
        if fact.outcome is Outcome.REPORTED and not any(peer == fact.peer for peer, _ in receipts & sent):
            yield f"{fact.peer} reported without a receipt for its report"
        if fact.peer in counts and fact.reason not in AFTER_ACCEPTANCE:
            yield f"{fact.peer} ended as {fact.outcome} ({fact.reason}), and its report was accepted"
    if not seen.honest_learner:
        return
    digests: dict[Name, set[bytes]] = defaultdict(set)
    for peer, report in receipts:
        digests[peer].add(report)
    for peer, different in digests.items():
        if peer not in counts:
            yield f"{peer} was given a receipt for nothing"
        if len(different) > 1:
            yield f"{peer} was given receipts for two reports"


def _closing(seen: Witnessed) -> Iterable[str]:
    ready = {fact.peer: fact for fact in seen.facts if isinstance(fact, Ready)}
    tallies = {fact.peer: fact for fact in seen.facts if isinstance(fact, Tallied)}
    mates = {fact.peer: fact.mate for fact in seen.facts if isinstance(fact, Asked)}
    reported = {fact.peer for fact in _honest(seen, Reported)} | {peer for peer, _ in seen.sent_reports}
    for peer in reported - seen.liars:
        roster, tally = seen.commitments.get(peer), tallies.get(peer)
        if roster is None or tally is None:
            yield f"{peer} reported without a roster or a tally"
            continue
        counted, holding = _names(tally.ready, roster), _names(tally.holding, roster)
        if peer not in ready or not ready[peer].holding or peer not in counted:
            yield f"{peer} reported without being ready"
        if mates.get(peer) not in counted:
            yield f"{peer} reported though its mate was not ready"
        if len(holding) < holding_minimum(len(roster.members), seen.rules.tolerated_loss):
            yield f"{peer} reported though too few held an answer"
        for other in counted - seen.liars:
            if other not in ready or ready[other].holding != (other in holding):
                yield f"{peer} counted {other} for what it never said"


def _being_there(seen: Witnessed) -> Iterable[str]:
    """Asks are made in the first three quarters of the exchange; what comes later repeats them."""
    all_asked = seen.rules.exchange - (seen.rules.exchange - seen.rules.join) / 4
    for fact in _honest(seen, Ready):
        for since, until in seen.held_up.get(fact.peer, ()):
            if since < all_asked - 1e-9 and until > seen.rules.exchange + 1e-9:
                yield f"{fact.peer} was stopped while others asked, and says that it was able to answer"


def _names(bits: bytes, roster: RosterSeen) -> set[Name]:
    number = int.from_bytes(bits, "little")
    return {member for place, member in enumerate(roster.members) if number >> place & 1}


def _guaranteeing(seen: Witnessed) -> Iterable[str]:
    rules = seen.rules
    for peer, roster in seen.commitments.items():
        if peer in seen.liars:
            continue
        size = len(roster.members)
        if peer not in roster.members or len(set(roster.members)) != size:
            yield f"{peer} accepted a roster that is not its own"
        if size < rules.minimum_size:
            yield f"{peer} accepted a roster below the least size"
        claimed = roster.flip_probability, roster.delta, roster.holding_minimum
        if claimed != (rules.flip_probability, 1.0 / size**2, holding_minimum(size, rules.tolerated_loss)):
            yield f"{peer} accepted a roster that claims another guarantee than its size gives"
        if not seen.known.get(peer, frozenset()) - seen.liars <= set(roster.members):
            yield f"{peer} accepted a roster that leaves out whom it knew"
    for fact in seen.facts:
        accepted = seen.commitments.get(fact.peer)
        if fact.peer in seen.liars:
            continue
        if isinstance(fact, Committed) and (accepted is None or fact.size != len(accepted.members)):
            yield f"{fact.peer} stated another size than its roster's"
        if isinstance(fact, Flipped) and (accepted is None or fact.flip_probability != accepted.flip_probability):
            yield f"{fact.peer} flipped at another probability than its roster's"
        if isinstance(fact, Signed) and seen.honest_learner:
            signed = seen.rosters[fact.cluster]
            claimed_by = (fact.size, fact.flip_probability, fact.delta, fact.holding_minimum)
            if claimed_by != (len(signed.members), signed.flip_probability, signed.delta, signed.holding_minimum):
                yield f"the guarantee stated for cluster {fact.cluster} is not its roster's"
