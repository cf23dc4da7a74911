"""How long an audit of the population engine takes, and how much of it is the audit's own.

Claim: one million audit rounds at s = 100, through the engine's words and its flips and draws, bound and verdict with
whole rounds shown included, take less than 5 s of CPU; the audit itself less than 1 s of them.

    python benchmarks/audit_speed.py [--trials 1000000] [--sizes 10 100 1000]

CPU time of one process; "engine" is the same rounds drawn again without an audit.
"""

from __future__ import annotations

import argparse
import time

from p2p_labeldp.auditing.audit import SHOWN_LABELS, audit, nobody_or_everybody
from p2p_labeldp.engine_source import PopulationSource

FLIP = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1000])
    given = parser.parse_args()
    print(f"{given.trials:,} rounds, flip {FLIP}, CPU seconds")
    print(f"{'s':>6} {'audit':>8} {'engine':>8} {'audit alone':>12}  epsilon_lower  verdict")
    for size in given.sizes:
        engine = PopulationSource(cluster_size=size, flip_probability=FLIP, seed=1, first_round=1)
        start = time.process_time()
        result = audit(
            engine.draw_ones,
            cluster_size=size,
            flip_probability=FLIP,
            trials=given.trials,
            draw_rounds=engine.draw_rounds,
        )
        audited = time.process_time()
        engine.draw_ones(ones=0, rounds=given.trials - given.trials // 2)
        engine.draw_ones(ones=1, rounds=given.trials // 2)
        engine.draw_rounds(labels=nobody_or_everybody(SHOWN_LABELS // size, size))
        total, bare = audited - start, time.process_time() - audited
        print(
            f"{size:6d} {total:8.2f} {bare:8.2f} {total - bare:12.2f}  "
            f"{result.bound.epsilon_lower:13.4f}  {result.verdict}"
        )


if __name__ == "__main__":
    main()
