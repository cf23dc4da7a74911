"""Algorithm 2 at one peer: one flip for everybody, one mate, one box an asker, opened by nobody but the learner."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_labeldp import randomness
from p2p_labeldp.crypto import sealing
from p2p_labeldp.errors import AuthenticationFailed, LocalProtocolError
from p2p_labeldp.facts import Answered, Asked, Ended, Flipped, Held, Outcome, Ready, Reason
from p2p_labeldp.mechanisms import randomized_response, resampling
from p2p_labeldp.protocol.effects import Persist, Send
from p2p_labeldp.protocol.exchange import TRANSITIONS, Asking, Exchange, answer_info
from p2p_labeldp.protocol.kept import exported
from p2p_labeldp.protocol.messages import Answer, Ask, Done, Refusal
from p2p_labeldp.protocol.peer import State
from protocol.little_round import (
    DEADLINES,
    MEMBERS,
    OPENED,
    ROUND,
    address,
    committed,
    example,
    gathered,
    keys,
    open_roster,
    peer,
    record,
    roster,
)

ROSTER = open_roster()
NOW = DEADLINES.join + 3.5


def exchange(number=1, *, label=0, seed=1, opened_roster=ROSTER):
    return Exchange(
        roster=opened_roster,
        example=example(number, label),
        num_classes=2,
        keys=keys(number),
        randomness=randomness.replay(seed, number),
        round_key=ROUND.sealing_public,
    )


def ask(number, opened_roster=ROSTER):
    """What an honest member asks."""
    return exchange(number, opened_roster=opened_roster).ask()


def opened_box(box, asker, opened_roster=ROSTER):
    info = answer_info(OPENED.round_id, opened_roster.digest, keys(asker).peer_id)
    return ROUND.open(box, info=info)


def expected_flip(number, label, seed):
    flip = ROSTER.roster.flip_probability
    word = randomness.replay(seed, number).flip_word(label_id=str(number), flip_probability=flip)
    return randomized_response.flip(label, word, randomized_response.flip_threshold(flip))


# -- answering ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, 1])
def test_everybody_gets_one_and_the_same_flipped_label(label):
    seen = set()
    for seed in range(60):
        one = exchange(label=label, seed=seed)
        told = {opened_box(one.answer(keys(i).peer_id, ask(i)).box, i) for i in MEMBERS}
        assert told == {bytes([expected_flip(1, label, seed)])}
        seen |= told
    assert seen == {b"\0", b"\1"}  # over sixty seeds some flip and some do not


def test_a_repeat_gets_the_same_bytes():
    one = exchange()
    first = one.answer(keys(2).peer_id, ask(2))
    one.answer(keys(3).peer_id, ask(3))
    assert one.answer(keys(2).peer_id, ask(2)) == first
    assert isinstance(first, Answer)


def test_a_second_different_ask_of_the_same_peer_is_refused():
    one = exchange()
    assert isinstance(one.answer(keys(2).peer_id, ask(2)), Answer)
    other = msgspec.structs.replace(ask(2), ask_id=bytes(16))
    assert one.answer(keys(2).peer_id, other) == Refusal("second_ask")
    assert isinstance(one.answer(keys(3).peer_id, other), Answer)


def test_an_ask_of_another_roster_is_refused():
    one = exchange()
    wrong = ask(2, open_roster(roster(flip_probability=0.4)))
    assert one.answer(keys(2).peer_id, wrong) == Refusal("roster_mismatch")
    assert not one.spent


def test_an_ask_of_no_member_is_refused():
    one = exchange()
    assert one.answer(keys(9).peer_id, ask(9)) == Refusal("not_in_roster")
    assert not one.spent
    one.answer(keys(2).peer_id, ask(2))
    assert one.spent


def test_a_box_is_of_use_to_its_asker_alone():
    one = exchange()
    box = one.answer(keys(2).peer_id, ask(2)).box
    assert len(opened_box(box, 2)) == 1
    for thief in (1, 3, 4, 5):
        with pytest.raises(AuthenticationFailed):
            opened_box(box, thief)
    for wrong in (
        answer_info(bytes(32), ROSTER.digest, keys(2).peer_id),
        answer_info(OPENED.round_id, bytes(32), keys(2).peer_id),
    ):
        with pytest.raises(AuthenticationFailed):
            ROUND.open(box, info=wrong)


def test_only_the_rounds_key_opens_a_box():
    box = exchange().answer(keys(2).peer_id, ask(2)).box
    info = answer_info(OPENED.round_id, ROSTER.digest, keys(2).peer_id)
    for nosy in (keys(1), keys(2), keys(3)):
        with pytest.raises(AuthenticationFailed):
            nosy.open(box, info=info)
    assert ROUND.open(box, info=info) in (b"\0", b"\1")


def test_boxes_have_one_length_and_nothing_in_common():
    boxes = [exchange(label=label).answer(keys(i).peer_id, ask(i)).box for label in (0, 1) for i in MEMBERS]
    assert {len(box) for box in boxes} == {1 + sealing.OVERHEAD_BYTES}
    assert len({box[:32] for box in boxes}) == len(boxes)  # a fresh ephemeral key each


# -- asking ---------------------------------------------------------------------------------------------------------


def test_the_mate_is_the_one_that_the_coin_names():
    for seed in range(30):
        one = exchange(seed=seed)
        word = randomness.replay(seed, 1).mate_word(label_id="1", round_id=OPENED.round_id, roster=ROSTER.digest)
        assert one.draw() == ROSTER.members[resampling.mate_index(word, 5)]


def test_an_ask_is_the_same_at_each_repeat_and_differs_between_peers_and_rosters():
    other = open_roster(roster(flip_probability=0.4))
    assert exchange().ask() == exchange(seed=9).ask()
    assert len({exchange(i, opened_roster=r).ask().ask_id for i in (1, 2) for r in (ROSTER, other)}) == 4


def test_there_is_never_a_second_mate():
    one = exchange()
    first = one.draw()
    with pytest.raises(LocalProtocolError):
        one.draw()
    assert one.mate == first
    one.deadline()
    with pytest.raises(LocalProtocolError):
        one.draw()
    assert one.mate == first


def test_after_the_round_nothing_is_left():
    one = exchange()
    one.draw()
    one.take(one.answer(keys(2).peer_id, ask(2)))
    assert (one.box, one.mate, one._given, one._flipped) != (None, None, {}, None)
    one.erase()
    assert (one.box, one.mate, one._given, one._flipped) == (None, None, {}, None)


STEPS = {
    "drawn": lambda one: one.draw(),
    "box": lambda one: one.take(Answer(b"box")),
    "deadline": lambda one: one.deadline(),
}


def test_every_state_and_event_is_legal_or_raises_and_changes_nothing():
    paths = {
        Asking.IDLE: [],
        Asking.ASKING: ["drawn"],
        Asking.HOLDING: ["drawn", "box"],
        Asking.EMPTY: ["deadline"],
    }
    for state, path in paths.items():
        for event, step in STEPS.items():
            one = exchange()
            for before in path:
                STEPS[before](one)
            assert one.state is state
            kept = (one.box, one.mate)
            if (state, event) in TRANSITIONS:
                step(one)
                assert one.state is TRANSITIONS[state, event]
            else:
                with pytest.raises(LocalProtocolError):
                    step(one)
                assert (one.state, (one.box, one.mate)) == (state, kept)


@given(st.lists(st.sampled_from([*STEPS, "answer"]), max_size=12))
def test_any_sequence_of_events_is_legal_or_raises_and_changes_nothing(events):
    one = exchange()
    mates = set()
    for event in events:
        before = (one.state, one.box, one.mate)
        try:
            if event == "answer":
                assert isinstance(one.answer(keys(3).peer_id, Ask(OPENED.round_id, ROSTER.digest, bytes(16))), Answer)
                assert (one.state, one.box, one.mate) == before
            else:
                STEPS[event](one)
        except LocalProtocolError:
            assert (one.state, one.box, one.mate) == before
            assert (before[0], event) not in TRANSITIONS
        mates |= {one.mate} - {None}
        assert len(mates) <= 1
        assert one.holding == (one.box is not None)


# -- in the peer ----------------------------------------------------------------------------------------------------


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
