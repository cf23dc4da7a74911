"""Twelve peers with three features each."""

import numpy as np

from p2p_labeldp.network.federated.study import FederationTerms, UpdateStudy

RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((12, 3))
LABELS = (FEATURES[:, 0] > 0).astype(np.int64)
TERMS = FederationTerms(
    model="logistic_regression",
    classes=("no", "yes"),
    shift=(0.0, 0.0, 0.0),
    scale=(1.0, 1.0, 1.0),
    population=12,
    sampling_rate=0.5,
    rounds=8,
    max_radius=1.0,
    epsilon_direction=4.0,
    epsilon_magnitude=2.0,
    projection=60.0,
    sigma=0.05,
    learning_rate=0.5,
    round_seconds=20.0,
    poll_seconds=0.5,
    study=True,
)


def study(**changes):
    given = {"terms": TERMS, "features": FEATURES, "labels": LABELS, "seed": 5, **changes}
    return UpdateStudy(**given)
