"""What a client computes: gradients on the way, clipped as one vector, refused before that."""

import math

import numpy as np
import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.local_update import LocalUpdate
from p2p_labeldp.learning.models import LogisticRegression, MultinomialRegression

MODEL = LogisticRegression(features=2)
ROWS, LABELS = np.array([[1.0, -2.0], [0.5, 0.5]]), np.array([1, 0])
START = np.array([0.3, -0.1, 0.2])


def test_one_step_is_the_gradient():
    update = LocalUpdate(model=MODEL, max_radius=100.0).compute(START, ROWS, LABELS)
    assert (update == MODEL.gradient(START, ROWS, LABELS)).all()


def test_several_steps_are_the_way_that_descent_went():
    steps, rate = 5, 0.3
    here = START
    for _ in range(steps):
        here = here - rate * MODEL.gradient(here, ROWS, LABELS)
    update = LocalUpdate(model=MODEL, max_radius=100.0, steps=steps, rate=rate).compute(START, ROWS, LABELS)
    assert update == pytest.approx((START - here) / (rate * steps), rel=1e-12)


def test_all_of_it_is_clipped_as_one_vector():
    free = LocalUpdate(model=MODEL, max_radius=100.0).compute(START, ROWS, LABELS)
    clipped = LocalUpdate(model=MODEL, max_radius=0.01).compute(START, ROWS, LABELS)
    assert np.linalg.norm(clipped) == pytest.approx(0.01)
    assert np.linalg.norm(clipped) <= 0.01
    assert clipped / 0.01 == pytest.approx(free / np.linalg.norm(free))


def test_a_zero_update_stays_zero():
    class Settled(LogisticRegression):
        def gradient(self, parameters, features, labels):
            return np.zeros(3)

    assert LocalUpdate(model=Settled(features=2), max_radius=1.0).compute(START, ROWS, LABELS).tolist() == [0, 0, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_nan_update_is_refused_before_it_is_clipped(value):
    class Broken(LogisticRegression):
        def gradient(self, parameters, features, labels):
            return np.array([value, 1.0, 1.0])

    with pytest.raises(ConfigurationError, match="NaN or infinite"):
        LocalUpdate(model=Broken(features=2), max_radius=1.0).compute(START, ROWS, LABELS)
    norm = np.linalg.norm([math.nan, 1.0, 1.0])
    assert not norm > 1.0  # clipping by this comparison would let it pass as it is


def test_a_model_made_to_overflow_is_refused():
    model = MultinomialRegression(features=1, classes=2)
    crafted = np.array([1e308, 0.0, 0.0, 0.0])
    update = LocalUpdate(model=model, max_radius=1.0)
    assert np.isfinite(update.compute(crafted, np.array([[-100.0]]), LABELS[:1])).all()
    with pytest.raises(ConfigurationError, match="NaN or infinite"):  # of features above 0 alone: silence would tell
        update.compute(crafted, np.array([[100.0]]), LABELS[:1])


def test_steps_that_overflow_are_refused_without_a_warning():
    """A warning would be an error where they are, and would end a peer whose data are of some kind."""
    update = LocalUpdate(model=MODEL, max_radius=1.0, steps=3, rate=1e300)
    assert np.isfinite(update.compute(START, ROWS, LABELS)).all()
    with pytest.raises(ConfigurationError, match="NaN or infinite"):
        update.compute(START, 1e9 * ROWS, LABELS)


@pytest.mark.parametrize(
    "change", [{"max_radius": 0.0}, {"max_radius": math.nan}, {"steps": 0}, {"steps": True}, {"rate": 0.0}]
)
def test_impossible_updates_are_refused(change):
    with pytest.raises(ConfigurationError, match=f"^{next(iter(change))}: "):
        LocalUpdate(**{"model": MODEL, "max_radius": 1.0, **change})
