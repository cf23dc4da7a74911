"""A file that was not there before, with its mode from the first byte on: what is secret others can never read."""

from __future__ import annotations

import os

from p2p_labeldp.errors import ConfigurationError


def write(file: str, content: bytes, *, mode: int) -> None:
    """Writes a new file.

    Raises:
        ConfigurationError: It exists, or can't be written.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
    except OSError as exc:
        raise ConfigurationError(f"{file!r} can't be written: {exc.strerror}", field="--out") from exc
