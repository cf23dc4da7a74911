"""``view``: what one party saw of a run that was kept."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

HELP = """Write what one party saw of a run, as JSON lines: what an attacker starts from.

RUN is a directory that `run --out` kept. The party is the learner, some mates (by ordinal; by id in a deployment), an
observer of the network, or several of them together. What each line means: p2p_labeldp/reports/views.py.

Examples:

\b
    p2p-labeldp run breast-cancer --engine virtual --out runs/one
    p2p-labeldp view runs/one --as learner > learner.jsonl
    p2p-labeldp view runs/one --as learner+mates:3,17
"""


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The directory of the run.")],
    party: Annotated[
        str,
        typer.Option("--as", metavar="learner|mates:3,17|learner+mates:3,17|observer", help="Who looks."),
    ],
) -> None:
    """See ``HELP``."""
    from p2p_labeldp.reports import views

    who = views.parse_party(party)
    facts, features = views.read_run(run)
    for line in views.view(facts, who, features=features):
        sys.stdout.write(json.dumps(line, allow_nan=False) + "\n")
