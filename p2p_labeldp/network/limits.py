"""What this machine, or the container this process is in, has to give: memory, processes, descriptors, cores, a clock.

Read from Linux' own files. A limit of a container stands in its control group, version 2 or 1, or in any group above;
what is left of it is the limit less what is used there. ``root`` stands for ``/`` and is another directory in tests.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from p2p_labeldp.network import addresses

_TIME_ERROR, _TIMEX_BYTES, _MAXERROR_AT = 5, 256, 24
_V1_UNLIMITED = 1 << 60  # version 1 says "no limit" with a number near 2^63


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What there is. None where nothing says so.

    Args:
        memory: Bytes that can still be used.
        memory_of: What sets it: ``machine``, or the file of a control group.
        processes: Processes and threads that can still be started.
        processes_of: What sets it.
        descriptors: Open files of one process, at the hard limit.
        addresses: Loopback addresses that one run can claim.
        cores: That this process may run on, fractions of a quota included.
        clock_step_seconds: Resolution of the monotonic clock.
        clock_error_seconds: Greatest error of the wall clock by the kernel's reckoning; None if nothing sets it.
    """

    memory: int | None
    memory_of: str
    processes: int | None
    processes_of: str
    descriptors: int
    addresses: int
    cores: float
    clock_step_seconds: float
    clock_error_seconds: float | None


def read(root: Path = Path("/")) -> Limits:
    """Reads them, now."""
    memory = [(_available(root), "machine"), *_memory_of_groups(root)]
    processes = [(_processes(root), "machine"), *_processes_of_groups(root)]
    least, of = min(((n, of) for n, of in memory if n is not None), default=(None, "unknown"))
    fewest, fewest_of = min(((n, of) for n, of in processes if n is not None), default=(None, "unknown"))
    return Limits(
        memory=least,
        memory_of=of,
        processes=fewest,
        processes_of=fewest_of,
        descriptors=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        addresses=_addresses(),
        cores=_cores(root),
        clock_step_seconds=time.get_clock_info("monotonic").resolution,
        clock_error_seconds=_clock_error(),
    )


def _number(file: Path) -> int | None:
    """The number in a file; None if there is no file, or it says there is no limit."""
    try:
        text = file.read_text().split()[0]
    except (OSError, IndexError):
        return None
    return None if text == "max" or not text.isdigit() or int(text) >= _V1_UNLIMITED else int(text)


def _available(root: Path) -> int | None:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", (root / "proc/meminfo").read_text(), re.M)
    except OSError:
        return None
    return None if found is None else 1024 * int(found[1])


def _processes(root: Path) -> int | None:
    """Less those that run. ``RLIMIT_NPROC`` counts those of a user, and binds everybody but root."""
    kernel = root / "proc/sys/kernel"
    try:
        running = int((root / "proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, IndexError, ValueError):
        running = 0
    left = [n - running for n in (_number(kernel / "pid_max"), _number(kernel / "threads-max")) if n is not None]
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if os.geteuid() != 0 and soft != resource.RLIM_INFINITY:
        left.append(soft - _threads_of(root, os.getuid()))
    return max(min(left), 0) if left else None


def _threads_of(root: Path, uid: int) -> int:
    count = 0
    for entry in (root / "proc").iterdir():
        try:
            status = (entry / "status").read_text() if entry.name.isdigit() else ""
        except OSError:  # it ended
            continue
        if re.search(rf"^Uid:\t{uid}\b", status, re.M):
            count += int((re.search(r"^Threads:\t(\d+)", status, re.M) or [0, 0])[1])
    return count


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The directories of this process' control groups with a controller, innermost first, the hierarchy's root last."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            tops = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif controller in controllers.split(","):
            tops = [root / "sys/fs/cgroup" / controller, root / "sys/fs/cgroup" / controllers]
        else:
            continue
        for top in tops:
            inner = Path(path.lstrip("/"))
            # In a container the path is often the host's, and the group itself is mounted at the top.
            yield from (top / part for part in (inner, *inner.parents) if (top / part).is_dir())


def _memory_of_groups(root: Path) -> list[tuple[int, str]]:
    found = []
    for group in dict.fromkeys(_groups(root, "memory")):
        for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            if (most := _number(group / limit)) is not None:
                kept = (_number(group / used) or 0) - _reclaimable(group)
                found.append((max(most - kept, 0), str(group / limit)))
    return found


def _reclaimable(group: Path) -> int:
    """Pages of files that nobody has looked at lately: used by the group's account, and free when needed."""
    try:
        text = (group / "memory.stat").read_text()
    except OSError:
        return 0
    found = re.search(r"^total_inactive_file (\d+)", text, re.M) or re.search(r"^inactive_file (\d+)", text, re.M)
    return 0 if found is None else int(found[1])


def _processes_of_groups(root: Path) -> list[tuple[int, str]]:
    return [
        (max(most - (_number(group / "pids.current") or 0), 0), str(group / "pids.max"))
        for group in dict.fromkeys(_groups(root, "pids"))
        if (most := _number(group / "pids.max")) is not None
    ]


def _cores(root: Path) -> float:
    cores = float(len(os.sched_getaffinity(0)))
    for group in _groups(root, "cpu"):
        try:
            quota, period = (group / "cpu.max").read_text().split()[:2]
        except (OSError, ValueError):
            given, of = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
            if given and of:  # -1, which is no number here, says there is none
                cores = min(cores, given / of)
        else:
            if quota != "max":
                cores = min(cores, int(quota) / int(period))
    return cores


def _addresses() -> int:
    try:
        block = addresses.claim(1)
    except OSError:
        return 0
    with block.claim:
        return addresses.PEERS_PER_BLOCK if block.octet is not None else addresses.PORTS_IN_RANGE


def _clock_error() -> float | None:
    """By ``adjtimex``, which changes nothing when asked for nothing."""
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        state = ctypes.CDLL(None).adjtimex(timex)
    except (OSError, AttributeError):
        return None
    if state in (-1, _TIME_ERROR):
        return None
    return ctypes.c_long.from_buffer(timex, _MAXERROR_AT).value / 1e6
