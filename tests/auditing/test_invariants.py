"""The checker of what must hold sees each thing that must not be, and nothing in a round that went well."""

import dataclasses

import msgspec
import pytest

from auditing.test_once import REPORTS, WELL
from p2p_labeldp.auditing import invariants
from p2p_labeldp.auditing.invariants import Given, RosterSeen, Rules, Witnessed
from p2p_labeldp.facts import (
    Accepted,
    Committed,
    Ended,
    Flipped,
    Held,
    Outcome,
    Ready,
    Reason,
    Reported,
    Signed,
    Tallied,
)

RULES = Rules(
    join=10.0, exchange=16.0, closing=21.0, end=31.0, flip_probability=0.1, tolerated_loss=0.05, minimum_size=2
)
ROSTER = RosterSeen(members=(0, 1), flip_probability=0.1, delta=0.25, holding_minimum=2)
ALL = bytes([3])


def told(fact):
    return msgspec.structs.replace(fact, at=25.0) if isinstance(fact, Accepted | Ended) else fact


FACTS = [
    *map(told, WELL),
    *(Committed(peer=i, cluster=0, size=2) for i in (0, 1)),
    *(Held(peer=i, at=14.0) for i in (0, 1)),
    *(Ready(peer=i, at=16.0, holding=True) for i in (0, 1)),
    *(Tallied(peer=i, at=21.0, ready=ALL, holding=ALL) for i in (0, 1)),
    *(Reported(peer=i, at=23.0) for i in (0, 1)),
    Signed(peer="learner", cluster=0, size=2, flip_probability=0.1, delta=0.25, holding_minimum=2),
]
ANSWERS = [Given(peer=1, asker=i, ask=b"a", box=bytes([i]), label=0, in_place=True, at=14.0) for i in (0, 1)]
WENT_WELL = Witnessed(
    rules=RULES,
    facts=FACTS,
    reports=REPORTS,
    rosters={0: ROSTER},
    running=frozenset({0, 1, "learner"}),
    known={0: frozenset({0, 1})},
    commitments={0: ROSTER, 1: ROSTER},
    asks=[(0, 1, b"a"), (1, 1, b"a"), (0, 1, b"a")],
    answers=ANSWERS,
    sent_reports=[(0, b"r"), (1, b"s"), (0, b"r")],
    receipts=[(0, b"r"), (1, b"s")],
)


def seen(*facts, without=(), **changes):
    kept = [fact for fact in FACTS if not isinstance(fact, without or ())]
    return dataclasses.replace(WENT_WELL, facts=[*kept, *facts], **changes)


def answer(**changes):
    return [*ANSWERS, dataclasses.replace(ANSWERS[0], **changes)]


def roster(**changes):
    return dataclasses.replace(ROSTER, **changes)


def test_a_round_that_went_well_breaks_nothing():
    assert invariants.broken(WENT_WELL) == []


@pytest.mark.parametrize(
    ("round_", "found"),
    [
        (seen(unfinished=frozenset({0})), "0 does not end"),
        (seen(running=frozenset({0, 1, 2})), "2 has no outcome"),
        (seen(Ended(peer=0, at=32.0, outcome=Outcome.REPORTED)), "0 ended after the deadline and its grace"),
        (seen(asks=[*WENT_WELL.asks, (0, 0, b"a")]), "0 sent a second ask"),
        (seen(asks=[*WENT_WELL.asks, (0, 1, b"b")]), "0 sent a second ask"),
        (seen(sent_reports=[*WENT_WELL.sent_reports, (0, b"t")]), "0 sent a second report"),
        (seen(answers=answer(asker=5)), "1 answered 5, who is not in its roster"),
        (seen(answers=answer(in_place=False)), "1 answered an ask of another round or roster"),
        (seen(answers=answer(at=16.5)), "1 answered after the exchange deadline"),
        (seen(answers=answer(box=b"other")), "1 gave 0 two different answers"),
        (seen(answers=answer(label=1)), "1 gave different labels"),
        (seen(Held(peer=0, at=16.5)), "0 took an answer after the exchange deadline"),
        (seen(rosters={0: roster(members=(1,))}), "a report of 0 was accepted from outside the roster"),
        (seen(Accepted(peer=0, at=20.0, cluster=0, label=0)), "a report of 0 was accepted out of time"),
        (seen(Accepted(peer=0, at=25.0, cluster=0, label=0)), "a report of 0 was counted 2 times"),
        (seen(receipts=[(0, b"r")]), "1 reported without a receipt for its report"),
        (seen(receipts=[(0, b"r"), (1, b"forged")]), "1 reported without a receipt for its report"),
        (seen(receipts=[*WENT_WELL.receipts, (2, b"t")]), "2 was given a receipt for nothing"),
        (seen(receipts=[*WENT_WELL.receipts, (0, b"t")]), "0 was given receipts for two reports"),
        (
            seen(Ended(peer=0, outcome=Outcome.ABSTAINED, reason=Reason.NOT_READY)),
            "0 ended as abstained (not_ready), and its report was accepted",
        ),
        (seen(without=Tallied), "0 reported without a roster or a tally"),
        (seen(Ready(peer=0, holding=False)), "0 reported without being ready"),
        (seen(Tallied(peer=0, ready=bytes([1]), holding=ALL)), "0 reported though its mate was not ready"),
        (seen(Tallied(peer=0, ready=ALL, holding=bytes([1]))), "0 reported though too few held an answer"),
        (seen(Ready(peer=1, holding=False)), "0 counted 1 for what it never said"),
        (
            seen(held_up={0: [(14.0, 16.5)]}),
            "0 was stopped while others asked, and says that it was able to answer",
        ),
        (seen(commitments={0: roster(members=(1, 2)), 1: ROSTER}), "0 accepted a roster that is not its own"),
        (seen(commitments={0: roster(members=(0,)), 1: ROSTER}), "0 accepted a roster below the least size"),
        *(
            (
                seen(commitments={0: roster(**weaker), 1: ROSTER}),
                "0 accepted a roster that claims another guarantee than its size gives",
            )
            for weaker in ({"flip_probability": 0.05}, {"delta": 0.5}, {"holding_minimum": 1})
        ),
        (seen(known={0: frozenset({0, 1, 2})}), "0 accepted a roster that leaves out whom it knew"),
        (seen(Committed(peer=0, cluster=0, size=3)), "0 stated another size than its roster's"),
        (
            seen(Flipped(peer=0, label_id="0", flip_probability=0.2, flipped_label=1, round_id="", roster="")),
            "0 flipped at another probability than its roster's",
        ),
        (
            seen(Signed(peer="learner", cluster=0, size=3, flip_probability=0.1, delta=0.25, holding_minimum=2)),
            "the guarantee stated for cluster 0 is not its roster's",
        ),
    ],
)
def test_each_thing_that_must_not_be_is_seen(round_, found):
    assert found in invariants.broken(round_)


def test_nothing_is_expected_of_a_liar():
    lied = seen(answers=answer(label=1), sent_reports=[*WENT_WELL.sent_reports, (1, b"t")])
    assert invariants.broken(lied) == ["1 gave different labels", "1 sent a second report"]
    assert invariants.broken(dataclasses.replace(lied, liars=frozenset({1}))) == []


def test_who_was_stopped_may_end_when_it_goes_on():
    late = seen(Ended(peer=0, at=40.0, outcome=Outcome.REPORTED), unable_until={0: 40.0})
    assert invariants.broken(late) == []


@pytest.mark.parametrize("times", [[(14.0, 15.9)], [(15.0, 20.0)], [(17.0, 20.0)]])
def test_who_went_on_before_the_exchange_was_over_or_was_stopped_when_all_had_asked_may_be_ready(times):
    assert invariants.broken(seen(held_up={0: times})) == []


@pytest.mark.parametrize(("size", "loss", "minimum"), [(3, 0.05, 3), (20, 0.05, 19), (190, 0.05, 181), (10, 0.4, 6)])
def test_the_holding_minimum_is_the_least_whole_number_of_the_share(size, loss, minimum):
    assert invariants.holding_minimum(size, loss) == minimum
