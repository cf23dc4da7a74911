"""How the commands that compute answer: a JSON object or a small table; and whose mistake a complaint is about."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from p2p_labeldp.errors import ClusterTooSmall, ConfigurationError, UnsupportedComposition, naming

if TYPE_CHECKING:
    from rich.console import RenderableType

OPTIONS = {
    "cluster_size": "--cluster-size",
    "flip_probability": "--flip",
    "num_classes": "--classes",
    "target_epsilon": "--epsilon",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *(
                "alpha",
                "attack",
                "calibration",
                "colluders",
                "confidence",
                "delta",
                "dask",
                "dimension",
                "engine",
                "epsilon",
                "exchange",
                "jobs",
                "levels",
            ),
            *(
                "log_prior",
                "max_radius",
                "members",
                "participations",
                "peers",
                "radius",
                "reports",
                "rounds",
                "seed",
                "size",
                "sizes",
                "success",
            ),
            *("tolerated_loss", "trials", "wrong"),
        )
    },
}
"""Parameters, by the option that sets them."""

MAX_CLUSTER_SIZE = 10**7
"""The largest cluster takes the accountant about 20 s."""
LEAST_FLIP = 1e-300


@contextmanager
def refusing(**renamed: str) -> Iterator[None]:
    """Complaints of the library name the option; what can't be accounted for is the asker's mistake too.

    Args:
        **renamed: Options of parameters that this command calls otherwise than ``OPTIONS`` does.

    Raises:
        ConfigurationError: Whatever was refused.
    """
    try:
        with naming({**OPTIONS, **renamed}):
            yield
    except (ClusterTooSmall, UnsupportedComposition) as exc:
        raise ConfigurationError(str(exc)) from exc
    except MemoryError as exc:
        raise ConfigurationError("this takes more memory than there is; smaller numbers are possible") from exc


def delta_of(size: int, delta: float | None) -> float:
    """The delta that was asked for, or 1/s^2.

    Raises:
        ConfigurationError: Out of range; or none was given for a cluster of one.
    """
    from p2p_labeldp.accounting.planning import roster_delta
    from p2p_labeldp.accounting.ranges import check_delta

    if delta is None and size == 1:
        raise ConfigurationError("missing; 1/s^2 is 1 for a cluster of 1 and says nothing", field="delta")
    return roster_delta(size) if delta is None else check_delta(delta)


def check_size(size: int) -> int:
    """A cluster that can be accounted for in a time somebody would wait."""
    if not 1 <= size <= MAX_CLUSTER_SIZE:
        raise ConfigurationError(f"{size} given; 1 to {MAX_CLUSTER_SIZE} are possible", field="cluster_size")
    return size


def check_flip(flip: float) -> float:
    """Zero, or enough above it that products with it keep their digits; the library knows the other limits."""
    if 0 < flip < LEAST_FLIP:
        raise ConfigurationError(f"{flip} given; 0, or {LEAST_FLIP} and above, is possible", field="flip_probability")
    return flip


def check_colluders(colluders: int, size: int) -> int:
    """A coalition leaves somebody to protect."""
    if not 0 <= colluders < size:
        raise ConfigurationError(f"{colluders} given; 0 to {size - 1} are possible", field="colluders")
    return colluders


def to_json(record: Mapping[str, Any]) -> str:
    """One line; an infinity is the string ``inf``, as in a run's result, and NaN is no answer."""
    import json

    return json.dumps(_speakable(record), allow_nan=False)


def _speakable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _speakable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_speakable(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def answer(record: Mapping[str, Any], *tables: RenderableType, as_json: bool) -> None:
    """Prints the record, or what says the same to a reader."""
    if as_json:
        typer.echo(to_json(record))
        return
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    for table in tables:
        console.print(table)


def state(record: Mapping[str, Any], as_json: bool) -> None:
    """Prints constants by name."""
    if as_json:
        answer(record, as_json=True)
        return
    from p2p_labeldp.reports import answers

    answer(record, *answers.stated(record), as_json=False)
