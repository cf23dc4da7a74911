"""Rounds in containers, for ``make soak-containers``: real images, a real network, containers killed, paused, cut off.

    python tests/network/containers.py [--peers 20] [--rounds 3] [--seed 0]

The images p2p-labeldp and p2p-labeldp-study have to be there (configs/deploy/build-image). First a round of the study
image, whose transcript has to be the virtual engine's for the same seed. Then rounds of the deployed image from the
files that ``p2p-labeldp deploy compose`` writes: one in peace, the others with faults drawn beforehand from the seed.
Each has to end, with one outcome for each peer, and nothing released twice; that is read from what the containers said
and from what they have on disk.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from p2p_labeldp import config, experiment, facts, randomness
from p2p_labeldp.auditing.once import violations
from p2p_labeldp.cli.app import main as command
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.deployment.compose import LEARNER, shard_host
from p2p_labeldp.facts import Accepted, Ended, Fact, Flipped, Listening, Outcome, Reason
from p2p_labeldp.network import virtual
from p2p_labeldp.network.study import Where, draw_secrets, peer_specs
from p2p_labeldp.network.transport import parse_address
from p2p_labeldp.protocol import kept

PORT = 7741
PHASES = {"join": 50, "exchange": 20, "closing": 30, "report": 15}  # seconds; two busy cores start 21 containers
GRACE = 90.0  # beyond the last deadline
KINDS = ("kill", "pause", "cut")


def docker(*arguments: str, check: bool = True) -> str:
    """What a Docker command prints."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"docker {' '.join(arguments[:3])}: {done.stderr.strip()}")
    return done.stdout.strip()


def settings(peers: int) -> list[str]:
    """Of a small round in one cluster."""
    phases = [f"exchange.deadlines.{name}={seconds}" for name, seconds in PHASES.items()]
    return [f"clusters.minimum_size={peers // 2}", "clusters.count=1", "mechanism.tolerated_loss=0.3", *phases]


# -- a study -----------------------------------------------------------------------------------------------------------


def study_round(*, peers: int, seed: int) -> int:
    """A round of the study image; returns the length of its transcript, which has to be the virtual engine's."""
    overrides = [*settings(peers), "clusters.count=2", "clusters.minimum_size=8", f"data.peers={peers}"]
    prepared = experiment.prepare(config.load("breast-cancer", overrides), engine="processes", seed=seed)
    study = prepared.study
    tag = f"p2p-study-{os.getpid()}"
    docker("network", "create", "--internal", tag)
    running: list[subprocess.Popen[bytes]] = []
    names: list[str] = []
    heard: list[Fact] = []
    listening = threading.Semaphore(0)

    def start(host: str, stdin: bytes, *arguments: str) -> subprocess.Popen[bytes]:
        name = f"{tag}-{host}"
        options = ["--rm", "-i", "--read-only", "--cap-drop", "ALL", "--network", tag, "--network-alias", host]
        process = subprocess.Popen(
            ["docker", "run", *options, "--name", name, "p2p-labeldp-study", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        names.append(name)
        running.append(process)
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        return process

    def hear(process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            fact = facts.decode(line)
            heard.append(fact)
            if isinstance(fact, Listening):
                listening.release()

    try:
        learner = start(LEARNER, msgspec.msgpack.encode(study.terms), "learner", LEARNER, "7800")
        assert learner.stdout is not None
        where = Where(*parse_address(learner.stdout.readline().decode().strip()))
        ids = [Keys(randomness.replay(seed, i).identity()).peer_id for i in range(peers)]
        specs = peer_specs(
            study,
            secrets=draw_secrets(study),
            ids=ids,
            places=[(f"peer-{i}", PORT) for i in range(peers)],
            learner=where,
        )
        for spec in specs:
            blank = msgspec.structs.replace(spec, seed=0)  # the entry point takes it
            start(spec.host, msgspec.msgpack.encode(blank), "peer", str(seed))
        readers = [threading.Thread(target=hear, args=(process,)) for process in running]
        for reader in readers:
            reader.start()
        for _ in range(peers):
            assert listening.acquire(timeout=300), "not every peer listens"
        docker("kill", "--signal", "USR1", names[0])
        for reader in readers:
            reader.join(sum(PHASES.values()) + GRACE)
            assert not reader.is_alive(), "the round did not end"
    finally:
        docker("rm", "--force", *names, check=False)
        for process in running:
            process.wait()
        docker("network", "rm", tag, check=False)
    transcript = facts.transcript(heard)
    assert transcript == facts.transcript(virtual.play(study).facts), "not the virtual engine's transcript"
    assert transcript != facts.transcript(virtual.play(replace(study, seed=seed + 1)).facts), "any seed would do"
    return len(transcript)


# -- deployed ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A container is taken away ``at`` seconds after the start, and is back ``lasting`` seconds later."""

    kind: str
    service: str
    at: float
    lasting: float


def drawn(rng: random.Random, *, services: Sequence[str], count: int) -> list[Fault]:
    """Faults for one round, in order."""
    end = sum(PHASES.values())
    found = []
    for kind, service in zip(KINDS * count, rng.sample(list(services), count), strict=False):
        at = rng.uniform(10.0, 0.9 * end)
        found.append(Fault(kind=kind, service=service, at=at, lasting=rng.uniform(2.0, 25.0)))
    return sorted(found, key=lambda fault: fault.at)


class Deployment:
    """A round started by Compose."""

    def __init__(self, directory: Path, *, peers: int, project: str) -> None:
        self.project = project
        self.peers = peers
        self._file = directory / "compose.yaml"
        self._killed: set[str] = set()
        overrides = [text for setting in settings(peers) for text in ("--set", setting)]
        arguments = ["deploy", "compose", "breast-cancer", "--peers", str(peers), "--out", str(directory), *overrides]
        with redirect_stdout(io.StringIO()):
            assert command(arguments) == 0

    def compose(self, *arguments: str) -> None:
        """A Compose command, by the plugin or by the older program."""
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
        tool = ["docker", "compose"] if plugin else ["docker-compose"]
        place = ["--project-name", self.project, "--project-directory", str(self._file.parent)]
        done = subprocess.run(
            [*tool, *place, "--file", str(self._file), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "COMPOSE_HTTP_TIMEOUT": "300"},
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(tool)} {arguments[0]}: {done.stderr[-500:]}")

    def container(self, service: str) -> str:
        """Its id."""
        labels = (f"com.docker.compose.project={self.project}", f"com.docker.compose.service={service}")
        found = docker("ps", "-aq", *(text for label in labels for text in ("--filter", f"label={label}")))
        assert found, f"no container of {service}"
        return found.split()[0]

    @property
    def services(self) -> list[str]:
        """Of the peers."""
        return [shard_host(i) for i in range(self.peers)]

    def inflict(self, fault: Fault, *, back: bool) -> None:
        """Takes a container away, or brings it back."""
        container, network = self.container(fault.service), f"{self.project}_round"
        match fault.kind, back:
            case "kill", False:
                if docker("ps", "-q", "--filter", f"id={container}"):  # it may have ended by itself
                    docker("kill", container, check=False)
                    self._killed.add(container)
            case "kill", True:
                if container in self._killed:
                    docker("start", container)
            case "pause", _:
                docker("unpause" if back else "pause", container, check=False)
            case "cut", False:
                docker("network", "disconnect", network, container, check=False)
            case "cut", True:
                docker("network", "connect", "--alias", fault.service, network, container, check=False)

    def wait(self, *, seconds: float) -> None:
        """Until every container has ended by itself, with status 0."""
        end = time.monotonic() + seconds
        while True:
            left = docker("ps", "-q", "--filter", f"label=com.docker.compose.project={self.project}").split()
            if not left:
                break
            assert time.monotonic() < end, f"{len(left)} containers still run: the round did not end"
            time.sleep(2.0)
        for service in (LEARNER, *self.services):
            status = docker("inspect", "--format", "{{.State.ExitCode}}", self.container(service))
            assert status == "0", (
                f"{service} ended with {status}: {docker('logs', '--tail', '5', self.container(service))}"
            )

    def outcomes(self) -> dict[str, list[dict[str, str]]]:
        """What each peer container said it ended with."""
        found = {}
        for service in self.services:
            said = docker("logs", self.container(service)).splitlines()  # of standard output alone
            found[service] = [json.loads(line) for line in said if line.startswith("{")]
        return found

    def exchanged(self) -> bool:
        """Whether the exchange is over for some peer: then all asks are made."""
        logs = (["docker", "logs", self.container(service)] for service in self.services)
        return any(b'"event": "ready"' in subprocess.run(log, capture_output=True, check=True).stderr for log in logs)

    def kept(self, scratch: Path) -> list[Fact]:
        """What the peers have on disk now, running or not."""
        found: list[Fact] = []
        scratch.mkdir()
        for service in self.services:
            directory = scratch / service
            docker("cp", f"{self.container(service)}:/state/.", str(directory))
            found += [fact for file in directory.glob("*.state") for fact in on_disk(file)]
        return found

    def learnt(self, scratch: Path) -> list[Fact]:
        """The learner's facts."""
        docker("cp", f"{self.container(LEARNER)}:/state/result", str(scratch))
        return [facts.decode(line) for line in (scratch / "result" / "facts.jsonl").read_bytes().splitlines()]


def on_disk(file: Path) -> list[Fact]:
    """A peer's log and what has left of its label."""
    database = sqlite3.connect(file)
    try:
        log = [kept.exported(kept.decode(row[0])) for row in database.execute("SELECT fact FROM log ORDER BY n")]
        columns = "label_id, flip_probability, flipped_label, round_id, roster"
        rows = database.execute(f"SELECT {columns} FROM releases").fetchall()
    finally:
        database.close()
    released = [Flipped(peer=file.stem, **dict(zip(columns.split(", "), row, strict=True))) for row in rows]
    return [*(fact for fact in log if fact is not None), *released]


def check(outcomes: Iterable[list[dict[str, str]]], found: Sequence[Fact], learnt: Sequence[Fact]) -> Counter[str]:
    """The invariants of one round; returns how it ended for how many.

    Args:
        outcomes: What each peer said it ended with.
        found: What the peers had on disk, after the exchange and in the end.
        learnt: What the learner saw.

    Raises:
        AssertionError: One does not hold.
    """
    ends = []
    for said in outcomes:
        assert len(said) == 1, f"{len(said)} outcomes of one peer"
        reason = said[0]["reason"]
        ends.append(
            Ended(
                peer=said[0]["peer"],
                outcome=Outcome(said[0]["outcome"]),
                reason=None if reason is None else Reason(reason),
            )
        )
    accepted = [fact for fact in learnt if isinstance(fact, Accepted)]
    told = [fact for fact in found if not isinstance(fact, Ended)]
    wrong = violations([*told, *accepted, *ends], reports={fact.peer: fact.label for fact in accepted})
    assert not wrong, "\n".join(wrong)
    return Counter(f"{end.outcome.value}" + (f" ({end.reason.value})" if end.reason else "") for end in ends)


def _after_the_exchange(deployment: Deployment, scratch: Path) -> list[Fact]:
    """What is on the peers' disks when all asks are made: a peer whose round is over erases its own."""
    end = time.monotonic() + sum(PHASES.values())
    while not deployment.exchanged():
        assert time.monotonic() < end, "no peer came to the end of the exchange"
        time.sleep(1.0)
    return deployment.kept(scratch)


def deployed_round(*, peers: int, faults: Sequence[Fault], number: int) -> Counter[str]:
    """A round of the deployed image with these faults."""
    scratch = Path(tempfile.mkdtemp(prefix="p2p-containers-"))
    deployment = Deployment(scratch / "round", peers=peers, project=f"p2p-soak-{os.getpid()}-{number}")
    try:
        deployment.compose("up", "--detach")
        began = time.monotonic()
        steps = sorted(
            [(fault.at, False, fault) for fault in faults]
            + [(fault.at + fault.lasting, True, fault) for fault in faults],
            key=lambda step: step[:2],
        )
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(_after_the_exchange, deployment, scratch / "asked")
            for at, back, fault in steps:
                time.sleep(max(began + at - time.monotonic(), 0.0))
                deployment.inflict(fault, back=back)
            deployment.wait(seconds=sum(PHASES.values()) + GRACE)
            found = asked.result()
        found += deployment.kept(scratch / "kept")
        return check(deployment.outcomes().values(), found, deployment.learnt(scratch))
    finally:
        deployment.compose("down", "--volumes", "--timeout", "1")
        shutil.rmtree(scratch)


def main() -> int:
    """Plays the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3, help="with faults")
    parser.add_argument("--faults", type=int, default=6, help="in each of them")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    length = study_round(peers=given.peers, seed=given.seed)
    print(
        f"study of {given.peers} containers, seed {given.seed}: the virtual engine's transcript, {length} facts",
        flush=True,
    )
    services = [shard_host(i) for i in range(given.peers)]
    for number in range(given.rounds + 1):
        rng = random.Random(f"{given.seed} {number}")
        faults = drawn(rng, services=services, count=given.faults) if number else []
        ended = deployed_round(peers=given.peers, faults=faults, number=number)
        what = ", ".join(f"{n} {kind}" for kind, n in Counter(fault.kind for fault in faults).items()) or "no faults"
        print(f"round {number} ({what}): {', '.join(f'{n} {name}' for name, n in ended.most_common())}", flush=True)
        assert number or ended == {"reported": given.peers}, "without faults every peer reports"
    return 0


if __name__ == "__main__":
    sys.exit(main())
