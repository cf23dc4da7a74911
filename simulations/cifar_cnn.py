"""The CIFAR-10 network of the update pipeline's paper under private rounds: ready to run, and no result yet.

Claim: the network has exactly the 1,068,298 parameters that Bhowmick et al., arXiv 1812.00984, state, and what is drawn
is that network's curve. Of its accuracy nothing is claimed and nothing is committed: the whole study takes about twelve
minutes of CPU, which have not been spent. What to expect is what ``mnist_cnn.py`` shows: with the honest sigma a cohort
this small learns nothing, since the central noise is as long as the reports' own only in cohorts of about z^2 d
(.76 million here).

Config: images cut to their middle 24 x 24 pixels, values in [0, 1]; 200 rounds; central target (1.76, 1e-9); otherwise
as in ``mnist_cnn.py``, and the curves are those of ``network_rounds.py``. eps1 in {50, 100, 250, 500} and eps2 = 10 are
this project's choice, the cohort is what two cores can do. Where the data files are not the published ones, the table
says ``unverified``.

    OPENBLAS_NUM_THREADS=1 python simulations/cifar_cnn.py [--quick] [--data-dir DIR] [--parts DIR] [--out DIR]

writes cifar_cnn.csv, .png and .svg (with --quick cifar_cnn_quick.*) and exits with 1 if the count is another. Needs JAX
(extra ``jax``). With --parts a run that was cut short goes on at the curve it was in. A client's gradient takes 11 ms
of CPU, with what is done to it 15 ms.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from frame import Study
from network_rounds import FOLDERS, QUICK, Claims, Data, Pixels, Plan, run
from p2p_labeldp.datasets import read_images
from p2p_labeldp.learning.networks import CIFAR, CIFAR_PARAMETERS

IMAGES, TESTED = 5, 2000
SIDE, EDGE = 32, 4
PLAN = Plan(
    network=CIFAR,
    rounds=200,
    target=(1.76, 1e-9),
    population=10_000,
    cohort=30.0,
    images=IMAGES,
    radius=1.0,
    rate=0.5,
    noise_length=2.5,
    every=20,
)
HONEST_LEVELS = (500.0,)
NO_CLAIMS = Claims(parameters=CIFAR_PARAMETERS, not_private=0.0, least=0.0, most=0.0, slack=1.0, honest=1.0, exact=1.0)


def cropped(rows: Pixels) -> Pixels:
    """The middle 24 x 24 pixels of a red, a green and a blue plane, pixel by pixel; shape (n, 1728)."""
    kept = slice(EDGE, SIDE - EDGE)
    planes = rows.reshape(-1, 3, SIDE, SIDE)[:, :, kept, kept]
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)).reshape(len(rows), -1)


def load(folder: Path | None) -> Data:
    """Published order: client i has the i-th five training images; the first 2,000 test images are held out."""
    images = read_images("cifar-10", directory=folder, verify=False)
    used = PLAN.population * IMAGES
    return Data(
        clients=cropped(images.train_pixels[:used]).reshape(PLAN.population, IMAGES, -1),
        labels=images.train_labels[:used].reshape(PLAN.population, IMAGES),
        test=cropped(images.test_pixels[:TESTED]),
        test_labels=images.test_labels[:TESTED],
        verified=images.verified,
    )


def main() -> int:
    """Runs all curves, writes the table and the figure, says whether the count is right."""
    study = Study.from_command_line(__file__, __doc__, quick=QUICK, folders=FOLDERS)
    data = load(study.folders["data-dir"])
    return run(study, PLAN, data, honest=HONEST_LEVELS, claims=NO_CLAIMS, title="CIFAR-10, 1,068,298 parameters")


if __name__ == "__main__":
    sys.exit(main())
