"""Branch and bound finds what a full scan finds."""

import math
import random

import numpy as np
import pytest

from p2p_labeldp.accounting import exact, scan, tails
from p2p_labeldp.accounting.binomial import LOG_SCALE, log_pmf, pmf
from p2p_labeldp.accounting.resampling import epsilon, loss, profile
from p2p_labeldp.accounting.scan import Cluster, delta_of, epsilon_of, epsilon_of_cells, worst_count

CASES = [(200, 200, 0.25), (200, 200, 0.01), (150, 180, 0.1), (150, 120, 0.3), (120, 360, 0.1), (90, 90, 0.46)]


def both_ways(monkeypatch, question):
    by_tables = question()
    monkeypatch.setattr(exact, "TABLE_WORK", 0)
    monkeypatch.setattr(exact, "TABLE_ENTRIES", 0)
    return by_tables, question()


@pytest.mark.parametrize(("size", "reports", "flip_probability"), CASES)
def test_epsilon_by_branch_and_bound_is_the_full_scan_s(monkeypatch, size, reports, flip_probability):
    def ask():
        return loss(cluster_size=size, flip_probability=flip_probability, delta=1 / size**2, reports=reports)

    full, bounded = both_ways(monkeypatch, ask)
    assert full.epsilon - 1e-10 <= bounded.epsilon <= full.epsilon + 1e-9
    assert (bounded.worst_ones, bounded.direction) == (full.worst_ones, full.direction)


@pytest.mark.parametrize(("size", "reports", "flip_probability"), CASES)
def test_delta_by_branch_and_bound_is_the_full_scan_s(monkeypatch, size, reports, flip_probability):
    points = [0.0, 0.01, 0.2, 0.9]

    def ask():
        return [
            loss.delta
            for loss in profile(cluster_size=size, flip_probability=flip_probability, epsilons=points, reports=reports)
        ]

    full, bounded = both_ways(monkeypatch, ask)
    for exactly, found in zip(full, bounded, strict=True):
        assert exactly * (1 - 1e-9) <= found <= exactly * (1 + 1e-6) + 1e-300


def test_tiny_deltas_survive_branch_and_bound(monkeypatch):
    def ask():
        small = [
            epsilon(cluster_size=150, flip_probability=0.02, delta=delta) for delta in (1e-50, 1e-200, 1e-300, 0.0)
        ]
        (far,) = profile(cluster_size=150, flip_probability=0.02, epsilons=[0.99 * small[0]])
        return [*small, math.log(far.delta)]

    full, bounded = both_ways(monkeypatch, ask)
    assert bounded == pytest.approx(full, rel=1e-7)


@pytest.mark.parametrize(("low", "high"), [(0, 5), (3, 20), (10, 49), (40, 89), (80, 119)])
@pytest.mark.parametrize("reports", [120, 150, None])
def test_the_bound_of_a_block_covers_each_of_its_counts(low, high, reports):
    cluster = Cluster(pool=120, reports=reports, flip_probability=0.2)
    mixture, exceeded = cluster.block(low, high, 1e-12)
    for point in (0.0, 0.1, 0.5):
        bound = delta_of(mixture, point, 1e-12) + exceeded
        for k in range(low, high + 1):
            one, _ = cluster.block(k, k, 1e-12)
            assert delta_of(one, point, 0.0) <= bound


@pytest.mark.parametrize(
    ("size", "flip_probability", "expected"),
    [(10**4, 0.25, 0.0363), (10**4, 0.1, 0.0887), (10**4, 0.01, 0.3836), (10**6, 0.01, 0.0425)],
)
def test_large_clusters_have_the_tabulated_epsilon(size, flip_probability, expected):
    found = epsilon(cluster_size=size, flip_probability=flip_probability, delta=1 / size**2)
    assert found == pytest.approx(expected, abs=5e-5)


def test_a_million_members_invert_their_profile():
    found = epsilon(cluster_size=10**6, flip_probability=0.01, delta=1e-12)
    (at,) = profile(cluster_size=10**6, flip_probability=0.01, epsilons=[found])
    assert at.delta == pytest.approx(1e-12, rel=1e-5)


def test_a_large_cluster_at_the_extremes():
    size = 5000
    assert epsilon(cluster_size=size, flip_probability=0.5, delta=0.0) == 0.0
    assert epsilon(cluster_size=size, flip_probability=0.5, delta=1e-9) == 0.0
    assert epsilon(cluster_size=size, flip_probability=0.0, delta=0.5) == math.inf
    (free,) = profile(cluster_size=size, flip_probability=0.0, epsilons=[800.0])
    assert free.delta == pytest.approx(1 - (1 - 1 / size) ** size, rel=1e-6)
    (beyond,) = profile(cluster_size=size, flip_probability=1e-12, epsilons=[800.0])
    assert beyond.delta == 0.0
    (tiny,) = profile(cluster_size=size, flip_probability=1e-12, epsilons=[5.0])
    assert 0.5 < tiny.delta < 0.7
    assert 0 < epsilon(cluster_size=size, flip_probability=0.1, delta=1e-300) < math.log(9)


def test_every_count_is_visited_or_covered():
    visited = []

    def evaluate(low, high, fine, floor):
        visited.append((low, high))
        return (1.0 if low <= 37 <= high else 0.5 * (low < high)), 1

    worst = worst_count(200, evaluate, lambda best: 0.0)
    assert (worst.value, worst.first, worst.last) == (1.0, 37, 37)
    done = {k for low, high in visited[1:] for k in range(low, high + 1)}  # the first is all of them
    assert done == set(range(200))


def test_a_spent_budget_leaves_an_upper_bound():
    def evaluate(low, high, fine, floor):
        largest = max(math.sin(k) for k in range(low, high + 1))
        return largest + 0.01 * (high - low), 1

    exactly = max(math.sin(k) for k in range(5000))
    found = [worst_count(5000, evaluate, lambda best: 1e-9, budget).value for budget in (50, 200, 800)]
    assert found == sorted(found, reverse=True)
    assert exactly <= found[-1] < found[0]


def alone(cluster, k, delta):
    """The exact epsilon of one label count."""
    mixture, _ = cluster.block(k, k, 1e-24)
    return epsilon_of(mixture, delta, 1e-24)


@pytest.mark.parametrize("flip_probability", [0.45, 0.49, 0.499])
def test_near_one_half_the_result_covers_every_count_by_little(flip_probability):
    size, delta = 2000, 1 / 2000**2
    found = epsilon(cluster_size=size, flip_probability=flip_probability, delta=delta)
    cluster = Cluster(pool=size, reports=size, flip_probability=flip_probability)
    largest = max(alone(cluster, k, delta) for k in (*range(0, 200, 4), *range(200, 2000, 90)))
    assert largest < found < largest * 1.001


@pytest.mark.parametrize(("low", "high"), [(0, 30), (600, 900), (1400, 1499)])
@pytest.mark.parametrize("flip_probability", [0.3, 0.48])
def test_the_bound_by_cells_covers_each_count_and_is_no_worse_than_the_simple_one(low, high, flip_probability):
    cluster, delta, tail = Cluster(pool=1500, reports=1500, flip_probability=flip_probability), 1e-6, 1e-14
    floor = 0.5 * alone(cluster, low, delta)
    bound = epsilon_of_cells(cluster.cells(low, high, tail), delta, tail, floor)
    mixture, exceeded = cluster.block(low, high, tail)
    assert bound <= epsilon_of(mixture, delta - exceeded, tail) * (1 + 1e-9)
    counts = {low, high, (low + high) // 2}
    assert all(alone(cluster, k, delta) <= bound for k in counts)
    floored = epsilon_of_cells(cluster.cells(low, high, tail), delta, tail, 2 * bound)
    assert floored == pytest.approx(2 * bound, rel=1e-12)


def test_cells_hold_all_of_the_probability():
    for width, truthful, most in ((100, 0.02, 37), (100, 0.02, 100), (5000, 0.1, 800), (3, 1.0, 3)):
        cells = scan._cells(width, truthful, most)
        ends = [end for end, _ in cells]
        assert ends == sorted(set(ends))
        assert ends[-1] == most
        assert sum(probability for _, probability in cells) == pytest.approx(1.0, abs=1e-8)
        assert sum(end * probability for end, probability in cells) >= width * truthful  # rounded up, never down


def test_the_walk_gives_the_laws_of_the_definition():
    mixture = tails.Mixture(ones=20, zeros=300, uniform=60, reports=500, flip_probability=0.1)
    others = np.convolve(np.convolve(pmf(20, 0.9, 0, 20), pmf(300, 0.1, 0, 300)), pmf(60, 0.5, 0, 60))
    t = np.arange(501)
    law = sum(p * np.exp(log_pmf(500, m / 381, t)) for m, p in enumerate(others) if 0 < m < 381)
    blocks = list(tails.walk(mixture, 0.0))
    walked = np.concatenate([block.zero for block in blocks]) * math.exp(-2 * LOG_SCALE)
    assert walked == pytest.approx(law, rel=1e-10)
    cut = list(tails.walk(mixture, 1e-8))
    kept = sum(float(block.zero.sum()) for block in cut) * math.exp(-2 * LOG_SCALE)
    assert 1 - cut[-1].omitted <= kept <= 1 + 1e-12
    assert cut[-1].omitted < 1e-6


def test_binomial_probabilities_keep_their_digits_at_a_million():
    """Against values from 40-digit arithmetic."""
    assert pmf(10**6, 0.25, 250000, 250000)[0] == pytest.approx(0.00092131739922555149, rel=1e-12)
    assert pmf(10**6, 1e-5, 3, 3)[0] == pytest.approx(0.0075664809279452972, rel=1e-12)
    assert pmf(10**6, 0.25, 246000, 246000)[0] == pytest.approx(2.3461409648952854e-22, rel=1e-11)


@pytest.mark.parametrize("reports", [1, 13, 26])
def test_the_digits_of_a_tiny_flip_are_kept(monkeypatch, reports):
    """1 - f rounds f = 1e-12 by a part in ten thousand, so laws are written by flips."""

    def ask():
        question = {"cluster_size": 13, "flip_probability": 1e-12, "reports": reports}
        found = epsilon(delta=1e-12, **question)
        return [found, epsilon(delta=0.0, **question), profile(epsilons=[0.99 * found], **question)[0].delta]

    full, bounded = both_ways(monkeypatch, ask)
    assert bounded == pytest.approx(full, rel=1e-9)


def test_random_clusters_are_covered_by_branch_and_bound_and_by_little(monkeypatch):
    rng = random.Random(5)
    questions = []
    for _ in range(60):
        size = rng.randint(2, 200)
        reports = rng.choice([size, max(1, round(size * rng.uniform(0.3, 3))), None])
        flip_probability = rng.choice([rng.uniform(0.3, 0.4999), rng.uniform(0.001, 0.5), 10 ** rng.uniform(-12, -1)])
        cluster = Cluster(pool=size, reports=reports, flip_probability=flip_probability)
        questions.append((cluster, 10 ** rng.uniform(-14, -0.5), rng.uniform(0, 2)))

    def ask():
        return [
            (exact.loss_at_delta(cluster, delta).epsilon, exact.loss_at_epsilon(cluster, point).delta)
            for cluster, delta, point in questions
        ]

    for by_tables, bounded in zip(*both_ways(monkeypatch, ask), strict=True):
        assert by_tables[0] - 1e-10 <= bounded[0] <= by_tables[0] * 1.001 + 1e-9
        assert by_tables[1] * (1 - 1e-8) <= bounded[1] <= by_tables[1] * 1.02 + 1e-300
