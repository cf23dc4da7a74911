"""A manifest is believed by its signature, judged by its values, and disagreed with before the label is looked at."""

import math

import msgspec
import pytest
from altering import altered

from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError, MalformedMessage
from p2p_labeldp.facts import Outcome, Reason, Rejected
from p2p_labeldp.labels import Example, LabelSpace
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol.manifest import Deadlines, open_manifest, sign
from p2p_labeldp.protocol.messages import Ask, Digest, Offer, Refusal, Topic
from protocol.little_round import (
    CLASSES,
    DEADLINES,
    LEARNER,
    OPENED,
    Hand,
    address,
    committed,
    example,
    keys,
    manifest,
    open_round,
    peer,
)


def opened(envelope):
    return open_manifest(envelope, keys=keys(1), learner=LEARNER.peer_id)


def test_a_signed_manifest_opens_to_what_was_signed():
    found = opened(sign(manifest(), LEARNER))
    assert found.manifest == manifest()
    assert found.learner == LEARNER.peer_id
    assert found.label_space == LabelSpace(classes=CLASSES)
    assert found.clustering.count == 3


def test_another_manifest_is_another_round():
    assert open_round().round_id == OPENED.round_id
    assert open_round(nonce=b"\1" * 16).round_id != OPENED.round_id
    assert open_round(tolerated_loss=0.1).round_id != OPENED.round_id


def test_a_manifest_of_another_signer_is_refused():
    with pytest.raises(AuthenticationFailed):
        opened(sign(manifest(), keys(7)))


def test_a_manifest_changed_after_signing_is_refused():
    envelope = sign(manifest(), LEARNER)
    for at in (40, 97, 200, len(envelope) - 1):
        with pytest.raises((AuthenticationFailed, MalformedMessage)):
            opened(altered(envelope, at))


IMPOSSIBLE = {
    "no classes": {"classes": ()},
    "one class": {"classes": ("only",)},
    "a class twice": {"classes": ("a", "a")},
    "no clustering": {"clustering": {}},
    "a clustering with an unknown field": {"clustering": {**manifest().clustering, "more": 1}},
    "a clustering with infinite centroids": {"clustering": {**manifest().clustering, "mean": [math.inf, 0.0]}},
    "a ragged clustering": {"clustering": {**manifest().clustering, "centroids": [[0.0], [0.0, 1.0]]}},
    "a minimum size of one": {"minimum_size": 1},
    "a loss of everybody": {"tolerated_loss": 1.0},
    "a loss that is no number": {"tolerated_loss": math.nan},
    "a period of no time": {"gossip_period": 0.0},
    "a period below the clock's step": {"gossip_period": 1e-300},
    "an endless period": {"gossip_period": math.inf},
    "a period that is no number": {"gossip_period": math.nan},
    "a short key": {"round_key": bytes(31)},
    "a key that shares no secret": {"round_key": bytes(32)},
    "another key that shares none": {"round_key": b"\1" + bytes(31)},
    "an opening at no time": {"opened": math.nan},
    "an opening before all times": {"opened": -1.0},
    "an opening that never comes": {"opened": math.inf},
    "an opening after the year 9999": {"opened": 1e12},
}


@pytest.mark.parametrize("why", IMPOSSIBLE)
def test_an_impossible_manifest_is_refused_though_it_is_signed(why):
    opened(sign(manifest(), LEARNER))
    with pytest.raises(MalformedMessage):
        opened(sign(manifest(**IMPOSSIBLE[why]), LEARNER))


@pytest.mark.parametrize(
    "wrong",
    [
        {"target_epsilon": None, "flip_probability": None},
        {"target_epsilon": 1.0, "flip_probability": 0.1},
        {"target_epsilon": 0.0},
        {"target_epsilon": math.inf},
        {"target_epsilon": math.nan},
        {"target_epsilon": None, "flip_probability": 0.51},
        {"target_epsilon": None, "flip_probability": -0.1},
        {"target_epsilon": None, "flip_probability": math.nan},
    ],
)
def test_a_mechanism_out_of_range_is_refused_when_made_and_when_read(wrong):

    with pytest.raises(ConfigurationError):
        manifest(**wrong)
    forged = {**msgspec.structs.asdict(manifest()), **wrong}
    with pytest.raises(MalformedMessage):
        opened(LEARNER.sign(manifests.KIND, msgspec.msgpack.encode(forged)))
    control = {**msgspec.structs.asdict(manifest()), "target_epsilon": 2.0}
    assert opened(LEARNER.sign(manifests.KIND, msgspec.msgpack.encode(control))).manifest.target_epsilon == 2.0


def test_with_the_round_key_not_looked_at_a_key_that_shares_no_secret_breaks_a_peer_in_the_middle(monkeypatch):
    """The control."""
    monkeypatch.setattr(manifests, "check_public", lambda _: None)
    useless = open_round(round_key=bytes(32))
    hand = committed(opened=useless)
    question = Ask(useless.round_id, hand.machine.my.roster.digest, bytes(16))
    with pytest.raises(MalformedMessage):  # from a machine that any input should leave legal or as it was
        hand.machine.receive(question, keys(2).peer_id, DEADLINES.join + 4.0)


@pytest.mark.parametrize("ends", [(0, 1, 2, 3), (1, 1, 2, 3), (4, 3, 2, 1), (1, 2, 3, math.inf), (1, math.nan, 3, 4)])
def test_deadlines_increase(ends):
    Deadlines(join=1, exchange=2, closing=3, report=4)
    with pytest.raises(ConfigurationError):
        Deadlines(**dict(zip(("join", "exchange", "closing", "report"), ends, strict=True)))


DISAGREEMENTS = [
    ("class 0 is 'yes' instead of 'no'", {"classes": ("yes", "no")}, {}),
    ("a label space of 3 classes instead of 2", {"classes": ("no", "yes", "perhaps")}, {}),
    ("class 1 is 'maybe' instead of 'yes'", {"classes": ("no", "maybe")}, {}),
    ("minimum size 2 below 3", {"minimum_size": 2}, {}),
    ("the round is a deployment, this peer belongs to a study", {"study": False}, {}),
    ("the round is a study, this peer belongs to a deployment", {}, {"study": False}),
    ("2 features instead of 1", {}, {"example": Example(features=(1.0,), label=0)}),
    (f"learner {LEARNER.peer_id.hex()} instead of {keys(7).peer_id.hex()}", {}, {"learner": address(7)}),
]


@pytest.mark.parametrize(("why", "terms", "own"), DISAGREEMENTS)
def test_a_peer_that_disagrees_takes_no_part_and_keeps_silent(why, terms, own):
    opened = open_round(**terms)
    hand = Hand(peer(opened=opened, **own))
    hand.start()
    assert hand.end == (Outcome.REFUSED, Reason.POLICY)
    assert [fact.about for fact in hand.facts(Rejected)] == [f"policy: {why}"]
    assert hand.machine.wake_at() is None
    for message in (Digest(opened.round_id, Topic.DIRECTORY, 0, b"", ()), Ask(opened.round_id, bytes(32), bytes(16))):
        assert hand.receive(message, keys(2).peer_id, 1.0) == Refusal("takes_no_part")
    assert not hand.sent(object)
    assert hand.label_is_untouched
    control = Hand(peer())
    control.start()
    assert not control.machine.over
    assert isinstance(
        control.receive(Digest(OPENED.round_id, Topic.DIRECTORY, 0, b"", ()), keys(2).peer_id, 1.0), Offer
    )


@pytest.mark.parametrize("label", [2, -1])
def test_a_label_outside_the_peers_own_label_space_is_a_configuration_error(label):
    peer()
    with pytest.raises(ConfigurationError, match=r"^label: "):
        peer(example=example(label=label))


def test_a_manifest_that_leaves_a_class_out_does_not_learn_who_holds_it():
    hands = [Hand(peer(opened=open_round(classes=("no", "other")), label=label)) for label in (0, 1)]
    for hand in hands:
        hand.start()
    zero, one = hands
    assert zero.effects == one.effects
    assert zero.end == (Outcome.REFUSED, Reason.POLICY)
