"""The least flip for targets against several adversaries, or the least cluster for a flip.

``planning`` plans a roster whose members may fail to answer; without a tolerated loss the plan here is for exactly s
answers from s members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from p2p_labeldp.accounting import coalition, planning, resampling
from p2p_labeldp.accounting.coalition import Coalition
from p2p_labeldp.accounting.ranges import check_count, check_delta, check_flip, check_target
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms.randomized_response import check_classes, local_epsilon

LEARNER, LOCAL, COALITION = "learner", "local", "coalition"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A flip that holds all targets.

    Args:
        flip_probability: The least, to five significant digits, rounded up.
        epsilon: Evaluated at this flip, against the learner with the colluders planned for; at most the target.
        delta: At which.
        local_epsilon: Against the learner with everyone.
        binding: The target that asks for the most flips: ``learner``, ``local`` or ``coalition``.
        holding_minimum: h, if a loss is tolerated, else None.
    """

    flip_probability: float
    epsilon: float
    delta: float
    local_epsilon: float
    binding: str
    holding_minimum: int | None


def plan(
    *,
    cluster_size: int,
    target_epsilon: float,
    delta: float | None = None,
    local_target: float | None = None,
    colluders: int = 0,
    coalition_target: float | None = None,
    tolerated_loss: float | None = None,
    num_classes: int = 2,
) -> Plan:
    """The least flip that holds every target; see ``Plan``.

    Args:
        cluster_size: s.
        target_epsilon: Against the learner alone at ``delta``.
        delta: 1/s^2 if not given.
        local_target: Against the learner with everyone; not asked for if None.
        colluders: t mates, following the protocol, that the learner may work with.
        coalition_target: Against the learner with them, at ``delta``; ``target_epsilon`` if not given. Of no
            consequence without colluders.
        tolerated_loss: Share of members that may fail to answer; None plans for s answers from s.
        num_classes: K; beyond 2 by the certified bound, which without a tolerated loss is a roster's that loses nobody.

    Raises:
        ConfigurationError: A target or a share out of range.
        ClusterTooSmall: s = 1 without a delta.
    """
    size = check_count(cluster_size, "cluster_size")
    target = check_target(target_epsilon)
    at = planning.roster_delta(size) if delta is None else check_delta(delta)
    holding = None if tolerated_loss is None else planning.holding_minimum(size, tolerated_loss)
    asked = _Asked(size, check_classes(num_classes), holding, at)
    flips = {LEARNER: asked.flip_for(0, target)}
    with_mates = target if coalition_target is None else check_target(coalition_target, "coalition_target")
    if check_count(colluders, "colluders", least=0):
        flips[COALITION] = asked.flip_for(colluders, with_mates)
    if local_target is not None:
        least = check_target(local_target, "local_target")
        flips[LOCAL] = planning.least_flip(lambda f: local_epsilon(f, num_classes) <= least, num_classes)
    binding = max(flips, key=lambda name: flips[name])
    flip = flips[binding]
    return Plan(
        flip_probability=flip,
        epsilon=asked.epsilon(colluders, flip),
        delta=at,
        local_epsilon=local_epsilon(flip, num_classes),
        binding=binding,
        holding_minimum=holding,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """One cluster, and at which delta it is asked for."""

    size: int
    num_classes: int
    holding: int | None
    delta: float

    def flip_for(self, colluders: int, target: float) -> float:
        flip = planning.least_flip(self._holds(colluders, target), self.num_classes)
        while self.epsilon(colluders, flip) > target:  # rounding of eps itself; a step or two
            flip = planning.next_flip(flip, self.num_classes)
        return flip

    def epsilon(self, colluders: int, flip: float) -> float:
        if self._as_roster:
            return planning.roster_epsilon(
                self.size, self._least, flip, self.delta, colluders, num_classes=self.num_classes
            )
        with_mates = Coalition(cluster_size=self.size, colluders=colluders, flip_probability=flip)
        return coalition.epsilon(with_mates, self.delta)

    @property
    def _as_roster(self) -> bool:
        return self.holding is not None or self.num_classes > 2

    @property
    def _least(self) -> int:
        return self.size if self.holding is None else self.holding

    def _holds(self, colluders: int, target: float) -> Callable[[float], bool]:
        """delta(target) <= delta is sooner evaluated than eps(delta)."""
        room, size = self.delta * (1 - planning.MARGIN), self.size
        if self._as_roster:
            return lambda f: planning.roster_fits(
                size, self._least, f, target, room, colluders, num_classes=self.num_classes
            )
        if colluders:
            return lambda f: (
                coalition.delta(Coalition(cluster_size=size, colluders=colluders, flip_probability=f), target) <= room
            )
        return lambda f: resampling.profile(cluster_size=size, flip_probability=f, epsilons=[target])[0].delta <= room


def least_size(*, flip_probability: float, target_epsilon: float, delta: float | None = None, most: int = 10**6) -> int:
    """The cluster size from which the target holds against the learner: it does, and one member less does not.

    At delta = 1/s^2 a very small cluster can hold a target that a larger one misses, since its delta is large; the size
    returned is the one above all such gaps, to the resolution of a search by doubling.

    Args:
        flip_probability: f.
        target_epsilon: Against the learner.
        delta: 1/s^2 of each size if not given.
        most: The largest size considered.

    Raises:
        ConfigurationError: Not even ``most`` members hold the target.
    """
    f, target = check_flip(flip_probability), check_target(target_epsilon)
    fixed = None if delta is None else check_delta(delta)

    def holds(size: int) -> bool:
        if size == 1 and fixed is None:  # 1/s^2 = 1 says nothing
            return False
        at = planning.roster_delta(size) if fixed is None else fixed
        return resampling.epsilon(cluster_size=size, flip_probability=f, delta=at) <= target

    high = check_count(most, "most")
    if local_epsilon(f) <= target:  # whatever the size
        return 1 if fixed is not None else min(2, high)
    if not holds(high):
        raise ConfigurationError(f"{high} members do not hold eps {target} at this flip", field="flip_probability")
    low = high // 2
    while low >= 1 and holds(low):
        low, high = low // 2, low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
