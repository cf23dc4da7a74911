"""How many peers fit, and that what a peer is said to take is what a peer takes."""

import os
import re
from pathlib import Path

import pytest

from network.test_processes import SHORT, SIZES, held_still, processes_of
from p2p_labeldp.facts import Ready
from p2p_labeldp.network import capacity, launcher
from p2p_labeldp.network.limits import Limits

PLENTY = {
    "memory": 10**12,
    "memory_of": "machine",
    "processes": 10**6,
    "processes_of": "machine",
    "descriptors": 10**6,
    "addresses": 10**5,
    "cores": 2.0,
    "clock_step_seconds": 1e-9,
    "clock_error_seconds": None,
}


def fits(**limits):
    return capacity.of(Limits(**{**PLENTY, **limits}))


@pytest.mark.parametrize(
    ("limits", "peers"),
    [
        ({"memory": capacity.SHARED_BYTES + 20 * capacity.PEER_BYTES + 1}, 20),
        ({"processes": capacity.SHARED_PROCESSES + 30}, 30),
        ({"descriptors": capacity.SHARED_DESCRIPTORS + 40}, 40),
        ({"addresses": 50}, 50),
    ],
    ids=["memory", "processes", "descriptors", "addresses"],
)
def test_the_scarcest_resource_sets_the_number_and_is_named(limits, peers, request):
    found = fits(**limits)
    assert (found.peers, found.bound_by) == (peers, request.node.callspec.id)


def test_a_resource_that_nothing_limits_sets_nothing():
    found = fits(memory=None, processes=None)
    assert found.by == {"addresses": 10**5}


def test_where_not_even_the_learner_fits_nothing_does():
    assert fits(memory=10**6).peers == 0
    assert fits(processes=2).peers == 0


def test_fewer_cores_make_rounds_longer_not_smaller():
    one, eight = fits(cores=1.0, addresses=1000), fits(cores=8.0, addresses=1000)
    assert one.peers == eight.peers == 1000
    assert one.round_seconds > eight.round_seconds


@pytest.mark.processes
def test_a_round_takes_what_it_is_said_to_take(study_of):
    """Memory of every process late in a round, its descriptors and threads. The number of peers that fit is too low by
    less than half, and never too high."""
    study = study_of(seed=1, sizes=SIZES, **SHORT)
    ready, seen = [], {}

    def look(fact):
        ready.append(isinstance(fact, Ready))
        if sum(ready) == len(study) and not seen:
            pids = processes_of(os.getpid())
            with held_still(pids):
                seen.update({pid: taken(pid) for pid in pids})

    launcher.play(study, on_fact=look)
    peers = [found for found in seen.values() if found["parent"] != os.getpid()]
    shared = [found for found in seen.values() if found["parent"] == os.getpid()]
    assert (len(peers), len(shared)) == (len(study), 2)
    for found in peers:
        assert capacity.PEER_BYTES / 2 < found["memory"] <= capacity.PEER_BYTES
        assert found["descriptors"] <= capacity.PEER_DESCRIPTORS
        assert found["threads"] == capacity.PEER_PROCESSES
    assert sum(found["threads"] for found in shared) <= capacity.SHARED_PROCESSES
    assert sum(found["memory"] for found in shared) <= capacity.SHARED_BYTES


def taken(pid):
    here = Path(f"/proc/{pid}")
    status, rollup = (here / "status").read_text(), (here / "smaps_rollup").read_text()
    private = sum(map(int, re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+)", rollup, re.M)))
    tables = int(re.search(r"VmPTE:\s+(\d+)", status)[1])
    return {
        "parent": int(re.search(r"PPid:\s+(\d+)", status)[1]),
        "memory": 1024 * (private + tables),
        "threads": int(re.search(r"Threads:\s+(\d+)", status)[1]),
        "descriptors": len(os.listdir(here / "fd")),
    }
