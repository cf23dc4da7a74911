"""A round by allowlist takes in whom the enrolment key vouches for. The control: the same round with the check off."""

import collections
import dataclasses

import pytest
from altering import altered

from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError, MalformedMessage
from p2p_labeldp.facts import Committed, Outcome, Reason, Rejected
from p2p_labeldp.network.virtual import transparent_keys
from p2p_labeldp.protocol import admission
from p2p_labeldp.protocol.admission import Admission, NotAdmitted, check, enrol, signer_of
from p2p_labeldp.protocol.policy import Policy
from protocol.little_round import LEARNER, Hand, keys, manifest, open_round, peer
from protocol.scenes import Scene

KEY, OTHER_KEY = transparent_keys(b"enrolment"), transparent_keys(b"other enrolment")
REAL, REAL_OTHER = keys(700), keys(701)
REPORTED = (Outcome.REPORTED, None)
NOT_ADMITTED, POLICY = (Outcome.REFUSED, Reason.NOT_ADMITTED), (Outcome.REFUSED, Reason.POLICY)


# -- an enrolment ---------------------------------------------------------------------------------------------------


def test_an_enrolment_is_for_one_peer_by_one_key():
    made = enrol(keys(1).peer_id, REAL)
    check(made, peer_id=keys(1).peer_id, enrolment_key=REAL.peer_id, keys=LEARNER)
    assert signer_of(made, LEARNER) == (REAL.peer_id, keys(1).peer_id)
    assert len(made) <= admission.MAX_ENROLMENT_BYTES
    for peer_id, key, why in (
        (keys(2).peer_id, REAL.peer_id, "another peer"),
        (keys(1).peer_id, REAL_OTHER.peer_id, "another key"),
    ):
        with pytest.raises(NotAdmitted) as caught:
            check(made, peer_id=peer_id, enrolment_key=key, keys=LEARNER)
        assert why in caught.value.detail


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda e: b"", NotAdmitted),
        (lambda e: altered(e), AuthenticationFailed),
        (lambda e: e[:50], MalformedMessage),
        (lambda e: e + bytes(200), MalformedMessage),
        (lambda e: REAL.sign("peer", e[97:]), AuthenticationFailed),
        (lambda e: REAL.sign(admission.KIND, b"\xc1"), MalformedMessage),
        (lambda e: REAL.sign(admission.KIND, e[97:] + b"\0"), MalformedMessage),
    ],
)
def test_what_is_no_enrolment_admits_nobody(spoil, error):
    spoilt = spoil(enrol(keys(1).peer_id, REAL))
    with pytest.raises(error):
        check(spoilt, peer_id=keys(1).peer_id, enrolment_key=REAL.peer_id, keys=LEARNER)


@pytest.mark.parametrize("wrong", [{"enrolment_key": bytes(32)}, {"admission": Admission.ALLOWLIST}])
def test_a_manifest_names_an_enrolment_key_with_an_allowlist_and_only_there(wrong):
    manifest(admission=Admission.ALLOWLIST, enrolment_key=bytes(32))
    with pytest.raises(ConfigurationError, match="admission"):
        manifest(**wrong)


# -- at one peer ----------------------------------------------------------------------------------------------------


def starting(*, round_key=None, pinned=None, enrolment=b"", label=0):
    listed = {} if round_key is None else {"admission": Admission.ALLOWLIST, "enrolment_key": round_key.peer_id}
    policy = Policy(enrolment_key=None if pinned is None else pinned.peer_id)
    hand = Hand(peer(opened=open_round(**listed), policy=policy, enrolment=enrolment, label=label))
    hand.start()
    return hand


@pytest.mark.parametrize(
    ("given", "expected", "about"),
    [
        ({"pinned": REAL}, POLICY, "policy: open admission instead of admission by enrolment key "),
        ({"round_key": REAL}, POLICY, "policy: admission by enrolment key "),
        ({"round_key": REAL_OTHER, "pinned": REAL}, POLICY, "policy: admission by enrolment key "),
        ({"round_key": REAL, "pinned": REAL}, NOT_ADMITTED, "not admitted: no enrolment"),
        (
            {"round_key": REAL, "pinned": REAL, "enrolment": enrol(keys(2).peer_id, REAL)},
            NOT_ADMITTED,
            "not admitted: the enrolment of another peer",
        ),
        (
            {"round_key": REAL, "pinned": REAL, "enrolment": enrol(keys(1).peer_id, REAL_OTHER)},
            NOT_ADMITTED,
            "not admitted: enrolled by another key than the round's",
        ),
        ({"round_key": REAL, "pinned": REAL, "enrolment": b"x"}, NOT_ADMITTED, "not admitted: envelope of 1 bytes"),
    ],
)
def test_a_peer_takes_no_part_in_a_round_that_admits_otherwise_than_it_expects(given, expected, about):
    zero, one = (starting(**given, label=label) for label in (0, 1))
    assert zero.end == expected
    assert zero.effects == one.effects
    assert [fact.about[: len(about)] for fact in zero.facts(Rejected)] == [about]
    assert not zero.sent(object)
    for control in ({}, {"round_key": REAL, "pinned": REAL, "enrolment": enrol(keys(1).peer_id, REAL)}):
        assert not starting(**control).machine.over


# -- on the virtual engine ------------------------------------------------------------------------------------------

INTRUDER = 4  # of twelve

UNENROLLED = {
    "nothing": lambda me, mate: b"",
    "the enrolment of a mate": lambda me, mate: enrol(mate, KEY),
    "an enrolment by another key": lambda me, mate: enrol(me, OTHER_KEY),
    "an enrolment by itself": lambda me, mate: enrol(me, transparent_keys(b"itself")),
    "a signature for another purpose": lambda me, mate: KEY.sign(
        "peer", enrol(me, KEY)[len(KEY.sign(admission.KIND, b"")) :]
    ),
}


def intruded(study_of, brings):
    """A round by allowlist in which one peer, not enrolled, does as if it were."""
    study = study_of(seed=5, sizes=(12,), enrolment_key=KEY.peer_id, minimum_size=6)

    def own(ordinal, party):
        me = party.keys.peer_id
        vouched = brings(me, scene.ids[0]) if ordinal == INTRUDER else enrol(me, KEY)
        return dataclasses.replace(party, enrolment=vouched, policy=Policy(enrolment_key=KEY.peer_id))

    def made(ordinal, machine):
        if ordinal == INTRUDER:
            machine._not_admitted = None

    scene = Scene(study, own=own, made=made)
    return scene.play()


@pytest.mark.parametrize("brings", UNENROLLED)
def test_who_is_not_enrolled_gets_into_no_roster_and_disturbs_nobody(study_of, brings):
    scene = intruded(study_of, UNENROLLED[brings])
    assert scene.ids[INTRUDER] not in scene.collector.rosters[0].members
    ends = scene.ends()
    assert ends.pop(INTRUDER)[0] is not Outcome.REPORTED
    assert ends == {i: REPORTED for i in range(12) if i != INTRUDER}
    refused_by = {fact.peer for fact in scene.facts(Rejected) if fact.peer != INTRUDER}
    assert "learner" in refused_by  # by the learner, and by peers themselves
    assert len(refused_by) > 2


@pytest.mark.parametrize("brings", UNENROLLED)
def test_with_enrolments_not_checked_it_gets_in(study_of, monkeypatch, brings):
    monkeypatch.setattr(admission, "check", lambda *_, **__: None)
    scene = intruded(study_of, UNENROLLED[brings])
    assert scene.ends() == dict.fromkeys(range(12), REPORTED)


def test_a_learner_that_lists_somebody_not_enrolled_finds_no_peer_that_accepts_it(study_of, monkeypatch):
    """Only the learner's check is off: each peer has its own."""
    from p2p_labeldp.protocol import gathering

    unchecked = gathering.open_record
    monkeypatch.setattr(gathering, "open_record", lambda *a, **k: unchecked(*a, **{**k, "enrolment_key": None}))
    scene = intruded(study_of, UNENROLLED["nothing"])
    assert scene.ids[INTRUDER] in scene.collector.rosters[0].members
    ends = scene.ends()
    assert {ends[i] for i in range(12) if i != INTRUDER} == {(Outcome.REFUSED, Reason.ROSTER_MISMATCH)}
    assert {fact.peer for fact in scene.facts(Committed)} <= {INTRUDER}


def test_an_enrolled_round_is_the_open_round_but_for_its_records(study_of):
    study = study_of(seed=5, sizes=(12,))
    usual = Scene(study).play()
    listed = intruded(study_of, lambda me, _: enrol(me, KEY))
    assert collections.Counter(listed.ends().values()) == collections.Counter(usual.ends().values())
