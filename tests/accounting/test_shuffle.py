"""The shuffle of the same flips costs more than resampling, and published bounds more than the shuffle."""

import math

import pytest

from accounting.exact_values import SHUFFLE
from p2p_labeldp.accounting import resampling, shuffle
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import local_epsilon


@pytest.mark.parametrize(("size", "flip_probability", "deltas", "at_one_over_s2"), SHUFFLE)
def test_exact_values_are_met(size, flip_probability, deltas, at_one_over_s2):
    losses = shuffle.profile(cluster_size=size, flip_probability=flip_probability, epsilons=list(deltas))
    assert [loss.delta for loss in losses] == pytest.approx(list(deltas.values()), abs=1e-10)
    found = shuffle.epsilon(cluster_size=size, flip_probability=flip_probability, delta=1 / size**2)
    assert found == pytest.approx(at_one_over_s2, abs=1e-9)


@pytest.mark.parametrize("size", [2, 3, 10, 100, 1000, 20_000])
@pytest.mark.parametrize("flip_probability", [0.25, 0.1, 0.01])
def test_resampling_costs_less_than_the_shuffle_and_the_shuffle_less_than_published_bounds(size, flip_probability):
    question = {"cluster_size": size, "flip_probability": flip_probability, "delta": 1 / size**2}
    resampled = resampling.epsilon(**question)
    shuffled = shuffle.epsilon(**question)
    clones, closed = shuffle.clones_epsilon(**question), shuffle.clones_closed_form(**question)
    local = local_epsilon(flip_probability)
    slack = 1 + 1e-9
    assert 0 < resampled <= shuffled * slack
    assert shuffled <= clones * slack
    assert clones <= closed * slack <= local * slack**2


def test_the_closed_form_says_something_for_large_clusters():
    question = {"cluster_size": 10**5, "flip_probability": 0.25, "delta": 1e-10}
    assert shuffle.epsilon(**question) < shuffle.clones_closed_form(**question) < local_epsilon(0.25)


def test_many_memoised_rounds_tend_to_the_shuffle_from_below():
    question = {"cluster_size": 10, "flip_probability": 0.1, "delta": 0.01}
    shuffled = shuffle.epsilon(**question)
    costs = [resampling.epsilon(reports=10 * rounds, **question) for rounds in (1, 2, 10, 100)]
    assert costs == sorted(costs)
    assert 0.9 * shuffled < costs[-1] <= shuffled * (1 + 1e-9)


def test_the_worst_count_of_a_shuffle_is_named():
    (loss,) = shuffle.profile(cluster_size=5, flip_probability=0.1, epsilons=[0.1])
    assert (loss.worst_ones, loss.direction) == (1, "add")


def test_the_extremes_of_the_shuffle():
    assert shuffle.epsilon(cluster_size=10, flip_probability=0.5, delta=0.0) == 0.0
    assert shuffle.epsilon(cluster_size=10, flip_probability=0.1, delta=0.0) == pytest.approx(math.log(9))
    assert shuffle.epsilon(cluster_size=10, flip_probability=0.0, delta=0.5) == math.inf
    assert shuffle.clones_epsilon(cluster_size=10, flip_probability=0.0, delta=0.5) == math.inf
    assert shuffle.epsilon(cluster_size=1, flip_probability=0.1, delta=0.3) == pytest.approx(math.log(6))


def test_impossible_arguments_are_refused():
    with pytest.raises(ConfigurationError, match="flip_probability"):
        shuffle.epsilon(cluster_size=5, flip_probability=0.6, delta=0.1)
