"""One label, one release, whoever the learner is; and lost state repeats its coins instead of tossing new ones."""

import hashlib

import msgspec
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from p2p_labeldp.errors import LabelAlreadyReleased
from p2p_labeldp.facts import Answered, Asked, Flipped, Outcome, Reason, Rejected
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol.effects import Persist
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.kept import AnsweredWith
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.messages import Answer, Ask, Digest, Refusal, Topic
from p2p_labeldp.protocol.peer import State
from p2p_labeldp.protocol.policy import Policy
from p2p_labeldp.randomness import Secret
from protocol.little_round import (
    DEADLINES,
    LEARNER,
    OPENED,
    ROUND,
    Hand,
    gathered,
    given,
    keys,
    manifest,
    open_roster,
    open_round,
    peer,
    roster,
)

NOW = DEADLINES.join + 3.5
SPENT = (Outcome.REFUSED, Reason.LABEL_SPENT)
ROSTER = open_roster()
FLIP = ROSTER.roster.flip_probability
OTHER = open_round(nonce=b"\1" * 16)  # the next round of the same learner, on the same terms
OTHER_ROSTER = roster((1, 2, 3, 4, 5, 6))


def release(*, opened=OPENED, envelope=None, flipped=1, label_id="1", **changes):
    """What a peer recorded in an earlier life."""
    accepted = ROSTER if envelope is None else open_roster(envelope, opened=opened)
    values = {
        "peer": 1,
        "label_id": label_id,
        "flip_probability": FLIP,
        "flipped_label": flipped,
        "round_id": opened.round_id.hex(),
        "roster": accepted.digest.hex(),
        "label_space": opened.label_space.digest,
    }
    return Flipped(**{**values, **changes})


def asked(hand, asker=2, *, opened=OPENED, envelope=None):
    """A member asks; what is in its box."""
    digest = open_roster(envelope or roster(opened=opened), opened=opened).digest
    reply = hand.receive(Ask(opened.round_id, digest, bytes(16)), keys(asker).peer_id, NOW)
    assert isinstance(reply, Answer)
    (label,) = ROUND.open(reply.box, info=answer_info(opened.round_id, digest, keys(asker).peer_id))
    return label


def start(**changes):
    hand = Hand(peer(**changes))
    hand.start()
    return hand


def six(**changes):
    """A peer that was given the roster of six instead of that of five."""
    return given(OTHER_ROSTER, hand=gathered(members=(1, 2, 3, 4, 5, 6), **changes))


# -- a peer with a past ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("flipped", [0, 1])
def test_after_a_restart_the_same_round_gets_the_same_flipped_value(label, flipped):
    hand = given(roster(), hand=gathered(label=label, ledger=Ledger([release(flipped=flipped)])))
    assert {asked(hand, asker) for asker in (1, 2, 3, 4, 5)} == {flipped}  # from the record, whatever the coin says
    assert not hand.facts(Flipped)
    assert len(hand.persisted(Answered)) == 5


def test_the_label_is_recorded_as_spent_before_the_first_answer_and_once():
    ledger = Ledger()
    hand = given(roster(), hand=gathered(ledger=ledger))
    assert ledger.flipped("1") is None
    told = {asked(hand, asker) for asker in (2, 3)}
    assert {ledger.flipped("1")} == told
    persisted = [effect.fact for effect in hand.effects if isinstance(effect, Persist)]
    kinds = [type(fact) for fact in persisted if isinstance(fact, Flipped | Answered)]
    assert kinds == [Flipped, AnsweredWith, AnsweredWith]


def test_a_label_that_nobody_asked_for_is_spent_when_the_exchange_ends():
    ledger = Ledger()
    hand = given(roster(), hand=gathered(ledger=ledger))
    hand.run(DEADLINES.exchange - 0.1)
    assert ledger.flipped("1") is None
    hand.run(DEADLINES.exchange)
    assert len(hand.persisted(Flipped)) == 1
    assert ledger.flipped("1") is not None


def test_a_refused_ask_spends_nothing():
    ledger = Ledger()
    hand = given(roster(), hand=gathered(ledger=ledger))
    for asker, digest in ((2, bytes(32)), (9, ROSTER.digest)):
        reply = hand.receive(Ask(OPENED.round_id, digest, bytes(16)), keys(asker).peer_id, NOW)
        assert isinstance(reply, Refusal)
    assert ledger.flipped("1") is None
    asked(hand)
    assert ledger.flipped("1") is not None


def test_a_spent_label_takes_no_part_in_another_round():
    zero, one = (start(label=label, opened=OTHER, ledger=Ledger([release()])) for label in (0, 1))
    assert zero.end == SPENT
    assert zero.effects == one.effects
    assert [fact.about for fact in zero.facts(Rejected)] == ["label spent: '1' has left in another round"]
    digest = Digest(OTHER.round_id, Topic.DIRECTORY, 0, b"", ())
    assert zero.receive(digest, keys(2).peer_id, 1.0) == Refusal("takes_no_part")
    assert zero.label_is_untouched
    for control in (None, Ledger(), Ledger([release(label_id="another")]), Ledger([release()], another_roster=True)):
        assert start(opened=OTHER, ledger=control).machine.state is State.JOINING


@pytest.mark.parametrize("classes", [("yes", "no"), ("no", "yes", "perhaps"), ("noyes", "")])
@pytest.mark.parametrize("another_roster", [False, True])
def test_a_label_that_has_left_under_another_label_space_is_the_same_secret(classes, another_roster):
    released = release(label_space=LabelSpace(classes=classes).digest)
    ledger = Ledger([released], another_roster=another_roster)
    hand = start(ledger=ledger)
    assert hand.end == SPENT
    assert [fact.about for fact in hand.facts(Rejected)] == ["label spent: '1' has left in another label space"]
    with pytest.raises(LabelAlreadyReleased, match="label space"):
        ledger.enter(release())
    for control in (Ledger([release()]), Ledger([release(label_space=released.label_space, label_id="another")])):
        assert start(ledger=control).machine.state is State.JOINING


def test_with_the_label_space_not_looked_at_the_same_label_leaves_again(monkeypatch):
    """The control."""
    monkeypatch.setattr(Ledger, "_against_label_space", lambda *_: None)
    ledger = Ledger([release(label_space=LabelSpace(classes=("yes", "no")).digest)])
    hand = given(roster(), hand=gathered(ledger=ledger))
    assert asked(hand) == 1  # the index of "no" there, and of "yes" here


def test_another_learner_is_another_round():
    envelope = manifests.sign(manifest(), keys(8))
    opened = manifests.open_manifest(envelope, keys=LEARNER, learner=keys(8).peer_id)
    learner = peer().learner
    theirs = type(learner)(keys(8).peer_id, "elsewhere", 1)
    assert start(opened=opened, learner=theirs, ledger=Ledger([release()])).end == SPENT
    assert start(opened=opened, learner=theirs).machine.state is State.JOINING


def test_a_spent_label_is_in_no_other_roster_of_its_round():
    zero, one = (six(label=label, ledger=Ledger([release(flip_probability=SIX_FLIP)])) for label in (0, 1))
    assert zero.end == SPENT
    assert zero.effects == one.effects
    assert [fact.about for fact in zero.facts(Rejected)] == ["label spent: '1' has left in another roster"]
    assert zero.label_is_untouched
    assert six(ledger=Ledger()).machine.state is State.EXCHANGING


SIX_FLIP = open_roster(OTHER_ROSTER).roster.flip_probability


@pytest.mark.parametrize("another_roster", [False, True])
def test_another_flip_probability_is_refused_always(another_roster):
    ledger = Ledger([release()], another_roster=another_roster)
    zero, one = (six(label=label, ledger=ledger) for label in (0, 1))
    assert FLIP != SIX_FLIP
    assert zero.end == SPENT
    assert zero.effects == one.effects
    text = f"label spent: '1' has left at flip probability {FLIP!r}, not {SIX_FLIP!r}"
    assert [fact.about for fact in zero.facts(Rejected)] == [text]
    assert zero.label_is_untouched


def test_another_roster_if_allowed_gets_the_same_value_and_is_recorded_too():
    for flipped in (0, 1):
        ledger = Ledger([release(flipped=flipped, flip_probability=SIX_FLIP)], another_roster=True)
        hand = six(ledger=ledger)
        assert asked(hand, envelope=OTHER_ROSTER) == flipped
        assert [fact.flipped_label for fact in hand.persisted(Flipped)] == [flipped]
        assert ledger.holds("1", round_id=OPENED.round_id, roster=open_roster(OTHER_ROSTER).digest)


def test_another_roster_costs_the_local_epsilon():
    ledger = Ledger([release(flip_probability=SIX_FLIP)], another_roster=True)
    hand = six(ledger=ledger, policy=Policy(epsilon=1.0))
    assert hand.end == (Outcome.REFUSED, Reason.POLICY)
    assert "the label having left in another roster" in hand.facts(Rejected)[-1].about
    assert six(ledger=Ledger(), policy=Policy(epsilon=1.0)).machine.state is State.EXCHANGING


# -- the coins of a deployed peer -----------------------------------------------------------------------------------


def secret(number):
    return Secret(hashlib.sha256(b"secret %d" % number).digest())


def life(number, *, envelope=None, opened=OPENED, label=0):
    """A deployed peer's round, its ledger empty: what it told, and whom it asked."""
    hand = given(
        envelope or roster(opened=opened),
        hand=gathered(opened=opened, randomness=secret(number), label=label),
    )
    told = asked(hand, opened=opened, envelope=envelope)
    hand.run(DEADLINES.exchange - 0.5)
    (drawn,) = hand.persisted(Asked)
    return told, drawn.mate


def test_a_wiped_ledger_or_a_twin_repeats_the_flip_and_the_draw():
    lives = [life(number, label=label) for number in range(30) for label in (0, 1)]
    again = [life(number, label=label) for number in range(30) for label in (0, 1)]
    assert lives == again
    assert {told for told, _ in lives[::2]} == {0, 1}  # some of the thirty flip
    assert len({mate for _, mate in lives}) == 5


def test_in_another_round_the_flip_is_repeated_and_the_draw_is_not():
    here, there = ([life(number, opened=opened) for number in range(30)] for opened in (OPENED, OTHER))
    assert [told for told, _ in here] == [told for told, _ in there]
    assert [mate for _, mate in here] != [mate for _, mate in there]


def test_at_another_flip_probability_the_coin_is_another_so_that_the_two_do_not_betray_the_label():
    """Were the word the same, a label told at 0.3 and told otherwise at 0.4 would be the one told at 0.3."""
    words = [[secret(n).flip_word(label_id="1", flip_probability=f) for n in range(400)] for f in (0.3, 0.4)]
    assert not set(words[0]) & set(words[1])
    flips = [[word < f * 2**64 for word in row] for row, f in zip(words, (0.3, 0.4), strict=True)]
    assert any(a and not b for a, b in zip(*flips, strict=True))  # impossible with one word and a growing threshold
    same = [[word < f * 2**64 for word in words[0]] for f in (0.3, 0.4)]  # the control
    assert not any(a and not b for a, b in zip(*same, strict=True))


# -- the ledger itself ----------------------------------------------------------------------------------------------


def test_the_same_release_is_entered_once():
    ledger = Ledger()
    assert ledger.enter(release())
    assert not ledger.enter(release())
    assert not ledger.enter(release(at=3.0))


@pytest.mark.parametrize(
    "second",
    [
        {"roster": bytes(32).hex()},
        {"round_id": bytes(32).hex()},
        {"flip_probability": 0.25},
        {"flipped_label": 0},
    ],
)
def test_a_second_release_is_refused_and_leaves_the_ledger_as_it_was(second):
    ledger = Ledger([release()])
    changed = msgspec.structs.replace(release(), **second)
    with pytest.raises(LabelAlreadyReleased):
        ledger.enter(changed)
    assert not ledger.enter(release())
    assert ledger.enter(msgspec.structs.replace(changed, label_id="another"))


RELEASES = st.builds(
    lambda label, flip, value, round_id, digest: Flipped(
        peer=1,
        label_id=label,
        flip_probability=flip,
        flipped_label=value,
        round_id=bytes([round_id]).hex(),
        roster=bytes([digest]).hex(),
    ),
    st.sampled_from("ab"),
    st.sampled_from([0.1, 0.2]),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 1),
)


@hypothesis_given(st.lists(RELEASES, max_size=12), st.booleans())
def test_whatever_is_entered_a_label_has_one_value_and_one_flip_probability_and_one_roster_unless_allowed(
    attempts, another_roster
):
    ledger, entered = Ledger(another_roster=another_roster), []
    for attempt in attempts:
        try:
            entered += [attempt] if ledger.enter(attempt) else []
        except LabelAlreadyReleased:
            assert any(one.label_id == attempt.label_id for one in entered)
    for label in "ab":
        mine = [one for one in entered if one.label_id == label]
        assert len({(one.flip_probability, one.flipped_label) for one in mine}) <= 1
        assert len(mine) == len({(one.round_id, one.roster) for one in mine})
        assert another_roster or len(mine) <= 1
