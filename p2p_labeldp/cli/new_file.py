"""A file that was not there before, with its mode from the first byte on: what is secret others can never read."""

from __future__ import annotations

import os

from p2p_labeldp.errors import ConfigurationError


def write(file: str, content: bytes, *, mode: int, field: str) -> None:
    """Writes a new file; ``field`` is where its name was given.

    Raises:
        ConfigurationError: It exists, or can't be written.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
    except FileExistsError as exc:
        raise ConfigurationError(f"{file!r} exists already; a new file is needed", field=field) from exc
    except OSError as exc:
        raise ConfigurationError(f"{file!r} can't be written: {exc.strerror}", field=field) from exc
