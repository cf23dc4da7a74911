"""How a peer that died in a round ends that round without having heard of it again: once, and on disk."""

from dataclasses import replace

import pytest
from protocol.little_round import CLASSES, LEARNER_ADDRESS, OPENED, Hand, committed, example, keys, peer

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Ended, Flipped, Outcome, Reason
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.network.party import Party
from p2p_labeldp.network.swarm.disk import Disk
from p2p_labeldp.protocol.kept import EndedIn, ReportedAs

UNREACHABLE, NOT_READY = (Outcome.UNREACHABLE, None), (Outcome.ABSTAINED, Reason.NOT_READY)
REPORT = ReportedAs(peer=1, at=33.0, sealed=b"sealed")


def joined():
    hand = Hand(peer())
    hand.start()
    return hand


def party(hand=None, *more):
    """The party that left behind what a peer persisted, and ``more``."""
    disk = Disk()
    for fact in (*(() if hand is None else hand.persisted(object)), *more):
        disk(fact)
    return Party(
        keys=keys(1),
        coins=randomness.replay(1, 1),
        example=example(),
        label_space=LabelSpace(classes=CLASSES),
        host="peer-1",
        port=7000,
        learner=LEARNER_ADDRESS,
        contacts=(),
        ordinal=1,
        study=True,
        store=disk,
    )


def gives_up(one, end):
    """Has it end as a process does, and returns what it tells."""
    facts = one.gives_up(*end)
    for fact in facts:
        one.store(fact)
    return facts[-1].outcome, facts[-1].reason


def told_by_a_restart(one):
    """What the peer tells that is started once more, its learner being there again."""
    again = Hand(one.peer(OPENED))
    again.start(5.0)
    return [(fact.outcome, fact.reason) for fact in again.facts(Ended)]


@pytest.mark.parametrize("left", [joined, committed])
@pytest.mark.parametrize("end", [UNREACHABLE, NOT_READY])
def test_a_peer_that_gives_up_on_the_round_it_died_in_tells_no_other_outcome_after_a_restart(left, end):
    one = party(left())
    assert gives_up(one, end) == end
    assert told_by_a_restart(one) == [end]


def test_a_peer_whose_end_is_not_kept_takes_its_round_up_again():
    """The control: what it told before it would tell differently."""
    assert told_by_a_restart(party(joined())) == []


def test_a_report_that_left_may_have_been_accepted_so_its_peer_lacks_a_receipt_whatever_else():
    one = party(committed(), REPORT)
    assert gives_up(one, UNREACHABLE) == (Outcome.FAILED, Reason.NO_RECEIPT)


def test_the_label_of_a_peer_that_had_a_roster_is_spent_and_that_of_another_is_not():
    assert [type(fact) for fact in party(committed()).gives_up(*UNREACHABLE)] == [Flipped, EndedIn]
    assert [type(fact) for fact in party(joined()).gives_up(*UNREACHABLE)] == [EndedIn]


def test_a_peer_without_a_round_behind_it_has_nothing_to_keep():
    done = party(joined())
    gives_up(done, UNREACHABLE)
    for one in (party(), done, replace(party(), store=None)):
        (end,) = one.gives_up(*NOT_READY)
        assert type(end) is Ended
        assert (end.outcome, end.reason) == NOT_READY


def test_another_example_than_it_died_with_is_refused_before_anything_is_spent():
    one = replace(party(committed()), example=example(9))
    for asks in (
        lambda: one.gives_up(*UNREACHABLE),
        lambda: one.left_behind(1e9),
        lambda: one.patience(0.0, usual=1.0),
    ):
        with pytest.raises(ConfigurationError, match="the peer is in a round with '1'"):
            asks()
