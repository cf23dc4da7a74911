"""What somebody brings to a round to be a peer of it, on whatever network."""

from __future__ import annotations

from dataclasses import dataclass

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.crypto.signatures import ALLOWED_SKEW_SECONDS
from p2p_labeldp.facts import Ended, Fact, Name, Outcome, Reason
from p2p_labeldp.labels import Example, LabelSpace
from p2p_labeldp.network.store import Store
from p2p_labeldp.network.study import PeerSpec
from p2p_labeldp.protocol import restoring
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.kept import Abandoned, EndedIn
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.peer import Peer
from p2p_labeldp.protocol.policy import Policy
from p2p_labeldp.protocol.restoring import Past
from p2p_labeldp.randomness import Randomness

A_MOMENT_SECONDS = 0.1  # past the end of a round, and then it is over by any clock's reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """All that a peer brings to a round.

    Args:
        keys: Its keys.
        coins: Its randomness.
        example: Its features and label.
        label_space: The classes it expects.
        host: Where it listens and is reached.
        port: Where it listens and is reached.
        bind: Address it listens on instead, where ``host`` is one that only others know it by.
        learner: The learner it expects.
        contacts: Its first contacts.
        ordinal: Its index in a study.
        study: Whether it takes part in studies, and in nothing else.
        sequence: Larger than in any earlier start with the same key.
        policy: Its limits; the usual ones if not given.
        store: What it has on disk; nothing, in a study.
        enrolment: What the enrolment key signed for it; empty for open rounds.
    """

    keys: KeyRing
    coins: Randomness
    example: Example
    label_space: LabelSpace
    host: str
    port: int
    learner: Address
    contacts: tuple[Address, ...]
    ordinal: int = 0
    study: bool = False
    sequence: int = 0
    policy: Policy | None = None
    store: Store | None = None
    enrolment: bytes = b""
    bind: str | None = None

    @property
    def name(self) -> Name:
        """As facts name it."""
        return self.ordinal if self.study else self.keys.peer_id.hex()

    def left_behind(self, now: float) -> list[Fact]:
        """What is to be persisted of a round in which this party died, if that round is over by now.

        Args:
            now: Unix seconds.
        """
        past = self._died_in()
        if past is None or now <= past.joined.over_by + ALLOWED_SKEW_SECONDS:
            return []
        return self._through_with(past, Abandoned(peer=self.name, round_id=past.joined.round_id))

    def gives_up(self, outcome: Outcome, reason: Reason | None) -> list[Fact]:
        """What is to be persisted and told, in order, of a party that ends without having heard of a round; its outcome
        comes last. If it died in a round, that one ends so, and no restart takes it up again.

        Args:
            outcome: How it ends; ``failed`` (``no_receipt``) instead, if its report may have been accepted.
            reason: Why.
        """
        past = self._died_in()
        if past is None:
            return [Ended(peer=self.name, outcome=outcome, reason=reason)]
        if past.reported is not None:
            outcome, reason = Outcome.FAILED, Reason.NO_RECEIPT
        at, round_id = past.joined.at, past.joined.round_id
        return self._through_with(
            past, EndedIn(peer=self.name, at=at, outcome=outcome, reason=reason, round_id=round_id)
        )

    def patience(self, now: float, *, usual: float) -> float:
        """Seconds to wait for the learner: ``usual``, or until the round that this party died in is over.

        Args:
            now: Unix seconds.
            usual: Of a party that has no round behind it.
        """
        past = self._died_in()
        if past is None:
            return usual
        return min(max(past.joined.over_by + ALLOWED_SKEW_SECONDS - now, 0.0) + A_MOMENT_SECONDS, usual)

    def _died_in(self) -> Past | None:
        """The round that it died in, if there is one.

        Raises:
            ConfigurationError: It died in it with another example.
        """
        past = None if self.store is None else restoring.read(self.store.facts())
        if past is None or not past.unfinished:
            return None
        if past.joined.label_id != self.example.label_id:
            raise past.of_another_label(self.example.label_id)
        return past

    def _through_with(self, past: Past, end: Fact) -> list[Fact]:
        assert self.store is not None
        return restoring.end(
            past,
            end,
            example=self.example,
            label_space=self.label_space,
            keys=self.keys,
            randomness=self.coins,
            ledger=self.store.ledger(),
        )

    def peer(self, opened: OpenedManifest) -> Peer:
        """The machine; the one of an earlier life, if it left a log."""
        return Peer.restore(
            () if self.store is None else self.store.facts(),
            opened=opened,
            example=self.example,
            label_space=self.label_space,
            keys=self.keys,
            randomness=self.coins,
            address=Address(self.keys.peer_id, self.host, self.port),
            learner=self.learner,
            contacts=self.contacts,
            ordinal=self.ordinal,
            study=self.study,
            sequence=self.sequence,
            policy=self.policy,
            ledger=None if self.store is None else self.store.ledger(),
            enrolment=self.enrolment,
        )


def of_study(spec: PeerSpec, keys: KeyRing, *, bind: str | None = None) -> Party:
    """The party a study's spec describes. ``bind`` as in ``Party``."""
    return Party(
        keys=keys,
        coins=spec.coins(),
        example=Example(features=spec.features, label=spec.label, label_id=str(spec.ordinal)),
        label_space=LabelSpace(classes=spec.classes),
        host=spec.host,
        port=spec.port,
        learner=spec.learner.address(),
        contacts=tuple(contact.address() for contact in spec.contacts),
        ordinal=spec.ordinal,
        study=True,
        policy=spec.policy,
        bind=bind,
    )
