"""How unlike their cluster's the labels of its members are: a diagnostic that reads true labels, hence NOT PRIVATE.

phi = E ||p(.|X) - p(.|c_X)||_1, X's own label distribution against that of its cluster, 0 to 2: the bias that redrawing
labels within clusters can't undo (the working definition for Algorithms 1 and 2 of arXiv 2110.02159v1). With true
labels for p(.|X), the ``one_hot`` of each row, it is 2 E[1 - p(Y|c_X)]: also what labels leave to chance counts then.

phi is for whoever holds all labels and asks how good public clusters are: a study. A mechanism's floor tau is of its
order, but is a constant of the configuration: one computed from labels would tell of them, and is not accounted for
by any epsilon. So this is no part of the package, and nothing in the package can call it.

    python simulations/heterogeneity.py [--data digits-10] [--clusters 1 10 100] [--seed 0]

prints phi of a data set for each number of KMeans clusters. Expected, digits-10, seed 0, within .02:
1.80, .91, .16.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import clustering
from p2p_labeldp.datasets import split
from p2p_labeldp.errors import ConfigurationError

NOT_PRIVATE = "NOT PRIVATE: computed from true labels, covered by no epsilon; a study's diagnostic, never a parameter"

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]


def one_hot(labels: Integers, num_classes: int) -> Reals:
    """p(.|x) of rows whose label is known, shape (n, K)."""
    return np.eye(num_classes)[labels]


def heterogeneity(laws: Reals, clusters: Integers, *, weights: Reals | None = None) -> float:
    """phi, 0 (all members of a cluster alike) to 2.

    Args:
        laws: p(.|x) of each row, shape (n, K): true ones, or ``one_hot`` of true labels.
        clusters: Cluster of each row, shape (n,), 0 and up.
        weights: P(x) of each row, shape (n,); all alike if not given.

    Raises:
        ConfigurationError: Shapes that don't fit, or rows that are no distributions.
    """
    mass = np.ones(len(laws)) if weights is None else weights
    if laws.ndim != 2 or not len(laws) == len(clusters) == len(mass) > 0:
        raise ConfigurationError(
            f"shapes {laws.shape}, {clusters.shape} and {mass.shape} given; (n, K), (n,) and (n,) are needed",
            field="laws",
        )
    if not (laws >= 0).all() or not np.allclose(laws.sum(axis=1), 1):
        raise ConfigurationError("rows of at least 0 that sum to 1 are needed", field="laws")
    of_cluster = np.zeros((int(clusters.max()) + 1, laws.shape[1]))
    np.add.at(of_cluster, clusters, mass[:, None] * laws)
    of_cluster /= np.maximum(np.bincount(clusters, weights=mass), np.finfo(float).tiny)[:, None]
    return float(mass @ np.abs(laws - of_cluster[clusters]).sum(axis=1) / mass.sum())


def line(what: str, phi: float) -> str:
    """How phi is printed, wherever it is."""
    return f"{what}: phi = {phi:.4f} (NOT PRIVATE)"


def main() -> int:
    """Prints the diagnostic of a named data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits-10", choices=split.known())
    parser.add_argument("--clusters", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    loaded = split.load(given.data, seed=given.seed, test_share=0.25)
    laws = one_hot(loaded.train_labels, len(loaded.label_space))
    print(NOT_PRIVATE)
    for count in given.clusters:
        fitted = clustering.fit(loaded.train_features, count=count, minimum_size=1, seed=given.seed)
        phi = heterogeneity(laws, fitted.assign(loaded.train_features))
        print(line(f"{given.data}, {count} clusters", phi))
    return 0


if __name__ == "__main__":
    sys.exit(main())
