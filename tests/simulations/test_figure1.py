"""Figure 1 runs, goes on where it was stopped, and its guarantees are the accountant's."""

import math

import numpy as np
import pytest

import figure1
import figure1_curves as curves
import figure1_data as data
from p2p_labeldp.accounting import planning

BUDGET = figure1.Plan().budget
TINY = figure1.Plan(datasets=("digits-10",), epsilons=(0.5,), clusters=12, counts=(2,), trials=2, budget=2)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("figure1")


@pytest.fixture(scope="module")
def whole(work):
    """A run of the tiny plan, stopped twice on its way."""
    played = curves.play
    ran: list[str] = []

    def stopping(at):
        def play(cell):
            if len(ran) == at:
                raise KeyboardInterrupt
            ran.append(cell.key)
            return played(cell)

        return play

    with pytest.MonkeyPatch.context() as patch:
        for at in (5, 20):
            patch.setattr(curves, "play", stopping(at))
            with pytest.raises(KeyboardInterrupt):
                figure1.run(TINY, work, 1, None)
        patch.setattr(curves, "play", stopping(None))
        table, header = figure1.run(TINY, work, 1, None)
    return table, header, ran


def test_a_run_that_was_stopped_plays_no_cell_twice(whole):
    _, _, ran = whole
    choices, drawn = (2 * len(curves.BOXES), 1 + 2 * (len(curves.CURVES) + len(figure1.BY_CLUSTERS)))
    assert len(ran) == len(set(ran)) == choices + drawn


def test_a_run_that_is_finished_gives_the_same_table_at_once(whole, work, monkeypatch):
    monkeypatch.setattr(curves, "play", None)
    table, header = figure1.run(TINY, work, 1, None)
    assert (table, header) == whole[:2]


def test_every_curve_and_trial_is_in_the_table(whole):
    table, _, _ = whole
    usual = [row for row in table if row["clusters"] == TINY.clusters and row["curve"] != "none"]
    assert {(row["curve"], row["trial"]) for row in usual} == {(c, t) for c in curves.CURVES for t in range(2)}
    assert {row["curve"] for row in table if row["clusters"] == 2} == set(figure1.BY_CLUSTERS)
    [reference] = [row for row in table if row["curve"] == "none"]
    assert reference["normalised_accuracy"] == "1.0000"


def test_the_header_says_what_was_chosen_and_among_what(whole):
    _, header, _ = whole
    for curve in curves.BOXES:
        assert sum(line.startswith(f"box {curve}: ") for line in header) == 1
        assert sum(line.startswith(f"chosen digits-10 {curve} ") for line in header) == 1


def test_no_row_of_the_choice_is_one_of_the_curves(whole, work):
    ours, theirs = (data.rows("digits-10", part, work) for part in (data.CURVES, data.CHOICE))
    seen = {row.tobytes() for row in ours.features}
    assert len(seen) == len(ours.features)  # no row stands twice, so none is in both halves by chance
    for features in (theirs.features, theirs.test_features, ours.test_features):
        assert not seen & {row.tobytes() for row in features}


@pytest.mark.parametrize("curve", curves.BOXES)
def test_every_mechanism_chooses_among_as_many_points_within_its_box(curve):
    points = curves.candidates(curve, BUDGET)
    assert len(set(points)) == len(points) == BUDGET
    for point in points:
        for name, value in point:
            span = curves.BOXES[curve][name]
            least, most = (0, span.count - 1) if isinstance(span, curves.OneOf) else (span.low, span.high)
            assert least <= value <= most


def test_points_reach_both_ends_of_each_span():
    for curve, box in curves.BOXES.items():
        points = [dict(point) for point in curves.candidates(curve, BUDGET)]
        for name, span in box.items():
            values = [point[name] for point in points]
            if isinstance(span, curves.OneOf):
                assert set(values) == set(range(span.count))
            else:
                assert min(values) <= span.at(0.25)
                assert max(values) >= span.at(0.75)


def test_the_flips_of_all_sizes_hold_and_a_smaller_one_does_not():
    sizes = (1, 2, 11, 47, 130)
    found = curves.flips(curves.FlipCell(epsilon=1.0, num_classes=10, sizes=sizes))["flips"]
    assert found["1"] == pytest.approx(0.9)
    for size in sizes[1:]:
        flip = found[str(size)]
        delta = 1 / size**2
        assert planning.roster_fits(size, size, flip, 1.0, delta, num_classes=10)
        assert not planning.roster_fits(size, size, 0.9 * flip, 1.0, delta, num_classes=10)


def test_the_noise_by_iteration_holds_and_a_smaller_one_does_not():
    account = curves.iteration_account(100, 1.0, 1e-3)
    assert account.random_order_epsilon(1e-3) <= 1.0 + 1e-9
    less = curves.Iteration(steps=100, noise_multiplier=account.noise_multiplier * 0.999)
    assert less.random_order_epsilon(1e-3) > 1.0


def test_intervals_are_students():
    rows = [
        {"dataset": "d", "verified": "True", "curve": curve, "epsilon": "1", "clusters": "9", "normalised_accuracy": a}
        for curve, values in (("none", [1.0]), ("a", [0.5, 0.6, 0.7]), ("b", [0.1, 0.1, 0.13]))
        for a in values
    ]
    shape = figure1.Shape(rows)
    found = shape.mean("d", "a", 1.0)
    assert found.mean == pytest.approx(0.6)
    assert found.high - found.mean == pytest.approx(4.302652729911275 * 0.1 / math.sqrt(3))
    assert (shape.signs("d", "a", "b"), shape.signs("d", "b", "a"), shape.signs("d", "a", "a")) == ("+", "-", "0")
    assert np.isfinite(shape.lead("d", "a", "b", 1.0).low)
