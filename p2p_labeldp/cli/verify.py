"""``verify``: whether a statement of a guarantee holds, for whoever has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

HELP = """Check the guarantee that a run states: DIR/guarantee.json.

Nothing in it is believed. Every number is worked out anew by the accountant, the signature is checked, and the files of
the run are held against it: configuration, result, facts, reports, and what the learner signed, receipt by receipt. One
line for each check; what can't be checked is said. The exit status is 1 if a check failed.

DIR is a directory that `run --out` or `learner --out` kept, or the file guarantee.json alone, as a learner may hand it
to its peers. A peer names its state file, KEY.state, which holds its receipt: then it is also checked that its report
is counted, in which cluster, and that its label was flipped as stated. How large that cluster was the file alone can't
show; a line says so.

Without --learner-key the signer is whoever the file says.

Examples:

\b
    p2p-labeldp run breast-cancer --engine population --out runs/one
    p2p-labeldp verify runs/one
    p2p-labeldp verify results/round-1 --learner-key ID
    p2p-labeldp verify guarantee.json --receipt alice.key.state --learner-key ID
"""


def command(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Of a run; or its guarantee.json alone.")],
    learner_key: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of the learner's key, as `keygen` and the learner print it.")
    ] = None,
    receipt: Annotated[
        str | None, typer.Option(metavar="FILE", help="A peer's state, KEY.state, which holds its receipt.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as one JSON object.")] = False,
) -> int:
    """See ``HELP``."""
    from p2p_labeldp import statement
    from p2p_labeldp.cli.enrol import peer_id
    from p2p_labeldp.network import store

    learner = None
    if learner_key is not None:
        learner = peer_id(learner_key.partition("@")[0], field="--learner-key").hex()
    own = None if receipt is None else store.read_receipt(Path(receipt))
    verdict = statement.verify(directory, learner=learner, receipt=own)
    if as_json:
        checks = [{"check": one.name, "status": one.status.value, "text": one.text} for one in verdict.checks]
        found = {"holds": verdict.holds, "learner": verdict.statement.learner, "checks": checks}
        typer.echo(json.dumps(found))
    else:
        width = max(len(one.name) for one in verdict.checks)
        for one in verdict.checks:
            status = "FAILED" if one.status is statement.Status.FAILED else one.status.value
            line = f"{one.name:<{width}}  {status:<11}  {one.text}"
            typer.echo("".join(character if character.isprintable() else "?" for character in line))
    return 0 if verdict.holds else 1
