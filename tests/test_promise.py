"""What a round promises is cheap to say of large clusters too, and never less than is learnt."""

import math

import pytest

from p2p_labeldp import config, promise
from p2p_labeldp.accounting import planning, shuffle
from p2p_labeldp.network.study import CollectedRoster

CONFIG = config.from_mapping({"data": {"name": "digits"}, "mechanism": {"target_epsilon": 1.0}})


def promised(*rosters, chosen=CONFIG):
    clusters = promise.of_clusters(rosters, chosen, 2)
    return {view.view: view for view in promise.of_views(rosters, clusters, chosen, 2)}


def roster(size, flip, cluster=0):
    return CollectedRoster(cluster, size, flip, 1 / size**2, planning.holding_minimum(size, 0.05))


def test_no_roster_no_view():
    assert promise.of_views([], [], CONFIG, 2) == []


def test_one_cluster_is_stated_with_its_own_method():
    views = promised(roster(20, 0.06))
    assert views["learner"].method == "exact: resampling, 19 or more of 20 holding an answer"
    assert views["learner+1"].method == "bound: coalition in the roster"
    both = promised(roster(20, 0.06), roster(30, 0.2, cluster=1))
    assert both["learner"].method == f"{views['learner'].method}; worst of 2 disjoint clusters"
    assert both["learner"].epsilon == views["learner"].epsilon


@pytest.mark.parametrize("size", [20, 40])
def test_what_is_tried_or_taken_from_the_local_value_bounds_what_is_searched(monkeypatch, size):
    flip = planning.plan_roster(size, 1.0, 0.05).flip_probability
    searched = promised(roster(size, flip))["learner+1"]
    promise._roster_views.cache_clear()
    monkeypatch.setattr(promise, "SEARCHED_SIZE", 5)
    tried = promised(roster(size, flip))
    assert set(tried) == {"learner", "learner+1", "learner+all", "mates"}
    assert tried["learner+1"].method == "bound: coalition in the roster, not searched"
    assert tried["learner+1"].delta == pytest.approx(searched.delta)
    assert searched.epsilon <= tried["learner+1"].epsilon < tried["learner+all"].epsilon
    promise._roster_views.cache_clear()
    monkeypatch.setattr(promise, "TRIED_SIZE", 5)
    local = promised(roster(size, flip))
    assert local["learner+1"].method == "bound: the local value"
    assert (local["learner+1"].epsilon, local["learner+1"].delta) == (local["learner+all"].epsilon, 0)
    promise._roster_views.cache_clear()


@pytest.mark.parametrize("size", [20, 200])
def test_without_flips_only_mates_alone_learn_nothing(size):
    chosen = config.from_mapping({"data": {"name": "digits"}, "mechanism": {"flip_probability": 0.0}})
    views = promised(roster(size, 0.0), chosen=chosen)
    assert [view.epsilon for view in views.values()] == [
        math.inf,
        pytest.approx(views["learner+1"].epsilon),
        math.inf,
        0,
    ]
    assert views["learner+1"].epsilon > 1


def test_a_permutation_is_planned_to_the_least_flip_of_five_digits():
    for size, target in ((2, 1.0), (20, 0.5), (500, 1.0)):
        plan = promise.plan_permutation(size, target)
        question = {"cluster_size": size, "delta": 1 / size**2}
        assert shuffle.epsilon(flip_probability=plan.flip_probability, **question) <= target
        assert shuffle.epsilon(flip_probability=plan.flip_probability * (1 - 2e-4), **question) > target
        assert plan.holding_minimum == size
    assert promise.plan_for_permutation(20, None, 0.25).flip_probability == 0.25
