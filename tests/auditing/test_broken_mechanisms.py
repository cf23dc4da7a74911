"""Mechanisms broken on purpose are caught by the one verdict, with no hint what is broken.

Every defect runs through the same command with the same threshold, after as many rounds as conformance.py states; the
control, healthy at the same number of rounds, passes. Caught on each of 10 fixed seeds; the stated numbers of rounds
give a power above .99.
"""

import numpy as np
import pytest

from p2p_labeldp.auditing.conformance import Verdict, conformance
from p2p_labeldp.auditing.observed import OnesSample, Rounds

from . import broken_mechanisms as broken

SIZE, FLIP, SEEDS = 100, 0.1, range(10)


def verdicts(mechanism, rounds, size=SIZE, flip=FLIP, seeds=SEEDS):
    for seed in seeds:
        simulator = mechanism(flip_probability=flip, seed=seed)
        yield conformance(simulator(labels=broken.halves(rounds, size)), flip_probability=flip)


@pytest.mark.parametrize(
    ("mechanism", "rounds"),
    [
        (broken.FlipTooSmall, 5000),
        (broken.SelfExcluded, 50),
        (broken.FreshFlipForEachAsker, 2),
        (broken.Permutation, 4),
        (broken.BiasedIndex, 500),
        (broken.CoarseIndex, 100),
        (broken.SharedSeed, 12),
        (broken.OneCoinForFlipAndMate, 4),
        (broken.RoundsRepeat, 4),
    ],
)
def test_each_defect_is_caught_in_the_stated_number_of_rounds_and_a_healthy_control_passes(mechanism, rounds):
    seeds = SEEDS if rounds < 1000 else range(4)
    for result in verdicts(mechanism, rounds, seeds=seeds):
        assert result.verdict is Verdict.FAIL, result.p_values
    for result in verdicts(broken.Simulator, rounds, seeds=seeds):
        assert result.verdict is Verdict.PASS, result.failed


@pytest.mark.parametrize("size", [8, 16, 32, 64])
@pytest.mark.parametrize(
    "mechanism",
    [
        broken.SelfExcluded,
        broken.FreshFlipForEachAsker,
        broken.Permutation,
        broken.BiasedIndex,
        broken.SharedSeed,
        broken.OneCoinForFlipAndMate,
        broken.RoundsRepeat,
    ],
)
def test_the_sizes_of_real_clusters_need_no_more_than_a_thousand_rounds(mechanism, size):
    for result in verdicts(mechanism, 1000, size=size, seeds=range(3)):
        assert result.verdict is Verdict.FAIL, result.p_values


def ones_verdict(mechanism, rounds, seed):
    counts = mechanism(flip_probability=FLIP, seed=seed).ones(SIZE)(ones=0, rounds=rounds)
    return conformance(OnesSample(cluster_size=SIZE, ones=0, counts=counts), flip_probability=FLIP)


@pytest.mark.parametrize(
    ("mechanism", "rounds"),
    [(broken.FlipTooSmall, 8000), (broken.FreshFlipForEachAsker, 1000), (broken.Permutation, 1000)],
)
def test_values_of_t_alone_show_a_wrong_flip_and_a_wrong_spread(mechanism, rounds):
    for seed in range(3):
        assert "ones_at_zero" in ones_verdict(mechanism, rounds, seed).failed
        assert ones_verdict(broken.Simulator, rounds, seed).verdict is Verdict.PASS


def test_an_excluded_self_can_not_be_seen_in_t_but_in_the_joint_statistic():
    # Given the flips, T has the same mean without oneself, and nearly the same law: that is why the joint one exists.
    assert ones_verdict(broken.SelfExcluded, 8000, 0).verdict is Verdict.PASS
    shown = broken.SelfExcluded(flip_probability=FLIP, seed=1)(labels=broken.halves(10_000, SIZE))
    blind = Rounds(labels=shown.labels, flipped=shown.flipped, reports=shown.reports)  # draws unseen
    assert conformance(blind, flip_probability=FLIP).failed == ("joint",)


def test_two_peers_of_different_clusters_that_share_a_seed_are_caught():
    rounds, clusters, size = 14, 8, 16
    shown = broken.Simulator(flip_probability=FLIP, seed=5)(labels=np.zeros((rounds * clusters, size), dtype=np.int8))
    assert conformance(with_clusters(shown, clusters, shown.mates), flip_probability=FLIP).verdict is Verdict.PASS
    mates = shown.mates.copy().reshape(rounds, clusters, size)
    mates[:, 6, 3] = mates[:, 1, 9]
    result = conformance(with_clusters(shown, clusters, mates.reshape(-1, size)), flip_probability=FLIP)
    assert result.failed == ("shared_coins",)


def with_clusters(shown, clusters, mates):
    reports = np.take_along_axis(shown.flipped, mates, axis=1)
    return Rounds(labels=shown.labels, flipped=shown.flipped, mates=mates, reports=reports, clusters=clusters)


def test_reports_alone_betray_two_members_that_share_a_seed():
    shown = broken.SharedSeed(flip_probability=FLIP, seed=1)(labels=np.zeros((500, 16), dtype=np.int8))
    blind = Rounds(labels=shown.labels, reports=shown.reports)
    assert conformance(blind, flip_probability=FLIP).failed == ("shared_coins",)


def test_a_member_that_always_asks_the_same_mate_is_caught_among_healthy_ones():
    shown = broken.Simulator(flip_probability=FLIP, seed=1)(labels=broken.halves(100, 16))
    mates = shown.mates.copy()
    mates[:, 4] = 11
    result = conformance(with_clusters(shown, 1, mates), flip_probability=FLIP)
    assert "mate_uniformity" in result.failed
