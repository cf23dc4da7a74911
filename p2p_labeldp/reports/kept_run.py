"""A kept run as its page needs it: totals, sizes and times. No label, nobody's name and no ask gets past this file, so
that nothing behind it can show one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from p2p_labeldp import facts as fact_types
from p2p_labeldp import results
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Ended, Fact, Joined, Ready, Rejected, Reported, Signed, Tallied
from p2p_labeldp.results import Result

RESAMPLING = "resampling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Part of a round; seconds after its opening."""

    name: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """What the facts add up to.

    Args:
        phases: In their order; empty where nothing took time.
        reasons: Why peers did not report, and how many.
        holding: h of each cluster whose roster was signed, by cluster.
        refused: Messages that somebody refused.
    """

    phases: Sequence[Phase]
    reasons: Mapping[str, int]
    holding: Mapping[int, int]
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """One run.

    Args:
        name: Of its directory.
        result: Its numbers.
        config: Its configuration, section by section.
        happened: Its facts, added up.
    """

    name: str
    result: Result
    config: Mapping[str, Mapping[str, Any]]
    happened: Happened

    @property
    def mechanism(self) -> str:
        """``resampling``, ``permute`` (a trusted shuffler), or a mechanism in one place by its name."""
        kind = str(self.config["mechanism"]["kind"])
        exchange = str(self.config["exchange"]["kind"])
        return exchange if kind == RESAMPLING and exchange != "resample" else kind

    @property
    def data(self) -> str:
        """The data set, or the table by its file's name: where it lay is nobody else's concern."""
        data = self.config.get("data", {})
        if data.get("csv") is not None:
            return f"{PurePath(str(data['csv'])).name}, labels: {data.get('label')}"
        return str(data.get("name") or "not stated")

    @property
    def engine(self) -> str:
        """Who played the round; the result tells by what it counted."""
        if self.result.messages is None:
            return "arrays in one computer's memory; no messages were sent"
        return "simulated peers and network" if self.result.bytes is None else "processes that talk over a network"


def read(directory: str | Path) -> KeptRun:
    """Reads a directory that ``run --out`` or ``learner --out`` kept.

    Raises:
        ConfigurationError: It holds no whole run.
    """
    path = Path(directory)
    try:
        result = results.from_json((path / "result.json").read_bytes())
        kept = (path / "config.json").read_bytes()
        config = json.loads(kept)
        with (path / "facts.jsonl").open("rb") as lines:
            happened = add_up(fact_types.decode(line) for line in lines)
    except (OSError, ValueError) as exc:  # a path with a null character is a ValueError, too
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise ConfigurationError(f"{str(path)!r} holds no run that was kept: {reason}", field="DIR") from exc
    except ConfigurationError as exc:
        raise ConfigurationError(f"{str(path)!r} holds no whole run: {exc}", field="DIR") from exc
    if hashlib.sha256(kept).hexdigest() != result.config_hash:
        raise ConfigurationError(f"{str(path)!r} has the config.json of another run", field="DIR")
    return KeptRun(name=path.resolve().name, result=result, config=config, happened=happened)


def add_up(facts: Iterable[Fact]) -> Happened:
    """One pass over the facts. Phases are told by what everybody does at their ends, never by who asked whom.

    A learner of a deployment sees its own part only: then the time between rosters and the first report is one phase.
    """
    times: dict[type[Fact], tuple[float, float]] = {}
    reasons: Counter[str] = Counter()
    holding: dict[int, int] = {}
    refused = 0
    for fact in facts:
        match fact:
            case Ended(reason=reason) if reason is not None:
                reasons[reason.value] += 1
            case Rejected():
                refused += 1
            case Signed():
                holding[fact.cluster] = fact.holding_minimum
        if isinstance(fact, Joined | Signed | Ready | Tallied | Reported | Accepted):
            first, last = times.get(type(fact), (fact.at, fact.at))
            times[type(fact)] = min(first, fact.at), max(last, fact.at)
    return Happened(phases=_phases(times), reasons=reasons, holding=holding, refused=refused)


def _phases(times: Mapping[type[Fact], tuple[float, float]]) -> list[Phase]:
    if Signed not in times or Accepted not in times:
        return []
    signed, accepted = times[Signed][1], times[Accepted]
    if accepted[1] <= 0:  # arrays have no clock
        return []
    phases = [Phase(name="finding each other", begin=0.0, end=signed)]
    if Ready in times and Tallied in times:
        ready, tallied = times[Ready][0], times[Tallied][1]
        phases.append(Phase(name="exchange of labels", begin=signed, end=ready))
        phases.append(Phase(name="closing", begin=ready, end=tallied))
        begin = tallied
    else:
        phases.append(Phase(name="between the peers", begin=signed, end=accepted[0]))
        begin = accepted[0]
    return [*phases, Phase(name="reports", begin=begin, end=max(begin, accepted[1]))]
