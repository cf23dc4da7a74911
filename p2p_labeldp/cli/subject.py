"""What a command is about: a configuration, or a table of somebody's own. ``run`` and ``compare`` ask for it alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_labeldp.errors import ConfigurationError, naming

if TYPE_CHECKING:
    from p2p_labeldp.config import Config

DEFAULT = "breast-cancer"
OF_A_TABLE = {
    "data.csv": "--csv",
    "data.label": "--label",
    "data.classes": "--classes",
    "data.leave_out": "--leave-out",
    "data.keep": "--keep",
    "data.separator": "--separator",
    "data.decimal": "--decimal",
    "data.encoding": "--encoding",
}
OF_ROUNDS = {"seed": "--seed", "engine": "--engine"}
OF_BOTH = {"clusters.count": "--clusters", "mechanism.target_epsilon": "--epsilon"}
"""Options by the key, or the parameter, that they set."""

Configuration = Annotated[
    str | None, typer.Argument(metavar="[NAME|PATH]", help=f"What to run. Default: {DEFAULT}.", show_default=False)
]
Csv = Annotated[str | None, typer.Option(metavar="FILE", help="A table of your own, with a header line.")]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column whose values are protected.")]
Classes = Annotated[str | None, typer.Option(metavar="A,B", help="Its classes. Default: those in the column.")]
LeaveOut = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="A column that is no feature; may be repeated.")
]
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A feature though it looks like an identifier; may be repeated."),
]
Separator = Annotated[str | None, typer.Option(metavar="C", help="Between fields. Default: found out.")]
Decimal = Annotated[str | None, typer.Option(metavar=".|,", help="Decimal sign. Default: found out.")]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Of the file. Default: found out.")]
Clusters = Annotated[
    int | None, typer.Option(metavar="N", help="Clusters before merging. Default: as configured, or suggested.")
]
Epsilon = Annotated[
    float | None, typer.Option(metavar="E", help="Target against the learner alone. Default: as configured, or 1.")
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", help="Of all coins: 0 to 2^64 - 1. Default: 0; with --csv none.", show_default=False),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Replace a value of the configuration; may be repeated."),
]
DataDir = Annotated[
    str | None, typer.Option("--data-dir", metavar="DIR", help="Files of image sets; see `p2p-labeldp data`.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was asked for.

    Args:
        title: As it was named.
        config: The configuration; of a table without a number of clusters, one is still to be suggested.
        own: Whether it is a table named by ``--csv``.
        fixed: Whether the number of clusters was given.
        seed: Of the coins; None takes the operating system's.
        options: What complaints about keys are to name, by key (``errors.naming``).
    """

    title: str
    config: Config
    own: bool
    fixed: bool
    seed: int | None
    options: Mapping[str, str]


def asked(
    configuration: str | None,
    *,
    csv: str | None,
    label: str | None,
    classes: str | None,
    leave_out: list[str] | None,
    keep: list[str] | None,
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
    clusters: int | None,
    epsilon: float | None,
    seed: int | None,
    overrides: list[str] | None,
) -> Subject:
    """Reads no data; arguments are the options.

    Raises:
        ConfigurationError: They don't fit together, or a value is out of range.
    """
    from p2p_labeldp import config

    told: dict[str, Any] = {
        "label": label,
        "classes": None if classes is None else [name.strip() for name in classes.split(",")],
        "leave_out": leave_out or None,
        "keep": keep or None,
        "separator": _separator(separator),
        "decimal": decimal,
        "encoding": encoding,
    }
    changes = list(overrides or [])
    typed = {
        key: value
        for key, value in {"clusters.count": clusters, "mechanism.target_epsilon": epsilon}.items()
        if value is not None
    }
    options = _options(own=csv is not None, typed=typed, overrides=changes)
    changes += [f"{key}={value}" for key, value in typed.items()]
    fixed = any(change.partition("=")[0].strip() == "clusters.count" for change in changes)
    if csv is None:
        given = next((name for name, value in told.items() if value is not None), None)
        if given is not None:
            raise ConfigurationError("--csv FILE is needed with it", field=f"--{given.replace('_', '-')}")
        with naming(options):
            chosen = config.load(configuration or DEFAULT, changes)  # complains before anything slow is imported
        seed = 0 if seed is None and chosen.data.csv is None else seed
        return Subject(title=configuration or DEFAULT, config=chosen, own=False, fixed=True, seed=seed, options=options)
    if configuration is not None:
        raise ConfigurationError(f"given together with {configuration!r}; one of the two is possible", field="--csv")
    if label is None:
        raise ConfigurationError("missing; name the column whose values are to be protected", field="--label")
    data = {"csv": csv, **{name: value for name, value in told.items() if value is not None}}
    with naming(options):
        chosen = config.from_mapping({"data": data, "clusters": {"count": 1}}, changes)
    return Subject(title=csv, config=chosen, own=True, fixed=fixed, seed=seed, options=options)


def _options(*, own: bool, typed: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, str]:
    """The options that were typed; of somebody's own table also those that could have been, unless --set was."""
    said = {override.partition("=")[0].strip() for override in overrides}
    known = {**OF_A_TABLE, **OF_BOTH} if own else {}
    return {
        **OF_ROUNDS,
        **{key: option for key, option in known.items() if key not in said},
        **{key: OF_BOTH[key] for key in typed},  # they are applied last
    }


def _separator(text: str | None) -> str | None:
    """A tab is hard to type."""
    if text is not None and text not in (",", ";", "|", "\t", "\\t", "tab"):
        raise ConfigurationError(f"{text!r} given; one of , ; | tab is possible", field="--separator")
    return "\t" if text in ("\\t", "tab") else text
