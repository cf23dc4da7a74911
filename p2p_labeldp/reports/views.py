"""What one party saw of a run: the view that an attacker starts from.

A view is a selection of the run's facts, so it is what happened and no model of it. Parties are the learner, some mates
and an observer of the network, or any of them together, who then put two and two together: a report whose box one of
the mates asked for, or gave, has an origin for them. Beside its view a party knows what it brought along: a mate its
own label, everybody the protocol.

A view is a list of JSON objects ordered by time. ``saw`` says what each is about; ``at`` is seconds after the round's
opening, 0 throughout for a run on arrays. Peers are named as in the facts.

    saw       keys beside saw and at                        who sees it
    roster    cluster, size, flip_probability, delta,       the learner, and the mates of that cluster
              holding_minimum, members
    ask       asker, mate                                   a mate: its own ask, and the asks it answered
    box       asker, origin                                 a mate: the answers it got and gave; it can't open them
    tally     mate, ready, holding                          a mate: whose ready records it had, who of them holds
    reported  peer                                          a mate: that it sent its report
    ended     peer, outcome, reason                         a mate: its own end
    report    peer, cluster, features, label                the learner; with a mate that made or forwarded the box
              (origin)                                      also its origin, where it is known
    refusal   about                                         a mate or the learner: what it refused itself
    exchange  peer, to, about, sent, received               a mate or the learner: each request it made or got
    exchange  peer, to, sent, received                      an observer: each request on the network, and no content

``sent`` and ``received`` are the bytes of the two bodies (the heads of all have one length but for decimal digits),
``received`` 0 if there was no reply. What a peer sends to itself is not on the network. Requests for the manifest come
before the round and are left out.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from p2p_labeldp import facts as fact_types
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import (
    Accepted,
    Answered,
    Asked,
    Committed,
    Ended,
    Exchanged,
    Fact,
    Held,
    Joined,
    Listed,
    Name,
    Opened,
    Rejected,
    Reported,
    Signed,
    Tallied,
)

LEARNER: Name = "learner"
PARTIES = "learner, mates:NAME,NAME, observer, or several of them with + between"

Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """Who looks.

    Args:
        learner: Whether the learner is one of them.
        mates: The peers among them.
        observer: Whether one of them sees the whole network.
    """

    learner: bool = False
    mates: frozenset[Name] = frozenset()
    observer: bool = False


def parse_party(text: str) -> Party:
    """``learner``, ``mates:3,17``, ``observer`` or several of them with ``+``; peers by ordinal or, in hex, by id.

    Raises:
        ConfigurationError: Anything else.
    """
    learner, observer, mates = False, False, set[Name]()
    for part in text.split("+"):
        kind, _, names = part.partition(":")
        if part == "learner":
            learner = True
        elif part == "observer":
            observer = True
        elif kind == "mates" and names:
            for name in names.split(","):
                if not name or not name.isascii() or not name.isalnum():
                    raise ConfigurationError(f"{text!r} given; {PARTIES} is possible", field="--as")
                mates.add(int(name) if name.isdecimal() and len(name) < 2 * fact_types.SHORT_ID else name.lower())
        else:
            raise ConfigurationError(f"{text!r} given; {PARTIES} is possible", field="--as")
    return Party(learner=learner, mates=frozenset(mates), observer=observer)


def read_run(directory: str | Path) -> tuple[list[Fact], dict[Name, tuple[float, ...]]]:
    """The facts of a kept run, and the features in each accepted report.

    Features stand in ``noisy.csv``, a row for each accepted report in the order of the reporters' names.

    Raises:
        ConfigurationError: It holds no whole run.
    """
    path = Path(directory)
    try:
        with (path / "facts.jsonl").open("rb") as lines:
            facts: list[Fact] = [fact_types.decode(line) for line in lines]
        with (path / "noisy.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        accepted = sorted((fact for fact in facts if isinstance(fact, Accepted)), key=lambda fact: fact.peer)
        same = [(str(fact.cluster), str(fact.label)) for fact in accepted] == [(row[-2], row[-1]) for row in rows]
        features = {
            fact.peer: tuple(float(value) for value in row[:-2]) for fact, row in zip(accepted, rows, strict=same)
        }
    except OSError as exc:
        raise ConfigurationError(
            f"{str(path)!r} holds no run that was kept: {exc.strerror or exc}", field="RUN"
        ) from exc
    except (ValueError, IndexError, ConfigurationError) as exc:
        raise ConfigurationError(f"{str(path)!r} holds no whole run: {exc}", field="RUN") from exc
    if not same:
        raise ConfigurationError(f"facts and reports in {str(path)!r} are of different runs", field="RUN")
    return facts, features


@dataclass(slots=True)
class _Run:
    """The facts by what a view asks of them."""

    names: dict[str, Name] = field(default_factory=dict)
    peers: set[Name] = field(default_factory=set)
    members: dict[int, dict[Name, None]] = field(default_factory=lambda: defaultdict(dict))
    cluster: dict[Name, int] = field(default_factory=dict)
    mate: dict[Name, Asked] = field(default_factory=dict)
    held: dict[Name, float] = field(default_factory=dict)
    answers: list[Answered] = field(default_factory=list)
    exchanges: list[Exchanged] = field(default_factory=list)

    def take(self, fact: Fact) -> None:
        match fact:
            case Opened():
                self.names[fact.id] = LEARNER
            case Joined():
                self.names[fact.id] = fact.peer
                self.peers.add(fact.peer)
            case Listed():
                self.members[fact.cluster][fact.peer] = None  # a learner that was killed may say it again
            case Committed():
                self.cluster[fact.peer] = fact.cluster
            case Asked():
                self.mate[fact.peer] = fact
            case Held() | Accepted():  # on arrays nothing is held on the way
                self.held.setdefault(fact.peer, fact.at)
            case Answered():
                self.answers.append(fact)
            case Exchanged():
                self.exchanges.append(fact)
            case Ended():
                self.peers.add(fact.peer)

    def name_of(self, short_id: str) -> Name:
        """Who that is; an id of nobody who joined stays one."""
        return self.names.get(short_id, short_id)


def view(facts: Sequence[Fact], party: Party, *, features: dict[Name, tuple[float, ...]]) -> list[Line]:
    """What a party saw.

    Args:
        facts: Of the run.
        party: Who looks.
        features: What each reporter's features were; the learner sees those of the reports it accepted.

    Raises:
        ConfigurationError: A mate of whom the run has no facts, an observer of a run without messages, or either of one
            that kept nothing of who asked whom.
    """
    run = _Run()
    for fact in facts:
        run.take(fact)
    strangers = sorted(map(str, party.mates - run.peers))
    if strangers and not run.peers:
        raise ConfigurationError(
            "what mates saw is not in this run: a deployed learner keeps its own facts alone", field="--as"
        )
    if strangers:
        raise ConfigurationError(f"mates {', '.join(strangers)} are not among the run's peers", field="--as")
    if party.observer and not run.exchanges:
        raise ConfigurationError("nothing of this run was on a network: there is nothing to observe", field="--as")
    if (party.mates or party.observer) and run.held and not run.mate:
        raise ConfigurationError(
            "who asked whom was not kept, as of any run without a seed: only the learner's view is whole", field="--as"
        )
    lines = [*_exchanges(run, party), *_rosters(facts, run, party), *_boxes(run, party)]
    lines += _told(facts, run, party, features)
    return sorted(lines, key=lambda line: (line["at"], line["saw"]))


def _exchanges(run: _Run, party: Party) -> Iterator[Line]:
    own = party.mates | ({LEARNER} if party.learner else set())
    for fact in run.exchanges:
        ends = {fact.peer, run.name_of(fact.to)}
        line = {"saw": "exchange", "at": fact.at, "peer": fact.peer, "to": run.name_of(fact.to)}
        sizes = {"sent": fact.sent, "received": fact.received}
        if own & ends:
            yield {**line, "about": fact.about, **sizes}
        elif party.observer and len(ends) == 2:
            yield {**line, **sizes}


def _rosters(facts: Iterable[Fact], run: _Run, party: Party) -> Iterator[Line]:
    """A mate has seen the roster that it committed to."""
    seen = {run.cluster[mate] for mate in party.mates if mate in run.cluster}
    for fact in {fact.cluster: fact for fact in facts if isinstance(fact, Signed)}.values():
        if party.learner or fact.cluster in seen:
            yield {
                "saw": "roster",
                "at": fact.at,
                "cluster": fact.cluster,
                "size": fact.size,
                "flip_probability": fact.flip_probability,
                "delta": fact.delta,
                "holding_minimum": fact.holding_minimum,
                "members": list(run.members[fact.cluster]),
            }


def _boxes(run: _Run, party: Party) -> Iterator[Line]:
    """Each ask and each box once, though both ends may be of the party."""
    for mate in sorted(party.mates, key=str):
        if mate in run.mate:
            ask = run.mate[mate]
            yield {"saw": "ask", "at": ask.at, "asker": mate, "mate": ask.mate}
            if mate in run.held and ask.mate not in party.mates:
                yield {"saw": "box", "at": run.held[mate], "asker": mate, "origin": ask.mate}
    for answer in run.answers:
        if answer.peer in party.mates:
            if answer.asker not in party.mates:
                yield {"saw": "ask", "at": answer.at, "asker": answer.asker, "mate": answer.peer}
            yield {"saw": "box", "at": answer.at, "asker": answer.asker, "origin": answer.peer}


def _told(facts: Iterable[Fact], run: _Run, party: Party, features: dict[Name, tuple[float, ...]]) -> Iterator[Line]:
    origins = {box["asker"]: box["origin"] for box in _boxes(run, party) if box["saw"] == "box"}
    for fact in facts:
        mine = fact.peer in party.mates
        match fact:
            case Accepted() if party.learner:
                origin = {"origin": origins[fact.peer]} if fact.peer in origins else {}
                yield {
                    "saw": "report",
                    "at": fact.at,
                    "peer": fact.peer,
                    "cluster": fact.cluster,
                    "features": features[fact.peer],
                    "label": fact.label,
                    **origin,
                }
            case Tallied() if mine:
                members = run.members[run.cluster[fact.peer]]
                ready, holding = (_named(bits, members) for bits in (fact.ready, fact.holding))
                yield {"saw": "tally", "at": fact.at, "mate": fact.peer, "ready": ready, "holding": holding}
            case Reported() if mine:
                yield {"saw": "reported", "at": fact.at, "peer": fact.peer}
            case Ended() if mine:
                reason = None if fact.reason is None else fact.reason.value
                yield {
                    "saw": "ended",
                    "at": fact.at,
                    "peer": fact.peer,
                    "outcome": fact.outcome.value,
                    "reason": reason,
                }
            case Rejected() if mine or (party.learner and fact.peer == LEARNER):
                yield {"saw": "refusal", "at": fact.at, "peer": fact.peer, "about": fact.about}


def _named(bits: bytes, members: Iterable[Name]) -> list[Name]:
    flags = int.from_bytes(bits, "little")
    return [member for place, member in enumerate(members) if flags >> place & 1]
