"""Real processes on real sockets: the same round as on the other engines, and nothing left of it afterwards.

Phases here are short, since the rounds are small; a round takes about fifteen seconds, of which its peers sleep most.
"""

import collections
import contextlib
import dataclasses
import math
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from contracts.engines import accuracy, on_arrays
from scipy.stats import chi2

from p2p_labeldp import facts
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Asked, Ended, Gathered, Joined, Outcome
from p2p_labeldp.network import launcher, virtual
from p2p_labeldp.protocol.manifest import Deadlines

pytestmark = pytest.mark.processes

SIZES = (5, 9, 12)  # unequal, the first at the minimum
SHORT = {"deadlines": Deadlines(join=7.0, exchange=11.0, closing=15.0, report=17.0), "gossip_period": 0.4}
SEEDS = range(20)
CLASSES = (2, 2, 2, 3, 10)
AT_ONCE = 4  # rounds that share the machine: also the test that several runs live side by side


@pytest.fixture(scope="module")
def rounds(study_of):
    """Twenty rounds of 26 peers, each peer a process, of 2, 3 or 10 classes: seed -> (study, played)."""

    def play(seed):
        terms = {"target_epsilon": 1.0} if seed % 2 else {"flip_probability": 0.2}
        terms["classes"] = tuple(map(str, range(CLASSES[seed % len(CLASSES)])))
        study = study_of(seed=seed, sizes=SIZES, **SHORT, **terms)
        return seed, (study, launcher.play(study))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(pool.map(play, SEEDS))


def test_three_engines_play_the_same_round(rounds):
    for study, played in rounds.values():
        transcript, reports = on_arrays(study)
        assert facts.transcript(played.facts) == transcript
        assert facts.transcript(virtual.play(study).facts) == transcript
        collected = played.collected.reports
        assert [(report.peer, report.cluster, report.label) for report in collected] == reports
        features = np.array([report.features for report in collected])
        assert accuracy(study, features, reports) == accuracy(study, study.features, reports)


def test_every_peer_reports(rounds):
    for study, played in rounds.values():
        ends = [fact for fact in played.facts if isinstance(fact, Ended)]
        assert collections.Counter(fact.outcome for fact in ends) == {Outcome.REPORTED: len(study)}


def test_another_seed_gives_another_transcript(rounds):
    assert len({tuple(facts.transcript(played.facts)) for _, played in rounds.values()}) == len(SEEDS)


def test_the_mate_asked_is_uniform_over_the_cluster_oneself_included(rounds):
    """Of 520 draws by real peers: the rank of the mate among the cluster's members, and picks of oneself against 1/s.

    A healthy engine fails either with probability below 1e-6 (chi-square tail; the counts per cell exceed 40).
    """
    ranks, selves, expected_selves = {size: collections.Counter() for size in SIZES}, 0, 0.0
    for study, played in rounds.values():
        cluster = {fact.peer: fact.cluster for fact in played.facts if isinstance(fact, Joined)}
        members = collections.defaultdict(list)
        for peer in sorted(cluster):
            members[cluster[peer]].append(peer)
        for fact in played.facts:
            if isinstance(fact, Asked):
                mates = members[cluster[fact.peer]]
                ranks[len(mates)][mates.index(fact.mate)] += 1
                selves += fact.mate == fact.peer
                expected_selves += 1 / len(mates)
        assert len(study) == len(cluster)
    total = sum(sum(counts.values()) for counts in ranks.values())
    assert total == len(SEEDS) * sum(SIZES)
    statistic = freedom = 0.0
    for size, counts in ranks.items():
        expected = sum(counts.values()) / size
        statistic += sum((counts[rank] - expected) ** 2 / expected for rank in range(size))
        freedom += size - 1
    assert chi2.sf(statistic, freedom) > 1e-6
    # Bernstein: |selves - mean| <= sqrt(2 v x) + 2 x / 3 but with probability 2 exp(-x), x = 15; v <= mean
    assert abs(selves - expected_selves) <= (2 * expected_selves * 15) ** 0.5 + 10


def processes_of(launcher_pid):
    """Ids of all processes started for a launcher, by their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            module, parent = command[2:4] if len(command) > 3 else (b"", b"")
            if module.startswith(b"p2p_labeldp.network.") and parent == str(launcher_pid).encode():
                found.append(int(entry.name))
    return found


def started(*, peers=60):
    """A launcher in a process of its own, early in a round of ``peers`` processes."""
    command = [sys.executable, "-m", "p2p_labeldp", "run", "--quiet", "--set", "data.name=synthetic"]
    settings = (f"data.peers={peers}", "clusters.count=2", "clusters.minimum_size=5", "exchange.deadlines.join=30")
    for setting in settings:
        command += ["--set", setting]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


LOOK_SECONDS = 0.05


def wait_for(condition, *, seconds):
    """As many looks as fit into the time on a machine that nobody else uses: on a busy one each takes longer."""
    for _ in range(round(seconds / LOOK_SECONDS)):
        if condition():
            return
        time.sleep(LOOK_SECONDS)
    assert condition(), "it did not happen in time"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at_least", [5, 60], ids=["while spawning", "in the middle"])
def test_no_process_is_left_two_seconds_after_the_launcher_is_ended(number, at_least):
    run = started()
    try:
        wait_for(lambda: len(processes_of(run.pid)) >= at_least, seconds=300)
        run.send_signal(number)
        run.wait(60)
        wait_for(lambda: not processes_of(run.pid), seconds=2)
    finally:
        run.kill()
        run.wait()


MARK = b"\x3f\xe0MARK"  # the first six bytes of a number near 1/2; the last two number the peer


def marked(study):
    """The study with each peer's second feature marked by its ordinal."""
    features = study.features.copy()
    features[:, 1] = [struct.unpack(">d", MARK + i.to_bytes(2, "big"))[0] for i in range(len(study))]
    return dataclasses.replace(study, features=features)


@contextlib.contextmanager
def held_still(pids):
    """They stand where they are: a round that went on would be over before a busy machine has looked at all of it."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def holds(pid):
    """Whose marked features stand in the memory of a process, as MessagePack writes them or as the machine does."""
    found = set()
    regions = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", Path(f"/proc/{pid}/maps").read_text(), re.M)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for first, last in regions:
            try:
                memory.seek(int(first, 16))
                content = memory.read(int(last, 16) - int(first, 16))
            except OSError:  # a region that can't be read
                continue
            found |= {content[at.end() : at.end() + 2] for at in re.finditer(re.escape(MARK), content)}
            found |= {content[at.start() - 2 : at.start()][::-1] for at in re.finditer(re.escape(MARK[::-1]), content)}
    return {int.from_bytes(ordinal, "big") for ordinal in found}


def test_a_peer_process_holds_its_own_example_and_nobody_elses(study_of):
    """Looked for in the memory of the running processes; freed memory that was not overwritten is memory too."""
    study = marked(study_of(seed=1, sizes=SIZES, **SHORT))
    seen = {}
    joined = []

    def look(fact):
        joined.append(isinstance(fact, Joined))
        if sum(joined) == len(study) and not seen:
            pids = processes_of(os.getpid())
            with held_still(pids):
                seen.update({pid: holds(pid) for pid in pids})

    launcher.play(study, on_fact=look)
    held = sorted(seen.values(), key=len)
    assert [len(examples) for examples in held] == [0, 0] + [1] * len(study)  # learner and zygote, then the peers
    assert set.union(*held) == set(range(len(study)))


def test_directories_converge_with_the_learner_stopped(study_of):
    deadlines = Deadlines(join=12.0, exchange=14.0, closing=15.0, report=16.0)
    study = study_of(seed=2, sizes=SIZES, deadlines=deadlines, gossip_period=0.4)
    stopped = []

    def stop_learner(fact):
        if isinstance(fact, Joined):
            stop_learner.joined += 1
        if stop_learner.joined == len(study) and not stopped:
            (learner,) = (
                pid
                for pid in processes_of(os.getpid())
                if b"learner_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
            )
            os.kill(learner, signal.SIGSTOP)
            stopped.append(learner)
            threading.Timer(20.0, os.kill, (learner, signal.SIGCONT)).start()  # so that it can hand over and end

    stop_learner.joined = 0
    played = launcher.play(study, on_fact=stop_learner)
    assert stopped
    gathered = [fact for fact in played.facts if isinstance(fact, Gathered)]
    sizes = collections.Counter(fact.cluster for fact in played.facts if isinstance(fact, Joined))
    assert len(gathered) == len(study)
    assert all(fact.records == sizes[fact.cluster] for fact in gathered)
    ends = collections.Counter(fact.outcome for fact in played.facts if isinstance(fact, Ended))
    assert ends == {Outcome.UNREACHABLE: len(study)}


@pytest.mark.parametrize("packed", [1, 7, 64])
def test_peers_packed_into_processes_have_the_same_transcript(study_of, packed):
    """26 peers: each alone, in four processes of at most seven, all in one."""
    study = study_of(seed=4, sizes=SIZES, **SHORT)
    processes = set()

    def look(fact):
        if isinstance(fact, Joined) and not processes:  # the round opens when all listen
            processes.update(processes_of(os.getpid()))

    played = launcher.play(dataclasses.replace(study, peers_per_process=packed), on_fact=look)
    assert facts.transcript(played.facts) == on_arrays(study)[0]
    assert len(processes) - 2 == math.ceil(len(study) / packed)  # learner and zygote have none


WARM_FORKS = r"""
import os
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.network import zygote

zygote.warm_up()
keys = Keys(bytes(32))
for _ in range(2):
    child = os.fork()
    if child == 0:
        os.write(1, keys.seal(keys.sealing_public, b"1", info=b"i").hex().encode() + b"\n")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_forked_processes_draw_different_ephemeral_keys():
    """Boxes of two children of one warmed-up parent, of the same content for the same key, differ.

    In a process of its own: the one that runs tests may have threads by now, and would fork into a deadlock.
    """
    said = subprocess.run([sys.executable, "-c", WARM_FORKS], capture_output=True, text=True, check=True).stdout
    boxes = [bytes.fromhex(line) for line in said.splitlines()]
    keys = Keys(bytes(32))
    assert len(boxes[0]) == len(boxes[1]) > 32
    assert boxes[0] != boxes[1]
    assert [keys.open(box, info=b"i") for box in boxes] == [b"1", b"1"]
