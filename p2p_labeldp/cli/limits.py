"""The flags of a peer's own limits, the same for every command that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from p2p_labeldp.errors import naming

if TYPE_CHECKING:
    from p2p_labeldp.protocol.policy import Policy

MaxEpsilon: TypeAlias = Annotated[
    float | None,
    typer.Option("--max-epsilon", metavar="E", help="Largest epsilon against the learner alone. Default: no limit."),
]
MaxLocalEpsilon: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-local-epsilon",
        metavar="E",
        help="Largest epsilon against whoever sees the flipped label with its owner. Default: no limit.",
    ),
]
Colluders: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--colluders", metavar="T", help="Mates assumed to tell the learner what they see, for --max-colluder-epsilon."
    ),
]
MaxColluderEpsilon: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-colluder-epsilon",
        metavar="E",
        help="Largest epsilon against the learner with T mates. Default: no limit.",
    ),
]
MinimumSize: TypeAlias = Annotated[
    int, typer.Option("--minimum-size", metavar="S", help="Least cluster to take part in, 2 or more.")
]
EnrolmentKey: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--enrolment-key",
        metavar="ID",
        help="Take part only in rounds that admit by this key's enrolments. Default: open rounds only.",
    ),
]

_FLAGS = {
    "epsilon": "--max-epsilon",
    "local_epsilon": "--max-local-epsilon",
    "colluders": "--colluders",
    "colluder_epsilon": "--max-colluder-epsilon",
    "minimum_size": "--minimum-size",
}


def policy_of(
    *,
    max_epsilon: float | None,
    max_local_epsilon: float | None,
    colluders: int | None,
    max_colluder_epsilon: float | None,
    minimum_size: int,
    enrolment_key: str | None = None,
) -> Policy:
    """The policy that the flags describe.

    Raises:
        ConfigurationError: An impossible limit, named by its flag.
    """
    from p2p_labeldp.cli.enrol import peer_id
    from p2p_labeldp.protocol.policy import Policy

    pinned = None if enrolment_key is None else peer_id(enrolment_key, field="--enrolment-key")
    with naming(_FLAGS):
        return Policy(
            epsilon=max_epsilon,
            local_epsilon=max_local_epsilon,
            colluders=colluders,
            colluder_epsilon=max_colluder_epsilon,
            minimum_size=minimum_size,
            enrolment_key=pinned,
        )
