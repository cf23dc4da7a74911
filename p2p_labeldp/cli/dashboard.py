"""``--dashboard``, whose value may be left out."""

from __future__ import annotations

import re
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand

from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from p2p_labeldp.reports.dashboard import Dashboard

OPTION = "--dashboard"
ANYWHERE = "anywhere"
"""Stands for a value that was left out: the usual port of the loopback, or a free one."""

DashboardPlace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="[HOST:PORT]",
        help="Serve a page on which the round can be watched, unsigned. Default: 127.0.0.1:7880, or a free port there.",
    ),
]

_PLACE = re.compile(r".+:[0-9]+")


class Watchable(TyperCommand):
    """A command whose ``--dashboard`` takes the next argument only if that is a place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Writes down what was left out."""
        return super().parse_args(ctx, spelt_out(args))


def spelt_out(arguments: list[str]) -> list[str]:
    """The arguments with a value for each ``--dashboard``."""
    spelt: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return spelt + arguments[number:]
        spelt.append(argument)
        if argument == OPTION and not any(map(_PLACE.fullmatch, arguments[number + 1 : number + 2])):
            spelt.append(ANYWHERE)
    return spelt


def dashboard_at(
    place: str | None, *, title: str, kind: str, say: Callable[[str], None]
) -> AbstractContextManager[Dashboard | None]:
    """The dashboard that was asked for, if it was, while it lasts.

    Args:
        place: The option's value.
        title: Of the round.
        kind: A ``Kind``: ``study``, ``private`` or ``learner``.
        say: Is told where it is.

    Raises:
        ConfigurationError: No place, or one that can't be listened on.
    """
    if place is None:
        return nullcontext()
    from p2p_labeldp.network.transport import parse_place
    from p2p_labeldp.reports.dashboard import Kind, serving  # takes half a second

    where = None if place == ANYWHERE else parse_place(place, field=OPTION)
    return serving(where, title=Path(title).name, kind=Kind(kind), say=say)


def check_watchable(place: str | None, engine: str) -> None:
    """Only peers that are processes take time that somebody could watch.

    Raises:
        ConfigurationError: Another engine.
    """
    if place is not None and engine != "processes":
        raise ConfigurationError(
            f"given with the {engine} engine, whose round is over at once; --engine processes is needed", field=OPTION
        )


def say(line: str) -> None:
    """To stderr, also of a quiet command: without its address nobody finds the page that was asked for."""
    print(line, file=sys.stderr, flush=True)
