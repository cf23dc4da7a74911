"""What can go wrong in a scenario, as values. Parties are ordinals, the learner is ``LEARNER``; times are seconds."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

LEARNER = -1
STRANGER = -2  # no peer of the study


class Fault(msgspec.Struct, frozen=True, kw_only=True, tag_field="fault"):
    """One thing that goes wrong; scenarios are shrunk by leaving some out."""


class Latency(Fault, frozen=True, tag="latency"):
    """Messages take longer one way than usual: ``uniform`` up to ``seconds``, ``exponential`` with this mean, or
    ``pareto`` (index 1.5) with this least: mostly short, now and then far beyond any patience."""

    law: str
    seconds: float


class Loss(Fault, frozen=True, tag="loss"):
    """Each message, request or reply, is lost with this probability."""

    probability: float


class Duplication(Fault, frozen=True, tag="duplication"):
    """A request arrives twice with this probability, the second time up to ``seconds`` later."""

    probability: float
    seconds: float


class Reordering(Fault, frozen=True, tag="reordering"):
    """A message is held back with this probability for up to ``seconds``, and others overtake it."""

    probability: float
    seconds: float


class Partition(Fault, frozen=True, tag="partition"):
    """From ``start`` on, for ``seconds``, nothing goes from a party of ``sources`` to one of ``targets``.

    With ``one_way`` the other direction works: requests arrive there, and their replies do not.
    """

    start: float
    seconds: float
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    one_way: bool


class Crash(Fault, frozen=True, tag="crash"):
    """A party dies at one of its effects, as by ``kill -9``, and is started again ``away`` seconds later, or never.

    ``effect`` counts those of all lives from 0, of the facts called ``about`` alone if that is not empty; ``before``:
    it dies with the effect not yet carried out. ``moved``: it comes back at another address.
    """

    party: int
    effect: int
    about: str
    before: bool
    away: float | None
    moved: bool


class Stop(Fault, frozen=True, tag="stop"):
    """A party's process is stopped, not killed, and goes on ``seconds`` later with all that came in meanwhile."""

    party: int
    start: float
    seconds: float


class Skew(Fault, frozen=True, tag="skew"):
    """A party's clock is so many seconds ahead, or behind."""

    party: int
    seconds: float


class SlowDisk(Fault, frozen=True, tag="slow disk"):
    """Each fact takes a party so long to persist; it does nothing else meanwhile."""

    party: int
    seconds: float


class Lie(Fault, frozen=True, tag="lie"):
    """A party is Byzantine in one way; ``lies`` knows which there are."""

    party: int
    how: str


AnyFault: TypeAlias = Latency | Loss | Duplication | Reordering | Partition | Crash | Stop | Skew | SlowDisk | Lie
