"""The section of rounds of private updates."""

from __future__ import annotations

import typing
from typing import Annotated, ClassVar, Literal, TypeAlias

from p2p_labeldp.config.rules import OneOf, Real, Text, Whole
from p2p_labeldp.config.section import Section

MagnitudeKind: TypeAlias = Literal["absolute", "relative"]


class Updates(Section, frozen=True, kw_only=True):
    """Rounds of private updates: what each peer releases, and what the learner makes of it.

    Each peer of the data is one of N; which of them take part in a round their own coins decide.
    """

    PATH: ClassVar[str] = "updates"

    model: Annotated[str, Text()] = "logistic_regression"
    """What is trained, from the table in ``p2p_labeldp.learning.models``. Default ``logistic_regression``."""

    sampling_rate: Annotated[float, Real(above=0, at_most=1)] = 0.1
    """q, probability with which a peer takes part in a round, above 0 and at most 1. Default 0.1: smaller rates need
    less noise for the same central guarantee, in smaller cohorts."""

    rounds: Annotated[int, Whole(at_least=1, at_most=10**6)] = 20
    """T, at least 1. Default 20: on the default data more rounds cost more in noise than they bring."""

    epsilon_direction: Annotated[float, Real(at_least=1e-6, at_most=1e5)] = 4.0
    """Level of a report's direction, 1e-6 to 1e5. Default 4: of 31 parameters three reports still hide the direction
    from whoever did not almost know it. Models of d parameters need about d/8 to learn well from few peers."""

    epsilon_magnitude: Annotated[float, Real(at_least=1e-6, at_most=1e5)] = 2.0
    """Level of a report's magnitude, 1e-6 to 1e5. Default 2."""

    magnitude: Annotated[MagnitudeKind, OneOf(typing.get_args(MagnitudeKind))] = "absolute"
    """``absolute``: ScalarDP. ``relative``: ScalarRelDP, whose error follows the magnitude. Default ``absolute``."""

    max_radius: Annotated[float, Real(at_least=1e-100, at_most=1e100)] = 1.0
    """Norm to which each update is clipped, 1e-100 to 1e100. Default 1, with features standardised."""

    local_steps: Annotated[int, Whole(at_least=1, at_most=10_000)] = 1
    """Steps of descent a peer takes on its own rows, at least 1. Default 1: the update is the gradient."""

    local_rate: Annotated[float, Real(above=0, at_most=1e100)] = 0.1
    """Of these steps, above 0; one step does not read it. Default 0.1."""

    learning_rate: Annotated[float, Real(above=0, at_most=1e100)] = 0.5
    """Of the learner's step along the noisy average, above 0. Default 0.5."""

    projection: Annotated[float | None, Real(above=0, at_most=1e100)] = None
    """rho, norm to which the learner shrinks reports, above 0. Default: the largest that the mechanism has, so that
    none is shrunk; below it averages are biased, and the share is warned of."""

    central_epsilon: Annotated[float, Real(above=0)] = 2.0
    """Central target, at ``delta``, that the noise is planned for, above 0. Default 2, about the paper's."""

    delta: Annotated[float, Real(at_least=1e-12, below=1)] = 1e-9
    """Of the central guarantee, 1e-12 to 1. Default 1e-9, the paper's."""

    sigma: Annotated[float | None, Real(at_least=0, at_most=1e100)] = None
    """Deviation of the noise on the average, in place of the target's; then the result states what that guarantees
    beside what the target would have taken. 0 is not private. Default: the target's."""

    budget: Annotated[float | None, Real(above=0)] = None
    """Largest total local epsilon that a peer spends, above 0; beyond it a peer sends nothing, in boxes that look the
    same. Default: no limit."""

    breach_distance: Annotated[float, Real(above=0, at_most=2)] = 0.5
    """Distance from the direction of a peer's update at which a guess counts as a reconstruction, above 0, at most 2.
    Default 0.5, an angle of 29 degrees."""

    round_seconds: Annotated[float | None, Real(above=0, at_most=1e6)] = None
    """Longest that a round waits for missing peers, above 0. Default: from the number of peers."""

    poll_seconds: Annotated[float | None, Real(at_least=0.001, at_most=86_400)] = None
    """Between two questions of a peer whether a round is open. Default: from the number of peers."""
