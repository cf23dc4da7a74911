"""Algorithm 2 at one peer: one flip for everybody, one mate, one box an asker, opened by nobody but the learner."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp import randomness
from p2p_labeldp.crypto import sealing
from p2p_labeldp.errors import AuthenticationFailed, LocalProtocolError
from p2p_labeldp.mechanisms import resampling
from p2p_labeldp.protocol.exchange import TRANSITIONS, Asking, answer_info
from p2p_labeldp.protocol.messages import Answer, Ask, Refusal
from protocol.little_exchange import ROSTER, ask, exchange, expected_flip, opened_box
from protocol.little_round import MEMBERS, OPENED, ROUND, keys, open_roster, roster

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
