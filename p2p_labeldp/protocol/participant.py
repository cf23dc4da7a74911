"""A peer as the phases of its round see it: where it stands, what it brought, and how it ends.

Theory of operation. A round has four phases whose ends are in the manifest. Time alone moves a peer from one to the
next; whatever is missing by then is missing.

    state       until      what the peer does
    JOINING     join       gossips records of its cluster
    COMMITTING  (roster)   fetches the learner's roster and checks it; pulls records it lacks
    EXCHANGING  exchange   answers every ask with its flipped label, asks its one mate
    CLOSING     closing    gossips who is ready and who holds an answer
    REPORTING   report     sends its report at a uniformly random time, so that arrival tells nothing
    ENDED                  has its one outcome; everything about the exchange is erased

Nothing here depends on the label but the one sealed bit: not whether a message is sent, nor when, nor how long it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import ProtocolError
from p2p_labeldp.facts import Ended, Name, Outcome, Reason, Rejected
from p2p_labeldp.labels import Example
from p2p_labeldp.protocol.closing import Closing
from p2p_labeldp.protocol.directory import Directory
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.exchange import Exchange
from p2p_labeldp.protocol.kept import EndedIn
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.messages import Report
from p2p_labeldp.protocol.policy import Policy
from p2p_labeldp.protocol.roster import OpenedRoster
from p2p_labeldp.protocol.transitions import after
from p2p_labeldp.randomness import Randomness

ASK_TRIES = 4  # in the exchange phase, if nothing comes back
FASTEST_AGAIN, SLOWEST_AGAIN = 0.25, 0.75  # periods until a failed request is tried again


class State(Enum):
    """Where a peer stands in the round."""

    JOINING = auto()
    COMMITTING = auto()
    EXCHANGING = auto()
    CLOSING = auto()
    REPORTING = auto()
    ENDED = auto()


TRANSITIONS = {
    (State.JOINING, "join deadline"): State.COMMITTING,
    (State.COMMITTING, "roster accepted"): State.EXCHANGING,
    (State.EXCHANGING, "exchange deadline"): State.CLOSING,
    (State.CLOSING, "may report"): State.REPORTING,
    **{(state, "outcome"): State.ENDED for state in (State.JOINING, State.COMMITTING, State.EXCHANGING)},
    **{(state, "outcome"): State.ENDED for state in (State.CLOSING, State.REPORTING)},
}


@dataclass(slots=True)
class Part:
    """A peer's part in the round, from the moment it has accepted a roster."""

    roster: OpenedRoster
    exchange: Exchange
    closing: Closing
    able: bool  # to answer throughout: whoever was told to ask again has had the time to, and it was not stopped
    report: Report | None = None
    last_failure: Reason = Reason.MATE_TIMEOUT


class Participant(Machine):
    """What a peer brought to the round and how far it is.

    Args:
        opened: The verified manifest.
        example: Features and label; the label leaves only flipped and sealed.
        keys: Signs, verifies, seals.
        randomness: The peer's coins.
        learner: Where the learner is reached.
        name: The peer's name in facts.
        cluster: Its cluster.
        study: Whether this peer takes part in studies, and in nothing else.
        policy: The peer's limits.
        ledger: What has left of its labels before.
        enrolment_key: Whose word a record needs to be taken in; None: nobody's.
    """

    def __init__(
        self,
        *,
        opened: OpenedManifest,
        example: Example,
        keys: KeyRing,
        randomness: Randomness,
        learner: Address,
        name: Name,
        cluster: int,
        study: bool,
        policy: Policy,
        ledger: Ledger,
        enrolment_key: bytes | None = None,
    ) -> None:
        super().__init__()
        self.state = State.JOINING
        self.outcome: Ended | None = None
        self.part: Part | None = None
        self.opened = opened
        self.deadlines = opened.manifest.deadlines
        self.period = opened.manifest.gossip_period
        self.example = example
        self.keys = keys
        self.randomness = randomness
        self.rng = randomness.gossip()
        self.learner = learner
        self.name = name
        self.cluster = cluster
        self.study = study
        self.policy = policy
        self.ledger = ledger
        self.directory = Directory(
            cluster=cluster,
            clusters=opened.clustering.count,
            keys=keys,
            round_id=opened.round_id,
            expires_by=self.deadlines.report,
            enrolment_key=enrolment_key,
        )

    @property
    def over(self) -> bool:
        """Whether the peer has its outcome."""
        return self.outcome is not None

    @property
    def my(self) -> Part:
        """The peer's part; there is one from EXCHANGING on."""
        assert self.part is not None
        return self.part

    def go(self, event: str) -> None:
        """Moves on, if the table knows how.

        Raises:
            LocalProtocolError: It does not; nothing has changed.
        """
        self.state = after(event, state=self.state, table=TRANSITIONS)

    def end(self, outcome: Outcome, reason: Reason | None, now: float, *, receipt: bytes = b"") -> None:
        """The round is over for this peer; everything about the exchange is erased."""
        self.go("outcome")
        self.outcome = Ended(peer=self.name, at=now, outcome=outcome, reason=reason)
        round_id = self.opened.round_id
        self.persist(
            EndedIn(peer=self.name, at=now, outcome=outcome, reason=reason, round_id=round_id, receipt=receipt)
        )
        if self.part is not None:
            self.part.exchange.erase()
            self.part.report = None

    def refuse(self, reason: Reason, about: str, now: float) -> None:
        """Ends the round: something in it is not to the peer's mind."""
        self.observe(Rejected(peer=self.name, at=now, about=about))
        self.end(Outcome.REFUSED, reason, now)

    def mistrust(self, exc: ProtocolError, now: float) -> None:
        """States that somebody sent what it should not have."""
        self.observe(Rejected(peer=self.name, at=now, about=getattr(exc, "detail", "") or str(exc)))

    @property
    def repeat_seconds(self) -> float:
        """Within this time a request that failed is made again."""
        return min(self.period, (self.deadlines.exchange - self.deadlines.join) / ASK_TRIES)

    def again(self, alarm: str, now: float, until: float) -> None:
        """Tries a failed request again soon, as long as its phase lasts."""
        at = now + self.repeat_seconds * (FASTEST_AGAIN + (SLOWEST_AGAIN - FASTEST_AGAIN) * self.rng.random())
        if at < until:
            self.set_alarm(alarm, at)

    def name_of(self, peer_id: bytes) -> Name:
        """The name of a mate in facts."""
        entry = self.directory.find(peer_id)
        return entry.content.ordinal if self.study and entry is not None else peer_id.hex()

    def spent_elsewhere(self) -> str | None:
        """Why the label may not leave in this round, if it may not."""
        round_id, label_space = self.opened.round_id, self.opened.label_space.digest
        return self.ledger.against_round(self.example.label_id, round_id=round_id, label_space=label_space)

    def place_of(self, accepted: OpenedRoster) -> dict[str, bytes]:
        """Where a label leaves, as the ledger has it."""
        return {"round_id": self.opened.round_id, "roster": accepted.digest}

    def spend(self, now: float) -> None:
        """The label is spent before the first answer leaves, or at the latest with the exchange; and once."""
        accepted = self.my.roster
        if self.ledger.holds(self.example.label_id, **self.place_of(accepted)):
            return
        release = self.my.exchange.release(peer=self.name, now=now, label_space=self.opened.label_space.digest)
        self.ledger.enter(release)
        self.persist(release)
