"""Labels released as they are: what the other mechanisms are measured against. Its epsilon is infinite."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_labeldp.mechanisms.interface import Labels
from p2p_labeldp.mechanisms.randomized_response import check_classes
from p2p_labeldp.mechanisms.release import Released, members_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPrivacy:
    """No mechanism.

    Args:
        num_classes: K, 2 to 256.
    """

    num_classes: int

    def __post_init__(self) -> None:
        check_classes(self.num_classes)

    @property
    def epsilon(self) -> float:
        """Infinite."""
        return math.inf

    @property
    def needs_curator(self) -> bool:
        """Nobody is trusted: everybody sees."""
        return False

    def release(self, labels: Labels, clusters: Labels, *, count: int, rng: random.Random) -> Released:
        """See ``LabelMechanism``."""
        members_of(labels, clusters, num_classes=self.num_classes, count=count)
        return Released(labels=labels.astype(np.int64), distributions=None, correction=0.0)

    def summary(self) -> dict[str, Any]:
        """Its guarantee."""
        return {"epsilon": self.epsilon, "delta": 0.0, "num_classes": self.num_classes}
