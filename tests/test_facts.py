"""Facts survive their file, and a transcript forgets times only."""

import msgspec
import pytest

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


@pytest.mark.parametrize("text", ["\x1b[2J\r\nall clear", "a\u202eb", "\0", "x" * 100_000, "ä" * 301])
def test_what_a_stranger_has_a_hand_in_is_short_and_moves_no_terminal(text):
    fact = facts.Rejected(peer=1, about=text)
    assert len(fact.about) <= facts.MAX_ABOUT
    assert fact.about.isprintable()
    assert facts.decode(facts.encode(fact)) == fact
    read = facts.decode(facts.encode(fact).replace(fact.about.encode(), msgspec.json.encode(text)[1:-1]))
    assert read == fact  # also what another program wrote
    assert facts.Rejected(peer=1, about="a short line: ü").about == "a short line: ü"


def test_a_fact_about_anything_fits_what_a_pipe_writes_at_once():
    for text in ("\U0001f600" * 1000, '"' * 1000, "\\" * 1000):
        assert len(facts.encode(facts.Rejected(peer="f" * 64, at=1e9, about=text))) < 4096
