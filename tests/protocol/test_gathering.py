"""The learner asks strangers and members for records until it knows who is there; what does not verify is left out."""

import pytest

from p2p_labeldp.facts import Rejected
from p2p_labeldp.protocol import census, gathering
from p2p_labeldp.protocol.gathering import ASKED_A_CLUSTER
from p2p_labeldp.protocol.gossip import salted_id, short_id
from p2p_labeldp.protocol.messages import Digest, GetManifest, GetRoster, Offer
from protocol.little_round import (
    DEADLINES,
    MEMBERS,
    OPENED,
    Hand,
    address,
    collector,
    feed,
    ids,
    keys,
    open_round,
    record,
    rostered,
)


def test_who_asks_for_the_manifest_is_asked_for_records():
    hand = Hand(collector())
    hand.start()
    at_once = ASKED_A_CLUSTER * OPENED.clustering.count
    for i in range(1, at_once + 4):
        hand.receive(GetManifest(f"peer-{i}", 7000), keys(i).peer_id, 0.1)
    hand.run(1.0)
    assert len({send.to for send in hand.sent(Digest)}) == at_once
    hand.run(2.0)
    assert sorted(send.to.host for send in hand.sent(Digest)) == sorted(f"peer-{i}" for i in range(1, at_once + 4))
    assert all(send.message.records == () for send in hand.sent(Digest))


def test_some_strangers_are_asked_for_each_cluster_until_one_is_known_of_all(monkeypatch):
    """A few a tick would find the last of a hundred clusters when the round is over."""
    monkeypatch.setattr(gathering, "FIRST_CONTACTS_A_TICK", 1)
    hand = Hand(collector())
    hand.start()
    many = ASKED_A_CLUSTER * OPENED.clustering.count
    for i in range(100, 101 + 3 * many):
        hand.receive(GetManifest(f"peer-{i}", 7000), keys(i).peer_id, 0.1)

    def strangers(until):
        before = len(hand.sent(Digest))
        hand.run(until)
        return [send for send in hand.sent(Digest)[before:] if len(send.to.host) == len("peer-100")]

    asked = strangers(1.0)
    assert len(asked) == many
    hand.answer(asked[0], Offer((record(20, cluster=1), record(21, cluster=2)), b""), 1.1)
    asked = strangers(2.0)
    assert len(asked) == many  # of one cluster nobody is known yet
    hand.answer(asked[0], Offer((record(22, cluster=0),), b""), 2.1)
    assert len(strangers(3.0)) == 1


@pytest.mark.parametrize("hub", [3, 5])
def test_right_before_the_deadline_a_hub_is_asked_and_another(hub, monkeypatch):
    """Whoever made its id to be a hub can keep nobody out of the roster by itself."""
    monkeypatch.setattr(gathering, "meeting_point", lambda *_: keys(hub).peer_id)
    others = set()
    for seed in range(10):
        hand = Hand(collector())
        hand.machine._gathering._rng.seed(seed)
        hand.start()
        feed(hand, *(record(i) for i in MEMBERS))
        hand.run(DEADLINES.join - 0.6)
        before = len(hand.sent(Digest))
        hand.run(DEADLINES.join - 0.1)
        first, second = hand.sent(Digest)[before:]
        assert first.to == address(hub)
        others.add(second.to)
    assert address(hub) not in others
    assert len(others) > 1


def test_a_first_contact_that_does_not_answer_is_asked_again():
    hand = Hand(collector())
    hand.start()
    hand.receive(GetManifest("peer-1", 7000), keys(1).peer_id, 0.1)
    hand.run(1.0)
    hand.fail(hand.sent(Digest)[0], "unreachable", 1.1)
    hand.run(2.0)
    assert [send.to for send in hand.sent(Digest)] == [address(1)] * 2
    hand.answer(hand.sent(Digest)[1], Offer((), b""), 2.1)
    hand.run(5.0)
    assert len(hand.sent(Digest)) == 2


def test_a_stranger_does_not_send_what_is_known():
    hand = Hand(collector())
    hand.start()
    feed(hand, record(1), record(2))
    hand.receive(GetManifest("peer-9", 7000), keys(9).peer_id, 4.0)
    hand.run(6.0)
    (send,) = (send for send in hand.sent(Digest) if send.to == address(9))
    salt = send.message.salt
    assert send.message.have == b"".join(salted_id(short_id(record(i)), salt) for i in (1, 2))


def test_members_are_pulled_from_until_the_deadline_and_less_when_nothing_is_new():
    hand = Hand(collector())
    hand.start()
    feed(hand, *(record(i) for i in MEMBERS))
    answered = before = len(hand.sent(Digest))
    while (due := hand.machine.wake_at()) < DEADLINES.join:
        hand.run(due)
        for send in hand.sent(Digest)[answered:]:
            hand.answer(send, Offer((), b""), due + 0.01)
            answered += 1
    assert 4 <= answered - before <= 8  # of some fifteen periods, and two at the end
    before = answered
    hand.run(DEADLINES.report)
    assert len(hand.sent(Digest)) == before


def test_bad_records_are_refused_logged_and_not_fatal():
    elsewhere = open_round(nonce=b"\1" * 16)
    hand = rostered(record(8, opened=elsewhere), record(9)[:-1], b"", record(7, cluster=9))
    assert hand.machine.rosters[0].members == ids(MEMBERS)
    assert set(hand.machine.rosters) == {0}
    assert len(hand.facts(Rejected)) == 3


def test_an_equivocator_is_not_in_the_roster():
    hand = rostered(record(3, port=7001))
    assert hand.machine.rosters[0].members == ids((1, 2, 4, 5))


def test_a_peer_in_two_clusters_is_in_neither_roster_and_what_proves_it_comes_with_both():
    twice = record(5, cluster=1, sequence=9)
    hand = rostered(*(record(i, cluster=1) for i in (10, 11, 12)), twice)
    assert hand.machine.rosters[0].members == ids((1, 2, 3, 4))
    assert hand.machine.rosters[1].members == ids((10, 11, 12))
    for cluster in (0, 1):
        reply = hand.receive(GetRoster(OPENED.round_id, cluster), keys(1).peer_id, 17.0)
        assert reply.proofs == (record(5), twice)


def test_proofs_are_bounded_and_those_beyond_are_left_out_all_the_same(monkeypatch):
    monkeypatch.setattr(census, "MAX_PROOFS", 2)
    hand = rostered(*(record(i, port=7001) for i in (1, 2, 3)), record(6), record(7))
    assert hand.machine.rosters[0].members == ids((4, 5, 6, 7))
    reply = hand.receive(GetRoster(OPENED.round_id, 0), keys(4).peer_id, 17.0)
    assert reply.proofs == (record(1), record(1, port=7001), record(2), record(2, port=7001))
