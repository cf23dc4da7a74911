"""``learner``: opens a round, waits for peers, trains on what they report."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from p2p_labeldp.cli.dashboard import DashboardPlace, dashboard_at
from p2p_labeldp.cli.dashboard import say as say_aloud
from p2p_labeldp.cli.logs import JsonLines, LogJson, OperatorPlace
from p2p_labeldp.cli.tls import Bind, TlsAuthority, TlsCertificate, TlsKey, bind_of, tls_of
from p2p_labeldp.errors import ConfigurationError

HELP = """Open one round and train on its reports.

The clustering is fitted to the features of the configured data set, which are public; the labels come from the peers.
The round's own key is drawn afresh and forgotten with the round. With --manifest FILE, made by `manifest create` from
the same configuration and key, that round is served: its key is read from FILE.round-key, which is then deleted.

With a key of its own the learner keeps its round in a state file: killed and started again with the same command, it
goes on where it was, and no report that it gave a receipt for is lost. SIGTERM ends the round: the result of what was
reported until then is marked as not complete.

Examples:

\b
    p2p-labeldp learner by-hand --listen 127.0.0.1:7800
    p2p-labeldp learner by-hand --listen 127.0.0.1:7800 --key learner.key --out results/round-1
    p2p-labeldp learner by-hand --dashboard
    p2p-labeldp manifest create by-hand --key learner.key --out round.manifest
    p2p-labeldp learner by-hand --key learner.key --manifest round.manifest
"""


def command(
    configuration: Annotated[str, typer.Argument(metavar="[NAME|PATH]", help="Terms of the round.")] = "by-hand",
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where peers reach the learner.")] = "127.0.0.1:7800",
    key: Annotated[
        str | None, typer.Option(metavar="FILE", help="Key file, made by keygen. Default: a fresh key.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What a learner that died finds again. Default: KEY.state, beside the key, if there is one.",
        ),
    ] = None,
    manifest: Annotated[
        str | None, typer.Option(metavar="FILE", help="Serve the round of this manifest. Needs --key.")
    ] = None,
    used: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where it is noted which state the key was used with. Default: KEY.used, beside the key.",
        ),
    ] = None,
    new_state: Annotated[
        bool, typer.Option("--new-state", help="Start anew though the key was used with a state that is lost.")
    ] = False,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Replace a value.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Keep result and reports here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    operator: OperatorPlace = None,
    dashboard: DashboardPlace = None,
    bind: Bind = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_authority: TlsAuthority = None,
    log_json: LogJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp import config

    chosen = config.load(configuration, overrides or [])

    from p2p_labeldp import experiment, results
    from p2p_labeldp.cli.keygen import keys_of
    from p2p_labeldp.cli.manifest import proposal_in
    from p2p_labeldp.network import store
    from p2p_labeldp.network.stopping import Stopping
    from p2p_labeldp.network.transport import parse_place
    from p2p_labeldp.randomness import Secret, secure
    from p2p_labeldp.reports import table

    host, port = parse_place(listen, field="--listen")
    if key is None and (state is not None or new_state):
        raise ConfigurationError("given without --key; a learner that comes back needs its key", field="--state")
    if key is None and manifest is not None:
        raise ConfigurationError("missing; the key that signed the manifest is needed", field="--key")
    coins = secure() if key is None else Secret(keys_of(key)[0])
    proposal = None if manifest is None else proposal_in(manifest)

    lines = JsonLines()
    if log_json:
        lines.attach()

    def say(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    with ExitStack() as stack:
        stopping = stack.enter_context(Stopping())
        directory = None if out is None else stack.enter_context(results.claimed(out))
        kept = None
        if key is not None:
            kept = store.open_beside(
                Path(key),
                peer_id=keys_of(key)[1],
                state=None if state is None else Path(state),
                used=None if used is None else Path(used),
                new_state=new_state,
            )
            stack.callback(kept.close)
        page = stack.enter_context(
            dashboard_at(dashboard, title=configuration, kind="learner", say=lines.say if log_json else say_aloud)
        )
        done = experiment.learn_from_peers(
            chosen,
            coins=coins,
            host=host,
            port=port,
            say=lines.say if log_json else say,
            stopping=stopping,
            store=kept,
            proposal=proposal,
            operator=None if operator is None else parse_place(operator, field="--operator"),
            on_fact=lines.hear if log_json else None,
            progress=page,
            watcher=page,
            bind=bind_of(bind),
            tls=tls_of(tls_certificate, tls_key, tls_authority),
        )
        if page is not None:
            page.finished(done.result)
        if directory is not None:
            experiment.keep(done, directory)
        if as_json:
            typer.echo(results.to_json(done.result))
        else:
            table.show(done.result, title=f"{configuration}, with peers of their own", file=sys.stdout)
        if kept is not None:
            kept.forget()
