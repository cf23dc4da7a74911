"""What a comparison states holds, whatever the labels; the accuracies alone read them."""

import dataclasses
import math

import msgspec
import numpy as np
import pytest

from p2p_labeldp import comparing, config, experiment
from p2p_labeldp.accounting.subsampled import SubsampledGaussian
from p2p_labeldp.comparing import methods
from p2p_labeldp.comparing.trials import _trainers_coins
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.staged_rr import TwoStageRR

IRIS = config.load("iris")
BREAST_CANCER = config.load("breast-cancer", ["data.peers=120", "clusters.count=4"])


@pytest.fixture(scope="module", params=[IRIS, BREAST_CANCER], ids=["three classes", "two classes"])
def found(request):
    return comparing.compare(request.param, seed=3, trials=3)


def by_key(found):
    return {row.key: row for row in found.rows}


def test_every_guarantee_is_within_what_was_asked(found):
    for key, row in by_key(found).items():
        if key in ("none", "majority"):
            assert math.isinf(row.epsilon)
            assert row.guarantee.startswith("none")
        else:
            assert 0.99 < row.epsilon <= 1.0
            assert f"for tables that {row.neighbours}, against {row.against}" in row.guarantee


def test_deltas_belong_together(found):
    rows = by_key(found)
    assert rows["resampling"].delta == 1 / found.cluster_sizes[0] ** 2
    assert rows["dp_sgd"].delta == min(rows["resampling"].delta, 1 / found.trained_on)
    assert {key for key, row in rows.items() if row.delta == 0} == set(rows) - {"resampling", "dp_sgd"}


def test_local_epsilons_tell_who_sees_true_labels(found):
    rows = by_key(found)
    for row in rows.values():
        assert math.isinf(row.local_epsilon) == (row.trusted != "nobody")
    assert rows["uniform_rr"].local_epsilon == rows["uniform_rr"].epsilon
    assert rows["two_stage_rr"].local_epsilon == 1.0
    assert rows["resampling"].local_epsilon > 1.5


def test_trials_are_the_runs_of_the_same_seeds(found):
    """An independent way to the same numbers: ``run``, seed by seed."""
    chosen = IRIS if len(found.classes) == 3 else BREAST_CANCER
    runs = [experiment.run(chosen, engine="population", seed=seed).result for seed in (3, 4, 5)]
    rows = by_key(found)
    assert rows["resampling"].accuracies == tuple(run.accuracy.private for run in runs)
    assert rows["none"].accuracies == tuple(run.accuracy.non_private for run in runs)
    assert rows["majority"].accuracies == tuple(run.accuracy.majority for run in runs)
    for kind in ("uniform_rr", "cluster_rr"):
        other = msgspec.structs.replace(chosen, mechanism=config.Mechanism(kind=kind))
        said = [experiment.run(other, engine="population", seed=seed).result for seed in (3, 4, 5)]
        assert rows[kind].accuracies == tuple(run.accuracy.private for run in said)
        assert rows[kind].epsilon == said[0].views[0].epsilon


def test_the_second_seed_gives_other_trials(found):
    chosen = IRIS if len(found.classes) == 3 else BREAST_CANCER
    other = comparing.compare(chosen, seed=4, trials=2)
    for row, moved in zip(found.rows, other.rows, strict=True):
        assert row.accuracies[1:] == moved.accuracies  # and the same seeds the same ones
    assert any(row.accuracies[0] != row.accuracies[1] for row in found.rows)


def write(path, labels):
    features = np.random.default_rng(0).normal(size=(len(labels), 3))
    lines = [",".join([*map(str, row), label]) for row, label in zip(features.round(4), labels, strict=True)]
    path.write_text("\n".join(["a,b,c,outcome", *lines]) + "\n")
    return str(path)


def test_all_but_accuracies_is_the_same_for_other_labels(tmp_path):
    labels = ["ill", "well", "well"] * 40
    said = []
    for number, given in enumerate((labels, labels[::-1])):
        csv = write(tmp_path / f"{number}.csv", given)
        chosen = config.from_mapping({"data": {"csv": csv, "label": "outcome"}, "clusters": {"count": 3}})
        record = comparing.plain(comparing.compare(chosen, seed=0, trials=2))
        accuracies = [[row.pop(name) for name in ("accuracy", "low", "high", "accuracies")] for row in record["rows"]]
        said.append((record, accuracies))
    assert said[0][0] == said[1][0]
    assert said[0][1] != said[1][1]


def test_own_data_has_public_splits_and_secret_coins(tmp_path):
    csv = write(tmp_path / "t.csv", ["ill", "well", "well"] * 40)
    chosen = config.from_mapping({"data": {"csv": csv, "label": "outcome"}, "clusters": {"count": 3}})
    first, second = (by_key(comparing.compare(chosen, seed=None, trials=4)) for _ in range(2))
    assert first["none"].accuracies == second["none"].accuracies
    assert len(set(first["none"].accuracies)) > 1  # other rows are held out
    draws = [_trainers_coins(seed).random(4).tolist() for seed in (None, None, 1, 1, 2)]
    assert draws[0] != draws[1]
    assert draws[2] == draws[3] != draws[4]


def test_dp_sgd_spends_what_its_steps_compose_to():
    chosen = methods.trainer(epsilon=1.0, delta=1e-3)
    spent = methods.trainers_epsilon(chosen, 1e-3)
    composed = SubsampledGaussian(noise_multiplier=chosen.noise_multiplier, sampling_probability=1.0, steps=20)
    assert spent <= 1.0
    assert composed.pld_epsilon(1e-3) == pytest.approx(spent, rel=2e-3)
    assert methods.trainers_epsilon(methods.trainer(epsilon=1e-5, delta=1e-3), 1e-3) <= 1e-5


def test_dp_sgd_lets_a_row_move_its_own_gradient_alone(monkeypatch):
    """What its guarantee counts on: tables that differ in one row differ in one row when they are trained on."""
    seen = []

    def kept(self, features, labels, *, num_classes, rng):
        seen.append(features)
        return np.zeros((num_classes, features.shape[1] + 1))

    monkeypatch.setattr(methods.DPSGD, "fit", kept)
    split = experiment.split_of(IRIS, seed=3, data_directory=None)
    neighbour = split.train_features.copy()
    neighbour[7] *= 1000.0
    for features in (split.train_features, neighbour):
        methods.measured(
            methods.trainer(epsilon=1.0, delta=1e-3),
            dataclasses.replace(split, train_features=features),
            np.random.default_rng(0),
        )
    assert np.flatnonzero((seen[0] != seen[1]).any(axis=1)).tolist() == [7]


def test_two_stages_say_what_their_mechanism_is_built_for():
    assert methods.STAGED["two_stage_rr"](3, 0.7) == TwoStageRR(num_classes=3, epsilon=0.7)
    one_stage = methods.STAGED["one_stage_rr"](3, 0.7)
    assert one_stage.needs_curator
    assert 0.69 < one_stage.epsilon <= 0.7


@pytest.mark.parametrize(
    ("changes", "trials", "seed", "field"),
    [
        (["mechanism.kind=uniform_rr"], 3, 0, "mechanism.kind"),
        (["exchange.kind=permute"], 3, 0, "exchange.kind"),
        (["mechanism.flip_probability=0.1"], 3, 0, "mechanism.flip_probability"),
        ([], 1, 0, "trials"),
        ([], 1001, 0, "trials"),
        ([], 3, -1, "seed"),
        ([], 3, 2**64 - 2, "seed"),
        (["policy.minimum_size=100"], 2, 0, "policy.minimum_size"),
    ],
)
def test_what_cannot_be_compared_is_refused(changes, trials, seed, field):
    with pytest.raises(ConfigurationError) as caught:
        comparing.compare(config.load("iris", changes), seed=seed, trials=trials)
    assert caught.value.field == field
