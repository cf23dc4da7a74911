"""One run's result, and the directory that keeps it.

A result is a value: what was run (configuration hash, seed, versions), how the round ended for its peers, what each
cluster's roster promises, how well a model trained on the reports does, and what it took. Scripts rely on the names of
its fields. As JSON an infinity is the string ``"inf"``, since JSON has no number for it; NaN is no result at all.

A run's directory holds

- ``result.json``: the result, written last: where it is, the rest is whole
- ``facts.jsonl``: what happened, a fact a line (``facts.decode`` reads one)
- ``noisy.csv``: the mechanism's output, a row a report: the features, ``cluster``, and ``label``, an index into the
  classes of the data set. Training on it, however often, costs no further privacy
- ``config.json``: the configuration, every default written out; its SHA-256 is the result's ``config_hash``
- what ``statement`` adds: ``guarantee.json``, and ``evidence.json`` where there is any
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import numpy.typing as npt

from p2p_labeldp import facts as fact_types
from p2p_labeldp.config import Config
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Ended, Fact, Name, Outcome

CLAIM = ".running"
"""Stands in a directory, locked, while its run lasts, so that a second run refuses it. A run that was killed holds no
lock: what it left behind, and nothing else, may be in a directory that is claimed anew."""
_PARTIAL = ".partial"


class ClusterResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the roster of one cluster promises its members."""

    id: int
    """Number of the cluster."""
    size: int
    """s, members of the roster."""
    flip_probability: float | None
    """Probability that a member's label was flipped before it was told; null where it depends on the cluster."""
    epsilon: float
    """Upper bound against the learner alone, at ``delta``, whoever of the roster fails to answer; infinite without
    privacy."""
    delta: float
    """1/s^2; 0 of a mechanism in one place."""
    local_epsilon: float
    """ln((1 - f)(K - 1)/f): against a learner with everybody else on its side, at delta = 0. Infinite where a curator
    sees the labels."""


class ViewResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one party can learn of a label, in the worst of the clusters."""

    view: str
    """``learner`` (alone), ``learner+1`` (with a mate that follows the protocol and keeps logs), ``learner+all`` (with
    everyone else), ``mates`` (without the learner), ``curator`` (who is trusted with the labels)."""
    epsilon: float
    """Upper bound at ``delta``; infinite without privacy."""
    delta: float
    """Where ``epsilon`` holds: 1/s^2 for the learner alone; for a coalition the probability of its asking the victim
    comes on top."""
    method: str
    """How it was found; ``bound`` where it may be more than is learnt."""


class Accuracy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Share of held-out rows that a model labels rightly."""

    private: float | None
    """Of the model trained on the reports; null if there were none."""
    non_private: float | None
    """Of the same model trained on the true labels; null where these are nobody's to look at: in a deployment, and in
    a run of own data without a seed."""
    majority: float | None
    """Of always saying the commonest true label; null likewise."""
    held_out: int | None = None
    """How many rows that is a share of; left out of results that do not tell."""


class ReportedLabel(msgspec.Struct, frozen=True, kw_only=True):
    """One report: whose it is, and the flipped label, of some mate, in it."""

    peer: int | str
    cluster: int
    label: int


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run."""

    peers: int
    """How many took part."""
    outcomes: dict[str, int]
    """How the round ended, for how many peers; outcomes that nobody had are left out."""
    clusters: list[ClusterResult]
    """By id, those that got a roster."""
    views: list[ViewResult]
    """Who learns what, whichever the cluster; empty if none got a roster."""
    accuracy: Accuracy
    """Of the models."""
    seconds: dict[str, float]
    """Length of each phase, and ``total``. The phases of a round on the virtual engine are those of its virtual clock;
    ``total`` is always real time."""
    messages: int | None
    """Messages sent, requests and replies; null where there are none."""
    bytes: int | None
    """Their bytes on the wire; null where there is no wire."""
    config_hash: str
    """SHA-256 of the configuration."""
    seed: int | None
    """Every coin's, in a study; null otherwise. Who knows it knows every label's flip."""
    versions: dict[str, str]
    """Of this package, Python and what it computed with."""
    complete: bool = True
    """False if the round was ended before its time; what was reported until then counts."""
    unverified: bool = False
    """Whether the data are not the published ones; left out unless they are not."""
    reports: list[ReportedLabel] | None = None
    """By peer; left out unless asked for."""
    notes: list[str] = []
    """Of own data: how it was read, and what to beware of. None of them depends on who has which label."""

    @property
    def study(self) -> bool:
        """Whether the coins came from a seed: then nothing is private, whatever the epsilons say of other runs."""
        return self.seed is not None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noisy:
    """The mechanism's output: what the learner may learn from, a row a report, ordered by peer.

    Args:
        peers: Who reported, shape (m,).
        clusters: Their clusters, shape (m,).
        features: Their features, shape (m, d).
        labels: The flipped label of some mate of theirs, or their own noisy label, shape (m,), an index into the label
            space.
        targets: Soft targets of a corrected loss, shape (m, K); None where the loss is the ordinary one.
        names: Of the features, if they have names.
    """

    peers: Sequence[int | str]
    clusters: npt.NDArray[np.int64]
    features: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    targets: npt.NDArray[np.float64] | None = None
    names: tuple[str, ...] | None = None

    def reports(self) -> list[ReportedLabel]:
        """As the result lists them."""
        columns = zip(self.peers, self.clusters.tolist(), self.labels.tolist(), strict=True)
        return [ReportedLabel(peer=peer, cluster=cluster, label=label) for peer, cluster, label in columns]


def count_outcomes(facts: Iterable[Fact], peers: int) -> dict[str, int]:
    """How the round ended for ``peers`` peers. Of whom no end is known, it failed."""
    ends: dict[Name, str] = {}
    for fact in facts:
        if isinstance(fact, Ended):
            ends.setdefault(fact.peer, fact.outcome.value)
    counts = Counter(ends.values())
    counts[Outcome.FAILED.value] += peers - len(ends)
    return {outcome.value: counts[outcome.value] for outcome in Outcome if counts[outcome.value]}


def to_json(result: Result, *, indent: int | None = None) -> str:
    """The result as a JSON object.

    Raises:
        ValueError: A NaN: a number that was never computed is a defect, not a result.
    """
    return json.dumps(_without_infinities(msgspec.to_builtins(result)), indent=indent, allow_nan=False)


def from_json(text: str | bytes) -> Result:
    """The inverse of ``to_json``.

    Raises:
        ConfigurationError: No result.
    """
    try:
        return msgspec.convert(json.loads(text), Result, strict=False)  # not strict: "inf" is a number
    except (ValueError, RecursionError) as exc:  # json's and msgspec's errors are ValueErrors
        raise ConfigurationError(f"no result of a run: {exc}", field="result.json") from exc


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_infinities(item) for item in value]
    return "inf" if value == math.inf else value


class RunDirectory:
    """Where one run is kept. Made by ``claimed``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(
        self,
        *,
        result: Result,
        facts: Iterable[Fact],
        noisy: Noisy,
        config: Config,
        more: Callable[[str], Mapping[str, str]] = lambda _digest: {},
    ) -> None:
        """Writes the files, each whole or not at all, the result last.

        Args:
            result: The result.
            facts: What happened.
            noisy: The reports.
            config: The configuration.
            more: Given the SHA-256 (hex) of ``facts.jsonl``, the contents of further files by their names.
        """
        digest = hashlib.sha256()
        self._replace("config.json", lambda file: file.write(msgspec.json.encode(config, order="sorted").decode()))
        self._replace("facts.jsonl", lambda file: file.writelines(_lines(facts, digest.update)))
        self._replace("noisy.csv", lambda file: _write_noisy(noisy, file))
        for name, text in more(digest.hexdigest()).items():
            self._replace(name, partial(_write_text, text))
        self._replace("result.json", lambda file: file.write(to_json(result, indent=2) + "\n"))

    def _replace(self, name: str, write: Callable[[IO[str]], object]) -> None:
        partial = self.path / f".{name}{_PARTIAL}"
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            write(file)
        partial.replace(self.path / name)


@contextmanager
def claimed(path: str | Path) -> Iterator[RunDirectory]:
    """Claims a directory for one run, before the run starts: a new one, or one that is empty.

    If nothing has been written when the claim ends, a directory that was made for it is gone again.

    Raises:
        ConfigurationError: It holds something, is no directory, or can't be written to.
    """
    directory = Path(path)
    made, claim = [], -1
    try:
        made = [d for d in (directory, *directory.parents) if not d.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        first = _content(directory)
        if first is None:
            claim = os.open(directory / CLAIM, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            first = _content(directory)  # of a run that has ended between the two
            if first is not None:
                os.close(claim)
    except FileExistsError as exc:
        raise ConfigurationError(f"{str(path)!r} given; it is no directory", field="--out") from exc
    except BlockingIOError as exc:
        os.close(claim)
        raise ConfigurationError(f"{str(path)!r} given; another run is being written there", field="--out") from exc
    except OSError as exc:
        raise ConfigurationError(f"{str(path)!r} can't be written to: {exc.strerror}", field="--out") from exc
    except ValueError as exc:  # a path with a null character
        raise ConfigurationError(f"{str(path)!r} given; {exc}", field="--out") from exc
    if first is not None:
        raise ConfigurationError(
            f"{str(path)!r} is not empty (it holds {first!r}); a new or an empty directory is needed",
            field="--out",
        )
    try:
        yield RunDirectory(directory)
    finally:
        (directory / CLAIM).unlink(missing_ok=True)
        for partial in directory.glob(f".*{_PARTIAL}"):
            partial.unlink()
        os.close(claim)
        with suppress(OSError):  # it holds the run, or somebody else's files
            for new in made:
                new.rmdir()


def _content(directory: Path) -> str | None:
    with os.scandir(directory) as entries:
        names = (entry.name for entry in entries)
        return next((name for name in names if name != CLAIM and not name.endswith(_PARTIAL)), None)


def _lines(facts: Iterable[Fact], told: Callable[[bytes], object]) -> Iterator[str]:
    for fact in facts:
        line = fact_types.encode(fact) + b"\n"
        told(line)
        yield line.decode()


def _write_text(text: str, file: IO[str]) -> None:
    file.write(text)


def _write_noisy(noisy: Noisy, file: IO[str]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    names = noisy.names or [f"x{i}" for i in range(noisy.features.shape[1])]
    writer.writerow([*names, "cluster", "label"])
    columns = zip(noisy.features, noisy.clusters.tolist(), noisy.labels.tolist(), strict=True)
    writer.writerows([*row.tolist(), cluster, label] for row, cluster, label in columns)
