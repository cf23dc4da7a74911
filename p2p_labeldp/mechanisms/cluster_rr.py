"""ClusterRR: labels are redrawn from the noisy label distribution of their cluster, by a curator who sees them all.

Algorithm 1 of Esfandiari, Mirrokni, Syed, Vassilvitskii, "Label differential privacy via clustering" (arXiv
2110.02159v1). For each cluster, independently:

1. Count the members of each class; add discrete Laplace noise of scale sigma to each count (``discrete_laplace``).
2. Make a distribution q of them whose least probability is at least tau (``probability_floor``).
3. Replace each label, with probability lambda, by a draw from q (``redraw``).

Released are the noisy labels and q; the learner's loss may be corrected with beta (``learning.corrected_loss``). The
paper's ClusterRR (Corollary 2) has beta = 0: redrawn labels are mostly right, since clusters are nearly pure, and with
beta = lambda the correction subtracts what it should learn from.

Guarantee. epsilon = 2/sigma + ln(1 + (1-lambda)/(lambda tau)), pure. A changed label moves two counts by one, each at
a cost of 1/sigma. Section 6 of the paper states 1/sigma, and that is violated: with K = 2, one member, sigma = 1, the
counts (1, 0) and (0, 1) become "first at 0 or below, second above" with probabilities .0723 and .5344, a loss of
exactly 2. For K = 2 a single count may be noised, the other being the public size less it (``single_count``); then it
is 1/sigma. The second term is that of ``redraw`` given q, which by step 2 is at least tau everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import discrete_laplace
from p2p_labeldp.mechanisms.interface import Labels
from p2p_labeldp.mechanisms.odds import just_below
from p2p_labeldp.mechanisms.probability_floor import Distribution, floor_of, floored
from p2p_labeldp.mechanisms.randomized_response import check_classes
from p2p_labeldp.mechanisms.redraw import Redraw, check_redraw, redraw_epsilon, redraw_for
from p2p_labeldp.mechanisms.release import Released, draw_words, members_of
from p2p_labeldp.mechanisms.uniform_rr import check_level

NOISE_SHARE = 0.5
"""Of epsilon, spent on the distributions unless said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRR:
    """The mechanism; build it with ``calibrated``, or from its parameters.

    Args:
        num_classes: K, 2 to 256.
        noise_scale: sigma, in counts; a ``Fraction``.
        floor: tau, above 0 (0 only with lambda = 1) and at most 1/K. A constant of the configuration: one that was
            read off the labels would tell of them. The paper sets it to about the heterogeneity of the clusters.
        redraw_probability: lambda, above 0 and at most 1.
        correction: beta, at least 0, at most lambda and below 1.
        single_count: Whether one count is noised, for K = 2 only.

    Raises:
        ConfigurationError: A parameter out of range.
    """

    num_classes: int
    noise_scale: Fraction
    floor: Fraction
    redraw_probability: float
    correction: float = 0.0
    single_count: bool = False

    def __post_init__(self) -> None:
        check_classes(self.num_classes)
        discrete_laplace.check_scale(self.noise_scale)
        object.__setattr__(self, "floor", floor_of(self.floor, self.num_classes))
        if self.floor == 0 and check_redraw(self.redraw_probability) < 1:
            raise ConfigurationError(
                f"0 given; above 0 is possible, or 0 with redraw_probability 1, not {self.redraw_probability}",
                field="floor",
            )
        check_redraw(self.redraw_probability)
        if isinstance(self.correction, bool) or not (
            0 <= self.correction <= self.redraw_probability and self.correction < 1
        ):
            raise ConfigurationError(
                f"{self.correction} given; 0 to {self.redraw_probability}, and below 1, is possible", field="correction"
            )
        if self.single_count and self.num_classes != 2:
            raise ConfigurationError(
                f"given with {self.num_classes} classes; one count tells the other where there are 2",
                field="single_count",
            )

    @classmethod
    def calibrated(
        cls,
        *,
        num_classes: int,
        epsilon: float,
        floor: float | Fraction,
        noise_share: float = NOISE_SHARE,
        correction: float = 0.0,
    ) -> ClusterRR:
        """The mechanism whose epsilon is within ``epsilon``: sigma = 2/e1, lambda = 1/(1 + (e^e2 - 1) tau).

        For K = 2 one count is noised, with sigma = 1/e1: the same e1, less noise.

        Args:
            num_classes: K.
            epsilon: e1 + e2, 1e-6 to 700.
            floor: tau, 0 to 1/K; at 0 every label is redrawn and e2 is not spent.
            noise_share: e1/epsilon, above 0 and below 1.
            correction: beta.
        """
        level = just_below(check_level(epsilon))
        if isinstance(noise_share, bool) or not 0 < noise_share < 1:
            raise ConfigurationError(f"{noise_share} given; above 0 and below 1 is possible", field="noise_share")
        tau = floor_of(floor, check_classes(num_classes))
        single = num_classes == 2
        scale = discrete_laplace.scale_up((1 if single else 2) / (noise_share * level))
        return cls(
            num_classes=num_classes,
            noise_scale=scale,
            floor=tau,
            redraw_probability=redraw_for((1.0 - noise_share) * level, float(tau)),
            correction=correction,
            single_count=single,
        )

    @property
    def epsilon_noise(self) -> float:
        """2/sigma, for the distributions; 1/sigma where one count is noised."""
        return (1 if self.single_count else 2) / float(self.noise_scale)

    @property
    def epsilon_redraw(self) -> float:
        """ln(1 + (1-lambda)/(lambda tau)), for the labels given the distributions."""
        return redraw_epsilon(self.redraw_probability, float(self.floor))

    @property
    def epsilon(self) -> float:
        """Upper bound at delta = 0, against whoever sees the release and knows all other labels."""
        return self.epsilon_noise + self.epsilon_redraw

    @property
    def needs_curator(self) -> bool:
        """Counts are of true labels."""
        return True

    def distribution(self, counts: Sequence[int], rng: random.Random) -> Distribution:
        """Steps 1 and 2: q of one cluster.

        Args:
            counts: True members of each class, length K.
            rng: See ``release``.
        """
        size = int(sum(counts))
        if self.single_count:
            first = int(counts[0]) + discrete_laplace.draw(self.noise_scale, rng)
            return floored((first, size - first), size, self.floor)
        noisy = [int(count) + discrete_laplace.draw(self.noise_scale, rng) for count in counts]
        return floored(noisy, size, self.floor)

    def release(self, labels: Labels, clusters: Labels, *, count: int, rng: random.Random) -> Released:
        """See ``LabelMechanism``."""
        noisy = np.empty(len(labels), dtype=np.int64)
        distributions = np.empty((count, self.num_classes))
        every = members_of(labels, clusters, num_classes=self.num_classes, count=count)
        for cluster, members in enumerate(every):
            own = labels[members].astype(np.int64)
            q = self.distribution(np.bincount(own, minlength=self.num_classes).tolist(), rng)
            redraw = Redraw(redraw_probability=self.redraw_probability, distribution=q)
            noisy[members] = redraw.randomize(own, draw_words(len(own), rng))
            distributions[cluster] = [float(probability) for probability in q]
        return Released(labels=noisy, distributions=distributions, correction=self.correction)

    def summary(self) -> dict[str, Any]:
        """What ``account cluster-rr`` prints."""
        return {
            "epsilon": self.epsilon,
            "delta": 0.0,
            "epsilon_noise": self.epsilon_noise,
            "epsilon_redraw": self.epsilon_redraw,
            "num_classes": self.num_classes,
            "noise_scale": float(self.noise_scale),
            "noised_counts": 1 if self.single_count else self.num_classes,
            "floor": float(self.floor),
            "redraw_probability": self.redraw_probability,
            "correction": self.correction,
        }
