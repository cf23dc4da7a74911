"""The sections of a configuration. The docstring under a field gives its meaning, unit, default and reason.

Values are checked when a section is made, however it is made: msgspec checks those it decodes only.
"""

from __future__ import annotations

import typing
from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

from p2p_labeldp.config.rules import Id, OneOf, Real, Text, Texts, Truth, Whole
from p2p_labeldp.config.section import Section
from p2p_labeldp.config.updates import Updates
from p2p_labeldp.errors import ConfigurationError

TopologyKind: TypeAlias = Literal["random_regular", "ring", "small_world", "star", "seeds", "file"]
ExchangeKind: TypeAlias = Literal["resample", "permute"]
MechanismKind: TypeAlias = Literal["resampling", "uniform_rr", "cluster_rr", "none"]
ModelName: TypeAlias = Literal[
    "logistic_regression", "linear_svm", "naive_bayes", "random_forest", "nearest_neighbours"
]


class Data(Section, frozen=True, kw_only=True):
    """Where the examples come from."""

    PATH: ClassVar[str] = "data"

    name: Annotated[str | None, Text()] = None
    """Name of a data set known to ``p2p_labeldp.datasets``. No default: what is studied should be said, here or by
    ``csv``."""

    csv: Annotated[str | None, Text()] = None
    """A table of one's own: a text file with a header, relative to the working directory. Excludes ``name``."""

    label: Annotated[str | None, Text()] = None
    """Column of that table whose values are protected. Goes with ``csv``."""

    classes: Annotated[tuple[str, ...] | None, Texts()] = None
    """Its classes, in order; spellings that differ in case or spaces are one. Default: read off the column, by which it
    is public that they occur."""

    leave_out: Annotated[tuple[str, ...], Texts()] = ()
    """Columns of that table that are no features. Default: those that can't be, each with a line that says so."""

    keep: Annotated[tuple[str, ...], Texts()] = ()
    """Columns of that table that are features though they look like identifiers. Default: none."""

    separator: Annotated[str | None, OneOf((",", ";", "\t", "|"))] = None
    """Between its fields. Default: found out."""

    decimal: Annotated[str | None, OneOf((".", ","))] = None
    """Its decimal sign. Default: found out, and asked for where it is not certain."""

    encoding: Annotated[str | None, Text()] = None
    """Its encoding, by a name that Python knows. Default: found out."""

    peers: Annotated[int | None, Whole(at_least=2)] = None
    """Number of peers, one training example each, at least 2. Default: all training rows, since leaving some out only
    costs accuracy; a smaller number makes quick trials."""

    test_share: Annotated[float, Real(above=0, below=1)] = 0.2
    """Share of the rows kept for measuring accuracy, above 0 and below 1. Default 0.2, the usual compromise between a
    good model and a good measurement. Held-out labels are not protected. Image sets have a published split and don't
    read it."""

    verify: Annotated[bool, Truth()] = True
    """Whether files of image sets are refused whose content is not the published one. Default true; with false they
    are used, and every result says ``unverified``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.name is None) == (self.csv is None):
            given = "neither given" if self.name is None else "given together with data.csv"
            raise ConfigurationError(f"{given}; one of data.name and data.csv is needed", field="data.name")
        if (self.csv is None) != (self.label is None):
            raise ConfigurationError("data.csv and data.label go together", field="data.label")


class Clusters(Section, frozen=True, kw_only=True):
    """The public clustering of features; peers exchange labels only within a cluster."""

    PATH: ClassVar[str] = "clusters"

    count: Annotated[int, Whole(at_least=1)] = 15
    """Number of KMeans clusters before merging, at least 1. Default 15: about 30 members each on the default data.
    More clusters keep the labels within one alike; fewer give larger clusters, which need less noise."""

    minimum_size: Annotated[int, Whole(at_least=2)] = 20
    """Members below which a cluster is merged into its nearest, at least 2 (alone one can't hide). Default 20: there
    epsilon = 1 takes a flip probability of about 0.06, and it grows quickly below."""


class Topology(Section, frozen=True, kw_only=True):
    """Who knows whom at the start; the peers find the rest of their cluster by gossip."""

    PATH: ClassVar[str] = "topology"

    kind: Annotated[TopologyKind, OneOf(typing.get_args(TopologyKind))] = "random_regular"
    """Shape of the graph of first contacts. Default ``random_regular``: connected almost surely at small degree, and
    no peer carries more than another. ``seeds`` is how deployments start, and the fastest with many clusters."""

    degree: Annotated[int, Whole(at_least=1)] = 6
    """First contacts of each peer, at least 1; read by ``random_regular``, ``small_world`` and ``seeds``. Default 6:
    the graph stays connected when a third of the peers are lost, and news crosses a thousand peers in about four
    hops."""

    path: Annotated[str | None, Text()] = None
    """Edge list for ``kind = "file"``: two ordinals a line; relative to the working directory. Default: none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.kind == "file") != (self.path is not None):
            given = f"kind = {self.kind!r} and path = {self.path!r}"
            raise ConfigurationError(
                f"{given} given; a path goes with kind 'file' and only there", field="topology.path"
            )


class Mechanism(Section, frozen=True, kw_only=True):
    """What is done to a label. Either the flip probability is given or it is planned from a target."""

    PATH: ClassVar[str] = "mechanism"

    kind: Annotated[MechanismKind, OneOf(typing.get_args(MechanismKind))] = "resampling"
    """``resampling``: flip, then swap among peers, as ``exchange.kind`` says (Algorithm 2 of the paper). On the
    population engine only: ``uniform_rr`` (every label randomized alone), ``cluster_rr`` (a trusted curator redraws
    labels from noisy distributions of their clusters, Algorithm 1), ``none`` (labels as they are, to compare with; of
    a table of one's own only with a seed). Default ``resampling``, the one without a trusted party."""

    flip_probability: Annotated[float | None, Real(at_least=0, below=1)] = None
    """Probability that a peer's label is flipped, once, 0 to (K-1)/K with K classes, the same in every cluster; 0 is
    not private, (K-1)/K (1/2 for two classes) says nothing. Excludes ``target_epsilon``. Default: planned from the
    target, cluster by cluster."""

    target_epsilon: Annotated[float | None, Real(above=0)] = None
    """Epsilon against the learner alone at delta = 1/size^2 that each cluster's flip is planned for, above 0; of
    ``uniform_rr`` and ``cluster_rr`` the epsilon of a label at delta = 0. Default 1.0 where no flip probability is
    given: the size at which the literature compares."""

    tolerated_loss: Annotated[float, Real(at_least=0, below=1)] = 0.05
    """Share of a cluster's answers that may be lost before its round is given up, at least 0 and below 1. The flip is
    planned so that the guarantee holds with any such loss. Default 0.05: a few crashed peers; more costs noise."""

    floor: Annotated[float, Real(above=0, at_most=0.5)] = 0.01
    """Of ``cluster_rr``: tau, the least probability with which a redrawn label is any one class, above 0 and at most
    1/K. A constant, never read off the labels: that would tell of them. Default 0.01, about the share of strangers in
    clusters that suit their task; larger redraws more wrongly, smaller keeps fewer labels."""

    noise_share: Annotated[float, Real(above=0, below=1)] = 0.5
    """Of ``cluster_rr``: share of epsilon spent on the noisy distributions, above 0 and below 1; the rest is for labels
    that are kept. Default 0.5."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind != "resampling" and self.flip_probability is not None:
            raise ConfigurationError(
                f"given with mechanism.kind {self.kind!r}; it goes with 'resampling', others have a target_epsilon",
                field="mechanism.flip_probability",
            )
        if self.flip_probability is not None and self.target_epsilon is not None:
            raise ConfigurationError(
                "given together with mechanism.target_epsilon; one of the two is allowed",
                field="mechanism.flip_probability",
            )
        if self.flip_probability is None and self.target_epsilon is None:
            msgspec.structs.force_setattr(self, "target_epsilon", 1.0)


class Deadlines(Section, frozen=True, kw_only=True):
    """Lengths of the phases of a round, in seconds, above 0. What is left out is chosen from the number of peers: a
    fixed length would be too short for a thousand and a waste for three."""

    PATH: ClassVar[str] = "exchange.deadlines"

    join: Annotated[float | None, Real(above=0)] = None
    """Seconds in which peers find their cluster, until the roster is signed. Default: from the number of peers."""

    exchange: Annotated[float | None, Real(above=0)] = None
    """Seconds in which each peer asks its mate. Default: from the number of peers."""

    closing: Annotated[float | None, Real(above=0)] = None
    """Seconds in which the peers tell each other who was able to answer. Default: from the number of peers."""

    report: Annotated[float | None, Real(above=0)] = None
    """Seconds over which the reports leave, each at a random time. Default: from the number of peers."""


class Exchange(Section, frozen=True, kw_only=True):
    """How flipped labels change hands."""

    PATH: ClassVar[str] = "exchange"

    kind: Annotated[ExchangeKind, OneOf(typing.get_args(ExchangeKind))] = "resample"
    """``resample``: each peer asks one uniformly chosen mate, the peer-to-peer mechanism. ``permute``: a random
    permutation by a trusted shuffler, a comparison that only the population engine runs. Default ``resample``."""

    deadlines: Deadlines = msgspec.field(default_factory=Deadlines)
    """Lengths of the phases."""


class Network(Section, frozen=True, kw_only=True):
    """How peers are packed and how often they talk."""

    PATH: ClassVar[str] = "network"

    peers_per_process: Annotated[int, Whole(at_least=1)] = 1
    """Peers in one operating system process, at least 1. Default 1: each example lives in a process of its own; more
    saves memory, each peer keeping its own address, key and state."""

    gossip_period: Annotated[float | None, Real(above=0)] = None
    """Seconds between two gossip exchanges of a peer, above 0. Default: from the number of peers, like the deadlines,
    since many peers of a study share one machine's cores."""


class Policy(Section, frozen=True, kw_only=True):
    """The limits a peer sets itself; it takes no part in a round that passes one. No limit unless given."""

    PATH: ClassVar[str] = "policy"

    epsilon: Annotated[float | None, Real(at_least=0)] = None
    """Largest epsilon against the learner alone, at the roster's delta, at least 0. Default: no limit."""

    local_epsilon: Annotated[float | None, Real(at_least=0)] = None
    """Largest epsilon against the learner with everyone else, ln((1 - f)(K - 1)/f), at least 0. Default: no limit."""

    colluders: Annotated[int | None, Whole(at_least=0)] = None
    """Number of mates assumed to tell the learner what they see, at least 0; read with ``colluder_epsilon``.
    Default: none assumed."""

    colluder_epsilon: Annotated[float | None, Real(at_least=0)] = None
    """Largest epsilon against the learner with ``colluders`` mates, at least 0. Default: no limit."""

    minimum_size: Annotated[int, Whole(at_least=2)] = 3
    """Least number of members of a cluster that the peer takes part in, at least 2. Default 3: among two, the other
    one knows whose label it was not."""

    enrolment_key: Annotated[str | None, Id()] = None
    """Id of the key that vouches for peers (``p2p-labeldp enrol``). A learner puts it into its manifest; a round admits
    by this key alone. For peers of their own: those of a study have no enrolments. Default: none, open admission."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.colluder_epsilon is not None and self.colluders is None:
            raise ConfigurationError(
                "given without policy.colluders; a limit on a coalition needs its number of mates, from 0 up",
                field="policy.colluder_epsilon",
            )
        if self.colluders is not None and self.colluder_epsilon is None:
            raise ConfigurationError(
                "given without policy.colluder_epsilon; a number of mates alone limits nothing",
                field="policy.colluders",
            )


class Learner(Section, frozen=True, kw_only=True):
    """What is fitted to the reports."""

    PATH: ClassVar[str] = "learner"

    model: Annotated[ModelName, OneOf(typing.get_args(ModelName))] = "logistic_regression"
    """Classifier, from the table in ``p2p_labeldp.learning.erm``. Default ``logistic_regression``, the model of the
    paper; the choice costs no privacy, the reports being private already. It alone is fitted with the loss that makes
    up for ``uniform_rr``; the others learn the noisy labels as they are."""


class Output(Section, frozen=True, kw_only=True):
    """What the result holds beside the summary."""

    PATH: ClassVar[str] = "output"

    reports: Annotated[bool, Truth()] = False
    """Whether the result lists every peer's report. Default false: for studies only, and long."""


class Config(Section, frozen=True, kw_only=True):
    """A whole configuration."""

    data: Data
    """Where the examples come from; the only section without a default."""

    clusters: Clusters = msgspec.field(default_factory=Clusters)
    """The public clustering."""

    topology: Topology = msgspec.field(default_factory=Topology)
    """Who knows whom at the start."""

    mechanism: Mechanism = msgspec.field(default_factory=Mechanism)
    """What is done to a label."""

    exchange: Exchange = msgspec.field(default_factory=Exchange)
    """How flipped labels change hands."""

    network: Network = msgspec.field(default_factory=Network)
    """How peers are packed and how often they talk."""

    policy: Policy = msgspec.field(default_factory=Policy)
    """The limits a peer sets itself."""

    learner: Learner = msgspec.field(default_factory=Learner)
    """What is fitted to the reports."""

    updates: Updates = msgspec.field(default_factory=Updates)
    """Rounds of private updates, in place of a round of labels; read by ``federate`` alone."""

    output: Output = msgspec.field(default_factory=Output)
    """What the result holds beside the summary."""
