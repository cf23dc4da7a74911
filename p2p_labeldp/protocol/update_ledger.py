"""The ledger of updates, and the limits a peer sets itself in rounds of them.

One round, one release: what left in a round is recorded before it leaves, and a repeat is the same box. A second model
under the number of a round that was answered gets nothing: the learner would have two draws of one round. Levels add
up over all rounds of all runs in which the same data took part, and nothing leaves beyond the budget.

    asked in                                 becomes
    a round answered before                  the same box
    its number, with another model           refused, always
    a lower number than the last             refused: a learner goes forward
    a new round, within the budget           an update, if the peer's coin says so
    a new round, beyond the budget           nothing, in a box like any other

Nothing here depends on the data: coins and levels alone decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from p2p_labeldp.errors import BudgetExhausted, ConfigurationError, PrivacyError
from p2p_labeldp.protocol.federation import OpenedFederation
from p2p_labeldp.protocol.kept import ContributedAs


class UpdateLedger:
    """What has left of one peer's data in rounds of updates.

    Args:
        entries: From earlier lives; of a run's earlier rounds the boxes may be gone.
        budget: Largest total epsilon; None: no limit.

    Raises:
        ConfigurationError: A budget that is no number above 0.
    """

    def __init__(self, entries: Iterable[ContributedAs] = (), *, budget: float | None = None) -> None:
        check_limit(budget, "budget")
        self.budget = budget
        self._entries: dict[tuple[bytes, int], ContributedAs] = {}
        for entry in entries:
            self._entries[entry.run_id, entry.round] = entry

    def find(self, run_id: bytes, number: int) -> ContributedAs | None:
        """What left in a round, if anything has."""
        return self._entries.get((run_id, number))

    def last(self, run_id: bytes) -> int:
        """The last round of a run that was answered; -1 if none was."""
        return max((number for run, number in self._entries if run == run_id), default=-1)

    def spent(self, data_id: str) -> float:
        """Total epsilon of what left of the data."""
        return math.fsum(entry.epsilon for entry in self._entries.values() if entry.data_id == data_id)

    def affords(self, data_id: str, epsilon: float) -> bool:
        """Whether one more update at that level stays within the budget.

        A budget written as t times a level that doubles can't hold is t updates all the same.
        """
        return self.budget is None or self.spent(data_id) + epsilon <= self.budget * (1.0 + 1e-12)

    def enter(self, entry: ContributedAs) -> bool:
        """Records what is about to leave; False if it stood there already.

        Raises:
            PrivacyError: Another box, or another model, of a round that was answered.
            BudgetExhausted: More than the budget.
        """
        earlier = self.find(entry.run_id, entry.round)
        if earlier is not None:
            if (earlier.round_id, earlier.box) != (entry.round_id, entry.box):
                raise PrivacyError(f"round {entry.round} was answered before; it is not privatised twice")
            return False
        if entry.epsilon > 0 and not self.affords(entry.data_id, entry.epsilon):
            raise BudgetExhausted(
                f"{self.spent(entry.data_id):g} of {self.budget:g} spent; {entry.epsilon:g} more does not fit"
            )
        for key, old in self._entries.items():
            if key[0] == entry.run_id and old.box:
                self._entries[key] = msgspec.structs.replace(old, box=b"")
        self._entries[entry.run_id, entry.round] = entry
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePolicy:
    """What one peer accepts of a run. No limit where there is None.

    Args:
        epsilon: Largest level of one report, eps1 + eps2.
        classes: The label space it expects, in order.
        features: The number of features it expects.
        learner: Id of the learner it expects, 32 bytes.

    Raises:
        ConfigurationError: A limit that is no number above 0.
    """

    epsilon: float | None = None
    classes: tuple[str, ...] | None = None
    features: int | None = None
    learner: bytes | None = None

    def __post_init__(self) -> None:
        check_limit(self.epsilon, "epsilon")

    def pinned(self, *, classes: tuple[str, ...], features: int, learner: bytes) -> UpdatePolicy:
        """The same, with what it left open."""
        return replace(
            self,
            classes=classes if self.classes is None else self.classes,
            features=features if self.features is None else self.features,
            learner=learner if self.learner is None else self.learner,
        )

    def against(self, opened: OpenedFederation, *, study: bool) -> str | None:
        """Why the peer takes no part in a run, if it does not. It is never given the data, and believes no level."""
        manifest = opened.manifest
        level = opened.mechanism.epsilon
        if manifest.study != study:
            kinds = {True: "a study", False: "a deployment"}
            return f"policy: the run is {kinds[manifest.study]}, this peer belongs to {kinds[study]}"
        if self.learner is not None and opened.learner != self.learner:
            return f"policy: learner {opened.learner.hex()} instead of {self.learner.hex()}"
        if self.classes is not None and manifest.classes != self.classes:
            return "policy: another label space"
        if self.features is not None and len(manifest.shift) != self.features:
            return f"policy: {len(manifest.shift)} features instead of {self.features}"
        if self.epsilon is not None and level > self.epsilon:
            return f"policy: epsilon {level:g} of a report above {self.epsilon:g}"
        return None


def check_limit(limit: float | None, field: str) -> None:
    """Refuses a limit that is no finite number above 0."""
    if limit is not None and (isinstance(limit, bool) or not 0 < limit < math.inf):
        raise ConfigurationError(f"{limit} given; a finite number above 0 is needed", field=field)
