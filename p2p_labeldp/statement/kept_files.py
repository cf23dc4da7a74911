"""The directory of a run, held against its statement: configuration, result, facts and reports."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from p2p_labeldp import central, results
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Outcome
from p2p_labeldp.results import Result
from p2p_labeldp.statement import happened, reading
from p2p_labeldp.statement.checks import Check, failed, number_of, passed, unchecked
from p2p_labeldp.statement.content import MAX_BYTES, Engine, Statement
from p2p_labeldp.statement.happened import Happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is in the directory beside the statement.

    Args:
        config: The bytes of ``config.json``.
        result: The result.
        facts: What the facts add up to.
        reports: Cluster and label of each row of ``noisy.csv``.
    """

    config: bytes
    result: Result
    facts: Happened
    reports: list[tuple[int, int]]


def read(directory: Path) -> Kept:
    """Reads a directory that ``run --out`` or ``learner --out`` kept.

    Raises:
        ConfigurationError: It holds no whole run.
    """
    try:
        config = reading.content_of(directory / "config.json", longest=MAX_BYTES)
        result = results.from_json(reading.content_of(directory / "result.json", longest=MAX_BYTES))
        with reading.opened(directory / "facts.jsonl") as file:
            facts = happened.read(reading.lines_of(file))
        with reading.opened(directory / "noisy.csv") as file:
            rows = csv.reader(line.decode("utf-8") for line in reading.lines_of(file))
            next(rows)
            reports = [(int(row[-2]), int(row[-1])) for row in rows]
    except (OSError, ValueError, csv.Error, IndexError, StopIteration) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc or "noisy.csv is no table"
        raise ConfigurationError(f"{str(directory)!r} holds no whole run: {reason}", field="DIR") from exc
    except ConfigurationError as exc:
        raise ConfigurationError(f"{str(directory)!r} holds no whole run: {exc}", field="DIR") from exc
    return Kept(config=config, result=result, facts=facts, reports=reports)


def checks(statement: Statement, kept: Kept) -> Iterator[Check]:
    """Each file against the statement, and the facts against each of its counts."""
    yield _configuration(statement, kept.config)
    yield _result(statement, kept.result)
    if kept.facts.digest != statement.facts:
        yield failed("facts", "facts.jsonl is not the one that the statement was made of")
    else:
        yield passed("facts", f"facts.jsonl has the digest {statement.facts[:16]}")
    yield _rosters(statement, kept.facts)
    yield _reports(statement, kept.facts)
    yield _outcomes(statement, kept.facts)
    yield _noisy(kept)
    yield _secrecy(statement, kept.facts)


def _configuration(statement: Statement, kept: bytes) -> Check:
    name = "config.json"
    if hashlib.sha256(kept).hexdigest() != statement.config_hash:
        return failed(name, "is another configuration than the statement's")
    try:
        config: Any = json.loads(kept)
        stated = {
            "mechanism": msgspec.to_builtins(statement.mechanism),
            "policy": msgspec.to_builtins(statement.policy),
        }
        differing = [section for section, values in stated.items() if config[section] != values]
        differing += ["exchange"] * (config["exchange"]["kind"] != statement.exchange)
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        return failed(name, f"is no configuration: {exc}")
    if differing:
        return failed(name, f"{', '.join(differing)} not as stated")
    return passed(name, f"is the one of the statement, {statement.config_hash[:16]}")


def _result(statement: Statement, result: Result) -> Check:
    name = "result.json"
    fields = ("peers", "outcomes", "views", "config_hash", "seed", "versions", "complete")
    differing = [field for field in fields if getattr(result, field) != getattr(statement, field)]
    shared = ("id", "size", "flip_probability", "epsilon", "delta", "local_epsilon")
    ours, theirs = (
        [[getattr(cluster, field) for field in shared] for cluster in clusters]
        for clusters in (statement.clusters, result.clusters)
    )
    if ours != theirs:
        differing.append("clusters")
    counted = "population" if result.messages is None else "virtual" if result.bytes is None else "processes"
    if counted != statement.engine and not (counted == "processes" and statement.engine is Engine.DEPLOYMENT):
        differing.append("engine")
    if differing:
        return failed(name, f"{', '.join(differing)} not as stated")
    return passed(name, f"says the same of {result.peers} peers in {number_of(len(result.clusters), 'cluster')}")


def _rosters(statement: Statement, facts: Happened) -> Check:
    name = "sizes"
    if statement.engine is Engine.POPULATION:
        if facts.signed or facts.listed:
            return failed(name, "there are rosters in the facts of a round on arrays")
        return unchecked(name, "a round on arrays has no rosters; see that no cluster has more reports than members")
    if set(facts.signed) != {cluster.id for cluster in statement.clusters} or set(facts.listed) != set(facts.signed):
        return failed(name, "the facts have rosters of other clusters than are stated")
    for cluster in statement.clusters:
        fact, members = facts.signed[cluster.id], facts.listed[cluster.id]
        stated = cluster.size, cluster.flip_probability, cluster.delta, cluster.holding_minimum
        if stated != (fact.size, fact.flip_probability, fact.delta, fact.holding_minimum):
            return failed(name, f"cluster {cluster.id}: the roster in the facts is another than is stated")
        if len(members) != cluster.size or len(set(members)) != cluster.size:
            return failed(name, f"cluster {cluster.id}: the facts list {len(set(members))} members of {cluster.size}")
    if len({member for members in facts.listed.values() for member in members}) != sum(map(len, facts.listed.values())):
        return failed(name, "a peer is listed in two clusters")
    return passed(
        name,
        f"sizes, flips, deltas and holding minima of {number_of(len(facts.signed), 'roster')} are those of the facts",
    )


def _reports(statement: Statement, facts: Happened) -> Check:
    name = "reports"
    if facts.twice:
        return failed(name, f"the facts tell twice of {facts.twice[0]}")
    counted = Counter(cluster for cluster, _ in facts.accepted.values())
    for cluster in statement.clusters:
        if counted[cluster.id] != cluster.reports or cluster.reports > cluster.size:
            text = (
                f"cluster {cluster.id}: {cluster.reports} stated of {cluster.size} members, {counted[cluster.id]} told"
            )
            return failed(name, text)
    if not statement.reports == len(facts.accepted) == sum(cluster.reports for cluster in statement.clusters):
        return failed(name, f"{statement.reports} stated, {len(facts.accepted)} in the facts")
    listed = {peer: cluster for cluster, peers in facts.listed.items() for peer in peers}
    for peer, (cluster_id, label) in facts.accepted.items():
        if label not in range(statement.num_classes):
            return failed(name, f"a label {label} among {statement.num_classes} classes")
        if statement.engine is not Engine.POPULATION and listed.get(peer) != cluster_id:
            return failed(name, f"a report of a peer that is not in the roster of cluster {cluster_id}")
    return passed(name, f"{statement.reports}, each told once, of members of their clusters")


def _outcomes(statement: Statement, facts: Happened) -> Check:
    name, stated = "outcomes", statement.outcomes
    if statement.engine is Engine.DEPLOYMENT:  # it knows who reported, and of nobody else why not
        told = Counter({Outcome.REPORTED.value: len(facts.accepted)})
        told[Outcome.UNREACHABLE.value] = sum(map(len, facts.listed.values())) - len(facts.accepted)
    else:
        told = facts.outcomes.copy()
        told[Outcome.FAILED.value] += statement.peers - sum(facts.outcomes.values())
    if (
        stated != {outcome: count for outcome, count in told.items() if count}
        or sum(stated.values()) != statement.peers
    ):
        return failed(name, "are not those of the facts")
    return passed(name, ", ".join(f"{count} {outcome}" for outcome, count in stated.items()) or "nobody took part")


def _noisy(kept: Kept) -> Check:
    told = [kept.facts.accepted[peer] for peer in sorted(kept.facts.accepted, key=lambda peer: (str(type(peer)), peer))]
    if told != kept.reports:
        return failed("noisy.csv", "clusters and labels are not those of the facts")
    return passed("noisy.csv", "clusters and labels are those of the facts; features are held against nothing")


def _secrecy(statement: Statement, facts: Happened) -> Check:
    name = "who asked whom"
    if statement.mechanism.kind != central.RESAMPLING:
        if facts.asks:
            return failed(name, "is told of a round in which nobody asks")
        return passed(name, "nobody asked anybody")
    if statement.seed is not None:
        return passed(name, f"a study: whoever knows the seed {statement.seed} knows this and every flip")
    if facts.asks:
        return failed(name, "is told in the facts of a run without a seed; with it only the local epsilon holds")
    return passed(name, "is not kept")
