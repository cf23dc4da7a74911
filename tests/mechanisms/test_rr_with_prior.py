"""RRWithPrior picks the best number of labels and keeps epsilon; its two stagings spend what they say."""

import itertools
import math
import random

import numpy as np
import pytest

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.mechanisms.rr_with_prior import RRWithPrior
from p2p_labeldp.mechanisms.staged_rr import OneStageRR, TwoStageRR

PRIORS = [
    (0.7, 0.2, 0.1),
    (1 / 3, 1 / 3, 1 / 3),
    (0.0, 0.5, 0.5),
    (0.1, 0.0, 0.9),
    (1.0, 0.0, 0.0),
    (0.25, 0.4, 0.35),
]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_the_choice_is_the_best_of_all_subsets(prior, epsilon):
    """Of every set of labels, not only of the likeliest; the true label is told most often with this one."""

    def told(subset):
        return math.exp(epsilon) / (math.exp(epsilon) + len(subset) - 1) * sum(prior[label] for label in subset)

    every = [set(s) for k in (1, 2, 3) for s in itertools.combinations(range(3), k)]
    likely = set(RRWithPrior(num_classes=3, epsilon=epsilon).likely(prior).tolist())
    assert told(likely) == pytest.approx(max(map(told, every)), rel=1e-12)


def test_the_number_of_labels_is_not_off_by_one():
    # at eps = ln 2 and prior (.5, .3, .2): k = 1 tells .5, k = 2 tells 2/3 * .8 = .533, k = 3 tells 2/4
    assert RRWithPrior(num_classes=3, epsilon=math.log(2)).likely((0.3, 0.5, 0.2)).tolist() == [1, 0]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 2.0, 30.0, 700.0])
def test_no_ratio_of_the_channel_exceeds_epsilon(prior, epsilon):
    channel = RRWithPrior(num_classes=3, epsilon=epsilon).channel(prior)
    assert channel.sum(axis=1) == pytest.approx(1)
    for column in channel.T:
        assert (column == 0).all() or column.max() <= column.min() * math.exp(epsilon) * (1 + 1e-9)


def test_a_uniform_prior_is_randomized_response():
    channel = RRWithPrior(num_classes=4, epsilon=1.0).channel([0.25] * 4)
    other = 1 / (math.e + 3)
    assert channel == pytest.approx(np.full((4, 4), other) + np.eye(4) * (math.e - 1) * other)


@pytest.mark.parametrize("prior", PRIORS)
def test_words_follow_the_channel(prior):
    mechanism, rows = RRWithPrior(num_classes=3, epsilon=1.0), 60_000
    channel, words = mechanism.channel(prior), randomness.bulk_label_words(4, 0, rows)[:, 0]
    for label in range(3):
        told = mechanism.randomize(np.full(rows, label, dtype=np.uint8), prior, words)
        assert told.dtype == np.uint8
        rates = np.bincount(told, minlength=3) / rows
        # 54 rates, six standard deviations each at 2e-9: fails by chance with probability below 1e-6
        assert np.abs(rates - channel[label]).max() < 6 * math.sqrt(0.25 / rows)
        assert (rates[channel[label] == 0] == 0).all()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 20.0, 44.0, 700.0])
def test_at_the_edges_of_the_words_every_likely_label_is_reached_and_no_other(k, epsilon):
    mechanism = RRWithPrior(num_classes=6, epsilon=epsilon)
    prior = np.r_[np.full(k, 1 / k), np.zeros(6 - k)]
    likely = mechanism.likely(prior)
    edges = np.array([0, 1, 2**63, 2**64 - 2, 2**64 - 1], dtype=np.uint64)
    for label in range(6):
        assert set(mechanism.randomize(np.full(5, label), prior, edges).tolist()) <= set(likely.tolist())
    assert mechanism.randomize(np.array([likely[0]]), prior, edges[-1:]).tolist() == [likely[0]]


@pytest.mark.parametrize("prior", [(0.5, 0.4), (0.5, 0.4, 0.2), (-0.1, 0.6, 0.5), (math.nan, 0.5, 0.5)])
def test_priors_that_are_none_are_refused(prior):
    with pytest.raises(ConfigurationError, match="prior: "):
        RRWithPrior(num_classes=3, epsilon=1).likely(prior)


def test_one_stage_spends_epsilon_on_counts_and_labels():
    for num_classes, epsilon in ((2, 0.5), (10, 1.0), (10, 8.0)):
        built = OneStageRR.calibrated(num_classes=num_classes, epsilon=epsilon, noise_share=0.25)
        assert epsilon * (1 - 1e-9) < built.epsilon <= epsilon
        assert built.counts.epsilon_noise == pytest.approx(0.25 * epsilon)
        assert built.told.epsilon == pytest.approx(0.75 * epsilon)
        assert built.needs_curator


def test_two_stages_spend_epsilon_once():
    assert TwoStageRR(num_classes=10, epsilon=1.5).epsilon == 1.5
    assert not TwoStageRR(num_classes=10, epsilon=1.5).needs_curator


@pytest.mark.parametrize("build", [OneStageRR.calibrated, TwoStageRR])
def test_pure_clusters_help_and_absent_classes_do_no_harm(build):
    built = build(num_classes=10, epsilon=1.0)
    clusters = np.repeat(np.arange(5), 2000)
    released = built.release(clusters.copy(), clusters, count=7, rng=random.Random(1))
    assert released.labels.shape == (10_000,)
    assert released.distributions is None
    assert np.mean(released.labels == clusters) > 0.5  # UniformRR: .23
    assert isinstance(built, LabelMechanism)


def test_the_first_stages_labels_are_randomized_alone():
    """Nobody's prior is made of its own label: with all in the first stage but a few, rates are UniformRR's."""
    built = TwoStageRR(num_classes=4, epsilon=1.0, first_share=1 - 1e-9)
    labels = np.zeros(40_000, dtype=int)
    told = built.release(labels, labels, count=1, rng=random.Random(3)).labels
    keep = math.e / (math.e + 3)
    assert np.mean(told == 0) == pytest.approx(keep, abs=5.1 * 0.5 / 200)  # 5.1 standard deviations


def test_the_prior_divides_the_channel_out():
    built = TwoStageRR(num_classes=3, epsilon=2.0)
    lam = built._first.redraw_probability
    truth = np.array([0.5, 0.3, 0.2])
    told = (1 - lam) * truth + lam / 3
    assert built.prior((told * 1e9).astype(np.int64)) == pytest.approx(truth, abs=1e-6)
    assert built.prior(np.zeros(3, dtype=int)) == pytest.approx(1 / 3)
    assert built.prior(np.array([9, 0, 0])) == pytest.approx([1, 0, 0])


def test_members_who_speak_twice_would_be_seen():
    with pytest.raises(ConfigurationError, match="first_share: "):
        TwoStageRR(num_classes=3, epsilon=1, first_share=1.0)
    with pytest.raises(ConfigurationError, match="noise_share: "):
        OneStageRR.calibrated(num_classes=3, epsilon=1, noise_share=0.0)
