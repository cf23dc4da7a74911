"""From a name, a file or a mapping, and overrides, to a checked configuration, and to its hash."""

from __future__ import annotations

import difflib
import hashlib
import reprlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from p2p_labeldp.config.rules import OneOf
from p2p_labeldp.config.section import Section, dotted, fields
from p2p_labeldp.config.sections import Config
from p2p_labeldp.errors import ConfigurationError

EXCLUSIVE = {
    "mechanism.flip_probability": "mechanism.target_epsilon",
    "mechanism.target_epsilon": "mechanism.flip_probability",
    "data.name": "data.csv",
    "data.csv": "data.name",
}
"""Keys that replace each other when overridden."""


def load(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Reads a configuration that comes with the package, by name, or a TOML file, by path.

    Args:
        name_or_path: A name without a suffix, such as ``breast-cancer``, or a path (it has a separator or ends in
            ``.toml``).
        overrides: ``section.key=value`` each, applied in order. The value is read as TOML, else as bare text;
            ``none`` takes the key out, so that its default holds, unless it is one of the key's words. A flip
            probability or a target replaces the other.

    Raises:
        ConfigurationError: No such name or file, no TOML, an unknown key, or a value outside its range.
    """
    path = locate(name_or_path)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else "no UTF-8 text"
        raise ConfigurationError(f"{str(path)!r} can't be read: {reason}", field="configuration") from exc
    except (ValueError, RecursionError) as exc:  # as in _literal
        raise ConfigurationError(f"{str(path)!r} is no TOML: {exc}", field="configuration") from exc
    return from_mapping(raw, overrides)


def from_mapping(raw: Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """Builds a configuration from nested mappings, as TOML yields them; ``overrides`` as in ``load``."""
    tree = _copy(raw)
    for override in overrides:
        _override(tree, override)
    _check_tree(Config, tree, "")
    try:
        return msgspec.convert(tree, Config)
    except msgspec.ValidationError as exc:  # a required key that is missing; the rest was checked above
        raise _one_line(exc) from exc


def known() -> list[str]:
    """Names of the configurations that come with the package."""
    return sorted(path.stem for path in _directory().glob("*.toml"))


def config_hash(config: Config) -> str:
    """SHA-256 (hex) of the configuration's canonical JSON: keys sorted, defaults written out, so two files that mean
    the same have the same hash."""
    # Converted once more so that 1 and 1.0 in a float field, possible in a Struct made by hand, become one.
    same = msgspec.convert(msgspec.to_builtins(config), Config)
    return hashlib.sha256(msgspec.json.encode(same, order="sorted")).hexdigest()


def _directory() -> Path:
    package = Path(__file__).resolve().parents[1]
    carried = package / "configs" / "experiments"
    return carried if carried.is_dir() else package.parent / "configs" / "experiments"


def locate(name_or_path: str | Path) -> Path:
    """The file of a configuration, as ``load`` finds it."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or "/" in text or "\\" in text or text.endswith(".toml"):
        return Path(name_or_path)
    if text not in known():
        raise ConfigurationError(
            f"{reprlib.repr(text)} given; the known names are {', '.join(known())}, or give a path to a .toml file",
            field="configuration",
        )
    return _directory() / f"{text}.toml"


def _copy(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in raw.items()}


def _override(tree: dict[str, Any], override: str) -> None:
    name, equals, text = (part.strip() for part in override.partition("="))
    keys = name.split(".")
    if not equals or len(keys) < 2 or not all(keys):
        raise ConfigurationError(
            f"{reprlib.repr(override)} given; section.key=value is allowed, as in data.peers=100", field="--set"
        )
    for depth, key in enumerate(keys[:-1], start=1):
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise ConfigurationError("is a single value, not a table of keys", field=".".join(keys[:depth]))
    value = _literal(text)
    if value is None and _admits(keys, text):  # where "none" is a word like others, it means itself
        value = text
    if value is None:
        tree.pop(keys[-1], None)
    else:
        tree[keys[-1]] = value
        if name in EXCLUSIVE:
            tree.pop(EXCLUSIVE[name].rpartition(".")[2], None)


def _admits(keys: Sequence[str], text: str) -> bool:
    """Whether ``text`` is one of the words a field may be."""
    section: type[Section] | None = Config
    for key in keys[:-1]:
        field = None if section is None else fields(section).get(key)
        section = None if field is None else field.section
    last = None if section is None else fields(section).get(keys[-1])
    return last is not None and isinstance(last.rule, OneOf) and last.rule.admits(text)


def _literal(text: str) -> Any:
    if text in ("none", "null"):
        return None
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # no TOML; or too many digits, too many brackets for its parser
        return text
    return table["value"] if len(table) == 1 else text  # a line break in the text could open a second key


def _check_tree(section: type[Section], tree: Mapping[str, Any], path: str) -> None:
    """Checks names first, then values, so that a misspelt key is not reported as a missing one."""
    here = fields(section)
    for key in tree:
        if key not in here:
            shown = key if key.isprintable() else repr(key)
            raise ConfigurationError(f"no such key; did you mean {_nearest(path, key)}?", field=dotted(path, shown))
    for key, value in tree.items():
        field = here[key]
        if field.section is None:
            field.check(dotted(path, key), value)
        elif isinstance(value, Mapping):
            _check_tree(field.section, value, dotted(path, key))
        else:
            known_keys = ", ".join(fields(field.section))
            raise ConfigurationError(
                f"{reprlib.repr(value)} given; a table of {known_keys} is allowed", field=dotted(path, key)
            )


def _nearest(path: str, key: str) -> str:
    """The known dotted name that was most likely meant: the same word in another section, else the most similar."""
    everywhere = list(_names(Config, ""))
    elsewhere = [name for name in everywhere if name.rpartition(".")[2] == key]
    siblings = [name for name in everywhere if name.rpartition(".")[0] == path]
    return elsewhere[0] if elsewhere else difflib.get_close_matches(dotted(path, key), siblings, n=1, cutoff=0.0)[0]


def _names(section: type[Section], path: str) -> Iterator[str]:
    for name, field in fields(section).items():
        yield dotted(path, name)
        if field.section is not None:
            yield from _names(field.section, dotted(path, name))


def _one_line(error: msgspec.ValidationError) -> ConfigurationError:
    """``Object missing required field `name` - at `$.data``` becomes ``data.name: missing; it has no default``."""
    message, _, where = str(error).partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    if "missing required field" in message:
        return ConfigurationError("missing; it has no default", field=dotted(path, message.split("`")[1]))
    return ConfigurationError(message, field=path or None)
