"""A configuration and a seed give one result on every engine; what is impossible is told before anything starts."""

import collections
import math
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

import p2p_labeldp
from p2p_labeldp import clustering, config, experiment
from p2p_labeldp.accounting import shuffle
from p2p_labeldp.accounting.planning import holding_minimum, plan_roster, roster_epsilon
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.experiment import playing, prepare, preparing, run
from p2p_labeldp.facts import Accepted, Asked, Ended, Joined, Outcome, Reason, transcript
from p2p_labeldp.mechanisms.randomized_response import local_epsilon
from p2p_labeldp.network import virtual

SMALL = {"data": {"name": "breast-cancer", "peers": 60}, "clusters": {"count": 6, "minimum_size": 8}}


def small(*overrides):
    return config.from_mapping(SMALL, overrides)


def timeless(result):
    """All but what depends on the clock and on the network."""
    return msgspec.structs.replace(result, seconds={}, messages=None, bytes=None)


def test_the_engines_agree_on_transcript_reports_and_accuracy_for_twenty_seeds():
    shapes, transcripts = [], set()
    for seed in range(20):
        c = small("output.reports=true")
        arrays, peers = run(c, engine="population", seed=seed), run(c, engine="virtual", seed=seed)
        assert transcript(arrays.facts) == transcript(peers.facts)
        assert timeless(arrays.result) == timeless(peers.result)
        assert (arrays.noisy.features == peers.noisy.features).all()
        assert (arrays.noisy.labels == peers.noisy.labels).all()
        assert arrays.result.outcomes == {"reported": 60}
        shapes.append([cluster.size for cluster in arrays.result.clusters])
        transcripts.add(tuple(transcript(arrays.facts)))
    assert len(transcripts) == 20
    assert all(max(sizes) > min(sizes) for sizes in shapes)
    assert any(min(sizes) == 8 for sizes in shapes)  # one at the minimum


@pytest.mark.parametrize("engine", ["population", "virtual"])
def test_one_seed_gives_one_result_and_another_seed_another(engine):
    first, again, other = (run(small("output.reports=true"), engine=engine, seed=seed) for seed in (3, 3, 4))
    assert timeless(first.result) == timeless(again.result)
    assert list(first.facts) == list(again.facts)
    assert first.result.reports != other.result.reports


@pytest.mark.parametrize("engine", ["population", "virtual"])
def test_the_result_says_what_each_cluster_is_promised(engine):
    done = run(small("mechanism.target_epsilon=2"), engine=engine, seed=1)
    sizes = prepare(small(), engine=engine, seed=1).sizes.tolist()
    assert [(cluster.id, cluster.size) for cluster in done.result.clusters] == list(enumerate(sizes))
    for cluster in done.result.clusters:
        plan = plan_roster(cluster.size, 2.0, 0.05)
        assert cluster.flip_probability == plan.flip_probability
        assert cluster.delta == 1 / cluster.size**2
        found = roster_epsilon(cluster.size, plan.holding_minimum, plan.flip_probability, plan.delta)
        assert cluster.epsilon == 2.0  # what it was planned for; the least is within the flip's digits of it
        assert found <= 2.0 < 1.0001 * found
        assert cluster.local_epsilon == pytest.approx(
            math.log((1 - cluster.flip_probability) / cluster.flip_probability)
        )


def test_no_epsilon_is_above_its_target():
    c = config.from_mapping(
        {"data": {"name": "synthetic", "peers": 1400}, "clusters": {"count": 90, "minimum_size": 2}}
    )
    result = run(c, engine="population", seed=0).result
    searched = [
        roster_epsilon(cluster.size, holding_minimum(cluster.size, 0.05), cluster.flip_probability, cluster.delta)
        for cluster in result.clusters
    ]
    assert max(searched) > 1  # where the search ends beyond it
    assert all(0.99 < cluster.epsilon <= 1 for cluster in result.clusters)


def test_a_given_flip_is_used_in_every_cluster_and_its_epsilon_worked_out_for_the_tolerated_loss():
    done = run(small("mechanism.flip_probability=0.2", "mechanism.tolerated_loss=0.3"), engine="population", seed=0)
    assert {cluster.flip_probability for cluster in done.result.clusters} == {0.2}
    for cluster in done.result.clusters:
        minimum = holding_minimum(cluster.size, 0.3)
        assert cluster.epsilon == roster_epsilon(cluster.size, minimum, 0.2, cluster.delta)


def test_without_flips_every_epsilon_is_infinite():
    done = run(small("mechanism.flip_probability=0"), engine="population", seed=0)
    assert all(cluster.epsilon == cluster.local_epsilon == math.inf for cluster in done.result.clusters)


def test_a_cluster_below_the_peers_minimum_abstains_on_every_engine():
    c = small("policy.minimum_size=12")
    arrays, peers = run(c, engine="population", seed=0), run(c, engine="virtual", seed=0)
    sizes = [cluster.size for cluster in arrays.result.clusters]
    abstaining = sum(size for size in sizes if size < 12)
    assert 0 < abstaining < 60
    assert arrays.result.outcomes == peers.result.outcomes == {"reported": 60 - abstaining, "abstained": abstaining}
    assert transcript(arrays.facts) == transcript(peers.facts)
    assert timeless(arrays.result) == timeless(peers.result)
    reasons = collections.Counter(fact.reason for fact in arrays.facts if isinstance(fact, Ended))
    assert reasons == {None: 60 - abstaining, Reason.CLUSTER_TOO_SMALL: abstaining}
    assert len(arrays.noisy.labels) == 60 - abstaining


@pytest.mark.parametrize("engine", ["population", "virtual"])
def test_without_a_report_there_is_no_model(engine):
    done = run(small("policy.minimum_size=60"), engine=engine, seed=0)
    assert done.result.outcomes == {"abstained": 60}
    assert done.result.accuracy.private is None
    assert done.result.accuracy.non_private > done.result.accuracy.majority > 0.5
    assert done.noisy.features.shape == (0, 30)


# --- a trusted shuffler ---------------------------------------------------------------------------------------------


def test_a_permutation_with_a_given_flip_carries_the_shuffles_epsilon():
    flip = ("mechanism.flip_probability=0.1",)
    done = run(small("exchange.kind=permute", *flip), engine="population", seed=0).result
    for cluster in done.clusters:
        found = shuffle.epsilon(cluster_size=cluster.size, flip_probability=0.1, delta=1 / cluster.size**2)
        assert (cluster.flip_probability, cluster.delta) == (0.1, 1 / cluster.size**2)
        assert cluster.epsilon == found
        assert cluster.epsilon <= cluster.local_epsilon
    assert done.views[0].epsilon == max(cluster.epsilon for cluster in done.clusters)
    assert done.views[0].method.startswith("exact: permutation")


def test_a_permutation_is_planned_by_the_shuffles_own_epsilon():
    c = small("mechanism.target_epsilon=0.8", "exchange.kind=permute")
    done = run(c, engine="population", seed=0).result
    for cluster in done.clusters:
        held = shuffle.epsilon(
            cluster_size=cluster.size, flip_probability=cluster.flip_probability, delta=cluster.delta
        )
        missed = shuffle.epsilon(
            cluster_size=cluster.size, flip_probability=cluster.flip_probability * 0.999, delta=cluster.delta
        )
        assert held == cluster.epsilon <= 0.8 < missed
    resampled = run(small("mechanism.target_epsilon=0.8", "mechanism.tolerated_loss=0"), engine="population", seed=0)
    for permuted, other in zip(done.clusters, resampled.result.clusters, strict=True):
        assert permuted.flip_probability > other.flip_probability  # a shuffle is the dearer of the two


def test_in_a_permutation_each_peer_serves_one_asker_and_in_resampling_not():
    for kind, once in (("permute", True), ("resample", False)):
        facts = run(small(f"exchange.kind={kind}"), engine="population", seed=0).facts
        served = [fact.mate for fact in facts if isinstance(fact, Asked)]
        assert len(served) == 60
        assert (sorted(served) == list(range(60))) is once


# --- who learns what ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["population", "virtual"])
def test_every_result_says_who_learns_what_in_the_worst_cluster(engine):
    done = run(small(), engine=engine, seed=0).result
    alone, one, everyone, mates = done.views
    assert [view.view for view in done.views] == ["learner", "learner+1", "learner+all", "mates"]
    assert alone.epsilon == max(cluster.epsilon for cluster in done.clusters)
    assert alone.delta == max(cluster.delta for cluster in done.clusters)
    assert everyone.epsilon == max(cluster.local_epsilon for cluster in done.clusters)
    assert (everyone.delta, mates.epsilon, mates.delta) == (0, 0, 0)
    assert one.delta > max(1 / cluster.size * (1 - cluster.flip_probability) for cluster in done.clusters)
    assert 0 < one.epsilon < everyone.epsilon
    assert alone.method.startswith("exact: resampling")
    assert alone.method.endswith(f"worst of {len(done.clusters)} disjoint clusters")


def test_reports_are_listed_only_when_asked_for():
    assert run(small(), engine="population", seed=0).result.reports is None
    done = run(small("output.reports=true"), engine="population", seed=0)
    accepted = [(fact.peer, fact.cluster, fact.label) for fact in done.facts if isinstance(fact, Accepted)]
    assert [(report.peer, report.cluster, report.label) for report in done.result.reports] == accepted
    assert len(accepted) == 60


def test_only_features_are_clustered(monkeypatch):
    seen = []
    fit = clustering.fit
    monkeypatch.setattr(
        clustering, "fit", lambda features, **rest: seen.append((features, rest)) or fit(features, **rest)
    )
    prepared = prepare(small(), engine="population", seed=0)
    [(features, rest)] = seen
    assert features is prepared.split.train_features
    assert rest == {"count": 6, "minimum_size": 8, "seed": 0}


def test_messages_are_counted_where_there_are_any():
    assert run(small(), engine="population", seed=0).result.messages is None
    played = run(small(), engine="virtual", seed=0).result
    assert played.messages > 60
    assert played.bytes is None


def test_seconds_have_the_phases_and_a_total():
    assert list(run(small(), engine="population", seed=0).result.seconds) == [
        "prepare",
        "round",
        "learn",
        "account",
        "total",
    ]
    given = [f"exchange.deadlines.{name}={value}" for name, value in (("join", 30), ("exchange", 7), ("report", 9.5))]
    seconds = run(small(*given, "network.gossip_period=2"), engine="virtual", seed=0).result.seconds
    assert [seconds[name] for name in ("join", "exchange", "closing", "report")] == [30, 7, 4, 9.5]


def test_versions_name_the_package_and_what_it_computed_with():
    versions = run(small(), engine="population", seed=0).result.versions
    assert versions["p2p_labeldp"] == p2p_labeldp.__version__
    assert versions["numpy"] == np.__version__
    assert {"python", "scikit_learn", "scipy"} <= set(versions)


# --- the engine with processes, played by the virtual one ---------------------------------------------------------


class Watched(experiment.Silence):
    def __init__(self):
        self.told = []

    def playing(self, *, peers, clusters, engine, pace):
        self.told.append((peers, clusters, engine))

    def happened(self, fact):
        self.told.append(fact)

    def learning(self):
        self.told.append("learning")


def fake_launcher(drop=()):
    def play(study, *, on_fact):
        played = virtual.play(study)
        for fact in played.facts:
            on_fact(fact)
        kept = [fact for fact in played.facts if not (isinstance(fact, Ended) and fact.peer in drop)]
        return virtual.Played(facts=kept, collected=played.collected, messages=played.messages, bytes=12345)

    return SimpleNamespace(play=play)


def test_the_launchers_facts_are_passed_on_as_they_arrive(monkeypatch):
    monkeypatch.setattr(playing, "_launcher", fake_launcher)
    watched = Watched()
    done = run(small("network.peers_per_process=7"), engine="processes", seed=2, progress=watched)
    assert watched.told[0] == (60, len(done.result.clusters), "processes")
    assert watched.told[1:-1] == done.facts
    assert watched.told[-1] == "learning"
    assert sum(isinstance(fact, Joined) for fact in watched.told) == 60
    assert done.result.bytes == 12345
    assert transcript(done.facts) == transcript(run(small(), engine="population", seed=2).facts)


def test_a_peer_of_which_no_end_is_known_has_failed(monkeypatch):
    monkeypatch.setattr(playing, "_launcher", lambda: fake_launcher(drop={4, 7}))
    assert run(small(), engine="processes", seed=2).result.outcomes == {"reported": 58, "failed": 2}


def test_an_interrupt_passes_through(monkeypatch):
    def play(study, *, on_fact):
        raise KeyboardInterrupt

    monkeypatch.setattr(playing, "_launcher", lambda: SimpleNamespace(play=play))
    with pytest.raises(KeyboardInterrupt):
        run(small(), engine="processes", seed=0)


# --- what is impossible --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", experiment.ENGINES)
@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["data.name=nosuch"], "data.name: 'nosuch' given"),
        (["data.peers=5000"], "data.peers: 5000 given; breast-cancer has 2 to 455 training rows"),
        (["clusters.count=61"], "clusters.count: 61 given; 1 to 60"),
        (["clusters.minimum_size=61"], "clusters.minimum_size: 61 given; 1 to 60"),
        (["topology.kind=file", "topology.path=/nonexistent"], "topology.path: '/nonexistent' can't be read"),
        (["data.peers=56", "clusters.count=2", "topology.degree=1"], "topology.degree: 1 given for 56 peers"),
    ],
)
def test_an_impossible_experiment_is_refused_before_anything_starts(monkeypatch, engine, overrides, line):
    monkeypatch.setattr(playing, "_launcher", lambda: pytest.fail("the launcher was asked"))
    monkeypatch.setattr(virtual, "play", lambda _study: pytest.fail("a round was played"))
    with pytest.raises(ConfigurationError) as caught:
        run(small(*overrides), engine=engine, seed=0)
    assert str(caught.value).startswith(line)


@pytest.mark.parametrize("overrides", [["policy.epsilon=1"], ["policy.colluders=2", "policy.colluder_epsilon=1"]])
def test_limits_of_peers_are_refused_where_there_are_none(overrides):
    with pytest.raises(ConfigurationError, match="it is peers that keep limits"):
        run(small(*overrides), engine="population", seed=0)


def test_peers_keep_the_limits_of_the_configuration():
    """At epsilon 1 these clusters have a local epsilon around 2.5: a limit of 1 stops everybody, one of 5 nobody."""
    for limit, outcome in ((1, "refused"), (5, "reported")):
        played = run(small(f"policy.local_epsilon={limit}"), engine="virtual", seed=0).result
        assert played.outcomes == {outcome: played.peers}


@pytest.mark.parametrize("engine", ["processes", "virtual"])
def test_a_permutation_is_refused_where_peers_talk(monkeypatch, engine):
    monkeypatch.setattr(playing, "_launcher", lambda: pytest.fail("the launcher was asked"))
    with pytest.raises(ConfigurationError) as caught:
        run(small("exchange.kind=permute"), engine=engine, seed=0)
    assert str(caught.value) == (
        "exchange.kind: 'permute' given; 'resample' is what peers can do, a trusted shuffler exists on the population"
        " engine only"
    )


def test_a_graph_in_two_parts_is_refused(tmp_path):
    path = tmp_path / "edges"
    edges = [(i, i + 1) for i in range(59) if i != 29]
    path.write_text("\n".join(f"{a} {b}" for a, b in edges))
    overrides = ["topology.kind=file", f"topology.path={path}"]
    for engine in experiment.ENGINES:
        with pytest.raises(ConfigurationError, match=r"^topology\.path: the graph of .* is not connected: peer 30 "):
            prepare(small(*overrides), engine=engine, seed=0)
    path.write_text("\n".join(f"{a} {b}" for a, b in [*edges, (29, 30)]))
    assert prepare(small(*overrides), engine="population", seed=0).study.neighbours[29] == [28, 30]


@pytest.mark.parametrize(("engine", "seed"), [("process", 0), ("", 0), ("virtual", -1), ("virtual", 2**64)])
def test_an_unknown_engine_or_seed_is_refused(engine, seed):
    with pytest.raises(ConfigurationError):
        prepare(small(), engine=engine, seed=seed)


def test_a_cluster_larger_than_a_peers_tables_is_refused_by_real_peers_only(monkeypatch):
    monkeypatch.setattr(preparing, "MAX_CLUSTER_SIZE", 20)
    for engine in ("processes", "virtual"):
        with pytest.raises(ConfigurationError, match=r"^clusters.count: 6 gives a cluster of \d\d peers"):
            prepare(small(), engine=engine, seed=0)
    prepare(small(), engine="population", seed=0)


def test_every_peer_of_the_population_engine_asks_once_or_abstains():
    facts = list(run(small("policy.minimum_size=12"), engine="population", seed=0).facts)
    asked = {fact.peer for fact in facts if isinstance(fact, Asked)}
    abstained = {fact.peer for fact in facts if isinstance(fact, Ended) and fact.outcome is Outcome.ABSTAINED}
    assert asked | abstained == set(range(60))
    assert not asked & abstained


def test_the_packages_names_are_those_of_its_modules():
    assert p2p_labeldp.run is run
    assert p2p_labeldp.load is config.load
    for name in p2p_labeldp.__all__:
        assert getattr(p2p_labeldp, name) is not None
        assert name in dir(p2p_labeldp)
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = p2p_labeldp.nosuch


@pytest.mark.parametrize(("name", "classes"), [("iris", 3), ("digits-10", 10)])
def test_more_than_two_classes_run_the_same_on_machines_and_arrays(name, classes):
    chosen = config.load(name, ["data.peers=90", "clusters.count=3", "output.reports=true"])
    arrays, machines = (experiment.run(chosen, engine=engine, seed=4) for engine in ("population", "virtual"))
    assert transcript(arrays.facts) == transcript(machines.facts)
    assert arrays.result.reports == machines.result.reports
    for key in ("accuracy", "clusters", "views", "outcomes"):
        assert getattr(arrays.result, key) == getattr(machines.result, key)
    for cluster in arrays.result.clusters:
        plan = plan_roster(cluster.size, 1.0, 0.05, num_classes=classes)
        assert cluster.flip_probability == plan.flip_probability
        assert 0.99 < cluster.epsilon <= 1 < cluster.local_epsilon
        assert cluster.local_epsilon == local_epsilon(plan.flip_probability, classes)
    assert arrays.result.views[0].method.startswith(f"certified bound: resampling, {classes} classes, ")


def test_a_flip_that_would_tell_the_label_of_so_many_classes_is_refused():
    experiment.prepare(config.load("iris", ["mechanism.flip_probability=0.6"]), engine="population", seed=0)
    with pytest.raises(
        ConfigurationError, match=r"mechanism\.flip_probability: 0\.7 given; 0 to 0\.666667 is possible"
    ):
        experiment.prepare(config.load("iris", ["mechanism.flip_probability=0.7"]), engine="population", seed=0)
