"""What is known of one cluster size. As JSON an infinity is the string ``"inf"``, as in a run's result."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from p2p_labeldp.errors import ConfigurationError


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster size. All epsilons are of one label in one round, of s answers from s members."""

    cluster_size: int
    """s."""
    flip_probability: float
    """f, given or planned for s."""
    delta: float
    """1/s^2."""
    local_epsilon: float
    """ln((1 - f)/f): against the learner with everyone, at delta 0."""
    paper_epsilon: float
    """(f s)^(-1/2), the statement of arXiv 2110.02159v1 without its constants: an order of magnitude, no guarantee;
    infinite where nothing is stated."""
    epsilon: float
    """Exact, against the learner alone, at ``delta``."""
    shuffle_epsilon: float
    """Exact, of a trusted shuffler with the same flips, at ``delta``."""
    mate_epsilon: float
    """Against the learner with one mate that keeps logs, at ``mate_delta``."""
    mate_delta: float
    """Probability that the mate asks the victim and is told the truth, plus ``delta``."""
    epsilon_lower: float
    """Measured: what the best test on the learner's view proves at ``delta``."""
    confidence: float
    """Of ``epsilon_lower``."""
    direction: str
    """Of the test, fixed beforehand: ``add`` or ``remove``."""
    trials: int
    """Rounds of a cluster that were played for ``epsilon_lower``: half with a one, half with none; among real peers a
    third each, and in the last third everybody holds a one."""
    counted: int
    """Of the trials those that ``epsilon_lower`` counts: with a one or none, and everybody reporting."""
    engine: str
    """Who played them: ``population``, ``virtual`` or ``processes``."""
    peers: int | None
    """In a round of real peers, at most; null where there are none."""
    mechanism: str
    """The user's own that was measured in place of an engine, and the start of its source's SHA-256; or empty."""
    verdict: str
    """Of the conformance: ``pass`` or ``fail``."""
    least_p_value: float
    """Of its checks."""
    accuracy: float | None
    """Mean share of held-out rows labelled rightly, by models trained on reports of rounds in which every cluster had s
    members or more and the flip was f; null if the data has fewer than s rows."""
    accuracy_non_private: float | None
    """The same, trained on the true labels."""
    accuracy_cluster_size: float | None
    """Median size of the clusters of those rounds; merging makes it larger than s."""
    config_hash: str
    """SHA-256 of the configuration."""
    seed: int
    """Of the study."""
    version: str
    """Of this package."""


def plain(row: Row) -> dict[str, Any]:
    """Values for JSON and CSV."""
    return {name: "inf" if value == math.inf else value for name, value in msgspec.structs.asdict(row).items()}


def to_line(row: Row) -> str:
    """A line of JSON, with its end.

    Raises:
        ValueError: A NaN, which is no result.
    """
    return json.dumps(plain(row), allow_nan=False) + "\n"


def from_line(line: str | bytes) -> Row:
    """The inverse of ``to_line``.

    Raises:
        ConfigurationError: No row.
    """
    try:
        return msgspec.convert(json.loads(line), Row, strict=False)  # not strict: "inf" is a number
    except (ValueError, RecursionError) as exc:  # json's and msgspec's errors are ValueErrors
        raise ConfigurationError(f"no row of a measurement: {exc}", field="measure.jsonl") from exc
