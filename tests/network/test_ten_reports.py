"""Ten reports from users of other systems that must not happen here, each by its number."""

import asyncio
import collections
import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from free_ports import free_ports
from protocol.lives import LEARNER, Lives
from protocol.scenes import Scene

from network.over_http.wire import ADA, BEN, Place, ask, client, clock, listening, parsed, request, send
from network.test_peer_process import REPORTED, SKEW, play
from network.test_processes import processes_of, started, wait_for
from p2p_labeldp.facts import Answered, Asked, Committed, Ended, Outcome, Reason
from p2p_labeldp.network import launcher, peer_process, virtual
from p2p_labeldp.network.http import HttpClient, HttpServer
from p2p_labeldp.network.http.server import SHUTDOWN_SECONDS
from p2p_labeldp.network.operator import SHUTDOWN_SECONDS as OPERATORS_SECONDS
from p2p_labeldp.network.peer_process import FINISH_SECONDS
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import Answer, Ask, Refusal
from p2p_labeldp.protocol.peer import GRACE_SECONDS
from p2p_labeldp.reports.dashboard.server import FAREWELL_SECONDS

BAD_BOX, TIMED_OUT = (Outcome.INVALID, Reason.BAD_BOX), (Outcome.ABSTAINED, Reason.MATE_TIMEOUT)


# -- 1: all peers restart and one comes back with an older sequence number ------------------------------------------

PEERS, RESTART = 12, 8.0  # seconds after the opening; the join deadline is at 16


def restarted(study, *, loses):
    """Every peer is killed and started again, one after the other; the first comes back last, from elsewhere, and by a
    clock that was set back. Who sees it there two gossip periods later?"""
    lives = Lives(study, loses=loses)

    def restart(name):
        lives.network.remove(lives.parties[name].keys.peer_id)
        lives.moved = name == 0
        lives.start(name)

    for i, name in enumerate((*range(1, PEERS), 0)):
        lives.network.at(RESTART + 0.2 * i, partial(restart, name))
    lives.network.run(RESTART + 0.2 * (PEERS - 1) + 2 * study.terms.gossip_period)
    me = lives.parties[0].keys.peer_id
    seen = [lives.machines[name].directory.find(me) for name in range(1, PEERS)]
    return [entry is not None and entry.content.host == "elsewhere-0" for entry in seen]


@pytest.fixture(scope="module")
def twelve(study_of):
    return study_of(seed=3, sizes=(PEERS,))


def test_1_all_restart_and_the_one_with_the_older_sequence_number_is_seen_alive_within_two_gossip_periods(twelve):
    assert all(restarted(twelve, loses=()))


def test_1_with_its_sequence_number_forgotten_it_is_not(twelve):
    from p2p_labeldp.protocol.kept import JoinedAs

    assert not all(restarted(twelve, loses=(JoinedAs,)))


# -- 2: a restarted peer with its old key is refused as a replayer --------------------------------------------------


async def test_2_a_restarted_peer_with_its_old_key_is_served_and_a_true_repeat_refused():
    heard = []
    async with listening(lambda sender, body: heard.append(sender) or b"ok") as (_, ben):
        data, _ = request(ben)
        assert parsed(await send(ben, data)).status == 200
        for _ in range(2):  # two lives: a client each, with the same key
            async with client() as life:
                assert await life.post(ADA, ben, b"question", timeout=60) == b"ok"
        assert parsed(await send(ben, data)).status == 409
        assert len(heard) == 3


async def test_2_a_restarted_mate_serves_those_who_asked_before():
    async with listening(lambda *_: b"first", port=free_ports(1)[0]) as (server, ben):
        data, _ = request(ben)
        assert parsed(await send(ben, data)).status == 200
        await server.close()
        again = HttpServer(BEN, lambda *_: b"second", wall_clock=clock)
        await again.start("127.0.0.1", ben.port)
        try:
            async with client() as asker:
                assert await asker.post(ADA, ben, b"question", timeout=60) == b"second"
        finally:
            await again.close()


# -- 3: clocks ------------------------------------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize(("off", "expected"), [(1.0, REPORTED), (6.0, REPORTED), (600.0, SKEW)])
async def test_3_a_clock_1_or_6_seconds_off_works_and_one_600_off_ends_as_clock_skew(
    tmp_path, monkeypatch, off, expected
):
    monkeypatch.setattr(peer_process, "HttpClient", partial(HttpClient, wall_clock=lambda: time.time() + off))
    ends, _, _ = await play(tmp_path, keep=None)
    assert ends == [expected] * 3


# -- 4: more than a cache's worth -----------------------------------------------------------------------------------


async def test_4_after_more_messages_than_a_cache_holds_the_first_again_is_processed_once():
    heard = []
    async with listening(lambda _, body: heard.append(body) or b"ok", nonce_capacity=8) as (_, ben):
        first, _ = request(ben, body=b"first")
        assert parsed(await send(ben, first)).status == 200
        answers = [await ask(ben, body=b"%d" % i) for i in range(20)]
        assert (503, b"busy") in answers
        assert parsed(await send(ben, first)).status == 409
        assert heard.count(b"first") == 1


# -- 5: a POST that is sent twice -----------------------------------------------------------------------------------


def test_5_an_ask_whose_answer_got_lost_is_sent_again_recorded_once_and_answered_with_the_same_bytes(study_of):
    given, lost = collections.defaultdict(list), set()

    def tamper(machine, message, sender, reply):
        if isinstance(message, Ask) and isinstance(reply, Answer):
            given[sender].append(reply)
            if sender not in lost:
                lost.add(sender)
                return Refusal("lost", retry=True)  # what the asker makes of a connection that broke
        return reply

    scene = Scene(study_of(seed=5, sizes=(12,)), tamper=tamper).play()
    assert len(lost) == 12
    assert all(len(replies) >= 2 and len(set(replies)) == 1 for replies in given.values())
    counts = collections.Counter(type(fact) for fact in scene.network.facts)
    assert counts[Asked] == counts[Answered] == 12
    assert set(scene.ends().values()) == {REPORTED}


# -- 6: a mate that is stopped, not killed --------------------------------------------------------------------------


@pytest.mark.processes
def test_6_who_asked_a_stopped_mate_abstains_with_mate_timeout_and_the_round_ends_in_time(study_of):
    deadlines = Deadlines(join=8.0, exchange=16.0, closing=20.0, report=22.0)
    study = study_of(seed=7, sizes=(12,), deadlines=deadlines, gossip_period=0.4, tolerated_loss=0.5)
    drawn = {fact.peer: fact.mate for fact in virtual.play(study).facts if isinstance(fact, Asked)}
    mate, _ = collections.Counter(mate for peer, mate in drawn.items() if peer != mate).most_common(1)[0]
    committed, stopped = [], []

    def stop_one(fact):
        committed.append(isinstance(fact, Committed))
        if sum(committed) == len(study) and not stopped:
            peers = in_the_order_of_their_forks(processes_of(os.getpid()))
            stopped.append(peers[mate])
            os.kill(peers[mate], signal.SIGSTOP)
            threading.Timer(20.0, os.kill, (peers[mate], signal.SIGCONT)).start()

    played = launcher.play(study, on_fact=stop_one)
    assert stopped
    ends = {fact.peer: fact for fact in played.facts if isinstance(fact, Ended)}
    assert len(ends) == len(study)
    asked_it = [ends[peer] for peer in drawn if drawn[peer] == mate != peer]
    assert asked_it
    assert {(end.outcome, end.reason) for end in asked_it} == {TIMED_OUT}
    assert all(end.at <= deadlines.report + GRACE_SECONDS for peer, end in ends.items() if peer != mate)


def in_the_order_of_their_forks(pids):
    """The peers among them: not the zygote, nor the learner, which are the launcher's children, a peer is the zygote's.

    Process ids grow from the zygote's on, and begin anew beyond the largest that the kernel gives.
    """
    parents = {pid: int(re.search(r"PPid:\t(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) for pid in pids}
    peers = [pid for pid in pids if parents[pid] != os.getpid()]
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    return sorted(peers, key=lambda pid: (pid - parents[pid]) % most)


# -- 7: an answer two rounds late -----------------------------------------------------------------------------------


def late_by_two_rounds(study, nonces):
    """Each asker gets the box that the same mate gave it in the first of the rounds."""
    first = Scene(study, nonce=nonces[0]).play()
    boxes = {(to, sender): reply for _, sender, to, message, reply in first.traffic if isinstance(message, Ask)}

    def tamper(machine, message, sender, reply):
        return boxes[machine.peer_id, sender] if isinstance(message, Ask) and isinstance(reply, Answer) else reply

    return Scene(study, nonce=nonces[-1], tamper=tamper).play()


def test_7_an_answer_that_arrives_two_rounds_late_is_refused_by_the_round_in_the_sealed_bytes(study_of):
    study = study_of(seed=5, sizes=(12,))
    nonces = [bytes([i]) * 16 for i in range(3)]
    assert set(late_by_two_rounds(study, nonces).ends().values()) == {BAD_BOX}
    assert set(late_by_two_rounds(study, nonces[:1]).ends().values()) == {REPORTED}  # the control: the same round


# -- 8: ten thousand hosts ------------------------------------------------------------------------------------------


async def test_8_ten_thousand_distinct_hosts_from_one_client_need_no_more_descriptors_than_it_has_connections():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    hits = collections.Counter()

    async def hang_up(_, writer):
        hits[writer.get_extra_info("sockname")[0]] += 1
        writer.close()

    server = await asyncio.start_server(hang_up, "0.0.0.0", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    try:
        async with client(max_connections=16) as c:
            used = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 60, hard))

            async def post(i):
                with contextlib.suppress(Exception):  # nobody signs here: every answer counts as none
                    await c.post(ADA, Place(BEN.peer_id, f"127.2.{i // 250}.{i % 250 + 1}", port), b"", timeout=300)

            await asyncio.gather(*(post(i) for i in range(10_000)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        server.close()
        await server.wait_closed()
    assert len(hits) == 10_000  # none failed for want of a descriptor


# -- 9: the launcher is killed --------------------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize("at_least", [5, 40], ids=["while spawning", "in the middle"])
def test_9_no_peer_is_left_two_seconds_after_the_launcher_is_killed_and_the_next_start_works(at_least):
    for _ in range(2):  # the second is the next start
        run = started(peers=40)
        try:
            wait_for(lambda run=run: len(processes_of(run.pid)) >= at_least, seconds=300)
            run.kill()
            run.wait(60)
            wait_for(lambda run=run: not processes_of(run.pid), seconds=2)
        finally:
            run.kill()
            run.wait()


# -- 10: SIGTERM with somebody listening ----------------------------------------------------------------------------


@pytest.mark.processes
def test_10_sigterm_with_connections_open_exits_0_within_three_seconds_and_keeps_what_there_is_as_incomplete(tmp_path):
    at, operator, page = free_ports(3)
    command = [sys.executable, "-m", "p2p_labeldp", "learner", "by-hand", "--listen", f"127.0.0.1:{at}"]
    command += [
        "--operator",
        f"127.0.0.1:{operator}",
        "--dashboard",
        f"127.0.0.1:{page}",
        "--out",
        str(tmp_path / "out"),
        "--log-json",
    ]
    learner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for expected in ("dashboard: http://", "the learner is"):
            assert json.loads(learner.stderr.readline())["text"].startswith(expected)
        with (
            socket.create_connection(("127.0.0.1", operator)) as watching,
            socket.create_connection(("127.0.0.1", page)) as events,
            socket.create_connection(("127.0.0.1", at)) as half,
        ):
            events.sendall(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert events.recv(1 << 16).startswith(b"HTTP/1.1 200")
            watching.sendall(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert watching.recv(1 << 16).startswith(b"HTTP/1.1 200")
            half.sendall(b"POST /p2p/v1 HTTP/1.1\r\ncontent-length: 10\r\n")
            before = cpu_seconds(learner.pid)
            learner.send_signal(signal.SIGTERM)
            _, status, used = os.wait4(learner.pid, 0)
            learner.returncode = os.waitstatus_to_exitcode(status)
            told = b"".join(iter(lambda: events.recv(1 << 16), b""))
    finally:
        learner.kill()
        learner.communicate()
    assert learner.returncode == 0
    # What it waits for, and its work, most of it training: on a busy machine the clock would tell of the others.
    longest = max(FINISH_SECONDS, FAREWELL_SECONDS)  # a peer's, a learner's
    assert SHUTDOWN_SECONDS + OPERATORS_SECONDS + longest <= 2.5
    assert used.ru_utime + used.ru_stime - before < 2.0
    assert b"the round was ended before its time" in told
    assert b"event: end" in told
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["complete"] is False
    assert (tmp_path / "out" / "facts.jsonl").exists()


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_10_what_came_to_its_end_is_not_called_incomplete(twelve):
    assert Lives(twelve).play().collected.complete
    lives = Lives(twelve)
    lives.network.at(20.0, lambda: lives.machines[LEARNER].close(20.0))
    lives.network.run(30.0)
    assert not lives.collected.complete
