"""UniformRR: the published constants, other libraries' epsilons, exact words."""

import itertools
import math
import random

import numpy as np
import pytest

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.interface import LocalRandomizer
from p2p_labeldp.mechanisms.redraw import Redraw
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.mechanisms.uniform_rr import UniformRR


@pytest.mark.parametrize(
    ("num_classes", "epsilon", "redraw_probability", "keep_probability"),
    [
        (2, 0.5, 0.7550813375962909, 0.6224593312018546),
        (2, 1.0, 0.5378828427399902, 0.7310585786300049),
        (3, 0.5, 0.8222058571835909, 0.4518627618776060),
        (10, 1.0, 0.8533674259065845, 0.23196931668407395),
        (10, 4.0, 0.15723727804642887, 0.858486449758214),
        (100, 0.001, 0.999989995098432, 0.010009904852552346),
    ],
)
def test_constants_are_those_of_closed_forms(num_classes, epsilon, redraw_probability, keep_probability):
    mechanism = UniformRR.calibrated(num_classes=num_classes, epsilon=epsilon)
    assert mechanism.redraw_probability == pytest.approx(redraw_probability, rel=1e-13)
    assert mechanism.keep_probability == pytest.approx(keep_probability, rel=1e-13)
    assert mechanism.correction == mechanism.redraw_probability
    assert np.diag(mechanism.channel) == pytest.approx(keep_probability, rel=1e-13)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1, 4, 40, 700])
@pytest.mark.parametrize("num_classes", [2, 3, 10, 100, 256])
def test_calibration_never_overshoots(num_classes, epsilon):
    found = UniformRR.calibrated(num_classes=num_classes, epsilon=epsilon).epsilon
    assert epsilon - 1e-12 * (1 + epsilon) < found <= epsilon


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("redraw_probability", [0.9, 0.5, 0.1])
def test_epsilon_is_dp_accountings(num_classes, redraw_probability):
    from dp_accounting.pld import privacy_loss_distribution as pld

    interval = 1e-5
    theirs = pld.from_randomized_response(
        redraw_probability, num_classes, value_discretization_interval=interval
    ).get_epsilon_for_delta(0.0)
    ours = UniformRR(num_classes=num_classes, redraw_probability=redraw_probability).epsilon
    assert ours <= theirs + 1e-12
    assert theirs == pytest.approx(ours, abs=interval)  # their losses are rounded up to a grid


@pytest.mark.parametrize(("num_classes", "keep", "epsilon"), [
    (2, 0.75, 1.0986122886681098),
    (3, 0.6, 1.0986122886681098),
    (10, 0.5, 2.1972245773362196),
    (100, 0.3, 3.747821989747389),
])  # fmt: skip
def test_epsilon_is_opendps(num_classes, keep, epsilon):
    """The numbers are what OpenDP 0.16 says of ``make_randomized_response``; asked again where it is installed."""
    lam = (1 - keep) * num_classes / (num_classes - 1)
    assert UniformRR(num_classes=num_classes, redraw_probability=lam).epsilon == pytest.approx(epsilon, rel=1e-12)
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib")
    theirs = prelude.m.make_randomized_response(categories=list(range(num_classes)), prob=keep)
    assert theirs.map(1) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
def test_the_channel_has_an_inverse(num_classes):
    channel = UniformRR.calibrated(num_classes=num_classes, epsilon=1).channel
    lam = UniformRR.calibrated(num_classes=num_classes, epsilon=1).redraw_probability
    inverse = (np.eye(num_classes) - lam / num_classes) / (1 - lam)
    assert channel @ inverse == pytest.approx(np.eye(num_classes), abs=1e-12)
    assert channel.sum(axis=1) == pytest.approx(1)


def test_words_split_as_the_channel_says():
    mechanism = UniformRR(num_classes=3, redraw_probability=0.75)
    quarter = 1 << 62
    edges = [0, quarter - 1, quarter, 2 * quarter - 1, 2 * quarter, 3 * quarter - 1, 3 * quarter, 2**64 - 1]
    words = np.array(edges, dtype=np.uint64)
    for label in range(3):
        told = mechanism.randomize(np.full(8, label, dtype=np.uint8), words)
        assert told.tolist() == [0, 0, 1, 1, 2, 2, label, label]
        assert told.dtype == np.uint8


def test_a_label_that_is_always_redrawn_says_nothing():
    words = randomness.bulk_label_words(3, 0, 1000)[:, 0]
    mechanism = UniformRR(num_classes=7, redraw_probability=1.0)
    told = [mechanism.randomize(np.full(1000, label), words).tolist() for label in range(7)]
    assert all(each == told[0] for each in told)
    assert set(told[0]) == set(range(7))
    assert (mechanism.epsilon, mechanism.correction) == (0.0, 0.0)


@pytest.mark.parametrize("num_classes", [2, 3, 7, 256])
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 3.0, 30.0])
def test_no_word_count_exceeds_what_epsilon_allows(num_classes, epsilon):
    redraw = UniformRR.calibrated(num_classes=num_classes, epsilon=epsilon)._redraw
    last = [-1, *redraw._last.tolist()]
    widths = [b - a for a, b in itertools.pairwise(last)]
    assert len(widths) == num_classes
    own = 2**64 - 1 - last[-1]
    assert math.log1p(own / min(widths)) <= epsilon * (1 + 1e-12)


def test_rates_are_those_of_the_channel():
    mechanism, rows = UniformRR(num_classes=4, redraw_probability=0.4), 100_000
    told = mechanism.release(np.full(rows, 2), np.zeros(rows, dtype=int), count=1, rng=random.Random(5)).labels
    rates = np.bincount(told, minlength=4) / rows
    # 5.5 standard deviations of four rates: fails by chance with probability below 1e-6
    assert np.abs(rates - [0.1, 0.1, 0.7, 0.1]).max() < 5.5 * math.sqrt(0.21 / rows)


def test_it_is_what_the_interfaces_ask_for():
    mechanism = UniformRR.calibrated(num_classes=10, epsilon=1)
    assert isinstance(mechanism, LocalRandomizer)
    assert isinstance(mechanism, LabelMechanism)
    assert isinstance(mechanism._redraw, LocalRandomizer)
    assert not mechanism.needs_curator


@pytest.mark.parametrize("epsilon", [0, -1, 1e-7, 701, math.nan, math.inf, True])
def test_impossible_levels_are_refused(epsilon):
    with pytest.raises(ConfigurationError, match=r"epsilon: .* 1e-06 to 700 is possible"):
        UniformRR.calibrated(num_classes=10, epsilon=epsilon)


@pytest.mark.parametrize("redraw_probability", [0, -0.1, 1.1, math.nan, True])
def test_impossible_probabilities_are_refused(redraw_probability):
    with pytest.raises(ConfigurationError, match="redraw_probability: "):
        UniformRR(num_classes=3, redraw_probability=redraw_probability)


@pytest.mark.parametrize("num_classes", [1, 257, True])
def test_impossible_numbers_of_classes_are_refused(num_classes):
    with pytest.raises(ConfigurationError, match="num_classes: "):
        UniformRR.calibrated(num_classes=num_classes, epsilon=1)


def test_a_distribution_sums_to_one():
    from fractions import Fraction

    for weights in ((1, 3), (-1, 5)):
        with pytest.raises(ConfigurationError, match="distribution: "):
            Redraw(redraw_probability=0.5, distribution=tuple(Fraction(weight, 8) for weight in weights))
