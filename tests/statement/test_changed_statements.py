"""A statement that was changed anywhere, or signed by somebody else, is refused; the untouched one is the control."""

import json
import math
import shutil

import msgspec
import pytest

from p2p_labeldp import config, promise
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.study import CollectedRoster
from p2p_labeldp.statement import Engine, Status, accountant, content, verify
from statement.rounds import document, receipt_of, sign
from statement.verdicts import OTHER, refused, why_not


def leaves(value, path=()):
    """Every place in a document, with what is there."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def changed(value):
    """Another value that could stand there."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * (1 - 1e-6) + (value == 0) * 1e-6
    if isinstance(value, str) and len(value) >= 64 and set(value) <= set("0123456789abcdef"):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return {None: 1, "inf": 5.0, "processes": "deployment", "deployment": "processes"}.get(value, f"{value}x")


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def test_each_changed_field_is_refused(one):
    _, _, directory = one
    count = 0
    for path, value in leaves(document(directory)):
        forged = document(directory)
        put(forged, path, changed(value))
        (directory / "guarantee.json").write_text(json.dumps(forged))
        assert refused(directory), path
        count += 1
        put(forged, path, value)
        (directory / "guarantee.json").write_text(json.dumps(forged))
    assert count > 60
    assert not refused(directory)


def test_each_changed_field_is_refused_though_the_learner_itself_signs_it(one):
    """What is held against the file beside the signature: a learner that lies signs what it likes."""
    scene, _, directory = one
    keys = scene.collector._keys
    unnoticed = []
    for path, value in leaves(document(directory)["statement"]):
        forged = document(directory)["statement"]
        put(forged, path, changed(value))
        try:
            lie = msgspec.convert(forged, content.Statement, strict=False)
        except (msgspec.ValidationError, ConfigurationError):  # not even a learner can state that
            continue
        before = (directory / "guarantee.json").read_text()
        sign(lie, directory, keys)
        if not refused(directory):
            unnoticed.append(path)
        (directory / "guarantee.json").write_text(before)
    assert unnoticed == []
    assert not refused(directory)


@pytest.mark.parametrize("name", ["virtual", "population", "cluster_rr", "without a seed"])
def test_each_changed_field_of_an_unsigned_statement_is_refused(unsigned, tmp_path, name):
    directory = shutil.copytree(unsigned / name, tmp_path / "one")
    unnoticed = []
    for path, value in leaves(document(directory)):
        before = document(directory)
        forged = document(directory)
        put(forged, path, changed(value))
        (directory / "guarantee.json").write_text(json.dumps(forged))
        if not refused(directory):
            unnoticed.append(path[-1])
        (directory / "guarantee.json").write_text(json.dumps(before))
    assert unnoticed == (["num_classes"] if name == "cluster_rr" else [])  # no number of this mechanism depends on it
    assert not refused(directory)


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"epsilon": 0.5}, "epsilons"),
        ({"local_epsilon": 0.5}, "epsilons"),
        ({"delta": 1e-6}, "deltas"),
        ({"holding_minimum": 2}, "holding minima"),
        ({"flip_probability": 0.3}, "flips"),
        ({"size": 100}, "deltas"),
        ({"size": 10**9}, "terms"),
        ({"size": 1}, "deltas"),
        ({"flip_probability": 2.0}, "flips"),
        ({"flip_probability": None}, "epsilons"),
    ],
)
def test_a_number_that_the_accountant_does_not_find_fails_by_itself(one, change, failing):
    scene, _, directory = one
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    clusters = [msgspec.structs.replace(stated.clusters[0], **change), *stated.clusters[1:]]
    lie = msgspec.structs.replace(stated, clusters=clusters)
    sign(lie, directory, scene.collector._keys)
    assert failing in why_not(directory / "guarantee.json")


@pytest.mark.parametrize(
    "change", [{"epsilon": 1e-3}, {"delta": 0.0}, {"method": "exact: believe me"}, {"view": "all"}]
)
def test_a_view_that_the_accountant_does_not_find_fails_by_itself(one, change):
    scene, _, directory = one
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    for place in range(len(stated.views)):
        views = list(stated.views)
        views[place] = msgspec.structs.replace(views[place], **change)
        sign(msgspec.structs.replace(stated, views=views), directory, scene.collector._keys)
        if views != stated.views:
            assert why_not(directory / "guarantee.json") == {"views"}
    sign(msgspec.structs.replace(stated, views=stated.views[1:]), directory, scene.collector._keys)
    assert why_not(directory / "guarantee.json") == {"views"}
    sign(stated, directory, scene.collector._keys)
    assert why_not(directory / "guarantee.json") == set()


def test_a_target_that_is_not_kept_fails():
    stated = content.Statement(
        **{
            **dict.fromkeys(("learner", "round", "seed")),
            "format": 1,
            "unsigned_because": "",
            "engine": Engine.VIRTUAL,
            "complete": True,
            "num_classes": 2,
            "exchange": "resample",
            "mechanism": config.Mechanism(target_epsilon=0.5),
            "policy": config.Policy(),
            "config_hash": "",
            "versions": {},
            "peers": 10,
            "outcomes": {},
            "reports": 0,
            "clusters": [
                content.StatedCluster(
                    id=0,
                    size=10,
                    flip_probability=0.1,
                    holding_minimum=10,
                    delta=0.01,
                    epsilon=1.0,
                    local_epsilon=math.log(9),
                    reports=0,
                    roster=None,
                )
            ],
            "views": [],
            "facts": "",
            "receipts": [],
        }
    )
    terms = stated.terms()
    [found] = promise.of_clusters([CollectedRoster(0, 10, 0.1, 0.01, 10)], terms, 2)
    cluster = msgspec.structs.replace(stated.clusters[0], epsilon=found.epsilon, local_epsilon=found.local_epsilon)
    honest = msgspec.structs.replace(stated, clusters=[cluster])
    texts = {check.name: check.text for check in accountant.checks(honest) if check.status is Status.FAILED}
    assert "more than the target of 0.5" in texts["epsilons"]
    enough = msgspec.structs.replace(honest, mechanism=config.Mechanism(flip_probability=0.1))
    assert "epsilons" not in {check.name for check in accountant.checks(enough) if check.status is Status.FAILED}


# --- whose signature -----------------------------------------------------------------------------------------------


def test_another_key_is_refused_as_soon_as_anybody_knows_the_learners(one):
    """Alone, a file that somebody else signed looks as good: that is what pinning is for."""
    scene, _, directory = one
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    forged = msgspec.structs.replace(stated, learner=OTHER.peer_id.hex())
    sign(forged, directory, OTHER)
    assert why_not(directory / "guarantee.json") == set()
    assert why_not(directory / "guarantee.json", learner=scene.learner.hex()) == {"signature"}
    own = receipt_of(scene, directory, 0)
    assert why_not(directory / "guarantee.json", receipt=own) == {"own receipt"}
    assert why_not(directory) == {"manifest"}  # the evidence is the learner's
    sign(stated, directory, OTHER)
    assert why_not(directory / "guarantee.json") == {"signature"}
    sign(stated, directory, scene.collector._keys)
    assert why_not(directory, learner=scene.learner.hex(), receipt=own) == set()


def test_a_signature_of_another_kind_is_none(one):
    scene, _, directory = one
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    for kind, as_it_should in (("receipt", False), (content.KIND, True)):
        made = scene.collector._keys.sign(kind, content.canonical(stated))
        forged = {**document(directory), "signature": made[33:97].hex()}
        (directory / "guarantee.json").write_text(json.dumps(forged))
        assert (why_not(directory) == set()) is as_it_should
        assert as_it_should or why_not(directory) == {"signature"}


def test_a_statement_without_its_signature_is_refused(one):
    _, _, directory = one
    for change in ({"learner": None}, {"learner": None, "unsigned_because": "lost"}, {}):
        forged = document(directory)
        forged |= {"public": None, "signature": None, "statement": forged["statement"] | change}
        (directory / "guarantee.json").write_text(json.dumps(forged))
        assert "signature" in why_not(directory)


def test_layout_is_free_and_a_key_that_stands_twice_is_not(one):
    _, _, directory = one
    text = json.dumps(document(directory))
    (directory / "guarantee.json").write_text(text)
    assert not refused(directory)
    twice = text.replace('"reports": 13', '"reports": 12, "reports": 13', 1)
    assert twice != text
    (directory / "guarantee.json").write_text(twice)
    with pytest.raises(ConfigurationError, match="a key stands twice"):
        verify(directory)
    for odd in (
        text.replace('"reports": 13', '"reports": "13"'),
        text.replace('"seed": null', '"seed": null, "eps": 0'),
    ):
        assert odd != text
        (directory / "guarantee.json").write_text(odd)
        with pytest.raises(ConfigurationError, match="holds something that no statement has"):
            verify(directory)
