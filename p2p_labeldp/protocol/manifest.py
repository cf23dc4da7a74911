"""The manifest: everything public about a round, signed by the learner. Its digest is the round's id.

A learner that shows different manifests (or keys) to different peers only splits them into rounds too small to run.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.crypto.sealing import check_public
from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError, MalformedMessage
from p2p_labeldp.labels import MAX_CLASSES, LabelSpace
from p2p_labeldp.mechanisms.randomized_response import check_flip_probability
from p2p_labeldp.protocol.admission import Admission
from p2p_labeldp.protocol.messages import MAX_ENVELOPE_BYTES, Hash
from p2p_labeldp.protocol.wire import decode_payload

KIND = "manifest"
NEWCOMER_PERIODS = 2  # before the join deadline: a record that comes later may reach some mates, but not the learner,
# before the snapshot, and everybody it did reach would have to refuse the roster; so whoever is late keeps silent
MIN_GOSSIP_SECONDS = 0.001  # a period below the clock's step would keep a peer gossiping for ever at one instant
MAX_GOSSIP_SECONDS = 86_400.0
MAX_OPENED = 253_402_300_799.0  # the year 9999 ends; of a NaN or an infinity nobody knows when its round is over


class Deadlines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When each phase ends, in seconds after the round's opening; each later than the one before."""

    join: float
    exchange: float
    closing: float
    report: float

    def __post_init__(self) -> None:
        ends = (0.0, self.join, self.exchange, self.closing, self.report)
        if not all(math.isfinite(end) for end in ends) or any(b <= a for a, b in pairwise(ends)):
            raise ConfigurationError(
                f"{ends[1:]} given; four increasing numbers of seconds are needed", field="exchange.deadlines"
            )


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed. The class list stands as text; ``clustering`` is the public scaler, centroids and their clusters.

    ``opened`` (unix seconds) and ``nonce`` make two rounds with the same settings two rounds. With ``admission`` by
    allowlist ``enrolment_key`` is the id of the key that vouches for peers.
    """

    classes: Annotated[tuple[str, ...], Meta(min_length=2, max_length=MAX_CLASSES)]
    clustering: dict[str, Any]
    target_epsilon: float | None
    flip_probability: float | None
    tolerated_loss: Annotated[float, Meta(ge=0, lt=1)]
    minimum_size: Annotated[int, Meta(ge=2)]
    deadlines: Deadlines
    gossip_period: Annotated[float, Meta(ge=MIN_GOSSIP_SECONDS, le=MAX_GOSSIP_SECONDS)]
    round_key: Hash
    study: bool
    opened: Annotated[float, Meta(ge=0, le=MAX_OPENED)]
    nonce: Annotated[bytes, Meta(min_length=16, max_length=16)]
    admission: Admission = Admission.OPEN
    enrolment_key: Hash | None = None

    def __post_init__(self) -> None:
        if (self.target_epsilon is None) == (self.flip_probability is None):
            raise ConfigurationError("give exactly one of target_epsilon and flip_probability", field="mechanism")
        if self.target_epsilon is not None and not 0 < self.target_epsilon < math.inf:
            raise ConfigurationError(f"{self.target_epsilon} given; more than 0 is needed", field="target_epsilon")
        if self.flip_probability is not None:
            check_flip_probability(self.flip_probability, len(self.classes))
        if (self.admission is Admission.ALLOWLIST) != (self.enrolment_key is not None):
            raise ConfigurationError("an enrolment key goes with an allowlist, and only there", field="admission")

    @property
    def newcomers_until(self) -> float:
        """How long after the opening, in seconds, a peer may still join."""
        return self.deadlines.join - NEWCOMER_PERIODS * self.gossip_period


_decoder = msgspec.msgpack.Decoder(Manifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedManifest:
    """A manifest whose signature was checked.

    Args:
        round_id: SHA-256 of the signed envelope.
        learner: Id of the learner that signed it.
        manifest: The content.
        clustering: Its clustering, decoded.
        label_space: Its classes.
    """

    round_id: bytes
    learner: bytes
    manifest: Manifest
    clustering: Clustering
    label_space: LabelSpace


def sign(manifest: Manifest, keys: KeyRing) -> bytes:
    """The signed envelope of a manifest."""
    return keys.sign(KIND, msgspec.msgpack.encode(manifest))


def open_manifest(envelope: bytes, *, keys: KeyRing, learner: bytes) -> OpenedManifest:
    """Verifies an envelope against the learner's id, then decodes it.

    Raises:
        AuthenticationFailed: Not signed, or signed by somebody else.
        MalformedMessage: Signed, and yet no manifest.
    """
    signed = keys.verify(KIND, envelope, max_bytes=MAX_ENVELOPE_BYTES)
    if signed.peer_id != learner:
        raise AuthenticationFailed("the manifest is signed by another key than the learner's")
    try:
        manifest = decode_payload(signed.payload, _decoder)
        clustering = Clustering.from_payload(manifest.clustering)
        label_space = LabelSpace(classes=manifest.classes)
    except ConfigurationError as exc:
        raise MalformedMessage(f"a manifest of impossible values: {exc}") from exc
    check_public(manifest.round_key)  # else a mate could not answer, nor a peer report
    return OpenedManifest(
        round_id=hashlib.sha256(envelope).digest(),
        learner=signed.peer_id,
        manifest=manifest,
        clustering=clustering,
        label_space=label_space,
    )
