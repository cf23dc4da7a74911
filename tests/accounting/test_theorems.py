"""Columns to compare with."""

import math

import pytest

from p2p_labeldp.accounting import resampling, theorems
from p2p_labeldp.errors import ConfigurationError


def test_the_paper_s_statement_is_the_inverse_root_of_size_and_flip():
    assert theorems.paper_epsilon(cluster_size=1000, flip_probability=0.1) == pytest.approx(0.1)
    assert theorems.paper_cluster_size(epsilon=0.1, flip_probability=0.1) == pytest.approx(1000)
    assert theorems.paper_epsilon(cluster_size=5, flip_probability=0.1) == math.inf  # states nothing


def test_the_gaussian_limit_under_reports_the_exact_value_and_approaches_it():
    gaps = []
    for size in (100, 1000, 10_000):
        question = {"cluster_size": size, "flip_probability": 0.25, "delta": 1 / size**2}
        exact, limit = resampling.epsilon(**question), theorems.gaussian_epsilon(**question)
        assert limit < exact
        gaps.append(1 - limit / exact)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.06


def test_the_gaussian_limit_at_its_ends():
    assert theorems.gaussian_epsilon(cluster_size=10, flip_probability=0.5, delta=0.1) == 0.0
    assert theorems.gaussian_epsilon(cluster_size=10, flip_probability=0.0, delta=0.1) == math.inf
    assert theorems.gaussian_epsilon(cluster_size=10, flip_probability=0.4, delta=0.9) == 0.0


@pytest.mark.parametrize(("size", "target"), [(1000, 0.2), (1000, 0.5), (10_000, 0.9), (2000, 1.0)])
def test_the_rule_of_thumb_flips_enough(size, target):
    flip = theorems.rule_of_thumb_flip(cluster_size=size, epsilon=target)
    assert resampling.epsilon(cluster_size=size, flip_probability=flip, delta=1 / size**2) <= target


def test_statements_outside_their_range_are_refused():
    with pytest.raises(ConfigurationError):
        theorems.paper_cluster_size(epsilon=1.5, flip_probability=0.1)
