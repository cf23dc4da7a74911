"""A run of private rounds on one machine, and what came of it.

As in ``network.study``: with a seed every coin comes from it, and whoever knows it knows everything; without one each
party has a secret of its own. All engines take an ``UpdateStudy`` and give a ``Trained``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Fact
from p2p_labeldp.learning import models
from p2p_labeldp.learning.local_update import LocalUpdate
from p2p_labeldp.learning.models import Model
from p2p_labeldp.network.study import Where, coins_of
from p2p_labeldp.protocol.averaging import Averager
from p2p_labeldp.protocol.federation import FederationManifest, OpenedFederation, Vector
from p2p_labeldp.protocol.kept import ContributedAs
from p2p_labeldp.protocol.rounds import Compute, Contributor
from p2p_labeldp.protocol.update_ledger import UpdateLedger, UpdatePolicy
from p2p_labeldp.randomness import Replay, Secret

PUBLIC_SEED = 0
"""Of the first model: everybody may know it."""


class FederationTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a learner puts in its manifest, but for the run's key and its opening; see ``FederationManifest``."""

    model: str
    classes: tuple[str, ...]
    shift: tuple[float, ...]
    scale: tuple[float, ...]
    population: int
    sampling_rate: float
    rounds: int
    max_radius: float
    epsilon_direction: float
    epsilon_magnitude: float
    projection: float
    sigma: float
    learning_rate: float
    round_seconds: float
    poll_seconds: float
    study: bool
    magnitude: Literal["absolute", "relative"] = "absolute"
    local_steps: int = 1
    local_rate: float = 0.1

    def built(self) -> Model:
        """The model."""
        return models.build(self.model, features=len(self.shift), classes=len(self.classes))

    def manifest(self, *, run_key: bytes, opened: float, nonce: bytes | None = None) -> FederationManifest:
        """The manifest of a run that opens now."""
        own = {name: getattr(self, name) for name in self.__struct_fields__}
        return FederationManifest(
            dimension=self.built().dimension,
            run_key=run_key,
            opened=opened,
            nonce=os.urandom(16) if nonce is None else nonce,
            **own,
        )


def model_of(manifest: FederationManifest) -> Model:
    """The model that a manifest names.

    Raises:
        ConfigurationError: There is none, or it has another number of parameters.
    """
    model = models.build(manifest.model, features=len(manifest.shift), classes=len(manifest.classes))
    if model.dimension != manifest.dimension:
        raise ConfigurationError(
            f"{manifest.dimension} given; {manifest.model} has {model.dimension} parameters", field="dimension"
        )
    return model


def standardised(features: npt.ArrayLike, manifest: FederationManifest | FederationTerms) -> npt.NDArray[np.float64]:
    """Features as the model sees them: shifted, scaled, and rows of at most length sqrt(d), so that one outlier is not
    all that a peer has to say. What overflows is not finite, and nobody is warned: whose do is the peer's secret."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = (np.asarray(features, dtype=np.float64) - np.array(manifest.shift)) / np.array(manifest.scale)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        longest = np.sqrt(rows.shape[1])
        return np.asarray(rows * np.minimum(1.0, longest / np.maximum(lengths, longest))[:, None])


def compute_of(
    manifest: FederationManifest | FederationTerms, model: Model, features: npt.ArrayLike, labels: npt.ArrayLike
) -> Compute:
    """What one peer computes from a model and its own rows, shapes (m, d) and (m,).

    Rows that are finite and don't stay so under the learner's shift and scale are no reason to stay away: a learner
    could choose them such that whoever does is known to have large features. They make an update that is not finite,
    and what a peer does then is in ``protocol.rounds``.

    Raises:
        ConfigurationError: Features that are not finite: bad data are found before any round, by their own peer.
    """
    rows, own = standardised(features, manifest), np.asarray(labels)
    if not np.isfinite(np.asarray(features, dtype=np.float64)).all():
        raise ConfigurationError("an entry is NaN or infinite; finite numbers are possible", field="features")
    local = LocalUpdate(
        model=model, max_radius=manifest.max_radius, steps=manifest.local_steps, rate=manifest.local_rate
    )

    def compute(parameters: Vector) -> Vector:
        return local.compute(parameters, rows, own)

    return compute


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateStudy:
    """What the engines are given.

    Args:
        terms: The learner's terms.
        features: One row per peer, shape (n, d).
        labels: One label per peer, shape (n,).
        seed: Every coin's; None if each party has a secret instead.
        budget: Largest local epsilon that each peer spends; None: no limit.
        peers_per_process: For the engine that has processes.
    """

    terms: FederationTerms
    features: npt.NDArray[np.float64]
    labels: npt.NDArray[np.integer]
    seed: int | None
    budget: float | None = None
    peers_per_process: int = 1

    def __len__(self) -> int:
        return len(self.labels)

    def rows_of(self, ordinal: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.integer]]:
        """What one peer holds: shapes (1, d) and (1,)."""
        return self.features[ordinal : ordinal + 1], self.labels[ordinal : ordinal + 1]


class ContributorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a peer of a study is told: its seed and ordinal, or its secret, its one example, and the learner.

    ``epsilon`` is the largest level of one report that it gives, ``budget`` that of all; None: any.
    """

    ordinal: Annotated[int, Meta(ge=0)]
    features: tuple[float, ...]
    label: int
    classes: tuple[str, ...]
    learner: Where
    seed: int | None = None
    secret: bytes | None = None
    budget: float | None = None
    epsilon: float | None = None

    def coins(self) -> Replay | Secret:
        """The peer's randomness."""
        return coins_of(self.seed, self.ordinal, self.secret)

    def contributor(
        self, opened: OpenedFederation, *, keys: KeyRing, earlier: Iterable[ContributedAs] = ()
    ) -> Contributor:
        """The machine.

        Args:
            opened: The run.
            keys: The peer's.
            earlier: What left of its data in earlier lives; its budget covers that too.

        Raises:
            ConfigurationError: The manifest names a model that isn't known here, or of another size.
        """
        model = model_of(opened.manifest)
        policy = UpdatePolicy(epsilon=self.epsilon).pinned(
            classes=self.classes, features=len(self.features), learner=self.learner.peer_id
        )
        return Contributor(
            opened=opened,
            compute=compute_of(opened.manifest, model, [self.features], [self.label])
            if len(opened.manifest.shift) == len(self.features)
            else _no_update,
            keys=keys,
            randomness=self.coins(),
            learner=self.learner.address(),
            name=self.ordinal,
            data_id=str(self.ordinal),
            ordinal=self.ordinal,
            study=True,
            policy=policy,
            ledger=UpdateLedger(earlier, budget=self.budget),
        )


def _no_update(_parameters: Vector) -> Vector:
    """Of a peer whose policy refuses the run."""
    raise ConfigurationError("another number of features", field="update")


def specs_of(study: UpdateStudy, *, learner: Where, ordinals: Iterable[int] | None = None) -> list[ContributorSpec]:
    """One spec per peer; without a seed each with a fresh secret."""
    return [
        ContributorSpec(
            ordinal=i,
            features=tuple(study.features[i].tolist()),
            label=int(study.labels[i]),
            classes=study.terms.classes,
            learner=learner,
            seed=study.seed,
            secret=os.urandom(32) if study.seed is None else None,
            budget=study.budget,
            epsilon=study.terms.epsilon_direction + study.terms.epsilon_magnitude,
        )
        for i in (range(len(study)) if ordinals is None else ordinals)
    ]


class TrainedModel(msgspec.Struct, frozen=True, kw_only=True):
    """What the learner has when the run is over.

    ``cohorts`` has the number of updates in each round, ``participations`` that of each peer by its name, with those
    that came too late for an average.
    """

    parameters: tuple[float, ...]
    cohorts: tuple[int, ...]
    participations: dict[str, int]
    complete: bool


def trained(averager: Averager) -> TrainedModel:
    """Takes stock of a learner's machine."""
    return TrainedModel(
        parameters=tuple(averager.parameters.tolist()),
        cohorts=averager.cohorts,
        participations=dict(averager.participations),
        complete=averager.complete,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What an engine gives back.

    Args:
        model: What the learner has.
        facts: Everything that happened, in the order it became known.
        messages: Messages sent; None where there are none.
        bytes: Their bytes on the wire; None where there is no wire.
        seconds: What it took, by the engine's clock.
    """

    model: TrainedModel
    facts: list[Fact] = field(default_factory=list)
    messages: int | None = None
    bytes: int | None = None
    seconds: float = 0.0
