"""What of a configuration can be seen to be impossible before anything is started."""

from __future__ import annotations

from p2p_labeldp import central
from p2p_labeldp.accounting.views import PERMUTE
from p2p_labeldp.config import Config
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import randomized_response
from p2p_labeldp.owndata import OwnTable

ENGINES = ("processes", "virtual", "population")
MAX_PROCESSES = 1500
"""Peer processes that own data is played with: about 9 MiB each, and a round of some two minutes on two cores."""


def check_engine(engine: str) -> str:
    """Returns ``engine`` if there is one of that name."""
    if engine not in ENGINES:
        raise ConfigurationError(f"{engine!r} given; one of {', '.join(ENGINES)} is allowed", field="engine")
    return engine


def supported(config: Config, engine: str) -> None:
    kind = config.mechanism.kind
    if kind != central.RESAMPLING and engine != "population":
        raise ConfigurationError(
            f"{kind!r} given; 'resampling' is what peers do, the other kinds are played by the population engine only",
            field="mechanism.kind",
        )
    if kind != central.RESAMPLING and config.exchange.kind == PERMUTE:
        raise ConfigurationError(
            f"{PERMUTE!r} given with mechanism.kind {kind!r}, which exchanges nothing; it goes with 'resampling'",
            field="exchange.kind",
        )
    if config.exchange.kind == PERMUTE and engine != "population":
        raise ConfigurationError(
            f"{PERMUTE!r} given; 'resample' is what peers can do, a trusted shuffler exists on the population engine"
            " only",
            field="exchange.kind",
        )
    for name in ("epsilon", "local_epsilon", "colluders", "colluder_epsilon"):
        # Better no run than one that a limit was set for and not kept.
        if engine == "population" and getattr(config.policy, name) is not None:
            raise ConfigurationError(
                f"{getattr(config.policy, name)} given; it is peers that keep limits, and this engine has none",
                field=f"policy.{name}",
            )


def shareable(config: Config, own: OwnTable | None, seed: int | None) -> None:
    """What a run of own data without a seed keeps may be shown to others."""
    if own is not None and seed is None and config.mechanism.kind == "none":
        raise ConfigurationError(
            "'none' given, which would keep the labels of own data as they are; another kind, or a seed, is needed",
            field="mechanism.kind",
        )


def flip(config: Config, num_classes: int) -> None:
    """A flip probability can be judged when the number of classes is known."""
    flip = config.mechanism.flip_probability
    most = randomized_response.largest_flip(num_classes)
    if flip is not None and flip > most:
        raise ConfigurationError(
            f"{flip} given; 0 to {most:.6g} is possible with {num_classes} classes", field="mechanism.flip_probability"
        )


def rows(config: Config, peers: int, engine: str) -> None:
    """Own data comes in sizes that nobody chose for the clusters at hand."""
    least, count = config.clusters.minimum_size, config.clusters.count
    if peers < least:
        raise ConfigurationError(
            f"{peers} rows are left for training, fewer than the {least} of the least cluster; take more rows, or --set"
            " clusters.minimum_size to fewer, at more noise",
            field="data.csv",
        )
    if count > max(1, peers // least):
        raise ConfigurationError(
            f"{count} given; {peers} rows for training make at most {peers // least} clusters of {least} or more:"
            " fewer clusters, or --set clusters.minimum_size to fewer, at more noise",
            field="clusters.count",
        )
    processes = -(-peers // config.network.peers_per_process)
    if engine == "processes" and processes > MAX_PROCESSES:
        packed = -(-peers // MAX_PROCESSES)
        raise ConfigurationError(
            f"{peers} rows for training would be {processes} processes, more than {MAX_PROCESSES}; say --engine"
            f" population, or --set network.peers_per_process={packed}, or --set data.peers={MAX_PROCESSES}",
            field="engine",
        )
