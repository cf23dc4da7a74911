"""The ledger of updates: one box a round, levels that add up over runs, a budget that holds."""

import math

import pytest

from p2p_labeldp.errors import BudgetExhausted, ConfigurationError, PrivacyError
from p2p_labeldp.protocol.kept import ContributedAs
from p2p_labeldp.protocol.update_ledger import UpdateLedger, UpdatePolicy

A, B = bytes(32), b"\1" * 32


def entry(number=0, *, run=A, round_id=A, epsilon=6.0, box=b"box", data_id="data"):
    return ContributedAs(peer=0, round=number, run_id=run, round_id=round_id, data_id=data_id, epsilon=epsilon, box=box)


def test_levels_add_up_over_rounds_and_runs_and_not_over_data():
    ledger = UpdateLedger([entry(0), entry(1, epsilon=0.0), entry(0, run=B, epsilon=2.5), entry(3, data_id="other")])
    assert (ledger.spent("data"), ledger.spent("other"), ledger.spent("none")) == (8.5, 6.0, 0.0)
    assert (ledger.last(A), ledger.last(B), ledger.last(b"\2" * 32)) == (3, 0, -1)


def test_the_same_again_is_no_news_and_anything_else_of_a_round_is_refused():
    ledger = UpdateLedger()
    assert ledger.enter(entry())
    assert not ledger.enter(entry())
    for other in (entry(box=b"another"), entry(round_id=B)):
        with pytest.raises(PrivacyError, match="round 0 was answered before"):
            ledger.enter(other)
        assert UpdateLedger().enter(other)  # refused for what stood there, for nothing else
    assert ledger.spent("data") == 6.0


def test_nothing_is_entered_beyond_the_budget():
    ledger = UpdateLedger([entry(0, run=B)], budget=12.0)
    assert ledger.affords("data", 6.0)
    ledger.enter(entry(0))
    assert not ledger.affords("data", 6.0)
    with pytest.raises(BudgetExhausted, match="12 of 12 spent; 6 more"):
        ledger.enter(entry(1))
    assert ledger.enter(entry(1, epsilon=0.0))  # nothing costs nothing
    assert UpdateLedger([entry(0), entry(0, run=B)]).enter(entry(1))


def test_a_budget_that_doubles_can_not_hold_is_as_many_updates_as_it_says():
    ledger = UpdateLedger(budget=0.3)
    for number in range(3):
        assert ledger.affords("data", 0.1)
        ledger.enter(entry(number, epsilon=0.1))
    assert not ledger.affords("data", 0.1)


def test_only_the_last_box_is_kept():
    ledger = UpdateLedger()
    for number in range(3):
        ledger.enter(entry(number, box=bytes([number + 1])))
    assert [ledger.find(A, number).box for number in range(3)] == [b"", b"", b"\3"]


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, math.inf, True])
def test_limits_that_are_no_numbers_above_zero_are_refused(limit):
    with pytest.raises(ConfigurationError, match=r"^budget: "):
        UpdateLedger(budget=limit)
    with pytest.raises(ConfigurationError, match=r"^epsilon: "):
        UpdatePolicy(epsilon=limit)
