"""What a report says about privacy: an (epsilon, delta) and whose eyes it holds against."""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2p_labeldp.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """(epsilon, delta)-label differential privacy: neighbours differ in one label.

    Args:
        view: Who looks: ``learner``, ``learner+t`` (with t mates that follow the protocol), ``learner+all``, ``mates``.
        epsilon: Upper bound, at least 0; infinite where there is no privacy.
        delta: In [0, 1].
        method: How the number was found, in words a reader can look up in the accounting package.

    Raises:
        ConfigurationError: A number out of range.
    """

    view: str
    epsilon: float
    delta: float
    method: str

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ConfigurationError(f"{self.epsilon} given; 0 to infinity is possible", field="epsilon")
        if not 0 <= self.delta <= 1:
            raise ConfigurationError(f"{self.delta} given; 0 to 1 is possible", field="delta")

    @property
    def private(self) -> bool:
        """Whether anything at all is promised."""
        return math.isfinite(self.epsilon) and self.delta < 1
