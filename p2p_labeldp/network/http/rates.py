"""How often one sender, and all together, may ask: token buckets, of which nothing is kept that time has refilled.

A bucket holds ``burst`` tokens at most and regains ``per_second``; a request takes one. All that has to be remembered
of a bucket is the moment at which it will be full again (the *generic cell rate algorithm*, ITU-T I.371: a token bucket
told by one number). A bucket that is full by now need not be remembered at all.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from p2p_labeldp.errors import ConfigurationError

CAPACITY = 1 << 14  # senders remembered at once; who has more keys is held by the bucket of all


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A token bucket.

    Args:
        per_second: Requests a second, sustained.
        burst: Requests at once, after a rest.

    Raises:
        ConfigurationError: No positive finite rate, or a burst below one.
    """

    per_second: float
    burst: float

    def __post_init__(self) -> None:
        if isinstance(self.per_second, bool) or not 0 < self.per_second < math.inf:
            raise ConfigurationError(f"{self.per_second} given; more than 0 is needed", field="per_second")
        if isinstance(self.burst, bool) or not 1 <= self.burst < math.inf:
            raise ConfigurationError(f"{self.burst} given; 1 or more is needed", field="burst")


class Limiter:
    """One bucket for each key.

    Args:
        rate: Of each.
        capacity: Most buckets remembered; the one used longest ago makes room, as if it were full.
    """

    def __init__(self, rate: Rate, *, capacity: int = CAPACITY) -> None:
        self._rate = rate
        self._capacity = capacity
        self._full_at: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def charge(self, key: bytes, now: float) -> float:
        """Takes a token; returns 0, or, if there is none, the seconds until there is one.

        Args:
            key: Whose bucket.
            now: Seconds of any clock that does not run backwards.
        """
        full_at = max(self._full_at.get(key, now), now) + 1 / self._rate.per_second
        late = full_at - now - self._rate.burst / self._rate.per_second
        if late > 1e-9:  # a float's rounding is no lack of a token
            return late
        self._full_at[key] = full_at
        self._full_at.move_to_end(key)
        if len(self._full_at) > self._capacity:
            self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Drops the oldest buckets that are full again, or else the very oldest."""
        while (oldest := next(iter(self._full_at.items())))[1] <= now:
            del self._full_at[oldest[0]]
        if len(self._full_at) > self._capacity:
            self._full_at.popitem(last=False)
