"""The samplers draw exactly the law they state, in every regime."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, norm

from p2p_labeldp.mechanisms.cap import cap, log_gap_of
from p2p_labeldp.mechanisms.norms import euclidean
from p2p_labeldp.mechanisms.sphere import _proposals, draw_cosines, place, place_rows

DRAWS = 20_000


def share_above(dimension, cosine):
    """Pr[T >= cosine] for a uniform unit vector."""
    if cosine == 0:
        return 0.5
    if abs(cosine) >= 1:
        return 0.0 if cosine > 0 else 1.0
    c = cap(dimension, log_gap_of(abs(cosine)))
    return math.exp(c.log_mass if cosine > 0 else c.log_complement)


# thresholds in standard deviations on both sides of 0.613, where the cap's sampler changes
@pytest.mark.parametrize(
    ("dimension", "deviations"),
    [
        (2, 0.1),
        (2, 0.7),
        (2, 1.3),
        (3, 0.3),
        (3, 1.6),
        (10, 0.2),
        (10, 2.5),
        (1000, 0.5),
        (1000, 6.0),
        (4_000_000, 3.0),
    ],
)
@pytest.mark.parametrize("off", [False, True])
def test_cosines_have_the_uniform_cosine_s_law_on_their_side_of_the_threshold(dimension, deviations, off):
    c = cap(dimension, log_gap_of(deviations / math.sqrt(dimension)))
    t, s = draw_cosines(c, np.full(DRAWS, off), np.random.default_rng([dimension, off]))
    assert np.all(t < c.gamma) if off else np.all(t >= c.gamma * (1 - 1e-12))
    assert t * t + s * s == pytest.approx(1.0, abs=1e-12)
    mass = math.exp(c.log_mass)
    above = np.array([share_above(dimension, float(x)) for x in t[:4000]])
    uniform = (above - mass) / (1 - mass) if off else above / mass
    assert kstest(uniform, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("dimension", [2, 3, 40, 4_000_000])
@pytest.mark.parametrize("deviations", [0.01, 0.3, 0.6, 0.612, 0.614, 0.7, 1.0, 1.4])
@pytest.mark.parametrize("off", [False, True])
def test_at_least_half_of_the_proposals_are_accepted(dimension, deviations, off):
    """Fails with probability 1e-6; in few dimensions the best switch is a little elsewhere."""
    n, gamma = 40_000, min(deviations / math.sqrt(dimension), 0.99)
    accepted = _proposals(cap(dimension, log_gap_of(gamma)), np.full(n, off), np.random.default_rng(1))[2]
    assert accepted.mean() > (0.5 if dimension > 3 else 0.4) - 4.9 * 0.5 / math.sqrt(n)


def test_the_sine_keeps_its_digits_where_the_cosine_rounds_to_one():
    c = cap(3, -100.0)
    t, s = draw_cosines(c, np.zeros(1000, dtype=bool), np.random.default_rng(1))
    assert np.all(t == 1.0)
    assert np.all((s > 0) & (s <= math.exp(-50.0)))


def test_in_one_dimension_the_cosine_is_a_sign():
    t, s = draw_cosines(cap(1, -1.0), np.array([False, True]), np.random.default_rng(1))
    assert t.tolist() == [1.0, -1.0]
    assert not s.any()


@pytest.mark.parametrize("dimension", [2, 3, 5, 40_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_placed_vector_has_its_length_and_cosine_to_the_last_digits(dimension, dtype):
    rng = np.random.default_rng(dimension)
    for _ in range(200 if dimension < 10 else 3):
        update = (rng.standard_normal(dimension) * 10.0 ** rng.integers(-5, 6)).astype(dtype)
        u = update.astype(np.float64) / np.linalg.norm(update.astype(np.float64))
        out = place(euclidean(update, dimension), 0.6, 0.8, 2.0, rng)
        assert out.dtype == np.float64
        assert np.linalg.norm(out) == pytest.approx(2.0, rel=1e-12)
        assert out @ u == pytest.approx(1.2, rel=1e-12)
        rows = place_rows(np.tile(u, (3, 1)), np.full(3, 0.6), np.full(3, 0.8), 2.0, rng)
        assert np.linalg.norm(rows, axis=1) == pytest.approx(2.0, rel=1e-10)
        assert rows @ u == pytest.approx(1.2, rel=1e-10)


def test_the_part_across_is_uniform_and_independent_of_the_direction():
    rng, u = np.random.default_rng(5), np.array([0.6, 0.0, 0.8])
    across = np.array([place(euclidean(u, 3), 0.0, 1.0, 1.0, rng) for _ in range(4000)])
    angles = np.arctan2(across[:, 1], across @ np.array([0.8, 0.0, -0.6])) / (2 * math.pi) + 0.5
    assert kstest(angles, "uniform").pvalue > 1e-6
    rows = place_rows(np.tile(u, (4000, 1)), np.zeros(4000), np.ones(4000), 1.0, rng)
    angles = np.arctan2(rows[:, 1], rows @ np.array([0.8, 0.0, -0.6])) / (2 * math.pi) + 0.5
    assert kstest(angles, "uniform").pvalue > 1e-6


def test_without_a_direction_the_vector_is_uniform():
    rng = np.random.default_rng(6)
    single = np.array([place(euclidean(np.zeros(3), 3), 0.6, 0.8, 2.0, rng) for _ in range(4000)])
    rows = place_rows(np.zeros((4000, 3)), np.full(4000, 0.6), np.full(4000, 0.8), 2.0, rng)
    for out in (single, rows):
        assert np.linalg.norm(out, axis=1) == pytest.approx(2.0, rel=1e-12)
        for axis in range(3):  # a coordinate of a uniform point of the sphere in R^3 is uniform
            assert kstest(out[:, axis] / 4 + 0.5, "uniform").pvalue > 1e-6


def test_the_gaussian_part_across_keeps_its_own_length():
    rng, u = np.random.default_rng(7), np.array([0.6, 0.8])
    single = np.array([place(euclidean(5 * u, 2), 3.0, None, 1.0, rng) for _ in range(4000)])
    rows = place_rows(np.tile(u, (4000, 1)), np.full(4000, 3.0), None, 1.0, rng)
    for out in (single, rows):
        assert out @ u == pytest.approx(3.0, rel=1e-12)
        assert kstest(norm.cdf(out @ np.array([0.8, -0.6])), "uniform").pvalue > 1e-6


def test_one_dimension_is_placed_on_the_line():
    rng = np.random.default_rng(8)
    assert place(euclidean(np.array([-7.0]), 1), 1.0, 0.0, 3.0, rng).tolist() == [-3.0]
    assert abs(place(euclidean(np.zeros(1), 1), 1.0, 0.0, 3.0, rng)[0]) == pytest.approx(3.0)
    assert place_rows(np.array([[-1.0], [1.0]]), np.array([1.0, -1.0]), None, 3.0, rng).tolist() == [[-3.0], [-3.0]]


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_smallest_and_largest_numbers_of_every_width_are_placed_with_their_digits(dimension, dtype):
    """In few dimensions the Gaussians are often almost parallel to u, and the difference must be formed in double."""
    rng = np.random.default_rng(6)
    for size in (np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny, np.finfo(dtype).max / 2):
        u = np.full(dimension, size, dtype=dtype)
        for _ in range(300):
            v = place(euclidean(u, dimension), 0.6, 0.8, 5.0, rng)
            assert np.linalg.norm(v) == pytest.approx(5.0, rel=1e-12)
            assert v.sum() / math.sqrt(dimension) == pytest.approx(3.0, rel=1e-12)
