"""P-values are exact where they can be and never too small where they are bounds."""

import itertools
import math

import numpy as np
import pytest

from p2p_labeldp.auditing import p_values
from p2p_labeldp.auditing.distinguisher import binomial_law
from p2p_labeldp.auditing.p_values import Sample


def assert_valid(chances, values):
    """P(p <= u) <= u for every u: outcomes with ``chances`` give p-values ``values``."""
    order = np.argsort(values)
    cumulated = np.cumsum(np.asarray(chances)[order])
    ranked = np.asarray(values)[order]
    last = np.append(np.diff(ranked) > 0, True)  # outcomes of equal p count together
    assert (cumulated[last] <= ranked[last] * (1 + 1e-9) + 1e-15).all()


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (7, 0.1), (40, 0.3), (40, 0.0), (40, 1.0), (300, 0.004)])
def test_two_sided_binomial_is_valid_at_every_level(n, p):
    assert_valid(binomial_law(n, p), [p_values.binomial(x, n, p) for x in range(n + 1)])


def test_binomial_tail_is_the_sum_of_its_terms():
    law = binomial_law(30, 0.2)
    for x in (0, 1, 6, 29, 30):
        assert p_values.binomial_at_least(x, 30, 0.2) == pytest.approx(law[x:].sum(), rel=1e-11)


def test_a_sum_of_unlike_binomials_is_valid_at_every_level():
    trials, chances = np.array([5, 12, 9]), np.array([0.1, 0.5, 0.93])
    law = np.array([1.0])
    for n, p in zip(trials, chances, strict=True):
        law = np.convolve(law, binomial_law(int(n), float(p)))
    values = [p_values.poisson_binomial(x, trials, chances) for x in range(27)]
    assert_valid(law, values)
    exact = [2 * min(law[: x + 1].sum(), law[x:].sum()) for x in range(27)]
    for x in (0, 4, 22, 26):  # the exponent is kept: no more than a polynomial factor is lost
        assert exact[x] * (1 - 1e-9) <= values[x] <= 12 * exact[x]


def test_a_sum_of_unlike_binomials_sees_the_impossible():
    trials, chances = np.array([3, 4, 5]), np.array([0.0, 1.0, 0.5])
    assert p_values.poisson_binomial(3, trials, chances) == 0.0
    assert p_values.poisson_binomial(10, trials, chances) == 0.0
    assert p_values.poisson_binomial(6, trials, chances) > 0.9
    assert p_values.poisson_binomial(4, np.array([3, 4]), np.array([0.0, 1.0])) == 1.0
    assert p_values.poisson_binomial(0, np.array([0, 0]), np.array([0.1, 0.2])) == 1.0


def test_multinomial_fit_is_valid_at_every_level():
    law, n = np.array([0.5, 0.3, 0.2, 0.0]), 12
    chances, values = [], []
    for a, b in itertools.product(range(n + 1), repeat=2):
        if a + b <= n:
            c = n - a - b
            ways = math.factorial(n) / (math.factorial(a) * math.factorial(b) * math.factorial(c))
            chances.append(ways * 0.5**a * 0.3**b * 0.2**c)
            values.append(p_values.multinomial(np.array([a, b, c, 0]), law))
    assert math.fsum(chances) == pytest.approx(1)
    assert_valid(chances, values)
    assert p_values.multinomial(np.array([6, 3, 2, 1]), law) == 0.0


def test_multinomial_fit_of_several_tables_pays_for_their_number():
    law = np.full(4, 0.25)
    odd = np.array([60, 10, 10, 10])
    alone = p_values.multinomial(odd, law)
    assert alone < 1e-6
    assert p_values.multinomial(np.array([odd, [20, 20, 20, 20]]), law) == pytest.approx(2 * alone)


def test_fit_is_valid_over_samples_with_different_laws():
    laws = binomial_law(4, 0.3), binomial_law(3, 0.8)
    chances, values = [], []
    for x, y, z in itertools.product(range(5), range(5), range(4)):
        samples = [
            Sample(law=laws[0], counts=np.bincount([x, y], minlength=5)),
            Sample(law=laws[1], counts=np.bincount([z], minlength=4)),
        ]
        chances.append(laws[0][x] * laws[0][y] * laws[1][z])
        values.append(p_values.fit(samples))
    assert_valid(chances, values)


@pytest.mark.parametrize("wrong", [binomial_law(50, 0.21), np.convolve(binomial_law(25, 0.05), binomial_law(25, 0.35))])
def test_fit_sees_a_shift_and_a_wrong_spread(wrong):
    law, n = binomial_law(50, 0.2), 20_000
    assert p_values.fit([Sample(law=law, counts=np.round(law * n).astype(int))]) > 0.5
    assert p_values.fit([Sample(law=law, counts=np.round(wrong * n).astype(int))]) < 1e-10


def test_fit_calls_values_outside_the_law_impossible():
    law = binomial_law(3, 0.0)
    assert p_values.fit([Sample(law=law, counts=np.array([9, 1, 0, 0]))]) == 0.0
    assert p_values.fit([Sample(law=law, counts=np.array([9, 0, 0, 0]))]) == 1.0
    assert p_values.fit([]) == 1.0


def test_chernoff_bound_of_a_normal_moment_function_is_the_known_one():
    for x in (-7.0, -2.0, 3.0, 5.5):
        value = p_values.chernoff(x, lambda u: u * u / 2, scale=1.0)
        assert value == pytest.approx(min(1.0, 2 * math.exp(-x * x / 2)), rel=1e-9)
    assert p_values.chernoff(0.0, lambda u: u * u / 2, scale=1.0) == 1.0


def test_bonferroni_of_nothing_is_one():
    assert p_values.bonferroni([]) == 1.0
    assert p_values.bonferroni([0.9, 0.01]) == pytest.approx(0.02)
    assert p_values.bonferroni([0.9, 0.8]) == 1.0
