"""What ``run`` tells whoever brings a table: what was noticed, the suggestion, and what only their screen may show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2p_labeldp.config import Config
    from p2p_labeldp.experiment import Run
    from p2p_labeldp.suggestion import Suggestion

LOCAL = "on this screen only (reads the labels, so it is not private, and is kept nowhere)"


def chosen_clusters(config: Config, *, seed: int | None, fixed: bool, say: bool) -> tuple[Config, Suggestion]:
    """The configuration with as many clusters as are suggested, unless their number is ``fixed``; says what it read."""
    import msgspec

    from p2p_labeldp import experiment, owndata, suggestion

    table = experiment.own_table(config)
    assert table is not None
    for note in table.notes:
        typer.echo(f"note: {note}", err=True)
    public_seed = experiment.PUBLIC_SEED if seed is None else seed
    split = experiment.split_of(config, seed=public_seed)
    if say:
        for line in owndata.diagnostics(table.features, table.names, table.labels):
            typer.echo(f"{LOCAL}: {line}", err=True)
    found = suggestion.suggest(
        split.train_features,
        num_classes=len(table.label_space),
        target_epsilon=config.mechanism.target_epsilon or 1.0,
        tolerated_loss=config.mechanism.tolerated_loss,
        minimum_size=config.clusters.minimum_size,
        seed=public_seed,
    )
    if fixed:
        return config, found
    return msgspec.structs.replace(config, clusters=msgspec.structs.replace(config.clusters, count=found.count)), found


def planned(config: Config) -> bool:
    """Whether the noise is the suggestion's: planned for resampling."""
    return config.mechanism.kind == "resampling" and config.mechanism.target_epsilon is not None


def sentence(found: Suggestion, *, noise: bool) -> str:
    """The suggestion in words; its noise if that is what will be."""
    least, most = found.sizes[0], found.sizes[-1]
    members = f"{least}" if least == most else f"{least} to {most}"
    flips = " to ".join(f"{flip:.5g}" for flip in sorted(set(found.flips)))
    text = (
        f"suggested from features and sizes alone: --clusters {found.count}, which merge to {len(found.sizes)} of"
        f" {members} members"
    )
    if not noise:
        return text
    text += f"; flip {flips}"
    if found.much_noise:
        text += "; that is mostly noise: more rows, fewer clusters or a larger epsilon help"
    return text


def to_json(found: Suggestion, *, noise: bool) -> str:
    """The suggestion as one JSON object."""
    flips = list(found.flips) if noise else None
    return json.dumps({"clusters": found.count, "sizes": list(found.sizes), "flips": flips})


def say_yardsticks(done: Run) -> None:
    """What the true labels would allow, for whoever holds them."""
    if done.yardsticks is None:
        return
    non_private, majority = done.yardsticks()
    typer.echo(
        f"{LOCAL}: the same model of the true labels {non_private:.3f}, always saying the commonest {majority:.3f}",
        err=True,
    )
