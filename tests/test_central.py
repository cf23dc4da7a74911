"""The mechanisms in one place, run from a configuration: what they release, promise and refuse."""

import gzip
import math

import numpy as np
import pytest
import tiny_images
from altering import altered

from p2p_labeldp import central, config, experiment
from p2p_labeldp.accounting.planning import plan_roster
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.experiment import run
from p2p_labeldp.facts import Accepted, Asked, Ended
from p2p_labeldp.mechanisms.release import LabelMechanism

SMALL = {"data": {"name": "breast-cancer", "peers": 80}, "clusters": {"count": 6, "minimum_size": 8}}
KINDS = ("uniform_rr", "cluster_rr", "none")


def small(kind, *overrides, base=SMALL):
    return config.from_mapping(base, [f"mechanism.kind={kind}", *overrides])


def images(kind, *overrides, name="mnist"):
    base = {"data": {"name": name}, "clusters": {"count": 8, "minimum_size": 4}}
    return small(kind, *overrides, base=base)


@pytest.mark.parametrize("kind", KINDS)
def test_every_label_is_released_and_the_guarantee_stated(kind):
    done = run(small(kind, "mechanism.target_epsilon=2"), engine="population", seed=1)
    result = done.result
    assert result.outcomes == {"reported": 80}
    assert sum(cluster.size for cluster in result.clusters) == 80
    wanted = math.inf if kind == "none" else pytest.approx(2.0, rel=1e-9)
    assert all(cluster.epsilon == wanted and cluster.delta == 0 for cluster in result.clusters)
    assert kind == "none" or all(cluster.epsilon <= 2 for cluster in result.clusters)
    views = {view.view: view.epsilon for view in result.views}
    assert views["learner"] == views["learner+all"] == wanted
    assert ("curator" in views) == (kind == "cluster_rr")
    assert views.get("curator", math.inf) == math.inf
    facts = list(done.facts)
    assert sum(isinstance(fact, Accepted) for fact in facts) == sum(isinstance(fact, Ended) for fact in facts) == 80
    assert not any(isinstance(fact, Asked) for fact in facts)
    assert result.unverified is False


def test_no_mechanism_is_the_non_private_model():
    result = run(small("none"), engine="population", seed=1).result
    assert result.accuracy.private == result.accuracy.non_private


@pytest.mark.parametrize("kind", ["uniform_rr", "cluster_rr"])
def test_one_seed_gives_one_release_and_another_seed_another(kind):
    first, again, other = (run(small(kind), engine="population", seed=seed).noisy for seed in (3, 3, 4))
    assert (first.labels == again.labels).all()
    assert first.labels.tolist() != other.labels.tolist()


@pytest.mark.parametrize("engine", ["processes", "virtual"])
@pytest.mark.parametrize("kind", KINDS)
def test_peers_play_resampling_only(kind, engine):
    with pytest.raises(ConfigurationError) as caught:
        experiment.prepare(small(kind), engine=engine, seed=0)
    assert str(caught.value) == (
        f"mechanism.kind: {kind!r} given; 'resampling' is what peers do, the other kinds are played by the population"
        " engine only"
    )
    experiment.prepare(small("resampling"), engine=engine, seed=0)


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["mechanism.flip_probability=0.1"], "mechanism.flip_probability: given with mechanism.kind 'cluster_rr'"),
        (["exchange.kind=permute"], "exchange.kind: 'permute' given with mechanism.kind 'cluster_rr'"),
        (["mechanism.target_epsilon=701"], "mechanism.target_epsilon: 701.0 given; 1e-06 to 700 is possible"),
        (["mechanism.floor=0.6"], "mechanism.floor: 0.6 given"),
        (["mechanism.noise_share=1"], "mechanism.noise_share: 1 given"),
        (["mechanism.kind=rr"], "mechanism.kind: 'rr' given; one of resampling, uniform_rr, cluster_rr, none"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(overrides, line):
    with pytest.raises(ConfigurationError) as caught:
        run(small("cluster_rr", *overrides), engine="population", seed=0)
    assert str(caught.value).startswith(line)


def test_none_is_a_kind_and_not_the_default():
    """``none`` takes other keys out of a configuration; here it is a word."""
    assert small("none").mechanism.kind == "none"
    assert small("cluster_rr", "mechanism.kind=none").mechanism.kind == "none"
    assert small("uniform_rr", "mechanism.target_epsilon=none").mechanism.target_epsilon == 1.0


@pytest.mark.parametrize("kind", ["uniform_rr", "cluster_rr"])
def test_ten_classes_of_which_two_are_absent(tiny, kind):
    prepared = experiment.prepare(images(kind), engine="population", seed=0, data_directory=str(tiny))
    assert set(prepared.split.train_labels) == set(range(8))
    assert isinstance(prepared.mechanism, LabelMechanism)
    assert prepared.mechanism.num_classes == 10
    played = central.play(prepared.mechanism, prepared.study.labels, prepared.clusters, seed=0)
    assert played.labels.max() < 10
    assert (played.targets is not None) == (kind == "uniform_rr")
    if played.targets is not None:
        assert played.targets.shape == (tiny_images.TRAIN, 10)
        assert played.targets.sum(axis=1) == pytest.approx(1)
    whole = np.arange(tiny_images.TRAIN) % 10
    full = central.mechanism_of(images(kind), 10)
    assert full == prepared.mechanism  # made of the configuration and the number of classes alone
    assert central.play(full, whole, prepared.clusters, seed=0).labels.shape == played.labels.shape
    done = run(images(kind, "mechanism.target_epsilon=8"), engine="population", seed=0, data_directory=str(tiny))
    assert done.result.accuracy.private > 0.5  # eight classes


def test_ten_classes_are_resampled_by_their_certified_bound(tiny):
    chosen = images("resampling", "mechanism.target_epsilon=8")
    done = run(chosen, engine="population", seed=0, data_directory=str(tiny))
    assert done.result.views[0].method.startswith("certified bound: resampling, 10 classes")
    for cluster in done.result.clusters:
        plan = plan_roster(cluster.size, 8.0, 0.05, num_classes=10)
        assert (cluster.flip_probability, cluster.epsilon) == (plan.flip_probability, 8.0)


@pytest.fixture
def own(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(rng.integers(20, 80), round(rng.uniform(18, 35), 1), ("low", "middle", "high")[i % 3]) for i in range(90)]
    path = tmp_path / "own.csv"
    path.write_text("age,bmi,outcome\n" + "".join(f"{age},{bmi},{outcome}\n" for age, bmi, outcome in rows))
    return {"data": {"csv": str(path), "label": "outcome"}, "clusters": {"count": 3, "minimum_size": 8}}


@pytest.mark.parametrize("kind", ["uniform_rr", "cluster_rr"])
def test_ones_own_table_is_played_in_one_place_too_with_the_operating_systems_coins(own, kind):
    first, second = (run(small(kind, base=own), engine="population", seed=None) for _ in range(2))
    assert [(cluster.epsilon <= 1, cluster.delta) for cluster in first.result.clusters] == [(True, 0.0)] * 3
    assert (first.result.seed, first.result.accuracy.non_private) == (None, None)
    assert first.noisy.names == ("age", "bmi")
    # 72 labels of three classes, at most three quarters of each certain, agree by chance with a probability below 1e-6
    assert first.noisy.labels.tolist() != second.noisy.labels.tolist()


def test_labels_of_ones_own_table_leave_as_they_are_with_a_seed_only(own):
    with pytest.raises(ConfigurationError, match=r"mechanism\.kind: 'none' given, which would keep the labels of own"):
        experiment.prepare(small("none", base=own), engine="population", seed=None)
    done = run(small("none", base=own), engine="population", seed=1)
    assert done.result.study
    assert done.result.accuracy.private == done.result.accuracy.non_private


def test_unverified_data_are_said_so_in_the_result(tiny):
    path = tiny / "mnist" / "train-images-idx3-ubyte.gz"
    content = tiny_images.CONTENTS["mnist"]["train-images-idx3-ubyte"]
    path.write_bytes(gzip.compress(altered(content)))
    with pytest.raises(ConfigurationError, match="is altered"):
        run(images("none"), engine="population", seed=0, data_directory=str(tiny))
    done = run(images("none", "data.verify=false"), engine="population", seed=0, data_directory=str(tiny))
    assert done.result.unverified


def test_the_corrected_loss_is_used_where_there_is_a_correction(monkeypatch):
    from p2p_labeldp.learning import erm

    seen = []
    monkeypatch.setattr(erm, "fit_targets", lambda features, targets: seen.append(targets) or _constant())
    run(small("cluster_rr"), engine="population", seed=0)
    assert seen == []
    run(small("uniform_rr", "learner.model=naive_bayes"), engine="population", seed=0)
    assert seen == []
    run(small("uniform_rr"), engine="population", seed=0)
    assert len(seen) == 1


def _constant():
    class Constant:
        def predict(self, features):
            return np.zeros(len(features))

    return Constant()
