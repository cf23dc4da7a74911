"""``manifest create|show|check``: what a learner proposes, on paper, and whether a peer would take part."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_labeldp.cli.limits import (
    Colluders,
    EnrolmentKey,
    MaxColluderEpsilon,
    MaxEpsilon,
    MaxLocalEpsilon,
    MinimumSize,
    policy_of,
)
from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.network.learner_process import Proposal
    from p2p_labeldp.protocol.manifest import Manifest, OpenedManifest
    from p2p_labeldp.protocol.policy import Policy

ROUND_KEY_SUFFIX = ".round-key"
ROUND_KEY_BYTES = 32

HELP = """The signed terms of a round: create them, show them, check them against a peer's limits.

Example:

\b
    p2p-labeldp manifest create by-hand --key learner.key --out round.manifest
    p2p-labeldp manifest check round.manifest --learner ID --max-epsilon 1
"""

CREATE_HELP = """Sign the manifest of one round.

Beside FILE stands FILE.round-key, the secret that opens the round's reports: readable by its owner alone, and deleted
by `learner --manifest FILE` when the round begins. The deadlines count from the creation.

Example:

\b
    p2p-labeldp manifest create by-hand --key learner.key --out round.manifest
"""

SHOW_HELP = """Verify a manifest's signature and show what it says.

Example:

\b
    p2p-labeldp manifest show round.manifest
"""

CHECK_HELP = """Say whether a peer with these limits would take part, and why not: exit status 0 or 1.

A roster's guarantee depends on its size, which no manifest tells. So the terms are judged for the least cluster the
round allows, and for each --size given. The peer judges the real roster again when it gets it. A round that peers can
no longer join, by this machine's clock, is none to take part in.

Example:

\b
    p2p-labeldp manifest check round.manifest --learner ID --classes malignant,benign --max-epsilon 1 --size 20
"""

app = typer.Typer(help=HELP, rich_markup_mode=None, add_completion=False)

File = Annotated[str, typer.Argument(metavar="FILE", help="The signed manifest.")]


@app.command("create", help=CREATE_HELP)
def create(
    configuration: Annotated[str, typer.Argument(metavar="NAME|PATH", help="Terms of the round.")],
    key: Annotated[str, typer.Option(metavar="FILE", help="The learner's key file, made by keygen.")],
    out: Annotated[str, typer.Option(metavar="FILE", help="Where to write the manifest; must not exist.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Replace a value.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the round's id as a JSON object.")] = False,
) -> None:
    """See ``CREATE_HELP``."""
    from p2p_labeldp import config

    chosen = config.load(configuration, overrides or [])

    import time

    import msgspec

    from p2p_labeldp import experiment
    from p2p_labeldp.cli import new_file
    from p2p_labeldp.cli.keygen import keys_of
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.protocol import manifest as manifests
    from p2p_labeldp.randomness import Secret

    keys = Keys(Secret(keys_of(key)[0]).identity())
    secret_file = f"{out}{ROUND_KEY_SUFFIX}"
    for name in (out, secret_file):
        if Path(name).exists():
            raise ConfigurationError(f"{name!r} exists already; a new file is needed", field="--out")
    prepared = experiment.prepare(chosen, engine="processes", seed=experiment.PUBLIC_SEED)
    terms = msgspec.structs.replace(prepared.study.terms, study=False)
    secret = os.urandom(ROUND_KEY_BYTES)
    manifest = terms.manifest(round_key=Keys(secret).sealing_public, opened=time.time())
    envelope = manifests.sign(manifest, keys)
    opened = manifests.open_manifest(envelope, keys=keys, learner=keys.peer_id)
    # The secret first: a manifest without it opens no report.
    new_file.write(secret_file, secret.hex().encode() + b"\n", mode=0o600, field="--out")
    new_file.write(out, envelope, mode=0o644, field="--out")
    found = {"round": opened.round_id.hex(), "learner": keys.peer_id.hex(), "file": out, "round_key_file": secret_file}
    typer.echo(json.dumps(found) if as_json else f"round {found['round']} of learner {found['learner']}")


@app.command("show", help=SHOW_HELP)
def show(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one JSON object.")] = False,
) -> None:
    """See ``SHOW_HELP``."""
    from p2p_labeldp.errors import AuthenticationFailed, RemoteProtocolError

    try:
        described = _described(_open(file))
    except AuthenticationFailed as exc:  # on a wire its text would say no more than that
        raise RemoteProtocolError(f"{file!r}: {exc.detail}") from exc
    if as_json:
        typer.echo(json.dumps(described))
        return
    width = max(len(name) for name in described)
    described["opened"] = f"{described['opened']} ({_utc(described['opened'])})"
    for name, value in described.items():
        text = ", ".join(f"{k} {v:g} s" for k, v in value.items()) if isinstance(value, dict) else value
        text = json.dumps(text) if isinstance(text, list) else text
        line = f"{name.replace('_', ' '):<{width}}  {'none' if text is None else text}"
        typer.echo("".join(character if character.isprintable() else "?" for character in line))


@app.command("check", help=CHECK_HELP)
def check(
    file: File,
    learner: Annotated[str, typer.Option(metavar="ID", help="The learner this peer expects.")],
    classes: Annotated[str | None, typer.Option(metavar="A,B", help="The label space this peer expects.")] = None,
    max_epsilon: MaxEpsilon = None,
    max_local_epsilon: MaxLocalEpsilon = None,
    colluders: Colluders = None,
    max_colluder_epsilon: MaxColluderEpsilon = None,
    minimum_size: MinimumSize = 3,
    enrolment_key: EnrolmentKey = None,
    size: Annotated[
        list[int] | None, typer.Option("--size", metavar="S", help="A cluster's size to judge; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as one JSON object.")] = False,
) -> int:
    """See ``CHECK_HELP``."""
    from dataclasses import replace

    from p2p_labeldp.cli.enrol import peer_id
    from p2p_labeldp.cli.peer import label_space_of
    from p2p_labeldp.errors import ProtocolError
    from p2p_labeldp.protocol.messages import MAX_CLUSTER_SIZE

    policy = policy_of(
        max_epsilon=max_epsilon,
        max_local_epsilon=max_local_epsilon,
        colluders=colluders,
        max_colluder_epsilon=max_colluder_epsilon,
        minimum_size=minimum_size,
        enrolment_key=enrolment_key,
    )
    expected = peer_id(learner, field="--learner")
    policy = replace(policy, learner=expected, classes=None if classes is None else label_space_of(classes).classes)
    for members in size or []:
        if not 2 <= members <= MAX_CLUSTER_SIZE:
            raise ConfigurationError(f"{members} given; 2 to {MAX_CLUSTER_SIZE} are possible", field="--size")
    try:
        opened = _open(file)
    except ProtocolError as exc:
        reasons = [f"policy: manifest: {getattr(exc, 'detail', '') or exc}"]
    else:
        reasons = _reasons(opened, policy, size or [])
    if as_json:
        typer.echo(json.dumps({"takes_part": not reasons, "reasons": reasons}))
    else:
        typer.echo("\n".join(reasons) if reasons else "would take part")
    return 1 if reasons else 0


def _reasons(opened: OpenedManifest, policy: Policy, sizes: list[int]) -> list[str]:
    from p2p_labeldp.protocol.messages import MAX_CLUSTER_SIZE
    from p2p_labeldp.protocol.policy import disagreement
    from p2p_labeldp.protocol.roster import plan_for

    terms = opened.manifest
    reasons = _late(terms)
    about = disagreement(opened, policy=policy, dimension=opened.clustering.dimension, study=False)
    if about is not None:
        return [*reasons, about]
    if terms.minimum_size > MAX_CLUSTER_SIZE:
        return [*reasons, f"minimum size {terms.minimum_size}; no roster has more than {MAX_CLUSTER_SIZE} members"]
    for size in sizes or [terms.minimum_size]:
        if size < terms.minimum_size:
            reasons.append(f"size {size}: the round needs {terms.minimum_size} members")
            continue
        plan = plan_for(size, terms)
        about = policy.against_roster(
            size=size,
            holding_minimum=plan.holding_minimum,
            flip_probability=plan.flip_probability,
            num_classes=len(opened.label_space),
        )
        if about is not None:
            reasons.append(f"size {size}: {about}")
    return reasons


def _late(terms: Manifest) -> list[str]:
    import time

    elapsed, last = time.time() - terms.opened, terms.newcomers_until
    if elapsed < last:
        return []
    return [f"too late: created {elapsed:.0f} s ago; peers join within {last:.0f} s"]


def _utc(seconds: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _described(opened: OpenedManifest) -> dict[str, Any]:
    terms = opened.manifest
    ends = terms.deadlines
    return {
        "round": opened.round_id.hex(),
        "learner": opened.learner.hex(),
        "kind": "study" if terms.study else "deployment",
        "opened": terms.opened,
        "classes": list(terms.classes),
        "clusters": opened.clustering.count,
        "features": opened.clustering.dimension,
        "target_epsilon": terms.target_epsilon,
        "flip_probability": terms.flip_probability,
        "tolerated_loss": terms.tolerated_loss,
        "minimum_size": terms.minimum_size,
        "admission": terms.admission.value,
        "enrolment_key": None if terms.enrolment_key is None else terms.enrolment_key.hex(),
        "deadlines": {"join": ends.join, "exchange": ends.exchange, "closing": ends.closing, "report": ends.report},
        "gossip_period": terms.gossip_period,
        "round_key": terms.round_key.hex(),
    }


def proposal_in(file: str) -> Proposal:
    """The round of a manifest, and the secret beside it, which is read, and then deleted, when the round begins.

    Raises:
        ConfigurationError: The manifest can't be read.
    """
    from p2p_labeldp.network.learner_process import Proposal

    secret_file = Path(f"{file}{ROUND_KEY_SUFFIX}")
    return Proposal(
        envelope=_read(file, field="--manifest"), secret=lambda: _secret_in(secret_file), begun=secret_file.unlink
    )


def _secret_in(secret_file: Path) -> bytes:
    try:
        secret = bytes.fromhex(secret_file.read_text(encoding="ascii").strip())
    except OSError as exc:
        raise ConfigurationError(
            f"{str(secret_file)!r} can't be read: {exc.strerror}; a round is served once", field="--manifest"
        ) from exc
    except ValueError:
        secret = b""
    if len(secret) != ROUND_KEY_BYTES:
        raise ConfigurationError(f"{str(secret_file)!r} is no round key", field="--manifest")
    return secret


def _read(file: str, *, field: str = "FILE") -> bytes:
    from p2p_labeldp.protocol.messages import MAX_ENVELOPE_BYTES

    try:
        with Path(file).open("rb") as opened:
            return opened.read(MAX_ENVELOPE_BYTES + 1)
    except OSError as exc:
        raise ConfigurationError(f"{file!r} can't be read: {exc.strerror}", field=field) from exc


def _open(file: str) -> OpenedManifest:
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.protocol import manifest as manifests

    envelope = _read(file)
    keys = Keys(bytes(32))  # verifying takes no secret
    signer = keys.verify(manifests.KIND, envelope).peer_id
    return manifests.open_manifest(envelope, keys=keys, learner=signer)
