"""Where the peers of a cluster meet: a point for each round and cluster, and the hubs, who are nearest to it by id.

Whoever looks for mates walks towards the point, so that those who walk meet; what all members need of all goes by the
hubs, where it is after two visits of each. The point is a hash of public things, so that everybody finds it without
asking, and an id can be made to be near it: a hub is asked a few times and then no more, and never alone is what it
says all that a peer hears.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable
from functools import lru_cache

MEMBERS_A_HUB = 64  # so many come to each, a few times in a phase
DISTANCE_BYTES = 8  # of an id: enough to tell any two apart


@lru_cache(maxsize=4096)
def meeting_point(round_id: bytes, cluster: int) -> bytes:
    """Around which those of a cluster look for each other: another one in each round."""
    return hashlib.sha256(round_id + cluster.to_bytes(4, "big")).digest()


def distance(peer_id: bytes, point: bytes) -> int:
    """Between an id and a meeting point: their exclusive or (Maymounkov and Mazieres, Kademlia, 2002)."""
    return int.from_bytes(peer_id[:DISTANCE_BYTES], "big") ^ int.from_bytes(point[:DISTANCE_BYTES], "big")


def nearest_first(ids: Iterable[bytes], point: bytes) -> list[bytes]:
    """The ids by their distance to a point."""
    return sorted(ids, key=lambda one: distance(one, point))


def hubs(members: Collection[bytes], point: bytes) -> list[bytes]:
    """The ids nearest to a point, one for every ``MEMBERS_A_HUB`` members or part of them."""
    return nearest_first(members, point)[: math.ceil(len(members) / MEMBERS_A_HUB)]
