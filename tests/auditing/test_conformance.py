"""A healthy mechanism passes, whatever is seen of it; what can't happen gets p = 0."""

import numpy as np
import pytest

from p2p_labeldp.auditing.checks import occupancy_law
from p2p_labeldp.auditing.conformance import SIGNIFICANCE, Verdict, conformance
from p2p_labeldp.auditing.observed import OnesSample, Rounds
from p2p_labeldp.errors import ConfigurationError

from . import broken_mechanisms as broken

BOTH = {"flip_rate", "ones_at_zero", "ones_at_size", "ones_given_flips", "joint", "mate_uniformity", "self_picks"}
COINS = {"shared_coins", "repeated_rounds", "serial_mates", "serial_flips", "flip_apart_from_mate"}


def healthy(seed=1, flip_probability=0.1, rows=100, size=20, **more):
    return broken.Simulator(flip_probability=flip_probability, seed=seed, **more)(labels=broken.halves(rows, size))


def parts(rounds, *names, **more):
    """The same rounds with only some columns seen."""
    return Rounds(**{name: getattr(rounds, name) for name in names}, **more)


def test_a_thousand_healthy_runs_pass():
    # SIGNIFICANCE is 1e-9: any of them fails with probability at most 1e-6.
    for seed in range(1000):
        size, flip = ((16, 0.1), (5, 0.3), (40, 0.02), (2, 0.5))[seed % 4]
        result = conformance(healthy(seed, flip, rows=60, size=size), flip_probability=flip)
        assert result.verdict is Verdict.PASS, (seed, result.failed)


def test_every_check_runs_when_everything_is_seen():
    result = conformance(healthy(), flip_probability=0.1)
    assert set(result.p_values) == BOTH | COINS | {"one_flip_for_all", "distinct_mates"}
    assert result.threshold == SIGNIFICANCE / len(result.p_values)


def test_p_values_of_healthy_runs_are_not_small_too_often():
    # 200 runs; below u with probability at most u each. More than expected + 6 sd: probability below 1e-6 a check.
    found = [conformance(healthy(seed, rows=40), flip_probability=0.1).p_values for seed in range(200)]
    for name in found[0]:
        values = np.array([p[name] for p in found])
        for u in (0.5, 0.1, 0.02):
            assert (values <= u).sum() <= 200 * u + 6 * np.sqrt(200 * u), name


@pytest.mark.parametrize(
    ("seen", "checks"),
    [
        (("mates",), {"mate_uniformity", "self_picks", "distinct_mates", "shared_coins"}),
        (("labels", "reports"), {"ones_at_zero", "ones_at_size"}),
        (("labels", "flipped"), {"flip_rate", "serial_flips"}),
        (("flipped", "reports"), {"ones_given_flips", "joint"}),
        (("labels", "mates", "reports"), {"flip_rate", "one_flip_for_all", "self_picks", "ones_at_size"}),
    ],
)
def test_what_is_seen_decides_what_is_checked(seen, checks):
    result = conformance(parts(healthy(), *seen), flip_probability=0.1)
    assert checks <= set(result.p_values)
    assert result.verdict is Verdict.PASS


def test_true_labels_alone_allow_no_check():
    with pytest.raises(ConfigurationError, match="observed"):
        conformance(parts(healthy(), "labels"), flip_probability=0.1)


def test_clusters_of_several_sizes_are_one_verdict():
    mixed = [healthy(seed, rows=2 * seed, size=3 + seed) for seed in range(1, 30)]
    assert conformance(*mixed, flip_probability=0.1).verdict is Verdict.PASS
    # Each part is too small to tell 0.1 from 0.06; all of them together are not.
    wrong = conformance(*mixed, flip_probability=0.06)
    assert "flip_rate" in wrong.failed
    assert all(conformance(part, flip_probability=0.06).verdict is Verdict.PASS for part in mixed[:10])


def test_a_plan_may_give_each_size_its_own_flip():
    plan = {10: 0.2, 40: 0.05}
    mixed = [healthy(1, plan[size], rows=300, size=size) for size in plan]
    assert conformance(*mixed, flip_probability=plan).verdict is Verdict.PASS
    assert conformance(*mixed, flip_probability={10: 0.05, 40: 0.2}).verdict is Verdict.FAIL
    assert conformance(*mixed, flip_probability=plan).rounds == 600
    with pytest.raises(ConfigurationError, match="flip_probability: none given for clusters of 40"):
        conformance(*mixed, flip_probability={10: 0.2})


def test_unseen_entries_are_left_out():
    rounds = healthy(3, rows=400)
    rng = np.random.default_rng(0)
    columns = {}
    for name in ("labels", "flipped", "mates", "reports"):
        column = getattr(rounds, name).astype(np.int64)
        column[rng.random(column.shape) < 0.02] = -1
        columns[name] = column
    result = conformance(Rounds(**columns), flip_probability=0.1)
    assert result.verdict is Verdict.PASS
    assert "mate_uniformity" in result.p_values


@pytest.mark.parametrize("classes", [3, 5])
def test_more_classes_have_their_own_law(classes):
    labels = np.random.default_rng(2).integers(0, classes, size=(500, 12))
    labels[:200] = 0
    labels[200:300] = 1
    rounds = broken.Simulator(flip_probability=0.3, seed=4, classes=classes)(labels=labels)
    result = conformance(rounds, flip_probability=0.3)
    assert result.verdict is Verdict.PASS
    assert {"lies", "ones_between", "ones_at_size"} <= set(result.p_values)
    lies = rounds.flipped.copy()
    lies[lies != labels] = (labels[lies != labels] + 1) % classes  # always the next label instead of any other
    told = Rounds(
        labels=labels,
        flipped=lies,
        mates=rounds.mates,
        reports=lies[np.arange(500)[:, None], rounds.mates],
        classes=classes,
    )
    assert "lies" in conformance(told, flip_probability=0.3).failed


def test_a_report_that_is_no_flipped_label_of_the_mate_is_impossible():
    rounds = healthy()
    reports = rounds.reports.copy()
    reports[7, 3] ^= 1
    columns = {"labels": rounds.labels, "flipped": rounds.flipped, "mates": rounds.mates}
    result = conformance(Rounds(**columns, reports=reports), flip_probability=0.1)
    assert result.p_values["one_flip_for_all"] == 0.0
    assert result.verdict is Verdict.FAIL


@pytest.mark.parametrize(("flip", "size"), [(0.0, 4), (0.5, 4), (0.1, 1), (0.1, 2), (1e-12, 3)])
def test_extremes_pass_without_exceptions(flip, size):
    result = conformance(healthy(2, flip, rows=30, size=size), flip_probability=flip)
    assert result.verdict is Verdict.PASS


def test_no_flips_at_all_fail_where_some_are_claimed_and_the_other_way_round():
    assert conformance(healthy(1, 0.0), flip_probability=0.1).verdict is Verdict.FAIL
    assert conformance(healthy(1, 0.1), flip_probability=0.0).verdict is Verdict.FAIL


def test_values_of_t_alone_are_enough_for_a_verdict():
    source = broken.Simulator(flip_probability=0.1, seed=3).ones(30)
    samples = [OnesSample(cluster_size=30, ones=k, counts=source(ones=k, rounds=5000)) for k in (0, 7, 30)]
    result = conformance(*samples, flip_probability=0.1)
    assert set(result.p_values) == {"ones_at_zero", "ones_between", "ones_at_size", "serial_ones"}
    assert result.verdict is Verdict.PASS
    assert conformance(*samples, flip_probability=0.11).verdict is Verdict.FAIL


def test_the_occupancy_law_is_that_of_enumeration():
    draws = np.stack(np.meshgrid(*[np.arange(4)] * 4)).reshape(4, -1)
    distinct = [len(set(column)) for column in draws.T.tolist()]
    np.testing.assert_allclose(occupancy_law(4), np.bincount(distinct, minlength=5) / 256)
    assert occupancy_law(1).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("flip", [-0.1, 0.6, float("nan"), True])
def test_an_impossible_claim_is_refused(flip):
    with pytest.raises(ConfigurationError, match="flip_probability"):
        conformance(healthy(), flip_probability=flip)


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({}, "rounds"),
        ({"mates": np.array([[0, 2]])}, "mates"),
        ({"reports": np.array([[0, 2]])}, "reports"),
        ({"labels": np.array([[0, -2]])}, "labels"),
        ({"labels": np.array([0, 1])}, "labels"),
        ({"labels": np.array([[0.0, 1.0]])}, "labels"),
        ({"labels": np.array([[0, 1]]), "mates": np.array([[0, 1, 2]])}, "mates"),
        ({"labels": np.array([[0, 1]]), "clusters": 2}, "clusters"),
    ],
)
def test_arrays_that_are_no_rounds_are_refused(columns, field):
    with pytest.raises(ConfigurationError, match=field):
        Rounds(**columns)


def test_counts_outside_the_cluster_are_refused():
    with pytest.raises(ConfigurationError, match="counts"):
        OnesSample(cluster_size=3, ones=0, counts=np.array([4]))
