"""A thousand peer processes complete one round: how long, how much CPU, how much private memory each.

    python benchmarks/thousand_peers.py [--peers 1000]

Aimed at, on two idle cores: all report, within 90 s, below 9 MB of private memory each (VmRSS would count what a forked
process shares). The phases are set to what two cores can just carry; the defaults leave room for a busy machine.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

SETTINGS = {
    "data.name": "synthetic",
    "clusters.count": 25,
    "network.gossip_period": 3.2,
    "exchange.deadlines.join": 36,
    "exchange.deadlines.exchange": 16,
    "exchange.deadlines.closing": 16,
    "exchange.deadlines.report": 4,
}
LOOK_SECONDS = 40.0, 60.0, 76.0  # after the start: late in each phase


def private_kilobytes() -> list[int]:
    """Private memory of every process of the zygote, itself included."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if b"p2p_labeldp.network.zygote" in (entry / "cmdline").read_bytes():
                    text = (entry / "smaps_rollup").read_text()
                    found.append(sum(map(int, re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+)", text, re.M))))
            except OSError:  # it ended
                continue
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=int, default=1000)
    peers = parser.parse_args().peers
    command = [sys.executable, "-m", "p2p_labeldp", "run", "breast-cancer", "--json", "--quiet"]
    for key, value in {**SETTINGS, "data.peers": peers}.items():
        command += ["--set", f"{key}={value}"]
    seen: list[list[int]] = []
    timers = [threading.Timer(at, lambda: seen.append(private_kilobytes())) for at in LOOK_SECONDS]
    began = time.monotonic()
    for timer in timers:
        timer.daemon = True
        timer.start()
    done = subprocess.run(command, capture_output=True, check=True)
    took = time.monotonic() - began
    result = json.loads(done.stdout)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(f"{peers} peers: {result['outcomes']}, {took:.1f} s, {cpu:.0f} s of CPU, {1000 * cpu / peers:.0f} ms a peer")
    for at, sizes in zip(LOOK_SECONDS, seen, strict=False):
        if sizes:
            print(
                f"after {at:.0f} s: {len(sizes)} processes, private memory median "
                f"{statistics.median(sizes) / 1024:.1f} MiB, largest {max(sizes) / 1024:.1f} MiB"
            )
    return 0 if result["outcomes"] == {"reported": peers} else 1


if __name__ == "__main__":
    sys.exit(main())
