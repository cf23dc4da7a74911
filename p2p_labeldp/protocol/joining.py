"""The first two phases of a peer: who is in its cluster, and whether the learner's roster is accepted.

A peer accepts a roster if it holds a valid record of every id in it, is in it itself, and everybody it knew half a
gossip period before the join deadline is in it; if the guarantee, recomputed, is what the manifest promises; and if its
own limits and its ledger allow it.
"""

from __future__ import annotations

from collections.abc import Callable

from p2p_labeldp.errors import ClusterTooSmall, ConfigurationError, PrivacyError, ProtocolError
from p2p_labeldp.facts import Met, Outcome, Reason, Rejected
from p2p_labeldp.protocol import dissemination, roster
from p2p_labeldp.protocol.dissemination import Dissemination
from p2p_labeldp.protocol.kept import GatheredThese
from p2p_labeldp.protocol.messages import AnyMessage, GetRoster, Refusal, RosterReply
from p2p_labeldp.protocol.participant import Participant, State
from p2p_labeldp.protocol.roster import OpenedRoster

ROSTER_SHARE = 0.4  # of the exchange phase, over which the peers fetch their rosters


class Joining:
    """Gathers records, then fetches and judges the roster.

    Args:
        peer: Whose phases these are.
        gossip: Its gossip.
        accepted: Called with the roster and ``now`` once it is accepted.
    """

    def __init__(
        self, *, peer: Participant, gossip: Dissemination, accepted: Callable[[OpenedRoster, float], None]
    ) -> None:
        self._peer = peer
        self._gossip = gossip
        self._accepted = accepted
        self._pending: OpenedRoster | None = None  # signed by the learner, not yet accepted
        self._must_list: frozenset[bytes] = frozenset()
        self._met = 1  # itself

    @property
    def waits_for_records(self) -> bool:
        """Whether the learner's roster is here, and a record of somebody in it is not."""
        return self._pending is not None

    def on_gossip(self, now: float) -> None:
        """Time to gossip about the directory."""
        peer, records = self._peer, len(self._peer.directory.mates)
        if records != self._met:
            self._met = records
            peer.observe(Met(peer=peer.name, at=now, cluster=peer.cluster, records=records))
        self._gossip.tick_directory(now)
        if self._pending is not None:  # a record is missing, and the mates that have it are at rest by now
            self._gossip.full_pace(now, within=peer.deadlines.closing - now)

    def on_news(self, now: float) -> None:
        """A record came in."""
        if self._pending is not None and self._peer.state is State.COMMITTING:
            self._try_to_commit(now)

    def on_snapshot(self, now: float) -> None:
        """What is known half a period before the deadline has to be in the roster."""
        peer = self._peer
        self._must_list = frozenset(entry.signer for entry in peer.directory.mates)
        signers = tuple(sorted(self._must_list))
        peer.persist(GatheredThese(peer=peer.name, at=now, cluster=peer.cluster, records=len(signers), signers=signers))

    def resume(self, gathered: GatheredThese) -> None:
        """Has from an earlier life who has to be in the roster."""
        self._must_list = frozenset(gathered.signers)

    def on_join_deadline(self, now: float) -> None:
        """The learner signs its rosters."""
        peer = self._peer
        peer.go("join deadline")
        span = peer.deadlines.exchange - peer.deadlines.join
        peer.set_alarm("roster", max(now, peer.deadlines.join + span * ROSTER_SHARE * peer.rng.random()))

    def on_fetch_roster(self, now: float) -> None:
        """Asks the learner for the roster."""
        peer = self._peer
        request = GetRoster(peer.opened.round_id, peer.cluster)
        peer.send(peer.learner, request, self._take_roster, now, peer.deadlines.exchange)

    def _take_roster(self, reply: AnyMessage | None, _reason: str, now: float) -> None:
        peer = self._peer
        if peer.state is not State.COMMITTING:
            return
        if reply == Refusal("no_roster") and len(peer.directory.mates) < 2:
            peer.end(Outcome.ABSTAINED, Reason.CLUSTER_TOO_SMALL, now)  # the learner signs none for a cluster of one
            return
        if not isinstance(reply, RosterReply):
            peer.again("roster", now, peer.deadlines.exchange)
            return
        try:
            self._pending = roster.open_roster(reply.roster, keys=peer.keys, opened=peer.opened, cluster=peer.cluster)
        except ProtocolError as exc:
            peer.mistrust(exc, now)
            peer.end(Outcome.REFUSED, Reason.ROSTER_MISMATCH, now)
            return
        self._gossip.take_proofs(reply.proofs, now)
        self._try_to_commit(now)
        if peer.state is State.COMMITTING:
            self._gossip.complete_roster = True
            self._gossip.full_pace(now, within=peer.deadlines.exchange - now)

    def _try_to_commit(self, now: float) -> None:
        """Accepts the learner's roster once a valid record of everyone in it is here, or refuses it."""
        peer, pending = self._peer, self._pending
        if pending is None:
            return
        mates, members = peer.directory.mates, pending.members
        left_out = self._must_list - pending.member_set
        if peer.keys.peer_id not in pending.member_set:
            peer.refuse(Reason.ROSTER_MISMATCH, "roster: this peer is not in it", now)
            return
        if not all(map(mates.has_struck, left_out)):
            peer.refuse(Reason.ROSTER_MISMATCH, "roster: somebody known in time is not in it", now)
            return
        entries = [entry for member in members if (entry := mates.get(member)) is not None]
        if len(entries) < len(members):
            return  # gossip goes on for the missing records; the exchange deadline ends the wait
        order = [entry.content.sort_key(entry.signer) for entry in entries]
        if order != sorted(order):
            peer.refuse(Reason.ROSTER_MISMATCH, "roster: its members are out of order", now)
            return
        try:
            roster.check_guarantee(pending.roster, len(members), peer.opened)
        except ClusterTooSmall as exc:
            peer.observe(Rejected(peer=peer.name, at=now, about=str(exc)))
            peer.end(Outcome.ABSTAINED, Reason.CLUSTER_TOO_SMALL, now)
        except (PrivacyError, ConfigurationError) as exc:
            peer.refuse(Reason.POLICY, f"policy: {exc}", now)
        else:
            self._hold_against_limits(pending, now)

    def _hold_against_limits(self, pending: OpenedRoster, now: float) -> None:
        """The peer's own limits, then its ledger."""
        peer, terms = self._peer, pending.roster
        label_id, place = peer.example.label_id, peer.place_of(pending)
        about = peer.policy.against_roster(
            size=len(pending.members),
            holding_minimum=terms.holding_minimum,
            flip_probability=terms.flip_probability,
            num_classes=len(peer.opened.label_space),
            again=peer.ledger.elsewhere(label_id, **place),
        )
        if about is not None:
            peer.refuse(Reason.POLICY, about, now)
            return
        about = peer.ledger.against_roster(label_id, flip_probability=terms.flip_probability, **place)
        if about is not None:
            peer.refuse(Reason.LABEL_SPENT, about, now)
            return
        peer.clear_alarm(dissemination.ALARM)
        self._accepted(pending, now)
