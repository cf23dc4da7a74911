"""What is signed and sealed in a run of private rounds: its manifest, each round's opening, each peer's contribution.

The manifest is everything public about the run; its digest is the run's id. An opening carries the model as it stands
before a round; its digest is the round's id, so whatever a peer does in a round is bound to the very model it was sent.
The opening numbered T, after the last of T rounds, is the trained model.

A contribution is sealed for the learner and has one length, whether it holds an update or nothing: who takes part in a
round is the peer's secret and the learner's, and the central guarantee counts on it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from p2p_labeldp.accounting.federated import Rounds
from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.crypto.sealing import box_info, check_public
from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError, MalformedMessage
from p2p_labeldp.labels import MAX_CLASSES, LabelSpace
from p2p_labeldp.mechanisms.noisy_average import NoisyAverage
from p2p_labeldp.mechanisms.separated import Separated
from p2p_labeldp.protocol.messages import MAX_ENVELOPE_BYTES, Hash
from p2p_labeldp.protocol.wire import decode_payload

KIND, OPENING_KIND = "federation", "federated round"
MAX_DIMENSION = 48_000
"""Shift and scale of as many features, nine bytes a number, fit a manifest; more is for the population engine."""
MAX_ROUNDS = 10**6
LARGEST_PARAMETER = 1e100
"""Beyond it products overflow, and whose do would tell something of the data."""

Vector = npt.NDArray[np.float64]
Positive = Annotated[float, Meta(gt=0, le=1e100)]
Numbers = Annotated[tuple[float, ...], Meta(max_length=MAX_DIMENSION)]


class FederationManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed. ``shift`` and ``scale`` standardise features; they come from data that nobody has to protect.

    ``population`` is N, the peers there are, and q N the public divisor of a round's sum; ``projection`` is rho.
    ``round_seconds`` is the longest a round waits for missing peers. ``run_key`` is the learner's for this run alone.
    """

    model: Annotated[str, Meta(min_length=1, max_length=64)]
    classes: Annotated[tuple[str, ...], Meta(min_length=2, max_length=MAX_CLASSES)]
    shift: Numbers
    scale: Numbers
    dimension: Annotated[int, Meta(ge=1, le=MAX_DIMENSION)]
    population: Annotated[int, Meta(ge=1, le=10**9)]
    sampling_rate: Annotated[float, Meta(gt=0, le=1)]
    rounds: Annotated[int, Meta(ge=1, le=MAX_ROUNDS)]
    max_radius: Positive
    epsilon_direction: Annotated[float, Meta(ge=1e-6, le=1e5)]
    epsilon_magnitude: Annotated[float, Meta(ge=1e-6, le=1e5)]
    magnitude: Literal["absolute", "relative"]
    projection: Positive
    sigma: Annotated[float, Meta(ge=0, le=1e100)]
    learning_rate: Positive
    local_steps: Annotated[int, Meta(ge=1, le=10_000)]
    local_rate: Positive
    round_seconds: Annotated[float, Meta(gt=0, le=1e6)]
    poll_seconds: Annotated[float, Meta(ge=0.001, le=86_400.0)]
    run_key: Hash
    study: bool
    opened: Annotated[float, Meta(ge=0, le=1e12)]
    nonce: Annotated[bytes, Meta(min_length=16, max_length=16)]

    def __post_init__(self) -> None:
        scale = [one for one in self.scale if math.isfinite(one) and one > 0]
        if len(scale) != len(self.shift) or len(scale) != len(self.scale) or not scale:
            raise ConfigurationError("a finite number above 0 is needed for each feature", field="scale")
        if not all(map(math.isfinite, self.shift)):
            raise ConfigurationError("finite numbers are needed", field="shift")

    @property
    def mechanism(self) -> Separated:
        """What each peer does to its update."""
        return Separated.calibrated(
            dimension=self.dimension,
            epsilon_direction=self.epsilon_direction,
            epsilon_magnitude=self.epsilon_magnitude,
            max_radius=self.max_radius,
            magnitude=self.magnitude,
        )

    @property
    def planned(self) -> Rounds:
        """The rounds as they are accounted for."""
        return Rounds(
            population=self.population,
            sampling_rate=self.sampling_rate,
            rounds=self.rounds,
            projection=self.projection,
        )

    @property
    def average(self) -> NoisyAverage:
        """What the learner does to the reports of a round."""
        return NoisyAverage(
            dimension=self.dimension,
            projection=self.projection,
            expected_cohort=self.planned.expected_cohort,
            sigma=self.sigma,
        )

    def takes_part(self, word: int) -> bool:
        """Whether a peer whose sampling word this is takes part: with probability q, never more."""
        return word < int(self.sampling_rate * 2**64)

    def step(self, parameters: Vector, average: Vector) -> Vector:
        """The model after a round, held where peers take it: one that leaves would be asked about for ever after."""
        with np.errstate(over="ignore"):
            stepped = parameters - self.learning_rate * average
        return np.clip(stepped, -LARGEST_PARAMETER, LARGEST_PARAMETER)


class RoundOpening(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is signed of a round: its run, its number, and the model, little-endian doubles."""

    run_id: Hash
    number: Annotated[int, Meta(ge=0, le=MAX_ROUNDS)]
    parameters: Annotated[bytes, Meta(max_length=8 * MAX_DIMENSION)]


class Contribution(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is sealed: the peer's ordinal in a study, whether there is an update, and the update or as many zeros."""

    ordinal: Annotated[int, Meta(ge=0, le=10**9)]
    counts: bool
    values: Annotated[bytes, Meta(max_length=8 * MAX_DIMENSION)]


_manifest_decoder = msgspec.msgpack.Decoder(FederationManifest)
_opening_decoder = msgspec.msgpack.Decoder(RoundOpening)
_contribution_decoder = msgspec.msgpack.Decoder(Contribution)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFederation:
    """A manifest whose signature was checked.

    Args:
        run_id: SHA-256 of the signed envelope.
        learner: Id of the learner that signed it.
        manifest: The content.
        mechanism: What its peers use.
    """

    run_id: bytes
    learner: bytes
    manifest: FederationManifest
    mechanism: Separated


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenedRound:
    """An opening whose signature was checked.

    Args:
        round_id: SHA-256 of the signed envelope.
        number: 0 to T - 1; T is the end.
        parameters: The model, shape (dimension,).
    """

    round_id: bytes
    number: int
    parameters: Vector


def sign_manifest(manifest: FederationManifest, keys: KeyRing) -> bytes:
    """The signed envelope of a run."""
    return keys.sign(KIND, msgspec.msgpack.encode(manifest))


def open_federation(envelope: bytes, *, keys: KeyRing, learner: bytes) -> OpenedFederation:
    """Verifies an envelope against the learner's id, then decodes it.

    Raises:
        AuthenticationFailed: Not signed, or signed by somebody else.
        MalformedMessage: Signed, and yet no manifest of a run.
    """
    payload = _signed(KIND, envelope, keys, learner)
    try:
        manifest = decode_payload(payload, _manifest_decoder)
        LabelSpace(classes=manifest.classes)
        mechanism, _ = manifest.mechanism, manifest.average
    except ConfigurationError as exc:
        raise MalformedMessage(f"a manifest of impossible values: {exc}") from exc
    check_public(manifest.run_key)
    return OpenedFederation(
        run_id=hashlib.sha256(envelope).digest(), learner=learner, manifest=manifest, mechanism=mechanism
    )


def sign_round(number: int, parameters: Vector, *, run_id: bytes, keys: KeyRing) -> bytes:
    """The signed envelope of a round."""
    opening = RoundOpening(run_id, number, parameters.astype("<f8").tobytes())
    return keys.sign(OPENING_KIND, msgspec.msgpack.encode(opening))


def open_round(envelope: bytes, *, of: OpenedFederation, keys: KeyRing) -> OpenedRound:
    """Verifies a round's opening, then decodes it.

    Raises:
        AuthenticationFailed: Not signed by the run's learner.
        MalformedMessage: Signed, and yet no opening of this run.
    """
    opening = decode_payload(_signed(OPENING_KIND, envelope, keys, of.learner), _opening_decoder)
    if opening.run_id != of.run_id or opening.number > of.manifest.rounds:
        raise MalformedMessage("the opening of a round of another run")
    parameters = _vector(opening.parameters, of.manifest.dimension)
    if not (np.abs(parameters) <= LARGEST_PARAMETER).all():  # NaN compares false
        raise MalformedMessage(f"parameters up to {LARGEST_PARAMETER:g} are needed")
    return OpenedRound(round_id=hashlib.sha256(envelope).digest(), number=opening.number, parameters=parameters)


def seal_contribution(
    update: Vector | None, *, ordinal: int, dimension: int, run_key: bytes, round_id: bytes, keys: KeyRing
) -> bytes:
    """A peer's box of a round, of one length; None is no update."""
    values = np.zeros(dimension) if update is None else update
    content = Contribution(ordinal, update is not None, values.astype("<f8").tobytes())
    return keys.seal(run_key, msgspec.msgpack.encode(content), info=_info(round_id, keys.peer_id))


def open_contribution(
    box: bytes, *, peer_id: bytes, dimension: int, round_id: bytes, keys: KeyRing
) -> tuple[int, Vector | None]:
    """The ordinal and the update, if there is one, in a peer's box.

    Raises:
        AuthenticationFailed: A box that does not open, or was made for another peer or round.
        MalformedMessage: It opens to something else, or to numbers that are not finite.
    """
    content = decode_payload(keys.open(box, info=_info(round_id, peer_id)), _contribution_decoder)
    update = _vector(content.values, dimension)
    if not np.isfinite(update).all():
        raise MalformedMessage("an update that is not finite")
    return content.ordinal, update if content.counts else None


def _info(round_id: bytes, peer_id: bytes) -> bytes:
    return box_info("contribution", round_id, peer_id)


def _vector(data: bytes, dimension: int) -> Vector:
    if len(data) != 8 * dimension:
        raise MalformedMessage(f"{dimension} doubles are needed")
    return np.frombuffer(data, dtype="<f8").astype(np.float64)


def _signed(kind: str, envelope: bytes, keys: KeyRing, learner: bytes) -> bytes:
    signed = keys.verify(kind, envelope, max_bytes=MAX_ENVELOPE_BYTES)
    if signed.peer_id != learner:
        raise AuthenticationFailed(f"a {kind} signed by another key than the learner's")
    return signed.payload
