"""A configuration is read whole or refused in one line that names the field and what is allowed."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from p2p_labeldp import config
from p2p_labeldp.config import Config, Data, Mechanism, config_hash, from_mapping, load, reading, sections, updates
from p2p_labeldp.errors import ConfigurationError

BASE = {"data": {"name": "breast-cancer"}}


def complaint(raw, overrides=()):
    with pytest.raises(ConfigurationError) as caught:
        from_mapping(raw, overrides)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{caught.value.field}: ")
    return text


def test_the_default_experiment_has_the_planned_values():
    c = load("breast-cancer")
    assert (c.data.name, c.data.peers, c.data.test_share) == ("breast-cancer", None, 0.2)
    assert (c.clusters.count, c.clusters.minimum_size) == (15, 20)
    assert (c.topology.kind, c.topology.degree) == ("random_regular", 6)
    assert (c.mechanism.flip_probability, c.mechanism.target_epsilon, c.mechanism.tolerated_loss) == (None, 1.0, 0.05)
    assert (c.exchange.kind, c.exchange.deadlines.join, c.network.peers_per_process) == ("resample", None, 1)
    assert (c.policy.epsilon, c.policy.minimum_size, c.output.reports) == (None, 3, False)


def test_every_known_configuration_loads():
    assert config.known() == ["breast-cancer", "by-hand", "digits", "digits-10", "iris", "updates", "wine"]
    for name in config.known():
        assert isinstance(load(name), Config)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"^configuration: 'breast' given; .*breast-cancer, by-hand, digits"):
        load("breast")


def test_a_name_works_from_any_directory(tmp_path):
    root = str(Path(config.__file__).parents[2])
    code = "from p2p_labeldp.config import load; print(load('breast-cancer').clusters.count)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "15"


def test_configurations_in_the_package_come_before_those_beside_it(tmp_path, monkeypatch):
    for directory, count in ((tmp_path / "pkg" / "configs", 3), (tmp_path / "configs", 4)):
        (directory / "experiments").mkdir(parents=True)
        (directory / "experiments" / "x.toml").write_text(f'data.name = "a"\nclusters.count = {count}\n')
    monkeypatch.setattr(reading, "__file__", str(tmp_path / "pkg" / "config" / "reading.py"))
    assert load("x").clusters.count == 3
    (tmp_path / "pkg" / "configs" / "experiments" / "x.toml").unlink()
    (tmp_path / "pkg" / "configs" / "experiments").rmdir()
    assert load("x").clusters.count == 4


def test_a_path_is_read_and_what_is_wrong_with_it_said(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[data]\nname = "digits"\npeers = 30\n')
    assert load(path).data.peers == load(str(path)).data.peers == 30
    for content, text in ((b"data = [", "is no TOML"), (b"\xff\xfe", "no UTF-8")):
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match=text):
            load(path)
    with pytest.raises(ConfigurationError, match="can't be read: No such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="can't be read: Is a directory"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("mechanism.flip_probabilty", "mechanism.flip_probability"),
        ("mechanism.epsilon_target", "mechanism.target_epsilon"),
        ("clusters.degree", "topology.degree"),
        ("exchange.deadlines.joining", "exchange.deadlines.join"),
        ("mechanisms.flip", "mechanism"),
    ],
)
def test_an_unknown_key_fails_and_names_the_nearest(key, meant):
    bad = key if key.split(".")[0] in Config.__struct_fields__ else key.split(".")[0]
    assert complaint(BASE, [f"{key}=0.1"]) == f"{bad}: no such key; did you mean {meant}?"


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("data.peers", ["2", "1000000000", "none"], ["1", "0", "-3", "2.0", "true", '"2"', "1e9", "1000000001"]),
        ("data.test_share", ["0.01", "0.99"], ["0", "1", "0.0", "1.0", "-0.1", "nan", "inf", "true", "half"]),
        ("clusters.count", ["1", "100"], ["0", "1.5", "nan", "none_at_all"]),
        ("clusters.minimum_size", ["2"], ["1", "-inf"]),
        ("topology.kind", ["ring", '"star"'], ["mesh", "1", "[]"]),
        ("topology.degree", ["1"], ["0", "6.0"]),
        ("mechanism.flip_probability", ["0", "0.0", "0.5", "0.9"], ["1", "-0.01", "nan", "inf", "false", "1979-05-27"]),
        ("mechanism.target_epsilon", ["0.01", "800"], ["0", "-1", "nan", "inf"]),
        ("mechanism.tolerated_loss", ["0", "0.99"], ["1", "-0.1", "nan"]),
        ("mechanism.kind", ["resampling", "uniform_rr", "cluster_rr", "none"], ["rr", "true", "null_"]),
        ("mechanism.floor", ["0.01", "0.5"], ["0", "0.51", "nan", "true"]),
        ("mechanism.noise_share", ["0.1"], ["0", "1", "nan"]),
        ("data.verify", ["true", "false"], ["1", "no"]),
        ("exchange.kind", ["permute", "resample"], ["shuffle", "true"]),
        ("exchange.deadlines.join", ["1", "0.5", "none"], ["0", "-1", "inf", "nan", "1" + "0" * 400]),
        ("exchange.deadlines.report", ["3"], ["soon", "9" * 5000, "[" * 5000]),
        ("network.peers_per_process", ["1"], ["0"]),
        ("network.gossip_period", ["0.1"], ["0"]),
        ("policy.epsilon", ["0", "1.5"], ["-1", "nan"]),
        ("policy.local_epsilon", ["0"], ["inf"]),
        ("policy.colluders", [], ["-1", "1.5"]),
        ("policy.minimum_size", ["2"], ["1"]),
        ("learner.model", ["naive_bayes"], ["deep"]),
        ("output.reports", ["true", "false"], ["1", "yes"]),
        ("data.name", ["digits"], ['""', "5", "none"]),
    ],
)
def test_a_value_in_range_is_taken_and_one_outside_refused_with_the_range(key, good, bad):
    for value in good:
        from_mapping(BASE, [f"{key}={value}"])
    for value in bad:
        text = complaint(BASE, [f"{key}={value}"])
        assert text.startswith(f"{key}: ")
        assert text.endswith(("is allowed", "is needed"))


def test_values_made_in_python_are_checked_at_birth():
    assert Data(name="x", test_share=0.5).test_share == 0.5
    with pytest.raises(
        ConfigurationError, match=r"^data\.test_share: nan given; a number above 0 and below 1 is allowed$"
    ):
        Data(name="x", test_share=float("nan"))


def test_values_are_frozen_slotted_and_keyword_only():
    value = Data(name="x")
    with pytest.raises(AttributeError):
        value.name = "y"
    with pytest.raises(TypeError):
        Data("x")
    assert not hasattr(value, "__dict__")


def test_a_flip_probability_and_a_target_exclude_each_other():
    assert "mechanism.target_epsilon" in complaint(
        {**BASE, "mechanism": {"flip_probability": 0.1, "target_epsilon": 1}}
    )
    assert Mechanism(flip_probability=0.1).target_epsilon is None
    assert Mechanism().target_epsilon == 1.0


def test_overriding_one_of_flip_and_target_replaces_the_other():
    flip = load("breast-cancer", ["mechanism.flip_probability=0.1"]).mechanism
    assert (flip.flip_probability, flip.target_epsilon) == (0.1, None)
    both = load("breast-cancer", ["mechanism.flip_probability=0.1", "mechanism.target_epsilon=2"]).mechanism
    assert (both.flip_probability, both.target_epsilon) == (None, 2.0)


def test_a_path_goes_with_a_topology_from_a_file_only():
    assert from_mapping(BASE, ["topology.kind=file", "topology.path=edges.txt"]).topology.path == "edges.txt"
    assert complaint(BASE, ["topology.kind=file"]).startswith("topology.path: ")
    assert complaint(BASE, ["topology.path=edges.txt"]).startswith("topology.path: ")


def test_a_coalition_limit_needs_its_size():
    assert from_mapping(BASE, ["policy.colluders=2", "policy.colluder_epsilon=3"]).policy.colluders == 2
    assert complaint(BASE, ["policy.colluder_epsilon=3"]).startswith("policy.colluder_epsilon: ")


def test_a_number_of_colluders_alone_would_limit_nothing_and_is_refused():
    assert complaint(BASE, ["policy.colluders=2"]).startswith("policy.colluders: given without")
    assert complaint(BASE, ["policy.colluders=2", "policy.epsilon=1"]).startswith("policy.colluders: given without")


@pytest.mark.parametrize("override", ["data.peers", "peers=3", ".peers=3", "data.=3", "=3", ""])
def test_an_override_of_another_form_is_refused(override):
    assert complaint(BASE, [override]).startswith("--set: ")


def test_overrides_read_toml_values_and_bare_text():
    c = from_mapping(BASE, ['topology.kind = "ring"', "exchange.deadlines={join = 2}", "exchange.deadlines.report=3"])
    assert (c.topology.kind, c.exchange.deadlines.join, c.exchange.deadlines.report) == ("ring", 2.0, 3.0)
    assert from_mapping(BASE, ["data.name=a=b"]).data.name == "a=b"
    assert from_mapping(BASE, ["data.name=1\npeers=2"]).data.name == "1\npeers=2"
    assert complaint(BASE, ["data.name.first=3"]).startswith("data.name: ")


def test_wrong_shapes_are_refused():
    assert complaint({"clusters": 5}).endswith("clusters: 5 given; a table of count, minimum_size is allowed")
    assert complaint({}) == "data: missing; it has no default"
    assert complaint({"data": {"peers": 5}}) == "data.name: neither given; one of data.name and data.csv is needed"


def test_the_given_mapping_is_left_alone():
    raw = {"data": {"name": "x"}}
    from_mapping(raw, ["data.peers=7"])
    assert raw == {"data": {"name": "x"}}


def test_the_hash_names_the_meaning_and_nothing_else():
    plain = from_mapping(BASE)
    spelt_out = from_mapping({**BASE, "mechanism": {"target_epsilon": 1}, "clusters": {"count": 15}})
    by_hand = Config(data=Data(name="breast-cancer"), mechanism=Mechanism(target_epsilon=1))
    assert config_hash(plain) == config_hash(spelt_out) == config_hash(by_hand)
    assert len(config_hash(plain)) == 64
    assert config_hash(plain) != config_hash(from_mapping(BASE, ["data.peers=2"]))
    assert msgspec.convert(msgspec.to_builtins(plain), Config) == plain


def test_every_field_of_every_section_has_a_docstring_under_it():
    body = [node for module in (sections, updates) for node in ast.parse(inspect.getsource(module)).body]
    found = [n for n in body if isinstance(n, ast.ClassDef) and any("Section" in ast.unparse(b) for b in n.bases)]
    assert len(found) == 12
    for section in found:
        for field, after in zip(section.body, [*section.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and "ClassVar" not in ast.unparse(field.annotation):
                documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                assert documented, f"{section.name}.{ast.unparse(field.target)}"


def test_a_table_of_ones_own_takes_the_place_of_a_name_and_needs_its_label():
    own = {"csv": "mine.csv", "label": "ill", "classes": ["no", "yes"], "leave_out": ["id"]}
    chosen = from_mapping({"data": own}).data
    assert (chosen.name, chosen.csv, chosen.classes, chosen.leave_out) == (None, "mine.csv", ("no", "yes"), ("id",))
    assert complaint({"data": {**own, "name": "digits"}}).startswith("data.name: given together with data.csv")
    assert complaint({"data": {"csv": "mine.csv"}}) == "data.label: data.csv and data.label go together"
    assert complaint({"data": {"name": "digits", "label": "ill"}}).startswith("data.label: ")
    assert complaint({"data": {**own, "classes": "no"}}).endswith(
        "a list of texts that are not empty, or none, is allowed"
    )
