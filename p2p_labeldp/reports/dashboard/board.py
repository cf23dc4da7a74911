"""What the dashboard shows, as a function of the facts. No I/O; time comes in.

The board is a set of cells: small values by name, such as ``phase``, ``cluster/3`` or ``peer/17``. A cell carries the
version of its last change, so what a viewer lacks follows from the version that it has: everything for one that comes,
what changed meanwhile for one that lags or comes back. Nothing is queued for anybody, however slow.

What may be shown depends on the kind of the round. Who asked whom joins a report to the label's owner, so ``Asked`` and
``Answered`` are read of a study alone, whose seed tells as much. No label is ever read, and of a message that was
refused no word: strangers, or the asker's name, may stand in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from p2p_labeldp.facts import (
    Accepted,
    Asked,
    Committed,
    Ended,
    Exchanged,
    Fact,
    Gathered,
    Held,
    Joined,
    Listed,
    Listening,
    Met,
    Name,
    Opened,
    Outcome,
    Ready,
    Rejected,
    Reported,
    Signed,
    Traffic,
)
from p2p_labeldp.protocol.messages import Digest, Push

LEARNER = "learner"
GOSSIP = (Digest.__name__, Push.__name__)
TIMED = ("join", "exchange", "closing", "report")
BINS = 96
"""Of the time axis, up to the last deadline; one more takes what comes after it."""
MOST_DRAWN = 2000
"""Peers of a graph: a browser draws so many in a fraction of a second."""

STEPS: dict[type[Fact], str] = {
    Listening: "started",
    Joined: "joined",
    Listed: "listed",
    Committed: "committed",
    Asked: "asked",
    Held: "holding",
    Ready: "ready",
    Reported: "reported",
    Accepted: "accepted",
}
"""What a peer has done, in the order of a round."""
_BIT = {kind: 1 << number for number, kind in enumerate(STEPS)}
_BY_CLUSTER = (Joined, Committed, Asked, Held, Reported, Accepted)


class Kind(StrEnum):
    """What kind of round is watched; decides what may be shown."""

    STUDY = "study"
    """All coins are a seed's: there is nothing to protect."""
    PRIVATE = "private"
    """Peers of this machine whose coins nobody knows."""
    LEARNER = "learner"
    """The learner of a deployment, which sees its own part only."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What a viewer of an older version lacks. ``now`` is seconds since the opening, None before; ``fresh`` tells that
    it is everything."""

    version: int
    fresh: bool
    now: float | None
    cells: Mapping[str, Any]


class Board:
    """The cells of one round. ``now`` is seconds of any one monotonic clock.

    Args:
        title: Of the round.
        kind: Decides what may be shown.
    """

    def __init__(self, *, title: str, kind: Kind) -> None:
        self.version = 0
        self._kind = kind
        self._cells: dict[str, Any] = {}
        self._changed: dict[str, int] = {}  # version of each cell's last change, the oldest first
        self._opening: float | None = None
        self._ends: tuple[float, ...] = ()
        self._last_phase: str | None = None  # once phases no longer follow the clock
        self._cluster_of: dict[Name, int] = {}
        self._done: dict[Name, int] = {}  # bits of ``STEPS``: a peer that restarts does some of them again
        self._ended: set[Name] = set()
        self._records: dict[int, list[int]] = {}  # what each peer held in time, by cluster
        self._met: dict[Name, int] = {}  # what each peer holds
        self._known, self._pairs = 0, 0  # records held by all; what they are when everybody has them
        self._set("round", {"title": title, "kind": kind.value, "peers": 0, "clusters": 0, "graph": False})
        self._set("phase", {"name": "starting", "ends": ()})
        self._set("steps", dict.fromkeys(STEPS.values(), 0))
        self._set("outcomes", {})
        self._set("reasons", {})
        self._set("traffic", {"requests": 0, "bytes": 0, "refused": 0, "messages": 0, "sent": 0})

    # -- what is told ----------------------------------------------------------------------------------------------

    def playing(self, *, peers: int, clusters: int, ends: tuple[float, ...]) -> None:
        """A round is about to begin.

        Args:
            peers: How many take part; 0 if nobody knows yet.
            clusters: Of the clustering.
            ends: Of the timed phases, in seconds after the opening.
        """
        graph = self._kind is Kind.STUDY and 0 < peers <= MOST_DRAWN
        self._set("round", {**self._cells["round"], "peers": peers, "clusters": clusters, "graph": graph})
        self._plan(ends)

    def hear(self, fact: Fact, now: float) -> None:
        """Something happened."""
        if isinstance(fact, Opened) or (fact.peer == LEARNER and fact.at > 0 and self._opening is None):
            self._opening = now - fact.at
        match fact:
            case Opened():
                if fact.deadlines:
                    self._plan(fact.deadlines)
            case Met():
                self._known += fact.records - self._met.get(fact.peer, 1)
                self._met[fact.peer] = fact.records
                self._converge(fact.at)
            case Gathered():
                self._records.setdefault(fact.cluster, []).append(fact.records)
                self._count_records(fact.cluster)
            case Signed():
                row = self._cluster(fact.cluster)
                row.update(size=fact.size, flip=fact.flip_probability, delta=fact.delta, needed=fact.holding_minimum)
                self._count_records(fact.cluster)
            case Ended():
                self._end(fact)
            case Exchanged():
                self._bump("traffic", requests=1, bytes=fact.sent + fact.received)
                if fact.about in GOSSIP:
                    self._mark(fact.at, "gossip", fact.sent + fact.received)
            case Rejected():
                self._bump("traffic", refused=1)
            case Traffic():
                self._bump("traffic", messages=fact.messages, sent=fact.bytes)
            case _ if type(fact) in STEPS and (self._kind is Kind.STUDY or not isinstance(fact, Asked)):
                self._step(fact)

    def know(self, records: int) -> None:
        """How many peers a learner of a deployment knows of."""
        if records != self._cells.get("known"):
            self._set("known", records)

    def take(self, usage: Mapping[str, float]) -> None:
        """What the processes take now, and of memory the most so far."""
        most = max(usage.get("memory_bytes", 0.0), self._cells.get("resources", {}).get("memory_most", 0.0))
        self._set("resources", {**usage, "memory_most": most})

    def training(self) -> None:
        """The round is over; a model is fitted."""
        self._stay("training")

    def finish(self, result: Mapping[str, Any]) -> None:
        """All is done; ``result`` stays on the page. Its ``outcomes`` include who died without a word."""
        self._set("result", dict(result))
        self._set("outcomes", result.get("outcomes", self._cells["outcomes"]))
        self._stay("over")

    def break_off(self) -> None:
        """The command ends without a result."""
        if self._last_phase != "over":
            self._stay("broken off")

    # -- what is shown ---------------------------------------------------------------------------------------------

    def since(self, version: int, now: float) -> Changes:
        """What a viewer lacks that has ``version``; everything if that is 0. The cells are the board's own."""
        self._follow(now)
        cells = {}
        for name in reversed(self._changed):
            if self._changed[name] <= version:
                break
            cells[name] = self._cells[name]
        elapsed = None if self._opening is None else max(now - self._opening, 0.0)
        return Changes(version=self.version, fresh=version == 0, now=elapsed, cells=cells)

    # -- cells -----------------------------------------------------------------------------------------------------

    def _set(self, name: str, value: Any) -> None:
        self._cells[name] = value
        self._touch(name)

    def _touch(self, name: str) -> None:
        self.version += 1
        self._changed.pop(name, None)  # to the end of the order
        self._changed[name] = self.version

    def _cell(self, name: str, make: Callable[[], Any]) -> Any:
        """A cell that is about to change."""
        if name not in self._cells:
            self._cells[name] = make()
        self._touch(name)
        return self._cells[name]

    def _bump(self, name: str, **by: int) -> None:
        cell = self._cell(name, dict)
        for key, amount in by.items():
            cell[key] = cell.get(key, 0) + amount

    def _cluster(self, cluster: int) -> dict[str, Any]:
        row: dict[str, Any] = self._cell(f"cluster/{cluster}", dict)
        return row

    # -- phases ----------------------------------------------------------------------------------------------------

    def _plan(self, ends: tuple[float, ...]) -> None:
        self._ends = tuple(ends)
        self._set("phase", {**self._cells["phase"], "ends": self._ends})

    def _stay(self, name: str) -> None:
        self._last_phase = name
        self._set("phase", {"name": name, "ends": self._ends})

    def _follow(self, now: float) -> None:
        """Phases end by the clock; the last of them also when it is over for everybody, which is told."""
        if self._last_phase is not None or self._opening is None:
            return
        since = now - self._opening
        name = next((name for name, end in zip(TIMED, self._ends, strict=False) if since < end), TIMED[-1])
        if name != self._cells["phase"]["name"]:
            self._set("phase", {"name": name, "ends": self._ends})

    # -- peers -----------------------------------------------------------------------------------------------------

    def _step(self, fact: Fact) -> None:
        done, bit = self._done.get(fact.peer, 0), _BIT[type(fact)]
        if done & bit:
            return
        self._done[fact.peer] = done | bit
        step = STEPS[type(fact)]
        self._bump("steps", **{step: 1})
        if isinstance(fact, Joined | Listed | Committed | Accepted):
            self._cluster_of[fact.peer] = fact.cluster
        if isinstance(fact, _BY_CLUSTER) and fact.peer in self._cluster_of:
            row = self._cluster(self._cluster_of[fact.peer])
            row[step] = row.get(step, 0) + 1
        if isinstance(fact, Joined):
            self._known += 1  # itself
            self._pairs += 2 * row[step] - 1
            self._converge(fact.at)
        if isinstance(fact, Held | Accepted):
            self._mark(fact.at, "answers" if isinstance(fact, Held) else "reports", 1)
        if self._cells["round"]["graph"] and isinstance(fact.peer, int):
            self._draw(fact.peer, step, mate=fact.mate if isinstance(fact, Asked) else None)

    def _end(self, fact: Ended) -> None:
        if fact.peer in self._ended:
            return
        self._ended.add(fact.peer)
        self._bump("outcomes", **{fact.outcome.value: 1})
        if fact.reason is not None:
            self._bump("reasons", **{fact.reason.value: 1})
        if self._cells["round"]["graph"] and isinstance(fact.peer, int) and fact.outcome is not Outcome.REPORTED:
            self._draw(fact.peer, fact.outcome.value)

    def _draw(self, peer: int, step: str, *, mate: Name | None = None) -> None:
        """A node of the graph: cluster, what it did last, whom it asked, whether it was answered."""
        node = self._cell(f"peer/{peer}", lambda: [None, "", None, False])
        node[0] = self._cluster_of.get(peer)
        if step not in ("listed", "accepted") or node[1] in ("reported", ""):  # which the learner did
            node[1] = step
        if mate is not None:
            node[2] = mate
        node[3] = node[3] or step == "holding"

    # -- gossip and time -------------------------------------------------------------------------------------------

    def _converge(self, at: float) -> None:
        """Of all records that peers have to have of each other in their clusters, the share that they have."""
        share = self._known / max(self._pairs, 1)
        self._set("convergence", share)
        if (number := self._bin(at)) is not None:
            self._cell(f"time/{number}", dict)["met"] = share

    def _count_records(self, cluster: int) -> None:
        """How far gossip came: of how many members of the roster peers of the cluster had records in time."""
        row, found = self._cluster(cluster), self._records.get(cluster, ())
        if found:
            row.update(gathered=len(found), least=min(found), most=max(found))
            if "size" in row:
                row["whole"] = sum(records >= row["size"] for records in found)

    def _mark(self, at: float, what: str, amount: int) -> None:
        """On the time axis."""
        if (number := self._bin(at)) is not None:
            self._bump(f"time/{number}", **{what: amount})

    def _bin(self, at: float) -> int | None:
        return min(int(max(at, 0.0) / self._ends[-1] * BINS), BINS) if self._ends else None
