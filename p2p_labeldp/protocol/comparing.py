"""Two rosters for one cluster: how a peer finds out that the learner signed them, and what it does then."""

from __future__ import annotations

from p2p_labeldp.facts import Reason
from p2p_labeldp.protocol import roster
from p2p_labeldp.protocol.dissemination import Dissemination
from p2p_labeldp.protocol.messages import (
    MAX_ENVELOPE_BYTES,
    Contradiction,
    GetRoster,
    Message,
    Refusal,
    RosterReply,
)
from p2p_labeldp.protocol.participant import Participant


class Comparing:
    """Compares the peer's roster with those of its mates.

    Args:
        peer: Whose roster.
        gossip: Tells the mates.
    """

    def __init__(self, *, peer: Participant, gossip: Dissemination) -> None:
        self._peer = peer
        self._gossip = gossip
        self._proven = False

    def show(self, message: GetRoster) -> Message:
        """To a mate that wonders whether it has the same."""
        peer = self._peer
        if message.round_id != peer.opened.round_id:
            return Refusal("another_round")
        if peer.part is None or message.cluster != peer.cluster:
            return Refusal("no_roster", retry=True)
        return RosterReply(peer.part.roster.envelope)

    def compare(self, envelope: bytes, now: float) -> None:
        """A mate has shown its roster: if it is another one of the learner's, everybody has to know."""
        if len(envelope) <= MAX_ENVELOPE_BYTES // 2:
            self.take_proof(Contradiction(self._peer.my.roster.envelope, envelope), now)

    def take_proof(self, proof: Contradiction, now: float) -> None:
        """Two rosters of one cluster: nobody knows which of its mates count, so nothing more leaves."""
        peer = self._peer
        if self._proven or not roster.contradict(
            proof.first, proof.second, keys=peer.keys, opened=peer.opened, cluster=peer.cluster
        ):
            return
        self._proven = True
        members = peer.part.roster.members if peer.part is not None else ()
        self._gossip.spread(proof, members, now)
        if not peer.over and (peer.part is None or peer.part.report is None):
            peer.refuse(Reason.ROSTER_MISMATCH, "the learner signed two rosters for one cluster", now)
