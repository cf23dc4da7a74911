"""Several hosts: the same round between network namespaces, over a wire that delays and loses."""

import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from network.hosts import Hosts, why_not
from p2p_labeldp import facts, randomness
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Listening
from p2p_labeldp.network import virtual
from p2p_labeldp.network.study import Where, draw_secrets, peer_specs
from p2p_labeldp.network.transport import parse_address
from p2p_labeldp.protocol.manifest import Deadlines

pytestmark = pytest.mark.processes

SIZES = (3, 5)
DELAY, LOSS = 0.04, 0.02
UNHURRIED = {"deadlines": Deadlines(join=14.0, exchange=22.0, closing=30.0, report=34.0), "gossip_period": 0.5}
PORT, LEARNER_PORT = 7741, 7800
ROUND_TRIP = """
import socket, time
def once():
    began = time.monotonic()
    with socket.socket() as probe:
        assert probe.connect_ex(("{host}", 9)) == 111  # nobody listens: the refusal takes one round trip
    return time.monotonic() - began
print(min(once() for _ in range(10)))
"""


@pytest.fixture(scope="module", autouse=True)
def _namespaces():
    if (why := why_not()) is not None:
        pytest.skip(why)


def round_trip(hosts):
    """Seconds from the first host to the second and back, the least of ten: one that lost nothing."""
    script = ROUND_TRIP.format(host=hosts.address(1))
    return float(subprocess.check_output(hosts.command(0, "-c", script), text=True))


def played(study, hosts, seed):
    """The facts of a round with the learner on the first host and each peer on one of the others."""
    listening = threading.Semaphore(0)

    def start(host, stdin, *arguments):
        module = ("-m", "p2p_labeldp.network.study_party")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(
            hosts.command(host, *module, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        process.stdin.write(stdin)
        process.stdin.close()
        running.append(process)
        return process

    def hear(process):
        heard = []
        for line in process.stdout:
            heard.append(facts.decode(line))
            if isinstance(heard[-1], Listening):
                listening.release()
        return heard

    running = []
    try:
        learner = start(0, msgspec.msgpack.encode(study.terms), "learner", hosts.address(0), str(LEARNER_PORT))
        where = Where(*parse_address(learner.stdout.readline().decode().strip()))
        ids = [Keys(randomness.replay(seed, i).identity()).peer_id for i in range(len(study))]
        places = [(hosts.address(i + 1), PORT) for i in range(len(study))]
        for i, spec in enumerate(peer_specs(study, secrets=draw_secrets(study), ids=ids, places=places, learner=where)):
            start(i + 1, msgspec.msgpack.encode(spec), "peer", str(seed))
        with ThreadPoolExecutor(len(running)) as pool:
            readers = [pool.submit(hear, process) for process in running]
            for _ in range(len(study)):
                assert listening.acquire(timeout=120)
            learner.send_signal(signal.SIGUSR1)
            return [fact for reader in readers for fact in reader.result()]
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdout.close()


def test_hosts_far_apart_that_lose_packets_play_the_virtual_engines_round(study_of):
    study = study_of(seed=3, sizes=SIZES, **UNHURRIED)
    with Hosts(len(study) + 1, delay=DELAY, loss=LOSS, seed=3) as hosts:
        assert round_trip(hosts) >= 2 * DELAY
        transcript = facts.transcript(played(study, hosts, 3))
        assert hosts.lost() > 0
    assert transcript == facts.transcript(virtual.play(study).facts)


def test_it_is_the_wire_that_delays():
    """The positive control: the same hosts on a plain bridge."""
    with Hosts(2) as hosts:
        assert round_trip(hosts) < DELAY
        assert hosts.lost() == 0
