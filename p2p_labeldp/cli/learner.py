"""``learner``: opens a round, waits for peers, trains on what they report."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from p2p_labeldp.errors import ConfigurationError

HELP = """Open one round and train on its reports.

The clustering is fitted to the features of the configured data set, which are public; the labels come from the peers.
The round's own key is drawn afresh and forgotten with the round. With --manifest FILE, made by `manifest create` from
the same configuration and key, that round is served: its key is read from FILE.round-key, which is then deleted.

Examples:

\b
    p2p-labeldp learner by-hand --listen 127.0.0.1:7800
    p2p-labeldp manifest create by-hand --key learner.key --out round.manifest
    p2p-labeldp learner by-hand --key learner.key --manifest round.manifest
"""


def command(
    configuration: Annotated[str, typer.Argument(metavar="[NAME|PATH]", help="Terms of the round.")] = "by-hand",
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where peers reach the learner.")] = "127.0.0.1:7800",
    key: Annotated[
        str | None, typer.Option(metavar="FILE", help="Key file, made by keygen. Default: a fresh key.")
    ] = None,
    manifest: Annotated[
        str | None, typer.Option(metavar="FILE", help="Serve the round of this manifest. Needs --key.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Replace a value.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Keep result and reports here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp import config

    chosen = config.load(configuration, overrides or [])

    from p2p_labeldp import experiment, results
    from p2p_labeldp.cli.keygen import keys_of
    from p2p_labeldp.cli.manifest import proposal_in
    from p2p_labeldp.network.transport import parse_place
    from p2p_labeldp.randomness import Secret, secure
    from p2p_labeldp.reports import table

    host, port = parse_place(listen, field="--listen")
    coins = secure() if key is None else Secret(keys_of(key)[0])

    if manifest is not None and key is None:
        raise ConfigurationError("missing; the key that signed the manifest is needed", field="--key")
    proposal = None if manifest is None else proposal_in(manifest)

    def say(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    with results.claimed(out) if out is not None else nullcontext() as directory:
        done = experiment.learn_from_peers(chosen, coins=coins, host=host, port=port, say=say, proposal=proposal)
        if directory is not None:
            directory.write(result=done.result, facts=done.facts, noisy=done.noisy, config=done.config)
    if as_json:
        typer.echo(results.to_json(done.result))
    else:
        table.show(done.result, title=f"{configuration}, with peers of their own", file=sys.stdout)
