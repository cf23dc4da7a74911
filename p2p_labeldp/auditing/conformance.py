"""Does what runs have the law it claims? Many checks, one verdict, one threshold.

The mechanism is Algorithm 2 of Esfandiari et al. (2021) with K-ary flips: every member of a cluster of s flips its
label once with probability f, then each report is the flipped label of a member drawn uniformly, the reporter included.
Every check compares a feature of the rounds with its exact law under that definition; none knows a defect:

    ones_at_zero, ones_at_size, ones_between   T against its law, where nobody, everybody, some hold the label
    ones_given_flips                           T against Bin(s, m / s), m the ones among the flipped bits
    serial_ones                                T of a round against T of the round before
    flip_rate                                  flips against f: in all, for each true label, for each member
    lies                                       K > 2: which other label a flip gives
    mate_uniformity                            draws over the roster, over distances to the reporter, for each member
    self_picks                                 draws of oneself against 1 / s
    distinct_mates                             how many different members were drawn, against the occupancy law
    joint                                      sum (b_i - m / s) y_i: is one's own bit in one's own report?
    one_flip_for_all                           every asker of a member reports the same bit, the flipped one
    shared_coins                               any two members that draw, flip or report alike round after round
    repeated_rounds                            any two rounds in which the same members draw alike
    serial_mates, serial_flips                 neighbours on the roster, next clusters, next rounds
    flip_apart_from_mate                       draws of those who flipped

Which of them run depends on what was seen. Each p-value is valid at any number of rounds (p_values.py), so by the union
bound a healthy mechanism fails the verdict with probability at most SIGNIFICANCE, however the checks depend on each
other.

Rounds after which each of these is caught at f = .1, found by simulation (all of 100 seeds, of 30 in the first line and
the last column) and kept by tests/auditing/test_broken_mechanisms.py; rounds shown whole, or T alone where k = 0:

    defect                                           s = 16    s = 100    T alone, s = 100
    flip 5 % too small                               25,000      5,000               8,000
    oneself excluded from the draw                       40         40      can't be seen
    a fresh flip for each asker                           2          2               1,000
    a permutation instead of draws                        3          4               1,000
    biased index: one member drawn twice as often       300        500                   -
    two members that share a seed                        12         10                   -

The first line is the number of flips that counts: about 40,000 / f labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from p2p_labeldp.auditing import checked, checks, p_values
from p2p_labeldp.auditing.observed import OnesSample, Rounds
from p2p_labeldp.errors import ConfigurationError

SIGNIFICANCE = 1e-9
"""Probability that a healthy mechanism fails: a thousand healthy runs all pass but for a chance of one in a million."""


class Verdict(StrEnum):
    """What follows from the p-values."""

    PASS = "pass"  # noqa: S105  a verdict, no password
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """The p-values of the checks that could run, and what they amount to.

    Args:
        p_values: Name of a check to its p-value; 0 is an observation the mechanism can't produce.
        rounds: Clusters' rounds that were looked at; a verdict says no more than they can show.
        significance: Probability that a healthy mechanism fails.
    """

    p_values: dict[str, float]
    rounds: int
    significance: float = SIGNIFICANCE

    @property
    def threshold(self) -> float:
        """The one threshold: a p-value below it fails (Bonferroni)."""
        return self.significance / len(self.p_values)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks below the threshold, the worst first."""
        below = [name for name, p in self.p_values.items() if p < self.threshold]
        return tuple(sorted(below, key=self.p_values.__getitem__))

    @property
    def verdict(self) -> Verdict:
        """``fail`` if any check did."""
        return Verdict.FAIL if self.failed else Verdict.PASS

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "conformance": dict(self.p_values),
            "threshold": self.threshold,
            "failed": list(self.failed),
            "rounds": self.rounds,
            "verdict": self.verdict.value,
        }


def conformance(
    *observed: Rounds | OnesSample,
    flip_probability: float | Mapping[int, float],
    significance: float = SIGNIFICANCE,
) -> Conformance:
    """Compares rounds, of clusters of one or several sizes, with the law of the mechanism.

    Args:
        *observed: Whole rounds, values of T, or both. They must be independent of each other.
        flip_probability: The f that is claimed; by cluster size, if a plan gives each size its own.
        significance: Probability that a healthy mechanism fails.

    Raises:
        ConfigurationError: Nothing observed that any check could look at, or a number out of range.
    """
    rounds = [part for part in observed if isinstance(part, Rounds)]
    samples = [part for part in observed if isinstance(part, OnesSample)]
    checked.real("significance", significance, "(0, 1)", least=math.nextafter(0.0, 1.0), most=math.nextafter(1.0, 0.0))
    classes = max((part.classes for part in rounds), default=2)
    flips = checks.Flips(flip_probability, {part.cluster_size for part in observed}, classes)
    found = checks.Findings()
    checks.check_ones(found, rounds, samples, flips)
    checks.check_flips(found, rounds, flips)
    checks.check_self_picks(found, rounds)
    for part in rounds:
        checks.check_mates(found, part)
        checks.check_reports(found, part)
        checks.check_coins(found, part, flips.of(part.cluster_size))
    if not found.by_name:
        raise ConfigurationError("no check can look at so little; show mates, or labels and reports", field="observed")
    combined = {name: p_values.bonferroni(found.by_name[name]) for name in sorted(found.by_name)}
    seen = sum(part.shape[0] for part in rounds) + sum(sample.counts.size for sample in samples)
    return Conformance(p_values=combined, rounds=seen, significance=significance)
