"""``configs``: what ``run`` knows by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2p_labeldp.config import Config

HELP = """List the configurations that come with the package: what `run` and `federate` know by name.

Example:

\b
    p2p-labeldp configs
"""


def command() -> None:
    """See ``HELP``."""
    from p2p_labeldp import config

    names = config.known()
    width = max(len(name) for name in names)
    for name in names:
        typer.echo(f"{name:<{width}}  {_described(config.load(name))}")


def _described(chosen: Config) -> str:
    from p2p_labeldp.config import Updates

    mechanism, clusters, updates = chosen.mechanism, chosen.clusters, chosen.updates
    peers = "a peer for each training row" if chosen.data.peers is None else f"{chosen.data.peers} peers"
    if updates != Updates():
        return (
            f"{chosen.data.name}, {peers}; for `federate`: {updates.rounds} rounds of updates, central epsilon"
            f" {updates.central_epsilon:g} at delta = {updates.delta:g}"
        )
    noise = (
        f"flip probability {mechanism.flip_probability:g}"
        if mechanism.target_epsilon is None
        else f"epsilon {mechanism.target_epsilon:g} at delta = 1/size^2"
    )
    return (
        f"{chosen.data.name}, {peers}; {clusters.count} clusters merged to {clusters.minimum_size} members or more;"
        f" {noise}"
    )
