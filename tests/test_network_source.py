"""Rounds of real peers, as an audit is given them: what was asked for, seen as far as facts show it."""

import json

import numpy as np
import pytest

from p2p_labeldp import facts, network_source
from p2p_labeldp.auditing.audit import audit_of_rounds, none_one_or_all
from p2p_labeldp.auditing.conformance import Verdict
from p2p_labeldp.cli import main
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network import virtual
from p2p_labeldp.network_source import NetworkSource


def source(**more):
    return NetworkSource(
        **{"engine": "virtual", "cluster_size": 8, "flip_probability": 0.1, "seed": 3, "peers": 64} | more
    )


def test_rows_are_the_clusters_of_whole_rounds_in_order():
    begun = []
    peers = source(playing=lambda number, of: begun.append((number, of)))
    assert peers.clusters == 8
    assert [peers.whole_rounds(trials) for trials in (1, 8, 9)] == [8, 8, 16]
    labels = none_one_or_all(16, 8)
    shown = peers.draw_rounds(labels=labels)
    assert begun == [(1, 2), (2, 2)]
    assert np.array_equal(shown.labels, labels)
    assert (shown.clusters, shown.flipped) == (8, None)
    assert (shown.mates >= 0).all()
    assert (shown.reports >= 0).all()


def test_a_seed_repeats_its_rounds_and_another_seed_size_or_round_has_coins_of_its_own():
    labels = np.zeros((16, 8), dtype=np.uint8)
    shown = source().draw_rounds(labels=labels)
    assert np.array_equal(source().draw_rounds(labels=labels).mates, shown.mates)
    assert not np.array_equal(source(seed=4).draw_rounds(labels=labels).mates, shown.mates)
    assert not np.array_equal(shown.mates[:8], shown.mates[8:])
    assert source()._seed(0) != source(cluster_size=9)._seed(0)


def test_many_rounds_of_real_machines_conform_and_a_mate_that_is_not_drawn_is_caught(monkeypatch):
    """Fails by chance with probability 1e-9."""
    peers = source(peers=128)
    labels = none_one_or_all(peers.whole_rounds(64), 8)
    assert audit_of_rounds(peers.draw_rounds(labels=labels), flip_probability=0.1).verdict is Verdict.PASS

    play = virtual.play

    def without_oneself(study):
        played = play(study)
        events = [
            fact.__class__(peer=fact.peer, mate=fact.peer // 8 * 8 + (fact.peer + 1) % 8)
            if isinstance(fact, facts.Asked) and fact.mate == fact.peer
            else fact
            for fact in played.facts
        ]
        object.__setattr__(played, "facts", events)
        return played

    monkeypatch.setattr(virtual, "play", without_oneself)
    found = audit_of_rounds(peers.draw_rounds(labels=labels), flip_probability=0.1)
    assert "self_picks" in found.conformance.failed


def test_a_wrong_claim_of_the_flip_is_caught():
    """Of 16 clusters of 16 some 160 flipped bits are seen."""
    peers = source(cluster_size=16, peers=128, flip_probability=0.1)
    shown = peers.draw_rounds(labels=none_one_or_all(16, 16))
    assert audit_of_rounds(shown, flip_probability=0.1).verdict is Verdict.PASS
    assert "flip_rate" in audit_of_rounds(shown, flip_probability=0.4).conformance.failed


def test_the_bound_counts_whole_rounds_of_the_two_neighbours():
    shown = source().draw_rounds(labels=none_one_or_all(16, 8))
    assert audit_of_rounds(shown, flip_probability=0.1).trials == 11  # 6 with nobody, 5 with one, 5 with everybody
    shown.reports[0, 0] = -1
    assert audit_of_rounds(shown, flip_probability=0.1).trials == 10
    shown.reports[1::3, 0] = -1
    with pytest.raises(ConfigurationError, match="no round with 1 ones in which all of 8 reported"):
        audit_of_rounds(shown, flip_probability=0.1)


def test_a_lower_bound_is_found_where_rounds_are_many():
    shown = source(cluster_size=2, peers=200, flip_probability=0.01).draw_rounds(labels=none_one_or_all(200, 2))
    found = audit_of_rounds(shown, flip_probability=0.01, delta=0.01)
    assert found.verdict is Verdict.PASS
    assert 0.5 < found.bound.epsilon_lower < 4.6


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"engine": "population"}, "engine"),
        ({"cluster_size": 1}, "cluster_size"),
        ({"cluster_size": 10_001}, "cluster_size"),
        ({"peers": 1}, "peers"),
        ({"peers": 10_001}, "peers"),
    ],
)
def test_what_cannot_be_played_is_refused_at_birth(more, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        source(**more)


def test_labels_that_fill_no_round_are_refused():
    for shape in ((7, 8), (8, 7)):
        with pytest.raises(ConfigurationError, match="labels"):
            source().draw_rounds(labels=np.zeros(shape, dtype=np.uint8))


def test_the_commands_take_the_virtual_engine(capsys, tmp_path):
    asked = ["--engine", "virtual", "--peers", "32", "--json"]
    assert main(["audit", "--cluster-size", "8", "--flip", "0.1", "--trials", "10", *asked]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "pass"
    assert err == "".join(f"round {number} of 3 begins\n" for number in (1, 2, 3))
    command = ["measure", "--set", "mechanism.flip_probability=0.1", "--set", "data.peers=6", *asked]
    command += ["--sizes", "8,16", "--out", str(tmp_path)]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["engine"], row["peers"], row["trials"], row["counted"]) for row in rows] == [
        *(("virtual", 32, 4, 3), ("virtual", 32, 4, 3)),
    ]
    assert [row["verdict"] for row in rows] == ["pass", "pass"]
    assert main(command) == 0
    assert "8, 16 known already" in capsys.readouterr().err
    assert main([*command, "--peers", "24", "--sizes", "8"]) == 0
    assert "known already" not in capsys.readouterr().err


def test_processes_are_measured_one_round_at_a_time(capsys, tmp_path):
    command = ["measure", "--engine", "processes", "--sizes", "8", "--out", str(tmp_path / "new"), "--jobs", "2"]
    assert main(command) == 2
    assert capsys.readouterr().err.startswith("p2p-labeldp: --jobs: one round at a time is possible")
    assert not (tmp_path / "new").exists()
    assert network_source.PEERS == 256


@pytest.mark.processes
def test_real_processes_show_the_rounds_of_the_virtual_ones():
    labels = none_one_or_all(3, 8)
    real = source(engine="processes", peers=24).draw_rounds(labels=labels)
    same = source(engine="virtual", peers=24).draw_rounds(labels=labels)
    assert np.array_equal(real.mates, same.mates)
    assert np.array_equal(real.reports, same.reports)
    assert audit_of_rounds(real, flip_probability=0.1).verdict is Verdict.PASS
