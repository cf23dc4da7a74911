"""Cells of a long study: run in parallel, each kept in a file of JSON lines as soon as it is known.

A run that was killed goes on where it was: cells of the same settings that the file holds are not run again, and a line
that was cut off is dropped. Cells of other settings stay in the file and are not looked at. Settings are what a study
says they are; who changes code that they don't mention deletes the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

Value = dict[str, Any]
"""What a cell finds, as JSON has it."""


class Cell(Protocol):
    """What is run. Given to another process, so it can be pickled."""

    @property
    def key(self) -> str:
        """Its name, alone of its settings."""
        ...


C = TypeVar("C", bound=Cell)


class Finished:
    """The file, held by one process at a time, until the end of a ``with``.

    Args:
        path: Of the file; it and its folder are made.
        settings: What cells depend on beside their key.

    Raises:
        SystemExit: Another process holds it.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise SystemExit(f"{path} is held by another run") from None
        self._settings = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
        self.values: dict[str, Value] = {}
        self.cpu_seconds = 0.0
        self._read()

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for line in self._file.read().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            row = json.loads(line)
            if row["settings"] == self._settings:
                self.values[row["key"]] = row["value"]
                self.cpu_seconds += row["cpu_seconds"]
        self._file.truncate(whole)

    def add(self, key: str, value: Value, cpu_seconds: float) -> None:
        """Keeps a cell, on the disk before it returns."""
        row = {"settings": self._settings, "key": key, "value": value, "cpu_seconds": round(cpu_seconds, 4)}
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.values[key] = value
        self.cpu_seconds += cpu_seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def finish(title: str, cells: Sequence[C], work: Callable[[C], Value], *, kept: Finished, jobs: int) -> None:
    """Runs the cells that ``kept`` does not hold.

    Args:
        title: Of the progress on stderr.
        cells: With distinct keys.
        work: A function of a module, which other processes can import.
        kept: Where they go.
        jobs: Processes; 1 stays in this one.
    """
    left = [cell for cell in cells if cell.key not in kept.values]
    if not left:
        return
    shown = 0.0
    for done, (key, value, cpu_seconds) in enumerate(_played(left, work, jobs), start=1):
        kept.add(key, value, cpu_seconds)
        if time.monotonic() - shown > 5 or done == len(left):
            shown = time.monotonic()
            total = len(cells) - len(left) + done
            print(f"{title}: {total}/{len(cells)}, {kept.cpu_seconds:.0f} s of CPU so far", file=sys.stderr, flush=True)


def _played(cells: Sequence[C], work: Callable[[C], Value], jobs: int) -> Iterator[tuple[str, Value, float]]:
    if jobs == 1:
        yield from (_timed(work, cell) for cell in cells)
        return
    import joblib

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(joblib.delayed(_timed)(work, cell) for cell in cells)


def _timed(work: Callable[[C], Value], cell: C) -> tuple[str, Value, float]:
    start = time.process_time()
    value = work(cell)
    return cell.key, value, time.process_time() - start
