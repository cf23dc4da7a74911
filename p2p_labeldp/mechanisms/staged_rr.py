"""RRWithPrior with the prior of each cluster, which has to be learnt privately too: two ways.

*One stage* (``OneStageRR``). A curator counts the labels of each cluster, adds discrete Laplace noise of scale sigma to
each count, and uses the noisy distribution as the prior of every member. A label is spent twice, on the counts and on
its own release: epsilon = 2/sigma + e2 (1/sigma where K = 2 and a single count is noised).

*Two stages* (``TwoStageRR``, in the manner of LP-2ST of Ghazi, Golowich, Kumar, Manurangsi, Zhang, arXiv 2102.06062).
A random part of the members, drawn without a look at labels, tells its labels by UniformRR. What they tell, divided by
the channel, is the prior of their cluster for the rest, who use RRWithPrior. Every label is told once, so epsilon is
that of one stage, the priors being post-processing of others' labels; and no curator is needed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.cluster_rr import NOISE_SHARE, ClusterRR
from p2p_labeldp.mechanisms.interface import Labels
from p2p_labeldp.mechanisms.odds import just_below
from p2p_labeldp.mechanisms.release import Released, draw_words, members_of
from p2p_labeldp.mechanisms.rr_with_prior import RRWithPrior
from p2p_labeldp.mechanisms.uniform_rr import UniformRR, check_level

FIRST_SHARE = 0.5
"""Of the labels, told in the first of two stages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStageRR:
    """Noisy counts of the cluster as the prior.

    Args:
        counts: How the prior is found: steps 1 and 2 of ClusterRR, whose redrawing is not used.
        told: How the label is told.
    """

    counts: ClusterRR
    told: RRWithPrior

    def __post_init__(self) -> None:
        if self.counts.num_classes != self.told.num_classes:
            raise ConfigurationError(
                f"{self.counts.num_classes} and {self.told.num_classes} given; the same number is needed",
                field="num_classes",
            )

    @classmethod
    def calibrated(cls, *, num_classes: int, epsilon: float, noise_share: float = NOISE_SHARE) -> OneStageRR:
        """The mechanism within ``epsilon``; ``noise_share`` of it, above 0 and below 1, is spent on the counts."""
        counts = ClusterRR.calibrated(num_classes=num_classes, epsilon=epsilon, floor=0.0, noise_share=noise_share)
        left = just_below(epsilon - counts.epsilon_noise)
        return cls(counts=counts, told=RRWithPrior(num_classes=num_classes, epsilon=left))

    @property
    def num_classes(self) -> int:
        """K."""
        return self.told.num_classes

    @property
    def epsilon(self) -> float:
        """Upper bound at delta = 0."""
        return self.counts.epsilon_noise + self.told.epsilon

    @property
    def needs_curator(self) -> bool:
        """Counts are of true labels."""
        return True

    def release(self, labels: Labels, clusters: Labels, *, count: int, rng: random.Random) -> Released:
        """See ``LabelMechanism``."""
        noisy = np.empty(len(labels), dtype=np.int64)
        every = members_of(labels, clusters, num_classes=self.num_classes, count=count)
        for members in every:
            own = labels[members].astype(np.int64)
            prior = self.counts.distribution(np.bincount(own, minlength=self.num_classes).tolist(), rng)
            noisy[members] = self.told.randomize(own, [float(p) for p in prior], draw_words(len(own), rng))
        return Released(labels=noisy, distributions=None, correction=0.0)

    def summary(self) -> dict[str, Any]:
        """Its constants."""
        return {
            "epsilon": self.epsilon,
            "delta": 0.0,
            "epsilon_noise": self.counts.epsilon_noise,
            "epsilon_told": self.told.epsilon,
            "num_classes": self.num_classes,
            "noise_scale": float(self.counts.noise_scale),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStageRR:
    """The labels of some members as the prior of the others.

    Args:
        num_classes: K, 2 to 256.
        epsilon: Upper bound at delta = 0, 1e-6 to 700.
        first_share: Probability that a member tells its label in the first stage, above 0 and below 1.
    """

    num_classes: int
    epsilon: float
    first_share: float = FIRST_SHARE
    _first: UniformRR = field(init=False, repr=False, compare=False)
    _second: RRWithPrior = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_level(self.epsilon)
        if isinstance(self.first_share, bool) or not 0 < self.first_share < 1:
            raise ConfigurationError(f"{self.first_share} given; above 0 and below 1 is possible", field="first_share")
        first = UniformRR.calibrated(num_classes=self.num_classes, epsilon=self.epsilon)
        object.__setattr__(self, "_first", first)
        object.__setattr__(self, "_second", RRWithPrior(num_classes=self.num_classes, epsilon=self.epsilon))

    @property
    def needs_curator(self) -> bool:
        """Nobody sees a true label but its owner."""
        return False

    def release(self, labels: Labels, clusters: Labels, *, count: int, rng: random.Random) -> Released:
        """See ``LabelMechanism``."""
        noisy = np.empty(len(labels), dtype=np.int64)
        every = members_of(labels, clusters, num_classes=self.num_classes, count=count)
        threshold = np.uint64(Fraction(self.first_share) * (1 << 64) // 1)
        for members in every:
            own = labels[members].astype(np.int64)
            early = draw_words(len(own), rng) < threshold
            noisy[members[early]] = self._first.randomize(own[early], draw_words(int(early.sum()), rng))
            prior = self.prior(np.bincount(noisy[members[early]], minlength=self.num_classes))
            words = draw_words(int((~early).sum()), rng)
            noisy[members[~early]] = self._second.randomize(own[~early], prior, words)
        return Released(labels=noisy, distributions=None, correction=0.0)

    def prior(self, told: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """From how often each label was told in the first stage: the channel divided out, what falls below 0 cut off.

        Args:
            told: Counts, shape (K,); none give the uniform prior.
        """
        redraw = self._first.redraw_probability
        excess = np.maximum(told / max(1, told.sum()) - redraw / self.num_classes, 0.0)
        if not excess.sum() > 0:
            return np.full(self.num_classes, 1.0 / self.num_classes)
        return np.asarray(excess / excess.sum())

    def summary(self) -> dict[str, Any]:
        """Its constants."""
        return {
            "epsilon": self.epsilon,
            "delta": 0.0,
            "num_classes": self.num_classes,
            "first_share": self.first_share,
            "redraw_probability": self._first.redraw_probability,
        }
