"""Algorithm 2 as a test would write it, and mechanisms broken on purpose. None is known to the package."""

from dataclasses import dataclass

import numpy as np

from p2p_labeldp.auditing.observed import Rounds


@dataclass(kw_only=True)
class Simulator:
    """A healthy mechanism; what subclasses override is their defect."""

    flip_probability: float
    seed: int
    classes: int = 2

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)

    def flip(self, labels):
        lies = self.rng.integers(1, self.classes, size=labels.shape) if self.classes > 2 else 1
        return np.where(self.rng.random(labels.shape) < self.flip_probability, (labels + lies) % self.classes, labels)

    def draw(self, rows, size):
        return self.rng.integers(0, size, size=(rows, size), dtype=np.int64)

    def report(self, labels, flipped, mates):
        return np.take_along_axis(flipped, mates, axis=1)

    def __call__(self, *, labels):
        flipped = self.flip(labels)
        mates = self.draw(*labels.shape)
        reports = self.report(labels, flipped, mates)
        return Rounds(labels=labels, flipped=flipped, mates=mates, reports=reports, classes=self.classes)

    def ones(self, size):
        """The same as a source of T alone."""

        def draw_ones(*, ones, rounds):
            chunk = max(1, 2_000_000 // size)
            parts = []
            for start in range(0, rounds, chunk):
                labels = np.zeros((min(chunk, rounds - start), size), dtype=np.int8)
                labels[:, :ones] = 1
                parts.append(np.count_nonzero(self(labels=labels).reports, axis=1))
            return np.concatenate(parts)

        return draw_ones


class FlipTooSmall(Simulator):
    def flip(self, labels):
        return np.where(self.rng.random(labels.shape) < 0.95 * self.flip_probability, 1 - labels, labels)


class SelfExcluded(Simulator):
    def draw(self, rows, size):
        return (np.arange(size) + self.rng.integers(1, size, size=(rows, size))) % size


class FreshFlipForEachAsker(Simulator):
    def report(self, labels, flipped, mates):
        return self.flip(np.take_along_axis(labels, mates, axis=1))


class Permutation(Simulator):
    def draw(self, rows, size):
        return self.rng.permuted(np.tile(np.arange(size), (rows, 1)), axis=1)


class BiasedIndex(Simulator):
    """One member too many in the range, and the overshoot goes to the last: it is drawn twice as often."""

    def draw(self, rows, size):
        return np.minimum(self.rng.integers(0, size + 1, size=(rows, size)), size - 1)


class CoarseIndex(Simulator):
    """An index from 8 bits: byte * size >> 8."""

    def draw(self, rows, size):
        return self.rng.integers(0, 256, size=(rows, size)) * size >> 8


class SharedSeed(Simulator):
    """Members 2 and 5 toss the same coins."""

    def flip(self, labels):
        flips = self.rng.random(labels.shape) < self.flip_probability
        flips[:, 5] = flips[:, 2]
        return np.where(flips, 1 - labels, labels)

    def draw(self, rows, size):
        mates = super().draw(rows, size)
        mates[:, 5] = mates[:, 2]
        return mates


class OneCoinForFlipAndMate(Simulator):
    def __call__(self, *, labels):
        coins = self.rng.random(labels.shape)
        flipped = np.where(coins < self.flip_probability, 1 - labels, labels)
        mates = (coins * labels.shape[1]).astype(np.int64)
        return Rounds(labels=labels, flipped=flipped, mates=mates, reports=np.take_along_axis(flipped, mates, axis=1))


class RoundsRepeat(Simulator):
    """Every third round tosses the coins of the one two before it."""

    def __call__(self, *, labels):
        flips = self.rng.random(labels.shape) < self.flip_probability
        mates = self.draw(*labels.shape)
        for row in range(2, len(labels), 3):
            flips[row], mates[row] = flips[row - 2], mates[row - 2]
        flipped = np.where(flips, 1 - labels, labels)
        return Rounds(labels=labels, flipped=flipped, mates=mates, reports=np.take_along_axis(flipped, mates, axis=1))


def halves(rows, size):
    """True labels: nobody holds a one in the first half of the rows, everybody in the second."""
    labels = np.zeros((rows, size), dtype=np.int8)
    labels[rows // 2 :] = 1
    return labels
