"""What numbers people is told from what measures them, by name and by values."""

import numpy as np
import pytest

from p2p_labeldp.owndata.identifiers import is_identifier, is_numbered, may_be_identifier

NUMBERED = """
PatientenNr Fallnummer PatientID patientId caseNumber CaseNo case_no pat_nr Pat.-Nr. PATNR PATIENTID FALLID patid fallno
patient_key study_num Kundennummer MRN hospital_mrn SSN SVNR SVNr_neu Nr_Patient patient_id_old id key nr no No. index
Unnamed:_0 row_no rowNumber user-id id_card uuid Nr
"""
MEASURED = """
age acid UricAcid casino FeNO FENO mono monkey lipid Rainfall Fallzahl cases number_of_falls pathology nodes keyboard
no_of_children wavenumber Nrf2 Anzahl Patient_age Temperatur binr_ratio idle unit thyroid
"""


@pytest.mark.parametrize("name", NUMBERED.split())
def test_a_name_that_numbers_something_is_known_however_it_is_written(name):
    assert is_numbered(name)
    assert is_identifier(name, np.arange(10.0) * 7, rows=10)
    assert not is_identifier(name, np.arange(9.0) * 7, rows=9)  # so few are categories


@pytest.mark.parametrize("name", MEASURED.split())
def test_a_name_that_only_looks_alike_is_none(name):
    assert not is_numbered(name)
    assert not is_identifier(name, np.arange(10.0) * 7, rows=10)
    assert is_identifier(name, np.arange(10.0) + 7, rows=10)  # they count the rows


def test_fractions_are_measured_and_not_numbered():
    assert is_identifier("probe_no", np.arange(30.0) * 3, rows=30)
    assert not is_identifier("probe_no", np.arange(30.0) * 3.5, rows=30)
    assert not is_identifier("x", np.array([0, 0.5, 2]), rows=3)


@pytest.mark.parametrize(
    ("values", "noted"),
    [
        (100_000 + np.random.default_rng(1).choice(900_000, 300, replace=False), True),
        (100_000 + np.arange(300) * 7, True),
        (1 + np.arange(300) * 7, True),
        (20240101 + np.arange(20) * 100, True),
        (100_000 + np.arange(19) * 7919, False),  # too few rows
        (150 + np.arange(25) * 10, False),  # platelets of few people
        (100_000 + np.arange(300) // 2 * 7, False),  # two rows for one
        (100_000 + np.arange(300) * 7.5, False),
    ],
)
def test_whole_numbers_that_all_differ_are_noted_where_that_is_no_accident(values, noted):
    assert may_be_identifier(values.astype(float)) is noted


def test_measurements_drawn_at_random_are_noted_only_where_each_points_at_its_row():
    """120 whole numbers drawn from 300 all differ with a probability below e^-26; one of 200 tables, below 1e-6."""
    rng = np.random.default_rng(2)
    assert not any(may_be_identifier(rng.integers(100, 400, 120).astype(float)) for _ in range(200))
    assert may_be_identifier(rng.choice(10**9, 100, replace=False).astype(float))
