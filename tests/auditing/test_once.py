"""The checker of what must not happen twice sees each thing that must not be, and nothing where all is well."""

import msgspec
import pytest

from p2p_labeldp.auditing.once import violations
from p2p_labeldp.facts import Accepted, Answered, Asked, Ended, Flipped, Outcome, Reason

ROUND, ROSTER = "aa" * 32, "bb" * 32


def flipped(peer, label, **changes):
    values = {"label_id": str(peer), "flip_probability": 0.1, "round_id": ROUND, "roster": ROSTER}
    return Flipped(peer=peer, flipped_label=label, **{**values, **changes})


def asked(peer, mate):
    return Asked(peer=peer, mate=mate)


def ended(peer, outcome=Outcome.REPORTED, reason=None):
    return Ended(peer=peer, outcome=outcome, reason=reason)


WELL = [
    *(flipped(0, 1), flipped(1, 0)),
    *(asked(0, 1), asked(1, 1), Answered(peer=1, asker=0), Answered(peer=1, asker=1)),
    *(Accepted(peer=0, cluster=0, label=0), Accepted(peer=1, cluster=0, label=0)),
    *(ended(0), ended(1)),
]
REPORTS = {0: 0, 1: 0}


def test_a_round_that_went_well_has_no_violations():
    assert violations(WELL, reports=REPORTS) == []


def test_what_is_said_again_in_a_second_life_happened_once():
    later = [msgspec.structs.replace(fact, at=99.0) for fact in WELL]
    assert violations([*WELL, *later], reports=REPORTS) == []


@pytest.mark.parametrize(
    ("more", "found"),
    [
        (asked(0, 0), "0 asked a second mate: 1, 0"),
        (flipped(0, 0), "0 flipped its label a second time"),
        (flipped(0, 1, flip_probability=0.2), "0 flipped its label a second time"),
        (flipped(0, 1, roster="cc" * 32), "0 released its label in a second roster"),
        (ended(0, Outcome.ABSTAINED, Reason.CRASHED), "0 ended the round twice"),
        (Accepted(peer=0, cluster=0, label=1), "0 had two reports accepted: 0, 1"),
        (Answered(peer=2, asker=0), "2 answered without a label that is recorded as spent"),
    ],
)
def test_each_thing_that_must_not_be_is_seen(more, found):
    assert any(line.startswith(found) for line in violations([*WELL, more], reports=REPORTS))


@pytest.mark.parametrize(
    ("reports", "found"),
    [
        ({1: 0}, ["0 has a receipt, and the learner no report of it", "the accepted report of 0 is lost"]),
        ({0: 1, 1: 0}, ["0 reported another label than its mate 1 released"]),
        (
            {**REPORTS, 2: 1},
            ["2 reported without having asked", "the learner has a report of 2 that it never accepted"],
        ),
    ],
)
def test_what_the_learner_has_in_the_end_is_held_against_what_was_accepted(reports, found):
    assert violations(WELL, reports=reports) == found
