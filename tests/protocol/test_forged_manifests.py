"""What a learner may try with a manifest or roster, played whole on the virtual network: every peer refuses by itself.

The control of each: with the one check switched off the same forgery is accepted, and all labels are reported.
"""

import collections
import dataclasses
from collections import OrderedDict

import pytest

from p2p_labeldp.crypto import envelope as envelopes
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Accepted, Answered, Asked, Outcome, Reason, Rejected
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.network.virtual import transparent_keys
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.admission import enrol
from p2p_labeldp.protocol.messages import Ask
from p2p_labeldp.protocol.policy import Policy
from protocol.scenes import Scene

SIZE = 12
IMPOSTOR = transparent_keys(b"impostor")
REPORTED, POLICY = (Outcome.REPORTED, None), (Outcome.REFUSED, Reason.POLICY)


def of_their_own(classes):
    """Peers whose label space is this one, whatever the manifest says."""
    return lambda _, party: dataclasses.replace(party, label_space=LabelSpace(classes=classes))


def enrolled_and_pinning(_, party):
    """Peers that take part in rounds of one enrolment key, and were enrolled by another too."""
    policy = Policy(enrolment_key=transparent_keys(b"enrolment").peer_id)
    return dataclasses.replace(party, policy=policy, enrolment=enrol(party.keys.peer_id, IMPOSTOR))


def with_a_smaller_minimum(envelope):
    """The signed manifest with one byte changed: a cluster of one fewer is enough."""
    field = b"\xacminimum_size"
    at = envelope.index(field) + len(field)
    assert envelope[at] == SIZE
    return envelope[:at] + bytes([SIZE - 1]) + envelope[at + 1 :]


def forged(study_of, why, monkeypatch, *, labels=(0, 1) * (SIZE // 2)):
    """The round as a forger opens it; the learner does not believe its own checks."""
    terms, options = {"sizes": (SIZE,), "target_epsilon": 1.0, "labels": list(labels)}, {}
    match why:
        case "another learner key":
            options["impostor"] = IMPOSTOR
        case "a minimum size of 2":
            terms["minimum_size"] = 2
        case "a class left out":
            terms["classes"] = ("no", "other")
            options["own"] = of_their_own(("no", "yes"))
        case "one class fewer":
            terms["classes"] = ("no", "yes")
            options["own"] = of_their_own(("no", "yes", "perhaps"))
        case "another enrolment key":
            terms["enrolment_key"] = IMPOSTOR.peer_id
            options["own"] = enrolled_and_pinning
        case "open admission":
            options["own"] = enrolled_and_pinning
        case "changed after signing":
            options |= {"ring": Keys, "forge": with_a_smaller_minimum}
        case "a flip too small":
            planned = rosters.plan_for

            def smaller(*arguments):
                plan = planned(*arguments)
                return dataclasses.replace(plan, flip_probability=0.99 * plan.flip_probability)

            monkeypatch.setattr(rosters, "plan_for", smaller)  # the learner plans with it, peers recompute
    return Scene(study_of(seed=3, **terms), **options).play()


def unchecked(why, monkeypatch):
    """The check of this forgery, switched off."""
    opened = manifests.open_manifest

    def whoever_signed(envelope, *, keys, learner):
        return opened(envelope, keys=keys, learner=keys.verify(manifests.KIND, envelope).peer_id)

    match why:
        case "another learner key":
            monkeypatch.setattr(manifests, "open_manifest", whoever_signed)
            monkeypatch.setattr(Policy, "against_manifest", lambda *_: None)
        case "changed after signing":
            monkeypatch.setattr(envelopes, "_verified", OrderedDict())  # what is believed here is not remembered
            monkeypatch.setattr(envelopes, "verify", lambda *_: None)
        case "a flip too small":
            monkeypatch.setattr(rosters, "fits", lambda *_: True)
        case _:
            monkeypatch.setattr(Policy, "against_manifest", lambda *_: None)


FORGERIES = {
    "another learner key": "policy: manifest: the manifest is signed by another key than the learner's",
    "a minimum size of 2": "policy: minimum size 2 below 3",
    "a class left out": "policy: class 1 is 'other' instead of 'yes'",
    "one class fewer": "policy: a label space of 2 classes instead of 3",
    "another enrolment key": f"policy: admission by enrolment key {IMPOSTOR.peer_id.hex()} instead of",
    "open admission": "policy: open admission instead of admission by enrolment key",
    "changed after signing": "policy: manifest: signature does not verify",
    "a flip too small": "policy: the roster's flip probability is too small for the target epsilon",
}


@pytest.mark.parametrize("why", FORGERIES)
def test_every_peer_refuses_by_itself_and_no_label_moves(study_of, monkeypatch, why):
    scene = forged(study_of, why, monkeypatch)
    assert scene.ends() == dict.fromkeys(range(SIZE), POLICY)
    abouts = collections.Counter(fact.about[: len(FORGERIES[why])] for fact in scene.facts(Rejected))
    assert abouts[FORGERIES[why]] == SIZE
    assert not [fact for kind in (Asked, Answered, Accepted) for fact in scene.facts(kind)]
    assert not any(isinstance(send.message, Ask) for _, send in scene.sends)


@pytest.mark.parametrize("why", FORGERIES)
def test_a_forged_round_is_the_same_whatever_the_labels(study_of, why):
    """All that travels and all that is told; where the forger would see the labels, with the check off, it is not."""
    played = []
    for check in (True, False):
        for labels in ((0, 1) * (SIZE // 2), (1, 0) * (SIZE // 2)):
            with pytest.MonkeyPatch.context() as patch:
                if not check:
                    unchecked(why, patch)
                scene = forged(study_of, why, patch, labels=labels)
            played.append((scene.deliveries(), scene.network.facts))
    with_check, without = played[:2], played[2:]
    assert with_check[0] == with_check[1]
    assert without[0][1] != without[1][1]


@pytest.mark.parametrize("why", FORGERIES)
def test_with_the_check_switched_off_the_same_forgery_is_accepted(study_of, monkeypatch, why):
    unchecked(why, monkeypatch)
    scene = forged(study_of, why, monkeypatch)
    assert scene.ends() == dict.fromkeys(range(SIZE), REPORTED)
    assert len(scene.facts(Accepted)) == SIZE


@pytest.mark.parametrize("ring", [transparent_keys, Keys])
def test_a_round_that_forges_nothing_goes_on_with_every_check_on(study_of, ring):
    scene = Scene(study_of(seed=3, sizes=(SIZE,), target_epsilon=1.0), ring=ring).play()
    assert scene.ends() == dict.fromkeys(range(SIZE), REPORTED)
