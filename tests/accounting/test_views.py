"""Every report says who learns what."""

import math

import pytest

from p2p_labeldp.accounting import coalition, resampling, shuffle
from p2p_labeldp.accounting.coalition import Coalition
from p2p_labeldp.accounting.guarantee import Guarantee
from p2p_labeldp.accounting.planning import plan_roster
from p2p_labeldp.accounting.views import roster_views, views, worst_of_clusters
from p2p_labeldp.errors import ClusterTooSmall, ConfigurationError, UnsupportedComposition


def by_view(**question):
    return {guarantee.view: guarantee for guarantee in views(**question)}


def test_the_four_views_of_a_cluster():
    stated = views(cluster_size=20, flip_probability=0.1)
    assert [guarantee.view for guarantee in stated] == ["learner", "learner+1", "learner+all", "mates"]
    learner, one, everyone, mates = stated
    assert learner.epsilon == resampling.epsilon(cluster_size=20, flip_probability=0.1, delta=1 / 400)
    assert (learner.delta, learner.method) == (1 / 400, "exact: resampling")
    assert one.delta == pytest.approx(0.9 / 20 + 1 / 400)
    assert one.epsilon < 1.5 * learner.epsilon
    assert (everyone.epsilon, everyone.delta) == (pytest.approx(math.log(9)), 0.0)
    assert (mates.epsilon, mates.delta) == (0.0, 0.0)


def test_a_given_delta_is_that_of_every_coalition():
    stated = by_view(cluster_size=20, flip_probability=0.1, delta=1e-3, colluders=(1, 2, 50))
    assert set(stated) == {"learner", "learner+1", "learner+2", "learner+all", "mates"}
    group = Coalition(cluster_size=20, colluders=2, flip_probability=0.1)
    assert stated["learner+2"].epsilon == coalition.epsilon(group, 1e-3)
    assert stated["learner"].epsilon < stated["learner+1"].epsilon <= stated["learner+2"].epsilon


def test_a_permutation_carries_the_shuffle_s_epsilon():
    stated = by_view(cluster_size=20, flip_probability=0.1, exchange="permute")
    assert stated["learner"].epsilon == shuffle.epsilon(cluster_size=20, flip_probability=0.1, delta=1 / 400)
    assert stated["learner+1"].delta == 1 / 400
    assert stated["learner+1"].epsilon == shuffle.epsilon(cluster_size=19, flip_probability=0.1, delta=1 / 400)


@pytest.mark.parametrize(("rounds", "expected"), [(1, 1.00), (2, 1.83), (6, 3.47)])
def test_memoised_rounds_have_the_tabulated_epsilon(rounds, expected):
    stated = by_view(cluster_size=75, flip_probability=0.0279, rounds=rounds)
    assert stated["learner"].epsilon == pytest.approx(expected, abs=1.5e-2)
    assert stated["learner+all"].epsilon == pytest.approx(3.55, abs=1e-2)


def test_fresh_rounds_compose_and_the_local_value_adds_up():
    stated = by_view(cluster_size=20, flip_probability=0.25, rounds=3, fresh=True, colluders=())
    assert stated["learner+all"].epsilon == pytest.approx(3 * math.log(3))
    once = by_view(cluster_size=20, flip_probability=0.25, colluders=())
    assert once["learner"].epsilon < stated["learner"].epsilon < 3 * once["learner"].epsilon


def test_many_classes_publish_the_certified_bound():
    stated = by_view(cluster_size=20, flip_probability=0.3, num_classes=4)
    assert stated["learner"].epsilon < stated["learner+all"].epsilon == pytest.approx(math.log(7))
    assert "bound" in stated["learner"].method
    assert "bound" in stated["learner+1"].method


def test_one_member_has_no_one_over_s_squared():
    with pytest.raises(ClusterTooSmall):
        views(cluster_size=1, flip_probability=0.1)
    stated = by_view(cluster_size=1, flip_probability=0.1, delta=0.2)
    assert set(stated) == {"learner", "learner+all", "mates"}


def test_combinations_nobody_accounts_are_errors():
    for question in (
        {"exchange": "permute", "reports": 10},
        {"num_classes": 3, "rounds": 2, "fresh": True},
        {"rounds": 2, "fresh": True, "colluders": (1,)},
        {"reports": 30, "colluders": (1,)},
    ):
        with pytest.raises(UnsupportedComposition):
            views(cluster_size=20, flip_probability=0.1, **question)
    assert views(cluster_size=20, flip_probability=0.1, reports=30, colluders=())
    with pytest.raises(ConfigurationError, match="exchange"):
        views(cluster_size=20, flip_probability=0.1, exchange="gossip")


def test_a_roster_states_what_holds_whoever_fails_to_answer():
    plan = plan_roster(20, 1.0, 0.05)
    stated = {guarantee.view: guarantee for guarantee in roster_views(plan=plan, target_epsilon=1.0)}
    assert set(stated) == {"learner", "learner+1", "learner+all", "mates"}
    assert (stated["learner"].epsilon, stated["learner"].delta) == (1.0, 1 / 400)
    full_house = by_view(cluster_size=20, flip_probability=plan.flip_probability)
    assert full_house["learner"].epsilon < 1.0
    assert full_house["learner+1"].epsilon < stated["learner+1"].epsilon < stated["learner+all"].epsilon
    least = roster_views(plan=plan, colluders=())[0].epsilon
    assert least == pytest.approx(1.0, abs=1e-3)


def test_disjoint_clusters_cost_the_worst_of_them():
    first = Guarantee(view="learner", epsilon=1.0, delta=0.01, method="exact")
    second = Guarantee(view="learner", epsilon=0.5, delta=0.04, method="exact")
    both = worst_of_clusters([first, second])
    assert (both.epsilon, both.delta) == (1.0, 0.04)
    with pytest.raises(ConfigurationError):
        worst_of_clusters([])
    with pytest.raises(ConfigurationError):
        worst_of_clusters([first, Guarantee(view="mates", epsilon=0.0, delta=0.0, method="encryption")])
