"""What a mechanism that sees whole clusters releases, and what it takes in.

Unlike the peers' exchange these mechanisms run in one place. Where ``needs_curator`` is true somebody is trusted with
all labels of a cluster; otherwise each label is randomized alone and a peer could do it itself.

Randomness is a ``random.Random``: ``random.SystemRandom()`` in a deployment, ``randomness.curator(seed)`` in a study,
whose labels have no privacy against whoever knows the seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.interface import Labels, Words

Members = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """The output; whatever is done with it costs no further privacy.

    Args:
        labels: Noisy labels, shape (n,), int64, in the order of the true ones.
        distributions: q of each cluster, from which labels were redrawn, shape (C, K), rows summing to 1; None where
            labels were not replaced by draws from one distribution.
        correction: beta of the loss that makes up for redrawing, at least 0 and below 1; 0 is the ordinary loss.
    """

    labels: npt.NDArray[np.int64]
    distributions: npt.NDArray[np.float64] | None
    correction: float


@runtime_checkable
class LabelMechanism(Protocol):
    """Labels of all clusters to noisy labels, under pure differential privacy of each label."""

    @property
    def num_classes(self) -> int:
        """K of the label space, whether or not the data have every class."""
        ...

    @property
    def epsilon(self) -> float:
        """Upper bound, at delta = 0, for neighbours that differ in one label."""
        ...

    @property
    def needs_curator(self) -> bool:
        """Whether somebody must be trusted with the labels."""
        ...

    def release(self, labels: Labels, clusters: Labels, *, count: int, rng: random.Random) -> Released:
        """One release.

        Args:
            labels: True labels, shape (n,), 0 .. K - 1.
            clusters: Public cluster of each, shape (n,), 0 .. count - 1.
            count: C, number of clusters, empty ones included.
            rng: Of the module's text.

        Raises:
            ConfigurationError: Shapes, labels or ids that don't fit.
        """
        ...

    def summary(self) -> dict[str, Any]:
        """What ``account`` prints."""
        ...


def members_of(labels: Labels, clusters: Labels, *, num_classes: int, count: int) -> Iterator[Members]:
    """Indices of each cluster's members, ascending, after checking that all fits; empty clusters yield no index."""
    for name, values, bound in (("labels", labels, num_classes), ("clusters", clusters, count)):
        if values.ndim != 1 or values.shape != labels.shape or values.dtype.kind not in "iu":
            raise ConfigurationError(f"{values.dtype} of shape {values.shape} given; n integers are needed", field=name)
        if values.size and not 0 <= values.min() <= values.max() < bound:
            raise ConfigurationError(
                f"{values.min()} to {values.max()} given; 0 to {bound - 1} is possible", field=name
            )
    order = np.argsort(clusters, kind="stable")
    return iter(np.split(order, np.cumsum(np.bincount(clusters, minlength=count))[:-1]))


def draw_words(size: int, rng: random.Random) -> Words:
    """``size`` uniform 64-bit words."""
    return np.frombuffer(rng.randbytes(8 * size), dtype="<u8").astype(np.uint64)
