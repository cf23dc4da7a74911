"""The population engine tosses each peer's own coins, and its rounds follow the law of Algorithm 2.

The statistical tests fix their seed; each would fail with probability 1e-6 if the law held and the seed were drawn.
"""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from p2p_labeldp import clustering, config, datasets, facts, population, randomness
from p2p_labeldp.accounting.planning import plan_roster
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Answered, Asked, Ended, Outcome
from p2p_labeldp.learning import erm
from p2p_labeldp.mechanisms import randomized_response, resampling
from p2p_labeldp.population import count_ones, play

FAILURE = 1e-6


def equal_clusters(count, size):
    return np.repeat(np.arange(count), size)


def uniform(counts):
    """Chi-square of counts that should all have one expectation."""
    return stats.chisquare(counts).pvalue


# --- one round, peer by peer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_every_peer_does_what_it_would_do_alone(seed):
    shapes = np.random.default_rng(seed)
    clusters = shapes.integers(0, 5, 97)
    clusters[clusters == 3] = 2  # an empty cluster, and a larger one
    labels = shapes.integers(0, 2, 97).astype(np.uint8)
    flips = [0.05, 0.5, 0.2, 0.1, 0.0]
    played = play(labels, clusters, flips, seed=seed, round_number=seed % 3)
    members = [np.flatnonzero(clusters == c).tolist() for c in range(5)]
    flipped = []
    for i, (label, c) in enumerate(zip(labels.tolist(), clusters.tolist(), strict=True)):
        coins = randomness.replay(seed, i, seed % 3)
        threshold = randomized_response.flip_threshold(flips[c])
        flipped.append(
            randomized_response.flip(label, coins.flip_word(label_id="", flip_probability=flips[c]), threshold)
        )
        index = resampling.mate_index(coins.mate_word(label_id="", round_id=b"", roster=b""), len(members[c]))
        assert played.mates[i] == members[c][index]
    assert played.flipped.tolist() == flipped
    assert played.reports.tolist() == [flipped[mate] for mate in played.mates]
    assert (clusters[played.mates] == clusters).all()


def test_columns_have_the_documented_types():
    played = play(np.array([0, 1]), np.array([0, 0]), [0.1], seed=0)
    assert played.flipped.dtype == played.reports.dtype == np.uint8
    assert played.mates.dtype == played.clusters.dtype == np.int64


def test_the_facts_are_an_ask_an_answer_a_report_and_an_end_for_each_peer():
    played = play(np.array([0, 1, 1, 0, 1]), np.array([1, 0, 1, 1, 0]), [0.1, 0.2], seed=3)
    told = list(played.facts())
    expected = []
    for i in range(5):
        mate = int(played.mates[i])
        expected += [
            Asked(peer=i, mate=mate),
            Answered(peer=mate, asker=i),
            Accepted(peer=i, cluster=int(played.clusters[i]), label=int(played.reports[i])),
            Ended(peer=i, outcome=Outcome.REPORTED),
        ]
    assert told == expected
    assert [facts.decode(facts.encode(fact)) for fact in told] == told
    assert len(facts.transcript(told)) == 20


def test_one_seed_gives_one_round_and_another_seed_or_round_another():
    labels, clusters = np.zeros(200, dtype=int), equal_clusters(4, 50)
    rounds = [
        facts.transcript(play(labels, clusters, [0.1] * 4, seed=s, round_number=r).facts())
        for s, r in ((0, 0), (0, 0), (1, 0), (0, 1))
    ]
    assert rounds[0] == rounds[1]
    assert rounds[0] != rounds[2]
    assert rounds[0] != rounds[3]


def test_names_of_clusters_do_not_matter():
    labels, clusters = np.arange(90) % 2, equal_clusters(3, 30)
    a = play(labels, clusters, [0.1, 0.2, 0.3], seed=0)
    b = play(labels, 2 - clusters, [0.3, 0.2, 0.1], seed=0)
    assert (a.reports == b.reports).all()
    assert (a.mates == b.mates).all()


def test_without_flips_the_reports_are_mates_labels_and_a_lone_peer_asks_itself():
    labels = np.arange(50) % 2
    played = play(labels, equal_clusters(2, 25), [0.0, 0.0], seed=1)
    assert (played.flipped == labels).all()
    assert (played.reports == labels[played.mates]).all()
    assert play(np.array([1]), np.array([0]), [0.0], seed=1).mates.tolist() == [0]


def test_k_classes_are_flipped_to_each_other_class_alike():
    played = play(np.full(60_000, 2), np.zeros(60_000, dtype=int), [0.3], seed=2, num_classes=4)
    counts = np.bincount(played.flipped, minlength=4)
    assert stats.chisquare(counts, [6000, 6000, 42_000, 6000]).pvalue > FAILURE


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"labels": np.array([0, 2])}, "labels: integers 0 to 1 are needed"),
        ({"labels": np.array([0, -1])}, "labels: integers 0 to 1 are needed"),
        ({"labels": np.array([0.0, 1.0])}, "labels: integers 0 to 1 are needed"),
        ({"labels": np.array([False, True])}, "labels: integers 0 to 1 are needed"),
        ({"labels": np.array([0, 1, 1])}, "clusters: shapes (3,) and (2,) given"),
        ({"clusters": np.array([0, 1])}, "clusters: ids 0 to 0 are needed"),
        ({"clusters": np.array([0, -1])}, "clusters: ids 0 to 0 are needed"),
        ({"clusters": np.array([0.0, 0.0])}, "clusters: ids 0 to 0 are needed"),
        ({"flip_probabilities": [0.6]}, "flip_probability: 0.6 given; 0 to 0.5"),
        ({"flip_probabilities": [float("nan")]}, "flip_probability: nan given; 0 to 0.5"),
        ({"seed": -1}, "seed: -1 given; 0 to 2^64 - 1"),
        ({"round_number": -1}, "round_number: -1 given; 0 to 2^32 - 1"),
        ({"exchange": "swap"}, "exchange.kind: 'swap' given; one of resample, permute"),
        ({"num_classes": 1}, "num_classes: 1 given"),
    ],
)
def test_an_impossible_round_is_refused(changes, line):
    good = {"labels": np.array([0, 1]), "clusters": np.array([0, 0]), "flip_probabilities": [0.1], "seed": 0}
    play(**good)
    with pytest.raises(ConfigurationError) as caught:
        play(**{**good, **changes})
    assert str(caught.value).startswith(line)


# --- the law -------------------------------------------------------------------------------------------------------


def test_flips_have_their_frequency_in_every_cluster():
    flips = [0.01, 0.0604, 0.25, 0.5]
    labels = np.arange(400_000) % 2
    played = play(labels, equal_clusters(4, 100_000), flips, seed=11)
    flipped = (played.flipped != labels).reshape(4, 2, -1).sum(axis=2)
    for counts, f in zip(flipped, flips, strict=True):
        for count in counts:
            assert stats.binomtest(int(count), 50_000, f).pvalue > FAILURE / 8


@pytest.mark.parametrize("size", [2, 3, 7, 20, 64])
def test_mates_are_uniform_over_the_cluster_and_oneself_is_asked_once_in_s(size):
    count = 200_000 // size
    played = play(np.zeros(count * size, dtype=int), equal_clusters(count, size), [0.1] * count, seed=12)
    peers = np.arange(count * size)
    pairs = np.zeros((size, size), dtype=int)
    np.add.at(pairs, (peers % size, played.mates % size), 1)
    assert uniform(pairs.ravel()) > FAILURE
    assert stats.binomtest(int((played.mates == peers).sum()), len(peers), 1 / size).pvalue > FAILURE


def test_flips_and_mates_are_independent():
    size, count = 8, 40_000
    played = play(np.zeros(count * size, dtype=int), equal_clusters(count, size), [0.5] * count, seed=13)
    table = np.zeros((2, size), dtype=int)
    np.add.at(table, (played.flipped, played.mates % size), 1)
    assert stats.chi2_contingency(table).pvalue > FAILURE


def law(size, ones, f, exchange):
    """P(T = t): m ~ Bin(ones, 1 - f) + Bin(size - ones, f); T = m permuted, T | m ~ Bin(size, m/size) resampled."""
    kept, made = (stats.binom.pmf(np.arange(n + 1), n, p) for n, p in ((ones, 1 - f), (size - ones, f)))
    flipped_ones = np.convolve(kept, made)
    if exchange == "permute":
        return flipped_ones
    t = np.arange(size + 1)
    return sum(p * stats.binom.pmf(t, size, m / size) for m, p in enumerate(flipped_ones))


@pytest.mark.parametrize("exchange", population.EXCHANGES)
@pytest.mark.parametrize("ones", [0, 3, 8])
def test_the_ones_reported_follow_the_exact_law_and_not_the_other_exchanges(exchange, ones):
    size, f, clusters = 8, 0.2, 100_000
    labels = np.arange(size) < ones
    counts = np.concatenate(list(count_ones(labels.astype(int), f, clusters=clusters, seed=14, exchange=exchange)))
    seen = np.bincount(counts, minlength=size + 1)
    other = next(e for e in population.EXCHANGES if e != exchange)
    for kind, fits in ((exchange, True), (other, False)):
        expected = law(size, ones, f, kind) * clusters
        likely = expected >= 5
        pooled = [np.r_[x[likely], x[~likely].sum()] for x in (seen, expected)]
        pooled = [x[:-1] if pooled[1][-1] < 5 else x for x in pooled]
        pooled[1] *= pooled[0].sum() / pooled[1].sum()
        assert (stats.chisquare(*pooled).pvalue > FAILURE) == fits


def test_permuted_mates_are_a_uniform_permutation_of_each_cluster():
    size, count = 3, 60_000
    clusters = equal_clusters(count, size)
    played = play(np.zeros(count * size, dtype=int), clusters, [0.1] * count, seed=15, exchange="permute")
    assert (np.sort(played.mates.reshape(count, size), axis=1).ravel() == np.arange(count * size)).all()
    order = (played.mates % size).reshape(count, size) @ [9, 3, 1]
    seen = np.unique(order, return_counts=True)[1]
    assert len(seen) == 6
    assert uniform(seen) > FAILURE


# --- the streaming form --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", population.EXCHANGES)
@pytest.mark.parametrize("size", [1, 2, 10, 63, 64, 65, 200, 333])
@pytest.mark.parametrize("own_labels", [True, False])
def test_the_blocks_are_the_array_form_bit_for_bit(monkeypatch, exchange, size, own_labels):
    monkeypatch.setattr(population, "CHUNK", 64)  # sizes below, at, above and no multiple of a chunk
    clusters = 23
    random = np.random.default_rng(size)
    labels = random.integers(0, 2, (clusters, size) if own_labels else size).astype(np.uint8)
    everyone = labels.ravel() if own_labels else np.tile(labels, clusters)
    played = play(everyone, equal_clusters(clusters, size), [0.2] * clusters, seed=5, round_number=2, exchange=exchange)
    blocks = list(count_ones(labels, 0.2, clusters=clusters, seed=5, round_number=2, exchange=exchange))
    expected = played.reports.reshape(clusters, size).sum(axis=1)
    assert len(blocks) == -(-clusters // max(1, 64 // size))
    assert np.concatenate(blocks).tolist() == expected.tolist()


def test_the_array_form_and_the_blocks_agree_at_the_real_chunk():
    size, clusters = 1000, 70
    labels = np.arange(size) % 2
    played = play(np.tile(labels, clusters), equal_clusters(clusters, size), [0.03] * clusters, seed=6)
    blocks = list(count_ones(labels, 0.03, clusters=clusters, seed=6))
    assert len(blocks) > 2
    assert (np.concatenate(blocks) == played.reports.reshape(clusters, size).sum(axis=1)).all()


def test_a_population_can_be_played_in_parts():
    labels = np.arange(50) % 2
    whole = np.concatenate(list(count_ones(labels, 0.1, clusters=1000, seed=7)))
    parts = [count_ones(labels, 0.1, clusters=n, seed=7, first_cluster=at) for at, n in ((0, 333), (333, 667))]
    assert np.concatenate([block for part in parts for block in part]).tolist() == whole.tolist()


def test_the_streams_memory_does_not_grow_with_the_population():
    def peak(clusters):
        tracemalloc.start()
        for _ in count_ones(np.zeros(100, dtype=np.uint8), 0.1, clusters=clusters, seed=0):
            pass
        high = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return high

    peak(10)  # imports
    small, large = peak(1_000), peak(20_000)
    assert large < small + 100_000
    assert large < 4_000_000


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"labels": np.array([])}, "labels: integers"),
        ({"labels": np.array([], dtype=int)}, "labels: shape (0,) given"),
        ({"labels": np.zeros((3, 5), dtype=int)}, "labels: shape (3, 5) given; (s,) or (4, s)"),
        ({"labels": np.array([2])}, "labels: integers 0 to 1"),
        ({"clusters": 0}, "clusters: 0 given; at least 1"),
        ({"first_cluster": -1}, "first_cluster: -1 given; at least 0"),
        ({"flip_probability": 0.51}, "flip_probability: 0.51 given"),
        ({"seed": 2**64}, "seed: "),
        ({"exchange": ""}, "exchange.kind: "),
    ],
)
def test_an_impossible_stream_is_refused_before_the_first_block(changes, line):
    good = {"labels": np.zeros((4, 5), dtype=int), "flip_probability": 0.1, "clusters": 4, "seed": 0}
    count_ones(**good)
    with pytest.raises(ConfigurationError) as caught:
        count_ones(**{**good, **changes})
    assert str(caught.value).startswith(line)


# --- what it is for ------------------------------------------------------------------------------------------------


def test_the_default_experiment_learns_within_four_points_of_the_model_without_privacy():
    """Flips planned for each roster: epsilon 1 at delta = 1/s^2 with 5 % tolerated loss."""
    c = config.load("breast-cancer")
    assert c.mechanism.target_epsilon == 1
    private, plain = [], []
    for seed in range(20):
        d = datasets.load(c.data.name, seed=seed, test_share=c.data.test_share)
        found = clustering.fit(
            d.train_features, count=c.clusters.count, minimum_size=c.clusters.minimum_size, seed=seed
        ).assign(d.train_features)
        flips = [
            plan_roster(size, c.mechanism.target_epsilon, c.mechanism.tolerated_loss).flip_probability
            for size in np.bincount(found).tolist()
        ]
        reports = play(d.train_labels, found, flips, seed=seed).reports
        for labels, accuracies in ((reports, private), (d.train_labels, plain)):
            model = erm.fit(c.learner.model, d.train_features, labels, label_space=d.label_space, seed=seed)
            accuracies.append(erm.accuracy(model, d.test_features, d.test_labels))
    assert np.mean(plain) > 0.96
    assert np.mean(private) > np.mean(plain) - 0.04
