"""K classes: the bound covers the worst data that enumeration finds."""

import math
from fractions import Fraction

import pytest

from accounting import brute_force
from accounting.exact_values import K_CLASSES
from p2p_labeldp.accounting import multiclass, resampling
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import local_epsilon


@pytest.mark.parametrize(("num_classes", "size", "flip_probability", "point", "worst", "third", "bound"), K_CLASSES)
def test_exact_values_are_met(num_classes, size, flip_probability, point, worst, third, bound):
    classes = Classes(cluster_size=size, num_classes=num_classes, flip_probability=flip_probability)
    assert multiclass.resampled_bound(classes).delta(point) == pytest.approx(bound, abs=1e-10)
    law = multiclass.three_categories(classes)
    found = max(law.delta(point), law.reversed().delta(point))
    if num_classes == 3:
        assert found == pytest.approx(third, abs=1e-10)
    else:  # labels other than the victim's two are taken together, which may lose a little
        assert 0.99 * third - 1e-10 <= found <= third + 1e-10
    assert multiclass.delta(classes, point) >= worst - 1e-12


@pytest.mark.parametrize(("num_classes", "size"), [(3, 2), (3, 4), (4, 3), (2, 4)])
def test_enumeration_of_all_data_finds_nothing_worse_than_the_bound(num_classes, size):
    flip = Fraction(1, 5)
    classes = Classes(cluster_size=size, num_classes=num_classes, flip_probability=0.2)
    for exp_epsilon in (Fraction(1), Fraction(2), Fraction(5)):
        worst = float(brute_force.k_class_worst(num_classes, size, flip, exp_epsilon))
        published = multiclass.delta(classes, math.log(exp_epsilon))
        assert worst <= published * (1 + 1e-9) + 1e-15
        if num_classes == 3:
            law = multiclass.three_categories(classes)
            third = max(law.delta(math.log(exp_epsilon)), law.reversed().delta(math.log(exp_epsilon)))
            assert third == pytest.approx(worst, abs=1e-10)


def test_a_thousand_members_have_the_tabulated_values():
    classes = Classes(cluster_size=1000, num_classes=3, flip_probability=0.02)
    assert multiclass.epsilon(classes, 1e-6) == pytest.approx(1.786, abs=5e-4)
    assert local_epsilon(0.02, 3) == pytest.approx(4.585, abs=5e-4)


def test_the_three_category_law_of_a_moderate_cluster_is_below_the_bound():
    classes = Classes(cluster_size=200, num_classes=3, flip_probability=0.05)
    law = multiclass.three_categories(classes)
    assert float(law.left.sum()) == pytest.approx(1.0, abs=1e-9)
    third = max(law.epsilon(1 / 40_000), law.reversed().epsilon(1 / 40_000))
    assert third < multiclass.resampled_bound(classes).epsilon(1 / 40_000)


def test_cells_only_raise_the_bound(monkeypatch):
    classes = Classes(cluster_size=120, num_classes=4, flip_probability=0.2)
    fine = multiclass.resampled_bound(classes)
    monkeypatch.setattr(multiclass, "CELL_WORK", 3e6)
    coarse = multiclass.resampled_bound(classes)
    assert coarse.left.size < fine.left.size
    for point in (0.0, 0.1, 0.5, 1.0):
        assert fine.delta(point) <= coarse.delta(point) * (1 + 1e-9)


def test_two_classes_are_bounded_by_the_blanket():
    classes = Classes(cluster_size=30, num_classes=2, flip_probability=0.1)
    exact = resampling.epsilon(cluster_size=30, flip_probability=0.1, delta=1e-3)
    assert exact <= multiclass.epsilon(classes, 1e-3)


def test_the_extremes_of_many_classes():
    uniform = Classes(cluster_size=10, num_classes=3, flip_probability=2 / 3)
    assert multiclass.epsilon(uniform, 0.01) == pytest.approx(0.0, abs=1e-9)
    bare = Classes(cluster_size=10, num_classes=3, flip_probability=0.0)
    assert multiclass.epsilon(bare, 0.01) == math.inf
    assert multiclass.delta(bare, 5.0) == pytest.approx(1 - 0.9**10)
    alone = Classes(cluster_size=1, num_classes=3, flip_probability=0.1)
    assert multiclass.epsilon(alone, 0.0) == pytest.approx(math.log(18))


def test_more_reports_cost_more():
    costs = [
        multiclass.epsilon(Classes(cluster_size=12, num_classes=3, flip_probability=0.2, reports=reports), 0.01)
        for reports in (6, 12, 24)
    ]
    assert costs == sorted(costs)


def test_impossible_classes_are_refused():
    with pytest.raises(ConfigurationError, match="flip_probability"):
        Classes(cluster_size=5, num_classes=3, flip_probability=0.7)
    with pytest.raises(ConfigurationError, match="num_classes"):
        Classes(cluster_size=5, num_classes=1, flip_probability=0.1)


def test_a_shuffle_too_large_for_memory_is_refused_and_a_window_changes_nothing(monkeypatch):
    members = Classes(cluster_size=200, num_classes=3, flip_probability=0.3)
    windowed = [multiclass.shuffled(members).delta(point) for point in (0.0, 0.5, 1.5)]
    monkeypatch.setattr(multiclass, "TAIL", 0.0)
    assert windowed == pytest.approx([multiclass.shuffled(members).delta(point) for point in (0.0, 0.5, 1.5)], rel=1e-9)
    monkeypatch.undo()
    with pytest.raises(ConfigurationError, match="cluster_size: 1000000 given; so many"):
        multiclass.shuffled(Classes(cluster_size=10**6, num_classes=3, flip_probability=0.5))
