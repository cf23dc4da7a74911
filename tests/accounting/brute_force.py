"""Oracles written from the definitions alone: every flip and draw of a small cluster, one by one, in rationals."""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations_with_replacement, product

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


def k_class_worst(num_classes: int, size: int, flip: Fraction, exp_epsilon: Fraction) -> Fraction:
    """K classes: the worst histogram of the others, victim label 0 against 1, by the law of the reports' histogram."""
    other = flip / (num_classes - 1)
    channel = [[1 - flip if i == j else other for j in range(num_classes)] for i in range(num_classes)]
    worst_value = Fraction(0)
    for others in combinations_with_replacement(range(num_classes), size - 1):
        pair = []
        for victim in (0, 1):
            histograms: Law = {(0,) * num_classes: Fraction(1)}
            for label in (victim, *others):
                histograms = _add_one(histograms, channel[label])
            reported: Law = defaultdict(Fraction)
            for histogram, probability in histograms.items():
                law: Law = {(0,) * num_classes: probability}
                for _ in range(size):
                    law = _add_one(law, [Fraction(count, size) for count in histogram])
                for outcome, mass in law.items():
                    reported[outcome] += mass
            pair.append(reported)
        worst_value = max(worst_value, divergence(*pair, exp_epsilon), divergence(*reversed(pair), exp_epsilon))
    return worst_value


def _add_one(histograms: Law, probabilities: list[Fraction]) -> Law:
    grown: Law = defaultdict(Fraction)
    for histogram, mass in histograms.items():
        for label, probability in enumerate(probabilities):
            if probability:
                one_more = tuple(count + (i == label) for i, count in enumerate(histogram))
                grown[one_more] += mass * probability
    return grown


def k_class_flips(
    labels: Iterable[int], flip: Fraction, num_classes: int
) -> Iterable[tuple[tuple[int, ...], Fraction]]:
    """Every vector of flipped labels with its probability."""
    labels = tuple(labels)
    for flipped in product(range(num_classes), repeat=len(labels)):
        probability = Fraction(1)
        for true, told in zip(labels, flipped, strict=True):
            probability *= 1 - flip if true == told else flip / (num_classes - 1)
        yield flipped, probability


def roster_view(
    labels: tuple[int, ...], flip: Fraction, num_classes: int, *, size: int, holding: int, colluders: int = 0
) -> Law:
    """What leaves a roster of which the first ``len(labels)`` members answer, by enumerating all flips and all draws.

    The last ``colluders`` of those who answer tell the learner their flipped label, whom they asked, what they hold,
    and who asked them. Who holds nothing is seen; with fewer than ``holding`` who hold an answer nothing leaves but
    what colluders know.
    """
    law: Law = defaultdict(Fraction)
    pool = len(labels)
    mates = range(pool - colluders, pool)
    for flipped, probability in k_class_flips(labels, flip, num_classes):
        for draws in product(range(size), repeat=size):
            held = [flipped[mate] if mate < pool else None for mate in draws]
            seen: object = None
            if sum(label is not None for label in held) >= holding:
                seen = tuple((label, mate if mate in mates else None) for label, mate in zip(held, draws, strict=True))
            known = tuple((flipped[mate], draws[mate], held[mate]) for mate in mates)
            asked = tuple(i for i, mate in enumerate(draws) if mate in mates)
            law[seen, known, asked] += probability / Fraction(size) ** size
    return law


def coalition_view(
    victim: int, honest: tuple[int, ...], colluders: tuple[int, ...], flip: Fraction, query_logs: bool
) -> Law:
    """Everything the learner with the colluders sees, by enumerating all flips and all draws.

    Members: 0 is the victim, then the other honest ones, then the colluders, whose flipped bits, draws and (with query
    logs) askers the learner knows. Everybody's report is the box it was given.
    """
    labels = (victim, *honest, *colluders)
    size, first = len(labels), 1 + len(honest)
    law: Law = defaultdict(Fraction)
    for flipped, probability in flips(labels, flip):
        for draws in product(range(size), repeat=size):
            seen = tuple((mate, flipped[mate]) for mate in draws[first:])
            reports = tuple((flipped[mate], mate if query_logs and mate >= first else None) for mate in draws[:first])
            law[flipped[first:], seen, reports] += probability / size**size
    return law
