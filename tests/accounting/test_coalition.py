"""What the learner gains from mates that tell it all they see."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting import brute_force
from accounting.exact_values import ALL_ZERO_COALITIONS, COALITIONS
from p2p_labeldp.accounting import coalition, planning, resampling
from p2p_labeldp.accounting.coalition import Coalition
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import local_epsilon


@pytest.mark.parametrize(("size", "colluders", "flip_probability", "logs", "point", "worst"), COALITIONS)
def test_exact_values_are_met(size, colluders, flip_probability, logs, point, worst):
    group = Coalition(cluster_size=size, colluders=colluders, flip_probability=flip_probability, query_logs=logs)
    assert coalition.delta(group, point) == pytest.approx(worst, abs=1e-10)


@pytest.mark.parametrize(("size", "colluders", "flip_probability", "logs", "point", "zero"), ALL_ZERO_COALITIONS)
def test_all_zero_labels_are_never_the_whole_story(size, colluders, flip_probability, logs, point, zero):
    group = Coalition(cluster_size=size, colluders=colluders, flip_probability=flip_probability, query_logs=logs)
    assert zero * (1 - 1e-9) <= coalition.delta(group, point) <= 1.03 * zero


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize("colluders", [1, 2])
def test_enumerating_every_flip_and_draw_gives_the_same(colluders, logs):
    size, flip = 4, Fraction(1, 8)
    worst = {point: Fraction(0) for point in (Fraction(1), Fraction(3, 2), Fraction(4))}
    for honest_ones, colluding_ones in product(range(size - colluders), range(colluders + 1)):
        honest = (1,) * honest_ones + (0,) * (size - 1 - colluders - honest_ones)
        colluding = (1,) * colluding_ones + (0,) * (colluders - colluding_ones)
        p, q = (brute_force.coalition_view(victim, honest, colluding, flip, logs) for victim in (0, 1))
        for point in worst:
            sides = (brute_force.divergence(p, q, point), brute_force.divergence(q, p, point))
            worst[point] = max(worst[point], *sides)
    group = Coalition(cluster_size=size, colluders=colluders, flip_probability=0.125, query_logs=logs)
    for point, exact in worst.items():
        assert coalition.delta(group, math.log(point)) == pytest.approx(float(exact), abs=1e-11)


def test_one_mate_undoes_a_thousand():
    group = Coalition(cluster_size=1000, colluders=1, flip_probability=0.01)
    assert coalition.epsilon(group, 1e-6) == pytest.approx(4.594, abs=5e-4)


def test_nobody_colluding_is_the_learner_alone():
    group = Coalition(cluster_size=20, colluders=0, flip_probability=0.1)
    assert coalition.epsilon(group, 1 / 400) == resampling.epsilon(cluster_size=20, flip_probability=0.1, delta=1 / 400)


@pytest.mark.parametrize(("size", "colluders", "rounds"), [(40, 1, 1), (40, 3, 1), (25, 2, 3)])
@pytest.mark.parametrize("logs", [True, False])
def test_the_bound_for_large_clusters_covers_the_sum(monkeypatch, size, colluders, rounds, logs):
    group = Coalition(cluster_size=size, colluders=colluders, flip_probability=0.1, rounds=rounds, query_logs=logs)
    points = (0.0, 0.3, 1.0, 2.0)
    assert coalition.is_exact(group)
    exact = [coalition.delta(group, point) for point in points]
    monkeypatch.setattr(coalition, "EXACT_WORK", 0)
    bounds = [coalition.delta(group, point) for point in points]
    assert all(low <= high for low, high in zip(exact, bounds, strict=True))
    assert bounds[1] < 2.5 * exact[1]


@given(
    size=st.integers(2, 14),
    colluders=st.integers(0, 12),
    flip_probability=st.floats(0.01, 0.5),
    point=st.floats(0.0, 3.0),
)
@settings(max_examples=40, deadline=None)
def test_more_colluders_never_see_less(size, colluders, flip_probability, point):
    t = min(colluders, size - 2)
    fewer = Coalition(cluster_size=size, colluders=t, flip_probability=flip_probability)
    more = Coalition(cluster_size=size, colluders=t + 1, flip_probability=flip_probability)
    blind = Coalition(cluster_size=size, colluders=t + 1, flip_probability=flip_probability, query_logs=False)
    slack = 1 + 1e-9
    assert coalition.delta(fewer, point) <= coalition.delta(more, point) * slack
    assert coalition.delta(blind, point) <= coalition.delta(more, point) * slack
    less_flip = Coalition(cluster_size=size, colluders=t + 1, flip_probability=0.9 * flip_probability)
    assert coalition.delta(more, point) <= coalition.delta(less_flip, point) * slack


def test_more_rounds_ask_more_people():
    costs = [
        coalition.delta(Coalition(cluster_size=12, colluders=1, flip_probability=0.1, rounds=rounds), 1.0)
        for rounds in (1, 2, 5)
    ]
    assert costs == sorted(costs)
    assert Coalition(cluster_size=12, colluders=1, flip_probability=0.1, rounds=5).hit == pytest.approx(
        1 - (11 / 12) ** 5
    )


def test_everyone_else_colluding_is_nearly_local():
    group = Coalition(cluster_size=3, colluders=2, flip_probability=0.1)
    assert coalition.epsilon(group, 0.0) == local_epsilon(0.1)
    assert coalition.delta(group, local_epsilon(0.1) + 1e-12) == 0.0


@pytest.mark.parametrize(("colluders", "flip_probability"), [(1, 0.1), (3, 0.01), (20, 0.3)])
def test_the_bound_is_inverted_from_few_evaluations(monkeypatch, colluders, flip_probability):
    monkeypatch.setattr(coalition, "EXACT_WORK", 0)
    group = Coalition(cluster_size=60, colluders=colluders, flip_probability=flip_probability)
    calls = []
    inverted = coalition._inverted
    monkeypatch.setattr(coalition, "_inverted", lambda *given: calls.append(given) or inverted(*given))
    for delta in (0.5 * group.hit, group.hit * (1 - flip_probability) + 1 / 3600):
        found = coalition.epsilon(group, delta)
        assert coalition.delta(group, found) <= delta * (1 + 1e-9)
        assert found == 0 or coalition.delta(group, found * (1 - 1e-5)) > delta
    assert len(calls) < 60


def test_a_crowd_of_colluders_is_bounded_without_its_law(monkeypatch):
    group = Coalition(cluster_size=400, colluders=150, flip_probability=0.1)
    by_law = coalition.delta(group, 0.7)
    monkeypatch.setattr(coalition, "MANY_DRAWS", 0)
    assert by_law <= coalition.delta(group, 0.7) < by_law * 1.3
    most, exceeded = coalition._most_hit(group)
    law = coalition.occupancy(150, 399, 249)
    assert law[most + 1 :].sum() <= exceeded


def test_without_flips_a_delta_above_the_chance_of_being_asked_still_says_something():
    group = Coalition(cluster_size=50, colluders=1, flip_probability=0.0)
    assert coalition.epsilon(group, 0.01) == math.inf
    assert coalition.epsilon(group, 0.99) == 0.0


def test_many_classes_are_bounded():
    group = Coalition(cluster_size=30, colluders=1, flip_probability=0.3, num_classes=4)
    alone = Coalition(cluster_size=30, colluders=0, flip_probability=0.3, num_classes=4)
    assert coalition.delta(alone, 1.0) < coalition.delta(group, 1.0) < 0.7 - math.e * 0.1
    assert not coalition.is_exact(group)


@pytest.mark.parametrize(("size", "holding", "colluders"), [(6, 6, 1), (12, 11, 1), (12, 10, 2)])
def test_a_roster_with_mates_covers_the_coalition_of_a_full_house(size, holding, colluders):
    full = Coalition(cluster_size=size, colluders=colluders, flip_probability=0.2)
    for point in (0.2, 0.8):
        promised = planning.roster_profile(size, holding, 0.2, point, colluders)
        assert promised >= coalition.delta(full, point)
        assert promised >= planning.roster_profile(size, holding, 0.2, point)
        assert planning.roster_fits(size, holding, 0.2, point, promised * (1 + 1e-8), colluders)
        assert not planning.roster_fits(size, holding, 0.2, point, promised * 0.99, colluders)


@pytest.mark.parametrize("colluders", [-1, 5, True])
def test_impossible_coalitions_are_refused(colluders):
    assert Coalition(cluster_size=5, colluders=4, flip_probability=0.1).honest == 1
    with pytest.raises(ConfigurationError, match="colluders"):
        Coalition(cluster_size=5, colluders=colluders, flip_probability=0.1)
