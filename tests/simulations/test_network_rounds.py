"""The studies of networks: the committed table holds its claims, altered ones are noticed, rounds are as described."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cifar_cnn
import mnist_cnn
import network_study as study
from frame import RESULTS, Study, read_rows, read_table
from network_rounds import EPSILONS, HONEST, NOT_PRIVATE, REDUCED, Curve, Data, Plan
from network_table import Claims, Row, failures, header, of_curve
from p2p_labeldp.accounting.federated import Rounds, safe_projection
from p2p_labeldp.learning.networks import Network

DOCUMENT = Path(__file__).parents[2] / "docs" / "updates.md"
TINY = Network(side=4, channels=1, filters=(2,), dense=(3,), kernel=3)
PLAN = Plan(
    network=TINY, rounds=6, target=(1.9, 1e-9), population=40, cohort=10.0, images=2, radius=1.0, rate=2.0,
    noise_length=2.0, every=3,
)  # fmt: skip
CLAIMS = Claims(parameters=TINY.dimension, not_private=0.5, least=0.1, most=0.3, slack=1.0, honest=1.0, exact=1.0)


@pytest.fixture(scope="module", params=[mnist_cnn, cifar_cnn], ids=["mnist", "cifar"])
def about(request):
    """A study of a network: its script."""
    return request.param


@pytest.fixture(scope="module")
def path(about) -> Path:
    return RESULTS / f"{about.__name__}.csv"


@pytest.fixture(scope="module")
def table(path) -> list[Row]:
    return read_rows(path, Row)


@pytest.fixture(scope="module")
def data() -> Data:
    """Three classes: which of three pixels is lit."""
    rng = np.random.default_rng(2)
    labels = rng.integers(3, size=(140,)).astype(np.uint8)
    images = rng.integers(60, size=(140, 16)).astype(np.uint8)
    images[np.arange(140), np.array([0, 6, 15])[labels]] = 255
    return Data(
        clients=images[:80].reshape(40, 2, 16),
        labels=labels[:80].reshape(40, 2),
        test=images[80:],
        test_labels=labels[80:],
        verified=False,
    )


def curve(noise, mode="moments", rounds=6):
    return Curve(noise=noise, epsilon=math.inf if noise == NOT_PRIVATE else 500.0, mode=mode, rounds=rounds)


def shown(accuracy: float) -> str:
    """As texts have it: all the table's digits, no zero before the point."""
    return f"{accuracy:g}".removeprefix("0")


def test_the_committed_table_holds_every_claim(about, path, table):
    assert list(failures(table, about.PLAN, about.CLAIMS)) == []
    above, _ = read_table(path)
    assert above == header(table, about.PLAN)


def test_the_committed_curves_are_those_of_the_study(about, table):
    found = {(row.noise, row.epsilon_direction, row.mode) for row in table}
    wanted = study.curves(about.PLAN)
    assert found == {(one.noise, one.epsilon, one.mode) for one in wanted}
    for one in wanted:
        assert one.rounds in of_curve(table, one.noise, one.epsilon, one.mode)


def test_the_committed_curves_were_run_as_the_study_is_now(about, table):
    plan = about.PLAN
    for row in table:
        assert (row.population, row.expected_cohort, row.images) == (plan.population, plan.cohort, plan.images)
        assert (row.parameters, row.central_delta) == (plan.network.dimension, plan.target[1])
        assert row.rate == plan.rate if row.noise == NOT_PRIVATE else row.rate <= plan.rate
        assert row.round % plan.every == 0


def test_a_script_says_how_its_table_ends(about, table):
    said = " ".join(about.__doc__.split())
    levels = {REDUCED: about.PLAN.levels, HONEST: about.PLAN.honest}
    ends = {
        noise: [of_curve(table, noise, epsilon)[about.PLAN.rounds] for epsilon in levels[noise]] for noise in levels
    }
    plain = of_curve(table, NOT_PRIVATE, math.inf)
    most = max(row.accuracy for row in table if row.noise == HONEST)
    assert f"{shown(plain[about.PLAN.rounds])} without privacy" in said
    assert f"with the reduced sigma {', '.join(map(shown, ends[REDUCED]))} at eps1 = 50, 100, 250, 500" in said
    assert f"with the honest one {', '.join(map(shown, ends[HONEST]))}, and at most {shown(most)} in any round" in said
    assert f"{shown(plain[0])} before the first" in said


def test_the_documents_say_how_the_tables_end(about, table):
    (line,) = [line for line in DOCUMENT.read_text().splitlines() if f"simulations/{about.__name__}.py` and" in line]
    ends = [of_curve(table, REDUCED, epsilon)[about.PLAN.rounds] for epsilon in EPSILONS]
    plain = of_curve(table, NOT_PRIVATE, math.inf)[about.PLAN.rounds]
    assert f"({about.CLAIMS.parameters:,} parameters) reaches {percent(min(ends))} to {percent(max(ends))} %" in line
    assert f"{percent(plain)} % without privacy" in line
    assert f"central ({about.PLAN.target[0]:g}, 10⁻⁹)" in line


def percent(accuracy: float) -> str:
    return f"{100 * accuracy:.0f}"


def test_sigmas_rates_and_guarantees_of_the_table_are_what_the_accountant_says(about, table):
    """Of privacy losses on a grid, a processor without AVX-512 makes sums that differ by one or two in a million."""
    plan = about.PLAN
    for row in (row for row in table if row.round == 0 and row.noise != NOT_PRIVATE):
        mechanism = plan.mechanism(row.epsilon_direction)
        projection = safe_projection(mechanism)
        rounds = Rounds(
            population=plan.population,
            sampling_rate=plan.sampling_rate,
            rounds=plan.rounds,
            projection=projection,
        )
        epsilon, delta = plan.target
        assert row.honest_sigma == pytest.approx(rounds.sigma_for(epsilon=epsilon, delta=delta), rel=1e-5)
        assert row.central_epsilon == pytest.approx(rounds.guarantee(sigma=row.sigma, delta=delta).epsilon, rel=1e-5)
        assert (row.sigma == row.honest_sigma) == (row.noise == HONEST)
        if row.noise == REDUCED:
            assert row.sigma == pytest.approx(projection / math.sqrt(plan.cohort * plan.network.dimension), rel=1e-9)
        second = mechanism.second_moment(plan.radius) / plan.cohort
        length = math.sqrt(plan.network.dimension * row.sigma**2 + second)
        assert row.rate == pytest.approx(min(plan.rate, plan.noise_length / length), rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "epsilon", "change", "complaint"),
    [
        (NOT_PRIVATE, math.inf, {"parameters": 3_274_633}, "a network of {3274633}"),
        (NOT_PRIVATE, math.inf, {"accuracy": 0.15}, "without privacy"),
        (NOT_PRIVATE, math.inf, {"accuracy": math.nan}, "without privacy"),
        (REDUCED, 50.0, {"accuracy": 0.1}, "at eps1 = 50"),
        (REDUCED, 250.0, {"accuracy": 0.1}, "accuracy falls"),
        (REDUCED, 500.0, {"accuracy": 0.15}, "at eps1 = 500"),
        (HONEST, 500.0, {"accuracy": 0.8}, "sigma at eps1 = 500 accuracy is not below"),
        (HONEST, 500.0, {"central_epsilon": 2.0}, "does not meet"),
    ],
)
def test_a_table_in_which_a_claim_fails_is_noticed(about, table, noise, epsilon, change, complaint):
    altered = [
        replace(row, **change) if (row.noise, row.epsilon_direction) == (noise, epsilon) else row for row in table
    ]
    assert any(complaint in line for line in failures(altered, about.PLAN, about.CLAIMS))


def test_moments_that_come_out_otherwise_than_drawn_reports_are_noticed(about, table):
    altered = [replace(row, accuracy=0.0) if row.mode == "exact" else row for row in table]
    assert any("every report drawn" in line for line in failures(altered, about.PLAN, about.CLAIMS))


def test_a_table_without_a_curve_is_noticed(about, table):
    for one in study.curves(about.PLAN):
        rest = [
            row for row in table if (row.noise, row.epsilon_direction, row.mode) != (one.noise, one.epsilon, one.mode)
        ]
        assert list(failures(rest, about.PLAN, about.CLAIMS))


def test_the_papers_rounds_targets_and_counts_are_those_of_the_plan(about):
    expected = {mnist_cnn: (100, (1.9, 1e-9), 3_274_634), cifar_cnn: (200, (1.76, 1e-9), 1_068_298)}[about]
    assert (about.PLAN.rounds, about.PLAN.target, about.PLAN.network.dimension) == expected
    assert EPSILONS == (50, 100, 250, 500)


def test_pixels_are_stretched_between_the_ends_of_a_plan():
    pixels = np.array([[0, 51, 255]], dtype=np.uint8)
    assert PLAN.seen(pixels).tolist() == [[0.0, np.float32(0.2), 1.0]]
    assert replace(PLAN, between=(-2.0, 2.0)).seen(pixels)[0] == pytest.approx([-2.0, -1.2, 2.0])
    assert PLAN.seen(pixels).dtype == np.float32


def test_the_crop_is_the_middle_of_the_picture():
    planes = np.arange(3 * 32 * 32, dtype=np.int64).reshape(1, 3, 32, 32)
    kept = cifar_cnn.cropped(planes.reshape(1, -1)).reshape(24, 24, 3)
    assert kept[0, 0].tolist() == planes[0, :, 4, 4].tolist()
    assert kept[23, 5].tolist() == planes[0, :, 27, 9].tolist()


class TestRounds:
    """A network of a few parameters, played."""

    @pytest.fixture(autouse=True)
    def _needs_jax(self):
        pytest.importorskip("jax")

    def test_without_privacy_the_network_learns(self, data):
        rows = list(study.train(replace(PLAN, rounds=60), curve(NOT_PRIVATE, "clipped", 60), data))
        assert rows[-1].accuracy > rows[0].accuracy + 0.3
        assert (rows[-1].round, rows[-1].sigma, rows[-1].central_epsilon) == (60, 0.0, math.inf)

    def test_the_honest_sigma_meets_the_target_and_the_reduced_one_says_by_how_much_it_does_not(self, data):
        (honest, *_), (reduced, *_) = (list(study.train(PLAN, curve(noise), data)) for noise in (HONEST, REDUCED))
        assert honest.sigma == honest.honest_sigma > reduced.sigma
        assert honest.central_epsilon <= 1.9 < reduced.central_epsilon
        projection = safe_projection(PLAN.mechanism(500.0))
        assert reduced.sigma**2 * TINY.dimension == pytest.approx(projection**2 / PLAN.cohort)
        assert honest.rate < reduced.rate <= PLAN.rate

    def test_all_curves_have_the_same_cohorts_and_modes_are_named(self, data):
        rows = [list(study.train(PLAN, curve(REDUCED, mode), data)) for mode in ("exact", "moments")]
        assert [r[-1].mode for r in rows] == ["exact", "moments"]
        assert rows[0][-1].reports == rows[1][-1].reports > 0
        assert rows[0][0].accuracy == rows[1][0].accuracy

    def test_a_curve_that_was_kept_is_read_and_not_played(self, data, tmp_path, monkeypatch):
        at = Study(name="tiny", quick=False, out=tmp_path, folders={"parts": tmp_path / "parts"})
        first = study.play(PLAN, [curve(REDUCED)], data, at)
        monkeypatch.setattr(study, "train", None)
        assert study.play(PLAN, [curve(REDUCED)], data, at) == first
        with pytest.raises(TypeError):
            study.play(PLAN, [curve(HONEST)], data, at)

    def test_a_quick_run_writes_a_table_and_asks_for_the_count_alone(self, data, tmp_path, capsys):
        at = Study(name="tiny", quick=True, out=tmp_path)
        wrong = replace(CLAIMS, parameters=1, not_private=1.0)
        assert study.run(at, PLAN, data, claims=wrong, title="tiny") == 1
        (line,) = capsys.readouterr().out.splitlines()[-1:]
        assert line == f"FAILS: a network of {{{TINY.dimension}}} parameters, 1 are claimed"
        above, rows = read_table(tmp_path / "tiny_quick.csv")
        assert above[-1].startswith("unverified")
        assert {row["round"] for row in rows} == {"0", "2", "4"}
