"""Rosters of K classes hold what is promised, whoever of them fails to answer: against enumeration, and by plan."""

import math
from fractions import Fraction
from itertools import product

import pytest

from accounting import brute_force
from p2p_labeldp.accounting import class_rosters, multiclass, planning
from p2p_labeldp.accounting.binomial import pmf
from p2p_labeldp.accounting.class_rosters import ClassRoster
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import local_epsilon

POINTS = (Fraction(1), Fraction(3, 2), Fraction(3))


def worst_enumerated(num_classes, flip, *, size, pool, holding, colluders=0):
    """Over all true labels of the others, victim 0 against 1, both directions, at each of ``POINTS``."""
    found = [Fraction(0)] * len(POINTS)
    for others in product(range(num_classes), repeat=pool - 1):
        first, second = (
            brute_force.roster_view(
                (victim, *others), flip, num_classes, size=size, holding=holding, colluders=colluders
            )
            for victim in (0, 1)
        )
        for i, point in enumerate(POINTS):
            apart = max(brute_force.divergence(first, second, point), brute_force.divergence(second, first, point))
            found[i] = max(found[i], apart)
    return found


@pytest.mark.parametrize(
    ("num_classes", "size", "pool", "holding"),
    [(3, 3, 3, 3), (3, 3, 3, 1), (3, 3, 2, 2), (3, 3, 2, 1), (3, 3, 1, 1), (4, 3, 2, 2), (4, 2, 2, 2), (4, 2, 1, 1)],
)
def test_no_labels_and_no_pool_that_enumeration_tries_lose_more_than_the_bound(num_classes, size, pool, holding):
    flip = Fraction(1, 4)
    worst = worst_enumerated(num_classes, flip, size=size, pool=pool, holding=holding)
    for point, lost in zip(POINTS, worst, strict=True):
        promised = planning.roster_profile(size, holding, 0.25, math.log(point), num_classes=num_classes)
        assert float(lost) <= promised * (1 + 1e-12)


@pytest.mark.parametrize(("pool", "holding"), [(3, 3), (2, 1)])
def test_no_coalition_that_enumeration_tries_learns_more_than_the_bound(pool, holding):
    worst = worst_enumerated(3, Fraction(1, 4), size=3, pool=pool, holding=holding, colluders=1)
    for point, lost in zip(POINTS, worst, strict=True):
        promised = planning.roster_profile(3, holding, 0.25, math.log(point), 1, num_classes=3)
        assert float(lost) <= promised * (1 + 1e-12)
        if pool == 3 and point == 1:  # and the learner alone is promised more than that, which the enumeration sees
            assert float(lost) > planning.roster_profile(3, holding, 0.25, 0.0, num_classes=3)


def naive(size, holding, flip, point, num_classes):
    """The sum of the module's first lines, term by term, from the bound of ``multiclass``."""
    worst = 0.0
    for pool in range(1, size + 1):
        weights = pmf(size, pool / size, 0, size)
        total = 0.0
        for reports in range(holding, size + 1):
            classes = Classes(cluster_size=pool, num_classes=num_classes, flip_probability=flip, reports=reports)
            total += weights[reports] * min(
                multiclass.resampled_bound(classes).delta(point), classes.local_delta(point)
            )
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize(
    ("size", "holding", "flip", "point", "num_classes"),
    [(10, 9, 0.25, 0.8, 3), (20, 19, 0.28, 1.0, 3), (12, 6, 0.6, 0.5, 10), (16, 1, 0.3, 0.4, 4), (3, 3, 0.6, 1.0, 10)],
)
def test_the_profile_is_the_sum_it_claims_to_be(size, holding, flip, point, num_classes):
    exact = naive(size, holding, flip, point, num_classes)
    found = planning.roster_profile(size, holding, flip, point, num_classes=num_classes)
    assert exact * (1 - 1e-9) - 1e-13 <= found <= exact * (1 + 1e-9) + 1e-13
    assert planning.roster_fits(size, holding, flip, point, found * (1 + 1e-9), num_classes=num_classes)
    assert not planning.roster_fits(size, holding, flip, point, found * 0.99, num_classes=num_classes)


def test_the_accountant_of_two_classes_would_promise_what_three_do_not_hold():
    flip = planning.plan_roster(3, 1.0, 0.0).flip_probability
    lost = worst_enumerated(3, Fraction(flip), size=3, pool=3, holding=3)[0]
    assert float(lost) > planning.roster_profile(3, 3, flip, 0.0) * 1.01


@pytest.mark.parametrize(("num_classes", "size", "target"), [(3, 2, 1.0), (3, 40, 0.5), (10, 30, 1.0), (4, 25, 6.0)])
def test_a_plan_fits_and_a_smaller_flip_does_not(num_classes, size, target):
    plan = planning.plan_roster(size, target, 0.05, num_classes=num_classes)
    holding, flip = plan.holding_minimum, plan.flip_probability
    assert (plan.num_classes, float(f"{flip:.4e}")) == (num_classes, flip)
    assert planning.roster_fits(size, holding, flip, target, plan.delta, num_classes=num_classes)
    assert not planning.roster_fits(size, holding, flip * (1 - 1e-3), target, plan.delta, num_classes=num_classes)
    assert planning.roster_epsilon(size, holding, flip, plan.delta, num_classes=num_classes) <= target * (1 + 1e-6)


def test_cells_and_the_shuffles_divergence_in_place_of_laws_only_raise_the_bound(monkeypatch):
    question = (150, 143, 0.3, 0.3)
    fine = planning.roster_profile(*question, num_classes=3)
    for name, value in (("FINE", 8), ("LARGEST_N", 5), ("REPORT_CELLS", 2)):
        with monkeypatch.context() as coarser:
            coarser.setattr(class_rosters, name, value)
            class_rosters._grid.cache_clear()
            class_rosters._told.cache_clear()
            coarse = ClassRoster(150, 143, 0, 3).delta(0.3, 0.3)
        class_rosters._grid.cache_clear()
        class_rosters._told.cache_clear()
        assert fine * (1 - 1e-9) <= coarse < 20 * fine
        assert coarse != fine


def test_more_loss_more_mates_and_fewer_flips_cost_more():
    least = planning.roster_epsilon(30, 30, 0.3, 1 / 900, num_classes=3)
    assert least < planning.roster_epsilon(30, 15, 0.3, 1 / 900, num_classes=3)
    assert least < planning.roster_epsilon(30, 30, 0.3, 1 / 900, 1, num_classes=3)
    assert least < planning.roster_epsilon(30, 30, 0.2, 1 / 900, num_classes=3)
    assert least < planning.roster_epsilon(30, 30, 0.3, 1 / 900, num_classes=10)


def test_a_large_cluster_is_within_two_percent_of_the_bound_without_loss():
    plan = planning.plan_roster(1000, 1.0, 0.0, num_classes=3)
    classes = Classes(cluster_size=1000, num_classes=3, flip_probability=plan.flip_probability)
    assert 0.98 < multiclass.resampled_bound(classes).epsilon(1e-6) <= 1.0


def test_rosters_at_the_extremes():
    assert planning.roster_profile(10, 9, 2 / 3, 0.0, num_classes=3) < 1e-16  # rounding of 2/3
    assert planning.roster_epsilon(10, 9, 0.9, 0.01, num_classes=10) == 0.0
    assert planning.roster_epsilon(10, 9, 0.0, 0.01, num_classes=3) == math.inf
    assert planning.roster_profile(10, 9, 0.3, local_epsilon(0.3, 3) + 1e-9, num_classes=3) == 0.0
    assert planning.roster_profile(10, 9, 0.0, 800.0, num_classes=3) > 0.65
    assert planning.plan_roster(5, 1e-9, 0.0, num_classes=3).flip_probability <= 2 / 3
    assert planning.roster_profile(1, 1, 0.25, 1.0, num_classes=4) == pytest.approx(0.75 - math.e / 12)


def test_impossible_rosters_are_refused():
    with pytest.raises(ConfigurationError, match=r"0 to 0\.666667 is possible with 3 classes"):
        planning.roster_profile(10, 9, 0.7, 1.0, num_classes=3)
    with pytest.raises(ConfigurationError, match="num_classes"):
        planning.plan_roster(10, 1.0, 0.05, num_classes=1)
    with pytest.raises(ConfigurationError, match="holding_minimum"):
        planning.roster_profile(10, 11, 0.1, 1.0, num_classes=3)
    with pytest.raises(ConfigurationError, match="colluders"):
        planning.roster_profile(10, 9, 0.1, 1.0, 10, num_classes=3)


@pytest.mark.parametrize("num_classes", [2, 3, 256])
@pytest.mark.parametrize("flip", [5e-324, 1e-310])
def test_a_flip_too_small_to_be_accounted_for_is_none(num_classes, flip):
    classes = {"num_classes": num_classes}
    for point in (0.0, 3.0, 800.0):
        promised = planning.roster_profile(5, 4, flip, point, **classes)
        assert promised == planning.roster_profile(5, 4, 0.0, point, **classes) > 0.6
        assert not planning.roster_fits(5, 4, flip, point, 0.04, **classes)
    assert planning.roster_epsilon(5, 4, flip, 0.04, **classes) == math.inf
    assert planning.roster_epsilon(5, 4, 1e-300, 0.04, **classes) <= local_epsilon(1e-300, num_classes) < math.inf
