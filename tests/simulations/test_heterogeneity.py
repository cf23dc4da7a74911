"""The label-based heterogeneity is right, says that it is not private, and is out of the package's reach."""

import sys
from pathlib import Path

import numpy as np
import pytest

import heterogeneity as study
import p2p_labeldp
from heterogeneity import NOT_PRIVATE, heterogeneity, one_hot
from p2p_labeldp.errors import ConfigurationError


def test_pure_clusters_have_none_and_the_same_labels_mixed_have_some():
    laws = one_hot(np.array([0, 0, 1, 1]), 2)
    assert heterogeneity(laws, np.array([0, 0, 1, 1])) == 0
    assert heterogeneity(laws, np.array([0, 1, 0, 1])) == pytest.approx(1)  # 2 E[1 - 1/2]


def test_a_minority_of_share_a_makes_4_h_a_times_1_less_a():
    h, a = 0.6, 0.1  # P(1|x) differs by h between the majority and the minority
    laws = np.array([[0.2, 0.8], [0.8, 0.2]])
    phi = heterogeneity(laws, np.array([0, 0]), weights=np.array([1 - a, a]))
    assert phi == pytest.approx(4 * h * a * (1 - a))


def test_rows_of_one_law_have_none_whatever_their_labels():
    laws = np.full((6, 3), 1 / 3)
    assert heterogeneity(laws, np.array([0, 0, 1, 1, 3, 3])) == pytest.approx(0)
    assert heterogeneity(one_hot(np.array([0, 1, 2, 0, 1, 2]), 3), np.zeros(6, dtype=int)) == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("laws", "clusters"),
    [(np.ones((2, 2)), [0, 0]), (np.array([[1.5, -0.5]]), [0]), (np.eye(2), [0]), (np.empty((0, 2)), [])],
)
def test_what_are_no_distributions_is_refused(laws, clusters):
    with pytest.raises(ConfigurationError, match="laws"):
        heterogeneity(laws, np.array(clusters, dtype=int))


def test_every_number_printed_says_that_it_is_not_private(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["heterogeneity.py", "--data", "digits-10", "--clusters", "1", "10", "100"])
    assert study.main() == 0
    first, *numbers = capsys.readouterr().out.splitlines()
    assert first == NOT_PRIVATE
    assert len(numbers) == 3
    assert all("NOT PRIVATE" in line for line in numbers)
    phis = [float(line.split("phi = ")[1].split()[0]) for line in numbers]
    assert phis == pytest.approx([1.7999, 0.9129, 0.1618], abs=0.02)


def reaching(folder: Path) -> list[str]:
    """Files that know of the diagnostic or of the studies."""
    words = ("import heterogeneity", "from heterogeneity", "import simulations", "from simulations")
    return [path.name for path in folder.rglob("*.py") if any(word in path.read_text() for word in words)]


def test_nothing_in_the_package_reaches_it(tmp_path):
    assert reaching(Path(p2p_labeldp.__file__).parent) == []
    (tmp_path / "leak.py").write_text("from heterogeneity import heterogeneity\n")
    assert reaching(tmp_path) == ["leak.py"]
    assert not hasattr(p2p_labeldp, "heterogeneity")
