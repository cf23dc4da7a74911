"""The learner's machine signs one roster a cluster, accepts one report a peer, and serves no peer records."""

import msgspec
import pytest

from p2p_labeldp.facts import Accepted, Rejected
from p2p_labeldp.protocol import census
from p2p_labeldp.protocol import collector as collectors
from p2p_labeldp.protocol import report as reports
from p2p_labeldp.protocol.collector import ASKED_A_CLUSTER, State
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.gossip import salted_id, short_id
from p2p_labeldp.protocol.kept import exported
from p2p_labeldp.protocol.messages import (
    Answer,
    Ask,
    Digest,
    Done,
    GetManifest,
    GetRoster,
    ManifestReply,
    Offer,
    Push,
    Receipt,
    Refusal,
    RosterReply,
    Topic,
)
from protocol.little_round import (
    CLASSES,
    DEADLINES,
    LEARNER,
    OPENED,
    ROUND,
    Hand,
    address,
    collector,
    ids,
    keys,
    open_roster,
    open_round,
    record,
)

MEMBERS = (1, 2, 3, 4, 5)


def feed(hand, *records, now=2.0):
    """The learner's next question is answered with these records."""
    before = len(hand.sent(Digest))
    hand.receive(GetManifest("peer-1", 7000), keys(1).peer_id, now)
    while len(hand.sent(Digest)) == before:
        hand.run(hand.machine.wake_at())
    hand.answer(hand.sent(Digest)[before], Offer(records, b""), now + 2.0)


def rostered(*more, opened=OPENED, members=MEMBERS):
    hand = Hand(collector(opened=opened))
    hand.start()
    feed(hand, *(record(i, opened=opened) for i in members), *more)
    hand.run(DEADLINES.join)
    assert hand.machine.state is State.ROSTERED
    return hand


def accepting(**changes):
    hand = rostered(**changes)
    hand.run(DEADLINES.closing)
    assert hand.machine.state is State.ACCEPTING
    return hand


def report(hand, reporter=1, *, label=1, features=(0.1, 0.2), box=None, cluster=0):
    signed = open_roster(hand.machine.rosters[cluster].envelope, opened=hand.machine.opened)
    info = answer_info(signed.roster.round_id, signed.digest, keys(reporter).peer_id)
    box = keys(2).seal(ROUND.sealing_public, bytes([label]), info=info) if box is None else box
    return reports.make(features, box, roster=signed, keys=keys(reporter), round_key=ROUND.sealing_public)


NOW = DEADLINES.closing + 1.0


# -- gathering ------------------------------------------------------------------------------------------------------


def test_everybody_gets_the_manifest_and_the_time():
    hand = Hand(collector(envelope=b"the manifest"))
    hand.start()
    assert hand.receive(GetManifest("h", 1), keys(1).peer_id, 3.25) == ManifestReply(b"the manifest", 3.25)


def test_the_learner_serves_no_peer_records():
    hand = rostered()
    for message in (
        Digest(OPENED.round_id, Topic.DIRECTORY, 0, b"", ()),
        Digest(OPENED.round_id, Topic.CLOSING, 0, b"", ()),
        Push(OPENED.round_id, Topic.DIRECTORY, (record(7),)),
        Ask(OPENED.round_id, bytes(32), bytes(16)),
        Answer(b""),
        Done(),
    ):
        assert hand.receive(message, keys(1).peer_id, NOW) == Refusal("not_for_a_learner")


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
    monkeypatch.setattr(collectors, "FIRST_CONTACTS_A_TICK", 1)
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
    monkeypatch.setattr(collectors, "meeting_point", lambda *_: keys(hub).peer_id)
    others = set()
    for seed in range(10):
        hand = Hand(collector())
        hand.machine._rng.seed(seed)
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


# -- rosters --------------------------------------------------------------------------------------------------------


def test_each_cluster_has_one_roster_in_order_of_ordinal():
    hand = rostered(*(record(i, cluster=1) for i in (12, 11, 10)))
    assert hand.machine.rosters[0].members == ids(MEMBERS)
    assert hand.machine.rosters[1].members == ids((10, 11, 12))
    opened = open_roster(hand.machine.rosters[0].envelope)
    assert opened.digest == hand.machine.rosters[0].digest
    assert hand.machine.rosters[0].plan.holding_minimum == 5


def test_ids_break_ties_of_ordinals():
    numbers = (1, 2, 3, 4)
    hand = Hand(collector())
    hand.start()
    feed(hand, *(record(i, ordinal=0) for i in numbers))
    hand.run(DEADLINES.join)
    assert hand.machine.rosters[0].members == tuple(sorted(ids(numbers)))


def test_a_cluster_of_one_gets_no_roster():
    hand = rostered(record(10, cluster=1))
    assert set(hand.machine.rosters) == {0}
    assert hand.receive(GetRoster(OPENED.round_id, 1), keys(10).peer_id, 17.0) == Refusal("no_roster")
    assert isinstance(hand.receive(GetRoster(OPENED.round_id, 0), keys(10).peer_id, 17.0), RosterReply)


def test_a_roster_is_given_from_the_deadline_on():
    hand = Hand(collector())
    hand.start()
    feed(hand, *(record(i) for i in MEMBERS))
    request = GetRoster(OPENED.round_id, 0)
    assert hand.receive(request, keys(1).peer_id, DEADLINES.join - 0.1) == Refusal("not_yet", retry=True)
    first = hand.receive(request, keys(1).peer_id, DEADLINES.join)  # before its own timer rang
    assert isinstance(first, RosterReply)
    assert hand.receive(request, keys(2).peer_id, DEADLINES.closing + 1) == first
    assert hand.receive(GetRoster(bytes(32), 0), keys(1).peer_id, 20.0) == Refusal("another_round")


def test_a_record_after_the_deadline_changes_nothing():
    hand = Hand(collector())
    hand.start()
    feed(hand, *(record(i) for i in MEMBERS))
    hand.run(DEADLINES.join - 0.1)
    late = hand.sent(Digest)[-1]
    hand.run(DEADLINES.join)
    hand.answer(late, Offer((record(6),), b""), DEADLINES.join + 0.1)
    assert hand.machine.rosters[0].members == ids(MEMBERS)


# -- reports --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, 1])
def test_a_report_is_accepted_once_and_its_receipt_binds(label):
    hand = accepting()
    sent = report(hand, label=label)
    reply = hand.receive(sent, keys(1).peer_id, NOW)
    assert isinstance(reply, Receipt)
    reports.check_receipt(reply.receipt, sent, keys=keys(1), learner=LEARNER.peer_id)
    (accepted,) = hand.persisted(Accepted)
    assert exported(accepted) == Accepted(peer=1, at=NOW, cluster=0, label=label)
    kept = hand.machine.reports[keys(1).peer_id]
    assert (kept.features, kept.label, kept.cluster, kept.ordinal) == ((0.1, 0.2), label, 0, 1)


def test_acceptance_is_persisted_before_the_receipt_leaves():
    hand = accepting()
    hand.machine.receive(report(hand), keys(1).peer_id, NOW)
    (effect,) = hand.machine.effects()
    assert type(effect).__name__ == "Persist"
    assert isinstance(effect.fact, Accepted)


def test_a_repeat_gets_the_same_receipt_bytes():
    hand = accepting()
    sent = report(hand)
    first = hand.receive(sent, keys(1).peer_id, NOW)
    hand.run(DEADLINES.report + 10)
    assert hand.machine.state is State.ENDED
    assert hand.receive(sent, keys(1).peer_id, DEADLINES.report + 10) == first
    assert len(hand.persisted(Accepted)) == 1


def test_a_different_second_report_is_refused():
    hand = accepting()
    hand.receive(report(hand, label=0), keys(1).peer_id, NOW)
    assert hand.receive(report(hand, label=1), keys(1).peer_id, NOW) == Refusal("second_report")
    assert hand.machine.reports[keys(1).peer_id].label == 0
    assert len(hand.persisted(Accepted)) == 1
    assert isinstance(hand.receive(report(hand, 2), keys(2).peer_id, NOW), Receipt)


def test_a_bad_report_is_refused_and_may_be_mended():
    hand = accepting()
    others_box = keys(2).seal(
        ROUND.sealing_public,
        b"\1",
        info=answer_info(OPENED.round_id, hand.machine.rosters[0].digest, keys(3).peer_id),
    )
    for bad in (
        report(hand, box=b"garbage"),
        report(hand, box=others_box),
        report(hand, label=len(CLASSES)),
        report(hand, features=(1.0,)),
        report(hand, features=(1.0, float("nan"))),
        report(hand, features=(1.0, 1e300)),
        report(hand, 3),
        msgspec.structs.replace(report(hand), sealed=b""),
    ):
        assert hand.receive(bad, keys(1).peer_id, NOW) == Refusal("bad_box")
    assert hand.machine.reports == {}
    assert hand.persisted(Accepted) == []
    assert isinstance(hand.receive(report(hand), keys(1).peer_id, NOW), Receipt)


def test_a_report_before_the_closing_deadline_is_told_to_come_again():
    hand = rostered()
    sent = report(hand)
    assert hand.receive(sent, keys(1).peer_id, DEADLINES.closing - 0.1) == Refusal("not_yet", retry=True)
    assert isinstance(hand.receive(sent, keys(1).peer_id, DEADLINES.closing), Receipt)


def test_a_report_after_the_round_is_too_late():
    hand = accepting()
    sent = report(hand)
    hand.run(DEADLINES.report + 10)
    assert hand.receive(sent, keys(1).peer_id, DEADLINES.report + 10) == Refusal("too_late")
    assert hand.persisted(Accepted) == []


def test_a_report_of_nobody_in_a_roster_is_refused():
    hand = accepting()
    assert hand.receive(report(hand, 9), keys(9).peer_id, NOW) == Refusal("not_in_roster")


def test_a_report_with_another_roster_or_round_is_refused():
    hand = accepting()
    sent = report(hand)
    for change, reason in (({"roster": bytes(32)}, "roster_mismatch"), ({"round_id": bytes(32)}, "another_round")):
        assert hand.receive(msgspec.structs.replace(sent, **change), keys(1).peer_id, NOW) == Refusal(reason)
    assert isinstance(hand.receive(sent, keys(1).peer_id, NOW), Receipt)


def test_a_report_under_another_clusters_roster_is_refused():
    hand = accepting()
    feed_second = rostered(*(record(i, cluster=1) for i in (10, 11, 12)))
    feed_second.run(DEADLINES.closing)
    signed = feed_second.machine.rosters
    wrong = msgspec.structs.replace(report(feed_second), roster=signed[1].digest)
    assert feed_second.receive(wrong, keys(1).peer_id, NOW) == Refusal("roster_mismatch")
    assert isinstance(hand.receive(report(hand), keys(1).peer_id, NOW), Receipt)


def test_refused_reports_are_logged():
    hand = accepting()
    hand.receive(report(hand, 9), keys(9).peer_id, NOW)
    (fact,) = hand.facts(Rejected)
    assert "not_in_roster" in fact.about
    assert keys(9).peer_id.hex()[:16] in fact.about


def test_it_is_complete_when_every_member_has_reported():
    hand = accepting()
    for i in MEMBERS:
        assert not hand.machine.complete
        hand.receive(report(hand, i), keys(i).peer_id, NOW)
    assert hand.machine.complete


def test_closing_the_learner_keeps_what_was_accepted():
    hand = accepting()
    sent = report(hand)
    first = hand.receive(sent, keys(1).peer_id, NOW)
    hand.machine.close(NOW)
    assert hand.machine.over
    assert hand.machine.wake_at() is None
    assert len(hand.machine.reports) == 1
    assert hand.receive(sent, keys(1).peer_id, NOW) == first
    assert hand.receive(report(hand, 2), keys(2).peer_id, NOW) == Refusal("too_late")


def test_a_deployed_peer_is_named_by_its_id():
    opened = open_round(study=False)
    hand = accepting(opened=opened)
    hand.receive(report(hand), keys(1).peer_id, NOW)
    assert hand.persisted(Accepted)[0].peer == keys(1).peer_id.hex()


def keys_within(machine):
    """The round's key rings that a machine still holds."""
    return [value for value in vars(machine).values() if getattr(value, "sealing_public", None) == ROUND.sealing_public]


@pytest.mark.parametrize("how", ["at its end", "early"])
def test_when_the_round_ends_the_learner_forgets_its_key(how):
    hand = accepting()
    kept = report(hand)
    assert isinstance(hand.receive(kept, keys(1).peer_id, DEADLINES.closing), Receipt)
    assert keys_within(hand.machine)
    if how == "early":
        hand.machine.close(DEADLINES.closing)
    else:
        hand.run(DEADLINES.report + 100)
    assert hand.machine.over
    assert not keys_within(hand.machine)
    assert isinstance(hand.receive(kept, keys(1).peer_id, DEADLINES.report), Receipt)  # repeats take no key
    assert hand.receive(report(hand, 2), keys(2).peer_id, DEADLINES.report) == Refusal("too_late")
