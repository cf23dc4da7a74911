"""Rounds of real processes that are killed with SIGKILL, at instants and facts drawn before, and started again.

    PYTHONPATH=. python tests/network/killing.py --kills 200

Each round has seven peers, which run the ``peer`` command, and a learner, every one a process with a key, a state file,
sockets, signatures and encryption. A plan says who is killed when: at an instant of the round, or right after its n-th
fact is on disk, before the effect behind it. Whoever is killed is started again by the same command. All that was
persisted in any life, and every ask that left, is on record, and after the round nothing may have happened twice.

Processes are forked from one that has imported everything, so that a restart takes milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from p2p_labeldp.auditing.once import violations
from p2p_labeldp.cli import main as command
from p2p_labeldp.cli.keygen import keys_of
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Ended, Fact
from p2p_labeldp.network import http, learner_process, peer_process, store  # noqa: F401  imported before any fork
from p2p_labeldp.network.stopping import Stopping
from p2p_labeldp.network.study import Collected, Terms
from p2p_labeldp.protocol import kept, wire
from p2p_labeldp.protocol.kept import AnsweredWith
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import Ask
from p2p_labeldp.randomness import Secret

PEERS, LEARNER = 7, 7  # the learner's place among the parties
DEADLINES = Deadlines(join=6.0, exchange=12.0, closing=15.0, report=18.0)
PATIENCE_SECONDS = 8.0  # after the last deadline
KILLS_A_ROUND = 6
MAX_FACTS, MAX_AWAY_SECONDS = 10, 1.0


@dataclass
class Kill:
    """One death: whose, at an instant of the round or after its n-th fact (of a kind), and for how long."""

    victim: int
    at: float | None
    fact: int | None
    away: float
    kind: str = ""


def plan(rng: random.Random, pace: float) -> list[Kill]:
    """The deaths of one round, half of them at facts."""
    kills = []
    for i in range(KILLS_A_ROUND):
        victim = rng.randrange(PEERS + 1)
        at, fact = (rng.uniform(0.0, pace * DEADLINES.report), None) if i % 2 else (None, rng.randint(1, MAX_FACTS))
        kills.append(Kill(victim, at, fact, rng.uniform(0.0, MAX_AWAY_SECONDS)))
    return kills


@dataclass
class Outcome:
    """What came of one round."""

    kills: int = 0
    at_facts: int = 0
    found: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    reports: int = 0


class Round:
    """One round in a directory of its own.

    Args:
        directory: Where keys, states and records are.
        kills: The plan.
        forgetful: Names of kinds of facts that are not written, though the party believes they are: the control.
        pace: How much longer than usual the phases are, on a machine that is busy.
    """

    def __init__(self, directory: Path, kills: list[Kill], forgetful: tuple[str, ...], pace: float) -> None:
        self._directory, self._forgetful, self._pace = directory, forgetful, pace
        self._give_up = pace * DEADLINES.report + PATIENCE_SECONDS
        self._at_facts = {i: [k for k in kills if k.victim == i and k.fact] for i in range(PEERS + 1)}
        self._at_instants = sorted((k for k in kills if k.at is not None), key=lambda k: k.at or 0.0)
        self._running: dict[int, int] = {}  # pid -> party
        self._starts: list[tuple[float, int]] = []
        self._told_to_end: dict[int, float] = {}  # pid -> when to tell it again
        self._ended: set[int] = set()
        self._began = 0.0
        self._lives: Counter[int] = Counter()  # of each party
        self._pending: dict[int, Kill] = {}  # party -> the death at a fact that its current life is to die
        self.outcome = Outcome()
        names = [str(directory / f"{i}.key") for i in range(PEERS + 1)]
        for i, name in enumerate(names):
            Path(name).write_text(Secret(os.urandom(32)).to_hex())
            (directory / f"{i}.json").write_text(json.dumps({"features": [i / 10], "label": "no" if i % 2 else "yes"}))
        self._ids = [keys_of(name)[1] for name in names]
        self._reserved = [_reserved() for _ in names]
        self._ports = [one.getsockname()[1] for one in self._reserved]

    # -- the processes ----------------------------------------------------------------------------------------------

    def play(self) -> Outcome:
        self._began = began = time.monotonic()
        for party in (LEARNER, *range(PEERS)):
            self._start(party)
        while len(self._ended) <= PEERS:
            now = time.monotonic() - began
            self._reap(now)
            while self._starts and self._starts[0][0] <= now:
                self._start(self._starts.pop(0)[1])
            while self._at_instants and (self._at_instants[0].at or 0.0) <= now:
                self._kill(self._at_instants.pop(0))
            if now > self._give_up or self._ended >= set(range(PEERS)):
                for pid, party in self._running.items():
                    if now > self._give_up + 4.0:
                        self.outcome.found.append(f"party {party} does not end within four seconds of SIGTERM")
                        os.kill(pid, signal.SIGKILL)
                        self._ended.add(party)
                    elif now > self._told_to_end.get(pid, 0.0) and (party == LEARNER or now > self._give_up):
                        self._told_to_end[pid] = now + 1.0
                        os.kill(pid, signal.SIGTERM)
            time.sleep(0.005)
        for one in self._reserved:
            one.close()
        self._check()
        return self.outcome

    def _start(self, party: int) -> None:
        if self._at_facts[party]:
            self._pending[party] = self._at_facts[party].pop(0)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = self._live(party)
            except BaseException as exc:
                print(f"{type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        self._running[pid] = party
        self._lives[party] += 1

    def _kill(self, kill: Kill) -> None:
        for pid, party in self._running.items():
            if party == kill.victim:
                os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
                del self._running[pid]
                self._over(party, status, kill.away)
                return

    def _reap(self, now: float) -> None:
        for pid, party in list(self._running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self._running[pid]
                kill = self._pending.pop(party, None)
                self._over(party, status, 0.0 if kill is None else kill.away, at_fact=kill is not None)
        self._starts.sort()

    def _over(self, party: int, status: int, away: float, *, at_fact: bool = False) -> None:
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            self.outcome.kills += 1
            self.outcome.at_facts += at_fact
            self._starts.append((time.monotonic() - self._began + away, party))
            return
        self._ended.add(party)
        if status:
            self.outcome.found.append(f"party {party} ended with status {status}: {self._said(party)}")

    # -- in a child -------------------------------------------------------------------------------------------------

    def _live(self, party: int) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until the command has its own handler; told again each second
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(self._directory / f"{party}.{name}", os.O_CREAT | os.O_APPEND | os.O_WRONLY), number)
        journal = os.open(self._directory / f"{party}.facts", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        asks = os.open(self._directory / f"{party}.asks", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._tap(journal, asks, self._pending.get(party))
        return self._learn() if party == LEARNER else self._take_part(party)

    def _tap(self, journal: int, asks: int, kill: Kill | None) -> None:
        write, post, count = store.Store.__call__, http.HttpClient.post, 0

        def stored(self_: store.Store, fact: Fact) -> None:
            nonlocal count
            if type(fact).__name__ not in self._forgetful:
                write(self_, fact)
            line = kept.encode(fact)
            os.write(journal, len(line).to_bytes(4, "big") + line)
            count += kill is not None and kill.kind in ("", type(fact).__name__)
            if kill is not None and count == kill.fact:
                os.kill(os.getpid(), signal.SIGKILL)

        async def posted(self_, key, to, body, **options):  # type: ignore[no-untyped-def]  # hands all on
            if isinstance(wire.decode(body), Ask):
                os.write(asks, to.peer_id)
            return await post(self_, key, to, body, **options)

        store.Store.__call__ = stored  # type: ignore[method-assign, assignment]  # the tap
        http.HttpClient.post = posted  # type: ignore[method-assign]  # the tap

    def _take_part(self, party: int) -> int:
        address = [f"{self._ids[i]}@127.0.0.1:{self._ports[i]}" for i in range(PEERS + 1)]
        arguments = [str(self._directory / f"{party}.json"), "--key", str(self._directory / f"{party}.key"), "--json"]
        arguments += ["--classes", "no,yes", "--listen", f"127.0.0.1:{self._ports[party]}", "--quiet"]
        arguments += ["--learner", address[LEARNER]]
        for other in {(party + 1) % PEERS, (party + 3) % PEERS}:
            arguments += ["--contact", address[other]]
        return command(["peer", *arguments])

    def _learn(self) -> int:
        clustering = Clustering(mean=[0.0], scale=[1.0], centroids=[[0.0]], cluster_of_centroid=[0])
        terms = Terms(
            classes=("no", "yes"),
            clustering=clustering.to_payload(),
            target_epsilon=1.0,
            flip_probability=None,
            tolerated_loss=0.4,
            minimum_size=3,
            deadlines=DEADLINES,
            gossip_period=0.25,
            study=False,
        ).slowed(self._pace)
        key = self._directory / f"{LEARNER}.key"
        disk = store.open_beside(key, peer_id=self._ids[LEARNER])
        keys = Keys(Secret(keys_of(str(key))[0]).identity())
        with Stopping() as stopping:
            serving = learner_process.serve_until_told(
                terms,
                stopping=stopping,
                keys=keys,
                host="127.0.0.1",
                port=self._ports[LEARNER],
                sink=lambda _: None,
                announce=lambda _: None,
                store=disk,
            )
            partial = self._directory / "collected.partial"
            partial.write_bytes(msgspec.msgpack.encode(asyncio.run(serving)))
            partial.rename(self._directory / "collected")
        return 0

    # -- afterwards -------------------------------------------------------------------------------------------------

    def _said(self, party: int) -> str:
        return (self._directory / f"{party}.err").read_text()[-300:].strip()

    def _check(self) -> None:
        facts, found = [], self.outcome.found
        for party in range(PEERS + 1):
            data = (self._directory / f"{party}.facts").read_bytes()
            while data:
                size = int.from_bytes(data[:4], "big")
                facts.append(kept.decode(data[4 : 4 + size]))
                data = data[4 + size :]
        with suppress(FileNotFoundError):
            collected = msgspec.msgpack.decode((self._directory / "collected").read_bytes(), type=Collected)
            reports = {report.peer: report.label for report in collected.reports}
            self.outcome.reports = len(reports)
            found += violations(facts, reports=reports)
        boxes = defaultdict(set)
        for fact in facts:
            if isinstance(fact, AnsweredWith):
                boxes[fact.peer, fact.asker].add((fact.ask_id, fact.box))
        found += [f"{who} was given two boxes" for who, given in boxes.items() if len(given) > 1]
        for party in range(PEERS):
            asked = (self._directory / f"{party}.asks").read_bytes()
            if len({asked[i : i + 32] for i in range(0, len(asked), 32)}) > 1:
                found.append(f"an ask of party {party} left for a second mate")
            said = (self._directory / f"{party}.out").read_text().splitlines()
            if (
                len(set(said)) != 1 or len(said) > self._lives[party]
            ):  # killed when it had told, it tells the same again
                found.append(f"party {party} told {len(said)} outcomes")
                continue
            told = json.loads(said[0])
            self.outcome.ends[f"{told['outcome']} ({told['reason']})" if told["reason"] else told["outcome"]] += 1
            lived = {(f.outcome, f.reason) for f in facts if isinstance(f, Ended) and f.peer == self._ids[party]}
            if lived and lived != {(told["outcome"], told["reason"])}:
                found.append(f"party {party} persisted {lived} and told {told}")


def _reserved() -> socket.socket:
    """Bound and not listened on: the kernel gives its port to nobody else, and a server, which sets SO_REUSEADDR, has
    it each time that it is started."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    return one


def soak(
    plans: list[list[Kill]], *, kills: int, pace: float, forgetful: tuple[str, ...], say: Callable[[str], None]
) -> Outcome:
    """Rounds by their plans, until so many processes were killed."""
    total = Outcome()
    for number, drawn in enumerate(plans, start=1):
        if total.kills >= kills:
            break
        with tempfile.TemporaryDirectory() as directory:
            done = Round(Path(directory), drawn, forgetful, pace).play()
        total.kills += done.kills
        total.at_facts += done.at_facts
        total.reports += done.reports
        total.ends += done.ends
        total.found += [f"round {number}: {line}" for line in done.found]
        verdict = done.found or "nothing twice, nothing lost"
        say(f"round {number}: {done.kills} killed, {done.reports} reports, {dict(done.ends)}: {verdict}")
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--pace", type=float, default=1.0, help="How much longer the phases are.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forget", action="append", default=[], metavar="KIND", help="Facts that are not written.")
    parser.add_argument(
        "--kill", action="append", default=[], metavar="PARTY:N[:KIND]", help="One round; dies at its n-th fact."
    )
    parser.add_argument("--json", action="store_true", help="Print the summary as one JSON object.")
    given = parser.parse_args()

    def say(line: str) -> None:
        if not given.json:
            print(line, flush=True)

    rng = random.Random(given.seed)
    plans = [plan(rng, given.pace) for _ in range(10 + given.kills)]  # all drawn before the first round
    if given.kill:
        asked = [(*text.split(":"), "")[:3] for text in given.kill]
        plans = [[Kill(int(victim), None, int(fact), 0.3, kind) for victim, fact, kind in asked]]
    total = soak(plans, kills=given.kills, pace=given.pace, forgetful=tuple(given.forget), say=say)
    summary = {
        "seed": given.seed,
        "kills": total.kills,
        "at_facts": total.at_facts,
        "at_instants": total.kills - total.at_facts,
        "reports": total.reports,
        "ends": dict(total.ends),
        "found": total.found,
    }
    print(json.dumps(summary))
    return 1 if total.found else 0


if __name__ == "__main__":
    sys.exit(main())
