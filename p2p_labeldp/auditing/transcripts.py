"""Rounds as arrays from the facts of any engine.

Flipped bits are never exported, so this sees what the collector and an observer of the asks see together: who asked
whom, and which label each report carried. Conformance gets from it the bits of everybody who was asked, two askers of
one member included. True labels stand in no fact; whoever made up a study may add them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_labeldp.auditing.observed import UNSEEN, Rounds
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Asked, Committed, Fact, Joined, Name

Rosters = dict[int, list[Name]]


def rounds_of_facts(
    *runs: Iterable[Fact],
    labels: Mapping[Name, int] | Sequence[Mapping[Name, int]] | None = None,
    clusters: Mapping[Name, int] | None = None,
    classes: int = 2,
) -> list[Rounds]:
    """The rounds of one or several runs, one ``Rounds`` for each size of cluster.

    Peers are told apart by name across runs: if every run has the same rosters, two peers that share coins show.

    Args:
        *runs: The facts of a run, in any order; facts that say nothing of asks, reports and rosters are skipped.
        labels: True labels by name, if they are known: the same in every run, or a mapping for each.
        clusters: Cluster of each peer by name. Without it a roster is the peers whose facts (joined, committed,
            accepted) name its cluster, and a mate belongs where its asker does.
        classes: K.

    Raises:
        ConfigurationError: No asks and no accepted reports in any run, a mate outside its asker's cluster, or labels
            of fewer or more runs than there are.
    """
    known = [labels] * len(runs) if labels is None or isinstance(labels, Mapping) else labels
    if len(known) != len(runs):
        raise ConfigurationError(f"{len(known)} given for {len(runs)} runs", field="labels")
    seen = [_Run(run, clusters, {} if truth is None else truth) for run, truth in zip(runs, known, strict=True)]
    if not any(run.mates or run.reports for run in seen):
        raise ConfigurationError("no asks and no accepted reports among the facts", field="facts")
    alike = all(run.rosters == seen[0].rosters for run in seen)
    rows: dict[int, list[tuple[_Run, list[Name]]]] = {}
    for run in seen:
        for _, roster in sorted(run.rosters.items()):
            rows.setdefault(len(roster), []).append((run, roster))
    return [
        Rounds(
            labels=None if labels is None else _column(group, lambda run, name, _: run.labels.get(name, UNSEEN)),
            mates=_column(group, _Run.mate_position),
            reports=_column(group, lambda run, name, _: run.reports.get(name, UNSEEN)),
            clusters=len(group) // len(seen) if alike else 1,
            classes=classes,
        )
        for _, group in sorted(rows.items())
    ]


class _Run:
    """What the facts of one run say, by name."""

    def __init__(self, facts: Iterable[Fact], clusters: Mapping[Name, int] | None, labels: Mapping[Name, int]) -> None:
        self.labels = labels
        self.mates: dict[Name, Name] = {}
        self.reports: dict[Name, int] = {}
        cluster: dict[Name, int] = {}
        for fact in facts:
            if isinstance(fact, Asked):
                self.mates.setdefault(fact.peer, fact.mate)
            elif isinstance(fact, Accepted):
                self.reports.setdefault(fact.peer, fact.label)
            if isinstance(fact, Joined | Committed | Accepted):
                cluster[fact.peer] = fact.cluster
        if clusters is None:
            _spread(cluster, self.mates)
        else:
            cluster = dict(clusters)
        self.rosters: Rosters = {}
        for name in sorted(cluster, key=_order):
            self.rosters.setdefault(cluster[name], []).append(name)

    def mate_position(self, name: Name, positions: Mapping[Name, int]) -> int:
        """Where on the roster the mate of ``name`` stands."""
        if name not in self.mates:
            return UNSEEN
        mate = self.mates[name]
        if mate not in positions:
            raise ConfigurationError(f"{name} asked {mate}, who is not of its cluster", field="facts")
        return positions[mate]


def _spread(cluster: dict[Name, int], mates: Mapping[Name, Name]) -> None:
    """Peers without a cluster of their own get it from those they asked or were asked by."""
    before = -1
    while len(cluster) != before:
        before = len(cluster)
        for peer, mate in mates.items():
            if peer in cluster:
                cluster.setdefault(mate, cluster[peer])
            elif mate in cluster:
                cluster[peer] = cluster[mate]


def _order(name: Name) -> tuple[int, str]:
    """Rosters sort by ordinal, then id; a name is one or the other."""
    return (name, "") if isinstance(name, int) else (0, name)


def _column(group: Sequence[tuple[_Run, list[Name]]], value: Any) -> npt.NDArray[np.int64]:
    rows = []
    for run, roster in group:
        positions = {name: i for i, name in enumerate(roster)}
        rows.append([value(run, name, positions) for name in roster])
    return np.array(rows, dtype=np.int64)
