"""Masses and moments of caps against 120-digit arithmetic, in every regime, and against plain geometry."""

import math

import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cap import cap, log_beta_half, log_gap_of

# dimension, log(1 - gamma^2), log P, log r, log(1 - r)
GOLDEN = [
    (2, -1e-06, -0.69378400300763991, -6.456809146140356, -0.0015710301411807861),
    (2, -0.5, -1.2581766266455056, -0.32982280557969968, -1.2695825977129539),
    (2, -3.0, -2.6362762643093741, -0.017080968931324753, -4.0783186910798648),
    (2, -80.0, -41.1447298858494, -6.0161712928180506e-36, -81.09861228866811),
    (3, -0.1, -1.0620166480661739, -0.75180651746832869, -0.63773893501245724),
    (3, -40.0, -41.386294361119891, -1.0620885638228973e-18, -41.386294361119891),
    (10, -0.3, -2.9028737310233451, -0.18271427667535242, -1.7897981799287355),
    (10, -2.0, -10.986400942473807, -0.013835410652820331, -4.2874337135785073),
    (61, -0.0625, -3.6157189045975026, -0.17227960001258951, -1.8435399687399099),
    (62, -0.125, -5.8164158195160435, -0.096087469460388834, -2.3901554263884128),
    (500, -1e-12, -0.69316499518230194, -10.482932970148226, -2.8010840422730663e-5),
    (500, -0.0078125, -3.7205058145568256, -0.17351146720242534, -1.8370132103427064),
    (500, -0.01, -4.359565330523448, -0.14390575743679605, -2.0096868140234078),
    (500, -0.5, -128.31242014502376, -0.0030536270582536554, -5.7929516204755056),
    (500, -0.75, -190.83284491042301, -0.0017790601940876257, -6.332559433178509),
    (10000, -0.0003, -3.1786022191231078, -0.21060753970933875, -1.661215184013674),
    (10000, -0.0005, -4.3677961838672235, -0.14453868923712549, -2.0056070814336741),
    (10000, -0.015625, -81.564180262601318, -0.0062517488356753167, -5.0780182865695527),
    (3274634, -1e-06, -3.3472962585917788, -0.19793849817305107, -1.7171362082056816),
    (3274634, -2e-06, -5.2502179598260833, -0.11697035912732053, -2.2037498755837794),
    (4000000, -1e-15, -0.69319764447417222, -9.4427449096827605, -7.9265682598704489e-5),
    (4000000, -0.0009765625, -1958.178628336923, -0.000255711482729456, -8.2715886226549017),
    (4000000, -0.05, -100006.9845317517, -4.8759809662967456e-6, -12.231191687891018),
    (4000000, -0.25, -500007.64049603572, -8.8020075911388322e-7, -13.943116260236734),
    (100000000, -1e-08, -1.8410216335707489, -0.42208311036607618, -1.0661824952472905),
]


@pytest.mark.parametrize(("dimension", "log_gap", "log_mass", "log_ratio", "log_slack"), GOLDEN)
def test_mass_and_ratio_agree_with_120_digit_arithmetic(dimension, log_gap, log_mass, log_ratio, log_slack):
    c = cap(dimension, log_gap)
    assert c.log_mass == pytest.approx(log_mass, rel=2e-14)
    # above 1 - gamma^2 = 1/2 the slack is a difference, of relative error 1e-16 / (1 - r)
    assert c.log_ratio == pytest.approx(log_ratio, rel=1e-9, abs=0 if log_gap < -0.7 else 1e-15)
    assert c.log_slack == pytest.approx(log_slack, rel=1e-9)


@pytest.mark.parametrize("gamma", [1e-9, 0.01, 0.3, 0.6, 0.7, 0.72, 0.9, 0.999999])
def test_mass_is_the_plain_geometric_one_in_few_dimensions(gamma):
    log_gap = log_gap_of(gamma)
    plain = {
        1: 0.5,
        2: math.atan2(math.sqrt((1 - gamma) * (1 + gamma)), gamma) / math.pi,
        3: (1 - gamma) / 2,
        5: (1 - gamma) ** 2 * (2 + gamma) / 4,
    }
    for dimension, mass in plain.items():
        c = cap(dimension, log_gap)
        assert math.exp(c.log_mass) == pytest.approx(mass, rel=1e-12)
        assert math.exp(c.log_complement) == pytest.approx(1 - mass, rel=1e-12)
        assert c.gamma == pytest.approx(gamma, rel=1e-12)


@pytest.mark.parametrize("dimension", [2, 3, 9, 100, 4000, 4_000_000])
def test_formulas_of_neighbouring_regimes_meet(dimension):
    for log_gap in (math.log(0.5), math.log1p(-4.0 / dimension) if dimension > 8 else math.log(0.5)):
        low, high = cap(dimension, log_gap * (1 - 1e-13)), cap(dimension, log_gap * (1 + 1e-13))
        assert low.log_mass == pytest.approx(high.log_mass, rel=1e-12)
        assert low.log_ratio == pytest.approx(high.log_ratio, rel=1e-9)


def test_a_cap_of_mass_e_to_minus_100000_is_still_told_from_its_neighbour():
    one, other = cap(3, -100_000.0), cap(3, -100_001.0)
    assert one.gamma == other.gamma == 1.0
    assert one.log_mass == pytest.approx(-100_000.0 - math.log(4.0), rel=1e-14)
    assert one.log_mass - other.log_mass == pytest.approx(1.0, rel=1e-9)


def test_log_beta_half_follows_lgamma_where_lgamma_is_accurate_and_goes_beyond():
    for a in (0.5, 1.0, 4.5, 29.5, 30.0, 50.0):
        expected = math.lgamma(a) + math.lgamma(0.5) - math.lgamma(a + 0.5)
        assert log_beta_half(a) == pytest.approx(expected, rel=1e-13)
    assert log_beta_half(2e6) == pytest.approx(0.5 * math.log(math.pi / 2e6) + 1 / 16e6, rel=1e-15)


@pytest.mark.parametrize("dimension", [0, -1, 2.0, True, 10**8 + 1])
def test_impossible_dimensions_are_refused(dimension):
    assert cap(1, -1.0).dimension == 1
    with pytest.raises(ConfigurationError, match=r"dimension: .* given; an integer from 1 to 100000000"):
        cap(dimension, -1.0)


@pytest.mark.parametrize("log_gap", [0.0, 1.0, -math.inf, math.nan])
def test_impossible_gaps_are_refused(log_gap):
    with pytest.raises(ConfigurationError, match="log_gap"):
        cap(3, log_gap)


@pytest.mark.parametrize("gamma", [0.0, 1.0, -0.5, math.nan])
def test_impossible_thresholds_are_refused(gamma):
    with pytest.raises(ConfigurationError, match="gamma"):
        log_gap_of(gamma)
