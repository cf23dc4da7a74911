"""One pass over ``facts.jsonl``: its digest, and what the facts add up to."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from p2p_labeldp import facts
from p2p_labeldp.facts import (
    Accepted,
    Answered,
    Asked,
    Ended,
    Exchanged,
    Fact,
    Joined,
    Listed,
    Name,
    Opened,
    Rejected,
    Signed,
)
from p2p_labeldp.protocol.messages import Ask


@dataclass(slots=True, kw_only=True)
class Happened:
    """What a run's facts say.

    Args:
        digest: SHA-256 (hex) of the file.
        signed: The rosters that the learner signed, by cluster.
        listed: Who is in them, in their order.
        accepted: Cluster and label of each report, by its reporter.
        twice: Reporters, clusters or peers of whom a second one of these is told.
        outcomes: How the round ended, for how many.
        ids: First digits of the ids (hex) of peers that are named otherwise.
        asks: Facts that tell who asked whom.
    """

    digest: str = ""
    signed: dict[int, Signed] = field(default_factory=dict)
    listed: dict[int, list[Name]] = field(default_factory=dict)
    accepted: dict[Name, tuple[int, int]] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    ids: dict[Name, str] = field(default_factory=dict)
    asks: int = 0


def read(lines: Iterable[bytes]) -> Happened:
    """Adds up the lines of a file of facts.

    Raises:
        ConfigurationError: A line is no fact.
    """
    happened, digest, ended = Happened(), hashlib.sha256(), set[Name]()
    learner, exchanges = set[str](), list[Exchanged]()
    for line in lines:
        digest.update(line)
        fact = facts.decode(line)
        match fact:
            case Opened():
                learner.add(fact.id)
            case Joined() if fact.id:
                happened.ids[fact.peer] = fact.id
            case Signed():
                if fact.cluster in happened.signed:
                    happened.twice.append(f"the roster of cluster {fact.cluster}")
                happened.signed[fact.cluster] = fact
            case Listed():
                happened.listed.setdefault(fact.cluster, []).append(fact.peer)
            case Accepted():
                if fact.peer in happened.accepted:
                    happened.twice.append(f"a report of peer {fact.peer}")
                happened.accepted[fact.peer] = fact.cluster, fact.label
            case Ended():
                if fact.peer in ended:
                    happened.twice.append(f"the end of peer {fact.peer}")
                ended.add(fact.peer)
                happened.outcomes[fact.outcome.value] += 1
            case Exchanged():  # whose, is known when the learner is
                exchanges.append(fact)
            case _:
                happened.asks += tells_who_asked_whom(fact, learner)
    happened.asks += sum(tells_who_asked_whom(fact, learner) for fact in exchanges)
    happened.digest = digest.hexdigest()
    return happened


def tells_who_asked_whom(fact: Fact, learner: set[str]) -> bool:
    """Whether a fact joins a report to the label's owner: what no run without a seed keeps.

    Args:
        fact: The fact.
        learner: Short ids of the learner, whose own exchanges it knows anyway.
    """
    match fact:
        case Asked() | Answered():
            return True
        case Exchanged():  # in a deployment only the learner's own are heard of
            return fact.peer != "learner" and fact.to not in learner
        case Rejected():  # then comes the asker
            return fact.about.startswith(f"{Ask.__name__} of ")
        case _:
            return False
