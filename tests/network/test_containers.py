"""The soak's own judgement: each thing that must not happen in containers is found when it does."""

import pytest

from network.containers import KINDS, check, drawn
from p2p_labeldp.facts import Accepted, Asked, Flipped


def said(peer, outcome="reported", reason=None):
    return {"peer": peer, "outcome": outcome, "reason": reason}


def flipped(peer, *, label=1, roster="r"):
    return Flipped(
        peer=peer, label_id="label", flip_probability=0.1, flipped_label=label, round_id="round", roster=roster
    )


OUTCOMES = [[said("a")], [said("b", "abstained", "mate_timeout")]]
FOUND = [Asked(peer="a", mate="b"), Asked(peer="b", mate="a"), flipped("a"), flipped("b", label=0)]
LEARNT = [Accepted(peer="a", cluster=0, label=0)]


def test_a_round_as_it_should_be_is_counted():
    assert check(OUTCOMES, FOUND, LEARNT) == {"reported": 1, "abstained (mate_timeout)": 1}


@pytest.mark.parametrize(
    ("outcomes", "found", "learnt", "complaint"),
    [
        ([[said("a"), said("a")], OUTCOMES[1]], FOUND, LEARNT, "2 outcomes of one peer"),
        ([[], OUTCOMES[1]], FOUND, LEARNT, "0 outcomes of one peer"),
        (OUTCOMES, [*FOUND, Asked(peer="a", mate="a")], LEARNT, "asked a second mate"),
        (OUTCOMES, [*FOUND, flipped("b", label=1)], LEARNT, "flipped its label a second time"),
        (OUTCOMES, [*FOUND, flipped("b", label=0, roster="s")], LEARNT, "in a second roster"),
        (OUTCOMES, FOUND, [*LEARNT, Accepted(peer="a", cluster=0, label=1)], "two reports accepted"),
        (OUTCOMES, FOUND, [], "and the learner no report of it"),
        (OUTCOMES, FOUND, [Accepted(peer="a", cluster=0, label=1)], "another label than its mate"),
    ],
)
def test_what_must_not_be_is_found(outcomes, found, learnt, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check(outcomes, found, learnt)


def test_every_kind_of_fault_is_drawn_for_other_containers_each():
    import random

    faults = drawn(random.Random(0), services=[f"peers-{i}" for i in range(20)], count=6)
    assert sorted(fault.kind for fault in faults) == sorted(KINDS * 2)
    assert len({fault.service for fault in faults}) == 6
    assert faults == drawn(random.Random(0), services=[f"peers-{i}" for i in range(20)], count=6)
