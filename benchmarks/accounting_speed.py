"""How long the accountant takes, beside dp-accounting's generic privacy loss distribution for one label count.

    python benchmarks/accounting_speed.py [--long]

CPU seconds of one process. The generic distribution is given the two laws of the end count k = 0 only, and a grid of
1e-4; ours scans or bounds all counts and both directions and has no grid.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from p2p_labeldp.accounting import composition, planning, resampling


def timed(question: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[Any, float]:
    start = time.process_time()
    answer = question(*arguments, **named)
    return answer, time.process_time() - start


def generic_epsilon(size: int, flip: float) -> float:
    losses = composition.loss_distribution(cluster_size=size, flip_probability=flip, ones=0)
    return float(losses.get_epsilon_for_delta(1 / size**2))


def main(long: bool) -> None:
    generic_epsilon(2, 0.25)  # the import is not what is measured
    print("eps(1/s^2), all label counts, both directions")
    print(f"{'s':>9} {'f':>6} {'eps':>12} {'seconds':>9}   {'one count, generic: eps':>24} {'seconds':>9}")
    for size in (100, 1000, 10**4, *((10**5, 10**6) if long else ())):
        for flip in (0.49, 0.25, 0.1, 0.01):
            ours, seconds = timed(resampling.epsilon, cluster_size=size, flip_probability=flip, delta=1 / size**2)
            row = f"{size:>9} {flip:>6} {ours:>12.8f} {seconds:>9.3f}"
            if size <= 10**4:
                generic, generic_seconds = timed(generic_epsilon, size, flip)
                row += f"   {generic:>24.8f} {generic_seconds:>9.3f}"
            print(row, flush=True)
    print("\nrosters, eps 1, tolerated loss 0.05: seconds to plan, and for a peer to check")
    print(f"{'s':>9} {'flip':>10} {'plan':>9} {'fits':>9} {'profile':>9}")
    for size in (20, 50, 100, 190, *((1000,) if long else ())):
        plan, planned = timed(planning.plan_roster, size, 1.0, 0.05)
        question = (size, plan.holding_minimum, plan.flip_probability, 1.0)
        planning._roster.cache_clear()  # a peer begins with nothing
        _, fits = timed(planning.roster_fits, *question, 1 / size**2)
        planning._roster.cache_clear()
        _, profiled = timed(planning.roster_profile, *question)
        print(f"{size:>9} {plan.flip_probability:>10} {planned:>9.3f} {fits:>9.3f} {profiled:>9.3f}", flush=True)


if __name__ == "__main__":
    main("--long" in sys.argv[1:])
