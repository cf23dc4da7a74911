"""What Byzantine parties do. Each behaves as a peer, too: a liar that takes no part is merely absent.

A lie is a change of replies, a few messages of its own, or both. Messages are signed, so a liar speaks in its own name
alone; it may know everything, rosters and other people's messages included.

    equivocates     two records of one sequence, two ready records, to different mates
    stale           shows and names rosters that are not the round's
    garbage         replies of the wrong kind, or bytes that mean nothing
    floods          hundreds of asks, digests and pushes
    silent          says nothing to some, ever
    double_asks     asks everybody, under several ids, also too early and too late
    double_reports  reports again with other features and labels
    replays         messages of another round, and what others sent in this one
    stranger        asks and reports without being in any roster
    learner:        false_receipts, weak_roster (flips too seldom), short_roster (leaves a peer out)
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from p2p_labeldp.network.swarm.faults import LEARNER, STRANGER, Lie
from p2p_labeldp.protocol import report as reports
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.closing import KIND as READY
from p2p_labeldp.protocol.closing import ReadyRecord
from p2p_labeldp.protocol.directory import PeerRecord, sign_record
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.messages import (
    DIGEST_BYTES,
    Answer,
    AnyMessage,
    Ask,
    Contradiction,
    Digest,
    Done,
    GetRoster,
    Message,
    Offer,
    Push,
    Receipt,
    Refusal,
    Report,
    RosterReply,
    Topic,
)
from p2p_labeldp.protocol.roster import OpenedRoster

if TYPE_CHECKING:
    from p2p_labeldp.network.swarm.scenario import Play

OF_PEERS = (
    "equivocates",
    "stale",
    "garbage",
    "floods",
    "silent",
    "double_asks",
    "double_reports",
    "replays",
)
OF_STRANGERS = ("stranger",)
OF_THE_LEARNER = ("false_receipts", "weak_roster", "short_roster")
FLOOD = 200


def tell(play: Play, lie: Lie, rng: random.Random) -> None:
    """Sets a lie up before the round."""
    if lie.party == LEARNER:
        _tamper(play, play.cast.learner.peer_id, partial(_LEARNER[lie.how], play))
        return
    liar = _Liar(play, lie.party, rng)
    getattr(liar, lie.how)()


def _tamper(play: Play, party: bytes, tamper: Callable[[AnyMessage, bytes, Message | None], Message | None]) -> None:
    before = play.network.tampers.get(party)

    def both(message: AnyMessage, sender: bytes, reply: Message | None) -> Message | None:
        return tamper(message, sender, reply if before is None else before(message, sender, reply))

    play.network.tampers[party] = both


class _Liar:
    def __init__(self, play: Play, party: int, rng: random.Random) -> None:
        self.play, self.rng = play, rng
        self.keys = play.cast.stranger if party == STRANGER else play.cast.rings[party]
        self.party = party
        self.d = play.cast.opened.manifest.deadlines
        self.round_id = play.cast.opened.round_id

    def _times(self, count: int, start: float, end: float, action: Callable[[], None]) -> None:
        for _ in range(count):
            self.play.network.at(self.rng.uniform(start, end), action)

    def _somebody(self) -> bytes:
        return self.rng.choice(self.play.cast.rings).peer_id

    def _say(self, to: bytes, message: AnyMessage) -> None:
        self.play.network.inject(self.keys.peer_id, to, message)

    def _roster(self) -> OpenedRoster | None:
        """The one the liar is in, or any."""
        found = [rosters.reopen(one.envelope, keys=self.keys) for one in self.play.collector.rosters.values()]
        mine = [one for one in found if self.keys.peer_id in one.members]
        return next(iter(mine or found), None)

    def _ask(self, *, round_id: bytes | None = None, digest: bytes | None = None) -> None:
        roster = self._roster()
        if roster is not None:
            ask = Ask(round_id or self.round_id, digest or roster.digest, self.rng.randbytes(16))
            self._say(self.rng.choice(roster.members), ask)

    def _report(self, *, round_id: bytes | None = None) -> None:
        roster = self._roster()
        if roster is None:
            return
        place = round_id or self.round_id
        manifest = self.play.cast.opened.manifest
        label = bytes([self.rng.randrange(2)])
        box = self.keys.seal(manifest.round_key, label, info=answer_info(place, roster.digest, self.keys.peer_id))
        features = (self.rng.random(),) * self.play.cast.opened.clustering.dimension
        sealed = self.keys.seal(
            manifest.round_key,
            msgspec.msgpack.encode(reports.Content(features, box)),
            info=reports.report_info(place, roster.digest, self.keys.peer_id),
        )
        self._say(self.play.cast.learner.peer_id, Report(place, roster.digest, sealed))

    def _record(self) -> bytes:
        record = PeerRecord(
            round_id=self.round_id,
            cluster=self.rng.randrange(self.play.cast.opened.clustering.count),
            host=f"lie-{self.rng.randrange(3)}",
            port=1,
            sealing_key=self.keys.sealing_public,
            sequence=self.rng.choice((7, 7, 8)),
            expires=self.d.report,
            ordinal=max(self.party, 0),
        )
        return sign_record(record, self.keys)

    def _ready(self, *, digest: bytes | None = None) -> None:
        roster = self._roster()
        if roster is not None:
            record = ReadyRecord(self.round_id, digest or roster.digest, self.rng.random() < 0.5)
            envelope = self.keys.sign(READY, msgspec.msgpack.encode(record))
            self._say(self._somebody(), Push(self.round_id, Topic.CLOSING, (envelope,)))

    # -- each lie --------------------------------------------------------------------------------------------------

    def equivocates(self) -> None:
        topic = Topic.DIRECTORY
        self._times(
            6, 0.5, self.d.exchange, lambda: self._say(self._somebody(), Push(self.round_id, topic, (self._record(),)))
        )
        self._times(6, self.d.exchange, self.d.closing, self._ready)

    def stale(self) -> None:
        def other(message: AnyMessage, _sender: bytes, reply: Message | None) -> Message | None:
            return RosterReply(self.rng.randbytes(80)) if isinstance(message, GetRoster) else reply

        _tamper(self.play, self.keys.peer_id, other)
        self._times(6, self.d.join, self.d.closing, lambda: self._ask(digest=self.rng.randbytes(32)))
        self._times(6, self.d.exchange, self.d.closing, lambda: self._ready(digest=self.rng.randbytes(32)))

        def accuse() -> None:
            roster = self._roster()
            if roster is not None:
                self._say(self._somebody(), Contradiction(roster.envelope, self.rng.randbytes(90)))

        self._times(4, self.d.join, self.d.closing, accuse)

    def garbage(self) -> None:
        def nonsense(_message: AnyMessage, _sender: bytes, reply: Message | None) -> Message | None:
            bytes_ = self.rng.randbytes(self.rng.randrange(200))
            return self.rng.choice(
                (reply, reply, Done(), Answer(bytes_), Offer((bytes_,), bytes_), Receipt(bytes_), Refusal("no"))
            )

        _tamper(self.play, self.keys.peer_id, nonsense)

        def shout() -> None:
            noise = self.rng.randbytes(self.rng.randrange(1, 200))
            topic = self.rng.choice((Topic.DIRECTORY, Topic.CLOSING))
            some = Digest(self.round_id[:8], topic, self.rng.randrange(4), noise, (noise,))
            self._say(self._somebody(), self.rng.choice((some, Push(self.round_id, topic, (noise,)), Receipt(noise))))

        self._times(20, 0.5, self.d.report, shout)

    def floods(self) -> None:
        self._times(FLOOD, 0.5, self.d.report, self._ask)
        self._times(
            FLOOD // 4,
            0.5,
            self.d.report,
            lambda: self._say(self._somebody(), Push(self.round_id, Topic.DIRECTORY, ())),
        )

    def silent(self) -> None:
        everybody = [self.play.cast.learner.peer_id, *(ring.peer_id for ring in self.play.cast.rings)]
        shunned = {one for one in everybody if self.rng.random() < 0.5}
        _tamper(self.play, self.keys.peer_id, lambda _, sender, reply: None if sender in shunned else reply)

    def double_asks(self) -> None:
        self._times(30, self.d.join, self.d.closing, self._ask)

    def double_reports(self) -> None:
        self._times(8, self.d.exchange, self.d.report, self._report)

    def replays(self) -> None:
        old = self.rng.randbytes(32)
        self._times(8, self.d.join, self.d.closing, lambda: self._ask(round_id=old))
        self._times(4, self.d.closing, self.d.report, lambda: self._report(round_id=old))

        def again() -> None:
            overheard = self.play.overheard
            if overheard:
                to, message = self.rng.choice(overheard)
                self._say(to, message)

        self._times(40, self.d.join, self.d.report, again)

    def stranger(self) -> None:
        self._times(10, self.d.join, self.d.exchange, self._ask)
        self._times(4, self.d.closing, self.d.report, self._report)


def _false_receipts(play: Play, message: AnyMessage, sender: bytes, reply: Message | None) -> Message | None:
    """For a report that it threw away: of another one, but signed as it should be."""
    if not isinstance(message, Report):
        return reply
    other = msgspec.structs.replace(message, sealed=message.sealed + b"\0")
    return Receipt(reports.sign_receipt(other, sender, keys=play.cast.learner_keys))


def _altered(play: Play, reply: Message | None, **changes: object) -> Message | None:
    if not isinstance(reply, RosterReply):
        return reply
    roster = rosters.reopen(reply.roster, keys=play.cast.learner_keys).roster
    changed = msgspec.structs.replace(roster, **changes)
    return RosterReply(play.cast.learner_keys.sign(rosters.KIND, msgspec.msgpack.encode(changed)), reply.proofs)


def _weak_roster(play: Play, _message: AnyMessage, _sender: bytes, reply: Message | None) -> Message | None:
    fixed = play.study.terms.flip_probability
    assert fixed is not None  # scenarios fix the flip
    return _altered(play, reply, flip_probability=fixed / 2)


def _short_roster(play: Play, _message: AnyMessage, _sender: bytes, reply: Message | None) -> Message | None:
    if not isinstance(reply, RosterReply):
        return reply
    members = rosters.reopen(reply.roster, keys=play.cast.learner_keys).roster.members[DIGEST_BYTES:]
    size = max(len(members) // DIGEST_BYTES, 2)  # of one member there is no plan, and the liar states that of two
    plan = rosters.plan_for(size, play.study.terms)
    return _altered(play, reply, members=members, delta=plan.delta, holding_minimum=plan.holding_minimum)


_LEARNER = {"false_receipts": _false_receipts, "weak_roster": _weak_roster, "short_roster": _short_roster}
