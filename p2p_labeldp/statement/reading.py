"""Files that somebody else hands over: only regular ones are read, and of each no more than it may hold.

In their place could be a pipe that nobody writes to, a device without end, or a file of nothing but a hole.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_LINE_BYTES = 1 << 20
"""Of facts and reports; the longest fact has two bits for each member of a roster."""


def opened(path: Path) -> BinaryIO:
    """A regular file, to be read.

    Raises:
        OSError: It can't be opened, or is no such file.
    """
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: SIM115  the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "No regular file", str(path))
    return file


def content_of(path: Path, *, longest: int) -> bytes:
    """All of a file.

    Raises:
        OSError: It can't be read, or is longer than ``longest`` bytes.
    """
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > longest:
            raise OSError(errno.EFBIG, f"{path.name} is longer than any such file", str(path))
        return file.read(longest)


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is too long, pieces."""
    while line := file.readline(MAX_LINE_BYTES):
        yield line
