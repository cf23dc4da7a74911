"""The limits that a peer sets itself, and what it says when a round passes one.

A peer believes no figure of a manifest or roster. From the roster it is asked to accept it takes three things, its
size, the holding minimum and the flip probability, and computes from them what it would promise: to the learner alone,
to the learner with t mates (``accounting.planning``), and to whoever sees the flipped label with its owner's name
(``mechanisms.randomized_response``). All peers of a process that ask the same get one evaluation.

Nothing here is ever given a label, so no refusal can depend on one. In particular the label space is compared as it
stands in the peer's own configuration: a manifest that leaves a class out does not learn who holds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from p2p_labeldp.accounting import planning
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import randomized_response
from p2p_labeldp.protocol.manifest import OpenedManifest

LEAST_SIZE = 2
DEFAULT_MINIMUM_SIZE = 3  # among two, the other one knows whose label it was not
MAX_NAME = 40  # characters of a class that are quoted; names are the learner's to choose, and a log line is short


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What one peer accepts. No limit where there is None.

    Args:
        epsilon: Largest epsilon against the learner alone, at the roster's delta.
        local_epsilon: Largest epsilon against whoever sees the flipped label with its owner's name.
        colluders: t, mates assumed to tell the learner what they see; read with ``colluder_epsilon``.
        colluder_epsilon: Largest epsilon against the learner with those mates, at the roster's delta.
        minimum_size: Least cluster, of the manifest's own minimum and of the roster.
        classes: The label space the peer expects, in order.
        learner: Id of the learner it expects, 32 bytes.
        enrolment_key: Id of the enrolment key it expects, 32 bytes; a round has to admit by this key, or by none if
            none is given.

    Raises:
        ConfigurationError: A limit below zero or not finite, or one on a coalition without its number of mates, or that
            number without the limit.
    """

    epsilon: float | None = None
    local_epsilon: float | None = None
    colluders: int | None = None
    colluder_epsilon: float | None = None
    minimum_size: int = DEFAULT_MINIMUM_SIZE
    classes: tuple[str, ...] | None = None
    learner: bytes | None = None
    enrolment_key: bytes | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "local_epsilon", "colluder_epsilon"):
            limit = getattr(self, name)
            if limit is not None and (isinstance(limit, bool) or not 0 <= limit < math.inf):  # NaN compares false
                raise ConfigurationError(f"{limit} given; a finite number, 0 or more, is needed", field=name)
        if self.colluders is not None and (isinstance(self.colluders, bool) or self.colluders < 0):
            raise ConfigurationError(f"{self.colluders} given; 0 or more is needed", field="colluders")
        if self.colluder_epsilon is not None and self.colluders is None:
            raise ConfigurationError(
                "given without colluders; a limit on a coalition needs its number of mates, from 0 up",
                field="colluder_epsilon",
            )
        if self.colluders is not None and self.colluder_epsilon is None:
            raise ConfigurationError(
                "given without colluder_epsilon; a number of mates alone limits nothing", field="colluders"
            )
        if isinstance(self.minimum_size, bool) or self.minimum_size < LEAST_SIZE:
            raise ConfigurationError(f"{self.minimum_size} given; {LEAST_SIZE} or more is needed", field="minimum_size")

    def pinned(self, *, classes: tuple[str, ...], learner: bytes) -> Policy:
        """The same, with label space and learner where it named none."""
        return replace(
            self,
            classes=classes if self.classes is None else self.classes,
            learner=learner if self.learner is None else self.learner,
        )

    def against_manifest(self, opened: OpenedManifest) -> str | None:
        """Why the peer takes no part in this round, if it does not."""
        theirs = opened.label_space.classes
        if self.learner is not None and opened.learner != self.learner:
            return f"policy: learner {opened.learner.hex()} instead of {self.learner.hex()}"
        if self.classes is not None and theirs != self.classes:
            return _difference(theirs, self.classes)
        if opened.manifest.minimum_size < self.minimum_size:
            return f"policy: minimum size {opened.manifest.minimum_size} below {self.minimum_size}"
        if opened.manifest.enrolment_key != self.enrolment_key:
            return f"policy: {_admits(opened.manifest.enrolment_key)} instead of {_admits(self.enrolment_key)}"
        return None

    def against_roster(
        self, *, size: int, holding_minimum: int, flip_probability: float, num_classes: int, again: bool = False
    ) -> str | None:
        """Why the peer does not accept a roster, if it does not.

        Args:
            size: s, members listed.
            holding_minimum: h, below which nobody reports.
            flip_probability: f.
            num_classes: K.
            again: Whether the same flipped label has left in another roster before. What two rosters tell together is
                then bounded by the local epsilon alone, so that is what every limit is held against.
        """
        return _against_roster(self, size, holding_minimum, flip_probability, num_classes, again)


def disagreement(opened: OpenedManifest, *, policy: Policy, dimension: int, study: bool) -> str | None:
    """Why a peer takes no part in a round, as far as the manifest tells; it is never given the label."""
    if (about := policy.against_manifest(opened)) is not None:
        return about
    if opened.manifest.study != study:
        kinds = {True: "a study", False: "a deployment"}
        return f"policy: the round is {kinds[opened.manifest.study]}, this peer belongs to {kinds[study]}"
    if dimension != opened.clustering.dimension:
        return f"policy: {opened.clustering.dimension} features instead of {dimension}"
    return None


def _admits(enrolment_key: bytes | None) -> str:
    return "open admission" if enrolment_key is None else f"admission by enrolment key {enrolment_key.hex()}"


def _difference(theirs: tuple[str, ...], ours: tuple[str, ...]) -> str:
    if len(theirs) != len(ours):
        return f"policy: a label space of {len(theirs)} classes instead of {len(ours)}"
    place, (there, here) = next(
        (i, pair) for i, pair in enumerate(zip(theirs, ours, strict=True)) if len(set(pair)) > 1
    )
    return f"policy: class {place} is {there[:MAX_NAME]!r} instead of {here[:MAX_NAME]!r}"


@lru_cache(maxsize=4096)
def _against_roster(
    policy: Policy, size: int, holding_minimum: int, flip_probability: float, num_classes: int, again: bool
) -> str | None:
    if size < policy.minimum_size:
        return f"policy: {size} members, below {policy.minimum_size}"
    local = randomized_response.local_epsilon(flip_probability, num_classes)
    if policy.local_epsilon is not None and local > policy.local_epsilon:
        return f"policy: local epsilon {local:.6g} above {policy.local_epsilon:g}"
    views = ((policy.epsilon, 0, "epsilon"), (policy.colluder_epsilon, policy.colluders or 0, "epsilon with {} mate{}"))
    for limit, mates, text in views:
        if limit is None or local <= limit:
            continue
        name = text.format(mates, "" if mates == 1 else "s")
        if again:
            return f"policy: {name} {local:.6g} above {limit:g}, the label having left in another roster"
        if mates >= size:
            return f"policy: {mates} of {size} members may collude, and so {name} is above {limit:g}"
        delta = planning.roster_delta(size)
        if not planning.roster_fits(
            size, holding_minimum, flip_probability, limit, delta, colluders=mates, num_classes=num_classes
        ):
            return f"policy: {name} above {limit:g} at delta {delta:.6g}"
    return None
