"""How a peer spreads records: whom it gossips with, how often, and what it says.

Each tick opens one or two push-pull exchanges. While everything is news a peer keeps its full pace; each tick without
news doubles the pause, up to a few periods, and any news restores the pace. A directory that has converged is nearly
silent, and a late comer still wakes it. A peer without news opens with one hash of its set, and names its records only
to a mate whose set has another. What all members need of all, their records and who is ready, goes by the hubs first.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Callable, Collection
from contextlib import suppress

from p2p_labeldp.errors import MalformedMessage
from p2p_labeldp.facts import Name, Rejected
from p2p_labeldp.protocol.closing import Closing, ReadyRecord
from p2p_labeldp.protocol.directory import Directory, PeerRecord, address_of, contact_of
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.gossip import GossipSet, draw_salt
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.meeting import hubs, meeting_point
from p2p_labeldp.protocol.messages import (
    ROUND_START_BYTES,
    AnyMessage,
    Contradiction,
    Digest,
    Done,
    GetRoster,
    Message,
    Offer,
    Push,
    Refusal,
    RosterReply,
    Topic,
)
from p2p_labeldp.protocol.strangers import Strangers

HUB_VISITS = {Topic.DIRECTORY: 3, Topic.CLOSING: 2}  # the first of the exchanges with mates
FIRST_VISIT_PERIODS = 2  # after it in the closing: then all members have been at the hubs, and the next finds it all
SLOWEST = 3  # periods between exchanges that keep finding nothing new
FOLLOW_UPS = 2  # mates named by strangers that are asked at once, in a tick; more could be a chain without end
LONELY_STRANGERS = 3  # asked a tick, one after the other, while no mate is known
FEW_MATES = 4  # below it a stranger is asked beside a mate
SEEKERS = 8  # of the mates that know each other so many ask a stranger in a tick: what one hears all do, at the hub
STRANGER_SHARE = 0.55  # of the ticks of a peer, at most
JITTER = 0.75, 1.25  # times the pause between two ticks
FIRST_TICK_PERIODS = 1.5  # over which the first exchanges of a phase are spread: all members want the same few hubs
TICKS_A_PHASE = 9  # six exchanges spread what is news to everybody, with the pushes between them
PATIENCE_PERIODS = 3  # for the reply in an exchange: a stopped mate must not hold up the others
MIN_PATIENCE_SECONDS = 1.0
MAX_PENDING = {Topic.DIRECTORY: 2, Topic.CLOSING: 1}  # exchanges not yet answered: where all have to be done in one
# short phase, more of them would only add to what a machine is behind with; where one is lost, a second one helps
TOLD = 4  # members that each peer tells of a proof, and each of those four; who asks hears of it anyway
ALARM = "gossip"


class Dissemination:
    """The gossip of one peer.

    Args:
        machine: Whose alarms and sends are used.
        name: The peer's name in facts.
        directory: Peer records.
        own: The peer's own signed record.
        round_id: Messages of other rounds are refused.
        learner: Its id; it gets the own record whatever it asks about.
        contacts: First contacts.
        enough: Members a cluster has at least; who knows fewer keeps asking strangers.
        period: Seconds between exchanges at full pace.
        rng: Whom to gossip with.
        on_news: Called with ``now`` when records of the own cluster were new.
        on_roster: Called with a roster that a mate has and ``now``, if the mate says that it has another.
        on_proof: Called with what somebody says to be a proof against the learner, and ``now``.
    """

    def __init__(
        self,
        *,
        machine: Machine,
        name: Name,
        directory: Directory,
        own: bytes,
        round_id: bytes,
        learner: bytes,
        contacts: tuple[Address, ...],
        enough: int,
        period: float,
        rng: random.Random,
        on_news: Callable[[float], None],
        on_roster: Callable[[bytes, float], None],
        on_proof: Callable[[Contradiction, float], None],
    ) -> None:
        self.closing: Closing | None = None  # given once there is a roster
        self.complete_roster = False  # a roster is waiting for records that some mate must have: strangers don't
        self._machine = machine
        self._name = name
        self._directory = directory
        self._own = own
        self._me = next(iter(directory.mates)).signer
        self._round_id = round_id
        self._learner = learner
        self._place = contact_of(next(iter(directory.mates))).at
        self._point = meeting_point(round_id, directory.cluster)
        self._strangers = Strangers(
            directory=directory, me=self._me, first_contacts=contacts, point=self._point, rng=rng
        )
        self._follow_ups = 0
        self._more_strangers = 0
        self._enough = enough
        self._period = period
        self._rng = rng
        self._on_news = on_news
        self._on_roster = on_roster
        self._on_proof = on_proof
        self._proof: Contradiction | None = None
        self._roster_asked: set[bytes] = set()
        self._quiet = 0
        self._let_pass = False  # the last tick, waiting for a reply
        self._pending: collections.Counter[Topic] = collections.Counter()
        self._hub_visits: collections.Counter[Topic] = collections.Counter()

    def tick_directory(self, now: float) -> None:
        """Opens this tick's exchanges about the directory."""
        self._follow_ups = FOLLOW_UPS
        self._more_strangers = LONELY_STRANGERS - 1
        waits = self._pending[Topic.DIRECTORY]
        if waits and not self._let_pass and len(self._directory.mates) > 1:
            # On a machine that is behind all wait, and would only ask for more. Who knows nobody has to hurry.
            self._let_pass = True
            self._machine.set_alarm(ALARM, now + self._jitter(self._period))
            return
        self._let_pass = False
        if waits < MAX_PENDING[Topic.DIRECTORY]:
            for to in self._directory_targets():
                self._open(to, Topic.DIRECTORY, now)
        self._pause(now)

    def tick_closing(self, members: tuple[bytes, ...], now: float) -> None:
        """Opens this tick's exchange about who is ready; at full pace, until everybody is known to be."""
        assert self.closing is not None
        self._ask_for_roster(now)
        if self.closing.complete:
            return
        if self._pending[Topic.CLOSING] < MAX_PENDING[Topic.CLOSING]:
            member = self._hub(Topic.CLOSING, members)
            if member is None:
                member = self._rng.choice([one for one in members if one != self._me])
            entry = self._directory.find(member)
            if entry is not None:
                self._open(address_of(entry), Topic.CLOSING, now)
        periods = FIRST_VISIT_PERIODS if self._hub_visits[Topic.CLOSING] == 1 else 1
        self._machine.set_alarm(ALARM, now + self._jitter(periods * self._period))

    def _hub(self, topic: Topic, members: Collection[bytes]) -> bytes | None:
        """A hub in the first exchanges, or None: then it is any mate's turn. A hub asks the others.

        Everybody has news and needs that of all: where everybody comes by it is there after two visits, about half of
        the exchanges that it takes among any. A hub that is dead or says nothing costs one or two exchanges, one that
        doles out what it knows all of them, and none the phase.
        """
        if self._hub_visits[topic] >= HUB_VISITS[topic]:
            return None
        self._hub_visits[topic] += 1
        others = [hub for hub in hubs(members, self._point) if hub != self._me]
        return self._rng.choice(others) if others else None

    def _done_with_hubs(self, topic: Topic, now: float) -> None:
        """Any mate is next, and not later for having tried."""
        self._hub_visits[topic] = HUB_VISITS[topic]
        if topic is Topic.CLOSING:
            self._machine.hasten_alarm(ALARM, now + self._jitter(self._period))

    def _ask_for_roster(self, now: float) -> None:
        """Asks one a tick of those that say they have another roster to show it."""
        assert self.closing is not None
        for signer in sorted(self.closing.elsewhere - self._roster_asked):
            entry = self._directory.find(signer)
            self._roster_asked.add(signer)
            if entry is None:
                continue

            def shown(reply: AnyMessage | None, _reason: str, now: float) -> None:
                if isinstance(reply, RosterReply):
                    self._on_roster(reply.roster, now)

            request = GetRoster(self._round_id, self._directory.cluster)
            self._machine.send(address_of(entry), request, shown, now, now + self._patience())
            return

    def spread(self, proof: Contradiction, members: tuple[bytes, ...], now: float) -> None:
        """Tells a few members of a proof; from now on everybody who asks about the closing gets it, too."""
        self._proof = proof
        for member in self._rng.sample(members, min(TOLD, len(members))):
            entry = self._directory.find(member)
            if entry is not None and member != self._me:
                self._machine.send(address_of(entry), proof, lambda *_: None, now, now + self._patience())

    def full_pace(self, now: float, *, within: float) -> None:
        """Ticks often enough to be done ``within`` so many seconds, and never less often than before."""
        self._quiet = 0
        self._period = min(self._period, within / TICKS_A_PHASE)
        self._machine.set_alarm(ALARM, now + self._rng.random() * FIRST_TICK_PERIODS * self._period)

    def _pause(self, now: float) -> None:
        rest = len(self._directory.mates) >= self._enough  # who knows too few has no reason to
        pause = self._period * (min(1 << self._quiet, SLOWEST) if rest else 1)
        self._quiet = min(self._quiet + 1, SLOWEST)
        self._machine.set_alarm(ALARM, now + self._jitter(pause))

    def _jitter(self, seconds: float) -> float:
        return seconds * self._rng.uniform(*JITTER)

    def _news(self, now: float) -> None:
        self._quiet = 0
        self._machine.hasten_alarm(ALARM, now + self._jitter(self._period))

    def _directory_targets(self) -> list[Address]:
        """A mate, or instead a stranger now and then; both as long as hardly any mate is known.

        When all mates known say the same, or they are fewer than a cluster must have, there may be others that none of
        them knows: only a stranger can tell.
        """
        mates = self._directory.mates
        entry = mates.any_but(self._me, self._rng)
        if entry is None:
            return self._stranger()
        hub = self._hub(Topic.DIRECTORY, list(mates.signers))
        mate = address_of(entry if hub is None else mates.get(hub) or entry)
        if self.complete_roster:
            return [mate]
        if len(mates) <= FEW_MATES:
            return [mate, *self._stranger()]
        seeks = len(mates) < self._enough or self._quiet
        if seeks and self._rng.random() < min(STRANGER_SHARE, SEEKERS / len(mates)):
            return self._stranger() or [mate]
        return [mate]

    def _stranger(self) -> list[Address]:
        stranger = self._strangers.next()
        return [] if stranger is None else [stranger]

    def _open(self, to: Address, topic: Topic, now: float, *, in_full: bool = False) -> None:
        """Opens an exchange. ``in_full``: names its records, to a mate whose record is missing or whose set differs."""
        salt = draw_salt(self._rng)
        mate = to.peer_id in self._directory.mates
        known = self._known(topic)
        assert known is not None  # nobody ticks about a closing before there is a roster
        have = root = b""
        records: tuple[bytes, ...] = ()
        if mate and self._quiet and topic is Topic.DIRECTORY and not in_full:
            root = known.root(salt)
        elif mate or in_full or self._strangers.is_first_contact(to):
            have = known.have(salt)
            if mate or in_full:
                records = known.if_small(of=self._expected(topic))
        at = None if mate else self._place
        start, cluster = self._round_id[:ROUND_START_BYTES], self._directory.cluster
        digest = Digest(start, topic, cluster, have, records, salt, at, root)

        def offered(reply: AnyMessage | None, _reason: str, now: float) -> None:
            self._pending[topic] -= 1
            not_yet = reply is None or (isinstance(reply, Refusal) and reply.retry)  # no process, or no round so far
            if not_yet:
                self._strangers.not_yet(to)
            if reply is None:
                self._strangers.silent(to)
            if isinstance(reply, Contradiction):
                self._on_proof(reply, now)
            if not isinstance(reply, Offer):
                if mate and (reply is None or topic is Topic.CLOSING):
                    self._done_with_hubs(topic, now)
                return
            if reply.differs and root:
                self._open(to, topic, now, in_full=True)
                return
            news = self._absorb(topic, reply.records, now)
            records = self._select(topic, reply.wanted, salt)
            if topic is Topic.DIRECTORY:
                self._heard(to, reply, now)
                if records:
                    self._news(now)  # for the other: it will be asked again soon
            elif not news:  # a hub has at least its own; in the directory it begins with as little as who asks it
                self._done_with_hubs(topic, now)
            if records:
                push = Push(start, topic, records)
                self._machine.send(to, push, lambda *_: None, now, now + self._patience())

        self._pending[topic] += 1
        self._machine.send(to, digest, offered, now, now + self._patience())

    def _patience(self) -> float:
        return max(MIN_PATIENCE_SECONDS, PATIENCE_PERIODS * self._period)

    def _heard(self, to: Address, reply: Offer, now: float) -> None:
        """Follows the advice of a stranger: of the own cluster at once; and who still knows no mate asks another."""
        self._strangers.heard(to, reply)
        if self._pending[Topic.DIRECTORY] >= MAX_PENDING[Topic.DIRECTORY]:
            return
        named = self._strangers.next_of_ours() if self._follow_ups else None
        if named is not None:
            self._follow_ups -= 1
            self._open(named, Topic.DIRECTORY, now, in_full=True)
        elif len(self._directory.mates) == 1 and self._more_strangers:
            self._more_strangers -= 1
            for stranger in self._stranger():
                self._open(stranger, Topic.DIRECTORY, now)

    def _known(self, topic: Topic) -> GossipSet[PeerRecord] | GossipSet[ReadyRecord] | None:
        if topic is Topic.DIRECTORY:
            return self._directory.mates
        return None if self.closing is None else self.closing.records

    def _expected(self, topic: Topic) -> int:
        """How many records there will be at least, if all goes well."""
        return self._enough if topic is Topic.DIRECTORY or self.closing is None else self.closing.size

    def _select(self, topic: Topic, wanted: bytes, salt: int) -> tuple[bytes, ...]:
        if not wanted:
            return ()
        known = self._known(topic)
        with suppress(MalformedMessage):
            return () if known is None else known.select(wanted, salt)
        return ()

    def _absorb(self, topic: Topic, envelopes: tuple[bytes, ...], now: float) -> int:
        """Takes records in; returns how many were news."""
        if not envelopes:
            return 0
        if topic is Topic.DIRECTORY:
            news, refused = self._directory.absorb(envelopes, now)
        elif self.closing is not None:
            news, refused = self.closing.absorb(envelopes)
        else:
            return 0
        for about in refused:
            self._machine.observe(Rejected(peer=self._name, at=now, about=about))
        if news:
            if topic is Topic.DIRECTORY:  # the closing keeps its pace
                self._news(now)
            self._on_news(now)
        return news

    def take_proofs(self, records: tuple[bytes, ...], now: float) -> None:
        """Takes in records that contradict each other: their signers are struck out."""
        _, refused = self._directory.absorb(records, now)
        for about in refused:
            self._machine.observe(Rejected(peer=self._name, at=now, about=about))

    def reply_to_digest(self, message: Digest, sender: bytes, now: float) -> Message:
        """What the asker lacks, and what is wanted of it."""
        if not self._round_id.startswith(message.round_id):
            return Refusal("another_round")
        try:
            self._absorb(message.topic, message.records, now)
            if message.topic is Topic.CLOSING:
                if self._proof is not None:
                    return self._proof
                if self.closing is None or message.cluster != self._directory.cluster:
                    return Refusal("not_closing", retry=True)
                return self.closing.records.answer(message)
            offer = self._directory.reply(message, sender, self._rng)
            if sender == self._learner and message.cluster != self._directory.cluster:
                return Offer((self._own,), b"")
            return offer
        except MalformedMessage:
            return Refusal("malformed")

    def reply_to_push(self, message: Push, now: float) -> Message:
        """Takes what was wanted."""
        if not self._round_id.startswith(message.round_id):
            return Refusal("another_round")
        self._absorb(message.topic, message.records, now)
        return Done()
