"""Facts survive their file, and a transcript forgets times only."""

from p2p_labeldp import facts
from p2p_labeldp.facts import Accepted, Asked, Ended, Held, Outcome, Reason


def test_facts_survive_encoding():
    for fact in (
        Asked(peer=3, mate=4, at=1.5),
        Accepted(peer="ab", cluster=0, label=1),
        Ended(peer=1, outcome=Outcome.ABSTAINED, reason=Reason.MATE_TIMEOUT),
    ):
        assert facts.decode(facts.encode(fact)) == fact


def test_transcript_ignores_time_and_order_but_nothing_else():
    a = [Asked(peer=1, mate=2, at=0.5), Ended(peer=1, outcome=Outcome.REPORTED), Held(peer=1)]
    b = [Ended(peer=1, outcome=Outcome.REPORTED, at=9.0), Asked(peer=1, mate=2, at=3.0)]
    assert facts.transcript(a) == facts.transcript(b)
    assert facts.transcript(a) != facts.transcript([*b, Asked(peer=2, mate=2)])
