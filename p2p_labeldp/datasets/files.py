"""Data files on disk: where they are looked for, and whether they are what was published.

The data directory is the one given (``--data-dir``), else that of the environment variable P2P_LABELDP_DATA, else the
user's cache. A file of the set ``mnist`` may stand in it as ``mnist/NAME``, or compressed as ``mnist/NAME.gz``; one of
an archive also in the archive's own folder, within ``cifar-10`` or beside it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from p2p_labeldp.datasets.catalogue import DataFile, ImageSet
from p2p_labeldp.errors import ConfigurationError

VARIABLE = "P2P_LABELDP_DATA"


class State(Enum):
    """Of a file."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    """Whole, and not the published content."""
    TRUNCATED = "truncated"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What there is of a file.

    Args:
        file: Which.
        path: Where; None if it is missing.
        state: How it is.
        content: Decompressed; empty unless whole.
        detail: What is wrong, and what to do.
    """

    file: DataFile
    path: Path | None
    state: State
    content: bytes
    detail: str = ""


def data_directory(given: str | Path | None = None) -> Path:
    """The directory that the module's text says."""
    if given is not None:
        return Path(given)
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    import pooch

    return Path(pooch.os_cache("p2p-labeldp"))


def look(wanted: ImageSet, file: DataFile, directory: Path) -> Found:
    """Reads a file and compares its content with the published one.

    Raises:
        ConfigurationError: It is there and can't be read.
    """
    path = find(wanted, file, directory)
    if path is None:
        hint = f"p2p-labeldp data fetch {wanted.name}; or --data-dir or {VARIABLE} says where it is"
        return Found(
            file=file,
            path=None,
            state=State.MISSING,
            content=b"",
            detail=f"{wanted.name}/{file.name} is missing in {str(directory)!r}: {hint}",
        )
    try:
        content = read(path, most=file.size + 1)
    except (EOFError, zlib.error):
        content = b""
    except OSError as exc:  # gzip's own complaint about what is no gzip file is one too, without an errno
        raise ConfigurationError(f"{str(path)!r} can't be read: {exc.strerror or exc}", field="data.name") from exc
    if len(content) < file.size:
        detail = f"{str(path)!r} is truncated: {len(content)} of {file.size} bytes can be read; fetch it again"
        return Found(file=file, path=path, state=State.TRUNCATED, content=content, detail=detail)
    seen = hashlib.sha256(content).hexdigest()
    if seen != file.sha256:
        detail = (
            f"{str(path)!r} is altered: SHA-256 {seen[:16]}.. where {file.sha256[:16]}.. was published;"
            " fetch it again, or set data.verify = false for results that say unverified"
        )
        return Found(file=file, path=path, state=State.UNVERIFIED, content=content, detail=detail)
    return Found(file=file, path=path, state=State.VERIFIED, content=content)


def find(wanted: ImageSet, file: DataFile, directory: Path) -> Path | None:
    """Where a file stands, unread; None where it is missing."""
    return next((place for place in _places(wanted, file, directory) if place.is_file()), None)


def read(path: Path, *, most: int) -> bytes:
    """Up to ``most`` bytes of a file, decompressed if its name ends in .gz: a small file can't fill the memory."""
    if path.suffix == ".gz":
        with gzip.open(path) as stream:
            return stream.read(most)
    with path.open("rb") as plain:
        return plain.read(most)


def _places(wanted: ImageSet, file: DataFile, directory: Path) -> Iterator[Path]:
    folders = [directory / wanted.name]
    if wanted.folder:
        folders += [directory / wanted.name / wanted.folder, directory / wanted.folder]
    for folder in folders:
        yield folder / file.name
        yield folder / f"{file.name}.gz"
