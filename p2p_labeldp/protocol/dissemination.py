"""How a peer spreads records: whom it gossips with, how often, and what it says.

Each tick opens one or two push-pull exchanges. While everything is news a peer keeps its full pace; each tick without
news doubles the pause, up to a few periods, and any news restores the pace. So a directory that has converged is nearly
silent, and a late comer still wakes it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from p2p_labeldp.errors import MalformedMessage
from p2p_labeldp.facts import Name, Rejected
from p2p_labeldp.protocol.closing import Closing
from p2p_labeldp.protocol.directory import Directory, address_of
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.messages import AnyMessage, Digest, Done, Message, Offer, Push, Refusal, Topic

SLOWEST = 4  # periods between exchanges that keep finding nothing new
LONELY_STRANGERS = 2  # asked a tick while no mate is known
FEW_MATES = 4  # below it a stranger is asked beside a mate
STRANGER_SHARE = 0.4  # of the ticks in which strangers may help
TICKS_A_PHASE = 9  # six exchanges spread what is news to everybody, with the pushes between them
PATIENCE_PERIODS = 3  # for the reply in an exchange: a stopped mate must not hold up the others
MIN_PATIENCE_SECONDS = 1.0
MAX_PENDING = 2  # exchanges not yet answered; on a machine or network that is too slow, more would only add to it
ALARM = "gossip"


class Dissemination:
    """The gossip of one peer.

    Args:
        machine: Whose alarms and sends are used.
        name: The peer's name in facts.
        directory: Peer records.
        own: The peer's own signed record.
        round_id: Messages of other rounds are refused.
        contacts: First contacts.
        enough: Members a cluster has at least; who knows fewer keeps asking strangers.
        period: Seconds between exchanges at full pace.
        rng: Whom to gossip with.
        on_news: Called with ``now`` when records of the own cluster were new.
    """

    def __init__(
        self,
        *,
        machine: Machine,
        name: Name,
        directory: Directory,
        own: bytes,
        round_id: bytes,
        contacts: tuple[Address, ...],
        enough: int,
        period: float,
        rng: random.Random,
        on_news: Callable[[float], None],
    ) -> None:
        self.closing: Closing | None = None  # given once there is a roster
        self.complete_roster = False  # a roster is waiting for records that some mate must have: strangers don't
        self._machine = machine
        self._name = name
        self._directory = directory
        self._own = own
        self._me = next(iter(directory.mates)).signer
        self._round_id = round_id
        self._first_contacts = frozenset(contacts)
        self._contacts = list(contacts)
        self._enough = enough
        self._period = period
        self._rng = rng
        self._on_news = on_news
        self._introduced: set[bytes] = set()  # who has our record
        self._quiet = 0
        self._pending = 0

    def tick_directory(self, now: float) -> None:
        """Opens this tick's exchanges about the directory."""
        if self._pending < MAX_PENDING:
            for to in self._directory_targets():
                self._open(to, Topic.DIRECTORY, now)
        self._pause(now)

    def tick_closing(self, members: tuple[bytes, ...], now: float) -> None:
        """Opens this tick's exchange about who is ready; at full pace, until everybody is known to be."""
        assert self.closing is not None
        if self.closing.complete:
            return
        others = [member for member in members if member != self._me]
        entry = self._directory.find(self._rng.choice(others))
        if entry is not None and self._pending < MAX_PENDING:
            self._open(address_of(entry), Topic.CLOSING, now)
        self._machine.set_alarm(ALARM, now + self._jitter(self._period))

    def full_pace(self, now: float, *, within: float) -> None:
        """Ticks often enough to be done ``within`` so many seconds, and never less often than before."""
        self._quiet = 0
        self._period = min(self._period, within / TICKS_A_PHASE)
        self._machine.set_alarm(ALARM, now + self._rng.random() * self._period)

    def _pause(self, now: float) -> None:
        pause = self._period * min(1 << self._quiet, SLOWEST)
        if len(self._directory.mates) >= self._enough:  # who knows too few has no reason to rest
            self._quiet = min(self._quiet + 1, SLOWEST)
        self._machine.set_alarm(ALARM, now + self._jitter(pause))

    def _jitter(self, seconds: float) -> float:
        return seconds * (0.75 + 0.5 * self._rng.random())

    def _news(self, now: float) -> None:
        self._quiet = 0
        self._machine.hasten_alarm(ALARM, now + self._jitter(self._period))

    def _directory_targets(self) -> list[Address]:
        """A mate, or instead a stranger now and then; both as long as hardly any mate is known.

        Strangers are the first contacts in turn, then contacts that other strangers named. When all mates known say
        the same, or they are fewer than a cluster must have, there may be others that none of them knows: only a
        stranger can tell.
        """
        mates = [entry for entry in self._directory.mates if entry.signer != self._me]
        if not mates:
            return self._strangers(LONELY_STRANGERS)
        mate = address_of(self._rng.choice(mates))
        if self.complete_roster:
            return [mate]
        if len(mates) < FEW_MATES:
            return [mate, *self._strangers(1)]
        if (self._quiet or len(mates) + 1 < self._enough) and self._rng.random() < STRANGER_SHARE:
            return self._strangers(1) or [mate]
        return [mate]

    def _strangers(self, count: int) -> list[Address]:
        found = []
        for _ in range(count):
            if self._contacts:
                found.append(self._contacts.pop())
            elif (stranger := self._directory.some_contact(self._rng)) is not None:
                found.append(address_of(stranger))
        return found

    def _open(self, to: Address, topic: Topic, now: float) -> None:
        if topic is Topic.CLOSING:
            assert self.closing is not None
            have, records = self.closing.records.have(), self.closing.records.if_small()
        elif to.peer_id in self._directory.mates:
            have, records = self._directory.mates.have(), self._directory.mates.if_small()
        else:
            have, records = self._directory.mates.have(), () if to.peer_id in self._introduced else (self._own,)
        digest = Digest(self._round_id, topic, self._directory.cluster, have, records)

        def offered(reply: AnyMessage | None, _reason: str, now: float) -> None:
            self._pending -= 1
            if reply is None and to in self._first_contacts and to not in self._contacts:
                self._contacts.insert(0, to)  # perhaps it has not started yet
            if not isinstance(reply, Offer):
                return
            if topic is Topic.DIRECTORY:
                self._introduced.add(to.peer_id)
            self._absorb(topic, reply.records, now)
            records = self._select(topic, reply.wanted)
            if records:
                self._news(now)  # for the other: it will be asked again soon
                push = Push(self._round_id, topic, records)
                self._machine.send(to, push, lambda *_: None, now, now + self._patience())

        self._pending += 1
        self._machine.send(to, digest, offered, now, now + self._patience())

    def _patience(self) -> float:
        return max(MIN_PATIENCE_SECONDS, PATIENCE_PERIODS * self._period)

    def _select(self, topic: Topic, wanted: bytes) -> tuple[bytes, ...]:
        try:
            if topic is Topic.DIRECTORY:
                return self._directory.mates.select(wanted)
            return () if self.closing is None else self.closing.records.select(wanted)
        except MalformedMessage:
            return ()

    def _absorb(self, topic: Topic, envelopes: tuple[bytes, ...], now: float) -> None:
        if topic is Topic.DIRECTORY:
            news, refused = self._directory.absorb(envelopes, now)
        elif self.closing is not None:
            news, refused = self.closing.absorb(envelopes)
        else:
            return
        for about in refused:
            self._machine.observe(Rejected(peer=self._name, at=now, about=about))
        if news:
            self._news(now)
            self._on_news(now)

    def take_proofs(self, records: tuple[bytes, ...], now: float) -> None:
        """Takes in records that contradict each other: their signers are struck out."""
        _, refused = self._directory.absorb(records, now)
        for about in refused:
            self._machine.observe(Rejected(peer=self._name, at=now, about=about))

    def reply_to_digest(self, message: Digest, now: float) -> Message:
        """What the asker lacks, and what is wanted of it."""
        if message.round_id != self._round_id:
            return Refusal("another_round")
        try:
            self._absorb(message.topic, message.records, now)
            if message.topic is Topic.CLOSING:
                if self.closing is None or message.cluster != self._directory.cluster:
                    return Refusal("not_closing", retry=True)
                return Offer(*self.closing.records.missing_from(message.have))
            return Offer(*self._directory.reply(message.cluster, message.have, self._own, self._rng))
        except MalformedMessage:
            return Refusal("malformed")

    def reply_to_push(self, message: Push, now: float) -> Message:
        """Takes what was wanted."""
        if message.round_id != self._round_id:
            return Refusal("another_round")
        self._absorb(message.topic, message.records, now)
        return Done()
