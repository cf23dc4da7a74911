"""Public clustering of features: which cluster a peer belongs to.

Fitted once on features alone (labels are no argument), then carried in the signed manifest as plain numbers, from
which each peer finds the cluster of its single row. A peer and the learner must never disagree by a rounding, so
``Clustering.assign`` adds feature after feature in elementwise arithmetic, which IEEE 754 makes the same for one
row and for many; matrix products, and sums whose order depends on the shape, are not used.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.randomness import Stream

_RESTARTS = 4  # KMeans keeps the best of four starts: one alone is often poor, the fifth seldom improves on them
_BLOCK = 4096  # rows assigned at a time: bounds the memory at block x centroids

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clustering:
    """A fitted clustering, as plain arrays that can't be written to.

    Args:
        mean: Subtracted from each feature, shape (d,).
        scale: Divides each feature, shape (d,), above 0; 1 for a constant feature.
        centroids: Standardised KMeans centres, shape (k, d).
        cluster_of_centroid: The cluster that each centre belongs to after merging, shape (k,): ids 0 .. count - 1,
            each at least once.

    Raises:
        ConfigurationError: Shapes that don't fit, numbers that are not finite, or ids with a gap.
    """

    mean: Floats
    scale: Floats
    centroids: Floats
    cluster_of_centroid: Ids

    def __post_init__(self) -> None:
        for name, kind in (
            ("mean", np.float64),
            ("scale", np.float64),
            ("centroids", np.float64),
            ("cluster_of_centroid", np.int64),
        ):
            array = np.array(getattr(self, name), dtype=kind)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if (
            self.mean.ndim != 1
            or not len(self.mean)
            or self.scale.shape != self.mean.shape
            or self.centroids.ndim != 2
            or not len(self.centroids)
            or self.centroids.shape[1:] != self.mean.shape
            or self.cluster_of_centroid.shape != self.centroids.shape[:1]
        ):
            raise ConfigurationError("shapes (d,), (d,), (k, d), (k,) with d, k >= 1 are needed", field="clustering")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.centroids).all()):
            raise ConfigurationError("finite means and centroids are needed", field="clustering")
        if not (np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise ConfigurationError("finite scales above 0 are needed", field="clustering")
        ids = np.unique(self.cluster_of_centroid)
        if not np.array_equal(ids, np.arange(len(ids))):
            raise ConfigurationError("cluster ids 0, 1, 2, ... without a gap are needed", field="clustering")

    @property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.cluster_of_centroid.max()) + 1

    @property
    def dimension(self) -> int:
        """Number of features."""
        return len(self.mean)

    def assign(self, features: npt.ArrayLike) -> Ids:
        """Cluster ids of rows, shape (n, d) to (n,), or of one row, shape (d,) to (1,).

        The nearest centre decides, the lowest-numbered of equally near ones. A row gets the same id, bit for bit the
        same distances, alone and among others.

        Raises:
            ConfigurationError: Another number of features, or a feature that is not a finite number.
        """
        nearest = _nearest(standardise(_rows(features, len(self.mean)), self.mean, self.scale), self.centroids)
        return self.cluster_of_centroid[nearest]

    def to_payload(self) -> dict[str, Any]:
        """Plain lists of numbers, for a signed manifest."""
        return {name: getattr(self, name).tolist() for name in self.__slots__}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Clustering:
        """The inverse of ``to_payload``, exact.

        Raises:
            ConfigurationError: A payload that is none.
        """
        try:
            return cls(**payload)
        except (TypeError, ValueError, OverflowError) as exc:  # wrong keys, ragged lists, words for numbers
            raise ConfigurationError(
                "a payload of mean, scale, centroids and cluster_of_centroid is needed", field="clustering"
            ) from exc


def fit(features: npt.ArrayLike, *, count: int, minimum_size: int, seed: int) -> Clustering:
    """Standardises the features, runs KMeans, and merges clusters that are too small.

    Merging: the smallest cluster below ``minimum_size`` (of equally small ones the lowest-numbered) joins the cluster
    whose centroid is nearest to its own; the centroid of the union is the mean weighted by size; repeated until every
    cluster is large enough. Smallest first, because a large cluster then grows by few strangers, while the other way
    round two clusters that are nearly large enough would needlessly be joined. Sizes are those that ``assign``
    gives, not KMeans' own, so they are the ones the peers will see.

    Args:
        features: Public features of all peers, shape (n, d).
        count: Number of KMeans clusters.
        minimum_size: Least members of a cluster.
        seed: Of the study; clustering is ordinal 1 of the DATA stream.

    Raises:
        ConfigurationError: Fewer rows than clusters or than the minimum, or features that are not finite numbers.
    """
    rows = _rows(features, None)
    if not 1 <= count <= len(rows):
        raise ConfigurationError(
            f"{count} given; 1 to {len(rows)} are possible with {len(rows)} rows", field="clusters.count"
        )
    if not 1 <= minimum_size <= len(rows):
        raise ConfigurationError(
            f"{minimum_size} given; 1 to {len(rows)} are possible with {len(rows)} rows", field="clusters.minimum_size"
        )
    mean, scale = _standard(rows)
    standardised = standardise(rows, mean, scale)
    centroids = _kmeans(standardised, count, randomness.generator_seed(seed, Stream.DATA, 1))
    sizes = np.bincount(_nearest(standardised, centroids), minlength=count)
    return Clustering(
        mean=mean, scale=scale, centroids=centroids, cluster_of_centroid=_merge(centroids, sizes, minimum_size)
    )


def standardise(rows: Floats, mean: Floats, scale: Floats) -> Floats:
    """Rows with ``mean`` 0 and ``scale`` 1."""
    return (rows - mean) / scale


def _rows(features: npt.ArrayLike, width: int | None) -> Floats:
    rows = np.atleast_2d(np.asarray(features, dtype=np.float64))
    if rows.ndim != 2 or not rows.size or (width is not None and rows.shape[1] != width):
        wanted = "one or more" if width is None else str(width)
        raise ConfigurationError(f"shape {rows.shape} given; rows of {wanted} features are needed", field="features")
    # Squares of standardised values must stay finite, so what is near the largest float is refused with infinity.
    if not (np.abs(rows) < 1e150).all():
        raise ConfigurationError("a value is missing or infinite; numbers below 1e150 are needed", field="features")
    return rows


def _standard(rows: Floats) -> tuple[Floats, Floats]:
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    # Rounding gives a constant feature a mean beside its value and a deviation just above 0; dividing would blow the
    # difference up. So does a feature whose deviation underflows.
    constant = (low == high) | (scale <= 1e-150)
    return np.where(constant, low, mean), np.where(constant, 1.0, scale)


def _kmeans(rows: Floats, count: int, seed: int) -> Floats:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits  # scikit-learn's own dependency

    # One thread: with several, scikit-learn adds the threads' sums in the order they finish, and a seed would not
    # give one clustering.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters: empty ones are merged
        model = KMeans(n_clusters=count, n_init=_RESTARTS, random_state=seed).fit(rows)
    return np.asarray(model.cluster_centers_, dtype=np.float64)


def _nearest(rows: Floats, centroids: Floats) -> Ids:
    nearest = np.empty(len(rows), dtype=np.int64)
    columns = np.ascontiguousarray(centroids.T)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        distances = np.zeros((len(block), len(centroids)))
        for feature, centres in enumerate(columns):
            difference = block[:, feature, None] - centres
            difference *= difference
            distances += difference
        nearest[start : start + _BLOCK] = distances.argmin(axis=1)
    return nearest


def _merge(centroids: Floats, sizes: npt.NDArray[np.intp], minimum_size: int) -> Ids:
    group = np.arange(len(centroids))  # of each centroid; a group is named by its lowest centroid
    centre, size = centroids.copy(), sizes.astype(np.int64)
    alive = np.ones(len(centroids), dtype=bool)
    while True:
        small = np.flatnonzero(alive & (size < minimum_size))
        if not len(small) or alive.sum() == 1:
            break
        smallest = small[size[small].argmin()]
        others = np.flatnonzero(alive & (np.arange(len(alive)) != smallest))
        nearest = others[((centre[others] - centre[smallest]) ** 2).sum(axis=1).argmin()]
        into, gone = min(smallest, nearest), max(smallest, nearest)
        total = size[into] + size[gone]
        if total:  # two empty clusters keep the centre of the lower one
            centre[into] = (size[into] * centre[into] + size[gone] * centre[gone]) / total
        size[into], alive[gone] = total, False
        group[group == gone] = into
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
