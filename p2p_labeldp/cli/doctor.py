"""``doctor``: what this machine has to give, and how many peers fit it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from p2p_labeldp.network.capacity import Capacity
    from p2p_labeldp.network.limits import Limits

HELP = """Look at this machine, or at the container this is run in: how many peers, each a process of its own, fit?

Memory and processes are what is left now, by the machine or by any control group (version 2 or 1) around this process.
Cores set no limit: a round of more peers takes longer.

Example:

\b
    p2p-labeldp doctor
    p2p-labeldp doctor --peers 1000   # exit status 1 if they don't fit
"""

NOT_ENOUGH = 1


def command(
    peers: Annotated[int | None, typer.Option(metavar="N", help="Say whether so many fit.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
) -> int:
    """See ``HELP``."""
    from dataclasses import asdict

    from p2p_labeldp.network import capacity, limits

    found = limits.read()
    fits = capacity.of(found)
    enough = peers is None or peers <= fits.peers
    if as_json:
        typer.echo(json.dumps({"limits": asdict(found), "capacity": asdict(fits), "enough": enough}))
    else:
        for line in _lines(found, fits):
            typer.echo(line)
    if not enough:
        typer.echo(f"p2p-labeldp: {peers:,} peers don't fit: {fits.bound_by} for {fits.peers:,}", err=True)
    return 0 if enough else NOT_ENOUGH


def _lines(found: Limits, fits: Capacity) -> list[str]:
    from p2p_labeldp.crypto.signatures import ALLOWED_SKEW_SECONDS

    def peers(resource: str) -> str:
        return f"for {fits.by[resource]:,} peers" if resource in fits.by else "no limit"

    error = found.clock_error_seconds
    if error is None:
        clock = "nothing sets the wall clock; a peer more than"
    else:
        clock = f"wall clock right to {error:.3g} s; a peer more than"
    memory = "unknown" if found.memory is None else f"{found.memory / 1e9:.2f} GB left"
    processes = "unknown" if found.processes is None else f"{found.processes:,} left"
    return [
        f"memory       {memory} ({found.memory_of}): {peers('memory')}",
        f"processes    {processes} ({found.processes_of}): {peers('processes')}",
        f"descriptors  {found.descriptors:,} a process: {peers('descriptors')}",
        f"addresses    {found.addresses:,} on loopback: {peers('addresses')}",
        f"clock        {clock} {ALLOWED_SKEW_SECONDS:g} s off takes no part",
        f"cores        {found.cores:g}",
        f"largest      {fits.peers:,} peers, bound by {fits.bound_by}; a round takes {fits.round_seconds:.0f} s",
    ]
