"""The laws of m, the number of ones among the flipped labels of a pool, for all label counts at once.

Of the p members able to answer one is the victim; k = 0 .. p - 1 of the others have true label one, and
M ~ Bin(k, 1 - f) + Bin(p - 1 - k, f) of the others' flipped labels are ones. Counts k are taken in chunks: the others
common to a chunk (k0 certain ones, p - k1 certain zeros) give one law, found once, and each count of the chunk is that
law convolved with the few others whose labels differ within it. All terms are positive.

With ``tail`` > 0 each law is cut to a window; ``omitted`` bounds the mass cut from any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from p2p_labeldp.accounting.binomial import Floats, pmf, window

CHUNK = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Label counts ``first .. last`` and the window of M that serves them all."""

    first: int
    last: int
    low: int
    high: int


@lru_cache(maxsize=16)
def laws_within(others: int, flip_probability: float) -> Floats:
    """P(M = j) for ``others`` people of whom k are ones, row k = 0 .. others, column j = 0 .. others."""
    law = np.ones((1, 1))
    for n in range(others):
        longer = np.zeros((n + 2, n + 2))
        longer[:-1, :-1] = law * (1 - flip_probability)
        longer[:-1, 1:] += law * flip_probability
        longer[-1] = longer[0, ::-1]  # all ones: all zeros, relabelled
        law = longer
    law.flags.writeable = False
    return law


class Pool:
    """All laws of M for one pool size and flip probability; see the module.

    Args:
        size: p, the members able to answer, at least 1.
        flip_probability: f.
        tail: Mass that may be cut from one side of one window; 0 cuts nothing.
        log_scale: Laws are returned times e^log_scale.
    """

    def __init__(self, size: int, flip_probability: float, tail: float, log_scale: float = 0.0) -> None:
        self.size = size
        self.flip_probability = flip_probability
        self.tail = tail
        self.log_scale = log_scale
        self.omitted = 4 * tail  # two binomials, two sides each
        self._laws: dict[int, Floats] = {}

    def chunks(self) -> Iterator[Chunk]:
        """All label counts 0 .. p - 1, in order."""
        for first in range(0, self.size, CHUNK):
            last = min(first + CHUNK, self.size) - 1
            flipped, stay = self._flips(first, last)
            yield Chunk(first=first, last=last, low=first - flipped[1] + stay[0], high=last - flipped[0] + stay[1])

    def laws(self, chunk: Chunk) -> Floats:
        """P(M = m), row k = first .. last, column m = low .. high."""
        if chunk.first not in self._laws:
            self._laws[chunk.first] = self._convolve(chunk)
        return self._laws[chunk.first]

    def _flips(self, first: int, last: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Windows of the number of flips among the common ones and among the common zeros."""
        f = self.flip_probability
        ones, zeros = first, self.size - 1 - last
        return (
            window(ones, ones * f, ones * f, ones * f * (1 - f), self.tail),
            window(zeros, zeros * f, zeros * f, zeros * f * (1 - f), self.tail),
        )

    def _convolve(self, chunk: Chunk) -> Floats:
        f = self.flip_probability
        flipped, risen = self._flips(chunk.first, chunk.last)
        ones = pmf(chunk.first, f, *flipped, self.log_scale)[::-1]
        zeros = pmf(self.size - 1 - chunk.last, f, *risen)
        common = np.convolve(ones, zeros)  # direct, not by FFT: no digit is lost
        within = laws_within(chunk.last - chunk.first, f)
        spread = within.shape[0] - 1
        shifted = np.zeros((spread + 1, common.size + spread))
        for j in range(spread + 1):
            shifted[j, j : j + common.size] = common
        return within @ shifted
