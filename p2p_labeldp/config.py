"""TOML to frozen, typed values.

A configuration is a table of sections, each a Struct below; the docstring under a field gives its meaning, unit,
default and reason. Values are checked when a Struct is made, however it is made, and every complaint is one line: the
dotted field, what was given, what is allowed. An unknown key is refused and the nearest known one named, because a
misspelt privacy parameter that is silently ignored is worse than a run that does not start.

Configurations that come with the package are found by name in ``p2p_labeldp/configs/experiments`` (an installed wheel)
or in ``configs/experiments`` beside the package (a working copy, an editable install).
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import math
import reprlib
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

import msgspec

from p2p_labeldp.errors import ConfigurationError

# --- what a value may be: each rule says it in words and checks it -------------------------------------------------


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
class Truth:
    """True or false."""

    def text(self) -> str:
        return "true or false"

    def admits(self, value: Any) -> bool:
        return isinstance(value, bool)


TopologyKind: TypeAlias = Literal["random_regular", "ring", "small_world", "star", "file"]
ExchangeKind: TypeAlias = Literal["resample", "permute"]
ModelName: TypeAlias = Literal[
    "logistic_regression", "linear_svm", "naive_bayes", "random_forest", "nearest_neighbours"
]

# --- the sections --------------------------------------------------------------------------------------------------


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of fields. ``PATH`` is where it stands in the file."""

    PATH: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, field in _fields(type(self)).items():
            if field.section is None:
                field.check(_dotted(self.PATH, name), getattr(self, name))


class Data(Section, frozen=True, kw_only=True):
    """Where the examples come from."""

    PATH: ClassVar[str] = "data"

    name: Annotated[str, Text()]
    """Name of a data set known to ``p2p_labeldp.datasets``. No default: what is studied should be said."""

    peers: Annotated[int | None, Whole(at_least=2)] = None
    """Number of peers, one training example each, at least 2. Default: all training rows, since leaving some out only
    costs accuracy; a smaller number makes quick trials."""

    test_share: Annotated[float, Real(above=0, below=1)] = 0.2
    """Share of the rows kept for measuring accuracy, above 0 and below 1. Default 0.2, the usual compromise between a
    good model and a good measurement. Held-out labels are not protected."""


class Clusters(Section, frozen=True, kw_only=True):
    """The public clustering of features; peers exchange labels only within a cluster."""

    PATH: ClassVar[str] = "clusters"

    count: Annotated[int, Whole(at_least=1)] = 15
    """Number of KMeans clusters before merging, at least 1. Default 15: about 30 members each on the default data.
    More clusters keep the labels within one alike; fewer give larger clusters, which need less noise."""

    minimum_size: Annotated[int, Whole(at_least=2)] = 20
    """Members below which a cluster is merged into its nearest, at least 2 (alone one can't hide). Default 20: there
    epsilon = 1 takes a flip probability of about 0.06, and it grows quickly below."""


class Topology(Section, frozen=True, kw_only=True):
    """Who knows whom at the start; the peers find the rest of their cluster by gossip."""

    PATH: ClassVar[str] = "topology"

    kind: Annotated[TopologyKind, OneOf(typing.get_args(TopologyKind))] = "random_regular"
    """Shape of the graph of first contacts. Default ``random_regular``: connected almost surely at small degree, and
    no peer carries more than another."""

    degree: Annotated[int, Whole(at_least=1)] = 6
    """First contacts of each peer, at least 1; read by ``random_regular`` and ``small_world``. Default 6: the graph
    stays connected when a third of the peers are lost, and news crosses a thousand peers in about four hops."""

    path: Annotated[str | None, Text()] = None
    """Edge list for ``kind = "file"``: two ordinals a line; relative to the working directory. Default: none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.kind == "file") != (self.path is not None):
            given = f"kind = {self.kind!r} and path = {self.path!r}"
            raise ConfigurationError(
                f"{given} given; a path goes with kind 'file' and only there", field="topology.path"
            )


class Mechanism(Section, frozen=True, kw_only=True):
    """What is done to a label. Either the flip probability is given or it is planned from a target."""

    PATH: ClassVar[str] = "mechanism"

    flip_probability: Annotated[float | None, Real(at_least=0, at_most=0.5)] = None
    """Probability that a peer's label is flipped, once, 0 to 0.5, the same in every cluster; 0 is not private, 0.5
    says nothing. Excludes ``target_epsilon``. Default: planned from the target, cluster by cluster."""

    target_epsilon: Annotated[float | None, Real(above=0)] = None
    """Epsilon against the learner alone at delta = 1/size^2 that each cluster's flip is planned for, above 0. Default
    1.0 where no flip probability is given: the size at which the literature compares."""

    tolerated_loss: Annotated[float, Real(at_least=0, below=1)] = 0.05
    """Share of a cluster's answers that may be lost before its round is given up, at least 0 and below 1. The flip is
    planned so that the guarantee holds with any such loss. Default 0.05: a few crashed peers; more costs noise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.flip_probability is not None and self.target_epsilon is not None:
            raise ConfigurationError(
                "given together with mechanism.target_epsilon; one of the two is allowed",
                field="mechanism.flip_probability",
            )
        if self.flip_probability is None and self.target_epsilon is None:
            msgspec.structs.force_setattr(self, "target_epsilon", 1.0)


class Deadlines(Section, frozen=True, kw_only=True):
    """Lengths of the phases of a round, in seconds, above 0. What is left out is chosen from the number of peers: a
    fixed length would be too short for a thousand and a waste for three."""

    PATH: ClassVar[str] = "exchange.deadlines"

    join: Annotated[float | None, Real(above=0)] = None
    """Seconds in which peers find their cluster, until the roster is signed. Default: from the number of peers."""

    exchange: Annotated[float | None, Real(above=0)] = None
    """Seconds in which each peer asks its mate. Default: from the number of peers."""

    closing: Annotated[float | None, Real(above=0)] = None
    """Seconds in which the peers tell each other who was able to answer. Default: from the number of peers."""

    report: Annotated[float | None, Real(above=0)] = None
    """Seconds over which the reports leave, each at a random time. Default: from the number of peers."""


class Exchange(Section, frozen=True, kw_only=True):
    """How flipped labels change hands."""

    PATH: ClassVar[str] = "exchange"

    kind: Annotated[ExchangeKind, OneOf(typing.get_args(ExchangeKind))] = "resample"
    """``resample``: each peer asks one uniformly chosen mate, the peer-to-peer mechanism. ``permute``: a random
    permutation by a trusted shuffler, a comparison that only the population engine runs. Default ``resample``."""

    deadlines: Deadlines = msgspec.field(default_factory=Deadlines)
    """Lengths of the phases."""


class Network(Section, frozen=True, kw_only=True):
    """How peers are packed and how often they talk."""

    PATH: ClassVar[str] = "network"

    peers_per_process: Annotated[int, Whole(at_least=1)] = 1
    """Peers in one operating system process, at least 1. Default 1: each example lives in a process of its own; more
    saves memory, each peer keeping its own address, key and state."""

    gossip_period: Annotated[float | None, Real(above=0)] = None
    """Seconds between two gossip exchanges of a peer, above 0. Default: from the number of peers, like the deadlines,
    since many peers of a study share one machine's cores."""


class Policy(Section, frozen=True, kw_only=True):
    """The limits a peer sets itself; it takes no part in a round that passes one. No limit unless given."""

    PATH: ClassVar[str] = "policy"

    epsilon: Annotated[float | None, Real(at_least=0)] = None
    """Largest epsilon against the learner alone, at the roster's delta, at least 0. Default: no limit."""

    local_epsilon: Annotated[float | None, Real(at_least=0)] = None
    """Largest epsilon against the learner with everyone else, ln((1 - f)/f), at least 0. Default: no limit."""

    colluders: Annotated[int | None, Whole(at_least=0)] = None
    """Number of mates assumed to tell the learner what they see, at least 0; read with ``colluder_epsilon``.
    Default: none assumed."""

    colluder_epsilon: Annotated[float | None, Real(at_least=0)] = None
    """Largest epsilon against the learner with ``colluders`` mates, at least 0. Default: no limit."""

    minimum_size: Annotated[int, Whole(at_least=2)] = 3
    """Least number of members of a cluster that the peer takes part in, at least 2. Default 3: among two, the other
    one knows whose label it was not."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.colluder_epsilon is not None and self.colluders is None:
            raise ConfigurationError(
                "given without policy.colluders; a limit on a coalition needs its number of mates, from 0 up",
                field="policy.colluder_epsilon",
            )


class Learner(Section, frozen=True, kw_only=True):
    """What is fitted to the reports."""

    PATH: ClassVar[str] = "learner"

    model: Annotated[ModelName, OneOf(typing.get_args(ModelName))] = "logistic_regression"
    """Classifier, from the table in ``p2p_labeldp.learning.erm``. Default ``logistic_regression``, the model of the
    paper; the choice costs no privacy, the reports being private already."""


class Output(Section, frozen=True, kw_only=True):
    """What the result holds beside the summary."""

    PATH: ClassVar[str] = "output"

    reports: Annotated[bool, Truth()] = False
    """Whether the result lists every peer's report. Default false: for studies only, and long."""


class Config(Section, frozen=True, kw_only=True):
    """A whole configuration."""

    data: Data
    """Where the examples come from; the only section without a default."""

    clusters: Clusters = msgspec.field(default_factory=Clusters)
    """The public clustering."""

    topology: Topology = msgspec.field(default_factory=Topology)
    """Who knows whom at the start."""

    mechanism: Mechanism = msgspec.field(default_factory=Mechanism)
    """What is done to a label."""

    exchange: Exchange = msgspec.field(default_factory=Exchange)
    """How flipped labels change hands."""

    network: Network = msgspec.field(default_factory=Network)
    """How peers are packed and how often they talk."""

    policy: Policy = msgspec.field(default_factory=Policy)
    """The limits a peer sets itself."""

    learner: Learner = msgspec.field(default_factory=Learner)
    """What is fitted to the reports."""

    output: Output = msgspec.field(default_factory=Output)
    """What the result holds beside the summary."""


# --- reading -------------------------------------------------------------------------------------------------------

EXCLUSIVE = {
    "mechanism.flip_probability": "mechanism.target_epsilon",
    "mechanism.target_epsilon": "mechanism.flip_probability",
}
"""Keys that replace each other when overridden."""


def load(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Reads a configuration that comes with the package, by name, or a TOML file, by path.

    Args:
        name_or_path: A name without a suffix, such as ``breast-cancer``, or a path (it has a separator or ends in
            ``.toml``).
        overrides: ``section.key=value`` each, applied in order. The value is read as TOML, else as bare text;
            ``none`` takes the key out, so that its default holds. A flip probability or a target replaces the other.

    Raises:
        ConfigurationError: No such name or file, no TOML, an unknown key, or a value outside its range.
    """
    path = _locate(name_or_path)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else "no UTF-8 text"
        raise ConfigurationError(f"{str(path)!r} can't be read: {reason}", field="configuration") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigurationError(f"{str(path)!r} is no TOML: {exc}", field="configuration") from exc
    return from_mapping(raw, overrides)


def from_mapping(raw: Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """Builds a configuration from nested mappings, as TOML yields them; ``overrides`` as in :func:`load`."""
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
    package = Path(__file__).resolve().parent
    carried = package / "configs" / "experiments"
    return carried if carried.is_dir() else package.parent / "configs" / "experiments"


def _locate(name_or_path: str | Path) -> Path:
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
    dotted, equals, text = (part.strip() for part in override.partition("="))
    keys = dotted.split(".")
    if not equals or len(keys) < 2 or not all(keys):
        raise ConfigurationError(
            f"{reprlib.repr(override)} given; section.key=value is allowed, as in data.peers=100", field="--set"
        )
    for depth, key in enumerate(keys[:-1], start=1):
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise ConfigurationError("is a single value, not a table of keys", field=".".join(keys[:depth]))
    value = _literal(text)
    if value is None:
        tree.pop(keys[-1], None)
    else:
        tree[keys[-1]] = value
        if dotted in EXCLUSIVE:
            tree.pop(EXCLUSIVE[dotted].rpartition(".")[2], None)


def _literal(text: str) -> Any:
    if text in ("none", "null"):
        return None
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return table["value"] if len(table) == 1 else text  # a line break in the text could open a second key


# --- checking ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """What a field of a section may be: a rule, or a section of its own."""

    rule: Rule | None
    section: type[Section] | None
    optional: bool

    def check(self, dotted: str, value: Any) -> None:
        assert self.rule is not None
        if not (value is None and self.optional) and not self.rule.admits(value):
            allowed = self.rule.text() + (", or none," if self.optional else "")
            raise ConfigurationError(f"{reprlib.repr(value)} given; {allowed} is allowed", field=dotted)


@functools.cache
def _fields(section: type[Section]) -> dict[str, _Field]:
    hints = typing.get_type_hints(section, include_extras=True)
    fields = {}
    for name in section.__struct_fields__:
        hint = hints[name]
        if isinstance(hint, type) and issubclass(hint, Section):
            fields[name] = _Field(rule=None, section=hint, optional=False)
        else:
            base, rule = typing.get_args(hint)
            fields[name] = _Field(rule=rule, section=None, optional=type(None) in typing.get_args(base))
    return fields


def _check_tree(section: type[Section], tree: Mapping[str, Any], path: str) -> None:
    """Checks names first, then values, so that a misspelt key is not reported as a missing one."""
    fields = _fields(section)
    for key in tree:
        if key not in fields:
            shown = key if key.isprintable() else repr(key)
            raise ConfigurationError(f"no such key; did you mean {_nearest(path, key)}?", field=_dotted(path, shown))
    for key, value in tree.items():
        field = fields[key]
        if field.section is None:
            field.check(_dotted(path, key), value)
        elif isinstance(value, Mapping):
            _check_tree(field.section, value, _dotted(path, key))
        else:
            known_keys = ", ".join(_fields(field.section))
            raise ConfigurationError(
                f"{reprlib.repr(value)} given; a table of {known_keys} is allowed", field=_dotted(path, key)
            )


def _nearest(path: str, key: str) -> str:
    """The known dotted name that was most likely meant: the same word in another section, else the most similar."""
    everywhere = list(_names(Config, ""))
    elsewhere = [name for name in everywhere if name.rpartition(".")[2] == key]
    siblings = [name for name in everywhere if name.rpartition(".")[0] == path]
    return elsewhere[0] if elsewhere else difflib.get_close_matches(_dotted(path, key), siblings, n=1, cutoff=0.0)[0]


def _names(section: type[Section], path: str) -> typing.Iterator[str]:
    for name, field in _fields(section).items():
        yield _dotted(path, name)
        if field.section is not None:
            yield from _names(field.section, _dotted(path, name))


def _dotted(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _one_line(error: msgspec.ValidationError) -> ConfigurationError:
    """``Object missing required field `name` - at `$.data``` becomes ``data.name: missing; it has no default``."""
    message, _, where = str(error).partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    if "missing required field" in message:
        return ConfigurationError("missing; it has no default", field=_dotted(path, message.split("`")[1]))
    return ConfigurationError(message, field=path or None)
