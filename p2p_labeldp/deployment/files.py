"""Writes a deployment into a new directory: what holds a key or a label is its owner's alone to read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from p2p_labeldp.errors import ConfigurationError

IMAGE_USER = 10_001


def secrets_owner() -> tuple[int, int]:
    """Who the secrets belong to, and the containers run as: whoever writes them; the image's user if that is root."""
    return (IMAGE_USER, IMAGE_USER) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def write(out: str, *, public: Mapping[str, str], secret: Mapping[str, str]) -> None:
    """Writes files by their path within ``out``, which must not exist, or be empty.

    Raises:
        ConfigurationError: It can't be written to, or is not empty.
    """
    directory = Path(out)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise ConfigurationError(f"{out!r} is not empty; a new directory is needed", field="--out")
        owner = secrets_owner()
        for name, text in secret.items():
            file = directory / name
            file.parent.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
                opened.write(text)
            if os.geteuid() == 0:
                os.chown(file, *owner)
        for name, text in public.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as exc:
        raise ConfigurationError(f"{out!r} can't be written to: {exc.strerror}", field="--out") from exc


def as_yaml(documents: Sequence[Mapping[str, Any]], *, heading: str) -> str:
    """One file of one or more documents, with a comment above."""
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    return comment + yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, width=120)


class _Plain(yaml.SafeDumper):
    """Without anchors: what two services share is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        """Of everything."""
        return True
