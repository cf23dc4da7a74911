"""Closing a round whole: who was able to answer, who holds an answer, and whether that is enough to report.

At the exchange deadline every peer that was able to answer throughout gossips one signed ready record, which says
whether it holds an answer. Who accepted its roster too late for those it had told to ask again was not, nor who was
stopped before all had asked and until it was too late: it would have answered some of its askers and not others, and
the guarantee knows only mates that answer all or none. A peer reports only if it is ready itself, its mate is ready,
and at least h ready peers hold an answer. ``ready`` alone is a mate's belief about itself and cannot see asks that
never arrived; ``holding`` can: with p members answering, h or more hold with probability P(Bin(s, p/s) >= h), and the
roster's guarantee charges exactly that.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec
import numpy as np

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage, ProtocolError, RosterMismatch
from p2p_labeldp.facts import Reason
from p2p_labeldp.protocol.gossip import Entry, GossipSet, open_entry
from p2p_labeldp.protocol.messages import MAX_CLUSTER_SIZE, Hash
from p2p_labeldp.protocol.roster import OpenedRoster

KIND = "ready"
MAX_ELSEWHERE = MAX_CLUSTER_SIZE  # so many that liars can't crowd out the one that proves it


class ReadyRecord(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Signed by a member of the roster at the exchange deadline. There is one per peer: two are equivocation."""

    round_id: Hash
    roster: Hash
    holding: bool

    @property
    def sequence(self) -> int:
        """All are of one sequence: none replaces another."""
        return 0


_decoder = msgspec.msgpack.Decoder(ReadyRecord)


class Closing:
    """The ready records that one peer knows.

    Args:
        roster: The accepted roster; records of anybody else do not count.
        keys: To sign and verify with.
    """

    def __init__(self, *, roster: OpenedRoster, keys: KeyRing) -> None:
        self.records: GossipSet[ReadyRecord] = GossipSet()
        self.elsewhere: set[bytes] = set()  # who says to be ready for another roster of this round
        self._roster = roster
        self._keys = keys

    def declare(self, *, holding: bool) -> None:
        """Signs and adds one's own ready record.

        If a twin with this key has said otherwise, both are struck out, and the verdict is: not ready.
        """
        record = ReadyRecord(self._roster.roster.round_id, self._roster.digest, holding)
        envelope = self._keys.sign(KIND, msgspec.msgpack.encode(record))
        with suppress(AuthenticationFailed):
            self.records.add(Entry(self._keys.peer_id, envelope, record))

    def absorb(self, envelopes: tuple[bytes, ...]) -> tuple[int, list[str]]:
        """Takes in ready records; returns how many were news, and what was refused."""
        news, refused = 0, []
        for envelope in envelopes:
            try:
                entry = self._open(envelope)
                if not self.records.knows(entry):
                    news += self.records.add(entry)
            except ProtocolError as exc:
                refused.append(getattr(exc, "detail", "") or str(exc))
        return news, refused

    def _open(self, envelope: bytes) -> Entry[ReadyRecord]:
        entry = open_entry(envelope, KIND, _decoder, self._keys.verify)
        record, roster = entry.content, self._roster
        if record.roster != roster.digest or record.round_id != roster.roster.round_id:
            if record.round_id == roster.roster.round_id and len(self.elsewhere) < MAX_ELSEWHERE:
                self.elsewhere.add(entry.signer)
            raise RosterMismatch("a ready record of another roster")
        if entry.signer not in roster.member_set:
            raise MalformedMessage("a ready record of no member")
        return entry

    @property
    def size(self) -> int:
        """How many members the roster has."""
        return len(self._roster.members)

    @property
    def complete(self) -> bool:
        """Whether every member has declared itself: no more news can come."""
        return len(self.records) == self.size

    def tally(self) -> tuple[bytes, bytes]:
        """Who is ready, who of them holds an answer: a bit for each member in the roster's order, the first lowest."""
        entries = [self.records.get(member) for member in self._roster.members]
        ready = [entry is not None for entry in entries]
        holding = [entry is not None and entry.content.holding for entry in entries]
        return np.packbits(ready, bitorder="little").tobytes(), np.packbits(holding, bitorder="little").tobytes()

    def verdict(self, *, me: bytes, mate: bytes | None, holding: bool) -> Reason | None:
        """None if this peer may report, else why not."""
        if me not in self.records:
            return Reason.NOT_READY
        if not holding:
            return Reason.MATE_TIMEOUT
        if mate is None or mate not in self.records:
            return Reason.MATE_NOT_READY
        if sum(entry.content.holding for entry in self.records) < self._roster.roster.holding_minimum:
            return Reason.TOO_FEW_HOLDING
        return None
