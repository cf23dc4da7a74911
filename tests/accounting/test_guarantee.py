"""A guarantee is validated at birth."""

import math

import pytest

from p2p_labeldp.accounting.guarantee import Guarantee
from p2p_labeldp.errors import ConfigurationError


def test_a_guarantee_keeps_what_it_was_given():
    guarantee = Guarantee(view="learner", epsilon=1.0, delta=0.01, method="exact")
    assert (guarantee.view, guarantee.epsilon, guarantee.delta, guarantee.method) == ("learner", 1.0, 0.01, "exact")
    assert guarantee.private


def test_infinite_epsilon_or_delta_one_is_no_privacy():
    assert not Guarantee(view="learner+all", epsilon=math.inf, delta=0.0, method="local").private
    assert not Guarantee(view="learner", epsilon=0.0, delta=1.0, method="exact").private


@pytest.mark.parametrize(("epsilon", "delta"), [(-1.0, 0.0), (math.nan, 0.0), (1.0, -0.1), (1.0, 1.1), (1.0, math.nan)])
def test_impossible_guarantees_are_refused(epsilon, delta):
    with pytest.raises(ConfigurationError):
        Guarantee(view="learner", epsilon=epsilon, delta=delta, method="exact")
