"""``deploy compose|k8s``: writes what starts a learner and its peers in containers."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from p2p_labeldp.errors import ConfigurationError, naming

if TYPE_CHECKING:
    from p2p_labeldp.deployment.plan import Plan
    from p2p_labeldp.deployment.shard import Content

HELP = """Write the files that start one round in containers, its keys drawn afresh.

Whoever runs this has every peer's key and example: it is for trials, and for one owner of all examples. Peers of
several owners run `peer`, each with a key of its own.

Example:

\b
    p2p-labeldp deploy compose breast-cancer --peers 100 --shards 20 --out round
    docker compose --project-directory round --file round/compose.yaml up
"""

COMPOSE_HELP = """For one machine with Docker: compose.yaml, round.toml, and the secrets, readable by their owner alone.

Refused is what can't work there: more containers than Compose, a bridge or the subnet takes, or than memory allows.

Example:

\b
    p2p-labeldp deploy compose breast-cancer --peers 100 --shards 20 --out round
    docker compose --project-directory round --file round/compose.yaml up
    docker compose --project-directory round --file round/compose.yaml cp learner:/state/result result
"""

K8S_HELP = """For a Kubernetes cluster: peers.yaml and learner.yaml, which both hold secrets.

The files fit the API's schema; they were tried on no cluster. The learner opens the round when it starts, so it is
created when the peers run.

Example:

\b
    p2p-labeldp deploy k8s breast-cancer --peers 400 --shards 40 --image registry.example/p2p-labeldp --out round
    kubectl create -f round/peers.yaml && kubectl wait --for=jsonpath='{.status.ready}'=40 job/p2p-peers
    kubectl create -f round/learner.yaml
"""

app = typer.Typer(help=HELP, rich_markup_mode=None, add_completion=False)

Configuration: TypeAlias = Annotated[str, typer.Argument(metavar="NAME|PATH", help="Terms of the round.")]
Peers: TypeAlias = Annotated[int, typer.Option(metavar="N", help="All peers, one example each.")]
Shards: TypeAlias = Annotated[
    int | None, typer.Option(metavar="M", help="Containers they are spread over. Default: one for each.")
]
Out: TypeAlias = Annotated[str, typer.Option(metavar="DIR", help="Where to write: a new or empty directory.")]
Examples: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", help="Holds 0.json, 1.json, ... as `peer` reads them. Default: rows of the data set, a trial."
    ),
]
Image: TypeAlias = Annotated[str, typer.Option(metavar="IMAGE", help="Made by configs/deploy/build-image.")]
Overrides: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Replace a value.")
]


@app.command("compose", help=COMPOSE_HELP)
def compose(
    configuration: Configuration,
    peers: Peers,
    out: Out,
    shards: Shards = None,
    examples: Examples = None,
    image: Image = "p2p-labeldp",
    subnet: Annotated[
        str | None, typer.Option(metavar="NETWORK", help="Of the containers' network, as in 10.9.0.0/24.")
    ] = None,
    memory: Annotated[
        int | None, typer.Option(metavar="MIB", help="What the machine has for it. Default: what this one has left.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """See ``COMPOSE_HELP``."""
    from p2p_labeldp.deployment import compose as composing
    from p2p_labeldp.deployment import plan as planning
    from p2p_labeldp.deployment.files import as_yaml, secrets_owner, write
    from p2p_labeldp.network import limits

    here = limits.read()
    left = None if here.memory is None else here.memory >> 20
    with _counted(shards):
        shards = peers if shards is None else shards
        planning.check_sizes(peers=peers, shards=shards)
        planning.check_machine(
            peers=peers, shards=shards, memory_mib=left if memory is None else memory, subnet=_network(subnet)
        )
    hosts = [composing.shard_host(i) for i in range(shards)]
    made = _plan(configuration, peers, hosts, composing.LEARNER, examples, overrides, here.cores)
    uid, gid = secrets_owner()
    document = composing.document(made, image=image, user=f"{uid}:{gid}", subnet=subnet)
    heading = f"{peers} peers in {shards} containers, and a learner. Written by `p2p-labeldp deploy compose`."
    write(
        out,
        public={"compose.yaml": as_yaml([document], heading=heading), "round.toml": _source(configuration)},
        secret=_secrets(made),
    )
    typer.echo(f"{out}/compose.yaml: {peers} peers in {shards} containers, and a learner")


@app.command("k8s", help=K8S_HELP)
def k8s(
    configuration: Configuration,
    peers: Peers,
    out: Out,
    shards: Shards = None,
    examples: Examples = None,
    image: Image = "p2p-labeldp",
    overrides: Overrides = None,
) -> None:
    """See ``K8S_HELP``."""
    from p2p_labeldp.deployment import kubernetes
    from p2p_labeldp.deployment import plan as planning
    from p2p_labeldp.deployment.files import as_yaml, write
    from p2p_labeldp.network import limits

    with _counted(shards):
        shards = peers if shards is None else shards
        planning.check_sizes(peers=peers, shards=shards)
        kubernetes.check(shards)
    hosts = [kubernetes.shard_host(i) for i in range(shards)]
    made = _plan(configuration, peers, hosts, kubernetes.LEARNER, examples, overrides, limits.read().cores)
    untried = "Fits the API's schema; was tried on no cluster. Holds secrets."
    first = as_yaml(kubernetes.peers(made, image=image), heading=f"{peers} peers in {shards} pods. {untried}")
    then = as_yaml(
        kubernetes.learner(made, image=image, configuration=_source(configuration)),
        heading=f"The learner, for when the peers run: it opens the round when it starts. {untried}",
    )
    write(out, public={}, secret={"peers.yaml": first, "learner.yaml": then})
    typer.echo(f"{out}/peers.yaml: {peers} peers in {shards} pods; {out}/learner.yaml: the learner, for when they run")


def _counted(shards: int | None) -> AbstractContextManager[None]:
    """Where nobody said how many containers, a complaint about their number says where it comes from."""
    return naming({} if shards is not None else {"--shards": "--shards (not given, so --peers)"})


def _plan(
    configuration: str,
    peers: int,
    hosts: list[str],
    learner: str,
    examples: str | None,
    overrides: Sequence[str] | None,
    cores: float,
) -> Plan:
    from p2p_labeldp.deployment import plan as planning

    settings = list(overrides or [])
    with naming({"data.peers": "--peers"}):
        chosen = planning.configured(configuration, peers=peers, settings=settings)
        held = None if examples is None else [_example(examples, i) for i in range(peers)]
        return planning.make(
            chosen, peers=peers, hosts=hosts, learner=learner, examples=held, settings=settings, cores=cores
        )


def _example(directory: str, index: int) -> Content:
    import msgspec

    from p2p_labeldp.deployment.shard import Content

    file = Path(directory) / f"{index}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=Content)
    except OSError as exc:
        raise ConfigurationError(f"{str(file)!r} can't be read: {exc.strerror}", field="--examples") from exc
    except msgspec.DecodeError:
        raise ConfigurationError(
            f'{str(file)!r} is no example; {{"features": [numbers], "label": "class"}} is needed', field="--examples"
        ) from None


def _network(subnet: str | None) -> ipaddress.IPv4Network | None:
    try:
        return None if subnet is None else ipaddress.IPv4Network(subnet)
    except ValueError as exc:
        raise ConfigurationError(
            f"{subnet!r} given; a network such as 10.9.0.0/24 is needed", field="--subnet"
        ) from exc


def _source(configuration: str) -> str:
    from p2p_labeldp import config

    return config.locate(configuration).read_text(encoding="utf-8")


def _secrets(made: Plan) -> dict[str, str]:
    from p2p_labeldp.deployment.kubernetes import encoded

    shards = {f"secrets/shard-{i}.json": encoded(shard) for i, shard in enumerate(made.shards)}
    return {"secrets/learner.key": made.learner_key + "\n", **shards}
