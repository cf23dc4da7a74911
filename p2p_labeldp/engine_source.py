"""The population engine as something to audit: the code that plays studies, behind what ``auditing`` asks for.

``auditing`` knows no engine and ``population`` no audit; whoever measures joins them here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import population
from p2p_labeldp.auditing import Rounds
from p2p_labeldp.errors import ConfigurationError

MAX_ROUNDS = 10**8
"""Of one draw: its counts, 8 bytes each, stay below a gigabyte."""

Array = npt.NDArray[np.integer[Any]]


def unwatched(rounds: int) -> None:
    """Progress that nobody watches."""


@dataclass(slots=True, kw_only=True)
class PopulationSource:
    """One cluster, played as often as an audit likes. Every draw is a round number of its own, so none share coins.

    Within a draw, play c of the cluster has the peers c s .. c s + s - 1: independent plays, as of so many clusters.

    Args:
        cluster_size: s.
        flip_probability: f.
        seed: Of the study.
        exchange: ``resample``, or ``permute``, which an audit of the resampling must catch.
        first_round: Round number of the first draw, to keep apart sources that share a seed.
        drawn: Is told of the plays as they are drawn, how many more each time.
    """

    cluster_size: int
    flip_probability: float
    seed: int
    exchange: str = "resample"
    first_round: int = 0
    drawn: Callable[[int], None] = unwatched
    _draws: int = field(default=0, init=False)

    def draw_ones(self, *, ones: int, rounds: int) -> Array:
        """T of ``rounds`` new plays with a one at the first ``ones`` members, shape (rounds,).

        Raises:
            ConfigurationError: ``ones`` or ``rounds`` out of range.
        """
        if not 0 <= ones <= self.cluster_size:
            raise ConfigurationError(f"{ones} given; 0 to {self.cluster_size} are possible", field="ones")
        if not 1 <= rounds <= MAX_ROUNDS:
            raise ConfigurationError(f"{rounds} given; 1 to {MAX_ROUNDS} are possible", field="rounds")
        counts = np.empty(rounds, dtype=np.int64)
        blocks = population.count_ones(
            (np.arange(self.cluster_size) < ones).astype(np.uint8),
            self.flip_probability,
            clusters=rounds,
            seed=self.seed,
            round_number=self._next_round(),
            exchange=self.exchange,
        )
        end = 0
        for block in blocks:
            counts[end : end + block.size] = block
            end += block.size
            self.drawn(block.size)
        return counts

    def draw_rounds(self, *, labels: Array) -> Rounds:
        """One new play for each row of ``labels``, shape (rows, s), with all that happened in it."""
        if labels.ndim != 2 or labels.shape[1] != self.cluster_size:
            raise ConfigurationError(
                f"shape {labels.shape} given; (rows, {self.cluster_size}) is needed", field="labels"
            )
        rows, size = labels.shape
        played = population.play(
            labels.ravel(),
            np.repeat(np.arange(rows), size),
            [self.flip_probability] * rows,
            seed=self.seed,
            round_number=self._next_round(),
            exchange=self.exchange,
        )
        return Rounds(
            labels=labels,
            flipped=played.flipped.reshape(rows, size),
            mates=played.mates.reshape(rows, size) - np.arange(rows)[:, None] * size,
            reports=played.reports.reshape(rows, size),
        )

    def _next_round(self) -> int:
        self._draws += 1
        return self.first_round + self._draws - 1
