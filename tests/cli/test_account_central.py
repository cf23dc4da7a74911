"""``account uniform-rr``, ``cluster-rr`` and ``dp-sgd``: the library's numbers under stable names."""

import pytest
from cli.printing import complaint, printed

from p2p_labeldp.cli import main


def test_uniform_rr_from_a_level_and_from_a_probability(capsys):
    record = printed(capsys, "account", "uniform-rr", "--classes", 10, "--epsilon", 1)
    assert list(record) == [
        "epsilon", "delta", "num_classes", "redraw_probability", "keep_probability", "correction",
    ]  # fmt: skip
    assert record["redraw_probability"] == pytest.approx(0.8533674259065845)
    assert record["keep_probability"] == pytest.approx(0.23196931668407395)
    assert record["delta"] == 0.0
    back = printed(capsys, "account", "uniform-rr", "--classes", 10, "--redraw", record["redraw_probability"])
    assert back == record


def test_cluster_rr_from_a_level_and_from_parameters(capsys):
    record = printed(capsys, "account", "cluster-rr", "--classes", 10, "--floor", 0.1, "--epsilon", 1)
    assert list(record) == [
        "epsilon", "delta", "epsilon_noise", "epsilon_redraw", "num_classes", "noise_scale", "noised_counts", "floor",
        "redraw_probability", "correction",
    ]  # fmt: skip
    assert record["noise_scale"] == pytest.approx(4.0)
    assert record["redraw_probability"] == pytest.approx(0.9390798900441615)
    given = printed(
        capsys, "account", "cluster-rr", "--classes", 10, "--floor", 0.01, "--noise-scale", 4, "--redraw", 0.9
    )
    assert given["epsilon"] == pytest.approx(2.994123304892924)
    two = printed(capsys, "account", "cluster-rr", "--classes", 2, "--floor", 0.1, "--noise-scale", 2, "--redraw", 0.5)
    assert two["epsilon"] == pytest.approx(2.897895272798371)
    assert two["noised_counts"] == 1


def test_dp_sgd_by_subsampling(capsys):
    record = printed(
        capsys, "account", "dp-sgd", "--examples", 1000, "--batch", 100, "--epochs", 2, "--noise", 2, "--delta", 1e-5
    )
    assert record["steps"] == 20
    assert record["sampling_probability"] == 0.1
    assert record["epsilon_add_or_remove_pld"] < record["epsilon_add_or_remove_rdp"]
    assert record["epsilon"] == record["epsilon_replace_pld"] > record["epsilon_add_or_remove_pld"]


def test_dp_sgd_by_iteration(capsys):
    record = printed(capsys, "account", "dp-sgd", "--examples", 1000, "--noise", 1, "--iteration")
    assert record["delta"] == 1e-3
    assert record["delta_tenth"] == 1e-4
    assert record["epsilon"] == record["epsilon_worst"]
    # sigma = 2 and L = 1
    assert record["epsilon_worst"] == pytest.approx(3.138670548582939, rel=1e-9)
    assert record["epsilon_random_order"] == pytest.approx(0.3701304580339304, rel=1e-9)
    assert record["epsilon_random_order_at_tenth"] == pytest.approx(1.315339629154111, rel=1e-9)
    quantiles = record["quantiles"]
    assert list(quantiles) == ["0.99", "0.9", "0.5"]
    assert record["epsilon_worst"] > quantiles["0.99"] > quantiles["0.9"] > quantiles["0.5"]
    longer = printed(
        capsys, "account", "dp-sgd", "--examples", 1000, "--noise", 1, "--iteration", "--noise-only-steps", 50
    )
    assert longer["epsilon_worst"] < record["epsilon_worst"]


def test_the_tables_say_the_same(capsys):
    assert main(["account", "dp-sgd", "--examples", "1000", "--noise", "1", "--iteration"]) == 0
    out = capsys.readouterr().out
    assert "epsilon worst" in out
    assert "quantiles 0.99" in out
    assert main(["account", "cluster-rr", "--classes", "3", "--floor", "0.01", "--epsilon", "1"]) == 0
    assert "redraw probability" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("uniform-rr --classes 10", "--epsilon: missing; it or --redraw is needed"),
        ("uniform-rr --classes 10 --epsilon 1 --redraw 0.5", "--epsilon: given together with --redraw"),
        ("uniform-rr --classes 10 --epsilon 0", "--epsilon: 0.0 given; 1e-06 to 700 is possible"),
        ("uniform-rr --classes 10 --epsilon nan", "--epsilon: nan given"),
        ("uniform-rr --classes 10 --redraw 0", "--redraw: 0.0 given; above 0 and at most 1 is possible"),
        ("uniform-rr --classes 1 --epsilon 1", "--classes: 1 given; 2 to 256 are possible"),
        ("cluster-rr --classes 10 --floor 0.01", "--epsilon: missing; it or --noise-scale with --redraw is needed"),
        ("cluster-rr --classes 10 --floor 0.2 --epsilon 1", "--floor: 0.2 given; 0 to 1/10 is possible"),
        ("cluster-rr --classes 10 --floor 0.01 --epsilon 1 --noise-share 1", "--noise-share: 1.0 given"),
        ("cluster-rr --classes 10 --floor 0.01 --redraw 0.5", "--noise-scale: missing"),
        ("cluster-rr --classes 10 --floor 0.01 --noise-scale 1", "--redraw: missing"),
        ("cluster-rr --classes 10 --floor 0.01 --noise-scale 0 --redraw 0.5", "--noise-scale: 0.0 given"),
        ("cluster-rr --classes 10 --floor 0 --noise-scale 1 --redraw 0.5", "--floor: 0 given; above 0"),
        ("dp-sgd --examples 1 --noise 1", "--examples: 1 given"),
        ("dp-sgd --examples 10 --batch 11 --noise 1", "--batch: 11 given; 1 to 10 is possible"),
        ("dp-sgd --examples 10 --batch 0 --noise 1", "--batch: 0 given"),
        ("dp-sgd --examples 10 --noise nan", "--noise: nan given"),
        ("dp-sgd --examples 10 --noise 0.01", "--noise: 0.01 given; 0.1 and above is possible"),
        ("dp-sgd --examples 10 --noise 0 --iteration", "--noise: 0.0 given"),
        ("dp-sgd --examples 10 --noise 1 --epochs nan", "--epochs: nan given"),
        ("dp-sgd --examples 10 --noise 1 --epochs 2 --iteration", "--epochs: 2.0 given; 1 is possible"),
        ("dp-sgd --examples 10 --noise 1 --noise-only-steps 1", "--noise-only-steps: 1 given without --iteration"),
        ("dp-sgd --examples 10 --noise 1 --delta 1", "--delta: 1.0 given"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, line):
    assert complaint(capsys, "account", *arguments.split()).startswith(line)


def test_help_has_an_example(capsys):
    for command in ("uniform-rr", "cluster-rr", "dp-sgd"):
        assert main(["account", command, "--help"]) == 0
        assert f"    p2p-labeldp account {command} " in capsys.readouterr().out
