"""What a notebook needs: four functions that take keywords and give values with a ``frame()``.

Data goes in as scikit-learn takes it (X, y) and models come out as it gives them (``predict``, ``score``,
``classes_``). pandas is needed for frames only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from p2p_labeldp import config as configs
from p2p_labeldp import experiment, measuring, owndata, suggestion
from p2p_labeldp.accounting import targets, views
from p2p_labeldp.accounting.guarantee import Guarantee
from p2p_labeldp.config import Config
from p2p_labeldp.errors import ConfigurationError, naming
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.measuring import Question, Row
from p2p_labeldp.results import Noisy, Result, ViewResult

if TYPE_CHECKING:
    import pandas as pd

Engine: TypeAlias = Literal["population", "virtual", "processes"]
SIZES = (8, 16, 32, 64, 128)
ARGUMENTS = {
    "configuration": "data",
    "data.test_share": "test_size",
    "clusters.count": "clusters",
    "clusters.minimum_size": "minimum_size",
    "mechanism.target_epsilon": "epsilon",
    "mechanism.flip_probability": "flip_probability",
    "mechanism.tolerated_loss": "tolerated_loss",
    "learner.model": "model",
}
"""Of the functions below, by the keys of the configuration that they set."""


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError as exc:
        raise ConfigurationError("pandas is not installed; pip install 'p2p-labeldp[pandas]'", field="frame") from exc
    return pd.DataFrame.from_records(list(rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """What came of a round.

    Args:
        result: The summary: outcomes, clusters, views, accuracy, notes.
        noisy: The mechanism's output; train on it what you like, it costs no further privacy.
        model: Fitted to it; None if nobody reported.
        label_space: The classes.
    """

    result: Result
    noisy: Noisy
    model: Any
    label_space: LabelSpace

    @property
    def epsilon(self) -> float:
        """Against the learner alone, in the worst cluster."""
        return self._view("learner").epsilon

    @property
    def delta(self) -> float:
        """Of ``epsilon``: 1/s^2 of the smallest cluster."""
        return self._view("learner").delta

    @property
    def local_epsilon(self) -> float:
        """Against the learner with everyone else on its side, in the worst cluster."""
        return self._view("learner+all").epsilon

    @property
    def classes_(self) -> npt.NDArray[np.str_]:
        """Names of the classes, in order."""
        return np.array(self.label_space.classes)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.str_]:  # noqa: N803  scikit-learn's name
        """The classes of rows of features, shape (m, d) to (m,), encoded as those the model was trained on."""
        if self.model is None:
            raise ConfigurationError("nobody reported, so there is no model", field="model")
        named: npt.NDArray[np.str_] = self.classes_[np.asarray(self.model.predict(X), dtype=np.int64)]
        return named

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike) -> float:  # noqa: N803  scikit-learn's names
        """Share of rows whose class is predicted."""
        return float(np.mean(self.predict(X) == np.asarray(y).astype(str)))

    def frame(self) -> pd.DataFrame:
        """A row a cluster."""
        return _frame([msgspec.structs.asdict(cluster) for cluster in self.result.clusters])

    def _view(self, name: str) -> ViewResult:
        for view in self.result.views:
            if view.view == name:
                return view
        raise ConfigurationError("no cluster was large enough to take part", field="views")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounted:
    """Who learns what.

    Args:
        guarantees: One a view: the learner alone first.
    """

    guarantees: tuple[Guarantee, ...]

    @property
    def epsilon(self) -> float:
        """Against the learner alone."""
        return self.guarantees[0].epsilon

    @property
    def delta(self) -> float:
        """Of ``epsilon``."""
        return self.guarantees[0].delta

    def frame(self) -> pd.DataFrame:
        """A row a view."""
        return _frame([asdict(guarantee) for guarantee in self.guarantees])


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The least flip for a target.

    Args:
        flip_probability: f.
        epsilon: What it promises against the learner (with the colluders it was planned for) at ``delta``.
        delta: As asked, or 1/s^2.
        local_epsilon: Against the learner with everyone.
        binding: The target that asked for this much: ``learner``, ``coalition`` or ``local``.
        holding_minimum: h, with fewer peers holding an answer nobody reports; None without a tolerated loss.
    """

    flip_probability: float
    epsilon: float
    delta: float
    local_epsilon: float
    binding: str
    holding_minimum: int | None

    def frame(self) -> pd.DataFrame:
        """One row."""
        return _frame([asdict(self)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Promised, measured and learnt.

    Args:
        rows: One a cluster size, as they were asked for.
    """

    rows: tuple[Row, ...]

    def frame(self) -> pd.DataFrame:
        """A row a cluster size."""
        return _frame([msgspec.structs.asdict(row) for row in self.rows])


@naming(ARGUMENTS)
def simulate(
    *,
    X: npt.ArrayLike | None = None,  # noqa: N803  scikit-learn's name
    y: npt.ArrayLike | None = None,
    data: str | None = None,
    classes: Sequence[str] | None = None,
    epsilon: float = 1.0,
    clusters: int | None = None,
    minimum_size: int = 20,
    tolerated_loss: float = 0.05,
    test_size: float = 0.2,
    model: str = "logistic_regression",
    engine: Engine = "population",
    seed: int | None = None,
) -> Simulated:
    """Plays a round in which every row is a peer, and trains on what is reported.

    Args:
        X: Features, shape (n, d), or a frame. With ``y``, in place of ``data``.
        y: Labels, shape (n,); they are what is protected.
        data: A configuration, by name (``p2p_labeldp.config.known()``) or path; the other arguments replace its values.
        classes: The label space; read off ``y`` if not given, by which it is public that they occur.
        epsilon: Target against the learner alone at 1/s^2.
        clusters: Before merging; suggested from features and sizes if not given.
        minimum_size: Members below which a cluster is merged.
        tolerated_loss: Share of a cluster's answers that may be lost.
        test_size: Share of rows that measure the model; their labels are not protected.
        model: A key of ``p2p_labeldp.learning.erm.MODELS``.
        engine: Who plays it.
        seed: Of every coin; who knows it knows every label. None takes coins from the operating system.

    Raises:
        ConfigurationError: An argument out of range, or data that is not understood.
    """
    if (data is None) == (X is None) or (X is None) != (y is None):
        raise ConfigurationError("X and y are needed, or data in their place", field="X, y")
    experiment.check_engine(engine)
    table = None
    if X is not None and y is not None:
        table = owndata.from_arrays(X, y, classes=None if classes is None else tuple(classes))
        base = configs.from_mapping({"data": {"name": owndata.NAME}})
    else:
        assert data is not None
        base = configs.load(data)
    config = msgspec.structs.replace(
        base,
        data=msgspec.structs.replace(base.data, test_share=test_size),
        clusters=configs.Clusters(
            count=base.clusters.count if clusters is None else clusters, minimum_size=minimum_size
        ),
        mechanism=msgspec.structs.replace(
            base.mechanism, flip_probability=None, target_epsilon=epsilon, tolerated_loss=tolerated_loss
        ),
        learner=configs.Learner(model=model),  # type: ignore[arg-type]  # checked at its birth
    )
    if clusters is None and table is not None:
        config = _suggested(config, table, seed)
    done = experiment.run(config, engine=engine, seed=seed, table=table)
    label_space = experiment.split_of(config, seed=seed or 0, table=table).label_space
    return Simulated(result=done.result, noisy=done.noisy, model=done.model, label_space=label_space)


def account(
    *,
    cluster_size: int,
    flip_probability: float,
    delta: float | None = None,
    num_classes: int = 2,
    colluders: Sequence[int] = (1,),
    exchange: Literal["resample", "permute"] = "resample",
    reports: int | None = None,
    rounds: int = 1,
    fresh: bool = False,
) -> Accounted:
    """What one cluster is promised, view by view.

    Args:
        cluster_size: s.
        flip_probability: f.
        delta: For all views; if not given, 1/s^2 for the learner and the meaningful one for coalitions.
        num_classes: K.
        colluders: Sizes t of coalitions to state; those that s does not have are left out.
        exchange: ``resample``, or ``permute`` (a trusted shuffler).
        reports: r of each round; s if not given.
        rounds: R.
        fresh: Whether each round flips afresh.

    Raises:
        ConfigurationError: An argument out of range.
        ClusterTooSmall: A cluster of one without a delta.
        UnsupportedComposition: A combination that is not accounted for: an error, never a guess.
    """
    stated = views.views(
        cluster_size=cluster_size,
        flip_probability=flip_probability,
        delta=delta,
        num_classes=num_classes,
        colluders=colluders,
        exchange=exchange,
        reports=reports,
        rounds=rounds,
        fresh=fresh,
    )
    return Accounted(guarantees=tuple(stated))


def plan(
    *,
    cluster_size: int,
    epsilon: float,
    delta: float | None = None,
    num_classes: int = 2,
    local_epsilon: float | None = None,
    colluders: int = 0,
    colluder_epsilon: float | None = None,
    tolerated_loss: float | None = None,
) -> Planned:
    """The least flip that holds every target.

    Args:
        cluster_size: s.
        epsilon: Against the learner alone at ``delta``.
        delta: 1/s^2 if not given.
        num_classes: K; beyond 2 by the certified bound.
        local_epsilon: Against the learner with everyone; not asked for if None.
        colluders: t mates, following the protocol, that the learner may work with.
        colluder_epsilon: Against the learner with them, at ``delta``; ``epsilon`` if not given.
        tolerated_loss: Share of members that may fail to answer; None plans for s answers from s.

    Raises:
        ConfigurationError: A target or a share out of range.
        ClusterTooSmall: A cluster of one without a delta.
    """
    found = targets.plan(
        cluster_size=cluster_size,
        target_epsilon=epsilon,
        delta=delta,
        num_classes=num_classes,
        local_target=local_epsilon,
        colluders=colluders,
        coalition_target=colluder_epsilon,
        tolerated_loss=tolerated_loss,
    )
    return Planned(**asdict(found))


@naming(ARGUMENTS)
def measure(
    *,
    data: str = "breast-cancer",
    sizes: Sequence[int] = SIZES,
    flip_probability: float | None = None,
    epsilon: float | None = None,
    trials: int = 20_000,
    confidence: float = 0.99,
    seed: int = 0,
) -> Measured:
    """Promised, measured and learnt over cluster sizes, on a configuration of two classes.

    Args:
        data: A configuration that comes with the package.
        sizes: Of clusters.
        flip_probability: The same for all sizes; excludes ``epsilon``.
        epsilon: Target that each size's flip is planned for; 1 if neither is given.
        trials: Rounds of a cluster behind each measured bound.
        confidence: Of each measured bound.
        seed: Of the study.

    Raises:
        ConfigurationError: An unknown configuration, one of more classes, or a number out of range.
    """
    config = configs.load(data)
    if flip_probability is not None or epsilon is not None:
        mechanism = msgspec.structs.replace(config.mechanism, flip_probability=flip_probability, target_epsilon=epsilon)
        config = msgspec.structs.replace(config, mechanism=mechanism)
    question = Question(config=config, trials=trials, seed=seed, confidence=confidence)
    measuring.check(question, sizes=list(sizes))
    return Measured(rows=tuple(measuring.measure(question, size) for size in sizes))


def _suggested(config: Config, table: owndata.OwnTable, seed: int | None) -> Config:
    public_seed = experiment.PUBLIC_SEED if seed is None else seed
    found = suggestion.count_for(
        len(experiment.split_of(config, seed=public_seed, table=table).train_labels),
        config.clusters.minimum_size,
        len(table.label_space),
    )
    return msgspec.structs.replace(config, clusters=msgspec.structs.replace(config.clusters, count=found))
