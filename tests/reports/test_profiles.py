"""The curves of a page agree with the accountant."""

import math

import pytest
from reports.runs import changed, cluster, kept

from p2p_labeldp.accounting import multiclass, planning
from p2p_labeldp.accounting.exact import local_delta
from p2p_labeldp.accounting.multiclass import Classes
from p2p_labeldp.reports import profiles


def test_curves_agree_with_the_accountant():
    for at in (0.0, 0.5, 1.0, 2.0):
        assert profiles.pure(math.log(4), at) == pytest.approx(local_delta(0.2, at))
    one = cluster(size=25, flip_probability=0.051912, epsilon=1.0, delta=1 / 625, local_epsilon=2.904897347632214)
    run = kept(changed(clusters=[cluster(), one]), happened=[])
    found = profiles.profile(run)
    assert found.cluster is one
    learner, local = dict(found.learner), dict(found.local)
    assert 0.9 / 625 < learner[1.0] <= 1 / 625  # the least flip for epsilon 1
    assert all(learner[at] <= local[at] + 1e-12 for at in learner)  # where both end, but for rounding
    assert profiles.classes_of(one) == 2
    three = cluster(flip_probability=0.02, local_epsilon=math.log(0.98 / 0.01))
    assert profiles.classes_of(three) == 3


@pytest.mark.parametrize(
    ("exchange", "size"), [("resample", 60), ("permute", 60), ("resample", profiles.CLASS_ROSTER_SIZE + 1)]
)
def test_curves_of_more_than_two_classes_agree_with_the_accountant(exchange, size):
    f, delta = 0.05, 1 / size**2
    classes = Classes(cluster_size=size, num_classes=3, flip_probability=f)
    if exchange == "permute":
        promised = multiclass.shuffled(classes).epsilon(delta)
    else:
        promised = planning.roster_epsilon(size, planning.holding_minimum(size, 0.05), f, delta, num_classes=3)
    one = cluster(size=size, flip_probability=f, epsilon=promised, delta=delta, local_epsilon=math.log(0.95 * 2 / f))
    run = kept(changed(clusters=[one]), happened=[], exchange={"kind": exchange})
    found = profiles.profile(run)
    learner, local = dict(found.learner), dict(found.local)
    assert found.bound
    assert found.losses == (exchange == "resample" and size == 60)
    assert learner[promised] <= delta * (1 + 1e-6)  # the curve goes through the promise, or below it without losses
    assert learner[promised] > (0.99 * delta if found.losses or exchange == "permute" else 0.2 * delta)
    assert all(learner[at] <= local[at] + 1e-12 for at in learner)
    assert list(learner.values()) == sorted(learner.values(), reverse=True)
    assert local[one.local_epsilon] == pytest.approx(0, abs=1e-12)
    assert local[0.0] == pytest.approx(0.95 - 0.025)


@pytest.mark.parametrize("exchange", ["resample", "permute"])
def test_epsilon_of_more_than_two_classes_is_drawn_over_sizes(exchange):
    one = cluster(size=60, flip_probability=0.05, local_epsilon=math.log(0.95 * 2 / 0.05))
    curve = profiles.by_size(kept(changed(clusters=[one]), happened=[], exchange={"kind": exchange}))
    assert (curve[0][0], curve[-1][0], len(curve)) == (20, 180, profiles.CLASS_POINTS)
    size, epsilon = curve[0]
    shuffled = multiclass.shuffled(Classes(cluster_size=size, num_classes=3, flip_probability=0.05))
    if exchange == "permute":
        assert epsilon == min(one.local_epsilon, shuffled.epsilon(1 / size**2))
    else:
        assert epsilon == planning.roster_epsilon(size, size, 0.05, 1 / size**2, num_classes=3)
