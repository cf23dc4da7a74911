"""``keygen``: the secret that makes a peer or a learner somebody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from p2p_labeldp.errors import ConfigurationError

HELP = """Draw a secret from the operating system and keep it in a new file, readable by its owner alone.

A peer's keys and coins derive from it: whoever has the file is that peer, and the peer that loses it is a new one.

Example:

\b
    p2p-labeldp keygen alice.key
"""

SECRET_BYTES = 32


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to keep the secret; must not exist.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the id as a JSON object.")] = False,
) -> None:
    """See ``HELP``."""
    from p2p_labeldp.cli import new_file
    from p2p_labeldp.randomness import secure

    secret = secure()
    new_file.write(file, secret.to_hex().encode() + b"\n", mode=0o600, field="FILE")
    peer_id = keys_of(file)[1]
    typer.echo(json.dumps({"id": peer_id, "file": file}) if as_json else peer_id)


def keys_of(file: str) -> tuple[bytes, str]:
    """The secret in a key file, and the id (hex) that derives from it.

    Raises:
        ConfigurationError: No such file, or no key.
    """
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.randomness import Secret

    try:
        secret = bytes.fromhex(Path(file).read_text(encoding="ascii").strip())
    except OSError as exc:
        raise ConfigurationError(f"{file!r} can't be read: {exc.strerror}", field="--key") from exc
    except ValueError as exc:
        raise ConfigurationError(f"{file!r} is no key file; `p2p-labeldp keygen` makes one", field="--key") from exc
    if len(secret) != SECRET_BYTES:
        raise ConfigurationError(f"{file!r} is no key file; `p2p-labeldp keygen` makes one", field="--key")
    return secret, Keys(Secret(secret).identity()).peer_id.hex()
