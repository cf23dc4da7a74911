"""One seed, one round: the population engine and the machines on the virtual network agree to the last fact."""

import numpy as np
import pytest
from contracts.engines import accuracy, on_arrays, on_machines

from p2p_labeldp import facts
from p2p_labeldp.facts import Ended, Outcome
from p2p_labeldp.network import virtual


@pytest.mark.parametrize("terms", [{"flip_probability": 0.2}, {"target_epsilon": 1.0}])
@pytest.mark.parametrize("seed", range(20))
def test_a_seed_gives_one_transcript_one_set_of_reports_and_one_accuracy(study_of, seed, terms):
    study = study_of(seed=seed, **terms)
    transcript, reports = on_arrays(study)
    again, machine_reports, features = on_machines(study)
    assert again == transcript
    assert machine_reports == reports
    assert len(reports) == len(study) == 80
    ended = [fact for fact in map(facts.decode, transcript) if isinstance(fact, Ended)]
    assert [fact.outcome for fact in ended] == [Outcome.REPORTED] * 80
    assert accuracy(study, features, machine_reports) == accuracy(study, study.features, reports)


@pytest.mark.parametrize("terms", [{"flip_probability": 0.6}, {"target_epsilon": 1.0}])
@pytest.mark.parametrize(("num_classes", "seed"), [(3, 0), (3, 1), (10, 2), (10, 3)])
def test_more_than_two_classes_are_told_alike(study_of, num_classes, seed, terms):
    study = study_of(seed=seed, classes=tuple(map(str, range(num_classes))), **terms)
    assert len(np.unique(study.labels)) == num_classes
    transcript, reports = on_arrays(study)
    again, machine_reports, features = on_machines(study)
    assert (again, machine_reports) == (transcript, reports)
    assert len(reports) == len(study)
    assert {label for _, _, label in reports} == set(range(num_classes))
    assert accuracy(study, features, machine_reports) == accuracy(study, study.features, reports)


def test_another_seed_gives_another_transcript(study_of):
    transcripts = []
    for seed in (0, 1):
        study = study_of(seed=seed, topology_seed=5)
        transcript, reports, _ = on_machines(study)
        assert transcript == on_arrays(study)[0]
        transcripts.append((transcript, reports))
    assert transcripts[0][0] != transcripts[1][0]
    assert transcripts[0][1] != transcripts[1][1]


def test_who_knows_whom_first_and_how_slow_messages_are_decides_nothing(study_of):
    expected = on_arrays(study_of(seed=3))
    assert on_machines(study_of(seed=3, topology_seed=8))[:2] == expected
    slow = virtual.play(study_of(seed=3), latency=(0.05, 0.2))
    assert facts.transcript(slow.facts) == expected[0]
