"""The virtual network replays a seed exactly, carries messages as a network would, and draws mates uniformly."""

import ast
import collections
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import p2p_labeldp
from p2p_labeldp import facts
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto import Keys
from p2p_labeldp.errors import AuthenticationFailed, LabelDPError, MalformedMessage
from p2p_labeldp.facts import Accepted, Asked, Ended, Flipped, Outcome, Reported
from p2p_labeldp.network import virtual
from p2p_labeldp.network.virtual import VirtualNetwork, transparent_keys
from p2p_labeldp.protocol.effects import Address, Observed, Persist, Send
from p2p_labeldp.protocol.messages import Done, GetRoster, Refusal

PACKAGE = Path(p2p_labeldp.__file__).parent


@pytest.fixture
def hashes(monkeypatch):
    """Trace hashes of the rounds that a test plays."""
    networks = []

    class Remembered(VirtualNetwork):
        def __init__(self, **terms):
            super().__init__(**terms)
            networks.append(self)

    monkeypatch.setattr(virtual, "VirtualNetwork", Remembered)
    return lambda: [network.trace_hash for network in networks]


def test_a_seed_gives_one_trace_and_another_seed_another(study_of, hashes):
    for seed in (7, 7, 8):
        virtual.play(study_of(seed=seed, topology_seed=7))
    first, again, other = hashes()
    assert first == again != other


def test_the_trace_depends_on_what_the_seed_does_not_say(study_of, hashes):
    virtual.play(study_of(seed=7))
    virtual.play(study_of(seed=7), latency=(0.002, 0.02))
    virtual.play(study_of(seed=7, gossip_period=1.1))
    assert len(set(hashes())) == 3


SCRIPT = """
import sys
sys.path[:0] = [{tests!r}]
from conftest import make_study
from p2p_labeldp.network import virtual
networks = []
class Remembered(virtual.VirtualNetwork):
    def __init__(self, **terms):
        super().__init__(**terms)
        networks.append(self)
virtual.VirtualNetwork = Remembered
virtual.play(make_study(seed=7, sizes=(5, 12)))
print(networks[0].trace_hash)
"""


def test_a_fresh_process_repeats_the_trace(study_of, hashes):
    virtual.play(study_of(seed=7, sizes=(5, 12)))
    script = SCRIPT.format(tests=str(Path(__file__).parents[1]))
    environment = {"PYTHONPATH": str(PACKAGE.parent), "PYTHONHASHSEED": "12345", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert [done.stdout.strip()] == hashes()


def test_a_round_is_played_whole(study_of):
    study = study_of(seed=3)
    played = virtual.play(study)
    outcomes = collections.Counter(fact.outcome for fact in played.facts if isinstance(fact, Ended))
    assert outcomes == {Outcome.REPORTED: 80}
    assert [roster.size for roster in played.collected.rosters] == [5, 12, 23, 40]
    assert [report.peer for report in played.collected.reports] == list(range(80))
    assert [report.features for report in played.collected.reports] == [tuple(x) for x in study.features.tolist()]
    assert played.bytes is None
    assert played.messages > 80 * 8
    assert played.seconds == {"join": 16.0, "exchange": 8.0, "closing": 8.0, "report": 8.0}


def test_a_flipped_label_is_not_among_the_facts_of_a_run(study_of):
    played = virtual.play(study_of(seed=3, sizes=(10,)))
    assert not any(isinstance(fact, Flipped) for fact in played.facts)
    assert sum(isinstance(fact, Accepted) for fact in played.facts) == 10
    assert sum(isinstance(fact, Reported) for fact in played.facts) == 10


# -- transparent keys -----------------------------------------------------------------------------------------------


def test_nothing_but_the_in_memory_network_makes_transparent_keys():
    uses = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {
                ast.Name: lambda n: [n.id],
                ast.Attribute: lambda n: [n.attr],
                ast.ImportFrom: lambda n: [alias.name for alias in n.names],
                ast.ClassDef: lambda n: [n.name],
            }.get(type(node), lambda _: [])(node)
            if {"transparent_keys", "_TransparentKeys"} & set(names):
                uses.add(path.relative_to(PACKAGE).as_posix())
    assert uses == {"network/virtual.py", "network/federated/virtual.py"}  # the in-memory network's own plays


def test_real_and_transparent_keys_do_not_read_each_other():
    glass, real = transparent_keys(b"somebody"), Keys(bytes(32))
    assert glass.verify("peer", glass.sign("peer", b"payload")).payload == b"payload"
    assert real.verify("peer", real.sign("peer", b"payload")).payload == b"payload"
    for reader, writer in ((real, glass), (glass, real)):
        with pytest.raises(LabelDPError):
            reader.verify("peer", writer.sign("peer", b"payload" * 30))
        with pytest.raises(LabelDPError):
            reader.open(writer.seal(writer.sealing_public, b"\1", info=b"info"), info=b"info")


def test_transparent_keys_keep_the_rules_of_real_ones():
    ada, ben = transparent_keys(b"ada"), transparent_keys(b"ben")
    box = ada.seal(ben.sealing_public, b"\1", info=b"for ben")
    assert ben.open(box, info=b"for ben") == b"\1"
    for reader, info in ((ada, b"for ben"), (ben, b"for somebody else")):
        with pytest.raises(AuthenticationFailed):
            reader.open(box, info=info)
    record = ada.sign("peer", b"payload")
    signed = ben.verify("peer", record)
    assert (signed.peer_id, signed.payload) == (ada.peer_id, b"payload")
    with pytest.raises(AuthenticationFailed):
        ben.verify("roster", record)
    with pytest.raises(MalformedMessage):
        ben.verify("peer", record, max_bytes=len(record) - 1)


# -- how messages travel --------------------------------------------------------------------------------------------


DONE = Done()


class Caller:
    """Sends one message at 1.0 s and notes what it hears."""

    def __init__(self, to, *, timeout=5.0):
        self.out, self.heard, self.due = [], [], 1.0
        self.to, self.timeout = to, timeout

    def start(self, now):
        pass

    def wake(self, now):
        self.due = None
        self.out += [
            Persist(facts.Asked(peer="caller", at=now, mate="callee")),
            Persist(
                facts.Flipped(
                    peer="caller", at=now, label_id="", flip_probability=0.1, flipped_label=1, round_id="", roster=""
                )
            ),
            Send(0, self.to, GetRoster(bytes(32), 0), self.timeout),
            Observed(facts.Held(peer="caller", at=now)),
        ]

    def wake_at(self):
        return self.due

    def answered(self, send_id, reply, now):
        self.heard.append((reply, now))

    def failed(self, send_id, reason, now):
        self.heard.append((reason, now))

    def receive(self, message, sender, now):
        return Refusal("busy")

    def close(self, now):
        pass

    def effects(self):
        out, self.out = self.out, []
        return out


class Callee(Caller):
    """Replies to everything, or to nothing."""

    def __init__(self, reply=DONE):
        super().__init__(None)
        self.due, self.reply, self.got = None, reply, []

    def receive(self, message, sender, now):
        self.got.append((message, sender, now))
        return self.reply


CALLER, CALLEE = Address(b"caller", "caller", 1), Address(b"callee", "callee", 1)


def called(callee, *, latency=(0.25, 0.25), timeout=5.0, until=100.0):
    network = VirtualNetwork(rng=random.Random(0), latency=latency)
    caller = Caller(CALLEE, timeout=timeout)
    network.add(caller, CALLER)
    if callee is not None:
        network.add(callee, CALLEE)
    network.run(until)
    return network, caller


def test_a_message_takes_its_latency_each_way():
    callee = Callee()
    network, caller = called(callee)
    assert callee.got == [(GetRoster(bytes(32), 0), b"caller", 1.25)]
    assert caller.heard == [(Done(), 1.5)]
    assert network.messages == 2
    assert [type(fact) for fact in network.facts] == [Asked, facts.Held]  # in order, without the flipped label


def test_nobody_at_an_address_is_unreachable():
    network, caller = called(None)
    assert caller.heard == [("unreachable", 1.5)]
    assert network.messages == 1


def test_a_machine_that_says_nothing_times_out():
    callee = Callee(reply=None)
    _network, caller = called(callee)
    assert len(callee.got) == 1
    assert caller.heard == [("timeout", 6.0)]


@pytest.mark.parametrize("latency", [2.0, 3.0, 7.0])
def test_a_reply_slower_than_its_timeout_is_no_reply(latency):
    callee = Callee()
    _, caller = called(callee, latency=(latency, latency))
    assert callee.got == [(GetRoster(bytes(32), 0), b"caller", 1.0 + latency)]
    assert caller.heard == [(Done(), 5.0) if latency == 2.0 else ("timeout", 6.0)]


def test_an_unreachable_address_is_known_by_the_timeout_too():
    assert called(None, latency=(7.0, 7.0))[1].heard == [("timeout", 6.0)]


def test_who_is_removed_hears_nothing_more():
    network = VirtualNetwork(rng=random.Random(0), latency=(0.25, 0.25))
    caller, callee = Caller(CALLEE), Callee()
    network.add(caller, CALLER)
    network.add(callee, CALLEE)
    network.at(1.3, lambda: network.remove(b"caller"))
    network.run(100.0)
    assert len(callee.got) == 1
    assert caller.heard == []


def test_time_stands_still_at_its_end():
    network, caller = called(Callee(), until=1.4)
    assert caller.heard == []
    network.run(1.5)
    assert len(caller.heard) == 1


# -- the law of the draw --------------------------------------------------------------------------------------------


def test_the_mate_asked_is_uniform_over_the_cluster_oneself_included(study_of):
    """Chi-square over whom each member asked, relative to itself, in 150 rounds; fails with probability 1e-6.

    Pooled by (mate's place - own place) mod s, where 0 is oneself, and by the mate's place: both are uniform if every
    draw is. Two clusters and two poolings share the failure probability.
    """
    shifts, places = (collections.defaultdict(collections.Counter) for _ in range(2))
    for seed in range(150):
        study = study_of(seed=seed, sizes=(5, 11))
        clusters = Clustering.from_payload(study.terms.clustering).assign(study.features)
        members = [np.flatnonzero(clusters == c).tolist() for c in (0, 1)]
        asked = [fact for fact in virtual.play(study).facts if isinstance(fact, Asked)]
        assert len(asked) == 16
        for fact in asked:
            mates = members[clusters[fact.peer]]
            own, other = mates.index(fact.peer), mates.index(fact.mate)
            shifts[len(mates)][(other - own) % len(mates)] += 1
            places[len(mates)][other] += 1
    for counts in (shifts, places):
        for size in (5, 11):
            observed = [counts[size][i] for i in range(size)]
            assert sum(observed) == 150 * size
            assert stats.chisquare(observed).pvalue > 1e-6 / 4
    lopsided = [shifts[5][i] for i in range(5)]  # the control: had nobody drawn itself, the test would know
    lopsided[1], lopsided[0] = lopsided[0] + lopsided[1], 0
    assert stats.chisquare(lopsided).pvalue < 1e-6 / 4
