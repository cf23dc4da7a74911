"""How fast the population engine streams, beside its floor: the bare draw of the words it must draw.

Claim: at least 30 million users a second and core, in memory that does not depend on their number.

    python benchmarks/population_speed.py [--users 10000000] [--sizes 2 10 100 1000 100000]

Engine and floor alternate in one process, in CPU time, the best of several turns each, so that a busy machine slows
both. The high-water mark of the memory is the process's own; "grown" is what the largest population added to it.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from p2p_labeldp import population, randomness

TURNS = 3


def cpu_seconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def draw(users: int) -> None:
    for start in range(0, users, population.CHUNK):
        randomness.bulk_label_words(1, start, min(population.CHUNK, users - start))


def stream(users: int, size: int) -> None:
    for _ in population.count_ones(np.arange(size) % 2, 0.05, clusters=max(1, users // size), seed=1):
        pass


def high_water_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=10_000_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 10, 100, 1_000, 100_000])
    given = parser.parse_args()
    print(f"{given.users:,} users, one core, best of {TURNS} turns of CPU time")
    print(f"{'cluster size':>12} {'M users/s':>10} {'floor':>8} {'of floor':>9} {'high water':>11} {'grown':>8}")
    for size in given.sizes:
        stream(max(size, given.users // 100), size)  # warms up, and reaches the memory of a small population
        small = high_water_mib()
        engine, floor = [], []
        for _ in range(TURNS):
            engine.append(cpu_seconds(lambda size=size: stream(given.users, size)))
            floor.append(cpu_seconds(lambda: draw(given.users)))
        users = max(1, given.users // size) * size
        speed, bare = users / min(engine) / 1e6, given.users / min(floor) / 1e6
        peak = high_water_mib()
        print(f"{size:12,} {speed:10.1f} {bare:8.1f} {speed / bare:8.0%} {peak:7.1f} MiB {peak - small:4.1f} MiB")


if __name__ == "__main__":
    main()
