"""What a value may be: each rule says it in words and checks it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol


class Rule(Protocol):
    """What a field admits."""

    def text(self) -> str:
        """The allowed values in words, as in "... is allowed"."""
        ...

    def admits(self, value: Any) -> bool:
        """Whether ``value`` is one of them. Booleans are no numbers; NaN and infinities are admitted by none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number from ``at_least`` to ``at_most``."""

    at_least: int
    at_most: int = 10**9

    def text(self) -> str:
        return f"a whole number from {self.at_least} to {self.at_most}"

    def admits(self, value: Any) -> bool:
        return type(value) is int and self.at_least <= value <= self.at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """A finite number within bounds; ``above`` and ``below`` are exclusive, ``at_least`` and ``at_most`` inclusive."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def text(self) -> str:
        named = (("at least", self.at_least), ("above", self.above), ("at most", self.at_most), ("below", self.below))
        return "a number " + " and ".join(f"{words} {bound:g}" for words, bound in named if bound is not None)

    def admits(self, value: Any) -> bool:
        # An int too large for a float would raise further on; nothing here is measured in such numbers.
        if type(value) not in (int, float) or not abs(value) < 1e300 or not math.isfinite(value):
            return False
        return not (
            (self.at_least is not None and value < self.at_least)
            or (self.above is not None and value <= self.above)
            or (self.at_most is not None and value > self.at_most)
            or (self.below is not None and value >= self.below)
        )


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def text(self) -> str:
        return "one of " + ", ".join(self.words)

    def admits(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.words


@dataclass(frozen=True, slots=True)
class Text:
    """Text that is not empty."""

    def text(self) -> str:
        return "text that is not empty"

    def admits(self, value: Any) -> bool:
        return isinstance(value, str) and value != ""


@dataclass(frozen=True, slots=True)
class Id:
    """The id of a key: SHA-256 in lower case hexadecimal digits."""

    def text(self) -> str:
        return "an id of 64 lower case hexadecimal digits"

    def admits(self, value: Any) -> bool:
        return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Texts:
    """A list of texts, none of them empty."""

    def text(self) -> str:
        return "a list of texts that are not empty"

    def admits(self, value: Any) -> bool:
        return isinstance(value, list | tuple) and all(isinstance(one, str) and one != "" for one in value)


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false."""

    def text(self) -> str:
        return "true or false"

    def admits(self, value: Any) -> bool:
        return isinstance(value, bool)
