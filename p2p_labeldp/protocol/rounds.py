"""A peer in a run of private rounds, sans-IO: polls, computes, privatises, seals, sends.

Theory of operation. The peer asks the learner which round is open. It answers each new round once, with a sealed box:
its privatised update if its own coin says so, else nothing, of the same length. Then it asks again, until the opening
that comes back is numbered T, which holds the trained model.

    state      event             next
    WAITING    opening           ANSWERING   a round is open that lacks this peer's box
    ANSWERING  settled           WAITING     the box was taken, or refused, or got lost: the next poll will tell
    WAITING    trained           ENDED       the opening is the last
    any        outcome           ENDED       out of patience, not to the peer's mind, or told to end

Who samples. The peer's own coin does, derived from its secret and the round's id, with the probability that is
accounted for. A learner that sampled could choose the same peer in each round, or whom to ask twice for one model; so
it learns of a choice by opening the box. The coin shows in nothing else: whoever is not sampled computes for as long
and sends as many bytes, and so does whoever has spent its budget. A peer that lies about its coin wastes its own
privacy and nobody else's.

What depends on the data. The update alone, and of that only the privatised draw. A model may be made such that an
update overflows for those whose data are of some kind; if they kept silent, or complained, it would be known who. Such
an update is refused before it is clipped, which only the peer's own log says, and what leaves is the draw of an update
of zeros.

Coins. Sampling and privatising are functions of the peer's secret and the round's id, which covers the model: the same
round has the same draw, in another life too, and no second model shares it. The ledger refuses what coins can't: a
second model of one round (``update_ledger``).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import ConfigurationError, LocalProtocolError, ProtocolError
from p2p_labeldp.facts import Ended, Name, Outcome, Reason, Rejected
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.federation import OpenedFederation, OpenedRound, Vector, open_round, seal_contribution
from p2p_labeldp.protocol.kept import ContributedAs
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.messages import AnyMessage, Contribute, Done, GetRound, Message, Refusal, RoundReply
from p2p_labeldp.protocol.transitions import after
from p2p_labeldp.protocol.update_ledger import UpdateLedger, UpdatePolicy
from p2p_labeldp.randomness import Randomness, RoundRandomness

PATIENCE_ROUNDS = 5.0
"""Round lengths without any answer after which the learner is taken for gone."""
LEAST_PATIENCE_SECONDS = 60.0  # a learner may be restarting
SEND_SECONDS = 10.0

Compute = Callable[[Vector], Vector]
"""From a model to this peer's clipped update; raises ``ConfigurationError`` if that is no finite vector."""


class PeerCoins(Randomness, RoundRandomness, Protocol):
    """What a peer of rounds draws."""


class State(Enum):
    """Where a peer stands in the run."""

    WAITING = auto()
    ANSWERING = auto()
    ENDED = auto()


TRANSITIONS = {
    (State.WAITING, "opening"): State.ANSWERING,
    (State.ANSWERING, "settled"): State.WAITING,
    (State.WAITING, "trained"): State.ENDED,
    **{(state, "outcome"): State.ENDED for state in (State.WAITING, State.ANSWERING)},
}


class Contributor(Machine):
    """One peer of a run.

    Args:
        opened: The verified manifest.
        compute: Its update.
        keys: Seals, verifies.
        randomness: Its coins.
        learner: Where the learner is reached.
        name: Its name in facts.
        data_id: Names its data in the ledger; never derived from them.
        ordinal: Its index in a study, 0 in a deployment.
        study: Whether it takes part in studies, and in nothing else.
        policy: Its limits.
        ledger: What has left of its data before.
    """

    def __init__(
        self,
        *,
        opened: OpenedFederation,
        compute: Compute,
        keys: KeyRing,
        randomness: PeerCoins,
        learner: Address,
        name: Name,
        data_id: str = "data",
        ordinal: int = 0,
        study: bool = False,
        policy: UpdatePolicy | None = None,
        ledger: UpdateLedger | None = None,
    ) -> None:
        super().__init__()
        self.state = State.WAITING
        self.name = name
        self.opened = opened
        self.ledger = ledger or UpdateLedger()
        self.outcome: Ended | None = None
        self.model: Vector | None = None  # the trained one
        self._compute = compute
        self._keys = keys
        self._coins = randomness
        self._rng = randomness.gossip()
        self._learner = learner
        self._data_id = data_id
        self._ordinal = ordinal
        self._study = study
        self._policy = policy or UpdatePolicy()
        self._heard_at = 0.0
        self._patience = max(PATIENCE_ROUNDS * opened.manifest.round_seconds, LEAST_PATIENCE_SECONDS)
        self._started = False
        self._handlers = {"poll": self._on_poll}

    # -- the contract with a host ----------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the peer has its outcome."""
        return self.state is State.ENDED

    def start(self, now: float) -> None:
        """Asks for the round that is open, if the run is to the peer's mind.

        Raises:
            LocalProtocolError: It was started before.
        """
        if self._started:
            raise LocalProtocolError("a peer takes part in a run once")
        self._started = True
        self._heard_at = now
        about = self._policy.against(self.opened, study=self._study)
        if about is not None:
            self.observe(Rejected(peer=self.name, at=now, about=about))
            self._end(Outcome.REFUSED, Reason.POLICY, now)
            return
        self.set_alarm("poll", now)

    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message:
        """A peer of rounds serves nobody."""
        return Refusal("not_for_a_peer")

    def close(self, now: float) -> None:
        """Ends early."""
        if not self.over:
            self._end(Outcome.ABSTAINED, Reason.NOT_READY, now)

    # -- polling ---------------------------------------------------------------------------------------------------

    def _go(self, event: str) -> None:
        """Moves on, if the table knows how.

        Raises:
            LocalProtocolError: It does not; nothing has changed.
        """
        self.state = after(event, state=self.state, table=TRANSITIONS)

    def _end(self, outcome: Outcome, reason: Reason | None, now: float) -> None:
        self._go("outcome")
        self.outcome = Ended(peer=self.name, at=now, outcome=outcome, reason=reason)
        self.observe(self.outcome)

    def _poll_later(self, now: float) -> None:
        self.set_alarm("poll", now + self.opened.manifest.poll_seconds * (0.5 + self._rng.random()))

    def _on_poll(self, now: float) -> None:
        if now - self._heard_at > self._patience:
            self._end(Outcome.UNREACHABLE, None, now)
            return
        self.send(self._learner, GetRound(self.opened.run_id), self._told, now, now + SEND_SECONDS)

    def _told(self, reply: AnyMessage | None, _reason: str, now: float) -> None:
        """What the learner says is open."""
        if self.over:
            return
        if not isinstance(reply, RoundReply) or reply.answered:
            self._heard_at = now if isinstance(reply, RoundReply) else self._heard_at
            self._poll_later(now)
            return
        try:
            current = open_round(reply.opening, of=self.opened, keys=self._keys)
        except ProtocolError as exc:
            self._mistrust(getattr(exc, "detail", "") or str(exc), now)
            self._poll_later(now)
            return
        self._heard_at = now
        if current.number == self.opened.manifest.rounds:
            self._trained(current, now)
        elif not self._answer(current, now):
            self._poll_later(now)

    def _trained(self, last: OpenedRound, now: float) -> None:
        self._go("trained")
        self.model = last.parameters
        answered = self.ledger.last(self.opened.run_id) >= 0
        self.outcome = (
            Ended(peer=self.name, at=now, outcome=Outcome.REPORTED)
            if answered
            else Ended(peer=self.name, at=now, outcome=Outcome.LATE)
        )
        self.observe(self.outcome)

    def _mistrust(self, about: str, now: float) -> None:
        self.observe(Rejected(peer=self.name, at=now, about=about))

    # -- answering -------------------------------------------------------------------------------------------------

    def _answer(self, current: OpenedRound, now: float) -> bool:
        """Sends this peer's box of a round; False if it has none for it."""
        box = self._box(current, now)
        if box is None:
            return False
        self._go("opening")
        self.send(self._learner, Contribute(current.round_id, box), self._settled, now, now + SEND_SECONDS)
        return True

    def _settled(self, reply: AnyMessage | None, _reason: str, now: float) -> None:
        if self.over:
            return
        self._go("settled")
        if isinstance(reply, Done):
            self._heard_at = now
        elif isinstance(reply, Refusal):
            self._mistrust(f"contribution refused: {reply.reason}", now)
        self._poll_later(now)

    def _box(self, current: OpenedRound, now: float) -> bytes | None:
        """The one of an earlier life, or a new one, on disk before it leaves."""
        run_id = self.opened.run_id
        earlier = self.ledger.find(run_id, current.number)
        if earlier is not None and earlier.round_id == current.round_id:
            return earlier.box or None
        if current.number <= self.ledger.last(run_id):
            self._mistrust(f"a second model for round {current.number}, or a round that was over", now)
            return None
        level = self.opened.mechanism.epsilon
        word = self._coins.sampling_word(round_id=current.round_id, number=current.number)
        counts = self.opened.manifest.takes_part(word) and self.ledger.affords(self._data_id, level)
        privatised = self._privatised(current, now)  # in any case: how long it takes must not tell
        entry = ContributedAs(
            peer=self.name,
            at=now,
            round=current.number,
            run_id=run_id,
            round_id=current.round_id,
            data_id=self._data_id,
            epsilon=level if counts else 0.0,
            box=seal_contribution(
                privatised if counts else None,
                ordinal=self._ordinal,
                dimension=self.opened.manifest.dimension,
                run_key=self.opened.manifest.run_key,
                round_id=current.round_id,
                keys=self._keys,
            ),
        )
        self.ledger.enter(entry)
        self.persist(entry)
        return entry.box

    def _privatised(self, current: OpenedRound, now: float) -> Vector:
        mechanism = self.opened.mechanism
        coins = self._coins.update_generator(round_id=current.round_id, number=current.number)
        try:
            return mechanism.privatise(self._compute(current.parameters), coins)
        except ConfigurationError as exc:
            self._mistrust(f"update refused: {exc}", now)
        coins = self._coins.update_generator(round_id=current.round_id, number=current.number)
        return mechanism.privatise(0.0 * current.parameters, coins)
