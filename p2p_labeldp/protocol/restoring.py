"""From what a peer persisted, the round it was in when it died.

    died                                    comes back as
    before it was half a period from the    the peer it was, with the record it had, if there is time left to learn of
    join deadline                           its cluster; else it abstains
    later, before it accepted a roster      the same, with the list of whom it knew then: it fetches the roster again
    in the exchange                         it asks the mate it drew, under the same id, and gives every asker the bytes
                                            it gave before; it is ready at the end if every asker had the time to ask
                                            it once more, else it abstains
    in the closing phase                    its ready record is signed anew, to the same bytes; the others' are gossiped
    after the verdict                       it reports, at the time it drew; a report that left leaves again as it was
    in a round that is over                 failed, crashed; its label is spent if it had accepted a roster
    in a round whose learner is gone        unreachable, or without a receipt if its report had left; its label as above

Nothing is drawn, flipped or chosen a second time. A deadline that passed meanwhile is a phase in which the peer was not
there: whatever it would have said then it does not say later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Ended, Fact, Outcome, Ready, Reason
from p2p_labeldp.labels import Example, LabelSpace
from p2p_labeldp.protocol import roster
from p2p_labeldp.protocol.exchange import Exchange
from p2p_labeldp.protocol.kept import (
    Abandoned,
    AnsweredWith,
    AskedFor,
    Cleared,
    CommittedTo,
    EndedIn,
    GatheredThese,
    HeldBox,
    JoinedAs,
    ReportedAs,
)
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.randomness import Randomness


@dataclass(slots=True, kw_only=True)
class Past:
    """A peer's last round, as far as it came."""

    joined: JoinedAs
    gathered: GatheredThese | None = None
    committed: CommittedTo | None = None
    asked: AskedFor | None = None
    answers: list[AnsweredWith] = field(default_factory=list)
    held: HeldBox | None = None
    ready: Ready | None = None
    cleared: Cleared | None = None
    reported: ReportedAs | None = None
    ended: EndedIn | Abandoned | None = None

    @property
    def unfinished(self) -> bool:
        """Whether the peer died in it."""
        return self.ended is None

    @property
    def outcome(self) -> Ended:
        """How it ended."""
        ended = self.ended
        if isinstance(ended, EndedIn):
            return Ended(peer=ended.peer, at=ended.at, outcome=ended.outcome, reason=ended.reason)
        return Ended(peer=self.joined.peer, at=self.joined.at, outcome=Outcome.FAILED, reason=Reason.CRASHED)

    def of_another_label(self, label_id: str) -> ConfigurationError:
        """The error of a peer that comes back with another example than it died with."""
        return ConfigurationError(
            f"{label_id[:64]!r} given; the peer is in a round with {self.joined.label_id[:64]!r}", field="label id"
        )

    def sequence(self, *, round_id: bytes, host: str, port: int, fresh: int) -> int:
        """The sequence number of the peer's next record: the one it had, if it is to say the same; else a higher one.

        Args:
            round_id: The round it is for.
            host: Where the peer is reached now.
            port: Where the peer is reached now.
            fresh: What a peer without a past would take; it may be lower, when a clock was set back.
        """
        joined = self.joined
        if (joined.round_id, joined.host, joined.port) == (round_id, host, port):
            return joined.sequence
        return max(fresh, joined.sequence + 1)


def read(facts: Iterable[Fact]) -> Past | None:
    """The last round in a peer's log; None if there is none."""
    past: Past | None = None
    for fact in facts:
        if isinstance(fact, JoinedAs) and (past is None or past.joined.round_id != fact.round_id):
            past = Past(joined=fact)
        elif past is not None:
            _add(past, fact)
    return past


def _add(past: Past, fact: Fact) -> None:
    match fact:
        case JoinedAs():
            past.joined = fact  # the same round, from another address
        case GatheredThese():
            past.gathered = fact
        case CommittedTo():
            past.committed = fact
        case AskedFor():
            past.asked = fact
        case AnsweredWith():
            past.answers.append(fact)
        case HeldBox():
            past.held = fact
        case Ready():
            past.ready = fact
        case Cleared():
            past.cleared = fact
        case ReportedAs():
            past.reported = fact
        case EndedIn() | Abandoned() if fact.round_id == past.joined.round_id:
            past.ended = fact
        case _:
            pass


def end(
    past: Past,
    how: Fact,
    *,
    example: Example,
    label_space: LabelSpace,
    keys: KeyRing,
    randomness: Randomness,
    ledger: Ledger,
) -> list[Fact]:
    """What is to be persisted of a round that its peer is through with and does not take up again; ``how`` comes last.

    If the peer had accepted a roster its label is spent, though perhaps nobody asked for it: who comes to another round
    with an unspent label would tell just that.
    """
    if past.committed is None:
        return [how]
    accepted = roster.reopen(past.committed.roster, keys=keys)
    if ledger.holds(example.label_id, round_id=accepted.roster.round_id, roster=accepted.digest):
        return [how]
    exchange = Exchange(
        roster=accepted,
        example=example,
        num_classes=len(label_space),
        keys=keys,
        randomness=randomness,
        round_key=b"",
        flipped=ledger.flipped(example.label_id),
    )
    release = exchange.release(peer=how.peer, now=past.committed.at, label_space=label_space.digest)
    ledger.enter(release)
    return [release, how]
