"""What a run of private rounds comes to: accuracy, and three ledgers of the same rounds.

Scripts rely on the names of the fields. As JSON an infinity is the string ``"inf"``.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Share of held-out rows that a model labels rightly."""

    private: float
    """Of the model that the rounds trained."""
    non_private: float
    """Of the same rounds and cohorts, with updates as they are and no noise: what privacy cost."""
    majority: float
    """Of always saying the commonest true label."""
    held_out: int
    """How many rows that is a share of."""


class Central(msgspec.Struct, frozen=True, kw_only=True):
    """What the models tell of a peer, to whoever sees them and not who took part; neighbours differ by one peer."""

    epsilon: float
    """Upper bound at ``delta``; infinite without noise."""
    delta: float
    """Where ``epsilon`` holds."""
    method: str
    """How it was found."""
    sigma: float
    """Deviation of the noise that was added to each coordinate of the average."""
    noise_multiplier: float
    """sigma q N / rho."""
    target_epsilon: float
    """What was aimed at."""
    honest_sigma: float
    """What that takes."""
    reduced: bool
    """Whether less was added: then ``epsilon`` is what holds, and the target does not."""


class Local(msgspec.Struct, frozen=True, kw_only=True):
    """What the learner, who sees reports by name, can tell of the peer that reported most often."""

    epsilon: float
    """Its total."""
    epsilon_report: float
    """Of one report, direction and magnitude."""
    participations: int
    """Its reports."""
    participations_mean: float
    """Of all peers."""
    budget: float | None
    """Beyond which no peer reports; null: no limit."""


class Reconstruction(msgspec.Struct, frozen=True, kw_only=True):
    """How well anyone who saw all reports of that peer can guess the direction of its update."""

    breach_distance: float
    """What counts as a guess."""
    success: float
    """Upper bound on the chance, given that it was uniform before."""
    prior: float
    """The chance before any report."""
    epsilon_report: float
    """Of one report."""
    participations: int
    """How many there were."""


class FederatedResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    engine: str
    """Who played it."""
    peers: int
    """N."""
    model: str
    """What was trained."""
    dimension: int
    """Its parameters."""
    rounds: int
    """Rounds that came to their end."""
    cohorts: list[int]
    """Updates in each, known to the learner alone."""
    projection: float
    """rho."""
    shrunk_share: float
    """Largest share of reports that were shrunk to it."""
    accuracy: Accuracy
    """Of the models."""
    central: Central
    """The first ledger."""
    local: Local
    """The second."""
    reconstruction: Reconstruction
    """The third."""
    parameters_digest: str
    """SHA-256 of the trained model's doubles: one seed, one digest, on every engine."""
    seconds: float
    """What the rounds took, by the engine's clock."""
    messages: int | None
    """Messages sent; null where there are none."""
    bytes: int | None
    """Their bytes on the wire; null where there is no wire."""
    config_hash: str
    """SHA-256 of the configuration."""
    seed: int
    """Every coin's. Who knows it knows every update."""
    complete: bool = True
    """Whether all rounds were played."""


def to_json(result: FederatedResult) -> str:
    """One JSON object, one line."""
    return json.dumps(_speakable(msgspec.to_builtins(result)), allow_nan=False)


def _speakable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _speakable(item) for name, item in value.items()}
    return "inf" if value == math.inf else value
