"""Guarantees in words for somebody who has never heard of differential privacy.

The words say what the inequality says and no more. (epsilon, delta)-label differential privacy bounds every test of one
label: if the test points at a label wrongly with probability a, it points at it rightly with probability at most
min(e^eps a + delta, 1 - e^-eps (1 - a - delta)), whatever it knows of features and of everybody else's label (Wasserman
and Zhou, arXiv 0811.2501; Kairouz, Oh and Viswanath, arXiv 1311.0776, section 2).
"""

from __future__ import annotations

import math

from p2p_labeldp.reports.table import digits_up, places_up
from p2p_labeldp.results import ViewResult

FALSE_ALARMS = 5
"""Of 100, of the test that is put in words: a common level, and guessing would be right as often."""
TEST = (
    "Take one person, and any test of that person's label by what a party sees. Let it wrongly say “yes”"
    f" {FALSE_ALARMS} times in 100 when the answer is no. The table says how often at most it rightly says “yes”"
    f" when the answer is yes. A test that sees nothing would say it {FALSE_ALARMS} times in 100, too."
)
"""What ``promise`` is about."""

WHO = {
    "learner": (
        "The learner, alone",
        "It gets one label from each participant and cannot tell whose label that is.",
    ),
    "learner+1": (
        "The learner with one other participant",
        "One participant keeps to the rules but hands the learner a record of whom it asked and who asked it.",
    ),
    "learner+all": (
        "The learner with everyone else",
        "Everyone else works with the learner, or one participant breaks the rules and asks everybody, or somebody who"
        " watches the network helps the learner. Only the random change of one's own label still protects.",
    ),
    "mates": (
        "Other participants, without the learner",
        "They pass on sealed boxes that only the learner can open.",
    ),
    "curator": (
        "The curator",
        "One party collects the true labels and has to be trusted with them.",
    ),
}
"""View of a result: who that is, and what it sees."""
CENTRAL_LEARNER = "It sees the labels after they were changed at random, and the model."
"""In place of the learner's line where nothing is exchanged."""
SHUFFLED_LEARNER = "A trusted third party mixes the labels of a cluster before the learner sees them."
"""In place of the learner's line for a trusted shuffler."""


def right_alarms(epsilon: float, delta: float, false_alarms: float) -> float:
    """The most often a test can be right that is wrong with probability ``false_alarms``; all are probabilities."""
    if math.isinf(epsilon):
        return 1.0
    rising = math.exp(min(epsilon, 700.0)) * false_alarms + delta
    falling = 1.0 - math.exp(-epsilon) * max(0.0, 1.0 - false_alarms - delta)
    return min(1.0, rising, falling)


def promise(view: ViewResult) -> str:
    """What a guarantee says of the test in ``TEST``."""
    if math.isinf(view.epsilon):
        return "No protection: this party may learn the labels."
    if view.epsilon == 0 and view.delta == 0:
        return "As long as the encryption holds, what they pass on tells them nothing about a label."
    hits = math.ceil(100 * right_alarms(view.epsilon, view.delta, FALSE_ALARMS / 100) - 1e-9)
    return f"The test rightly says “yes” at most {hits} times in 100."


def guarantee(epsilon: float, delta: float, *, against: str, neighbours: str) -> str:
    """A guarantee in one sentence: its numbers, the tables it is about, whom it holds against, and a test that is wrong
    ``FALSE_ALARMS`` times in 100."""
    if math.isinf(epsilon):
        return "none: whoever sees what is released may learn labels"
    at = "" if delta == 0 else f" at delta {digits_up(delta)} ({one_in(delta)})"
    hits = math.ceil(100 * right_alarms(epsilon, delta, FALSE_ALARMS / 100) - 1e-9)
    return (
        f"epsilon {places_up(epsilon)}{at} for tables that {neighbours}, against {against}: a test of one label that"
        f" wrongly says yes {FALSE_ALARMS} times in 100 rightly says yes at most {hits} times"
    )


def who(view: str, mechanism: str) -> tuple[str, str]:
    """Name of a party, and what it sees."""
    if view in WHO:
        name, sees = WHO[view]
    else:
        name, sees = f"The learner with {view.removeprefix('learner+')} other participants", WHO["learner+1"][1]
    if mechanism == "permute" and view == "learner":
        return name, SHUFFLED_LEARNER
    if mechanism not in ("resampling", "permute") and view.startswith("learner"):
        return name, CENTRAL_LEARNER
    return name, sees


def one_in(delta: float) -> str:
    """A small probability as one in so many, never smaller than it is."""
    return "0" if delta == 0 else f"1\N{NO-BREAK SPACE}in\N{NO-BREAK SPACE}{math.floor(1 / delta + 1e-9):,}"
