"""The population engine behind an audit's interface plays the engine's own rounds, and never the same coins twice."""

import numpy as np
import pytest

from p2p_labeldp import population
from p2p_labeldp.engine_source import PopulationSource
from p2p_labeldp.errors import ConfigurationError


def source(**more):
    return PopulationSource(cluster_size=5, flip_probability=0.2, seed=3, **more)


def test_ones_are_those_the_engine_counts():
    drawn = []
    counts = source(drawn=drawn.append).draw_ones(ones=2, rounds=10_000)
    labels = np.array([1, 1, 0, 0, 0], dtype=np.uint8)
    assert np.array_equal(counts, np.concatenate(list(population.count_ones(labels, 0.2, clusters=10_000, seed=3))))
    assert sum(drawn) == 10_000


def test_two_draws_share_no_coins_and_two_sources_of_a_seed_all():
    one, other = source(), source()
    first, second = one.draw_ones(ones=2, rounds=500), one.draw_ones(ones=2, rounds=500)
    assert not np.array_equal(first, second)
    assert np.array_equal(other.draw_ones(ones=2, rounds=500), first)


def test_whole_rounds_add_up_to_the_ones_of_the_same_draw():
    labels = np.tile(np.array([1, 1, 0, 0, 0], dtype=np.uint8), (400, 1))
    shown = source().draw_rounds(labels=labels)
    assert np.array_equal(shown.reports.sum(axis=1), source().draw_ones(ones=2, rounds=400))
    assert np.array_equal(shown.reports, np.take_along_axis(shown.flipped, shown.mates, axis=1))


def test_a_permutation_serves_everyone_once():
    shown = source(exchange="permute").draw_rounds(labels=np.zeros((50, 5), dtype=np.uint8))
    assert (np.sort(shown.mates, axis=1) == np.arange(5)).all()


@pytest.mark.parametrize(("ones", "rounds"), [(-1, 5), (6, 5), (1, 0), (1, 10**9)])
def test_what_cannot_be_drawn_is_refused(ones, rounds):
    with pytest.raises(ConfigurationError):
        source().draw_ones(ones=ones, rounds=rounds)
    assert source().draw_ones(ones=5, rounds=1).shape == (1,)


def test_rows_of_another_size_are_refused():
    with pytest.raises(ConfigurationError, match="labels"):
        source().draw_rounds(labels=np.zeros((2, 4), dtype=np.uint8))
