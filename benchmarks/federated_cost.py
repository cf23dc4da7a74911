"""What privacy costs a client of the MNIST network: its step with and without, for several numbers of own images.

Without privacy a client takes its gradient; with it, the client clips and draws PrivUnit2 (eps1 = 500) times ScalarDP
(eps2 = 10) besides, every entry of 3,274,634 exactly. That draw costs the same whatever the client has, and no exact
draw can cost less than its d Gaussians, so the floor of the ratio is 1 + (d Gaussians) / (gradient), and the ratio
falls with the images a client has: 3.6 for one, 2.8 for 10, 1.9 for 30, 1.3 for 100, 1.13 for 200, where the floor is
3.0, 2.2, 1.6, 1.2 and 1.09.

Claim: with at least 100 local images the private step costs at most 1.5 times the other one. With one to 30 it does
not, and with one not even the floor does.

    OPENBLAS_NUM_THREADS=1 python benchmarks/federated_cost.py [--images 1 10 30 100 200] [--turns 5]

CPU time of one thread, the parts alternating in one process; medians of the turns. Needs JAX (extra ``jax``). Exits
with 1 if the claim fails.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from p2p_labeldp.learning.networks import MNIST
from p2p_labeldp.mechanisms.separated import Separated

MOST, WITH_IMAGES = 1.5, 100


def cpu_milliseconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return 1e3 * (time.process_time() - before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[1, 10, 30, 100, 200])
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    rng, d, holds = np.random.default_rng(1), MNIST.dimension, True
    parameters = MNIST.initial(0)
    mechanism = Separated.calibrated(dimension=d, epsilon_direction=500.0, epsilon_magnitude=10.0, max_radius=1.0)
    print(f"one client of the MNIST network, d = {d:,}; ms of CPU, medians of {given.turns} turns")
    print(f"{'images':>7} {'gradient':>9} {'private':>9} {'ratio':>6} {'its floor':>10}")
    for count in given.images:
        pixels, labels = rng.random((1, count, MNIST.inputs), dtype=np.float32), rng.integers(10, size=(1, count))

        def gradient(pixels=pixels, labels=labels):
            (row,) = MNIST.gradients(parameters, pixels, labels)
            return row

        gradient()  # compiles
        turns = []
        for _ in range(given.turns):
            plain = cpu_milliseconds(gradient)
            private = cpu_milliseconds(lambda gradient=gradient: mechanism.privatise(gradient(), rng))
            gaussians = cpu_milliseconds(lambda: rng.standard_normal(d))
            turns.append((plain, private, private / plain, 1 + gaussians / plain))
        plain, private, ratio, floor = (statistics.median(column) for column in zip(*turns, strict=True))
        print(f"{count:7d} {plain:9.1f} {private:9.1f} {ratio:6.2f} {floor:10.2f}", flush=True)
        holds = holds and (count < WITH_IMAGES or ratio <= MOST)
    print("the claim holds" if holds else "THE CLAIM FAILS")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
