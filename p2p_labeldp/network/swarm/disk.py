"""What a party has on disk in a scenario: the rules of ``network.store``, in memory."""

from __future__ import annotations

from p2p_labeldp.facts import Fact, Flipped
from p2p_labeldp.protocol import kept
from p2p_labeldp.protocol.kept import Abandoned, Closed, EndedIn, Heard, JoinedAs, OpenedWith
from p2p_labeldp.protocol.ledger import Ledger


class Disk:
    """Call it with each persisted fact; it outlives its party's lives."""

    def __init__(self) -> None:
        self._log: list[Fact] = []
        self._releases: list[Flipped] = []

    def facts(self) -> list[Fact]:
        """The log, the oldest first."""
        return list(self._log)

    def ledger(self) -> Ledger:
        """What has left so far."""
        return Ledger(self._releases)

    def __call__(self, fact: Fact) -> None:
        """Keeps a fact that a restart needs, and erases what is of no use any more.

        Raises:
            LabelAlreadyReleased: The label may not leave again.
        """
        if not isinstance(fact, kept.KINDS):
            return
        match fact:
            case Flipped():
                if self.ledger().enter(fact):
                    self._releases.append(fact)
                return
            case JoinedAs() if self._joined() != fact.round_id:
                self._log.clear()
            case OpenedWith():
                self._log.clear()
            case EndedIn() | Abandoned():
                if self._joined() != fact.round_id:
                    return
                self._log = [one for one in self._log if isinstance(one, JoinedAs)]
            case Closed():
                self._log = [one for one in self._log if not isinstance(one, OpenedWith | Heard)]
            case _:
                pass
        self._log.append(fact)

    def _joined(self) -> bytes | None:
        return next((fact.round_id for fact in reversed(self._log) if isinstance(fact, JoinedAs)), None)
