"""A report opens for the learner alone, to features and some mate's label; a receipt is for one report and no other."""

import math

import msgspec
import pytest
from altering import altered

from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage, ProtocolError
from p2p_labeldp.facts import Outcome, Reason, Reported
from p2p_labeldp.protocol import report as reports
from p2p_labeldp.protocol.closing import KIND, ReadyRecord
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.messages import Answer, Ask, Done, Push, Receipt, Refusal, Report, Topic
from p2p_labeldp.protocol.peer import GRACE_SECONDS, State
from protocol.little_round import (
    DEADLINES,
    LEARNER,
    LEARNER_ADDRESS,
    MEMBERS,
    OPENED,
    ROUND,
    committed,
    keys,
    open_roster,
)

ROSTER = open_roster()
FEATURES = (0.5, -1.5)


def box(reporter=1, plaintext=b"\1", digest=ROSTER.digest, to=ROUND):
    """A mate's answer to ``reporter``."""
    info = answer_info(OPENED.round_id, digest, keys(reporter).peer_id)
    return keys(2).seal(to.sealing_public, plaintext, info=info)


def sealed(payload, reporter=1, digest=ROSTER.digest):
    info = reports.report_info(OPENED.round_id, digest, keys(reporter).peer_id)
    return Report(OPENED.round_id, digest, keys(reporter).seal(ROUND.sealing_public, payload, info=info))


def made(features=FEATURES, mates_box=None, reporter=1):
    return reports.make(
        features, mates_box or box(reporter), roster=ROSTER, keys=keys(reporter), round_key=ROUND.sealing_public
    )


def opened(report, reporter=1):
    return reports.open_report(report, keys(reporter).peer_id, keys=ROUND, dimension=2, num_classes=2)


@pytest.mark.parametrize("label", [0, 1])
def test_a_report_opens_to_features_and_the_mates_label(label):
    found = opened(made(mates_box=box(plaintext=bytes([label]))))
    assert (found.features, found.label) == (FEATURES, label)


BAD = {
    "garbage for a box": made(mates_box=b"garbage"),
    "an empty box": made(mates_box=b"\0"),
    "a box sealed for another asker": made(mates_box=box(reporter=3)),
    "a box of another roster": made(mates_box=box(digest=bytes(32))),
    "a box for somebody else": made(mates_box=box(to=keys(4))),
    "a label out of the label space": made(mates_box=box(plaintext=b"\2")),
    "two labels": made(mates_box=box(plaintext=b"\0\1")),
    "no label": made(mates_box=box(plaintext=b"")),
    "a feature too few": made(features=(1.0,)),
    "a feature too many": made(features=(1.0, 2.0, 3.0)),
    "no features": made(features=()),
    "a feature that is no number": made(features=(math.nan, 1.0)),
    "an infinite feature": made(features=(1.0, -math.inf)),
    "a feature whose square overflows": made(features=(1.0, 1e200)),
    "a word for a feature": sealed(msgspec.msgpack.encode([["a", "b"], box()])),
    "more fields than a report has": sealed(msgspec.msgpack.encode([FEATURES, box(), 1])),
    "nothing at all": sealed(b""),
    "an unsealed report": Report(OPENED.round_id, ROSTER.digest, msgspec.msgpack.encode([FEATURES, box()])),
    "another peer's report": made(reporter=3),
    "another peer's report with a box of one's own": made(reporter=3, mates_box=box(reporter=1)),
    "a report sealed for another roster": msgspec.structs.replace(made(), roster=bytes(32)),
    "a report sealed for another round": msgspec.structs.replace(made(), round_id=bytes(32)),
    "a damaged report": msgspec.structs.replace(made(), sealed=altered(made().sealed)),
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_report_is_refused(why):
    assert opened(made()).label == 1
    with pytest.raises(ProtocolError):
        opened(BAD[why])


def test_only_the_rounds_key_opens_a_report():
    report = made()
    for nosy in (LEARNER, keys(1), keys(2)):
        with pytest.raises(AuthenticationFailed):
            reports.open_report(report, keys(1).peer_id, keys=nosy, dimension=2, num_classes=2)
    assert opened(report).label == 1


def test_reports_of_either_label_have_one_length():
    assert len({len(made(mates_box=box(plaintext=bytes([label]))).sealed) for label in (0, 1)}) == 1


# -- receipts -------------------------------------------------------------------------------------------------------


def checked(receipt, report, *, reporter=1, learner=LEARNER):
    reports.check_receipt(receipt, report, keys=keys(reporter), learner=learner.peer_id)


def test_a_receipt_holds_for_its_report_and_nothing_else():
    report, other = made(), made()
    receipt = reports.sign_receipt(report, keys(1).peer_id, keys=LEARNER)
    checked(receipt, report)
    with pytest.raises(AuthenticationFailed):
        checked(receipt, other)
    with pytest.raises(AuthenticationFailed):
        checked(receipt, msgspec.structs.replace(report, roster=bytes(32)))
    with pytest.raises(AuthenticationFailed):
        checked(receipt, msgspec.structs.replace(report, round_id=bytes(32)))
    with pytest.raises(AuthenticationFailed):
        checked(receipt, report, reporter=2)


def test_a_receipt_of_anybody_else_does_not_count():
    report = made()
    checked(reports.sign_receipt(report, keys(1).peer_id, keys=LEARNER), report)
    for wrong in (
        reports.sign_receipt(report, keys(1).peer_id, keys=keys(7)),
        keys(7).sign("receipt", b""),
        LEARNER.sign("ready", b""),
        b"",
    ):
        with pytest.raises(ProtocolError):
            checked(wrong, report)


def test_a_signed_receipt_that_does_not_decode_is_malformed():
    with pytest.raises(MalformedMessage):
        checked(LEARNER.sign("receipt", b"\xc1"), made())


# -- in the peer ----------------------------------------------------------------------------------------------------


def reporting(number=1):
    """A peer whose report has just left."""
    hand = committed(number)
    hand.run(DEADLINES.join + 6.0)
    hand.answer(hand.sent(Ask)[0], Answer(box(number)), DEADLINES.join + 6.0)
    hand.run(DEADLINES.exchange)
    ready = [
        keys(i).sign(KIND, msgspec.msgpack.encode(ReadyRecord(OPENED.round_id, ROSTER.digest, True)))
        for i in MEMBERS
        if i != number
    ]
    hand.receive(Push(OPENED.round_id, Topic.CLOSING, tuple(ready)), keys(2).peer_id, DEADLINES.exchange + 1.0)
    hand.run(DEADLINES.closing)
    assert hand.machine.state is State.REPORTING
    assert not hand.sent(Report)
    hand.run(DEADLINES.report)
    (send,) = hand.sent(Report)
    assert send.to == LEARNER_ADDRESS
    return hand, send


def test_a_report_leaves_at_a_uniform_time_of_its_window():
    times = [reporting(i)[0].persisted(Reported)[0].at for i in MEMBERS]
    assert all(DEADLINES.closing <= at < DEADLINES.report for at in times)
    assert len(set(times)) == len(times)


def test_a_report_holds_the_features_and_the_box_as_it_came():
    _, send = reporting()
    assert opened(send.message).features == (0.1, 0.2)
    assert opened(send.message).label == 1


def test_a_receipt_ends_the_round_as_reported_and_everything_is_erased():
    hand, send = reporting()
    part = hand.machine.my
    receipt = reports.sign_receipt(send.message, keys(1).peer_id, keys=LEARNER)
    hand.answer(send, Receipt(receipt), DEADLINES.report)
    assert hand.end == (Outcome.REPORTED, None)
    assert (part.report, part.exchange.box, part.exchange.mate, part.exchange._given) == (None, None, None, {})


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Refusal("bad_box"), (Outcome.INVALID, Reason.BAD_BOX)),
        (Refusal("second_report"), (Outcome.FAILED, Reason.NO_RECEIPT)),
        (Refusal("too_late"), (Outcome.FAILED, Reason.NO_RECEIPT)),
        (Receipt(b"no receipt"), (Outcome.FAILED, Reason.NO_RECEIPT)),
        (Receipt(reports.sign_receipt(made(), keys(1).peer_id, keys=LEARNER)), (Outcome.FAILED, Reason.NO_RECEIPT)),
    ],
)
def test_what_the_learner_says_is_the_outcome(reply, expected):
    hand, send = reporting()
    hand.answer(send, reply, DEADLINES.report)
    assert hand.end == expected


@pytest.mark.parametrize("reply", [None, Refusal("not_yet", retry=True), Done()])
def test_the_same_report_is_sent_again_until_there_is_a_receipt(reply):
    hand, send = reporting()
    if reply is None:
        hand.fail(send, "timeout", DEADLINES.report)
    else:
        hand.answer(send, reply, DEADLINES.report)
    hand.run(DEADLINES.report + 1.0)
    first, second = hand.sent(Report)
    assert first.message == second.message
    assert len(hand.persisted(Reported)) == 1


def test_without_a_receipt_the_round_ends_all_the_same():
    hand, send = reporting()
    hand.fail(send, "timeout", DEADLINES.report)
    hand.run(DEADLINES.report + GRACE_SECONDS)
    assert hand.end == (Outcome.FAILED, Reason.NO_RECEIPT)


def test_a_peer_closed_after_its_report_left_does_not_claim_to_have_abstained():
    hand, _ = reporting()
    hand.machine.close(DEADLINES.report)
    hand.settle()
    assert hand.end == (Outcome.FAILED, Reason.NO_RECEIPT)
