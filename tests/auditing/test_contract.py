"""The contract suite passes mechanisms that keep it and names the clause that one breaks."""

import math
import random

import numpy as np
import pytest

from p2p_labeldp.auditing import contract
from p2p_labeldp.auditing.audit import audit
from p2p_labeldp.auditing.conformance import Verdict
from p2p_labeldp.auditing.mechanism import Mechanism, ShowsRounds, Source, measured_epsilon
from p2p_labeldp.errors import ConfigurationError

from . import broken_mechanisms as broken


class Response:
    """K-ary randomized response."""

    def __init__(self, epsilon=1.0, classes=3):
        self.epsilon, self.classes = epsilon, classes
        self.keep = math.exp(epsilon) / (math.exp(epsilon) + classes - 1)

    @property
    def channel(self):
        matrix = np.full((self.classes, self.classes), (1 - self.keep) / (self.classes - 1))
        np.fill_diagonal(matrix, self.keep)
        return matrix

    def sample(self, labels, rng):
        lies = rng.integers(1, self.classes, size=labels.shape)
        return np.where(rng.random(labels.shape) < self.keep, labels, (labels + lies) % self.classes)


class Algorithm2:
    """Shows its rounds, and claims the local epsilon."""

    classes = 2
    simulator = broken.Simulator

    def __init__(self, flip_probability=0.1):
        self.flip_probability = flip_probability
        self.epsilon = math.log(1 / flip_probability - 1)

    def show(self, labels, rng):
        inner = self.simulator(flip_probability=self.flip_probability, seed=0)
        inner.rng = rng
        return inner(labels=labels)

    def sample(self, labels, rng):
        return self.show(labels, rng).reports


def broken_clauses(mechanism, **more):
    return set(contract.check(mechanism, **{"cluster_size": 4, "seed": 1, "trials": 20_000} | more).broken)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_randomized_response_keeps_the_contract(classes):
    report = contract.check(Response(classes=classes), cluster_size=4, seed=1, trials=20_000)
    assert not report.broken
    assert set(report.clauses) == {
        *("outputs", "determinism", "randomness", "channel", "channel_observed", "channel_epsilon", "claim"),
    }
    assert 0.3 < report.bound.epsilon_lower <= 1.0
    assert "claim: holds" in str(report)


def test_algorithm_2_keeps_the_contract_and_is_looked_into():
    report = contract.check(Algorithm2(), cluster_size=8, seed=1)
    assert not report.broken
    assert report.conformance.verdict is Verdict.PASS
    assert isinstance(Algorithm2(), Mechanism)
    assert isinstance(Algorithm2(), ShowsRounds)
    assert not isinstance(Response(), ShowsRounds)


@pytest.mark.parametrize("simulator", [broken.SelfExcluded, broken.FreshFlipForEachAsker, broken.Permutation])
def test_a_broken_algorithm_2_does_not_conform(simulator):
    mechanism = Algorithm2()
    mechanism.simulator = simulator
    assert "conformance" in broken_clauses(mechanism, cluster_size=16)


class Overclaims(Response):
    def __init__(self):
        super().__init__(epsilon=2.0)
        self.epsilon = 1.0


def test_an_epsilon_smaller_than_the_channel_s_is_refuted_twice():
    assert broken_clauses(Overclaims()) == {"channel_epsilon", "claim"}


def test_a_claim_is_refuted_without_a_channel_too():
    class Opaque(Overclaims):
        channel = None

    assert broken_clauses(Opaque()) == {"claim"}
    opaque = Opaque()
    opaque.epsilon = 2.0
    assert broken_clauses(opaque) == set()


def test_a_large_enough_delta_excuses_the_claim():
    mechanism = Overclaims()
    mechanism.delta = float(np.maximum(mechanism.channel[0] - math.e * mechanism.channel[1], 0).sum())
    assert broken_clauses(mechanism) == set()
    mechanism.delta *= 0.8
    assert "channel_epsilon" in broken_clauses(mechanism)


def test_a_mechanism_that_shows_a_neighbour_s_label_is_refuted_on_clusters_though_not_alone():
    class Copies(Response):
        channel = None

        def sample(self, labels, rng):
            outputs = super().sample(labels, rng)
            outputs[:, -1] = labels[:, 0]  # the last member reports the first one's true label
            return outputs

    assert "claim" in broken_clauses(Copies(), cluster_size=2)
    # On four members the count of the others still betrays it.
    assert "claim" in broken_clauses(Copies(), cluster_size=4)


def variant(**methods):
    return type("Variant", (Response,), methods)()


def float_outputs(self, labels, rng):
    return Response.sample(self, labels, rng).astype(float)


def out_of_range(self, labels, rng):
    return Response.sample(self, labels, rng) + 1


def flattened(self, labels, rng):
    return Response.sample(self, labels, rng).ravel()


def changes_labels(self, labels, rng):
    labels[:] = Response.sample(self, labels, rng)
    return labels


def own_entropy(self, labels, rng):
    return Response.sample(self, labels, np.random.default_rng())


def global_entropy(self, labels, rng):
    random.random()
    return Response.sample(self, labels, rng)


def one_seed(self, labels, rng):
    return Response.sample(self, labels, np.random.default_rng(3))


def lie_that_may_be_the_truth(self, labels, rng):
    return np.where(rng.random(labels.shape) < self.keep, labels, rng.integers(0, self.classes, size=labels.shape))


@pytest.mark.parametrize(
    ("sample", "clause"),
    [
        (float_outputs, "outputs"),
        (out_of_range, "outputs"),
        (flattened, "outputs"),
        (changes_labels, "outputs"),
        (own_entropy, "determinism"),
        (global_entropy, "determinism"),
        (one_seed, "randomness"),
        (lie_that_may_be_the_truth, "channel_observed"),
    ],
)
def test_each_broken_clause_is_named(sample, clause):
    assert clause in broken_clauses(variant(sample=sample))


@pytest.mark.parametrize(
    "channel",
    [
        np.full((3, 3), 1 / 2),
        np.full((2, 3), 1 / 3),
        np.array([[1.5, -0.5, 0], [0, 1, 0], [0, 0, 1]]),
        np.full((3, 3), math.nan),
        Response(classes=3).channel.T * np.array([1.0, 1.0, 1 + 1e-9]),
    ],
)
def test_a_channel_that_is_none_is_named(channel):
    assert broken_clauses(variant(channel=channel)) == {"channel"}


def test_a_mechanism_without_randomness_may_be_one_if_it_claims_nothing():
    class Identity:
        classes = 2

        def sample(self, labels, rng):
            return labels.copy()

    assert broken_clauses(Identity()) == set()
    claims = Identity()
    claims.epsilon = 3.0
    assert broken_clauses(claims) == {"randomness", "claim"}


def test_a_claim_that_is_no_number_is_refused():
    for wrong in (-1.0, math.nan, True):
        mechanism = Response()
        mechanism.epsilon = wrong
        with pytest.raises(ConfigurationError, match="epsilon"):
            contract.check(mechanism, cluster_size=2, seed=1)


def test_the_measured_epsilon_of_one_label_comes_near_the_exact_one_and_stays_below():
    # 20 audits, each above the exact epsilon with probability 5e-8 at most: one of them is with 1e-6.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        bound = measured_epsilon(Response(), cluster_size=1, trials=60_000, rng=rng, confidence=1 - 5e-8)
        assert 0.8 < bound.epsilon_lower <= 1.0


def test_anybody_s_mechanism_can_be_audited():
    source = Source(mechanism=Algorithm2(), cluster_size=20, rng=np.random.default_rng(1))
    claim = {"cluster_size": 20, "flip_probability": 0.1, "trials": 20_000}
    result = audit(source.ones, **claim, draw_rounds=source.rounds)
    assert result.verdict is Verdict.PASS
    assert "self_picks" in result.conformance.p_values
    assert result.bound.epsilon_lower > 0.2

    class Blind(Algorithm2):
        show = None

        def sample(self, labels, rng):
            return Algorithm2.show(self, labels, rng).reports

    source = Source(mechanism=Blind(), cluster_size=20, rng=np.random.default_rng(1))
    result = audit(source.ones, **claim, draw_rounds=source.rounds)
    assert result.verdict is Verdict.PASS
    assert "self_picks" not in result.conformance.p_values
    assert source.sample(ones=3, rounds=10).counts.shape == (10,)
