"""The table ends with what the run promises, and never prints a bound smaller than it is."""

import io
import math

import msgspec
import pytest
from rich.console import Console

from p2p_labeldp.reports import table
from p2p_labeldp.results import Accuracy, ClusterResult, Result, ViewResult

RESULT = Result(
    peers=1455,
    outcomes={"reported": 1454, "failed": 1},
    clusters=[
        ClusterResult(
            id=0, size=25, flip_probability=0.051912, epsilon=0.9999976, delta=0.0016, local_epsilon=2.9048973
        ),
        ClusterResult(id=1, size=9, flip_probability=0.1, epsilon=1.2340001, delta=1 / 81, local_epsilon=2.1972246),
    ],
    views=[
        ViewResult(view="learner", epsilon=1.2340001, delta=1 / 81, method="exact"),
        ViewResult(view="learner+1", epsilon=1.125, delta=0.1123457, method="bound"),
        ViewResult(view="learner+all", epsilon=2.9048973, delta=0.0, method="local"),
        ViewResult(view="mates", epsilon=0.0, delta=0.0, method="encryption"),
    ],
    accuracy=Accuracy(private=0.9649, non_private=0.9912, majority=0.6228),
    seconds={"prepare": 1.234, "join": 26.0, "total": 61.0},
    messages=39123,
    bytes=12_345_678,
    config_hash="",
    seed=7,
    versions={},
)


def shown(result):
    file = io.StringIO()
    table.show(result, title="[run] of it", file=file)
    return file.getvalue()


def test_the_table_says_everything_in_plain_lines():
    assert shown(RESULT).splitlines() == [
        "[run] of it",
        "study: no privacy for these labels (whoever knows seed 7 knows every flip)",
        "",
        "peers     1455",
        "outcomes  1454 reported, 1 failed",
        "accuracy  private 0.965, non-private 0.991, majority 0.623",
        "seconds   prepare 1.2, join 26.0, total 61.0",
        "messages  39,123, 12.3 MB",
        "",
        "who learns what        epsilon  at delta  how it is known",
        "learner alone            1.235   1.24e-2  exact",
        "learner with 1 mate      1.125   1.13e-1  bound",
        "learner with everyone    2.905         0  local",
        "mates alone              0.000         0  encryption",
        "",
        "protects labels, not features",
        "cluster  size      flip  epsilon  at delta  local epsilon",
        "      0    25  0.051912    1.000   1.60e-3          2.905",
        "      1     9       0.1    1.235   1.24e-2          2.198",
    ]


def test_a_deployment_is_no_study_and_has_no_yardsticks():
    deployed = msgspec.structs.replace(
        RESULT, seed=None, messages=None, accuracy=Accuracy(private=0.9, non_private=None, majority=None)
    )
    assert "study" not in shown(deployed)
    assert "messages" not in shown(deployed)
    assert "accuracy  private 0.900\n" in shown(deployed)
    assert table.HELD_OUT in shown(deployed)
    assert table.HELD_OUT not in shown(RESULT)


def test_no_privacy_is_said_in_words():
    cluster = msgspec.structs.replace(
        RESULT.clusters[0], flip_probability=0.0, epsilon=math.inf, local_epsilon=math.inf
    )
    text = shown(msgspec.structs.replace(RESULT, clusters=[cluster]))
    assert text.splitlines()[-2].split() == ["0", "25", "0", "inf", "1.60e-3", "inf"]
    assert text.splitlines()[-1] == "inf: no privacy at this flip probability"
    assert "no privacy at" not in shown(RESULT)


def test_both_epsilons_are_set_in_the_same_type():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", highlight=False, width=100)
    console.print(table.render(RESULT, title="x"))
    rows = [line for line in file.getvalue().splitlines() if "1.60e-3" in line or "local epsilon" in line]
    rows = [row for row in rows if "learner" not in row]
    assert len(rows) == 2
    assert not any("\x1b" in row for row in rows)  # plain, the one as the other
    assert "\x1b" in file.getvalue()


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.000"), (1.0000001, "1.001"), (0.0, "0.000"), (math.inf, "inf"), (709.12345, "709.124")]
)
def test_epsilons_are_rounded_up(value, text):
    assert table.places_up(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1 / 81, "1.24e-2"), (0.0016, "1.60e-3"), (0.25, "2.50e-1"), (1e-12, "1.00e-12")]
)
def test_deltas_are_rounded_up(value, text):
    assert table.digits_up(value) == text
