"""The learner's machine of a run of private rounds, sans-IO: opens rounds, takes contributions, averages, steps.

Theory of operation. A round is open until every peer that is waited for has answered, and ``round_seconds`` at most.
Waited for are, at first, as many as there are in the population; after a round that some missed, those who answered it
and whoever asks since, unless it has let ``MAX_MISSES`` rounds wait in a row. So a peer that is gone costs one
deadline, one that asks and never answers two, and nothing stalls.

    state     until                     what it answers
    OPEN      the last round is over    GetManifest, GetRound, Contribute
    SERVING   everybody has the model   GetManifest, GetRound
    ENDED

At the end of a round the updates in it, in the order of (ordinal, id), are shrunk to norm rho, added up, divided by the
*expected* cohort and given noise (``mechanisms.noisy_average``), whether there are any or none. The model that comes of
it is signed as the opening of the next round and persisted before anybody sees it: that is the checkpoint. A learner
that died in a round has released nothing of it. It opens the same round again, the very same bytes, and peers whose box
it lost send it again; what it then draws is the first that anybody sees of the round's noise. A learner that died later
goes on from the checkpoint, so no round has two draws of noise.

Participations are for the local ledger, which is about what the learner could open: an update counts when its box
arrives, in the average or too late for it, and whether or not its round comes to an end. One that comes too late is
on disk at once, since nobody sends it again. One whose round a learner died in is counted when it comes again; if it
never does, or was for a round that was over before the learner died, only its peer's own ledger has it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from enum import Enum, auto

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from p2p_labeldp.facts import SHORT_ID, Averaged, Fact, Name, Opened, Rejected
from p2p_labeldp.protocol.federation import OpenedFederation, Vector, open_contribution, open_round, sign_round
from p2p_labeldp.protocol.kept import Checkpoint, RunClosed
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.messages import (
    AnyMessage,
    Contribute,
    Done,
    GetManifest,
    GetRound,
    ManifestReply,
    Message,
    Refusal,
    RoundReply,
)
from p2p_labeldp.protocol.transitions import after
from p2p_labeldp.randomness import RoundRandomness

MAX_MISSES = 2


class State(Enum):
    """Where the run stands."""

    OPEN = auto()
    SERVING = auto()
    ENDED = auto()


TRANSITIONS = {
    (State.OPEN, "round over"): State.OPEN,
    (State.OPEN, "last round over"): State.SERVING,
    **{(state, "end"): State.ENDED for state in (State.OPEN, State.SERVING)},
}


class Averager(Machine):
    """The learner in one run.

    Args:
        envelope: The signed manifest, as handed to peers.
        opened: The same, verified.
        initial: The model before the first round, shape (dimension,).
        keys: The learner's keys; they sign openings.
        run_keys: The key ring of this run alone; it opens contributions.
        randomness: Its noise.
        log: What it persisted in this run before, the oldest first.
    """

    def __init__(
        self,
        *,
        envelope: bytes,
        opened: OpenedFederation,
        initial: Vector,
        keys: KeyRing,
        run_keys: KeyRing,
        randomness: RoundRandomness,
        log: Iterable[Fact] = (),
    ) -> None:
        super().__init__()
        self.state = State.OPEN
        self.name: Name = "learner"
        self.envelope = envelope
        self.opened = opened
        self.parameters = initial
        self.number = 0
        self.opening = b""
        self.cohorts: tuple[int, ...] = ()
        self.participations: dict[str, int] = {}
        self._keys = keys
        self._run_keys: KeyRing | None = run_keys
        self._randomness = randomness
        self._average = opened.manifest.average
        self._round_id = b""
        self._answers: dict[bytes, tuple[int, Vector | None]] = {}
        self._boxes: dict[bytes, bytes] = {}  # sender -> digest of its box
        self._rounds: set[bytes] = set()  # ids of this life's rounds
        self._counted: set[tuple[bytes, bytes]] = set()  # round and sender of each update that arrived
        self._known: set[bytes] = set()
        self._expected: set[bytes] | None = None  # None: as many as there are in the population
        self._misses: dict[bytes, int] = {}  # rounds in a row that waited for a peer in vain
        self._told: set[bytes] = set()  # who has the trained model
        self._started = False
        self._handlers = {"deadline": self._on_deadline, "end": self._on_end}
        self._log = list(log)

    # -- the contract with a host ----------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the run is over."""
        return self.state is State.ENDED

    @property
    def complete(self) -> bool:
        """Whether all rounds were played."""
        return self.number == self.opened.manifest.rounds

    def start(self, now: float) -> None:
        """Opens the first round, or takes the run up where it was.

        Raises:
            LocalProtocolError: It was started before.
        """
        if self._started:
            raise LocalProtocolError("a run is opened once")
        self._started = True
        self.observe(Opened(peer=self.name, at=now, id=self._keys.peer_id.hex()[:SHORT_ID]))
        last = next((fact for fact in reversed(self._log) if isinstance(fact, Checkpoint)), None)
        closed = any(isinstance(fact, RunClosed) for fact in self._log)
        self._log = []
        if last is None:
            self._open(now)
            self._keep(now)
        else:
            current = open_round(last.opening, of=self.opened, keys=self._keys)
            self.parameters, self.number = current.parameters, current.number
            self.cohorts, self.participations = last.cohorts, dict(last.participations)
            self._enter(last.opening, now)
        if closed:
            self._go("end")
            self._run_keys = None
        elif self.complete:
            self._go("last round over")
            self._serve(now)

    def receive(self, message: AnyMessage, sender: bytes, now: float) -> Message:
        """Replies to a message of an authenticated sender."""
        self.wake(now)  # a message may come in before the timer that is due
        match message:
            case GetManifest():
                return ManifestReply(self.envelope, now)
            case GetRound(run_id=run_id) if run_id != self.opened.run_id:
                return Refusal("another_run")
            case GetRound():
                return self._tell(sender, now)
            case Contribute():
                return self._take(message, sender, now)
            case _:
                return Refusal("not_for_a_learner")

    def close(self, now: float) -> None:
        """Ends the run; the model is the one of the last round that came to its end."""
        if not self.over:
            self._on_end(now)

    # -- rounds ----------------------------------------------------------------------------------------------------

    def _go(self, event: str) -> None:
        self.state = after(event, state=self.state, table=TRANSITIONS)

    def _open(self, now: float) -> None:
        self._enter(sign_round(self.number, self.parameters, run_id=self.opened.run_id, keys=self._keys), now)

    def _enter(self, opening: bytes, now: float) -> None:
        self.opening = opening
        self._round_id = hashlib.sha256(opening).digest()
        self._rounds.add(self._round_id)
        self._answers, self._boxes = {}, {}
        self.set_alarm("deadline", now + self.opened.manifest.round_seconds)

    def _keep(self, now: float) -> None:
        self.persist(
            Checkpoint(
                peer=self.name,
                at=now,
                opening=self.opening,
                cohorts=self.cohorts,
                participations=dict(self.participations),
            )
        )

    def _tell(self, sender: bytes, now: float) -> Message:
        if not self._admitted(sender):
            return Refusal("population_complete")
        if self._expected is not None and self._misses.get(sender, 0) < MAX_MISSES:
            self._expected.add(sender)
        if self.state is not State.OPEN:
            self._told.add(sender)
            if self.state is State.SERVING and self._told >= (self._expected or self._known):
                self.set_alarm("end", now)
        answered = sender in self._answers
        return RoundReply(b"" if answered else self.opening, answered)  # it has the model; a poll is to cost little

    def _admitted(self, sender: bytes) -> bool:
        """As many as there are in the population, the first who come: the divisor is made for no more."""
        if sender not in self._known and len(self._known) < self.opened.manifest.population:
            self._known.add(sender)
        return sender in self._known

    def _take(self, message: Contribute, sender: bytes, now: float) -> Message:
        digest = hashlib.sha256(message.sealed).digest()
        if not self._admitted(sender):
            return Refusal("population_complete")
        if message.round_id != self._round_id or self.state is not State.OPEN:
            self._count_late(message, sender, now)
            return Refusal("round_over")
        if sender in self._boxes:
            if self._boxes[sender] == digest:
                return Done()
            self._reject(f"{sender.hex()[:SHORT_ID]} answered round {self.number} twice", now)
            return Refusal("answered_before")
        try:
            answer = self._content(message, sender)
        except ProtocolError as exc:
            self._reject(f"{sender.hex()[:SHORT_ID]}: {getattr(exc, 'detail', '') or exc}", now)
            return Refusal("bad_box")
        self._boxes[sender] = digest
        self._answers[sender] = answer
        self._count(answer, message.round_id, sender)
        self._misses.pop(sender, None)
        if self._everybody_answered():
            self._average_round(now)
        return Done()

    def _content(self, message: Contribute, sender: bytes) -> tuple[int, Vector | None]:
        assert self._run_keys is not None
        return open_contribution(
            message.sealed,
            peer_id=sender,
            dimension=self.opened.manifest.dimension,
            round_id=message.round_id,
            keys=self._run_keys,
        )

    def _count(self, answer: tuple[int, Vector | None], round_id: bytes, sender: bytes) -> bool:
        ordinal, update = answer
        if update is None or (round_id, sender) in self._counted:
            return False
        self._counted.add((round_id, sender))
        name = str(ordinal) if self.opened.manifest.study else sender.hex()
        self.participations[name] = self.participations.get(name, 0) + 1
        return True

    def _count_late(self, message: Contribute, sender: bytes, now: float) -> None:
        """An update that is in no average has still left its peer."""
        if self._run_keys is None or message.round_id not in self._rounds:
            return
        with contextlib.suppress(RemoteProtocolError):
            if self._count(self._content(message, sender), message.round_id, sender):
                self._keep(now)

    def _everybody_answered(self) -> bool:
        if self._expected is None:
            return len(self._answers) == self.opened.manifest.population
        return self._expected <= self._answers.keys()

    def _on_deadline(self, now: float) -> None:
        for sender in (self._known if self._expected is None else self._expected) - self._answers.keys():
            self._misses[sender] = self._misses.get(sender, 0) + 1
        self._expected = set(self._answers) or None
        self._average_round(now)

    def _average_round(self, now: float) -> None:
        inside = sorted(
            ((ordinal, sender, update) for sender, (ordinal, update) in self._answers.items() if update is not None),
            key=lambda one: one[:2],
        )
        reports = hashlib.sha256()
        for _, sender, update in inside:
            reports.update(sender + update.tobytes())
        noise = self._randomness.noise_generator(round_id=self._round_id, number=self.number, reports=reports.digest())
        average = self._average.release((update for _, _, update in inside), noise)
        self.parameters = self.opened.manifest.step(self.parameters, average)
        self.cohorts = (*self.cohorts, len(inside))
        over = Averaged(peer=self.name, at=now, round=self.number, answers=len(self._answers))
        self.number += 1
        self._open(now)
        self._keep(now)
        self.observe(over)
        if self.complete:
            self._go("last round over")
            self._serve(now)
        else:
            self._go("round over")

    def _reject(self, about: str, now: float) -> None:
        self.observe(Rejected(peer=self.name, at=now, about=about))

    # -- the end ---------------------------------------------------------------------------------------------------

    def _serve(self, now: float) -> None:
        """Until everybody has the trained model, a round's length at most."""
        self.clear_alarm("deadline")
        self.set_alarm("end", now + self.opened.manifest.round_seconds)

    def _on_end(self, now: float) -> None:
        self._go("end")
        self._run_keys = None
        self.persist(RunClosed(peer=self.name, at=now, manifest=self.envelope))
