"""The label ledger: one label, one release, whoever the learner is and whatever the clustering.

A label is spent when its flipped value is recorded, before the first answer leaves; there is no way back. A label that
nobody asked for is spent when the exchange ends: else the learner would see, by who comes to its next round, whom
nobody asked, and so whose label is in no report. The entries are the ``Flipped`` facts themselves, so what was spent
and what was flipped cannot disagree.

    same label, asked for in            becomes
    the same round and roster           the same flipped value again: a restart costs nothing
    another roster or round             refused; if the peer allows it, the same flipped value once more
    ... at another flip probability     refused always: two thresholds on one label compose to more than either
    ... in another label space          refused always: the same secret, whatever its classes are called

Allowing another roster costs the local epsilon: the flipped label stays one, but nothing less is claimed for what two
rosters tell of it together.
"""

from __future__ import annotations

from collections.abc import Iterable

from p2p_labeldp.errors import LabelAlreadyReleased
from p2p_labeldp.facts import Flipped


class Ledger:
    """What has left of one peer's labels.

    Args:
        releases: From earlier lives.
        another_roster: Whether a label may leave again, as the same flipped value, in another roster.
    """

    def __init__(self, releases: Iterable[Flipped] = (), *, another_roster: bool = False) -> None:
        self._another_roster = another_roster
        self._releases: dict[str, list[Flipped]] = {}
        for release in releases:
            self._releases.setdefault(release.label_id, []).append(release)

    def against_round(self, label_id: str, *, round_id: bytes, label_space: str) -> str | None:
        """Why this label can't be in that round, if so; known before there is a roster.

        Args:
            label_id: Names the label.
            round_id: Of the round.
            label_space: Digest of its label space.
        """
        if (why := self._against_label_space(label_id, label_space)) is not None:
            return why
        if self._another_roster or all(r.round_id == round_id.hex() for r in self._of(label_id)):
            return None
        return f"label spent: {label_id[:64]!r} has left in another round"

    def against_roster(self, label_id: str, *, round_id: bytes, roster: bytes, flip_probability: float) -> str | None:
        """Why this label can't leave in that roster, if so."""
        place = (round_id.hex(), roster.hex())
        for earlier in self._of(label_id):
            if earlier.flip_probability != flip_probability:
                return (
                    f"label spent: {label_id[:64]!r} has left at flip probability {earlier.flip_probability!r},"
                    f" not {flip_probability!r}"
                )
            if (earlier.round_id, earlier.roster) != place and not self._another_roster:
                return f"label spent: {label_id[:64]!r} has left in another roster"
        return None

    def holds(self, label_id: str, *, round_id: bytes, roster: bytes) -> bool:
        """Whether the release in that roster is recorded."""
        place = (round_id.hex(), roster.hex())
        return any((r.round_id, r.roster) == place for r in self._of(label_id))

    def elsewhere(self, label_id: str, *, round_id: bytes, roster: bytes) -> bool:
        """Whether the label has left in any other roster."""
        place = (round_id.hex(), roster.hex())
        return any((r.round_id, r.roster) != place for r in self._of(label_id))

    def flipped(self, label_id: str) -> int | None:
        """The value that has left, if any has: no coin is tossed for it again."""
        releases = self._of(label_id)
        return releases[0].flipped_label if releases else None

    def enter(self, release: Flipped) -> bool:
        """Spends the label; False if this very release stood there already.

        Raises:
            LabelAlreadyReleased: It may not leave again. Nothing is recorded.
        """
        at = {"round_id": bytes.fromhex(release.round_id), "roster": bytes.fromhex(release.roster)}
        why = self._against_label_space(release.label_id, release.label_space) or self.against_roster(
            release.label_id, flip_probability=release.flip_probability, **at
        )
        if why is not None:
            raise LabelAlreadyReleased(why)
        if self.flipped(release.label_id) not in (None, release.flipped_label):
            raise LabelAlreadyReleased(f"label spent: {release.label_id[:64]!r} has left as another value")
        if self.holds(release.label_id, **at):
            return False
        self._releases.setdefault(release.label_id, []).append(release)
        return True

    def _against_label_space(self, label_id: str, label_space: str) -> str | None:
        if all(release.label_space == label_space for release in self._of(label_id)):
            return None
        return f"label spent: {label_id[:64]!r} has left in another label space"

    def _of(self, label_id: str) -> list[Flipped]:
        return self._releases.get(label_id, [])
