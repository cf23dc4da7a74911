"""Five lines of Python: keywords in, values with a frame out."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import p2p_labeldp
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import local_epsilon

FUNCTIONS = (p2p_labeldp.simulate, p2p_labeldp.account, p2p_labeldp.plan, p2p_labeldp.measure)


def rows(n=200, seed=0):
    random = np.random.default_rng(seed)
    features = random.normal(size=(n, 3))
    return features, np.where(features[:, 0] + random.normal(scale=0.2, size=n) > 0, "yes", "no")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_argument_is_a_keyword_with_a_type(function):
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.annotation is not inspect.Parameter.empty


def test_a_round_of_ones_own_rows():
    features, labels = rows()
    done = p2p_labeldp.simulate(X=features, y=labels, epsilon=2.0)
    assert (done.result.seed, done.result.peers) == (None, 160)
    assert done.epsilon <= 2 < done.local_epsilon
    assert done.delta == 1 / min(cluster.size for cluster in done.result.clusters) ** 2
    assert done.classes_.tolist() == ["no", "yes"]
    assert set(done.predict(features)) <= {"no", "yes"}
    assert done.score(features, labels) == np.mean(done.predict(features) == labels)
    assert done.result.accuracy.non_private is None
    assert done.noisy.features.shape == (160, 3)


def test_a_seed_gives_one_round_on_every_engine():
    features, labels = rows()
    arguments = {"X": features, "y": labels, "seed": 3, "clusters": 4}
    arrays, machines = (p2p_labeldp.simulate(**arguments, engine=engine) for engine in ("population", "virtual"))
    assert (arrays.noisy.labels == machines.noisy.labels).all()
    assert arrays.result.accuracy == machines.result.accuracy
    other = p2p_labeldp.simulate(**{**arguments, "seed": 4})
    assert (other.noisy.labels != arrays.noisy.labels).any()


def test_a_data_set_by_name_has_its_classes():
    done = p2p_labeldp.simulate(data="iris", seed=0, model="naive_bayes")
    assert done.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert 0.999 < done.epsilon <= 1


def test_accounting_and_planning_say_what_the_library_says():
    said = p2p_labeldp.account(cluster_size=100, flip_probability=0.1)
    assert said.epsilon == pytest.approx(0.7299, abs=1e-4)
    assert [guarantee.view for guarantee in said.guarantees] == ["learner", "learner+1", "learner+all", "mates"]
    planned = p2p_labeldp.plan(cluster_size=100, epsilon=1.0)
    assert planned.flip_probability == pytest.approx(0.0235, abs=1e-4)
    assert planned.local_epsilon == local_epsilon(planned.flip_probability)
    assert p2p_labeldp.plan(cluster_size=100, epsilon=1.0, num_classes=10).flip_probability > 0.5


def test_measuring_puts_promised_and_measured_side_by_side():
    found = p2p_labeldp.measure(data="digits", sizes=(8, 16), flip_probability=0.1, trials=2000)
    assert [row.cluster_size for row in found.rows] == [8, 16]
    assert all(row.epsilon_lower <= row.epsilon < row.local_epsilon for row in found.rows)


def test_frames_have_a_row_for_each_value():
    pytest.importorskip("pandas")
    features, labels = rows()
    done = p2p_labeldp.simulate(X=features, y=labels)
    frame = done.frame()
    assert frame["size"].sum() == 160
    assert list(frame.columns) == ["id", "size", "flip_probability", "epsilon", "delta", "local_epsilon"]
    said = p2p_labeldp.account(cluster_size=20, flip_probability=0.1)
    assert said.frame().set_index("view").loc["learner", "epsilon"] == said.epsilon
    assert p2p_labeldp.plan(cluster_size=20, epsilon=1.0).frame().shape == (1, 6)
    measured = p2p_labeldp.measure(sizes=(8,), trials=100).frame()
    assert measured["cluster_size"].tolist() == [8]


def test_without_pandas_a_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'p2p-labeldp\[pandas\]'"):
        p2p_labeldp.account(cluster_size=20, flip_probability=0.1).frame()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, "X, y: X and y are needed"),
        ({"X": [[1.0]]}, "X, y: X and y are needed"),
        ({"data": "irises"}, "data: 'irises' given"),
        ({"data": "iris", "epsilon": 0}, "epsilon: 0 given"),
        ({"data": "iris", "engine": "cloud"}, "engine: 'cloud' given"),
        ({"data": "iris", "model": "deep"}, "model: 'deep' given"),
        ({"data": "iris", "clusters": 0}, "clusters: 0 given"),
        ({"data": "iris", "test_size": 1.0}, "test_size: 1.0 given"),
    ],
)
def test_what_is_impossible_is_one_line(arguments, line):
    with pytest.raises(ConfigurationError) as caught:
        p2p_labeldp.simulate(**arguments)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_importing_the_package_imports_nothing_slow():
    code = (
        "import sys, p2p_labeldp; assert {'simulate', 'account', 'plan', 'measure'} <= set(dir(p2p_labeldp));"
        "slow = {'numpy', 'scipy', 'sklearn', 'pandas', 'msgspec', 'aiohttp'} & set(sys.modules);"
        "sys.exit(repr(slow) if slow else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
