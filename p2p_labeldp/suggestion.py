"""How many clusters for somebody's table, and the noise that follows. Reads features and sizes: labels are no argument.

More clusters keep the labels within one alike, fewer make larger clusters, which need less noise. The number is
0.65 sqrt(n), and more where clusters would have above 150 members (300 if there are more than two classes): larger ones
take the accountant seconds each. That is about 30 members at n = 455 and 60 at 1,437. It is what did well on the data
sets that come with the package (digits-10 at epsilon 1, n = 1,437: 1, 5, 10, 15, 20, 30, 60 clusters give .11, .41,
.55, .62, .67, .64, .59), and so small that every cluster can have its least size. Trying several and keeping the best
would look at the labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_labeldp import clustering
from p2p_labeldp.accounting import planning
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import largest_flip

FACTOR = 0.65
MOST_MEMBERS, MOST_MEMBERS_OF_CLASSES = 150, 300
MUCH = 0.8
"""Of the largest flip there is: beyond it a label hardly says more than a coin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Clusters, and what they ask for.

    Args:
        count: Clusters to ask KMeans for.
        sizes: Members of each after merging, ascending.
        flips: The largest and the smallest flip probability of a cluster; it does not only fall with the size.
        largest_flip: (K - 1)/K, which tells nothing.
    """

    count: int
    sizes: tuple[int, ...]
    flips: tuple[float, float]
    largest_flip: float

    @property
    def much_noise(self) -> bool:
        """Whether some cluster's reports hardly say anything."""
        return self.flips[0] > MUCH * self.largest_flip


def count_for(rows: int, minimum_size: int, num_classes: int = 2) -> int:
    """The number of clusters for so many training rows."""
    most = MOST_MEMBERS if num_classes == 2 else MOST_MEMBERS_OF_CLASSES
    return max(1, min(max(round(FACTOR * math.sqrt(rows)), rows // most), rows // minimum_size))


def suggest(
    features: npt.NDArray[np.float64],
    *,
    num_classes: int,
    target_epsilon: float,
    tolerated_loss: float,
    minimum_size: int,
    seed: int,
) -> Suggestion:
    """Looks at the features of training rows.

    Args:
        features: Shape (n, d).
        num_classes: K.
        target_epsilon: Against the learner alone, at 1/s^2.
        tolerated_loss: As in a run.
        minimum_size: Of a cluster.
        seed: Of KMeans.

    Raises:
        ConfigurationError: Fewer rows than one cluster needs.
    """
    if len(features) < minimum_size:
        raise ConfigurationError(
            f"{len(features)} rows are left for training, fewer than the {minimum_size} of the least cluster; take"
            " more rows, or --set clusters.minimum_size to fewer, at more noise",
            field="data.csv",
        )
    count = count_for(len(features), minimum_size, num_classes)
    fitted = clustering.fit(features, count=count, minimum_size=minimum_size, seed=seed)
    sizes = sorted(np.bincount(fitted.assign(features), minlength=fitted.count).tolist())
    flips = [
        planning.plan_roster(size, target_epsilon, tolerated_loss, num_classes=num_classes).flip_probability
        for size in sorted(set(sizes))
    ]
    return Suggestion(
        count=count, sizes=tuple(sizes), flips=(max(flips), min(flips)), largest_flip=largest_flip(num_classes)
    )
