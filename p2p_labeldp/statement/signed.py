"""What the learner signed in the round, held against statement and facts; and a peer's own receipt.

``evidence.json`` holds the envelopes of manifest, rosters and receipts, in base64. They name members by id, as rosters
do; a receipt names its reporter and the digest of a sealed report, which tells nothing of what is in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from p2p_labeldp import facts
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ConfigurationError, ProtocolError
from p2p_labeldp.facts import Name
from p2p_labeldp.network.store import KeptReceipt
from p2p_labeldp.network.study import Evidence
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol import report as reports
from p2p_labeldp.protocol import roster as rosters
from p2p_labeldp.protocol.manifest import OpenedManifest
from p2p_labeldp.protocol.messages import MAX_ENVELOPE_BYTES
from p2p_labeldp.protocol.roster import OpenedRoster
from p2p_labeldp.statement import reading
from p2p_labeldp.statement.checks import Check, cause, failed, passed, unchecked
from p2p_labeldp.statement.content import Engine, StatedCluster, Statement
from p2p_labeldp.statement.happened import Happened

NAME = "evidence.json"
MAX_BYTES = 1 << 30
"""The receipts of a million peers."""
READER = Keys(bytes(32))
"""Verifying takes no secret."""


class Refused(Exception):
    """What is wrong with a piece of evidence."""


def to_file(evidence: Evidence) -> str:
    """The text of ``evidence.json``."""
    return msgspec.json.format(msgspec.json.encode(evidence), indent=1).decode() + "\n"


def from_file(data: bytes) -> Evidence:
    """The inverse of :func:`to_file`.

    Raises:
        ConfigurationError: No evidence.
    """
    try:
        return msgspec.json.decode(data, type=Evidence)
    except (ValueError, RecursionError) as exc:  # msgspec's errors are ValueErrors
        raise ConfigurationError(f"no evidence of a run: {exc}", field=NAME) from exc


def read(directory: Path) -> Evidence | None:
    """Of a run's directory; None if there is none.

    Raises:
        ConfigurationError: It can't be read.
    """
    try:
        data = reading.content_of(directory / NAME, longest=MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigurationError(f"can't be read: {exc.strerror}", field=NAME) from exc
    return from_file(data)


def checks(statement: Statement, evidence: Evidence | None, happened: Happened) -> Iterator[Check]:
    """Manifest, rosters and receipts."""
    rosters_stated = [cluster.roster for cluster in statement.clusters if cluster.roster is not None]
    if statement.learner is None and evidence is None:
        if statement.round is None and not rosters_stated and not statement.receipts:
            yield unchecked("receipts", "there are none: nobody signed anything in this round")
        else:
            yield failed("receipts", "manifest, rosters or receipts are stated of a round in which nobody signed any")
        return
    if statement.learner is None or evidence is None:
        yield failed("receipts", f"{NAME} and a learner's signature go together, and one of them is missing")
        return
    try:
        opened = _open_manifest(statement, evidence.manifest)
        yield passed("manifest", f"round {opened.round_id.hex()[:16]}, of the learner and of these terms")
        found = _open_rosters(statement, evidence, opened)
        _check_names(found, happened, named=statement.engine is Engine.DEPLOYMENT)
        yield passed("rosters", f"{len(found)}, signed by the learner, of these sizes, flips and members")
    except (Refused, ProtocolError) as exc:
        name = "rosters" if isinstance(exc, Refused) and exc.args[1:] == ("rosters",) else "manifest"
        yield failed(name, str(exc.args[0]) if isinstance(exc, Refused) else cause(exc))
        return
    try:
        yield passed("receipts", _check_receipts(statement, evidence, found, happened))
    except (Refused, ProtocolError) as exc:
        yield failed("receipts", str(exc.args[0]) if isinstance(exc, Refused) else cause(exc))


def _open_manifest(statement: Statement, envelope: bytes) -> OpenedManifest:
    if hashlib.sha256(envelope).hexdigest() != statement.round:
        raise Refused("it is the manifest of another round than is stated")
    signer = READER.verify(manifests.KIND, envelope, max_bytes=MAX_ENVELOPE_BYTES).peer_id
    if signer.hex() != statement.learner:
        raise Refused(f"signed by {signer.hex()[: facts.SHORT_ID]}, who is not the learner that is stated")
    opened = manifests.open_manifest(envelope, keys=READER, learner=signer)
    terms, mechanism = opened.manifest, statement.mechanism
    for name in ("target_epsilon", "flip_probability", "tolerated_loss"):
        if getattr(terms, name) != getattr(mechanism, name):
            raise Refused(f"its {name} is {getattr(terms, name)}, not as stated")
    if len(terms.classes) != statement.num_classes:
        raise Refused(f"it has {len(terms.classes)} classes, not {statement.num_classes}")
    if terms.study != (statement.engine is not Engine.DEPLOYMENT):
        raise Refused("it is of a study" if terms.study else "it is of a deployment")
    return opened


def _open_rosters(statement: Statement, evidence: Evidence, opened: OpenedManifest) -> dict[int, OpenedRoster]:
    envelopes = dict(evidence.rosters)
    if len(envelopes) != len(evidence.rosters) or set(envelopes) != {cluster.id for cluster in statement.clusters}:
        raise Refused("they are of other clusters than are stated", "rosters")
    found = {}
    for cluster in statement.clusters:
        try:
            roster = rosters.open_roster(envelopes[cluster.id], keys=READER, opened=opened, cluster=cluster.id)
        except ProtocolError as exc:
            raise Refused(f"cluster {cluster.id}: {cause(exc)}", "rosters") from exc
        terms = roster.roster
        signed = len(roster.members), terms.flip_probability, terms.delta, terms.holding_minimum, roster.digest.hex()
        if signed != (
            cluster.size,
            cluster.flip_probability,
            cluster.delta,
            cluster.holding_minimum,
            cluster.roster,
        ):
            raise Refused(f"cluster {cluster.id}: another roster was signed than is stated", "rosters")
        found[cluster.id] = roster
    return found


def _check_names(found: dict[int, OpenedRoster], happened: Happened, *, named: bool) -> None:
    """A roster and its list in the facts have one order, so the n-th name is the n-th id's."""
    for cluster, roster in found.items():
        names = happened.listed.get(cluster, [])
        if len(names) != len(roster.members):
            raise Refused(f"cluster {cluster}: the facts list other members than were signed", "rosters")
        for name, member in zip(names, roster.members, strict=True):
            known = str(name) if named else happened.ids.get(name, "")
            if not member.hex().startswith(known) or (named and known != member.hex()):
                raise Refused(f"cluster {cluster}: the facts list other members than were signed", "rosters")


def _check_receipts(
    statement: Statement, evidence: Evidence, found: dict[int, OpenedRoster], happened: Happened
) -> str:
    members: dict[Name, tuple[int, bytes]] = {
        name: (cluster, member)
        for cluster, roster in found.items()
        for name, member in zip(happened.listed.get(cluster, ()), roster.members, strict=True)
    }
    digests = [hashlib.sha256(receipt).hexdigest() for _, receipt in evidence.receipts]
    if sorted(digests) != statement.receipts or len(set(digests)) != len(digests):
        raise Refused("they are not those that are stated")
    reporters = [name for name, _ in evidence.receipts]
    if len(set(reporters)) != len(reporters) or set(reporters) != set(happened.accepted):
        raise Refused(
            f"{len(set(reporters))} peers have one, {len(happened.accepted)} reports were accepted, not the same"
        )
    for name, receipt in evidence.receipts:
        cluster, member = members.get(name, (-1, b""))
        try:
            signer, content = reports.open_receipt(receipt, keys=READER)
        except ProtocolError as exc:
            raise Refused(f"of peer {name}: {cause(exc)}") from exc
        if signer.hex() != statement.learner:
            raise Refused(f"of peer {name}: signed by {signer.hex()[:16]}, who is not the learner")
        if content.round_id.hex() != statement.round:
            raise Refused(f"of peer {name}: of another round")
        if cluster != happened.accepted[name][0] or content.roster != found[cluster].digest:
            raise Refused(f"of peer {name}: of another roster")
        if content.reporter != member:
            raise Refused(f"of peer {name}: given to another peer")
    return f"{len(digests)}, one for each accepted report, signed by the learner, of this round and these rosters"


def check_own(statement: Statement, own: KeptReceipt, *, alone: bool) -> Check:
    """A peer's receipt, and the flip that its own ledger noted, against the statement.

    Args:
        statement: The statement.
        own: The receipt.
        alone: There are no rosters, which show how large a cluster was; the ledger does not note it.
    """
    name = "own receipt"
    try:
        cluster = _own_cluster(statement, own)
    except Refused as exc:
        return failed(name, str(exc))
    except ProtocolError as exc:
        return failed(name, cause(exc))
    proviso = ", if the cluster was as large as stated" if alone else ""
    local, learner = f"{cluster.local_epsilon:.6g}", f"{cluster.epsilon:.6g} at {cluster.delta:.3g}"
    where = f"in cluster {cluster.id} of {cluster.size}, flipped with {cluster.flip_probability:g}"
    return passed(
        name,
        f"counted, {where}: epsilon {learner} against this learner alone{proviso}, {local} whoever helps it",
    )


def _own_cluster(statement: Statement, own: KeptReceipt) -> StatedCluster:
    signer, content = reports.open_receipt(own.receipt, keys=READER)
    short = facts.SHORT_ID
    if content.reporter.hex() != own.peer_id:
        raise Refused(f"given to {content.reporter.hex()[:short]}, not to {own.peer_id[:short]}")
    if signer.hex() != statement.learner:
        stated = "nobody" if statement.learner is None else statement.learner[:short]
        raise Refused(f"signed by learner {signer.hex()[:short]}, the statement by {stated}")
    if content.round_id.hex() != statement.round or own.round_id != statement.round:
        raise Refused("of another round than the statement")
    cluster = next((cluster for cluster in statement.clusters if cluster.roster == content.roster.hex()), None)
    if cluster is None:
        raise Refused("of a roster that is not among the stated ones")
    if hashlib.sha256(own.receipt).hexdigest() not in statement.receipts:
        raise Refused("not among the receipts that the statement counts")
    if own.flips.get(content.roster.hex()) != cluster.flip_probability:
        raise Refused("the label was flipped with another probability than is stated")
    return cluster
