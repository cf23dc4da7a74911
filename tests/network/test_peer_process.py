"""Deployed peers and their learner on real sockets of this machine: policy, ledger and refusals as a user meets them.

The rounds last seconds, since real sockets need real time; nothing is asserted about how long anything took.
"""

import asyncio
import gc
import os
import sqlite3
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from altering import altered
from free_ports import free_ports

from p2p_labeldp import randomness
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.crypto.signatures import ALLOWED_SKEW_SECONDS
from p2p_labeldp.facts import Answered, Asked, Ended, Flipped, Outcome, Reason, Rejected
from p2p_labeldp.labels import Example, LabelSpace
from p2p_labeldp.network import host, learner_process, peer_process
from p2p_labeldp.network.host import Host
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.network.learner_process import serve
from p2p_labeldp.network.party import Party
from p2p_labeldp.network.peer_process import run_peers
from p2p_labeldp.network.store import Store, open_beside
from p2p_labeldp.network.study import Terms
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol import report as reports
from p2p_labeldp.protocol import restoring
from p2p_labeldp.protocol.admission import enrol
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.kept import JoinedAs
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.policy import Policy

pytestmark = pytest.mark.processes

LEARNER, ENROLMENT = Keys(b"L" * 32), Keys(b"E" * 32)
ROUND_KEY = Keys(b"R" * 32).sealing_public
REPORTED, SPENT = (Outcome.REPORTED, None), (Outcome.REFUSED, Reason.LABEL_SPENT)
NOT_ADMITTED, TOO_SMALL = (Outcome.REFUSED, Reason.NOT_ADMITTED), (Outcome.ABSTAINED, Reason.CLUSTER_TOO_SMALL)
POLICY, SKEW = (Outcome.REFUSED, Reason.POLICY), (Outcome.FAILED, Reason.CLOCK_SKEW)


def terms(**changes):
    clustering = Clustering(mean=[0.0], scale=[1.0], centroids=[[0.0]], cluster_of_centroid=[0])
    values = {
        "classes": ("no", "yes"),
        "clustering": clustering.to_payload(),
        "target_epsilon": 1.0,
        "flip_probability": None,
        "tolerated_loss": 0.05,
        "minimum_size": 3,
        # A hundredth of it is work: what is left is for a machine that is busy, or collects its garbage.
        "deadlines": Deadlines(join=4.0, exchange=7.0, closing=10.0, report=11.0),
        "gossip_period": 0.2,
        "study": False,
    }
    return Terms(**{**values, **changes})


def parties(directory, ports, learner, *, keep, policy=None, label=0, enrolled=(), **terms):
    """Three deployed peers; with a state on disk if ``keep`` is given. Those ``enrolled`` bring an enrolment."""
    found, coins = [], [randomness.Secret(bytes([i]) * 32) for i in range(3)]
    rings = [Keys(one.identity()) for one in coins]
    everyone = [Address(ring.peer_id, "127.0.0.1", port) for ring, port in zip(rings, ports, strict=True)]
    for i, ring in enumerate(rings):
        key, store = Path(directory) / f"{i}.key", None
        if keep is not None:
            store = keep.enter_context(_closing(open_beside(key, peer_id=ring.peer_id.hex(), **terms)))
        found.append(
            Party(
                keys=ring,
                coins=coins[i],
                example=Example(features=(0.1 * i,), label=label if i == 0 else 1),
                label_space=LabelSpace(classes=("no", "yes")),
                host="127.0.0.1",
                port=ports[i],
                learner=learner,
                contacts=tuple(one for one in everyone if one.peer_id != ring.peer_id),
                sequence=time.time_ns() // 1_000_000,
                policy=policy,
                store=store,
                enrolment=enrol(ring.peer_id, ENROLMENT) if i in enrolled else b"",
            )
        )
    return found


class _closing(ExitStack):
    def __init__(self, store):
        super().__init__()
        self.callback(store.close)
        self.store = store

    def __enter__(self):
        return self.store


async def play(directory, *, round_terms=None, also=lambda _: None, **own):
    """One round: how it ended for each peer, all facts, which ``also`` is told, and what the learner has."""
    facts, announced, stopped = [], asyncio.get_running_loop().create_future(), asyncio.Event()
    port, *ports = free_ports(4)

    async def at_once():
        return round_terms or terms()

    def hear(fact):
        facts.append(fact)
        also(fact)

    serving = asyncio.create_task(
        serve(
            at_once,
            keys=LEARNER,
            host="127.0.0.1",
            port=port,
            sink=hear,
            announce=announced.set_result,
            stopped=stopped,
            linger=0.0,
        )
    )
    learner = await announced
    with ExitStack() as keep:
        await run_peers(parties(directory, ports, learner, **{"keep": keep, **own}), hear)
    stopped.set()
    collected = await serving
    ends = [(fact.outcome, fact.reason) for fact in facts if isinstance(fact, Ended)]
    return ends, facts, collected


def wipe(directory):
    for state in Path(directory).glob("*.state"):
        state.unlink()


def told_by(directory):
    """What each peer's ledger says of its label: flip probability and flipped value."""
    found = {}
    for state in Path(directory).glob("*.state"):
        with sqlite3.connect(state) as db:
            found[state.name] = db.execute("SELECT flip_probability, flipped_label FROM releases").fetchone()
        db.close()
    return found


async def test_a_label_leaves_once_whoever_asks_and_a_wiped_ledger_repeats_it(tmp_path):
    ends, facts, _ = await play(tmp_path)
    assert ends == [REPORTED] * 3
    told = told_by(tmp_path)
    assert len(told) == 3  # also by those whom nobody asked
    assert not [fact for fact in facts if isinstance(fact, Flipped)]

    again, facts, nothing = await play(tmp_path)  # the next round of the same learner
    assert again == [SPENT] * 3
    abouts = {fact.about for fact in facts if isinstance(fact, Rejected) and fact.peer != "learner"}
    assert "label spent: 'label' has left in another round" in abouts
    assert nothing.reports == nothing.rosters == ()
    assert not [fact for fact in facts if isinstance(fact, Asked | Answered)]

    wipe(tmp_path)
    anew, _, _ = await play(tmp_path, new_state=True)  # the control: the ledger switched off
    assert anew == [REPORTED] * 3
    assert told_by(tmp_path) == told  # the coins are the secret's


@pytest.mark.parametrize("label", [0, 1])
async def test_peers_refuse_a_roster_that_passes_their_limit(tmp_path, label):
    ends, facts, collected = await play(tmp_path, policy=Policy(local_epsilon=1.0), keep=None, label=label)
    assert ends == [POLICY] * 3
    assert collected.reports == ()
    assert [roster.size for roster in collected.rosters] == [3]
    assert all("policy: local epsilon" in f.about for f in facts if isinstance(f, Rejected) and f.peer != "learner")
    assert not [fact for fact in facts if isinstance(fact, Asked | Answered)]


async def test_peers_refuse_a_manifest_with_a_minimum_of_two_and_leave_no_record(tmp_path):
    ends, facts, collected = await play(tmp_path, round_terms=terms(minimum_size=2), keep=None)
    assert ends == [POLICY] * 3
    assert collected.rosters == ()
    abouts = {fact.about for fact in facts if isinstance(fact, Rejected) and fact.peer != "learner"}
    assert "policy: minimum size 2 below 3" in abouts


@pytest.mark.parametrize(
    ("enrolled", "expected"),
    [((0, 1, 2), [REPORTED] * 3), ((0, 1), [NOT_ADMITTED, TOO_SMALL, TOO_SMALL])],
    ids=["everybody is enrolled", "one is not"],
)
async def test_a_round_by_allowlist_takes_in_whom_its_key_vouches_for(tmp_path, enrolled, expected):
    ends, _, collected = await play(
        tmp_path,
        round_terms=terms(enrolment_key=ENROLMENT.peer_id),
        keep=None,
        policy=Policy(enrolment_key=ENROLMENT.peer_id),
        enrolled=enrolled,
    )
    assert sorted(ends, key=str, reverse=True) == sorted(expected, key=str, reverse=True)
    assert [roster.size for roster in collected.rosters] == [len(enrolled)]


@pytest.mark.parametrize(
    "forge",
    [
        altered,
        lambda _: manifests.sign(terms().manifest(round_key=ROUND_KEY, opened=0.0), Keys(b"M" * 32)),
        lambda _: b"",
    ],
    ids=["changed after signing", "of another key", "empty"],
)
async def test_a_manifest_that_is_not_the_learners_is_refused_though_the_learner_hands_it_out(tmp_path, forge):
    envelope = manifests.sign(terms().manifest(round_key=ROUND_KEY, opened=time.time()), LEARNER)
    opened = manifests.open_manifest(envelope, keys=LEARNER, learner=LEARNER.peer_id)
    facts = []
    port, *ports = free_ports(4)
    async with HttpClient() as client:
        host = Host(key=LEARNER.signing_key, client=client, sink=lambda _: None)
        try:
            await host.listen("127.0.0.1", port)
            rng = randomness.secure().gossip()
            collector = Collector(envelope=forge(envelope), opened=opened, keys=LEARNER, round_keys=LEARNER, rng=rng)
            host.start(collector, elapsed=0.0)
            where = Address(LEARNER.peer_id, "127.0.0.1", port)
            await run_peers(parties(tmp_path, ports, where, keep=None), facts.append)
        finally:
            await host.close()
    assert [(fact.outcome, fact.reason) for fact in facts if isinstance(fact, Ended)] == [POLICY] * 3
    assert {fact.about.partition(": ")[0] for fact in facts if isinstance(fact, Rejected)} == {"policy"}


@pytest.mark.parametrize("deployed", [True, False])
async def test_peers_whose_learner_is_not_there_say_so_once(tmp_path, monkeypatch, caplog, deployed):
    """Those of a study, which starts its learner itself, say nothing."""
    monkeypatch.setattr(host, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(host, "RETRY_SECONDS", (0.01, 0.01))
    monkeypatch.setattr(peer_process, "PATIENCE_SECONDS", 0.1)
    nobody, *ports = free_ports(4)
    ends = []
    with ExitStack() as keep:
        three = parties(tmp_path, ports, Address(LEARNER.peer_id, "127.0.0.1", nobody), keep=keep if deployed else None)
        await run_peers(three, lambda fact: ends.append(fact) if isinstance(fact, Ended) else None)
    assert [end.outcome for end in ends] == [Outcome.UNREACHABLE] * 3
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == deployed
    assert all(f"127.0.0.1:{nobody} can't be reached" in one for one in said)


@pytest.mark.parametrize(("off", "expected"), [(6.0, REPORTED), (-600.0, SKEW), (600.0, SKEW)])
async def test_a_clock_a_little_off_takes_part_and_one_far_off_fails_with_its_reason(
    tmp_path, monkeypatch, off, expected
):
    monkeypatch.setattr(peer_process, "HttpClient", partial(HttpClient, wall_clock=lambda: time.time() + off))
    ends, _, _ = await play(tmp_path, keep=None)
    assert ends == [expected] * 3


async def test_a_state_that_can_not_be_written_ends_the_round_as_failed_and_its_label_does_not_leave(
    tmp_path, monkeypatch
):
    spent = Store.__call__

    def full(self, fact):
        if self.path.name == "0.key.state" and isinstance(fact, Flipped):
            raise OSError(28, "No space left on device")
        spent(self, fact)

    monkeypatch.setattr(Store, "__call__", full)
    ends, facts, collected = await play(tmp_path)
    assert (Outcome.FAILED, Reason.CRASHED) in ends
    assert len(ends) == 3
    me = Keys(randomness.Secret(bytes(32)).identity()).peer_id.hex()
    assert not [fact for fact in facts if isinstance(fact, Answered) and fact.peer == me]
    assert collected.reports == ()  # three of three have to hold an answer


async def test_nothing_in_the_learners_process_has_the_rounds_key_after_the_round(tmp_path, monkeypatch):
    """While reports come in there is one key ring that opens them; after the round there is none."""
    drawn, alive = [], []

    class Draws:
        def __getattr__(self, name):
            return getattr(os, name)

        def urandom(self, count):
            drawn.append(os.urandom(count))
            return drawn[-1]

    def rings():
        gc.collect()
        return [one for one in gc.get_objects() if isinstance(one, Keys) and one._secret in drawn]

    monkeypatch.setattr(learner_process, "os", Draws())
    open_report = reports.open_report

    def opening(*arguments, **options):
        alive.append(len(rings()))
        return open_report(*arguments, **options)

    monkeypatch.setattr(reports, "open_report", opening)
    gc.freeze()  # whatever was there before is none: a search through all of it takes longer than the round
    try:
        ends, _, collected = await play(tmp_path)
        after = rings()
    finally:
        gc.unfreeze()
    assert ends == [REPORTED] * 3
    assert len(collected.reports) == 3
    assert alive == [1, 1, 1]  # the control: while reports come in the search finds the one that opens them
    assert after == []


def left_behind(party, *, over_by):
    """The first fact of a round in which the peer died."""
    return JoinedAs(
        peer=party.name,
        cluster=0,
        round_id=bytes(32),
        label_id=party.example.label_id,
        host=party.host,
        port=party.port,
        sequence=1,
        over_by=over_by,
    )


async def test_a_peer_that_comes_back_when_its_learner_is_gone_waits_no_longer_than_its_round_can_last(tmp_path):
    """With no round behind it the same peer would wait for ten minutes: what the test's own patience would not."""
    ports, gone = free_ports(3), Address(LEARNER.peer_id, "127.0.0.1", free_ports(1)[0])
    with ExitStack() as keep:
        party = parties(tmp_path, ports, gone, keep=keep)[0]
        party.store(left_behind(party, over_by=time.time() - ALLOWED_SKEW_SECONDS + 1.0))
        heard = []
        async with asyncio.timeout(60):
            await run_peers([party], heard.append)
        after = party.patience(time.time(), usual=600.0)  # it is through with that round
    assert [(fact.outcome, fact.reason) for fact in heard if isinstance(fact, Ended)] == [
        (Outcome.FAILED, Reason.CRASHED)
    ]
    assert after == 600.0


@pytest.mark.parametrize("told_to_end", [False, True])
async def test_a_peer_that_gives_up_on_its_learner_keeps_the_outcome_that_it_tells(tmp_path, monkeypatch, told_to_end):
    """Or a further restart, with the learner back, would tell another."""
    monkeypatch.setattr(peer_process, "PATIENCE_SECONDS", 0.5)
    ports, gone = free_ports(3), Address(LEARNER.peer_id, "127.0.0.1", free_ports(1)[0])
    stopped = asyncio.Event()
    if told_to_end:
        stopped.set()
    with ExitStack() as keep:
        party = parties(tmp_path, ports, gone, keep=keep)[0]
        party.store(left_behind(party, over_by=time.time() + 3600.0))
        heard = []
        await run_peers([party], heard.append, stopped=stopped)
        past = restoring.read(party.store.facts())
    (end,) = (fact for fact in heard if isinstance(fact, Ended))
    expected = (Outcome.ABSTAINED, Reason.NOT_READY) if told_to_end else (Outcome.UNREACHABLE, None)
    assert (end.outcome, end.reason) == expected
    assert past.outcome == end


@pytest.mark.parametrize("fails", [False, True])
async def test_one_peer_of_a_process_asks_for_the_round_and_the_others_follow_whatever_it_found(fails):
    scout, out, back = peer_process.Scout(), [], asyncio.Event()

    async def ask(name):
        async with scout:
            out.append(name)
            await back.wait()
            if fails and name == 0:
                raise TimeoutError

    asking = [asyncio.create_task(ask(name)) for name in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert out == [0]
    back.set()
    ended = await asyncio.gather(*asking, return_exceptions=True)
    assert out == [0, 1, 2]
    assert [type(end) for end in ended] == [TimeoutError if fails else type(None), type(None), type(None)]
