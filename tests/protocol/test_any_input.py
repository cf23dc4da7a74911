"""Any machine state and any input: legal, or it raises and leaves the state unchanged. Every state is visited."""

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from p2p_labeldp.crypto import sealing
from p2p_labeldp.facts import Accepted, Answered, Asked, Committed, Ended, Flipped, Ready, Rejected, Reported
from p2p_labeldp.protocol import closing, collector, peer, report
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.exchanging import Exchanging
from p2p_labeldp.protocol.messages import (
    Answer,
    Ask,
    Contradiction,
    Digest,
    Done,
    GetManifest,
    GetRoster,
    ManifestReply,
    Offer,
    Push,
    Receipt,
    Refusal,
    Report,
    RosterReply,
    Topic,
)
from protocol import little_round as little
from protocol.any_input import MESSAGE_SENDERS, AnyInput, careless, snapshot
from protocol.little_round import LEARNER, MEMBERS, OPENED, ROUND, keys, record, roster
from protocol.test_wire import ANY

SETTINGS = settings(
    max_examples=40,
    stateful_step_count=25,
    phases=[Phase.generate],  # a failure is found by its seed; shrinking it would take minutes
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
ROUND_IDS = st.sampled_from([OPENED.round_id, OPENED.round_id, OPENED.round_id, bytes(32)])
ROSTER = little.open_roster()
DIGESTS = st.sampled_from([ROSTER.digest, ROSTER.digest, bytes(32)])
ASK_IDS = st.sampled_from([bytes(16), b"\1" * 16])
RECORDS = st.lists(
    st.sampled_from(
        [
            *(record(i) for i in MEMBERS),
            record(3, port=7001),
            record(3, sequence=2),
            record(4, cluster=1),
            record(7, cluster=1),
            record(8, expires=1.0),
            record(2)[:-1],
            b"",
        ]
    ),
    max_size=4,
).map(tuple)


def ready(number, holding):
    content = closing.ReadyRecord(OPENED.round_id, ROSTER.digest, holding)
    return keys(number).sign(closing.KIND, msgspec.msgpack.encode(content))


READY = {number: ready(number, True) for number in MEMBERS}
READIES = st.lists(
    st.sampled_from([*READY.values(), ready(2, False), ready(9, True)]),
    max_size=4,
).map(tuple)
ROSTERS = st.sampled_from([roster(), roster(flip_probability=0.0), roster((1, 2)), roster(signer=keys(7)), b""])
SAID = st.one_of(
    ANY,
    st.builds(Push, ROUND_IDS, st.just(Topic.DIRECTORY), RECORDS),
    st.builds(Push, ROUND_IDS, st.just(Topic.CLOSING), READIES),
    st.builds(Digest, ROUND_IDS, st.just(Topic.DIRECTORY), st.integers(0, 2), st.just(b""), RECORDS),
    st.builds(Digest, ROUND_IDS, st.just(Topic.CLOSING), st.integers(0, 1), st.just(b""), READIES),
    st.builds(Offer, RECORDS, st.sampled_from([b"", bytes(8), bytes(7)])),
    st.builds(Ask, ROUND_IDS, DIGESTS, ASK_IDS),
    st.builds(RosterReply, ROSTERS, RECORDS),
    st.builds(Refusal, st.sampled_from(["no_roster", "bad_box", "not_yet", "odd"]), st.booleans()),
    st.builds(GetRoster, ROUND_IDS, st.integers(0, 2)),
)


def sealed_answer(asker):
    """A mate's box for an asker."""
    box = keys(5).seal(ROUND.sealing_public, b"\1", info=answer_info(OPENED.round_id, ROSTER.digest, asker))
    return Answer(box)


class PeerUnderAnyInput(AnyInput):
    """Peer 1 of five."""

    visited: set = set()  # noqa: RUF012  of all runs

    def make(self):
        self.answers = 0
        self.furthest = peer.State.JOINING
        return little.peer()

    def introduce(self):
        push = Push(OPENED.round_id, Topic.DIRECTORY, tuple(record(i) for i in MEMBERS[1:]))
        self.step(lambda: self.machine.receive(push, keys(2).peer_id, self.now))

    def messages(self):
        return SAID

    def right_reply(self, send):
        match send.message:
            case Digest(topic=Topic.CLOSING):
                return Offer(tuple(READY.values())[1:], b"")
            case Digest():
                return Offer(tuple(record(i) for i in MEMBERS), b"")
            case GetRoster():
                return RosterReply(roster())
            case Ask():
                return sealed_answer(keys(1).peer_id)
            case Report():
                return Receipt(report.sign_receipt(send.message, keys(1).peer_id, keys=LEARNER))
            case _:
                return Done()

    def replied(self, message, reply):
        if isinstance(reply, Answer):
            assert isinstance(message, Ask)
            assert len(reply.box) == 1 + sealing.OVERHEAD_BYTES
            assert self.facts_of(Flipped)  # recorded before it left
            assert self.machine.state is peer.State.EXCHANGING

    def check(self):
        state = self.machine.state
        self.visited.add(state)
        assert state.value >= self.furthest.value  # never back
        self.furthest = state
        ends = self.facts_of(Ended)
        assert len(ends) == (state is peer.State.ENDED)
        for kind in (Asked, Flipped, Ready, Committed, Reported):
            assert len(self.facts_of(kind)) <= 1
        askers = [fact.asker for fact in self.facts_of(Answered)]
        assert len(set(askers)) == len(askers)
        asks = [send for send in self.sent if isinstance(send.message, Ask)]
        assert len({send.to for send in asks} | {send.message.ask_id for send in asks}) in (0, 2)  # one mate, one ask
        assert len({send.message for send in self.sent if isinstance(send.message, Report)}) <= 1
        assert bool(self.facts_of(Reported)) >= any(isinstance(send.message, Report) for send in self.sent)
        if self.facts_of(Reported):
            assert self.facts_of(Ready)
        assert all(fact.about.isprintable() for fact in self.facts_of(Rejected))

    @rule(round_id=ROUND_IDS, digest=DIGESTS, ask_id=ASK_IDS, sender=MESSAGE_SENDERS)
    def is_asked(self, round_id, digest, ask_id, sender):
        self.hears(Ask(round_id, digest, ask_id), sender)

    @rule(first=ROSTERS, second=ROSTERS, sender=MESSAGE_SENDERS)
    def is_shown_two_rosters(self, first, second, sender):
        self.hears(Contradiction(first, second), sender)


class CollectorUnderAnyInput(AnyInput):
    """A learner whose cluster has five members."""

    visited: set = set()  # noqa: RUF012  of all runs

    def make(self):
        self.rosters = {}
        return little.collector()

    def introduce(self):
        self.step(lambda: self.machine.receive(GetManifest("peer-1", 7000), keys(1).peer_id, self.now))

    def messages(self):
        return st.one_of(SAID, st.builds(GetManifest, st.just("peer-1"), st.integers(1, 5)), self.reports())

    def reports(self):
        signed = self.machine.rosters.get(0)
        if signed is None:
            return st.builds(Report, ROUND_IDS, DIGESTS, st.binary(max_size=50))
        opened = little.open_roster(signed.envelope)

        def made(reporter, label, features):
            info = answer_info(OPENED.round_id, opened.digest, keys(reporter).peer_id)
            box = keys(5).seal(ROUND.sealing_public, bytes([label]), info=info)
            return report.make(features, box, roster=opened, keys=keys(reporter), round_key=ROUND.sealing_public)

        return st.builds(
            made, st.integers(1, 6), st.integers(0, 2), st.sampled_from([(0.1, 0.2), (0.1,), (0.1, float("nan"))])
        )

    def right_reply(self, send):
        return Offer(tuple(record(i) for i in MEMBERS), b"")

    def replied(self, message, reply):
        if isinstance(reply, Receipt):
            assert isinstance(message, Report)
        assert isinstance(reply, ManifestReply | RosterReply | Receipt | Refusal)  # and no peer record, ever

    def check(self):
        state = self.machine.state
        self.visited.add(state)
        accepted = [fact.peer for fact in self.facts_of(Accepted)]
        assert len(set(accepted)) == len(accepted) == len(self.machine.reports)
        assert set(self.machine.reports) <= {m for r in self.machine.rosters.values() for m in r.members}
        signed = {cluster: one.envelope for cluster, one in self.machine.rosters.items()}
        assert not self.rosters or signed == self.rosters  # signed once
        self.rosters = signed
        listed = [member for one in self.machine.rosters.values() for member in one.members]
        assert len(set(listed)) == len(listed)  # nobody in two
        assert all(fact.about.isprintable() for fact in self.facts_of(Rejected))

    @rule(data=st.data(), sender=MESSAGE_SENDERS)
    def is_reported_to(self, data, sender):
        self.hears(data.draw(self.reports()), sender)


CASES = {PeerUnderAnyInput: peer.State, CollectorUnderAnyInput: collector.State}


@pytest.mark.parametrize("machine", CASES)
def test_any_input_in_any_state_is_legal_or_raises_and_changes_nothing(machine):
    machine.visited.clear()
    run_state_machine_as_test(machine, settings=SETTINGS)
    assert machine.visited == set(CASES[machine])


@pytest.mark.parametrize("machine", CASES)
def test_an_illegal_input_that_changes_anything_is_found(machine, monkeypatch):
    """The control."""
    careless(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=SETTINGS)


def test_a_peer_that_answers_when_it_is_too_late_is_found(monkeypatch):
    """The control of what must hold."""
    answer = Exchanging.reply

    def any_time(self, message, sender, now):
        one = self._peer
        state = one.state
        if state in (peer.State.CLOSING, peer.State.REPORTING):
            one.state = peer.State.EXCHANGING
        try:
            return answer(self, message, sender, now)
        finally:
            one.state = state

    monkeypatch.setattr(Exchanging, "reply", any_time)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(PeerUnderAnyInput, settings=settings(SETTINGS, max_examples=400))  # ends when found


def test_a_snapshot_sees_however_deep():
    one, two = little.committed().machine, little.committed().machine
    assert snapshot(one) == snapshot(two)
    for change in (
        lambda m: m.part.exchange._given.update({b"a": (b"b", b"c")}),
        lambda m: m.rng.random(),
        lambda m: m.set_alarm("ask", 1.0),
        lambda m: m.directory.mates._refused.add(b"x"),
        lambda m: m._gossip._strangers._asked.add(b"x"),
        lambda m: m.ledger._releases.update({"x": []}),
    ):
        two = little.committed().machine
        change(two)
        assert snapshot(one) != snapshot(two)
