"""Algorithm 2 at one peer: flip once, answer everybody with that value, ask one mate.

Theory of operation. The two halves share nothing but the roster.

*Answering.* The label is flipped at the first ask, and never again: whoever asks gets the same flipped label, in a box
that only the learner opens and that is bound to the asker, so nobody else can use it. The learner cannot tell whose box
it is: one length, a fresh ephemeral key, and the answerer's name nowhere. A repeat of an ask gets the same bytes; a
second, different ask of the same peer is refused.

*Asking.* A peer draws one mate, uniform over the roster, itself included, and asks it until it answers or the exchange
ends. It never asks a second mate: a second choice after a failure would no longer be uniform.

    state     event     next
    IDLE      drawn     ASKING
    ASKING    box       HOLDING
    ASKING    deadline  EMPTY
    IDLE      deadline  EMPTY
    HOLDING   deadline  HOLDING

Source: Esfandiari, Mirrokni, Syed, Vassilvitskii, "Label differential privacy via clustering", arXiv 2110.02159,
Algorithm 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import Enum, auto

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.crypto.sealing import box_info
from p2p_labeldp.facts import Flipped, Name
from p2p_labeldp.labels import Example
from p2p_labeldp.mechanisms import randomized_response, resampling
from p2p_labeldp.protocol.messages import Answer, Ask, Refusal
from p2p_labeldp.protocol.roster import OpenedRoster
from p2p_labeldp.protocol.transitions import after
from p2p_labeldp.randomness import Randomness


class Asking(Enum):
    """How far a peer's own ask has come."""

    IDLE = auto()
    ASKING = auto()
    HOLDING = auto()
    EMPTY = auto()


TRANSITIONS = {
    (Asking.IDLE, "drawn"): Asking.ASKING,
    (Asking.ASKING, "box"): Asking.HOLDING,
    (Asking.ASKING, "deadline"): Asking.EMPTY,
    (Asking.IDLE, "deadline"): Asking.EMPTY,
    (Asking.HOLDING, "deadline"): Asking.HOLDING,
}


def answer_info(round_id: bytes, roster: bytes, asker: bytes) -> bytes:
    """What an answer's box is bound to: purpose, round, roster and asker; never the answerer."""
    return box_info("answer", round_id, roster, asker)


class Exchange:
    """One peer's part in the exchange of one roster.

    Args:
        roster: The accepted roster.
        example: Its label leaves only flipped and sealed.
        num_classes: Size of the label space.
        keys: To seal with.
        randomness: The peer's coins.
        round_key: The learner's HPKE key of this round, 32 bytes.
        flipped: The flipped label, if it was flipped in an earlier life.
    """

    def __init__(
        self,
        *,
        roster: OpenedRoster,
        example: Example,
        num_classes: int,
        keys: KeyRing,
        randomness: Randomness,
        round_key: bytes,
        flipped: int | None = None,
    ) -> None:
        self.state = Asking.IDLE
        self.box: bytes | None = None
        self.mate: bytes | None = None
        self._roster = roster
        self._example = example
        self._num_classes = num_classes
        self._keys = keys
        self._randomness = randomness
        self._round_key = round_key
        self._flipped = flipped
        self._given: dict[bytes, tuple[bytes, bytes]] = {}  # asker -> (ask id, box)

    def _go(self, event: str) -> None:
        self.state = after(event, state=self.state, table=TRANSITIONS)

    def flip(self) -> int:
        """The flipped label; tossed at the first call, remembered ever after."""
        if self._flipped is None:
            probability = self._roster.roster.flip_probability
            coin = self._randomness.flip_word(label_id=self._example.label_id, flip_probability=probability)
            self._flipped = randomized_response.flip(
                self._example.label,
                coin,
                randomized_response.flip_threshold(probability, self._num_classes),
                num_classes=self._num_classes,
            )
        return self._flipped

    def release(self, *, peer: Name, now: float, label_space: str) -> Flipped:
        """The fact that the label is spent in this roster, as an index into the classes with that digest."""
        return Flipped(
            peer=peer,
            at=now,
            label_id=self._example.label_id,
            flip_probability=self._roster.roster.flip_probability,
            flipped_label=self.flip(),
            round_id=self._roster.roster.round_id.hex(),
            roster=self._roster.digest.hex(),
            label_space=label_space,
        )

    @property
    def spent(self) -> bool:
        """Whether the label has been flipped."""
        return self._flipped is not None

    def has_answered(self, asker: bytes) -> bool:
        """Whether this asker has its box already."""
        return asker in self._given

    def answer(self, asker: bytes, ask: Ask) -> Answer | Refusal:
        """Answers an ask; the caller persists the flip before the answer leaves."""
        if asker not in self._roster.member_set:
            return Refusal("not_in_roster")
        if ask.roster != self._roster.digest:
            return Refusal("roster_mismatch")
        if asker in self._given:
            ask_id, box = self._given[asker]
            return Answer(box) if ask_id == ask.ask_id else Refusal("second_ask")
        info = answer_info(self._roster.roster.round_id, self._roster.digest, asker)
        box = self._keys.seal(self._round_key, bytes([self.flip()]), info=info)
        self._given[asker] = (ask.ask_id, box)
        return Answer(box)

    def draw(self) -> bytes:
        """Draws the one mate to ask, uniform over the roster, oneself included."""
        self._go("drawn")
        members = self._roster.members
        coin = self._randomness.mate_word(
            label_id=self._example.label_id, round_id=self._roster.roster.round_id, roster=self._roster.digest
        )
        self.mate = members[resampling.mate_index(coin, len(members))]
        return self.mate

    def ask(self) -> Ask:
        """The ask to send to the mate, the same at each repeat."""
        round_id, digest = self._roster.roster.round_id, self._roster.digest
        ask_id = hashlib.sha256(b"p2p-labeldp ask" + round_id + digest + self._keys.peer_id).digest()[:16]
        return Ask(round_id, digest, ask_id)

    def take(self, answer: Answer) -> None:
        """Holds the mate's box, unopened."""
        self._go("box")
        self.box = answer.box

    def deadline(self) -> None:
        """The exchange is over; an answer that comes now is too late."""
        self._go("deadline")

    def resume(self, *, mate: bytes | None, box: bytes | None, given: Mapping[bytes, tuple[bytes, bytes]]) -> None:
        """Takes up where an earlier life was.

        Args:
            mate: The one drawn, if one was.
            box: Its box, if it came.
            given: What was given to whom: asker to ask id and box.
        """
        if mate is not None:
            self._go("drawn")
            self.mate = mate
        if box is not None:
            self._go("box")
            self.box = box
        self._given.update(given)

    @property
    def holding(self) -> bool:
        """Whether the mate's answer is here."""
        return self.state is Asking.HOLDING

    def erase(self) -> None:
        """Forgets draw, box and answers given, when the round is over."""
        self.box = self.mate = self._flipped = None
        self._given.clear()
