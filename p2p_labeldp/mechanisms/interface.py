"""What a mechanism is: a pure function of labels and words. It states its channel; what may be claimed for it is the
business of ``accounting``, what can be observed of it that of ``auditing``.

Words come from ``randomness``: four 64-bit words a peer, word 0 for the flip and word 1 for the mate, so that a
mechanism run in bulk tosses the very coins each peer tosses alone. Leading dimensions are rounds or clusters.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.integer[Any]]
Words = npt.NDArray[np.uint64]


@runtime_checkable
class LocalRandomizer(Protocol):
    """What a peer does to its own label before anything leaves it."""

    @property
    def channel(self) -> npt.NDArray[np.float64]:
        """``channel[i, j]`` = P(output j | input i), shape (K, K)."""
        ...

    def randomize(self, labels: Labels, words: Words) -> Labels:
        """Labels of shape (...,) with one word each, to labels of the same shape."""
        ...
