"""A roster as its learner keeps it: what it was made of, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from p2p_labeldp.accounting.planning import RosterPlan
from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.facts import Fact, Listed, Name, Signed
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.kept import SignedRoster


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRoster:
    """A signed roster and what it was made of."""

    cluster: int
    envelope: bytes
    digest: bytes
    plan: RosterPlan
    members: tuple[bytes, ...]
    proofs: tuple[bytes, ...]  # pairs of records that contradict each other

    @classmethod
    def of(cls, signed: SignedRoster, *, keys: KeyRing) -> ClusterRoster:
        """The roster that was kept."""
        opened = rosters.reopen(signed.envelope, keys=keys)
        terms = opened.roster
        plan = RosterPlan(
            size=len(opened.members),
            delta=terms.delta,
            holding_minimum=terms.holding_minimum,
            flip_probability=terms.flip_probability,
        )
        return cls(
            cluster=signed.cluster,
            envelope=opened.envelope,
            digest=opened.digest,
            plan=plan,
            members=opened.members,
            proofs=signed.proofs,
        )

    def facts(self, *, by: Name, at: float, name_of: Callable[[bytes], Name]) -> Iterator[Fact]:
        """What is told of it: its figures, then its members."""
        plan = self.plan
        yield Signed(
            peer=by,
            at=at,
            cluster=self.cluster,
            size=plan.size,
            flip_probability=plan.flip_probability,
            delta=plan.delta,
            holding_minimum=plan.holding_minimum,
        )
        for member in self.members:
            yield Listed(peer=name_of(member), at=at, cluster=self.cluster)
