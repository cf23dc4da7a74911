"""One experiment, from configuration to result: data, clustering, a round on one of three engines, guarantee, model.

Two steps. ``prepare`` does all that can find the configuration impossible and starts nothing; ``run`` plays the
round. The engines are given the same features, labels, clustering, flips and seed, and what they give back is treated
alike: the population engine takes the place of a network, of nothing else.

The population engine alone also plays ``exchange.kind = "permute"``, the trusted shuffler that resampling is compared
with; ``promise`` says how its flip is planned and what it guarantees. It alone also plays the mechanisms of
``central``, which take the place of the whole exchange, for any number of classes.

Own data (``data.csv``, or arrays) is played without a seed unless one is given: every coin then comes from the
operating system, and what is public (which rows are held out, where KMeans starts) from a seed that everybody knows.
What such a run keeps may be shown to others, so it holds neither who asked whom nor what was worked out from the true
labels of its peers.

Labels reach the engine, where each becomes one peer's own, and the two yardsticks of accuracy. Clustering, topology and
planning see features and sizes only.
"""

from p2p_labeldp.experiment.deployed import learn_from_peers
from p2p_labeldp.experiment.keeping import keep
from p2p_labeldp.experiment.learning import yardsticks
from p2p_labeldp.experiment.playing import Progress, Release, Silence
from p2p_labeldp.experiment.possible import ENGINES, MAX_PROCESSES, check_engine
from p2p_labeldp.experiment.preparing import (
    PUBLIC_SEED,
    Prepared,
    fit_clusters,
    minimum_size,
    own_table,
    prepare,
    split_of,
)
from p2p_labeldp.experiment.running import Run, accuracy, run, versions

__all__ = [
    "ENGINES",
    "MAX_PROCESSES",
    "PUBLIC_SEED",
    "Prepared",
    "Progress",
    "Release",
    "Run",
    "Silence",
    "accuracy",
    "check_engine",
    "fit_clusters",
    "keep",
    "learn_from_peers",
    "minimum_size",
    "own_table",
    "prepare",
    "run",
    "split_of",
    "versions",
    "yardsticks",
]
