"""From configuration to ledgers: one seed, one model on every engine, and what is stated of it."""

import dataclasses
import math

import msgspec
import numpy as np
import pytest

from p2p_labeldp import config
from p2p_labeldp.accounting.federated import Rounds, safe_projection
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.federated import experiment, population
from p2p_labeldp.federated.experiment import conclude, play, prepare
from p2p_labeldp.randomness import bulk_sampling_words

SMALL = ["data.peers=40", "updates.rounds=6", "updates.sampling_rate=0.4", "updates.central_epsilon=4"]


def prepared(*changes, name="updates", engine="population", seed=3):
    return prepare(config.load(name, [*SMALL, *changes]), engine=engine, seed=seed)


def done(*changes, **terms):
    one = prepared(*changes, **terms)
    return conclude(one, play(one))


@pytest.mark.parametrize("name", ["updates", "digits-10", "iris"])
def test_one_seed_is_one_model_in_memory_and_as_arrays(name):
    here, there = (done(name=name, engine=engine) for engine in ("population", "virtual"))
    assert here.parameters_digest == there.parameters_digest
    assert (here.cohorts, here.local, here.accuracy) == (there.cohorts, there.local, there.accuracy)
    assert here.parameters_digest != done(name=name, seed=4).parameters_digest


def test_several_local_steps_are_the_same_on_both_engines_too():
    steps = ["updates.local_steps=3", "updates.magnitude=relative"]
    here, there = (done(*steps, engine=engine) for engine in ("population", "virtual"))
    assert here.parameters_digest == there.parameters_digest != done().parameters_digest


def test_the_three_ledgers_are_those_of_the_rounds_that_were_played():
    one = prepared("updates.budget=12")
    played = play(one)
    result = conclude(one, played)
    planned = Rounds(population=40, sampling_rate=0.4, rounds=6, projection=safe_projection(one.mechanism))
    assert result.central.sigma == result.central.honest_sigma == planned.sigma_for(epsilon=4.0, delta=1e-9)
    assert result.central.epsilon == planned.epsilon(sigma=result.central.sigma, delta=1e-9)
    assert 3.99 < result.central.epsilon <= 4.0
    assert not result.central.reduced
    most = max(played.model.participations.values())
    assert (result.local.participations, result.local.epsilon, result.local.budget) == (most, 6.0 * most, 12.0)
    assert most == 2  # the budget's; q T is more
    assert sum(result.cohorts) == sum(played.model.participations.values())
    assert result.local.participations_mean == sum(result.cohorts) / 40
    assert result.reconstruction.participations == most
    assert result.reconstruction.prior < result.reconstruction.success < 1e-5  # e^(12 - 24.3)


@pytest.mark.parametrize("engine", ["population", "virtual"])
def test_a_budget_below_one_report_lets_nobody_report(engine):
    result = done("updates.budget=5.9", engine=engine)
    assert (result.cohorts, result.local.epsilon) == ([0] * 6, 0.0)
    assert ["nobody reports" in warning for warning in prepared("updates.budget=5.9").warnings] == [True]
    assert sum(done("updates.budget=6", engine=engine).cohorts) > 0


def test_a_model_that_runs_away_is_the_same_on_both_engines_and_no_peer_is_lost():
    """Beyond 1e100 peers take no model, and each round would wait for them in vain."""
    wild = ["updates.sigma=1e60", "updates.learning_rate=1e60"]
    here, there = (done(*wild, engine=engine) for engine in ("population", "virtual"))
    assert here.parameters_digest == there.parameters_digest
    assert here.cohorts == there.cohorts == done().cohorts
    assert there.local == here.local


def test_less_noise_than_the_target_takes_is_stated_as_what_it_guarantees():
    one = prepared("updates.sigma=0.5")
    assert ["sigma 0.5 is below" in warning for warning in one.warnings] == [True]
    result = conclude(one, play(one))
    assert result.central.reduced
    assert result.central.epsilon > 4.0 == result.central.target_epsilon
    assert result.central.honest_sigma > 0.5
    assert prepared().warnings == []


def test_without_noise_there_is_no_central_guarantee():
    result = done("updates.sigma=0")
    assert math.isinf(result.central.epsilon)
    assert result.local.epsilon < math.inf


def test_a_projection_that_shrinks_reports_is_warned_of_with_the_share():
    one = prepared("updates.projection=2")
    assert one.shrunk_share > 0.1
    assert ["are shrunk" in warning for warning in one.warnings] == [True]


def test_much_privacy_costs_accuracy_and_little_costs_little():
    changes = ["data.peers=400", "updates.budget=none", "updates.learning_rate=1"]
    little = done(*changes, "updates.epsilon_direction=100", "updates.epsilon_magnitude=20", "updates.sigma=0.001")
    assert little.accuracy.private == pytest.approx(little.accuracy.non_private, abs=0.02)
    assert little.accuracy.non_private > little.accuracy.majority + 0.2
    much = done(*changes, "updates.epsilon_direction=0.1", "updates.epsilon_magnitude=0.1")
    assert much.accuracy.private < little.accuracy.private - 0.1


def test_non_private_rounds_sample_as_the_private_ones_do():
    one = prepared("updates.sampling_rate=1", "updates.epsilon_direction=1000", "updates.epsilon_magnitude=60",
                   "updates.sigma=0", "updates.budget=1e6")  # fmt: skip
    private = np.array(play(one).model.parameters)
    assert private == pytest.approx(experiment.non_private(one), abs=0.02)


def test_the_scale_of_features_comes_from_rows_that_nobody_has_to_protect():
    one = prepared()
    assert one.study.terms.shift == tuple(one.split.test_features.mean(axis=0))
    other = prepared(engine="virtual")
    assert other.study.terms.scale == one.study.terms.scale


def test_bulk_sampling_is_each_peers_own_coin():
    words = bulk_sampling_words(3, 0, 200, 0)
    terms = prepared().study.terms
    for rate in (0.25, 0.4, 1.0):
        manifest = msgspec.structs.replace(terms, sampling_rate=rate).manifest(run_key=bytes(32), opened=0.0)
        bulk = population.sampled(words, manifest)
        assert bulk.tolist() == [manifest.takes_part(int(word)) for word in words]


@pytest.mark.parametrize(
    ("changes", "terms", "field"),
    [
        (["updates.model=oracle"], {}, "updates.model"),
        (["updates.central_epsilon=1e-9"], {}, "updates.central_epsilon"),
        (["updates.sampling_rate=1e-120"], {}, "updates.sigma"),  # as large as that takes, no manifest holds it
        (["updates.max_radius=1e100"], {}, "updates.projection"),
        ([], {"engine": "magic"}, "engine"),
        ([], {"seed": -1}, "seed"),
    ],
)
def test_what_is_impossible_is_refused_before_anything_starts(changes, terms, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        prepared(*changes, **terms)


def test_own_tables_are_refused_by_name():
    own = config.from_mapping({"data": {"csv": "patients.csv", "label": "x"}}, [])
    with pytest.raises(ConfigurationError, match=r"^data.csv: "):
        prepare(own, engine="population", seed=0)


def test_a_model_too_large_for_messages_is_for_the_population_engine(monkeypatch):
    monkeypatch.setattr(experiment, "MAX_DIMENSION", 30)
    with pytest.raises(ConfigurationError, match=r"^updates.model: .*31 parameters"):
        prepared(engine="virtual")
    assert prepared().model.dimension == 31


def test_a_population_without_a_seed_is_refused():
    with pytest.raises(ConfigurationError, match=r"^seed: "):
        population.play(dataclasses.replace(prepared().study, seed=None))
