"""What a client computes from the model it is sent, before anything is private: its update, clipped.

Definition. From theta take s steps of gradient descent at rate r on the mean loss of the client's own rows; the update
is (theta - theta_s) / (r s), the mean of the gradients on the way, and for one step the gradient. What is no finite
number is refused, and only then the whole vector is clipped to norm r_max: a NaN passes every comparison, and clipping
layer by layer would bound another norm than the one that is accounted for.

Source: Bhowmick et al., arXiv 1812.00984, section 4; McMahan et al., "Communication-efficient learning of deep
networks", 2017 (several local steps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.learning.models import Features, Labels, Model, Vector
from p2p_labeldp.mechanisms.norms import clip


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalUpdate:
    """How a client computes.

    Args:
        model: Its gradient is taken.
        max_radius: r_max, above 0.
        steps: s, at least 1.
        rate: r of the local steps, above 0; a single step does not depend on it.

    Raises:
        ConfigurationError: A number out of range.
    """

    model: Model
    max_radius: float
    steps: int = 1
    rate: float = 0.1

    def __post_init__(self) -> None:
        for name in ("max_radius", "rate"):
            value = getattr(self, name)
            if isinstance(value, bool) or not 0 < value < math.inf:
                raise ConfigurationError(f"{value} given; a finite number above 0 is possible", field=name)
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise ConfigurationError(f"{self.steps} given; an integer of at least 1 is possible", field="steps")

    def compute(self, parameters: Vector, features: Features, labels: Labels) -> Vector:
        """The clipped update, shape (dimension,).

        Args:
            parameters: The model as sent, shape (dimension,).
            features: The client's rows, shape (m, d), m >= 1.
            labels: Their labels, shape (m,).

        Raises:
            ConfigurationError: An entry of the update is NaN or infinite.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would be the data's; clipping refuses what comes
            here, total = parameters, self.model.gradient(parameters, features, labels)
            gradient = total
            for _ in range(self.steps - 1):
                here = here - self.rate * gradient
                gradient = self.model.gradient(here, features, labels)
                total = total + gradient
        return clip(total / self.steps, self.max_radius, self.model.dimension)
