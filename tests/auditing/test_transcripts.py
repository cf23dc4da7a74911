"""Facts of any engine become the arrays an audit looks at."""

import numpy as np
import pytest

from p2p_labeldp.auditing.conformance import Verdict, conformance
from p2p_labeldp.auditing.transcripts import rounds_of_facts
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Answered, Asked, Committed, Ended, Joined, Outcome, Ready

from . import broken_mechanisms as broken


def facts_of(rounds, name=int):
    """The transcript of each round of ``rounds.clusters`` clusters; member i of cluster c is peer c s + i."""
    size = rounds.cluster_size
    for start in range(0, rounds.shape[0], rounds.clusters):
        run = []
        for c in range(rounds.clusters):
            for i in range(size):
                peer, mate = name(c * size + i), name(c * size + int(rounds.mates[start + c, i]))
                label = int(rounds.reports[start + c, i])
                run += [Asked(peer=peer, mate=mate, at=1.0), Answered(peer=mate, asker=peer)]
                run += [Accepted(peer=peer, cluster=c, label=label), Ended(peer=peer, outcome=Outcome.REPORTED)]
        yield run[::-1]


def played(mechanism, rows, size, clusters):
    shown = mechanism(flip_probability=0.1, seed=3)(labels=np.zeros((rows, size), dtype=np.int8))
    object.__setattr__(shown, "clusters", clusters)
    return shown


def test_facts_give_back_the_draws_and_the_reports():
    shown = played(broken.Simulator, 12, 5, 3)
    (rounds,) = rounds_of_facts(*facts_of(shown), labels=dict.fromkeys(range(15), 0))
    assert np.array_equal(rounds.mates, shown.mates)
    assert np.array_equal(rounds.reports, shown.reports)
    assert np.array_equal(rounds.labels, shown.labels)
    assert rounds.clusters == 3
    assert rounds.flipped is None


def test_names_of_deployed_peers_sort_by_id():
    shown = played(broken.Simulator, 4, 6, 2)
    (rounds,) = rounds_of_facts(*facts_of(shown, name=lambda i: f"{i:04x}"))
    assert np.array_equal(rounds.mates, shown.mates)


@pytest.mark.parametrize(
    ("mechanism", "failed"),
    [
        (broken.SelfExcluded, "self_picks"),
        (broken.FreshFlipForEachAsker, "one_flip_for_all"),
        (broken.Permutation, "distinct_mates"),
        (broken.SharedSeed, "shared_coins"),
        (broken.BiasedIndex, "mate_uniformity"),
    ],
)
def test_facts_alone_show_what_is_broken_and_pass_what_is_not(mechanism, failed):
    labels = dict.fromkeys(range(64), 0)
    good = rounds_of_facts(*facts_of(played(broken.Simulator, 400, 16, 4)), labels=labels)
    assert conformance(*good, flip_probability=0.1).verdict is Verdict.PASS
    bad = rounds_of_facts(*facts_of(played(mechanism, 400, 16, 4)), labels=labels)
    assert failed in conformance(*bad, flip_probability=0.1).failed


def test_a_flip_rate_shows_in_the_bits_of_those_who_were_asked():
    shown = played(broken.Simulator, 400, 16, 4)
    rounds = rounds_of_facts(*facts_of(shown), labels=dict.fromkeys(range(64), 0))
    assert "flip_rate" in conformance(*rounds, flip_probability=0.15).failed
    without = rounds_of_facts(*facts_of(shown))
    assert "flip_rate" not in conformance(*without, flip_probability=0.15).p_values


def test_peers_that_abstained_stay_on_the_roster():
    run = [
        *(Joined(peer=p, cluster=7) for p in (1, 2, 3)),
        *(Committed(peer=p, cluster=7, size=3) for p in (1, 2, 3)),
        Asked(peer=1, mate=3),
        Asked(peer=2, mate=2),
        Ready(peer=2, holding=True),
        Accepted(peer=2, cluster=7, label=1),
    ]
    (rounds,) = rounds_of_facts(run)
    assert rounds.mates.tolist() == [[2, 1, -1]]
    assert rounds.reports.tolist() == [[-1, 1, -1]]


def test_without_rosters_a_mate_belongs_to_the_cluster_of_its_asker():
    run = [Asked(peer=1, mate=2), Asked(peer=2, mate=3), Accepted(peer=1, cluster=0, label=1), Asked(peer=9, mate=1)]
    (rounds,) = rounds_of_facts(run)
    assert rounds.mates.tolist() == [[1, 2, -1, 0]]


def test_clusters_of_different_sizes_come_apart_and_changing_rosters_are_no_repeats():
    one = [Accepted(peer=p, cluster=p // 3, label=0) for p in range(5)]
    small, large = rounds_of_facts(one, one)
    assert (small.shape, small.clusters) == ((2, 2), 1)
    assert (large.shape, large.clusters) == ((2, 3), 1)
    other = [Accepted(peer=p, cluster=p % 2, label=0) for p in range(6)]
    pairs = [Accepted(peer=p, cluster=p // 3, label=0) for p in range(6)]
    (rounds,) = rounds_of_facts(other, pairs)
    assert (rounds.shape, rounds.clusters) == ((4, 3), 1)


def test_facts_that_make_no_round_are_refused():
    with pytest.raises(ConfigurationError, match="facts"):
        rounds_of_facts([Joined(peer=1, cluster=0)])
    strangers = [Accepted(peer=1, cluster=0, label=1), Accepted(peer=2, cluster=1, label=1), Asked(peer=1, mate=2)]
    with pytest.raises(ConfigurationError, match="1 asked 2"):
        rounds_of_facts(strangers)
