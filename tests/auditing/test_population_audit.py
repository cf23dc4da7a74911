"""The engine that audits run on is healthy, in whole rounds, in T and in its facts, and its permutation is not it."""

import numpy as np
import pytest

from p2p_labeldp import population
from p2p_labeldp.auditing.audit import audit, nobody_or_everybody
from p2p_labeldp.auditing.conformance import Verdict, conformance
from p2p_labeldp.auditing.observed import Rounds
from p2p_labeldp.auditing.transcripts import rounds_of_facts


class Engine:
    def __init__(self, size, flip, seed, exchange="resample", classes=2):
        self.size, self.flip, self.seed = size, flip, seed
        self.exchange, self.classes, self.round_number = exchange, classes, 0

    def ones(self, *, ones, rounds):
        self.round_number += 1
        labels = (np.arange(self.size) < ones).astype(np.uint8)
        settings = {"seed": self.seed, "round_number": self.round_number, "exchange": self.exchange}
        return np.concatenate(list(population.count_ones(labels, self.flip, clusters=rounds, **settings)))

    def play(self, labels):
        self.round_number += 1
        rows, size = labels.shape
        return population.play(
            labels.ravel(),
            np.repeat(np.arange(rows), size),
            [self.flip] * rows,
            seed=self.seed,
            round_number=self.round_number,
            exchange=self.exchange,
            num_classes=self.classes,
        )

    def rounds(self, *, labels):
        played = self.play(labels)
        columns = {"flipped": played.flipped, "mates": played.mates % labels.shape[1], "reports": played.reports}
        seen = {name: column.reshape(labels.shape) for name, column in columns.items()}
        return Rounds(labels=labels, **seen, classes=self.classes)


@pytest.mark.parametrize(("size", "flip"), [(10, 0.25), (30, 0.1), (64, 0.01)])
def test_the_population_engine_conforms_and_its_permutation_does_not(size, flip):
    engine = Engine(size, flip, seed=4)
    claim = {"cluster_size": size, "flip_probability": flip, "trials": 40_000}
    result = audit(engine.ones, **claim, draw_rounds=engine.rounds)
    assert result.verdict is Verdict.PASS, result.conformance.failed
    assert result.bound.epsilon_lower > 0
    permuted = Engine(size, flip, seed=4, exchange="permute")
    assert audit(permuted.ones, **claim, draw_rounds=permuted.rounds).verdict is Verdict.FAIL
    assert audit(permuted.ones, **claim).conformance.failed[0].startswith("ones_at")


def test_more_classes_conform_too():
    engine = Engine(12, 0.3, seed=4, classes=5)
    labels = np.random.default_rng(1).integers(0, 5, size=(2000, 12)).astype(np.uint8)
    result = conformance(engine.rounds(labels=labels), flip_probability=0.3)
    assert result.verdict is Verdict.PASS
    assert "lies" in result.p_values


def test_the_facts_of_its_rounds_conform():
    engine = Engine(16, 0.1, seed=9)
    labels = nobody_or_everybody(8, 16)
    truth = dict(enumerate(labels.ravel().tolist()))
    runs = [list(engine.play(labels).facts()) for _ in range(40)]
    (rounds,) = rounds_of_facts(*runs, labels=truth)
    assert rounds.clusters == 8
    assert conformance(rounds, flip_probability=0.1).verdict is Verdict.PASS
    again = [*runs, runs[3]]  # a round whose coins came back
    assert "repeated_rounds" in conformance(*rounds_of_facts(*again, labels=truth), flip_probability=0.1).failed
