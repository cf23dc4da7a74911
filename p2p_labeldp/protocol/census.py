"""The peer records a learner knows, of all clusters: who will be in which roster, and who is struck out of them all."""

from __future__ import annotations

from collections.abc import Iterator

from p2p_labeldp.errors import AuthenticationFailed
from p2p_labeldp.protocol.directory import PeerEntry, PeerRecord
from p2p_labeldp.protocol.gossip import MAX_PROOFS, GossipSet


class Census:
    """Records by cluster. A peer is in one cluster for the whole round: who says two is in the roster of neither."""

    def __init__(self) -> None:
        self._clusters: dict[int, GossipSet[PeerRecord]] = {}
        self._cluster_named: dict[bytes, int] = {}  # by each signer of a record
        self._proofs: dict[int, tuple[bytes, ...]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._clusters.values()))

    def __iter__(self) -> Iterator[int]:
        """The clusters of which a record is known."""
        return iter(self._clusters)

    def of(self, cluster: int) -> GossipSet[PeerRecord] | None:
        """The records of a cluster; None if there are none."""
        return self._clusters.get(cluster)

    def members(self, cluster: int) -> list[PeerEntry]:
        """The records of a cluster, in no order."""
        return list(self._clusters[cluster])

    def proofs(self, cluster: int) -> tuple[bytes, ...]:
        """Pairs of records that contradict each other, of peers that were struck out."""
        return self._proofs.get(cluster, ())

    def has(self, peer_id: bytes) -> bool:
        """Whether a record of this peer came, also if it was struck out since."""
        return peer_id in self._cluster_named

    def knows(self, entry: PeerEntry) -> bool:
        """Whether this very record is known."""
        known = self._clusters.get(entry.content.cluster)
        return known is not None and known.knows(entry)

    def add(self, entry: PeerEntry) -> bool:
        """Takes a record in; False if it says nothing new.

        Raises:
            AuthenticationFailed: Its peer contradicts itself. It is struck out, and what proves it is kept for those
                who know but one of the two records.
        """
        signer, cluster = entry.signer, entry.content.cluster
        named = self._cluster_named.get(signer, cluster)
        known = self._clusters[named].get(signer) if named in self._clusters else None
        try:
            if named != cluster:
                self._clusters[named].strike(signer)
                raise AuthenticationFailed("records in two clusters")
            added = self._clusters.setdefault(cluster, GossipSet()).add(entry)
        except AuthenticationFailed:
            if known is not None:
                for one in {named, cluster}:
                    proofs = self._proofs.setdefault(one, ())
                    if len(proofs) < 2 * MAX_PROOFS:  # they come with every roster
                        self._proofs[one] = (*proofs, known.envelope, entry.envelope)
            raise
        self._cluster_named[signer] = cluster
        return added
