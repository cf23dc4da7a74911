"""A directory that somebody made up keeps nobody busy, ends in one line, and promises no peer what it did not get."""

import json
import os
import shutil
from hashlib import sha256

import msgspec
import pytest

from p2p_labeldp.accounting import planning
from p2p_labeldp.config import Mechanism
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.study import CollectedRoster
from p2p_labeldp.promise import of_clusters, of_views
from p2p_labeldp.statement import Engine, Status, content, reading, verify
from statement.rounds import CONFIG, play, receipt_of, sign, write
from statement.verdicts import FILES


@pytest.fixture(scope="module")
def kept(tmp_path_factory, study_of):
    """Scene and directory of a round with real keys."""
    scene, run = play(study_of, engine=Engine.DEPLOYMENT)
    return scene, write(run, tmp_path_factory.mktemp("kept") / "one")


@pytest.fixture
def one(kept, tmp_path):
    """The same, to tamper with."""
    scene, directory = kept
    return scene, shutil.copytree(directory, tmp_path / "one")


def stated(directory):
    return content.from_file((directory / "guarantee.json").read_bytes()).statement


def texts(verdict, status=Status.FAILED):
    return {check.name: check.text for check in verdict.checks if check.status is status}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_regular_file_is_not_read(one, name):
    """A pipe that nobody writes to would be waited for, a device read for ever."""
    _, directory = one
    assert verify(directory).holds
    (directory / name).rename(directory.parent / "elsewhere")
    os.mkfifo(directory / name)
    with pytest.raises(ConfigurationError, match="No regular file"):
        verify(directory)
    (directory / name).unlink()
    (directory / name).symlink_to("/dev/zero")
    with pytest.raises(ConfigurationError, match="No regular file"):
        verify(directory)
    (directory / name).unlink()
    (directory / name).symlink_to(directory.parent / "elsewhere")  # the control
    assert verify(directory).holds


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_terabyte_of_nothing_is_given_up(one, name):
    _, directory = one
    os.truncate(directory / name, 1 << 40)
    with pytest.raises(ConfigurationError):
        verify(directory)


def test_a_line_without_end_comes_in_pieces(tmp_path):
    (tmp_path / "long").write_bytes(b"a\n" + b"b" * (reading.MAX_LINE_BYTES + 1))
    with reading.opened(tmp_path / "long") as file:
        assert [len(line) for line in reading.lines_of(file)] == [2, reading.MAX_LINE_BYTES, 1]


def test_a_deep_configuration_is_none(one):
    scene, directory = one
    deep = b"[" * 200_000
    (directory / "config.json").write_bytes(deep)
    sign(msgspec.structs.replace(stated(directory), config_hash=sha256(deep).hexdigest()), directory, learner(scene))
    assert texts(verify(directory))["config.json"].startswith("is no configuration")


def learner(scene):
    return scene.collector._keys


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"mechanism": Mechanism(kind="uniform_rr", target_epsilon=0.1)}, "uniform_rr is not played by peers"),
        ({"exchange": "permute"}, "permute is not played by peers"),
        ({}, ""),
    ],
)
def test_peers_played_only_what_peers_can_play(one, change, complaint):
    scene, directory = one
    sign(msgspec.structs.replace(stated(directory), **change), directory, learner(scene))
    assert complaint in texts(verify(directory / "guarantee.json")).get("terms", "")
    assert bool(complaint) == ("terms" in texts(verify(directory / "guarantee.json")))


def test_a_peer_with_the_file_alone_is_told_that_the_size_of_its_cluster_is_only_stated(one):
    """A learner signs that each cluster had thirty members: all fits, and only the rosters know better."""
    scene, directory = one
    honest, own = stated(directory), receipt_of(scene, directory, 0)
    size = 30
    rosters = [
        CollectedRoster(
            cluster.id,
            size,
            cluster.flip_probability,
            planning.roster_delta(size),
            planning.holding_minimum(size, honest.mechanism.tolerated_loss),
        )
        for cluster in honest.clusters
    ]
    found = of_clusters(rosters, CONFIG, 2)
    larger = [
        msgspec.structs.replace(
            cluster,
            size=size,
            delta=roster.delta,
            holding_minimum=roster.holding_minimum,
            epsilon=new.epsilon,
            local_epsilon=new.local_epsilon,
        )
        for cluster, roster, new in zip(honest.clusters, rosters, found, strict=True)
    ]
    lie = msgspec.structs.replace(honest, clusters=larger, views=of_views(rosters, found, CONFIG, 2))
    sign(lie, directory, learner(scene))
    verdict = verify(directory / "guarantee.json", receipt=own)
    assert verdict.holds
    assert (
        "against this learner alone, if the cluster was as large as stated," in texts(verdict, Status.OK)["own receipt"]
    )
    assert {"rosters", "sizes"} <= set(texts(verify(directory, receipt=own)))
    sign(honest, directory, learner(scene))  # the control
    verdict = verify(directory, receipt=own)
    assert verdict.holds
    assert "as large as stated" not in texts(verdict, Status.OK)["own receipt"]


def test_a_number_beyond_all_floats_is_none(one):
    _, directory = one
    document = json.loads((directory / "guarantee.json").read_text())
    for number in ("1e400", "-1e400", "NaN", "1" * 5000):
        document["statement"]["clusters"][0]["epsilon"] = "here"
        (directory / "guarantee.json").write_text(json.dumps(document).replace('"here"', number))
        with pytest.raises(ConfigurationError):
            verify(directory)
