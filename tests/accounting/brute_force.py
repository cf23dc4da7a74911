"""Oracles written from the definitions alone: every flip and draw of a small cluster, one by one, in rationals."""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from itertools import product

Law = dict[object, Fraction]


def divergence(left: Law, right: Law, exp_epsilon: Fraction) -> Fraction:
    """Hockey-stick: sum over outcomes of [left - e^eps right]_+."""
    return sum((max(Fraction(0), p - exp_epsilon * right.get(o, Fraction(0))) for o, p in left.items()), Fraction(0))


def flips(labels: Iterable[int], flip: Fraction) -> Iterable[tuple[tuple[int, ...], Fraction]]:
    """Every vector of flipped binary labels with its probability."""
    labels = tuple(labels)
    for flipped in product((0, 1), repeat=len(labels)):
        probability = Fraction(1)
        for true, told in zip(labels, flipped, strict=True):
            probability *= flip if true != told else 1 - flip
        yield flipped, probability


def reports_by_reporter(labels: Iterable[int], flip: Fraction, reports: int) -> Law:
    """The learner's whole view, who reported what, by enumerating flips and draws."""
    labels = tuple(labels)
    law: Law = defaultdict(Fraction)
    for flipped, probability in flips(labels, flip):
        for draws in product(range(len(labels)), repeat=reports):
            law[tuple(flipped[mate] for mate in draws)] += probability / Fraction(len(labels)) ** reports
    return law


def worst(laws: dict[int, tuple[Law, Law]], exp_epsilon: Fraction) -> Fraction:
    """Over the label counts k and both directions; ``laws[k]`` are the laws for victim 0 and 1."""
    return max(max(divergence(p, q, exp_epsilon), divergence(q, p, exp_epsilon)) for p, q in laws.values())
