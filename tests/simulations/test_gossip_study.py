"""The committed table of simulations/gossip_study.py holds what is claimed; a run that is too slow is noticed.

The table is of the protocol as it was when the study was run last: a change of gossip asks for a new one.
"""

import math
from dataclasses import replace

import pytest

import gossip_study as study
from frame import RESULTS, read_rows
from gossip_study import CLAIMED, SEEDS, Cell, Run, World


@pytest.fixture(scope="module")
def table() -> list[Run]:
    return read_rows(RESULTS / "gossip_study.csv", Run)


def test_the_committed_table_holds_every_claim(table):
    assert list(study.wrong(table)) == []
    assert [run.cell for run in table[:: len(SEEDS)]] == list(study.cells(quick=False))
    assert max(run.rounds for run in table if run.cell == Cell(peers=CLAIMED)) <= math.log2(CLAIMED) + 4


def test_one_seed_gives_one_run_and_another_seed_another():
    cell = Cell(peers=32, loss=0.2, churn=0.25)
    run = World(cell, 1).run(1)
    assert World(cell, 1).run(1) == run
    assert World(cell, 2).run(2) != replace(run, seed=2)


@pytest.mark.parametrize(
    ("cell", "rounds", "complaint"),
    [
        (Cell(peers=CLAIMED), 14.0, "14.0 rounds, more than log2(n) + 4 = 13.97"),
        (Cell(loss=0.3), math.inf, "not everybody knows everybody"),
        (Cell(fanout=4), 60.0, "fan-out 4 is not always faster than 1"),
    ],
)
def test_a_run_that_is_too_slow_is_noticed(table, cell, rounds, complaint):
    slow = [replace(run, rounds=rounds) if run.cell == cell else run for run in table]
    assert any(complaint in line for line in study.wrong(slow))


def test_whoever_is_replaced_is_not_waited_for():
    cell = Cell(peers=16, churn=0.5)
    world = World(cell, 1)
    run = world.run(1)
    assert run.rounds < math.inf
    assert len(world.alive) == 16
    assert {i for i in world.alive if i >= 16} == set(range(16, 24))
