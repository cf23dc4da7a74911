"""Attackers: their chances by enumeration and geometry, and mechanisms that are not what they state."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import betainc

from p2p_labeldp.auditing import reconstruction
from p2p_labeldp.auditing.reconstruction import Attack, attack_dictionary, attack_direction, posterior_chance
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.privunit import PrivUnit2
from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity
from p2p_labeldp.mechanisms.separated import Separated


def coin(seed=1):
    return np.random.default_rng(seed)


def share_above(dimension, cosine):
    """Share of the sphere beyond a cosine."""
    half = 0.5 * betainc((dimension - 1) / 2, 0.5, 1 - cosine**2)
    return half if cosine >= 0 else 1 - half


@pytest.mark.parametrize("dimension", [2, 3, 10, 200])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 50.0])
@pytest.mark.parametrize("alpha", [0.2, 0.9, 1.2, math.sqrt(2) - 1e-9, math.sqrt(2), 1.5, 1.99])
def test_the_posterior_is_the_share_of_the_ball_by_the_density_on_it(dimension, epsilon, alpha):
    mechanism = PrivUnit2.calibrated(dimension=dimension, epsilon=epsilon)
    ball, mass = share_above(dimension, 1 - alpha**2 / 2), share_above(dimension, mechanism.gamma)
    p = mechanism.cap_probability
    expected = p * min(ball, mass) / mass + (1 - p) * max(0.0, ball - mass) / (1 - mass)
    assert posterior_chance(mechanism, alpha) == pytest.approx(expected, rel=1e-7)


def test_a_ball_that_holds_everything_is_a_certain_breach():
    for dimension in (1, 2, 50):
        attack = attack_direction(
            PrivUnit2.calibrated(dimension=dimension, epsilon=1.0), alpha=2.0, trials=50, rng=coin()
        )
        assert (attack.success, attack.posterior, attack.standard_error) == (1.0, 1.0, 0.0)


def test_in_one_dimension_the_attack_is_binary_randomized_response():
    """Fails with probability 1e-6."""
    attack = attack_direction(PrivUnit2.calibrated(dimension=1, epsilon=1.0), alpha=1.0, trials=20_000, rng=coin())
    assert attack.posterior == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-9)
    assert abs(attack.success - attack.posterior) < 4.9 * attack.standard_error


@pytest.mark.parametrize(
    ("words", "members", "wrong"), [(3, 1, 0), (6, 3, 0), (6, 3, 1), (7, 2, 1), (5, 2, 2), (4, 0, 0)]
)
def test_the_dictionary_attack_is_the_best_one_by_enumeration_of_all_outputs(words, members, wrong):
    """Largest chance of success of any attacker: sum over outputs of the best guess's. Fails with probability 2e-6."""
    mechanism = PrivUnitInfinity.calibrated(dimension=words, epsilon=2.0)
    truths = list(itertools.combinations(range(words), members))
    outputs = np.array(list(itertools.product((-1.0, 1.0), repeat=words)))
    points = np.array([[1.0 if word in s else -1.0 for word in range(words)] for s in truths])
    law = np.exp(mechanism.log_density(outputs, points)) / 2.0**words
    assert law.sum(axis=0) == pytest.approx(np.ones(len(truths)))
    near = np.array([[len(set(guess) - set(truth)) <= wrong for truth in truths] for guess in truths])
    best = (law @ near.T).max(axis=1).sum() / len(truths)
    attack = attack_dictionary(mechanism, members=members, wrong=wrong, trials=20_000, rng=coin(2))
    assert abs(attack.success - best) <= 4.9 * math.sqrt(best * max(0.0, 1 - best) / attack.trials) + 1e-12
    assert abs(attack.posterior - best) <= 4.9 * 0.5 / math.sqrt(attack.trials)


def test_the_dictionary_attack_uses_every_release():
    """Against the largest chance by enumeration of all pairs of outputs. Fails with probability 2e-6."""
    mechanism = PrivUnitInfinity.calibrated(dimension=4, epsilon=1.0)
    outputs = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
    points = np.array([[1.0 if word in s else -1.0 for word in range(4)] for s in itertools.combinations(range(4), 2)])
    law = np.exp(mechanism.log_density(outputs, points)) / 16
    pairs = (law[:, None, :] * law[None, :, :]).reshape(256, 6)
    best = pairs.max(axis=1).sum() / 6
    attack = attack_dictionary(mechanism, members=2, wrong=0, trials=20_000, rng=coin(4), participations=2)
    assert abs(attack.success - best) < 4.9 * math.sqrt(best * (1 - best) / attack.trials)
    assert abs(attack.posterior - best) < 4.9 * 0.5 / math.sqrt(attack.trials)
    assert best > law.max(axis=1).sum() / 6 + 0.05  # one release is worth less than the test would miss


@dataclass(frozen=True)
class Liar:
    """States the density of one mechanism and releases by another."""

    stated: PrivUnitInfinity
    released: PrivUnitInfinity

    @property
    def dimension(self):
        return self.stated.dimension

    def unit_rows(self, updates):
        return self.stated.unit_rows(updates)

    def log_density(self, outputs, points):
        return self.stated.log_density(outputs, points)

    def privatise_many(self, updates, rng):
        return self.released.privatise_many(updates, rng)


@pytest.mark.parametrize(("spent", "differs"), [(1.5, False), (1.9, True), (1.1, True)])
def test_success_and_posterior_differ_where_the_samples_have_not_the_stated_density(spent, differs):
    """Fails with probability 1e-6."""
    stated, released = (PrivUnitInfinity.calibrated(dimension=7, epsilon=e) for e in (1.5, spent))
    attack = attack_dictionary(Liar(stated, released), members=3, wrong=1, trials=20_000, rng=coin(3))
    assert (abs(attack.success - attack.posterior) > 4.9 * attack.standard_error) is differs


def test_repeated_releases_are_attacked_with_more_success():
    """By twenty times the standard error."""
    mechanism = PrivUnit2.calibrated(dimension=20, epsilon=4.0)
    once, often = (attack_direction(mechanism, alpha=1.0, trials=4000, rng=coin(), participations=t) for t in (1, 16))
    assert often.success > once.success + 20 * once.standard_error
    assert once.posterior is not None
    assert often.posterior is None


def test_any_mechanism_that_privatises_rows_can_be_attacked():
    separated = Separated.calibrated(dimension=20, epsilon_direction=30.0, epsilon_magnitude=6.0, max_radius=1.0)
    for mechanism in (separated, PrivUnitG.calibrated(dimension=20, epsilon=30.0)):
        attack = attack_direction(mechanism, alpha=1.0, trials=500, rng=coin())
        assert attack.success > 0.8
        assert attack.posterior is None
        assert attack.standard_error == pytest.approx(math.sqrt(attack.success * (1 - attack.success) / 500))


class Silent:
    """Releases nothing."""

    dimension = 3

    def privatise_many(self, updates, rng):
        return np.zeros_like(updates)


def test_an_attacker_that_sees_nothing_guesses_a_direction_and_succeeds_as_the_prior_does():
    """And does not answer the centre of the sphere, which is within 1 of every direction. Fails with probability
    1e-6."""
    attack = attack_direction(Silent(), alpha=1.0, trials=20_000, rng=coin())
    assert abs(attack.success - 0.25) < 4.9 * math.sqrt(0.25 * 0.75 / 20_000)


def test_blocks_are_as_many_trials_as_asked_for(monkeypatch):
    monkeypatch.setattr(reconstruction, "_ENTRIES_AT_ONCE", 100)
    mechanism = PrivUnitInfinity.calibrated(dimension=7, epsilon=1.0)
    assert list(reconstruction._blocks(33, 7)) == [14, 14, 5]
    assert attack_direction(mechanism, alpha=2.0, trials=33, rng=coin()).breaches == 33
    assert attack_dictionary(mechanism, members=3, wrong=3, trials=33, rng=coin()).breaches == 33


def test_the_seed_decides():
    def attack(seed):
        return attack_direction(PrivUnit2.calibrated(dimension=5, epsilon=2.0), alpha=1.0, trials=500, rng=coin(seed))

    assert attack(1) == attack(1)
    assert attack(1).breaches != attack(2).breaches


def test_the_lower_bound_is_clopper_pearson_s():
    attack = Attack(trials=100, breaches=100, posterior=None, standard_error=0.0)
    assert attack.success_lower(0.99) == pytest.approx(0.01 ** (1 / 100))
    assert Attack(trials=100, breaches=0, posterior=None, standard_error=0.0).success_lower() == 0.0
    with pytest.raises(ConfigurationError, match="confidence"):
        attack.success_lower(1.0)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("alpha", 0.0),
        ("alpha", math.nan),
        ("alpha", math.inf),
        ("alpha", True),
        ("trials", 0),
        ("trials", 1.5),
        ("participations", 0),
    ],
)
def test_impossible_attacks_on_directions_are_refused(field, bad):
    good = {"alpha": 1.0, "trials": 5, "participations": 1}
    mechanism = PrivUnit2.calibrated(dimension=3, epsilon=1.0)
    assert attack_direction(mechanism, **good, rng=coin()).trials == 5
    with pytest.raises(ConfigurationError, match=field):
        attack_direction(mechanism, **{**good, field: bad}, rng=coin())


@pytest.mark.parametrize(
    ("field", "bad"),
    [("members", 6), ("members", -1), ("wrong", -1), ("wrong", 1.0), ("trials", 0), ("participations", 0)],
)
def test_impossible_attacks_on_dictionaries_are_refused(field, bad):
    good = {"members": 2, "wrong": 1, "trials": 5, "participations": 1}
    mechanism = PrivUnitInfinity.calibrated(dimension=5, epsilon=1.0)
    assert attack_dictionary(mechanism, **good, rng=coin()).trials == 5
    with pytest.raises(ConfigurationError, match=field):
        attack_dictionary(mechanism, **{**good, field: bad}, rng=coin())


def test_more_sets_than_can_be_enumerated_are_refused():
    mechanism = PrivUnitInfinity.calibrated(dimension=30, epsilon=1.0)
    assert attack_dictionary(mechanism, members=2, wrong=0, trials=5, rng=coin()).trials == 5
    with pytest.raises(ConfigurationError, match="members: 15 of 30 words given; at most 1000 sets"):
        attack_dictionary(mechanism, members=15, wrong=0, trials=5, rng=coin())
