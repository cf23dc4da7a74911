"""What an audit looks at: rounds as arrays, and samples of T alone.

``Rounds`` holds as much as the observer could see: a simulator shows everything, the facts of a run show mates and
reports, and the bits of those members somebody asked. What was not seen is -1, or None for a whole column.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_labeldp.auditing import checked
from p2p_labeldp.errors import ConfigurationError

Array = npt.NDArray[np.integer[Any]]

UNSEEN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Clusters of one size, a row each; column i is member i of the roster.

    All arrays have shape (rows, cluster_size). Rows run through the clusters of the first round, then through those of
    the second, the same clusters in the same order.

    Args:
        labels: True labels, 0 .. classes - 1. Known to whoever made up the study, to nobody else.
        flipped: Flipped labels.
        mates: Position in the roster of the member that was asked, 0 .. cluster_size - 1.
        reports: Labels in the accepted reports.
        clusters: Clusters in a round; rows are a multiple of it. With 1 every row is one more round of one cluster.
        classes: K.

    Raises:
        ConfigurationError: Shapes that differ, values out of range, or nothing seen at all.
    """

    labels: Array | None = None
    flipped: Array | None = None
    mates: Array | None = None
    reports: Array | None = None
    clusters: int = 1
    classes: int = 2

    def __post_init__(self) -> None:
        checked.whole("clusters", self.clusters, least=1)
        checked.whole("classes", self.classes, least=2)
        columns = {field.name: getattr(self, field.name) for field in fields(self)[:4]}
        given = {name: array for name, array in columns.items() if array is not None}
        if not given:
            raise ConfigurationError("nothing observed; give labels, flipped, mates or reports", field="rounds")
        shape = next(iter(given.values())).shape
        for name, array in given.items():
            if array.ndim != 2 or array.shape != shape or array.size == 0:
                raise ConfigurationError(f"shape {array.shape} given; all are (rows, cluster size)", field=name)
            if array.dtype.kind not in "iu":
                raise ConfigurationError(f"dtype {array.dtype} given; whole numbers are needed", field=name)
            most = (shape[1] if name == "mates" else self.classes) - 1
            if int(array.min()) < UNSEEN or int(array.max()) > most:
                raise ConfigurationError(f"values outside 0 to {most} (-1 where unseen)", field=name)
        if shape[0] % self.clusters:
            raise ConfigurationError(f"{shape[0]} rows are no multiple of {self.clusters}", field="clusters")

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cluster_size)."""
        for array in (self.reports, self.mates, self.flipped, self.labels):
            if array is not None:
                return (array.shape[0], array.shape[1])
        raise AssertionError

    @property
    def cluster_size(self) -> int:
        """s."""
        return self.shape[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnesSample:
    """Values of T from independent rounds of clusters that hold ``ones`` true ones, all of which reported.

    Args:
        cluster_size: s.
        ones: k.
        counts: T of each round, shape (rounds,).

    Raises:
        ConfigurationError: A value outside 0 .. cluster_size.
    """

    cluster_size: int
    ones: int
    counts: Array

    def __post_init__(self) -> None:
        checked.whole("cluster_size", self.cluster_size, least=1)
        checked.whole("ones", self.ones, least=0, most=self.cluster_size)
        if self.counts.ndim != 1 or self.counts.dtype.kind not in "iu" or self.counts.size == 0:
            raise ConfigurationError("whole numbers of shape (rounds,) are needed", field="counts")
        if int(self.counts.min()) < 0 or int(self.counts.max()) > self.cluster_size:
            raise ConfigurationError(f"values outside 0 to {self.cluster_size}", field="counts")

    @property
    def histogram(self) -> Array:
        """How often each value was seen, shape (cluster_size + 1,)."""
        return np.bincount(self.counts, minlength=self.cluster_size + 1)


class DrawsOnes(Protocol):
    """Runs whole rounds and shows T only: what a fast engine offers."""

    def __call__(self, *, ones: int, rounds: int) -> Array:
        """T of ``rounds`` new independent rounds in which ``ones`` members hold a one, shape (rounds,).

        Two calls never share randomness.
        """
        ...


class DrawsRounds(Protocol):
    """Runs whole rounds and shows what is inside."""

    def __call__(self, *, labels: Array) -> Rounds:
        """One new independent round of a cluster for each row of ``labels``, shape (rows, cluster_size)."""
        ...
