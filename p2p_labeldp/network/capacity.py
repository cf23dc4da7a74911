"""How many peers, each a process of its own, fit what a machine has to give.

What one peer takes is measured, and stands here and nowhere else; a test holds a round of real processes against it.
Cores set no limit: with more peers the phases are longer (``pace``), and how long is told beside the number.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2p_labeldp.network import pace
from p2p_labeldp.network.learner_process import MAX_CONNECTIONS
from p2p_labeldp.network.limits import Limits

PEER_BYTES = 10_800_000  # private memory and page tables (10.0 MB), and what the kernel keeps of a process elsewhere
SHARED_BYTES = 300_000_000  # launcher, learner and zygote with all they import: 205 MB for 80 peers
PEER_PROCESSES = 1
SHARED_PROCESSES = 16  # launcher, learner and zygote, with the threads of their libraries
PEER_DESCRIPTORS = 32  # of one peer process in a quiet round: its listener, its loop, its log, a few connections
SHARED_DESCRIPTORS = 64  # of the learner, beside a connection for each of the peers that come at once
LEAST_PEERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What fits.

    Args:
        peers: The largest number of peer processes, 0 if not even a learner fits.
        bound_by: What keeps it from being larger.
        by: The largest number by each resource.
        round_seconds: How long a round of that many takes on these cores.
    """

    peers: int
    bound_by: str
    by: dict[str, int]
    round_seconds: float


def of(limits: Limits) -> Capacity:
    """What fits into these limits."""
    by = {"addresses": max(limits.addresses, 0)}
    if limits.memory is not None:
        by["memory"] = max((limits.memory - SHARED_BYTES) // PEER_BYTES, 0)
    if limits.processes is not None:
        by["processes"] = max((limits.processes - SHARED_PROCESSES) // PEER_PROCESSES, 0)
    if limits.descriptors < MAX_CONNECTIONS + SHARED_DESCRIPTORS:  # else the learner turns away whom it can't hold
        by["descriptors"] = max(limits.descriptors - SHARED_DESCRIPTORS, 0)
    bound_by = min(by, key=lambda name: by[name])
    peers = by[bound_by] if by[bound_by] >= LEAST_PEERS else 0
    return Capacity(
        peers=peers,
        bound_by=bound_by,
        by=by,
        round_seconds=pace.phases(peers=peers, engine="processes", cores=limits.cores).total,
    )
