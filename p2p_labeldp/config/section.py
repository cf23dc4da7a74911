"""What a section of a configuration is: a group of fields, each with a rule that its annotation holds."""

from __future__ import annotations

import functools
import reprlib
import typing
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from p2p_labeldp.config.rules import Rule
from p2p_labeldp.errors import ConfigurationError


def dotted(path: str, name: str) -> str:
    """``name`` within ``path``; at the top ``path`` is empty."""
    return f"{path}.{name}" if path else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What a field of a section may be: a rule, or a section of its own."""

    rule: Rule | None
    section: type[Section] | None
    optional: bool

    def check(self, name: str, value: Any) -> None:
        """Refuses ``value`` in one line that begins with the dotted ``name``."""
        assert self.rule is not None
        if not (value is None and self.optional) and not self.rule.admits(value):
            allowed = self.rule.text() + (", or none," if self.optional else "")
            raise ConfigurationError(f"{reprlib.repr(value)} given; {allowed} is allowed", field=name)


@functools.cache
def fields(section: type[Section]) -> dict[str, Field]:
    """Each field of a section, read off its annotations: ``Annotated[type, rule]``, or another section."""
    hints = typing.get_type_hints(section, include_extras=True)
    found = {}
    for name in section.__struct_fields__:
        hint = hints[name]
        if isinstance(hint, type) and issubclass(hint, Section):
            found[name] = Field(rule=None, section=hint, optional=False)
        else:
            base, rule = typing.get_args(hint)
            found[name] = Field(rule=rule, section=None, optional=type(None) in typing.get_args(base))
    return found


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of fields. ``PATH`` is where it stands in the file."""

    PATH: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, field in fields(type(self)).items():
            if field.section is None:
                field.check(dotted(self.PATH, name), getattr(self, name))
