"""The last layer of a network whose other layers stay as they are: a softmax over frozen features.

Definition. A row x of k numbers, the last of which is 1, gets the logits U x, U of shape (classes, k); the loss is
cross-entropy. The parameters are U in C order. Gradients of many clients are float32 products of arrays: a round of
thousands of clients costs what their reports do, and needs no JAX.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp.learning.models import Labels, Vector

Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastLayer:
    """What is refitted.

    Args:
        start: Where it begins, shape (classes, k): what was learned elsewhere, or zeros.
    """

    start: Vector

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return self.start.size

    def initial(self, seed: int) -> Vector:
        """``start``, flat; whatever the seed."""
        return self.start.ravel().copy()

    def gradients(self, parameters: Vector, features: Rows, labels: Labels, *, block: int = 100) -> Iterator[Rows]:
        """Of the mean loss over each client's rows, n vectors of shape (dimension,), one after the other.

        Args:
            parameters: Shape (dimension,).
            features: Shape (n, m, k): m rows of each of n clients.
            labels: Shape (n, m).
            block: Clients that are differentiated at once.
        """
        rows = features.shape[1]
        for first in range(0, len(features), block):
            x, y = features[first : first + block], labels[first : first + block]
            gaps = np.exp(self._log_chances(parameters, x))
            clients, each = np.indices(y.shape)
            gaps[clients, each, y] -= 1.0
            yield from (gaps.transpose(0, 2, 1) @ x / np.float32(rows)).reshape(len(x), -1)

    def predict(self, parameters: Vector, features: Rows) -> npt.NDArray[np.int64]:
        """The likeliest class of each row, shape (n,)."""
        return np.asarray(self._log_chances(parameters, features).argmax(axis=-1), dtype=np.int64)

    def measure(self, parameters: Vector, features: Rows, labels: Labels) -> tuple[float, float]:
        """Accuracy, and mean loss in nats, of rows of shape (n, k) with labels of shape (n,)."""
        logs = self._log_chances(parameters, features)
        of_label = logs[np.arange(len(labels)), labels]
        return float((logs.argmax(axis=-1) == labels).mean()), float(-of_label.mean(dtype=np.float64))

    def _log_chances(self, parameters: Vector, features: Rows) -> Rows:
        logits = features @ parameters.reshape(self.start.shape).astype(np.float32).T
        logits -= logits.max(axis=-1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))
