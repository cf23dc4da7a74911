"""Downloads of the image sets, by pooch, into the data directory.

What arrives is decompressed and compared with the published sum before it gets its name, so that nothing unverified
ever stands there. Sources are tried in turn. No address of the catalogue was ever tried from here: the tests fetch from
a server of their own.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from p2p_labeldp.datasets.catalogue import DataFile, ImageSet
from p2p_labeldp.datasets.files import State, look, read
from p2p_labeldp.errors import ConfigurationError, TransportError

TIMEOUT_SECONDS = 30
"""Without a byte, until a source is given up."""


def nobody_listens(line: str) -> None:
    """Progress that nobody watches."""


def fetch(
    wanted: ImageSet,
    directory: Path,
    *,
    sources: Sequence[str] | None = None,
    say: Callable[[str], None] = nobody_listens,
) -> list[Path]:
    """Downloads the files of a set that are not there, verified, already.

    Args:
        wanted: Which set.
        directory: The data directory; made if missing.
        sources: Instead of the catalogue's, each ending in a slash.
        say: Is told what is downloaded, a line at a time.

    Returns:
        The files that were written.

    Raises:
        ConfigurationError: The directory can't be written to, or holds a file in the way that is not the published one.
        TransportError: No source gave the published content; why, for each.
    """
    missing = []
    for file in wanted.files:
        found = look(wanted, file, directory)
        if found.state is State.MISSING:
            missing.append(file)
        elif found.state is not State.VERIFIED:
            raise ConfigurationError(f"{str(found.path)!r} is {found.state.value}; remove it first", field="data fetch")
    if not missing:
        return []
    home = directory / wanted.name
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=home) as scratch:
            return _from_sources(wanted, missing, tuple(sources or wanted.sources), home, Path(scratch), say)
    except OSError as exc:
        raise ConfigurationError(f"{str(home)!r} can't be written to: {exc.strerror}", field="--data-dir") from exc


def _from_sources(
    wanted: ImageSet,
    missing: list[DataFile],
    sources: tuple[str, ...],
    home: Path,
    scratch: Path,
    say: Callable[[str], None],
) -> list[Path]:
    names = [wanted.archive] if wanted.archive else [f"{file.name}.gz" for file in missing]
    written: list[Path] = []
    for name in names:
        refused = []
        for source in sources:
            say(f"{source}{name}")
            try:
                got = _download(source + name, scratch / name)
                if wanted.archive:
                    written += _unpacked(wanted, missing, got, home, scratch)
                else:
                    file = next(one for one in missing if name == f"{one.name}.gz")
                    _compare(file, _whole(got, file))
                    written.append(Path(shutil.move(got, home / name)))
                break
            except TransportError as exc:
                refused.append(f"{source}{name} {exc}")
        else:
            raise TransportError("; ".join(refused))
    return written


def _download(url: str, path: Path) -> Path:
    """One file, anew."""
    import pooch
    import requests

    path.unlink(missing_ok=True)
    # It prints the sum of what it got, to be pinned; ours are.
    pooch.get_logger().setLevel(logging.WARNING)
    downloader = pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS)
    try:
        return Path(pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, downloader=downloader))
    except requests.RequestException as exc:  # an OSError, like what a full disk raises
        raise TransportError(f"can't be downloaded: {_reason(exc)}") from exc


def _reason(error: Exception) -> str:
    """One short line of what may be a chain of library objects."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"status {response.status_code}"
    return type(error).__name__


def _whole(path: Path, file: DataFile) -> bytes:
    try:
        return read(path, most=file.size + 1)
    except (EOFError, zlib.error, OSError) as exc:
        raise TransportError("arrived truncated, or is no gzip file") from exc


def _compare(file: DataFile, content: bytes) -> None:
    if hashlib.sha256(content).hexdigest() != file.sha256:
        what = "truncated" if len(content) < file.size else "altered"
        raise TransportError(f"arrived {what}: {file.name} has {len(content)} bytes and not the published sum")


def _unpacked(wanted: ImageSet, missing: list[DataFile], archive: Path, home: Path, scratch: Path) -> list[Path]:
    """Takes the wanted members, by name, out of an archive, and nothing else; all of them or none."""
    folder = home / wanted.folder
    ready = []
    try:
        with tarfile.open(archive) as members:
            for file in missing:
                member = members.extractfile(f"{wanted.folder}/{file.name}")
                content = b"" if member is None else member.read(file.size + 1)
                _compare(file, content)
                ready.append(scratch / file.name)
                ready[-1].write_bytes(content)
    except (tarfile.TarError, EOFError, zlib.error) as exc:
        raise TransportError("arrived truncated, or is no archive") from exc
    except KeyError as exc:
        raise TransportError(f"lacks a file: {exc.args[0]}") from exc
    folder.mkdir(exist_ok=True)
    return [Path(shutil.move(path, folder / path.name)) for path in ready]
