"""What a deployed party writes to stderr: sentences for people, or one JSON object a line for machines.

Neither ever holds a label, true or flipped, nor who asked whom: the facts that say so are written without it, and how
often this peer was asked is not written at all. Two peers that differ in their labels alone write the same lines, up to
times and what the network did.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from p2p_labeldp.facts import Fact

LogJson: TypeAlias = Annotated[
    bool, typer.Option("--log-json", help="Write what happens to stderr as one JSON object a line.")
]
OperatorPlace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--operator",
        metavar="HOST:PORT",
        help="Answer /healthz, /readyz and /metrics here, unsigned: an address only the operator reaches.",
    ),
]

_TOLD: dict[str, tuple[str, ...]] = {
    "Listening": (),
    "Joined": ("cluster",),
    "Gathered": ("cluster", "records"),
    "Committed": ("cluster", "size"),
    "Asked": (),
    "Held": (),
    "Ready": ("holding",),
    "Reported": (),
    "Accepted": ("cluster",),
    "Rejected": ("about",),
    "Ended": ("outcome", "reason"),
    "Traffic": ("messages", "bytes"),
}
"""What is written of each fact; of one that is not here, nothing."""


class JsonLines(logging.Handler):
    """Writes log records and facts."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        """A record of the library's own loggers."""
        fields = {"level": record.levelname.lower(), "event": "log", "logger": record.name}
        if record.exc_info:
            fields["error"] = repr(record.exc_info[1])
        _write({**fields, "text": record.getMessage()})

    def hear(self, fact: Fact) -> None:
        """A fact that may leave the party."""
        if (line := fields_of(fact)) is not None:
            _write(line)

    def say(self, text: str) -> None:
        """Something for people to read."""
        _write({"level": "info", "event": "note", "text": text})

    def attach(self) -> None:
        """Takes all that the package logs."""
        logger = logging.getLogger("p2p_labeldp")
        logger.addHandler(self)
        logger.setLevel(logging.INFO)
        logger.propagate = False


def fields_of(fact: Fact) -> dict[str, Any] | None:
    """What is written of a fact; None if nothing is."""
    kind = type(fact).__name__
    if kind not in _TOLD:
        return None
    told = {name: getattr(fact, name) for name in _TOLD[kind]}
    return {"level": "info", "event": kind.lower(), "peer": fact.peer, "at": round(fact.at, 3), **told}


def _write(fields: dict[str, Any]) -> None:
    print(json.dumps({"time": round(time.time(), 3), **fields}), file=sys.stderr, flush=True)
