"""One experiment from configuration to result."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any

import p2p_labeldp
from p2p_labeldp import central, promise
from p2p_labeldp.config import Config, config_hash
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.experiment import learning, playing, preparing
from p2p_labeldp.experiment.playing import Progress, Release, Silence
from p2p_labeldp.facts import Fact, Opened
from p2p_labeldp.owndata import OwnTable
from p2p_labeldp.results import Accuracy, Noisy, Result
from p2p_labeldp.statement import Basis
from p2p_labeldp.statement.happened import tells_who_asked_whom

_VERSIONED = ("numpy", "scipy", "scikit-learn", "networkx", "msgspec", "cryptography", "pynacl", "aiohttp")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """What came of an experiment.

    Args:
        result: The summary.
        facts: Everything that happened; can be gone through more than once.
        noisy: What the learner may learn from.
        config: The configuration.
        basis: What else its statement is made of.
        model: Fitted to ``noisy``; None if there are no reports.
        yardsticks: Works out what ``yardsticks`` does; where this machine holds no true labels, None.
    """

    result: Result
    facts: Iterable[Fact]
    noisy: Noisy
    config: Config
    basis: Basis
    model: Any = None
    yardsticks: Callable[[], tuple[float, float]] | None = None


def run(
    config: Config,
    *,
    engine: str,
    seed: int | None,
    progress: Progress | None = None,
    table: OwnTable | None = None,
    data_directory: str | None = None,
) -> Run:
    """Prepares an experiment, plays its round, trains and measures.

    Args:
        config: What to run.
        engine: ``processes``, ``virtual`` or ``population``.
        seed: Of the study. The same one gives the same transcript, reports and accuracy on every engine. None, for own
            data, gives another round every time.
        progress: Is told how far it is.
        table: Own data, in place of what the configuration names.
        data_directory: As in ``prepare``.

    Raises:
        ConfigurationError: Something is impossible; nothing was started.
        TransportError: The processes could not be started.
    """
    told = Silence() if progress is None else progress
    began = time.monotonic()
    if config.policy.enrolment_key is not None:
        raise ConfigurationError(
            "given; the peers of a study have no enrolments, those of the learner command bring theirs",
            field="policy.enrolment_key",
        )
    prepared = preparing.prepare(config, engine=engine, seed=seed, table=table, data_directory=data_directory)
    told.playing(peers=len(prepared.study), clusters=len(prepared.sizes), engine=engine, pace=prepared.pace)
    played = playing.play(prepared, told)
    told.learning()
    trained = time.monotonic()
    model = learning.fit(prepared, played.noisy)
    accuracy = learning.accuracy_of(prepared, model)
    accounting = time.monotonic()
    if prepared.mechanism is None:
        clusters = promise.of_clusters(played.rosters, config, len(prepared.split.label_space))
        views = promise.of_views(played.rosters, clusters, config, len(prepared.split.label_space))
    else:
        clusters = central.of_clusters(prepared.mechanism, prepared.sizes.tolist())
        views = central.of_views(prepared.mechanism)
    ended = time.monotonic()
    result = Result(
        peers=len(prepared.study),
        outcomes=played.outcomes,
        clusters=clusters,
        views=views,
        accuracy=accuracy,
        seconds={
            "prepare": prepared.seconds,
            **played.seconds,
            "learn": accounting - trained,
            "account": ended - accounting,
            "total": ended - began,
        },
        messages=played.messages,
        bytes=played.bytes,
        config_hash=config_hash(config),
        seed=seed,
        versions=versions(),
        unverified=not prepared.split.verified,
        reports=played.noisy.reports() if config.output.reports else None,
        notes=list(prepared.notes),
    )
    return Run(
        result=result,
        facts=played.facts if seed is not None else _Shareable(played.facts),
        noisy=played.noisy,
        config=config,
        basis=playing.basis_of(prepared, played),
        model=model,
        yardsticks=partial(learning.yardsticks, prepared),
    )


def accuracy(config: Config, *, seed: int, release: Release | None = None) -> tuple[Accuracy, list[int]]:
    """How well models do after a round on the population engine, and the sizes of its clusters. Nothing is accounted.

    Args:
        config: What to run.
        seed: Of the study.
        release: In place of the engine.

    Raises:
        ConfigurationError: Something is impossible.
    """
    prepared = preparing.prepare(config, engine="population", seed=seed)
    noisy = playing.play(prepared, Silence()).noisy if release is None else playing.released(prepared, release)
    return learning.accuracy_of(prepared, learning.fit(prepared, noisy)), prepared.sizes.tolist()


def versions() -> dict[str, str]:
    """Of everything a result depends on."""
    found = {name.replace("-", "_"): metadata.version(name) for name in _VERSIONED}
    return {"p2p_labeldp": p2p_labeldp.__version__, "python": platform.python_version(), **found}


@dataclass(frozen=True, slots=True)
class _Shareable:
    """Facts without who asked whom, which joins a report to the label's owner: with it, what a run keeps would promise
    the local epsilon only. What peers send each other tells it, too; what they send the learner, the learner knows."""

    facts: Iterable[Fact]

    def __iter__(self) -> Iterator[Fact]:
        learner = {fact.id for fact in self.facts if isinstance(fact, Opened)}
        for fact in self.facts:
            if not tells_who_asked_whom(fact, learner):
                yield fact
