"""Hundreds of hostile worlds break no invariant; each bug seeded into the machines is found in them, and shrunk.

Seeds are fixed, so nothing here can fail by chance. One scenario costs about 20 ms of CPU time.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import p2p_labeldp
from network.swarm.seeded_bugs import BUGS, mate_is_never_oneself
from p2p_labeldp.auditing.invariants import MATE_FAILURE
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Outcome
from p2p_labeldp.network.swarm import presets, scenario, searching

FIRST, SCENARIOS = 1450, 350  # one of the few that end "invalid" is among them
WITHIN = 500  # scenarios in which each bug has to be found


@pytest.fixture(scope="module")
def hostile():
    return searching.search(FIRST, "any", SCENARIOS)


def test_hundreds_of_hostile_worlds_break_no_invariant(hostile):
    assert hostile.failures == []
    assert hostile.scenarios == SCENARIOS


def test_they_are_hostile_and_not_hopeless(hostile):
    """Invariants that nothing ever tries would hold, too."""
    ends = {text.split()[0] for text in hostile.outcomes}
    assert ends >= {str(outcome) for outcome in Outcome}
    assert 0.1 < hostile.outcomes["reported"] / sum(hostile.outcomes.values()) < 0.9


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_each_preset_breaks_no_invariant(preset):
    found = searching.search(1000, preset, 20)
    assert found.failures == []
    assert preset != "none" or set(found.outcomes) == {"reported"}


@pytest.mark.parametrize("name", BUGS)
def test_each_seeded_bug_is_found(name, monkeypatch):
    BUGS[name](monkeypatch)
    assert any(scenario.play(scenario.draw(seed, "any")).broken for seed in range(WITHIN))


def test_mates_are_uniform_over_all_scenarios_and_a_draw_that_is_not_is_found(hostile, monkeypatch):
    """Called otherwise with probability 1e-9 for draws that are uniform."""
    assert hostile.mates_drawn > 1000
    assert hostile.mate_p_value > MATE_FAILURE
    mate_is_never_oneself(monkeypatch)
    found = searching.search(0, "none", 100)
    assert found.failures == []
    assert found.mate_p_value < MATE_FAILURE
    assert found.failed


def test_a_failing_scenario_is_shrunk_to_the_faults_it_needs(monkeypatch):
    BUGS["strangers_answered"](monkeypatch)
    (failure,) = searching.search(11, "any", 1).failures
    drawn = scenario.draw(11, "any")
    assert len(drawn.faults) > 1
    assert [type(fault).__name__ for fault in failure.faults] == ["Lie"]
    assert scenario.play(searching.only(drawn, failure.kept)).broken
    assert not scenario.play(searching.only(drawn, [])).broken


def test_only_faults_that_the_scenario_has_can_be_left_in():
    drawn = scenario.draw(11, "any")
    with pytest.raises(ConfigurationError, match="--only"):
        searching.only(drawn, [len(drawn.faults)])


def test_one_seed_gives_one_trace_in_any_process_and_another_seed_another():
    seeds = range(20, 28)
    here = [scenario.play(scenario.draw(seed, "any")).trace_hash for seed in seeds]
    script = (
        "import json; from p2p_labeldp.network.swarm import scenario as s;"
        f"print(json.dumps([s.play(s.draw(seed, 'any')).trace_hash for seed in range({seeds.start}, {seeds.stop})]))"
    )
    root = str(Path(p2p_labeldp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": "12345"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == here
    assert len(set(here)) == len(here)


def test_a_fault_changes_the_trace():
    drawn = scenario.draw(11, "any")
    assert scenario.play(drawn).trace_hash != scenario.play(searching.only(drawn, [])).trace_hash
