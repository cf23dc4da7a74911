"""All that can find an experiment impossible: its data, clustering, pace and terms. Starts nothing and keeps nothing.

Clustering, topology and planning see features and sizes only. What is public (which rows are held out, where KMeans
starts) comes from the seed of the study, and without one from a seed that everybody knows.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from p2p_labeldp import central, clustering, datasets, owndata, randomness, topology
from p2p_labeldp.config import Config, Data, Deadlines
from p2p_labeldp.datasets import Split
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.experiment import possible
from p2p_labeldp.mechanisms.release import LabelMechanism
from p2p_labeldp.network import pace
from p2p_labeldp.network.pace import Pace
from p2p_labeldp.network.study import Study, Terms
from p2p_labeldp.owndata import Choices, OwnTable
from p2p_labeldp.protocol.messages import MAX_CLUSTER_SIZE
from p2p_labeldp.protocol.policy import Policy

PUBLIC_SEED = 0
"""Of what a deployment does with public data alone: which rows are held out, where KMeans starts."""
_GRAPH_PEERS = 20_000
"""Peers up to which the population engine, which needs no graph, builds it all the same (in a second), so that what is
impossible elsewhere is impossible there. A file is always read."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """An experiment that can be played.

    Args:
        config: Its configuration.
        engine: One of ``ENGINES``.
        split: The data.
        clusters: Cluster of each peer, shape (n,).
        sizes: Members of each cluster, shape (count,).
        study: What the engines are given.
        pace: The lengths of the round's phases.
        seconds: What it took to prepare.
        mechanism: What is played in one place; None where labels are resampled.
        public_seed: Of what is done with features alone, and of learning.
        notes: How own data was read, and what to beware of.
    """

    config: Config
    engine: str
    split: Split
    clusters: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    study: Study
    pace: Pace
    seconds: float
    mechanism: LabelMechanism | None
    public_seed: int
    notes: tuple[str, ...]


def prepare(
    config: Config,
    *,
    engine: str,
    seed: int | None,
    table: OwnTable | None = None,
    data_directory: str | None = None,
    public_seed: int = PUBLIC_SEED,
) -> Prepared:
    """Everything before the round. Starts no process and keeps nothing.

    Args:
        config: What to run.
        engine: One of ``ENGINES``.
        seed: Of the study, 0 to 2^64 - 1; None takes coins from the operating system.
        table: Own data, in place of what the configuration names.
        data_directory: Where the files of image sets are; by default as ``datasets.files`` says. No part of the
            configuration: results from different places are one result.
        public_seed: Of what is done with features alone, where there is no ``seed``.

    Raises:
        ConfigurationError: Something in it is impossible.
    """
    began = time.monotonic()
    possible.check_engine(engine)
    public_seed = randomness.check_seed(public_seed if seed is None else seed)
    possible.supported(config, engine)
    own = own_table(config) if table is None else table
    possible.shareable(config, own, seed)
    split = split_of(config, seed=public_seed, table=own, data_directory=data_directory)
    mechanism = None
    if config.mechanism.kind != central.RESAMPLING:
        mechanism = central.mechanism_of(config, len(split.label_space))
    possible.flip(config, len(split.label_space))
    peers = len(split.train_labels)
    if own is not None:
        possible.rows(config, peers, engine)
    fitted = fit_clusters(config, split, seed=public_seed)
    clusters = fitted.assign(split.train_features)
    sizes = np.bincount(clusters, minlength=fitted.count).astype(np.int64)
    if engine != "population" and sizes.max() > MAX_CLUSTER_SIZE:
        raise ConfigurationError(
            f"{config.clusters.count} gives a cluster of {sizes.max()} peers; real peers keep at most"
            f" {MAX_CLUSTER_SIZE}: more clusters, or the population engine",
            field="clusters.count",
        )
    chosen = pace.configured(config, peers=peers, engine=engine, clusters=fitted.count)
    key = config.policy.enrolment_key
    study = Study(
        terms=Terms(
            classes=split.label_space.classes,
            clustering=fitted.to_payload(),
            target_epsilon=config.mechanism.target_epsilon,
            flip_probability=config.mechanism.flip_probability,
            tolerated_loss=config.mechanism.tolerated_loss,
            minimum_size=minimum_size(config),
            deadlines=chosen.deadlines(),
            gossip_period=chosen.gossip_period,
            study=True,
            enrolment_key=None if key is None else bytes.fromhex(key),
        ),
        features=split.train_features,
        labels=split.train_labels,
        neighbours=_neighbours(config, engine, peers, public_seed),
        seed=seed,
        peers_per_process=config.network.peers_per_process,
        slow_down=config.exchange.deadlines == Deadlines(),  # a length that is given is kept
        policy=Policy(
            epsilon=config.policy.epsilon,
            local_epsilon=config.policy.local_epsilon,
            colluders=config.policy.colluders,
            colluder_epsilon=config.policy.colluder_epsilon,
            minimum_size=config.policy.minimum_size,
            enrolment_key=None if key is None else bytes.fromhex(key),
        ),
    )
    return Prepared(
        config=config,
        engine=engine,
        split=split,
        clusters=clusters,
        sizes=sizes,
        study=study,
        pace=chosen,
        seconds=time.monotonic() - began,
        mechanism=mechanism,
        public_seed=public_seed,
        notes=() if own is None else own.notes,
    )


@lru_cache(maxsize=4)
def _read(data: Data, version: tuple[int, int]) -> OwnTable:
    """``version``, of the file, keeps a changed one from being taken for what it was."""
    assert data.csv is not None
    assert data.label is not None
    choices = Choices(
        classes=data.classes,
        decimal=data.decimal,
        separator=data.separator,
        encoding=data.encoding,
        leave_out=data.leave_out,
        keep=data.keep,
    )
    return owndata.load(data.csv, label=data.label, choices=choices)


def own_table(config: Config) -> OwnTable | None:
    """The table that a configuration names, read once; None if it names a data set."""
    data = config.data
    if data.csv is None:
        return None
    try:
        status = os.stat(data.csv)
        version = status.st_mtime_ns, status.st_size
    except (OSError, ValueError):  # reading it says why
        version = 0, 0
    return _read(msgspec.structs.replace(data, test_share=0.5, peers=None), version)


def split_of(config: Config, *, seed: int, table: OwnTable | None = None, data_directory: str | None = None) -> Split:
    """The data of a configuration, or a table, shared out."""
    own, share, peers = table or own_table(config), config.data.test_share, config.data.peers
    if own is not None:
        return own.split(seed=seed, test_share=share, peers=peers)
    assert config.data.name is not None
    return datasets.load(
        config.data.name,
        seed=seed,
        test_share=share,
        peers=peers,
        directory=data_directory,
        verify=config.data.verify,
    )


def fit_clusters(config: Config, split: Split, *, seed: int) -> clustering.Clustering:
    """The public clustering of the peers' features."""
    return clustering.fit(
        split.train_features, count=config.clusters.count, minimum_size=config.clusters.minimum_size, seed=seed
    )


def minimum_size(config: Config) -> int:
    """The least cluster that takes part: what the clustering is merged to, or the peers' own limit if that is more."""
    return max(config.clusters.minimum_size, config.policy.minimum_size)


def _neighbours(config: Config, engine: str, peers: int, seed: int) -> list[list[int]]:
    graph = config.topology
    if engine == "population" and graph.kind != "file" and peers > _GRAPH_PEERS:
        return []
    return topology.neighbours(graph.kind, peers, degree=graph.degree, seed=seed, path=graph.path)
