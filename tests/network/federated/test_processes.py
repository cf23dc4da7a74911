"""Real processes on real sockets: the model of the other engines, also when a learner or a peer is killed."""

import asyncio
import os
import signal
import subprocess
import sys

import msgspec
import pytest
from free_ports import free_ports

from network.federated.little_study import LABELS, TERMS, study
from p2p_labeldp import facts
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Averaged, Contributed, Ended, Outcome
from p2p_labeldp.network.federated import launcher, virtual
from p2p_labeldp.network.federated.learner import Order
from p2p_labeldp.network.federated.peers import run_contributors
from p2p_labeldp.network.federated.study import TrainedModel, specs_of
from p2p_labeldp.network.study import Where

pytestmark = pytest.mark.processes

QUICK = msgspec.structs.replace(TERMS, round_seconds=60.0, poll_seconds=0.1)


def test_processes_train_the_model_of_the_other_engines():
    heard = []
    played = launcher.play(study(terms=QUICK), on_fact=heard.append)
    assert played.model == virtual.play(study()).model
    assert [fact.outcome for fact in played.facts if isinstance(fact, Ended)] == [Outcome.REPORTED] * len(LABELS)
    assert sum(isinstance(fact, Contributed) for fact in heard) == len(LABELS) * TERMS.rounds
    assert [fact.answers for fact in heard if isinstance(fact, Averaged)] == [len(LABELS)] * TERMS.rounds
    assert played.messages > 4 * len(LABELS) * TERMS.rounds  # a question and a box each, and their replies
    assert played.bytes > 0


def test_packed_peers_and_peers_without_a_seed_train_too():
    packed = launcher.play(study(terms=QUICK, peers_per_process=5))
    assert packed.model == virtual.play(study()).model
    own = launcher.play(study(terms=QUICK, seed=None, peers_per_process=12))
    assert own.model.complete
    assert own.model.parameters != packed.model.parameters


def test_a_peer_that_is_killed_costs_one_deadline_and_the_run_goes_on():
    # The first round has to be longer than the pause between two looks whether it is open: six seconds.
    one = study(terms=msgspec.structs.replace(QUICK, round_seconds=20.0))
    killed = []

    def on_fact(fact):
        if isinstance(fact, Averaged) and fact.round == 1 and not killed:
            victim = next(pid for pid in peers_of(os.getpid()) if pid not in killed)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    played = launcher.play(one, on_fact=on_fact)
    assert played.model.complete
    answers = [fact.answers for fact in played.facts if isinstance(fact, Averaged)]
    assert answers[:2] == [12, 12]
    assert answers[-1] == 11
    outcomes = [fact.outcome for fact in played.facts if isinstance(fact, Ended)]
    assert sorted(outcomes) == [Outcome.FAILED] + [Outcome.REPORTED] * 11


def peers_of(launching):
    """Process ids of the zygote's children."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{parent}/stat") as file:
                grandparent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if grandparent == launching:
            found.append(int(entry))
    return found


class Learner:
    """A learner process with its key and its state, as often as it is started."""

    def __init__(self, state, terms):
        self.state, self.terms, self.port = state, terms, free_ports(1)[0]
        self.reading, self.writing = os.pipe()
        self._unread, self._over = b"", -1
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "p2p_labeldp.network.federated.learner", str(os.getpid()), str(self.writing),
             "127.0.0.1", str(self.port), "22" * 32],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(self.writing,),
        )  # fmt: skip
        self.process.stdout.readline()  # where it listens
        order = Order(terms=self.terms, seed=5, state=str(self.state))
        self.process.stdin.write(msgspec.msgpack.encode(order))
        self.process.stdin.close()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def trained(self):
        data = self.process.stdout.read()
        self.process.wait()
        self.process.stdout.close()
        return msgspec.msgpack.decode(data, type=TrainedModel)

    def wait_for_round(self, number):
        """Returns when the learner has said that a round is over."""
        while self._over < number:
            *lines, self._unread = (self._unread + os.read(self.reading, 4096)).split(b"\n")
            rounds = [fact.round for fact in map(facts.decode, lines) if isinstance(fact, Averaged)]
            self._over = max([self._over, *rounds])


async def test_a_learner_killed_between_rounds_goes_on_with_the_same_model(tmp_path):
    learner = Learner(tmp_path / "learner.state", QUICK)
    learner.start()
    where = Where(Keys(bytes.fromhex("22" * 32)).peer_id, "127.0.0.1", learner.port)
    peers = asyncio.ensure_future(
        run_contributors(specs_of(study(terms=QUICK), learner=where), lambda _fact: None, stopped=asyncio.Event())
    )
    loop = asyncio.get_running_loop()
    for number in (1, 4):
        await loop.run_in_executor(None, learner.wait_for_round, number)
        learner.kill()
        learner.start()
    await peers
    model = await loop.run_in_executor(None, learner.trained)
    os.close(learner.reading)
    os.close(learner.writing)
    whole = virtual.play(study()).model
    assert model == whole
