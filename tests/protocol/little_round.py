"""A round small enough to play by hand: real keys, three clusters on a line, and one peer under test."""

from functools import lru_cache

import msgspec

from p2p_labeldp import randomness
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Answered, Ended, Flipped
from p2p_labeldp.labels import Example, LabelSpace
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.collector import Collector, State
from p2p_labeldp.protocol.directory import PeerRecord, sign_record
from p2p_labeldp.protocol.effects import Address, Persist, Send
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.manifest import Deadlines, Manifest
from p2p_labeldp.protocol.messages import Ask, Digest, GetManifest, GetRoster, Offer, Push, RosterReply, Topic
from p2p_labeldp.protocol.peer import Peer

LEARNER, ROUND = Keys(b"L" * 32), Keys(b"R" * 32)
LEARNER_ADDRESS = Address(LEARNER.peer_id, "learner", 1)
DEADLINES = Deadlines(join=16.0, exchange=24.0, closing=32.0, report=40.0)
CLASSES = ("no", "yes")
MEMBERS = (1, 2, 3, 4, 5)  # the cluster of most tests; h = 5


@lru_cache
def keys(number):
    """The key ring of one party; no two are alike."""
    return Keys(number.to_bytes(32, "big"))


def address(number):
    return Address(keys(number).peer_id, f"peer-{number}", 7000)


def manifest(**changes):
    clustering = Clustering(
        mean=[0.0, 0.0], scale=[1.0, 1.0], centroids=[[0, 0], [10, 0], [20, 0]], cluster_of_centroid=[0, 1, 2]
    )
    values = {
        "classes": CLASSES,
        "clustering": clustering.to_payload(),
        "target_epsilon": 1.0,
        "flip_probability": None,
        "tolerated_loss": 0.05,
        "minimum_size": 3,
        "deadlines": DEADLINES,
        "gossip_period": 1.0,
        "round_key": ROUND.sealing_public,
        "study": True,
        "opened": 0.0,
        "nonce": bytes(16),
    }
    return Manifest(**{**values, **changes})


def open_round(**changes):
    """The manifest as a peer has it, verified."""
    envelope = manifests.sign(manifest(**changes), LEARNER)
    return manifests.open_manifest(envelope, keys=LEARNER, learner=LEARNER.peer_id)


OPENED = open_round()


def content(number, *, opened=OPENED, **changes):
    values = {
        "round_id": opened.round_id,
        "cluster": 0,
        "host": f"peer-{number}",
        "port": 7000,
        "sealing_key": keys(number).sealing_public,
        "sequence": 0,
        "expires": DEADLINES.report,
        "ordinal": number,
    }
    return PeerRecord(**{**values, **changes})


def record(number, *, opened=OPENED, **changes):
    """The signed record of a party."""
    return sign_record(content(number, opened=opened, **changes), keys(number))


def ids(numbers):
    return tuple(keys(number).peer_id for number in numbers)


def roster(members=MEMBERS, *, opened=OPENED, signer=LEARNER, **changes):
    """A signed roster; as the learner would make it, but for ``changes``."""
    terms = opened.manifest
    plan = rosters.plan_for(max(len(members), 2), terms)
    values = {
        "round_id": opened.round_id,
        "cluster": 0,
        "members": b"".join(ids(members)),
        "delta": plan.delta,
        "holding_minimum": plan.holding_minimum,
        "flip_probability": plan.flip_probability,
    }
    return signer.sign(rosters.KIND, msgspec.msgpack.encode(rosters.Roster(**{**values, **changes})))


def open_roster(envelope=None, *, opened=OPENED):
    return rosters.open_roster(envelope or roster(opened=opened), keys=LEARNER, opened=opened, cluster=0)


def example(number=1, label=0):
    return Example(features=(0.1, 0.2), label=label, label_id=str(number))


def brought(number=1, *, opened=OPENED, label=0, seed=1, **changes):
    """What a peer's constructor takes."""
    values = {
        "opened": opened,
        "example": example(number, label),
        "label_space": LabelSpace(classes=CLASSES),
        "keys": keys(number),
        "randomness": randomness.replay(seed, number),
        "address": address(number),
        "learner": LEARNER_ADDRESS,
        "contacts": (),
        "ordinal": number,
        "study": True,
    }
    return {**values, **changes}


def peer(number=1, **changes):
    return Peer(**brought(number, **changes))


def collector(*, opened=OPENED, envelope=b"manifest"):
    return Collector(
        envelope=envelope,
        opened=opened,
        keys=LEARNER,
        round_keys=ROUND,
        rng=randomness.replay(0, 0).gossip(),
    )


class Hand:
    """Drives one machine by hand and keeps all it did, in order."""

    def __init__(self, machine):
        self.machine = machine
        self.effects = []

    def settle(self):
        new = self.machine.effects()
        self.effects += new
        return new

    def start(self, now=0.0):
        self.machine.start(now)
        return self.settle()

    def run(self, until):
        """Lets time pass; nobody answers anything, and a peer's gossip finds nobody."""
        while (due := self.machine.wake_at()) is not None and due <= until:
            self.machine.wake(due)
            for effect in self.settle():
                if isinstance(self.machine, Peer) and isinstance(effect, Send) and isinstance(effect.message, Digest):
                    self.fail(effect, "unreachable", due)

    def receive(self, message, sender, now):
        reply = self.machine.receive(message, sender, now)
        self.settle()
        return reply

    def tell(self, *records, now=1.0):
        """Somebody pushes peer records."""
        return self.receive(Push(self.machine.opened.round_id, Topic.DIRECTORY, records), keys(99).peer_id, now)

    def answer(self, send, reply, now):
        self.machine.answered(send.send_id, reply, now)
        return self.settle()

    def fail(self, send, reason, now):
        self.machine.failed(send.send_id, reason, now)
        return self.settle()

    def sent(self, kind):
        return [e for e in self.effects if isinstance(e, Send) and isinstance(e.message, kind)]

    def facts(self, kind):
        return [e.fact for e in self.effects if not isinstance(e, Send) and isinstance(e.fact, kind)]

    def persisted(self, kind):
        return [e.fact for e in self.effects if isinstance(e, Persist) and isinstance(e.fact, kind)]

    @property
    def end(self):
        """Outcome and reason, of exactly one end."""
        (ended,) = self.persisted(Ended)
        assert self.machine.over
        return ended.outcome, ended.reason

    @property
    def label_is_untouched(self):
        return not (self.sent(Ask) or self.facts(Flipped) or self.facts(Answered))


def feed(hand, *records, now=2.0):
    """The learner's next question is answered with these records."""
    before = len(hand.sent(Digest))
    hand.receive(GetManifest("peer-1", 7000), keys(1).peer_id, now)
    while len(hand.sent(Digest)) == before:
        hand.run(hand.machine.wake_at())
    hand.answer(hand.sent(Digest)[before], Offer(records, b""), now + 2.0)


def rostered(*more, opened=OPENED, members=MEMBERS):
    """A learner that has signed the roster of these peers."""
    hand = Hand(collector(opened=opened))
    hand.start()
    feed(hand, *(record(i, opened=opened) for i in members), *more)
    hand.run(DEADLINES.join)
    assert hand.machine.state is State.ROSTERED
    return hand


def gathered(number=1, *, members=MEMBERS, opened=OPENED, records=None, **changes):
    """A peer that knows its mates and has asked the learner for the roster."""
    hand = Hand(peer(number, opened=opened, **changes))
    hand.start()
    if records is None:
        records = [record(i, opened=opened) for i in members if i != number]
    hand.tell(*records)
    hand.run(DEADLINES.join + 3.2)
    assert len(hand.sent(GetRoster)) == 1
    return hand


def given(envelope, *, hand=None, now=DEADLINES.join + 3.2, **changes):
    """A gathered peer that got this roster from the learner, at the end of the exchange phase."""
    hand = hand or gathered(**changes)
    hand.answer(hand.sent(GetRoster)[0], RosterReply(envelope), now)
    return hand


def committed(number=1, **changes):
    """A peer in the exchange phase, which has asked nobody yet."""
    hand = gathered(number, **changes)
    opened = changes.get("opened", OPENED)
    return given(roster(changes.get("members", MEMBERS), opened=opened), hand=hand)


def back(hand, now, *, number=1, **changes):
    """The same peer, started again from what it persisted."""
    facts = hand.persisted(object)
    ledger = Ledger(fact for fact in facts if isinstance(fact, Flipped))
    again = Hand(Peer.restore(facts, **brought(number, ledger=ledger, **changes)))
    again.start(now)
    return again
