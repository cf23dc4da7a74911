"""``plan``: the least noise for a target, or the least cluster for a noise."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from p2p_labeldp.cli.answers import answer, check_colluders, check_flip, check_size, delta_of, refusing
from p2p_labeldp.errors import ConfigurationError

HELP = """Find the least flip probability that holds a target, or the least cluster for a flip probability.

The target holds against the learner at delta, 1/s^2 unless given; with --colluders also against the learner with so
many mates, with --local-epsilon against the learner with everyone. `binding` says which of them asks for the most.
With --tolerated-loss it holds whoever fails to answer: fewer than `holding_minimum` answers, and nobody reports. More
than two --classes are planned by a certified bound.

Examples:

\b
    p2p-labeldp plan --cluster-size 100 --epsilon 1
    p2p-labeldp plan --cluster-size 100 --epsilon 1 --local-epsilon 3 --tolerated-loss 0.1
    p2p-labeldp plan --cluster-size 100 --epsilon 1 --classes 10
    p2p-labeldp plan --flip 0.1 --epsilon 0.5
"""


def command(
    epsilon: Annotated[float, typer.Option(metavar="E", help="Target against the learner; above 0.")],
    cluster_size: Annotated[int | None, typer.Option(metavar="S", help="Members.")] = None,
    flip: Annotated[float | None, typer.Option(metavar="F", help="In place of --cluster-size: say the size.")] = None,
    local_epsilon: Annotated[
        float | None, typer.Option(metavar="L", help="Target against the learner with everyone.")
    ] = None,
    colluders: Annotated[int, typer.Option(metavar="T", help="Mates the learner may work with.")] = 0,
    delta: Annotated[float | None, typer.Option(metavar="D", help="0 <= D < 1. Default: 1/s^2.")] = None,
    tolerated_loss: Annotated[
        float | None, typer.Option(metavar="A", help="Share of members that may fail to answer.")
    ] = None,
    classes: Annotated[int, typer.Option(metavar="K", help="Labels there are.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """See ``HELP``."""
    if (cluster_size is None) == (flip is None):
        raise ConfigurationError("one of --cluster-size and --flip is needed")
    with refusing():
        if flip is not None:
            if local_epsilon is not None or colluders or tolerated_loss is not None or classes != 2:
                raise ConfigurationError("with it only --epsilon and --delta are possible", field="--flip")
            record, at = _size(check_flip(flip), epsilon, delta)
        else:
            assert cluster_size is not None
            record, at = _flip(cluster_size, epsilon, local_epsilon, colluders, delta, tolerated_loss, classes)
    if as_json:
        answer(record, as_json=True)
        return
    from p2p_labeldp.reports import answers

    answer(record, *answers.planned(record, delta=at), as_json=False)


def _flip(
    size: int,
    epsilon: float,
    local_epsilon: float | None,
    colluders: int,
    delta: float | None,
    tolerated_loss: float | None,
    classes: int,
) -> tuple[dict[str, Any], float]:
    from p2p_labeldp.accounting import targets
    from p2p_labeldp.accounting.ranges import check_target

    plan = targets.plan(
        cluster_size=check_size(size),
        target_epsilon=epsilon,
        delta=delta_of(size, delta),
        local_target=None if local_epsilon is None else check_target(local_epsilon, "--local-epsilon"),
        colluders=check_colluders(colluders, size),
        tolerated_loss=tolerated_loss,
        num_classes=classes,
    )
    record = {"flip": plan.flip_probability, "epsilon": plan.epsilon, "binding": plan.binding}
    if plan.holding_minimum is not None:
        record["holding_minimum"] = plan.holding_minimum
    return record, plan.delta


def _size(flip: float, epsilon: float, delta: float | None) -> tuple[dict[str, Any], float]:
    from p2p_labeldp.accounting import resampling, targets

    size = targets.least_size(flip_probability=flip, target_epsilon=epsilon, delta=delta)
    at = delta_of(size, delta)
    found = resampling.epsilon(cluster_size=size, flip_probability=flip, delta=at)
    return {"cluster_size": size, "epsilon": found, "binding": targets.LEARNER}, at
