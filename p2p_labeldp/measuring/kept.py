"""The rows of a sweep in a file of JSON lines, each appended whole when it is known, so that nothing is measured twice.

One process at a time holds the file, by a lock that ends with it. A line that was cut off by a crash is dropped when
the file is opened again. Rows of other configurations, seeds, numbers of trials and versions stay in the file and are
not looked at.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import p2p_labeldp
from p2p_labeldp.config import config_hash
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.measuring.one_size import Question
from p2p_labeldp.measuring.row import Row, from_line, to_line

NAME = "measure.jsonl"


class Kept:
    """An open file of rows. Made by ``opened``."""

    def __init__(self, descriptor: int, rows: list[Row]) -> None:
        self._descriptor = descriptor
        self._rows = rows

    def append(self, row: Row) -> None:
        """Writes a row to the disk before it returns."""
        line = to_line(row).encode()
        written = os.write(self._descriptor, line)
        if written != len(line):  # a full disk; the rest of the line is dropped when the file is next opened
            raise OSError(f"{NAME}: {written} of {len(line)} bytes could be written")
        os.fsync(self._descriptor)
        self._rows.append(row)

    def answers(self, question: Question) -> dict[int, Row]:
        """The rows that answer a question, by cluster size."""
        wanted = (
            *question.measured,
            config_hash(question.config),
            question.seed,
            question.confidence,
            p2p_labeldp.__version__,
        )
        return {
            row.cluster_size: row
            for row in self._rows
            if (row.engine, row.peers, row.mechanism, row.config_hash, row.seed, row.confidence, row.version) == wanted
            and row.trials == question.trials_at(row.cluster_size)
        }


@contextmanager
def opened(directory: Path) -> Iterator[Kept]:
    """Opens the rows of a directory, which is made if there is none.

    Raises:
        ConfigurationError: No directory to write to, another process that measures there, or a line that is no row.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / NAME, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise ConfigurationError(f"{str(directory)!r} can't be written to: {reason}", field="--out") from exc
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise ConfigurationError(
                f"{str(directory)!r} given; another process measures there", field="--out"
            ) from exc
        content = (directory / NAME).read_bytes()
        whole = content.rfind(b"\n") + 1
        rows = [from_line(line) for line in content[:whole].splitlines()]
        os.ftruncate(descriptor, whole)
        yield Kept(descriptor, rows)
    finally:
        os.close(descriptor)
