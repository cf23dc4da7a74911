"""The commands, and how they end.

    exit status   when
    0             the result is on stdout
    1             something failed that was not the user's to get right
    2             bad input or bad usage; nothing was started
    130           interrupted

In all but the first, stderr says why in one line.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import p2p_labeldp
from p2p_labeldp.cli import (
    account,
    audit,
    compare,
    configs,
    data,
    deploy,
    doctor,
    enrol,
    examples,
    federate,
    keygen,
    learner,
    manifest,
    measure,
    peer,
    plan,
    report,
    run,
    shard,
    simulate,
    verify,
    view,
)
from p2p_labeldp.cli.dashboard import Watchable
from p2p_labeldp.errors import ConfigurationError, LabelDPError

NAME = "p2p-labeldp"
FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
NUMBERS = {"float_parsing": "a number", "int_parsing": "a whole number"}
"""What was needed, by the kind of typer's complaint."""

# The base of typer's usage errors. It is click's own class where typer depends on click, and in newer releases, which
# carry a copy of click, a private one.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name=NAME,
    help=(
        "Label differential privacy without a trusted server: peers of a cluster swap randomized labels, a learner"
        " trains on what they report.\n\nExample:\n\n    p2p-labeldp run breast-cancer"
    ),
    add_completion=False,
    rich_markup_mode=None,  # plain help: it imports nothing and reads the same everywhere
    pretty_exceptions_enable=False,
)
app.command("run", cls=Watchable, help=run.HELP)(run.command)
app.command("federate", help=federate.HELP)(federate.command)
app.command("view", help=view.HELP)(view.command)
app.command("report", help=report.HELP)(report.command)
app.command("verify", help=verify.HELP)(verify.command)
app.command("measure", help=measure.HELP)(measure.command)
app.command("compare", help=compare.HELP)(compare.command)
app.command("configs", help=configs.HELP)(configs.command)
app.add_typer(data.app)
app.add_typer(account.app)
app.command("plan", help=plan.HELP)(plan.command)
app.command("audit", help=audit.HELP)(audit.command)
app.command("learner", cls=Watchable, help=learner.HELP)(learner.command)
app.command("peer", help=peer.HELP)(peer.command)
app.add_typer(deploy.app, name="deploy")
app.command("shard", help=shard.HELP)(shard.command)
app.command("keygen", help=keygen.HELP)(keygen.command)
app.command("enrol", help=enrol.HELP)(enrol.command)
app.add_typer(manifest.app, name="manifest")
app.command("simulate", help=simulate.HELP)(simulate.command)
app.command("doctor", help=doctor.HELP)(doctor.command)
app.command("examples", help=examples.HELP)(examples.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{NAME} {p2p_labeldp.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Options that come before a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status.

    Args:
        arguments: Those of the command line by default.
    """
    try:
        status = app(args=None if arguments is None else list(arguments), prog_name=NAME, standalone_mode=False)
    except ConfigurationError as exc:
        return _complain(str(exc), BAD_INPUT)
    except _UsageError as exc:
        return _complain(_usage(exc), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", INTERRUPTED)
    except (LabelDPError, OSError) as exc:  # an OSError: a full disk, say
        return _complain(str(exc), FAILED)
    if status == INTERRUPTED:  # typer makes this of an interrupt that reaches it
        return _complain("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


def _usage(error: Exception) -> str:
    """What typer says, and where to read what it wants."""
    context = getattr(error, "ctx", None)
    command = NAME if context is None else context.command_path
    return f"{_plainly(error).rstrip('.')}; see {command} --help"


def _plainly(error: Any) -> str:
    """A usage error's text. Of a word where a number is needed, typer by itself does not say which word it was."""
    said: str = error.format_message()
    faults = getattr(error.__cause__, "errors", None)  # pydantic's, which newer releases of typer read numbers with
    fault = faults()[0] if callable(faults) else {}
    needed = NUMBERS.get(fault.get("type", ""))
    if needed is None:
        return said
    given = str(fault["input"])
    point = "; the decimal sign is a point" if "," in given and needed == "a number" else ""
    return said.replace(error.message, f"{reprlib.repr(given)} given; {needed} is needed{point}")


def _complain(text: str, status: int) -> int:
    """One line, whatever was typed into it."""
    line = " ".join(text.split())
    printable = "".join(character if character.isprintable() else "?" for character in line)
    print(f"{NAME}: {printable}", file=sys.stderr)
    return status
