"""dp-accounting agrees with the exact laws within its grid, and composes fresh rounds."""

import math
import sys
from subprocess import run

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from p2p_labeldp.accounting import composition, resampling
from p2p_labeldp.errors import ConfigurationError, UnsupportedComposition


@pytest.mark.parametrize(("size", "flip_probability"), [(10, 0.1), (20, 0.25), (60, 0.02)])
@pytest.mark.parametrize("interval", [1e-3, 1e-4])
def test_every_count_is_within_an_interval_of_dp_accounting(size, flip_probability, interval):
    delta = 1 / size**2
    exact = resampling.epsilon(cluster_size=size, flip_probability=flip_probability, delta=delta)
    generic = max(
        composition.loss_distribution(
            cluster_size=size, flip_probability=flip_probability, ones=ones, interval=interval
        ).get_epsilon_for_delta(delta)
        for ones in range(size)
    )
    assert exact - 1e-9 <= generic <= exact + interval


def test_a_symmetric_distribution_would_under_report():
    """Why ``symmetric=False``: with its default the library looks at one direction."""
    laws = composition.mixture_pair(composition.Mixture(ones=0, zeros=19, uniform=0, reports=20, flip_probability=0.02))
    zero = {t: math.log(mass) for t, mass in enumerate(laws.left) if mass > 0}
    one = {t: math.log(mass) for t, mass in enumerate(laws.right) if mass > 0}
    sides = [
        pld.from_two_probability_mass_functions(*masses).get_epsilon_for_delta(1 / 400)
        for masses in ((zero, one), (one, zero))
    ]
    both = composition.loss_distribution(cluster_size=20, flip_probability=0.02, ones=0).get_epsilon_for_delta(1 / 400)
    assert min(sides) < max(sides) == pytest.approx(both, abs=1e-6)


@pytest.mark.parametrize(("rounds", "expected"), [(1, 0.249), (10, 0.807), (100, 2.774)])
def test_fresh_rounds_compose_to_the_tabulated_values(rounds, expected):
    found = composition.fresh_rounds_epsilon(cluster_size=1000, flip_probability=0.1, rounds=rounds, delta=1e-6)
    assert found == pytest.approx(expected, abs=2e-3)


def test_two_fresh_rounds_are_the_product_law_of_the_worst_count():
    size, flip_probability, delta = 6, 0.2, 1 / 36
    worst = 0.0
    for ones in range(size):
        pair = composition.mixture_pair(
            composition.Mixture(
                ones=ones, zeros=size - 1 - ones, uniform=0, reports=size, flip_probability=flip_probability
            )
        )
        product = composition.Pair(left=pair.left[:, None] * pair.left, right=pair.right[:, None] * pair.right)
        worst = max(worst, product.epsilon(delta), product.reversed().epsilon(delta))
    found = composition.fresh_rounds_epsilon(
        cluster_size=size, flip_probability=flip_probability, rounds=2, delta=delta
    )
    assert worst <= found <= worst + 5e-4


def test_fresh_rounds_never_cost_more_than_basic_composition():
    question = {"cluster_size": 30, "flip_probability": 0.1}
    found = composition.fresh_rounds_epsilon(rounds=4, delta=1e-3, **question)
    assert resampling.epsilon(delta=1e-3, **question) < found
    assert found <= 4 * resampling.epsilon(delta=1e-3 / 4, **question)


def test_the_extremes_of_composition():
    ask = composition.fresh_rounds_epsilon
    assert ask(cluster_size=10, flip_probability=0.5, rounds=5, delta=0.0) == 0.0
    assert ask(cluster_size=10, flip_probability=0.0, rounds=5, delta=0.1) == math.inf
    exact = resampling.epsilon(cluster_size=10, flip_probability=0.1, delta=0.0)
    assert ask(cluster_size=10, flip_probability=0.1, rounds=3, delta=0.0) == pytest.approx(3 * exact)
    assert ask(cluster_size=10, flip_probability=0.1, rounds=3, delta=1e-20) < 3 * math.log(9)


def test_a_count_that_does_not_exist_is_refused():
    with pytest.raises(UnsupportedComposition):
        composition.loss_distribution(cluster_size=5, flip_probability=0.1, ones=5)
    with pytest.raises(ConfigurationError, match="rounds"):
        composition.fresh_rounds_epsilon(cluster_size=5, flip_probability=0.1, rounds=0, delta=0.1)


def test_dp_accounting_is_imported_only_when_asked():
    program = (
        "import sys, p2p_labeldp.accounting.composition, p2p_labeldp.accounting.views; "
        "print('dp_accounting' in sys.modules)"
    )
    assert run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"


def test_more_rounds_than_memory_holds_are_refused():
    def asked(rounds, flip_probability=1e-12):
        return composition.fresh_rounds_epsilon(
            cluster_size=100, flip_probability=flip_probability, rounds=rounds, delta=1e-4
        )

    with pytest.raises(ConfigurationError, match="rounds: 200 given; 1 to 108 are possible"):
        asked(200)
    assert 0 < asked(2, 0.3) < 2 * asked(1, 0.3)


def test_the_upper_tail_that_is_not_walked_is_charged():
    mixture = composition.Mixture(ones=0, zeros=2999, uniform=0, reports=3000, flip_probability=0.05)
    pair = composition.mixture_pair(mixture)
    assert pair.left.size < 1500  # of 3001
    assert -1e-12 <= 1 - pair.left.sum() <= pair.omitted + 1e-12
    assert -1e-12 <= 1 - pair.right.sum() <= pair.omitted + 1e-12
