"""A peer's limits: each refuses by itself, says why, and knows no label. The control is the same roster, unlimited."""

import math

import pytest

from p2p_labeldp.accounting import planning
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Answered, Asked, Committed, Ended, Flipped, Outcome, Reason, Rejected, Reported
from p2p_labeldp.mechanisms.randomized_response import local_epsilon
from p2p_labeldp.network import virtual
from p2p_labeldp.protocol import policy as policies
from p2p_labeldp.protocol.messages import Ask
from p2p_labeldp.protocol.peer import State
from p2p_labeldp.protocol.policy import Policy
from protocol.little_round import DEADLINES, gathered, given, open_round, roster

FLIP = planning.plan_roster(5, target_epsilon=1.0, tolerated_loss=0.05).flip_probability
LOCAL = local_epsilon(FLIP)
COALITION = planning.roster_epsilon(5, 5, FLIP, 1 / 25, 1)  # with one mate
REFUSED = (Outcome.REFUSED, Reason.POLICY)

LIMITS = {
    "the local view": (
        {"local_epsilon": 2.0},
        {"local_epsilon": LOCAL},
        f"policy: local epsilon {LOCAL:.6g} above 2",
    ),
    "the learner's view": ({"epsilon": 0.99}, {"epsilon": 1.0}, "policy: epsilon above 0.99 at delta 0.04"),
    "a coalition": (
        {"colluders": 1, "colluder_epsilon": 0.99 * COALITION},
        {"colluders": 1, "colluder_epsilon": 1.01 * COALITION},
        f"policy: epsilon with 1 mate above {0.99 * COALITION:g} at delta 0.04",
    ),
    "a coalition of all": (
        {"colluders": 5, "colluder_epsilon": 1.0},
        {"colluders": 5, "colluder_epsilon": 1.001 * LOCAL},  # what everybody sees with a name is within the limit
        "policy: 5 of 5 members may collude, and so epsilon with 5 mates is above 1",
    ),
}


def wanting(limits, *, label=0, **terms):
    """A peer with these limits that got the roster a right learner makes."""
    opened = open_round(**terms)
    return given(roster(opened=opened), hand=gathered(opened=opened, label=label, policy=Policy(**limits)))


@pytest.mark.parametrize("view", LIMITS)
def test_a_limit_refuses_the_roster_that_passes_it_and_says_so(view):
    strict, lax, text = LIMITS[view]
    hand = wanting(strict)
    assert hand.end == REFUSED
    assert [fact.about for fact in hand.facts(Rejected)] == [text]
    hand.run(DEADLINES.report + 10)
    assert hand.label_is_untouched
    assert not hand.facts(Committed)
    for control in (lax, {}):
        hand = wanting(control)
        assert hand.machine.state is State.EXCHANGING
        hand.run(DEADLINES.exchange - 1)
        assert len(hand.sent(Ask)) == 1
        assert not hand.facts(Rejected)


def test_with_the_check_switched_off_the_same_roster_is_accepted(monkeypatch):
    monkeypatch.setattr(policies, "_against_roster", lambda *_: None)
    for strict, _, _ in LIMITS.values():
        assert wanting(strict).machine.state is State.EXCHANGING


def test_a_flip_larger_than_planned_meets_a_limit_that_the_least_does_not():
    for flip, expected in ((FLIP, None), (0.3, State.EXCHANGING)):
        hand = given(roster(flip_probability=flip), hand=gathered(policy=Policy(local_epsilon=1.0)))
        if expected is None:
            assert hand.end == REFUSED
        else:
            assert hand.machine.state is expected


def test_a_limit_is_held_against_the_losses_that_the_round_tolerates():
    """Three of five holding an answer hide a label less than five of five, at the same flip."""
    terms = {"target_epsilon": None, "flip_probability": FLIP, "tolerated_loss": 0.4}
    all_hold, three_hold = (planning.roster_epsilon(5, h, FLIP, 1 / 25) for h in (5, 3))
    limit = (all_hold + three_hold) / 2
    assert all_hold < limit < three_hold
    assert wanting({"epsilon": limit}, **terms).end == REFUSED
    assert wanting({"epsilon": 1.01 * three_hold}, **terms).machine.state is State.EXCHANGING
    assert wanting({"epsilon": limit}, **{**terms, "tolerated_loss": 0.05}).machine.state is State.EXCHANGING


def test_a_roster_below_the_peers_own_minimum_is_refused():
    policy = Policy(minimum_size=6)
    judged = {"holding_minimum": 5, "flip_probability": 0.3, "num_classes": 2}
    assert policy.against_roster(size=5, **judged) == "policy: 5 members, below 6"
    assert policy.against_roster(size=6, **judged) is None


def test_a_label_that_has_left_before_is_judged_by_the_local_epsilon():
    judged = {"size": 5, "holding_minimum": 5, "flip_probability": FLIP, "num_classes": 2}
    policy = Policy(epsilon=1.0)
    assert policy.against_roster(**judged) is None
    assert "the label having left in another roster" in policy.against_roster(**judged, again=True)
    assert Policy(epsilon=LOCAL).against_roster(**judged, again=True) is None


def test_limits_of_more_classes_are_held_against_the_certified_bound():
    judged = {"size": 5, "holding_minimum": 5, "flip_probability": 0.3}
    bound = planning.roster_epsilon(5, 5, 0.3, 1 / 25, num_classes=3)
    assert planning.roster_epsilon(5, 5, 0.3, 1 / 25) < bound < local_epsilon(0.3, 3)
    assert Policy(epsilon=bound).against_roster(**judged, num_classes=3) is None
    assert Policy(epsilon=0.99 * bound).against_roster(**judged, num_classes=2) is None
    text = Policy(epsilon=0.99 * bound).against_roster(**judged, num_classes=3)
    assert text == f"policy: epsilon above {0.99 * bound:g} at delta 0.04"
    assert "with 1 mate above" in Policy(colluders=1, colluder_epsilon=bound).against_roster(**judged, num_classes=3)
    assert Policy(epsilon=local_epsilon(0.3, 3)).against_roster(**judged, num_classes=3) is None
    assert Policy(local_epsilon=local_epsilon(0.3)).against_roster(**judged, num_classes=3) is not None


def test_a_roster_is_evaluated_once_for_all_peers_of_a_process(monkeypatch):
    policies._against_roster.cache_clear()
    asked = []

    def counted(*arguments, **named):
        asked.append(arguments)
        return True

    monkeypatch.setattr(policies.planning, "roster_fits", counted)
    judged = {"size": 5, "holding_minimum": 5, "flip_probability": 0.123, "num_classes": 2}
    for _ in range(10):
        assert Policy(epsilon=0.5, classes=("a", "b"), learner=bytes(32)).against_roster(**judged) is None
    assert asked == [(5, 5, 0.123, 0.5, 1 / 25)]
    policies._against_roster.cache_clear()


def test_what_a_peer_names_itself_is_not_replaced_by_what_its_party_expects():
    pinned = Policy().pinned(classes=("a", "b"), learner=b"L")
    assert (pinned.classes, pinned.learner) == (("a", "b"), b"L")
    own = Policy(classes=("c", "d"), learner=b"M")
    assert own.pinned(classes=("a", "b"), learner=b"L") == own


@pytest.mark.parametrize(
    ("field", "limits"),
    [
        ("epsilon", {"epsilon": -0.1}),
        ("epsilon", {"epsilon": math.nan}),
        ("epsilon", {"epsilon": math.inf}),
        ("epsilon", {"epsilon": True}),
        ("local_epsilon", {"local_epsilon": -1.0}),
        ("colluders", {"colluders": -1}),
        ("colluders", {"colluders": True}),
        ("colluders", {"colluders": 2}),
        ("colluders", {"colluders": 2, "epsilon": 1.0}),
        ("colluder_epsilon", {"colluder_epsilon": 1.0}),
        ("colluder_epsilon", {"colluder_epsilon": math.nan, "colluders": 1}),
        ("minimum_size", {"minimum_size": 1}),
    ],
)
def test_an_impossible_limit_is_named(field, limits):
    Policy(epsilon=0.0, local_epsilon=0.0, colluders=0, colluder_epsilon=0.0, minimum_size=2)
    with pytest.raises(ConfigurationError, match=rf"^{field}: "):
        Policy(**limits)


# -- on an engine ---------------------------------------------------------------------------------------------------


def with_policy(study, policy):
    return type(study)(**{name: getattr(study, name) for name in study.__dataclass_fields__} | {"policy": policy})


def test_the_peers_of_a_study_keep_its_policy(study_of):
    """Two clusters, of 5 and 23, at one target: the flip of the larger one is smaller, so its local epsilon larger."""
    study = study_of(seed=3, sizes=(5, 23), target_epsilon=1.0)
    free = virtual.play(study)
    assert {fact.outcome for fact in free.facts if isinstance(fact, Ended)} == {Outcome.REPORTED}
    small, large = (local_epsilon(found.flip_probability) for found in free.collected.rosters)
    limited = virtual.play(with_policy(study, Policy(local_epsilon=(small + large) / 2)))
    ends = [(fact.outcome, fact.reason) for fact in limited.facts if isinstance(fact, Ended)]
    assert sorted(ends, key=str) == sorted([(Outcome.REPORTED, None)] * 5 + [REFUSED] * 23, key=str)
    assert sum(isinstance(fact, Rejected) for fact in limited.facts) >= 23
    strict = virtual.play(with_policy(study, Policy(local_epsilon=small / 2)))
    assert not [f for f in strict.facts if isinstance(f, Asked | Answered | Reported | Flipped)]
    assert strict.collected.reports == ()


def test_a_policy_that_is_met_changes_nothing(study_of):
    study = study_of(seed=3, sizes=(5, 12))
    assert virtual.play(with_policy(study, Policy(local_epsilon=9.0))).facts == virtual.play(study).facts


def test_whole_rounds_of_both_labels_are_the_same_when_some_refuse(study_of):
    def played(label):
        labels = [0, 1] * 14
        labels[2] = label
        study = study_of(seed=5, sizes=(5, 23), labels=labels, target_epsilon=1.0)
        return virtual.play(with_policy(study, Policy(local_epsilon=2.6)))

    zero, one = played(0), played(1)
    refused = [fact for fact in zero.facts if isinstance(fact, Ended) and fact.reason is Reason.POLICY]
    assert 0 < len(refused) < 28
    told = [[fact for fact in one_of.facts if type(fact).__name__ != "Accepted"] for one_of in (zero, one)]
    assert told[0] == told[1]
