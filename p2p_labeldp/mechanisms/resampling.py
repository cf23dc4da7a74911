"""Resampling: every peer tells the flipped label of a peer drawn uniformly from its cluster, itself included.

With the randomized response before it this is Algorithm 2 of Esfandiari, Mirrokni, Syed, Vassilvitskii, "Label
differential privacy via clustering" (arXiv 2110.02159v1). Given the flipped labels, the outputs of a cluster are
independent draws from their histogram, whoever holds which, so the histogram of the outputs says all there is.

The index is ``word * size >> 64`` for a uniform 64-bit word. Each index gets floor(2^64/size) or one more of the words:
in total variation one draw is within size/2^64 of uniform, and the accounting of rosters adds that to delta.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.errors import ConfigurationError

MAX_SIZE = 1 << 32  # the bulk form multiplies 32-bit halves
INDEX_BIAS = 2.0**-64  # total variation from uniform, per draw and per member of the cluster


def mate_index(word: int, size: int) -> int:
    """Which of ``size`` cluster members to ask, oneself included.

    Args:
        word: 64 uniform bits, used for nothing else.
        size: Members of the cluster, 1 to 2^32 - 1.

    Returns:
        An index in 0 .. size - 1.
    """
    if not 1 <= size < MAX_SIZE:
        raise ConfigurationError(f"{size} given; 1 to 2^32 - 1 are possible", field="cluster size")
    return word * size >> 64


def mate_indices(words: npt.NDArray[np.uint64], sizes: int | npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint64]:
    """``mate_index`` for many peers at once, bit for bit.

    Args:
        words: Shape (...,), uint64.
        sizes: One size, or a size per word.

    Returns:
        Indices, shape of ``words``, uint64.
    """
    factor = np.asarray(sizes).astype(np.uint64)
    half = np.uint64(32)
    low = (words & np.uint64(0xFFFFFFFF)) * factor  # below 2^64, since size < 2^32
    return ((words >> half) * factor + (low >> half)) >> half
