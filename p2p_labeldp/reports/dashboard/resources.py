"""What a process and everything it started take of the machine, from ``/proc``.

Memory is the proportional set size, which counts a page that n processes share as 1/n of a page in each: peers forked
from one zygote share most of theirs. Where the kernel does not tell it, nothing is said.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def look(root: int, *, proc: Path = PROC) -> dict[str, float]:
    """Number of ``processes``, ``cpu_seconds`` they and their dead took in all, and ``memory_bytes``, of ``root`` and
    all below it. A process that ends meanwhile is left out."""
    children: dict[int, list[int]] = defaultdict(list)
    seconds: dict[int, float] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                parent, spent = _stat((entry / "stat").read_text(errors="replace"))
                children[parent].append(int(entry.name))
                seconds[int(entry.name)] = spent
    tree, waiting = [], [root]
    while waiting:
        tree.append(waiting.pop())
        waiting += children[tree[-1]]
    memory = [found for process in tree if (found := _memory(proc / str(process))) is not None]
    usage = {"processes": len(tree), "cpu_seconds": sum(seconds.get(process, 0.0) for process in tree)}
    return {**usage, "memory_bytes": sum(memory)} if memory else usage


def _stat(line: str) -> tuple[int, float]:
    """Parent, and CPU seconds with those of children that were waited for (proc_pid_stat(5))."""
    fields = line.rpartition(")")[2].split()  # a name may hold anything
    return int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _memory(process: Path) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in (process / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    return None
