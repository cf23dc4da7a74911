"""What must not have happened twice in a round, whoever was killed in it and came back: a function of the facts.

The facts are those of all lives of all parties, each peer's ``Flipped`` included, as they were persisted. Stated twice
in the same words a fact still happened once: a peer that comes back says again what it said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from p2p_labeldp.facts import Accepted, Answered, Asked, Ended, Fact, Flipped, Name, Outcome


def violations(
    facts: Iterable[Fact], *, reports: Mapping[Name, int], liars: frozenset[Name] = frozenset()
) -> list[str]:
    """One line for each thing that must not be; none in a round that went as it should.

    Args:
        facts: Of one round.
        reports: What the learner has in the end: the label in the report of each peer.
        liars: Peers that do as they please. The learner may still accept one report of each; a box of theirs may hold
            anything.
    """
    mates, flips, places, ends, labels = (_Once() for _ in range(5))
    answered: set[Name] = set()
    for fact in facts:
        if fact.peer in liars and not isinstance(fact, Accepted):
            continue
        match fact:
            case Asked():
                mates.add(fact.peer, fact.mate)
            case Answered():
                answered.add(fact.peer)
            case Flipped():
                flips.add(fact.peer, (fact.label_id, fact.flip_probability, fact.flipped_label))
                places.add(fact.peer, (fact.label_id, fact.round_id, fact.roster))
            case Ended():
                ends.add(fact.peer, (fact.outcome, fact.reason))
            case Accepted():
                labels.add(fact.peer, fact.label)
            case _:
                pass
    found = [
        *mates.twice("asked a second mate"),
        *flips.twice("flipped its label a second time"),
        *places.twice("released its label in a second roster"),
        *ends.twice("ended the round twice"),
        *labels.twice("had two reports accepted"),
        *(f"{peer} answered without a label that is recorded as spent" for peer in answered - flips.names),
        *(f"the accepted report of {peer} is lost" for peer in labels.names - reports.keys()),
        *(f"the learner has a report of {peer} that it never accepted" for peer in reports.keys() - labels.names),
        *(
            f"{peer} has a receipt, and the learner no report of it"
            for peer, (outcome, _) in ends.items()
            if outcome is Outcome.REPORTED and peer not in reports
        ),
    ]
    for peer, label in reports.items():
        mate = mates.get(peer)
        if peer in liars or mate in liars:
            continue
        if mate is None:
            found.append(f"{peer} reported without having asked")
        elif flips.get(mate) is None or flips.get(mate)[2] != label:
            found.append(f"{peer} reported another label than its mate {mate} released")
    return sorted(found)


class _Once:
    """What was said of each peer, without repeats."""

    def __init__(self) -> None:
        self._said: dict[Name, dict[Hashable, None]] = defaultdict(dict)

    def add(self, peer: Name, what: Hashable) -> None:
        self._said[peer][what] = None

    @property
    def names(self) -> set[Name]:
        return set(self._said)

    def get(self, peer: Name) -> Any:
        return next(iter(self._said[peer]), None) if peer in self._said else None

    def items(self) -> list[tuple[Name, Any]]:
        return [(peer, next(iter(said))) for peer, said in self._said.items()]

    def twice(self, what: str) -> list[str]:
        return [f"{peer} {what}: {', '.join(map(str, said))}" for peer, said in self._said.items() if len(said) > 1]
