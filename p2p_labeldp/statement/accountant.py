"""Every number of a statement, worked out anew from sizes, flips and terms by the same functions that a run asks.

A statement that promises less than it could is refused, too: it is not what was worked out. Numbers agree if they are
within ``TOLERANCE`` of each other, as those of two machines whose libm differs in the last digit are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import zip_longest

from p2p_labeldp import central, promise
from p2p_labeldp.accounting import planning
from p2p_labeldp.accounting.views import PERMUTE
from p2p_labeldp.config import Config
from p2p_labeldp.errors import ConfigurationError, LabelDPError
from p2p_labeldp.labels import MAX_CLASSES
from p2p_labeldp.network.study import CollectedRoster
from p2p_labeldp.results import ClusterResult, ViewResult
from p2p_labeldp.statement.checks import Check, failed, number_of, passed
from p2p_labeldp.statement.content import Engine, StatedCluster, Statement

TOLERANCE = 1e-9
MAX_CLUSTER_SIZE = 10**7
"""What the accountant is asked about, whatever a file says."""


def checks(statement: Statement) -> Iterator[Check]:
    """Sizes, deltas, holding minima, flips, epsilons and views, each as one check."""
    try:
        terms = statement.terms()
        _check_ranges(statement)
    except ConfigurationError as exc:
        yield failed("terms", str(exc))
        return
    yield passed("terms", _terms(statement))
    peer_made = statement.mechanism.kind == central.RESAMPLING
    if peer_made:
        yield _deltas(statement)
        yield _holding_minima(statement, terms)
        yield _flips(statement, terms)
    try:
        clusters, views = _worked_out(statement, terms)
    except (LabelDPError, ValueError, ArithmeticError) as exc:
        yield failed("epsilons", f"the accountant refuses what is stated: {exc}")
        return
    yield _epsilons(statement, clusters, terms, sized=peer_made)
    yield _views(statement, views)


def _terms(statement: Statement) -> str:
    mechanism = statement.mechanism
    asked = "no target"
    if mechanism.flip_probability is not None:
        asked = f"flip {mechanism.flip_probability:g} given"
    elif mechanism.target_epsilon is not None:
        asked = f"target epsilon {mechanism.target_epsilon:g}"
    return f"{mechanism.kind}, {statement.num_classes} classes, {asked}, by version {_version(statement)}"


def _version(statement: Statement) -> str:
    return statement.versions.get("p2p_labeldp", "unknown")


def _check_ranges(statement: Statement) -> None:
    if not 2 <= statement.num_classes <= MAX_CLASSES:
        raise ConfigurationError(f"{statement.num_classes} given; 2 to {MAX_CLASSES} are possible", field="num_classes")
    if statement.engine is not Engine.POPULATION:
        if statement.mechanism.kind != central.RESAMPLING:
            raise ConfigurationError(f"{statement.mechanism.kind} is not played by peers", field="mechanism.kind")
        if statement.exchange == PERMUTE:
            raise ConfigurationError(f"{PERMUTE} is not played by peers", field="exchange")
    ids = [cluster.id for cluster in statement.clusters]
    if ids != sorted(set(ids)):
        raise ConfigurationError("each is stated once, by id", field="clusters")
    for cluster in statement.clusters:
        if not 1 <= cluster.size <= MAX_CLUSTER_SIZE:
            raise ConfigurationError(f"{cluster.size} given; 1 to {MAX_CLUSTER_SIZE} are possible", field="size")


def _deltas(statement: Statement) -> Check:
    for cluster in statement.clusters:
        if cluster.size < 2 or not _same(cluster.delta, planning.roster_delta(cluster.size)):
            return failed("deltas", f"cluster {cluster.id}: {cluster.delta:g} is not 1/s^2 of {cluster.size} members")
    return passed("deltas", f"1/s^2 in each of {number_of(len(statement.clusters), 'cluster')}")


def _holding_minima(statement: Statement, terms: Config) -> Check:
    loss = terms.mechanism.tolerated_loss
    for cluster in statement.clusters:
        needed = cluster.size
        if terms.exchange.kind != PERMUTE:
            needed = planning.holding_minimum(cluster.size, loss)
        if cluster.holding_minimum != needed:
            stated = f"cluster {cluster.id}: {cluster.holding_minimum} stated, {needed} of {cluster.size} needed"
            return failed("holding minima", stated)
    return passed("holding minima", f"those of the sizes, at a tolerated loss of {loss:g}")


def _flips(statement: Statement, terms: Config) -> Check:
    given = terms.mechanism.flip_probability
    for cluster in statement.clusters:
        if cluster.flip_probability is None:
            return failed("flips", f"cluster {cluster.id}: none stated")
        if given is not None and cluster.flip_probability != given:
            return failed("flips", f"cluster {cluster.id}: {cluster.flip_probability:g} is not the {given:g} given")
    least = min((cluster.flip_probability or 0.0 for cluster in statement.clusters), default=0.0)
    return passed("flips", f"at least {least:.5g}" + (", as given" if given is not None else ""))


def _worked_out(statement: Statement, terms: Config) -> tuple[list[ClusterResult], list[ViewResult]]:
    classes = statement.num_classes
    if statement.mechanism.kind != central.RESAMPLING:
        mechanism = central.mechanism_of(terms, classes)
        sizes = [cluster.size for cluster in statement.clusters]
        return central.of_clusters(mechanism, sizes), central.of_views(mechanism)
    rosters = [_roster(cluster, terms) for cluster in statement.clusters]
    clusters = promise.of_clusters(rosters, terms, classes)
    return clusters, promise.of_views(rosters, clusters, terms, classes)


def _roster(cluster: StatedCluster, terms: Config) -> CollectedRoster:
    """What the size alone decides is not taken from the statement."""
    permuted = terms.exchange.kind == PERMUTE
    if cluster.flip_probability is None:
        raise ConfigurationError("missing", field="flip_probability")
    return CollectedRoster(
        cluster.id,
        cluster.size,
        cluster.flip_probability,
        planning.roster_delta(cluster.size),
        cluster.size if permuted else planning.holding_minimum(cluster.size, terms.mechanism.tolerated_loss),
    )


def _epsilons(statement: Statement, clusters: list[ClusterResult], terms: Config, *, sized: bool) -> Check:
    for stated, found in zip(statement.clusters, clusters, strict=True):
        for name in ("flip_probability", "delta", "epsilon", "local_epsilon"):
            ours, theirs = getattr(found, name), getattr(stated, name)
            if not _same(theirs, ours):
                text = f"cluster {stated.id}: {name} {_number(theirs)} stated, {_number(ours)} worked out"
                return failed("epsilons", text)
        if stated.id != found.id or (not sized and stated.holding_minimum is not None):
            return failed("epsilons", f"cluster {stated.id}: no cluster of this mechanism")
    target = terms.mechanism.target_epsilon
    worst = max((cluster.epsilon for cluster in clusters), default=0.0)
    if target is not None and not worst <= target * (1 + TOLERANCE):
        return failed("epsilons", f"{worst:g} worked out, more than the target of {target:g}")
    return passed("epsilons", f"at most {_number(worst)} against the learner alone, worked out anew in each cluster")


def _views(statement: Statement, views: list[ViewResult]) -> Check:
    for stated, found in zip_longest(statement.views, views):
        if stated is None or found is None or stated.view != found.view:
            return failed("views", f"{', '.join(view.view for view in views)} worked out, others stated")
        for name in ("epsilon", "delta", "method"):
            ours, theirs = getattr(found, name), getattr(stated, name)
            if theirs != ours and (name == "method" or not _same(theirs, ours)):
                text = f"{stated.view}: {name} {_number(theirs)} stated, {_number(ours)} worked out"
                return failed("views", text)
    return passed("views", "; ".join(f"{view.view} {_number(view.epsilon)} at {_number(view.delta)}" for view in views))


def _same(stated: float | None, found: float | None) -> bool:
    if stated is None or found is None:
        return stated is found
    return math.isclose(stated, found, rel_tol=TOLERANCE)


def _number(value: float | str | None) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
