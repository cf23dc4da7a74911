"""Which strangers a peer asks for mates: peers of other clusters, and whom they name.

A newcomer has its first contacts. Each stranger names a few others (``Directory.reply``); of these leads the mates come
first, then those nearest to the meeting point, where all who look for the cluster come by. Nobody's word is taken for
more than an address to ask at.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from p2p_labeldp.protocol.directory import Directory, address_at
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.meeting import distance
from p2p_labeldp.protocol.messages import Contact, Offer, Place

MAX_LEADS = 16  # contacts named by strangers and not asked yet; the farthest go
MEETING = 3  # strangers asked before, the nearest to the meeting point, that are asked again
MEETING_SHARE = 0.75  # the rest are any: who has chosen its id to be near can delay, not prevent


class Strangers:
    """Whom a peer can ask outside its cluster.

    Args:
        directory: The mates it knows, who are strangers no more, and its contacts in other clusters.
        me: The peer's own id.
        first_contacts: Who it knows from the beginning.
        point: The meeting point of its cluster.
        rng: Whom to ask.
    """

    def __init__(
        self,
        *,
        directory: Directory,
        me: bytes,
        first_contacts: Collection[Address],
        point: bytes,
        rng: random.Random,
    ) -> None:
        self._directory = directory
        self._me = me
        self._first = frozenset(first_contacts)
        self._first_to_ask = list(first_contacts)
        self._point = point
        self._rng = rng
        self._meeting: list[Address] = []  # strangers that answered, nearest to the meeting point
        self._leads: list[Contact] = []  # mates first, then the nearest to the meeting point
        self._asked: set[bytes] = set()  # who has answered, or has not when it was asked

    def is_first_contact(self, one: Address) -> bool:
        """Whether the peer knew it from the beginning."""
        return one in self._first

    def next(self) -> Address | None:
        """The first contacts in turn, whom other strangers named, then who should have heard more since, or anybody."""
        if self._first_to_ask:
            return self._first_to_ask.pop()
        lead = self._lead()
        if lead is not None:
            return address_at(lead)
        if self._meeting and self._rng.random() < MEETING_SHARE:
            return self._rng.choice(self._meeting)
        stranger = self._directory.some_contact(self._rng)
        return None if stranger is None else address_at(stranger)

    def next_of_ours(self) -> Address | None:
        """A mate that a stranger named and that nobody asked so far."""
        lead = self._lead(of_ours=True)
        return None if lead is None else address_at(lead)

    def _lead(self, *, of_ours: bool = False) -> Contact | None:
        """Whom others named and who is not a mate since; the best of them. ``of_ours``: none of another cluster."""
        self._leads = [one for one in self._leads if one.peer_id not in self._directory.mates]
        if not self._leads or (of_ours and self._leads[0].cluster != self._directory.cluster):
            return None
        return self._leads.pop(0)

    def silent(self, one: Address) -> None:
        """It has not answered: nobody need name it."""
        self._asked.add(one.peer_id)

    def not_yet(self, one: Address) -> None:
        """It is not there so far; a first contact is asked again, after the others."""
        if one in self._first and one not in self._first_to_ask:
            self._first_to_ask.insert(0, one)

    def heard(self, one: Address, reply: Offer) -> None:
        """Remembers a stranger that has answered, and whom it has named. A mate that has answered is named in vain."""
        directory = self._directory
        if reply.cluster is not None and one.peer_id not in directory.mates:
            directory.meet(one.peer_id, reply.cluster, Place(one.host, one.port))
            near = sorted({*self._meeting, one}, key=lambda each: distance(each.peer_id, self._point))
            self._meeting = near[:MEETING]
        self._asked.add(one.peer_id)
        if reply.contacts:
            known = {self._me, *self._asked, *(lead.peer_id for lead in self._leads)}
            self._leads += [
                each for each in reply.contacts if not (each.peer_id in known or each.peer_id in directory.mates)
            ]
            self._leads.sort(key=lambda each: (each.cluster != directory.cluster, distance(each.peer_id, self._point)))
            del self._leads[MAX_LEADS:]
