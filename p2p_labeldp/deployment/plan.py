"""Who is in which container, and what the containers take.

Whoever plans a deployment draws every peer's key: it is for trials, and for one owner of all the examples. Peers of
several owners run ``peer``, each with a key of its own.

What can't work is refused here, before a file is written: each limit below is of Linux, of Docker or of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from p2p_labeldp import config, experiment
from p2p_labeldp.config import Config
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.deployment.shard import Content, Limits, Member, Shard
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.transport import format_address
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.randomness import secure

LEARNER_PORT, FIRST_PORT, OPERATOR_PORT = 7800, 10_000, 7900

BRIDGE_PORTS = 1023  # of a Linux bridge: BR_MAX_PORTS less one
COMPOSE_CONTAINERS = 100  # beyond, Compose itself stalls
INDEXES = 100_000  # completions of an Indexed Job whose names and indexes are all kept
SECRET_BYTES = 1 << 20  # of a Kubernetes Secret
OPEN_FILES = 1 << 20  # of a process, where an administrator has not raised fs.nr_open
PEER_FILES = 544  # connections a peer's server accepts at once, and its own files
SHARED_FILES = 1024

# Of one container, in MiB: what it takes, as measured, and what it is allowed.
SHARD_MIB, PEER_MIB, LEARNER_MIB = 50, 1.0, 160
ALLOWANCE = 2.0

START_SECONDS = 2.0  # of CPU, until a container's peers listen


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A deployment.

    Args:
        settings: ``section.key=value`` each, that the learner is started with on top of the configuration file.
        learner_key: The learner's secret, hex.
        shards: What each container of peers is given.
    """

    settings: tuple[str, ...]
    learner_key: str
    shards: tuple[Shard, ...]

    @property
    def largest(self) -> int:
        """Peers of the largest shard."""
        return max(len(shard.peers) for shard in self.shards)

    @property
    def shard_mib(self) -> int:
        """Memory that a container of peers is allowed."""
        return round(ALLOWANCE * (SHARD_MIB + PEER_MIB * self.largest))

    @property
    def learner_mib(self) -> int:
        """Memory that the learner is allowed."""
        return round(ALLOWANCE * (LEARNER_MIB + PEER_MIB * sum(len(shard.peers) for shard in self.shards)))

    @property
    def open_files(self) -> int:
        """Open files that a container is allowed."""
        return SHARED_FILES + PEER_FILES * max(self.largest, 8)


def check_sizes(*, peers: int, shards: int) -> None:
    """Refuses numbers that go with no platform.

    Raises:
        ConfigurationError: Fewer than two peers, no shard, or an empty one; more peers in one than a process has ports
            and open files for.
    """
    if peers < 2:
        raise ConfigurationError(f"{peers} given; 2 or more are needed", field="--peers")
    if not 1 <= shards <= peers:
        raise ConfigurationError(f"{shards} given; 1 to {peers}, the number of peers, are possible", field="--shards")
    largest = -(-peers // shards)
    most = min((OPEN_FILES - SHARED_FILES) // PEER_FILES, 65_535 - FIRST_PORT)
    if largest > most:
        raise ConfigurationError(
            f"{shards} given: {largest} peers in one container; its open files suffice for {most}, so"
            f" {-(-peers // most)} or more are needed",
            field="--shards",
        )


def check_machine(*, peers: int, shards: int, memory_mib: int | None, subnet: IPv4Network | None) -> None:
    """Refuses what a machine with Docker can't hold.

    Args:
        peers: All peers.
        shards: Containers of peers.
        memory_mib: What there is for them; not checked if not known.
        subnet: Of the bridge, if it is given.

    Raises:
        ConfigurationError: Too many for the bridge, the subnet, Compose or the memory.
    """
    containers = shards + 1
    if containers > BRIDGE_PORTS:
        raise ConfigurationError(
            f"{shards} given; a bridge has {BRIDGE_PORTS} ports, one of them the learner's, so {BRIDGE_PORTS - 1} or"
            " fewer are possible",
            field="--shards",
        )
    if subnet is not None and containers > subnet.num_addresses - 3:  # network, broadcast, gateway
        raise ConfigurationError(
            f"{subnet} given; it has {max(subnet.num_addresses - 3, 0)} addresses to give, {containers} are needed",
            field="--subnet",
        )
    if containers > COMPOSE_CONTAINERS:
        raise ConfigurationError(
            f"{shards} given; Compose starts {COMPOSE_CONTAINERS} containers, one of them the learner's, so"
            f" {COMPOSE_CONTAINERS - 1} or fewer are possible: more peers in each, or Kubernetes",
            field="--shards",
        )
    needed = round(LEARNER_MIB + SHARD_MIB * shards + PEER_MIB * 2 * peers)
    if memory_mib is not None and needed > memory_mib:
        raise ConfigurationError(
            f"{shards} given; {containers} containers take {needed} MiB, and there are {memory_mib} MiB: more peers in"
            " each, or a machine with more (--memory says how much)",
            field="--shards",
        )


def make(
    chosen: Config,
    *,
    peers: int,
    hosts: Sequence[str],
    learner: str,
    examples: Sequence[Content] | None,
    settings: Sequence[str],
    cores: float,
) -> Plan:
    """Draws keys and puts the peers into their containers.

    Args:
        chosen: The learner's configuration, ``settings`` included.
        peers: All peers.
        hosts: How the others reach each container of peers.
        learner: How they reach the learner.
        examples: One per peer; rows of the configuration's data set if not given.
        settings: As given on the command line.
        cores: Of the machine that starts the containers.

    Raises:
        ConfigurationError: Something in it is impossible.
    """
    if chosen.policy.enrolment_key is not None:
        raise ConfigurationError("given; whoever deploys runs all peers, and none has an enrolment", field="policy")
    prepared = experiment.prepare(chosen, engine="processes", seed=experiment.PUBLIC_SEED)
    study, terms = prepared.study, prepared.study.terms
    least = int(prepared.sizes.min())
    if least < terms.minimum_size:
        raise ConfigurationError(
            f"{peers} given; a cluster would have {least} members, and {terms.minimum_size} are needed", field="--peers"
        )
    if examples is None:
        examples = [
            Content(features=row.tolist(), label=terms.classes[int(label)])
            for row, label in zip(study.features, study.labels, strict=True)
        ]
    _check_examples(examples, classes=terms.classes, dimension=study.features.shape[1])
    given = chosen.exchange.deadlines.join
    join = prepared.pace.join + START_SECONDS * len(hosts) / max(cores, 1.0) if given is None else given
    learner_key = secure().to_hex()
    at_learner = Address(_id(learner_key), learner, LEARNER_PORT)
    keys = [secure().to_hex() for _ in range(peers)]
    # Neighbours by ordinal, dealt out in turn: the peers of one container are no cluster.
    places = [(i % len(hosts), FIRST_PORT + i // len(hosts)) for i in range(peers)]
    addresses = [Address(_id(key), hosts[shard], port) for key, (shard, port) in zip(keys, places, strict=True)]
    limits = Limits(
        max_epsilon=chosen.policy.epsilon,
        max_local_epsilon=chosen.policy.local_epsilon,
        colluders=chosen.policy.colluders,
        max_colluder_epsilon=chosen.policy.colluder_epsilon,
        minimum_size=chosen.policy.minimum_size,
    )

    def member(i: int) -> Member:
        contacts = [format_address(addresses[j]) for j in study.neighbours[i]]
        return Member(key=keys[i], port=places[i][1], example=examples[i], contacts=contacts)

    shards = tuple(
        Shard(
            learner=format_address(at_learner),
            classes=list(terms.classes),
            host=host,
            limits=limits,
            peers=[member(i) for i in range(peers) if places[i][0] == shard],
        )
        for shard, host in enumerate(hosts)
    )
    return Plan(
        settings=(*settings, f"data.peers={peers}", f"exchange.deadlines.join={join:.0f}"),
        learner_key=learner_key,
        shards=shards,
    )


def configured(configuration: str, *, peers: int, settings: Sequence[str]) -> Config:
    """The configuration with so many peers."""
    return config.load(configuration, [*settings, f"data.peers={peers}"])


def _id(key: str) -> bytes:
    from p2p_labeldp.randomness import Secret

    return Keys(Secret(bytes.fromhex(key)).identity()).peer_id


def _check_examples(examples: Sequence[Content], *, classes: Sequence[str], dimension: int) -> None:
    for i, example in enumerate(examples):
        if example.label not in classes:  # which file, never which label
            raise ConfigurationError(f"the label of {i}.json is none of {', '.join(classes)}", field="--examples")
        if len(example.features) != dimension:
            raise ConfigurationError(
                f"{i}.json has {len(example.features)} features; {dimension} are needed", field="--examples"
            )
