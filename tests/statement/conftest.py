"""Rounds and runs, played once and kept: what the tests of this folder tamper with copies of."""

import shutil

import pytest

from p2p_labeldp import config, experiment
from p2p_labeldp.statement import Engine
from statement.rounds import play, write


@pytest.fixture(scope="session")
def kept(tmp_path_factory, study_of):
    """By engine: scene, run and directory of a round with real keys."""
    found = {}
    for engine in (Engine.PROCESSES, Engine.DEPLOYMENT):
        scene, run = play(study_of, engine=engine)
        found[engine] = scene, run, write(run, tmp_path_factory.mktemp("kept") / engine.value)
    return found


@pytest.fixture(scope="session")
def another(tmp_path_factory, study_of):
    """Another round of the same learner and peers: scene and directory."""
    scene, run = play(study_of, engine=Engine.PROCESSES, nonce=b"another".ljust(16))
    return scene, write(run, tmp_path_factory.mktemp("kept") / "another")


@pytest.fixture(scope="session")
def unsigned(tmp_path_factory):
    """Runs of engines without a key, by name."""
    small = ["data.peers=60", "clusters.count=4", "clusters.minimum_size=8"]
    shorter = {"data": {"name": "breast-cancer"}}
    runs = {
        "virtual": ("virtual", 1, []),
        "population": ("population", 1, []),
        "permutation": ("population", 1, ["exchange.kind=permute"]),
        "cluster_rr": ("population", 1, ["mechanism.kind=cluster_rr"]),
        "uniform_rr": ("population", 1, ["mechanism.kind=uniform_rr"]),
        "given flip": ("virtual", 1, ["mechanism.flip_probability=0.2"]),
        "no privacy": ("population", 1, ["mechanism.flip_probability=0"]),
        "no reports": ("population", 1, ["policy.minimum_size=60"]),
        "without a seed": ("population", None, []),
        "three classes": ("virtual", 1, ["data.name=iris"]),
    }
    place = tmp_path_factory.mktemp("unsigned")
    for name, (engine, seed, more) in runs.items():
        done = experiment.run(config.from_mapping(shorter, small + more), engine=engine, seed=seed)
        write(done, place / name)
    return place


@pytest.fixture(params=[Engine.PROCESSES, Engine.DEPLOYMENT])
def one(request, kept, tmp_path):
    """Scene, run and a directory to tamper with."""
    scene, run, directory = kept[request.param]
    return scene, run, shutil.copytree(directory, tmp_path / "one")
