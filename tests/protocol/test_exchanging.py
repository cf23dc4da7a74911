"""The third phase of a peer: what it persists before what leaves, whom it answers, and whom it asks again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_labeldp.errors import LocalProtocolError
from p2p_labeldp.facts import Answered, Asked, Ended, Flipped, Held, Outcome, Ready, Reason
from p2p_labeldp.protocol.effects import Persist, Send
from p2p_labeldp.protocol.kept import exported
from p2p_labeldp.protocol.messages import Answer, Ask, Done, Refusal
from p2p_labeldp.protocol.peer import State
from protocol.little_exchange import ROSTER, ask, expected_flip, opened_box
from protocol.little_round import DEADLINES, OPENED, address, committed, gathered, keys, peer, record

NOW = DEADLINES.join + 3.5


def drawn(mate, **changes):
    """A committed peer 1 that draws ``mate``, at the moment it has asked."""
    for seed in range(200):
        hand = committed(seed=seed, **changes)
        hand.run(DEADLINES.join + 6.0)
        if hand.sent(Ask) and hand.sent(Ask)[0].to == address(mate):
            return hand
    raise AssertionError("no seed draws this mate")


def test_the_flip_is_persisted_before_the_first_answer_and_only_once():
    hand = committed()
    before = len(hand.effects)
    hand.machine.receive(ask(2), keys(2).peer_id, NOW)
    flip, answered = hand.settle()
    assert isinstance(flip, Persist)
    assert isinstance(flip.fact, Flipped)
    assert isinstance(answered, Persist)
    assert exported(answered.fact) == Answered(peer=1, at=NOW, asker=2)
    assert flip.fact.flipped_label == expected_flip(1, 0, 1)
    assert flip.fact.flip_probability == ROSTER.roster.flip_probability
    assert flip.fact.label_id == "1"
    assert (flip.fact.round_id, flip.fact.roster) == (OPENED.round_id.hex(), ROSTER.digest.hex())
    hand.receive(ask(3), keys(3).peer_id, NOW)
    hand.receive(ask(2), keys(2).peer_id, NOW)  # a repeat is no new fact
    assert [e.fact.asker for e in hand.effects[before:] if isinstance(e.fact, Answered)] == [2, 3]
    assert len(hand.facts(Flipped)) == 1


def test_the_draw_is_persisted_before_the_ask_leaves():
    hand = committed()
    before = len(hand.effects)
    hand.run(DEADLINES.join + 6.0)
    asked, send = hand.effects[before:]
    assert isinstance(asked, Persist)
    assert isinstance(asked.fact, Asked)
    assert isinstance(send, Send)
    assert send.to == address(asked.fact.mate)


@pytest.mark.parametrize(
    ("message", "sender", "reason"),
    [
        (Ask(bytes(32), ROSTER.digest, bytes(16)), 2, "another_round"),
        (Ask(OPENED.round_id, bytes(32), bytes(16)), 2, "roster_mismatch"),
        (Ask(OPENED.round_id, ROSTER.digest, bytes(16)), 9, "not_in_roster"),
    ],
)
def test_a_wrong_ask_is_refused_logged_and_flips_nothing(message, sender, reason):
    hand = committed()
    assert hand.receive(message, keys(sender).peer_id, NOW) == Refusal(reason)
    assert reason in hand.effects[-1].fact.about
    assert hand.label_is_untouched
    assert isinstance(hand.receive(ask(2), keys(2).peer_id, NOW), Answer)
    assert not hand.label_is_untouched


def test_an_ask_is_answered_in_the_exchange_phase_alone():
    assert gathered().receive(ask(2), keys(2).peer_id, NOW) == Refusal("not_ready", retry=True)
    hand = committed()
    assert isinstance(hand.receive(ask(2), keys(2).peer_id, DEADLINES.exchange - 0.1), Answer)
    hand.run(DEADLINES.exchange)
    for asker in (2, 3):
        assert hand.receive(ask(asker), keys(asker).peer_id, DEADLINES.exchange + 0.1) == Refusal("too_late")


def test_a_self_draw_goes_through_the_same_path():
    hand = drawn(1)
    send = hand.sent(Ask)[0]
    assert send.to == address(1)
    assert hand.facts(Held) == []  # not before its own answer has come back to it
    reply = hand.receive(send.message, keys(1).peer_id, NOW + 3)
    assert [fact.asker for fact in hand.persisted(Answered)] == [1]
    hand.answer(send, reply, NOW + 3.1)
    assert len(hand.facts(Held)) == 1
    assert opened_box(hand.machine.my.exchange.box, 1) == bytes([hand.persisted(Flipped)[0].flipped_label])


def test_a_self_draw_can_be_lost_like_any_other():
    hand = drawn(1)
    hand.fail(hand.sent(Ask)[0], "timeout", NOW + 5)
    hand.run(DEADLINES.closing)
    assert {send.to for send in hand.sent(Ask)} == {address(1)}
    assert [fact.holding for fact in hand.persisted(Ready)] == [False]
    assert hand.end == (Outcome.ABSTAINED, Reason.MATE_TIMEOUT)


@pytest.mark.parametrize(
    ("reason", "expected"), [("timeout", Reason.MATE_TIMEOUT), ("unreachable", Reason.MATE_UNREACHABLE)]
)
def test_a_mate_that_fails_is_asked_again_and_nobody_else_ever(reason, expected):
    hand = drawn(3)
    failed, now = 0, DEADLINES.join + 6.0
    while not hand.machine.over:
        for send in hand.sent(Ask)[failed:]:
            hand.fail(send, reason, now)
            failed += 1
        now = hand.machine.wake_at()
        hand.run(now)
    assert failed > 3
    assert {send.to for send in hand.sent(Ask)} == {address(3)}
    assert len({send.message.ask_id for send in hand.sent(Ask)}) == 1
    assert [fact.mate for fact in hand.persisted(Asked)] == [3]
    assert hand.end == (Outcome.ABSTAINED, expected)


@pytest.mark.parametrize("reply", [Refusal("second_ask"), Refusal("not_in_roster"), Done()])
def test_a_refusal_for_good_is_not_asked_again(reply):
    hand = drawn(3)
    hand.answer(hand.sent(Ask)[0], reply, NOW + 5)
    hand.run(DEADLINES.closing)
    assert len(hand.sent(Ask)) == 1
    assert hand.end == (Outcome.ABSTAINED, Reason.MATE_TIMEOUT)


def test_an_answer_after_the_deadline_is_too_late():
    hand = drawn(3)
    hand.run(DEADLINES.exchange)
    hand.answer(hand.sent(Ask)[0], Answer(b"box"), DEADLINES.exchange + 0.01)
    assert hand.facts(Held) == []
    hand.run(DEADLINES.closing)
    assert hand.end == (Outcome.ABSTAINED, Reason.MATE_TIMEOUT)


def test_an_equivocating_mate_is_not_replaced_by_another():
    struck = []
    for seed in range(20):
        hand = committed(seed=seed)
        hand.tell(record(3, port=7001), now=NOW)
        hand.run(DEADLINES.closing)
        if not hand.sent(Ask):
            struck.append(hand)
        else:
            assert address(3) not in {send.to for send in hand.sent(Ask)}
    assert struck
    for hand in struck:
        assert len(hand.persisted(Asked)) == 1
        assert hand.end == (Outcome.ABSTAINED, Reason.MATE_UNREACHABLE)


# -- any state of the peer, any input -------------------------------------------------------------------------------

INPUTS = st.sampled_from(
    [
        ("receive", Ask(OPENED.round_id, ROSTER.digest, bytes(16)), 2),
        ("receive", Ask(OPENED.round_id, ROSTER.digest, b"\1" * 16), 2),
        ("receive", Ask(OPENED.round_id, ROSTER.digest, bytes(16)), 9),
        ("receive", Ask(bytes(32), ROSTER.digest, bytes(16)), 3),
        ("receive", Done(), 2),
        ("receive", Refusal("odd"), 2),
        ("answered", Answer(b"box"), 0),
        ("answered", Done(), 1),
        ("answered", Refusal("not_ready", retry=True), 2),
        ("answered", Refusal("bad_box"), 3),
        ("failed", "timeout", 0),
        ("failed", "unreachable", 1),
        ("start", None, 0),
        ("wake", None, 0),
        ("close", None, 0),
    ]
)
MOMENTS = (0.0, 1.0, DEADLINES.join + 3.2, NOW, DEADLINES.exchange, DEADLINES.closing, DEADLINES.report, 50.0)


def shape(machine):
    """The state of a peer as far as an illegal input might have changed it."""
    part = machine.part
    return (
        machine.state,
        machine.outcome,
        machine.wake_at(),
        dict(machine._alarms),
        part and (part.exchange.state, part.exchange.mate, part.exchange.box, dict(part.exchange._given)),
        len(machine.directory.mates),
    )


@settings(max_examples=150, deadline=None)
@given(st.booleans(), st.lists(st.tuples(st.sampled_from(MOMENTS), INPUTS), max_size=20))
def test_any_input_in_any_state_is_legal_or_raises_and_changes_nothing(ahead, script):
    hand = committed() if ahead else None
    machine = hand.machine if hand else peer()
    ends, mates, effects = 0, set(), []
    for now, (kind, what, number) in sorted(script, key=lambda step: step[0]):
        before = shape(machine)
        try:
            match kind:
                case "receive":
                    machine.receive(what, keys(number).peer_id, now)
                case "answered" | "failed":
                    sends = [e.send_id for e in effects if isinstance(e, Send)]
                    send_id = sends[number] if number < len(sends) else 10_000 + number
                    if kind == "answered":
                        machine.answered(send_id, what, now)
                    else:
                        machine.failed(send_id, what, now)
                case _:
                    getattr(machine, kind)(now)
        except LocalProtocolError:
            assert shape(machine) == before
            assert machine.effects() == []
            continue
        new = machine.effects()
        effects += new
        mates |= {e.fact.mate for e in new if isinstance(e, Persist) and isinstance(e.fact, Asked)}
        ends += sum(1 for e in new if isinstance(e, Persist) and isinstance(e.fact, Ended))
    assert len(mates) <= 1
    assert ends == (machine.state is State.ENDED)


def test_a_send_is_answered_once():
    hand = drawn(3)
    send = hand.sent(Ask)[0]
    hand.answer(send, Answer(b"box"), NOW + 5)
    before = shape(hand.machine)
    for again in (
        lambda: hand.machine.answered(send.send_id, Answer(b"other"), NOW + 5),
        lambda: hand.machine.failed(send.send_id, "timeout", NOW + 5),
        lambda: hand.machine.answered(10_000, Answer(b"other"), NOW + 5),
    ):
        with pytest.raises(LocalProtocolError):
            again()
        assert shape(hand.machine) == before


def test_a_peer_joins_once():
    hand = committed()
    before = shape(hand.machine)
    with pytest.raises(LocalProtocolError):
        hand.machine.start(NOW)
    assert shape(hand.machine) == before
    assert hand.machine.effects() == []
