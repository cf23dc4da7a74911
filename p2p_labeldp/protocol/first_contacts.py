"""Whom the learner asks first: the places that those who asked for the manifest say they can be reached at.

Anybody with a key may name any place, so the table is bounded in all and per place, each entry is asked a few times and
then forgotten, and whom to ask next is drawn at random: who fills the table with places that lead nowhere makes others
wait, in proportion to its share, and can keep none out.
"""

from __future__ import annotations

import random

from p2p_labeldp.protocol.effects import Address

CAPACITY = 10_000  # beyond, a new place takes that of a random one: every record also arrives through others
IDS_A_PLACE = 4  # so that nobody points the learner at a bystander again and again
TRIES = 8  # a stranger that does not answer may be slow, and its cluster's only contact


class FirstContacts:
    """Places not yet heard from.

    Args:
        rng: Whom to ask next, and who makes room.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._waiting: dict[bytes, Address] = {}
        self._tries: dict[Address, int] = {}  # of those asked and not heard
        self._ids_at: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, place: Address) -> bool:
        """Notes a place, and returns whether it did; the last one that an id has named counts."""
        self.remove(place.peer_id)
        at = (place.host, place.port)
        if self._ids_at.get(at, 0) >= IDS_A_PLACE or self._tries.get(place, 0) >= TRIES:
            return False
        if len(self._waiting) >= CAPACITY:
            self.remove(self._rng.choice(list(self._waiting)))
        self._waiting[place.peer_id] = place
        self._ids_at[at] = self._ids_at.get(at, 0) + 1
        return True

    def remove(self, peer_id: bytes) -> None:
        """Forgets a place; its record is here, say."""
        place = self._waiting.pop(peer_id, None)
        if place is None:
            return
        at = (place.host, place.port)
        self._ids_at[at] -= 1
        if not self._ids_at[at]:
            del self._ids_at[at]

    def take(self, count: int) -> list[Address]:
        """Up to ``count`` places to ask now; they are back when ``unheard`` says so."""
        chosen = self._rng.sample(list(self._waiting.values()), min(count, len(self._waiting)))
        for place in chosen:
            self.remove(place.peer_id)
        return chosen

    def unheard(self, place: Address) -> None:
        """Nobody answered there; it is asked again a few times."""
        if place.peer_id in self._waiting:
            return
        if len(self._tries) >= CAPACITY:
            self._tries.clear()  # who was given up may be named again
        self._tries[place] = self._tries.get(place, 0) + 1
        self.add(place)
