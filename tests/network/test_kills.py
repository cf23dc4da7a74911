"""kill -9 of real peers and a real learner: nothing twice, no accepted report lost; and a checker that would see it.

Two rounds of the soak, ``tests/network/killing.py``, which by hand kills two hundred times.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

SCRIPT = Path(__file__).with_name("killing.py")


def soak(*arguments):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", "--pace", "1.5", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_killed_at_instants_and_at_facts_nothing_happens_twice_and_nothing_is_lost():
    summary = soak("--kills", "6", "--seed", "2")
    assert summary["found"] == []
    assert summary["kills"] >= 6
    assert min(summary["at_facts"], summary["at_instants"]) >= 1


LEARNER_AT_ITS_SECOND_REPORT = "7:2:AcceptedFrom"


@pytest.mark.parametrize("forget", [False, True])
def test_a_learner_that_persists_nothing_of_what_it_accepted_is_found_out(forget):
    summary = soak("--kill", LEARNER_AT_ITS_SECOND_REPORT, *(("--forget", "AcceptedFrom") if forget else ()))
    assert summary["kills"] == 1
    assert any("is lost" in line for line in summary["found"]) == forget
    assert forget or summary["found"] == []
