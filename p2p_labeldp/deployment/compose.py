"""Containers on one machine, for ``docker compose``."""

from __future__ import annotations

from typing import Any

from p2p_labeldp.deployment.plan import LEARNER_PORT, OPERATOR_PORT, Plan

LEARNER = "learner"


def shard_host(index: int) -> str:
    """The name of a container on its network."""
    return f"peers-{index}"


def document(plan: Plan, *, image: str, user: str, subnet: str | None) -> dict[str, Any]:
    """The Compose file.

    Args:
        plan: The deployment.
        image: The image of both sides.
        user: ``uid:gid`` that the secrets belong to: Compose hands files over as they are.
        subnet: Of the network; Docker's choice if not given.
    """
    shards = {shard_host(i): _shard(plan, i, image=image, user=user) for i in range(len(plan.shards))}
    network: dict[str, Any] = {"internal": True}  # nobody here needs the rest of the world
    if subnet is not None:
        network["ipam"] = {"config": [{"subnet": subnet}]}
    return {
        "services": {LEARNER: _learner(plan, image=image, user=user), **shards},
        "networks": {"round": network},
        "volumes": {f"{name}-state": {} for name in (LEARNER, *shards)},
        "secrets": {
            "learner-key": {"file": "./secrets/learner.key"},
            **{f"shard-{i}": {"file": f"./secrets/shard-{i}.json"} for i in range(len(plan.shards))},
        },
    }


def _service(name: str, *, image: str, user: str, mib: int, files: int) -> dict[str, Any]:
    return {
        "image": image,
        "hostname": name,
        "user": user,
        "read_only": True,
        "tmpfs": ["/tmp"],  # noqa: S108  of the container
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "restart": "on-failure",
        "stop_grace_period": "10s",
        "mem_limit": f"{mib}m",
        "ulimits": {"nofile": {"soft": files, "hard": files}},
        "networks": ["round"],
        "volumes": [f"{name}-state:/state"],
    }


def _learner(plan: Plan, *, image: str, user: str) -> dict[str, Any]:
    service = _service(LEARNER, image=image, user=user, mib=plan.learner_mib, files=plan.open_files)
    service["volumes"].append("./round.toml:/round.toml:ro")
    service["secrets"] = ["learner-key"]
    service["depends_on"] = [shard_host(i) for i in range(len(plan.shards))]  # it opens the round when it starts
    service["command"] = [*learner_arguments(plan, host=LEARNER), "--key", "/run/secrets/learner-key"]
    return service


def _shard(plan: Plan, index: int, *, image: str, user: str) -> dict[str, Any]:
    name = shard_host(index)
    service = _service(name, image=image, user=user, mib=plan.shard_mib, files=plan.open_files)
    service["secrets"] = [f"shard-{index}"]
    service["command"] = ["shard", f"/run/secrets/shard-{index}", *SHARD_OPTIONS]
    return service


EVERYWHERE = "0.0.0.0"  # noqa: S104  of a container, which others reach by name
OPERATOR = f"127.0.0.1:{OPERATOR_PORT}"
SHARD_OPTIONS = ["--state", "/state", "--bind", EVERYWHERE, "--operator", OPERATOR, "--json", "--log-json"]


def learner_arguments(plan: Plan, *, host: str) -> list[str]:
    """What a learner in a container is started with, but for its key."""
    settings = [text for setting in plan.settings for text in ("--set", setting)]
    return [
        *("learner", "/round.toml", *settings, "--listen", f"{host}:{LEARNER_PORT}", "--bind", EVERYWHERE),
        *("--state", "/state/learner.state", "--used", "/state/learner.used", "--out", "/state/result"),
        *("--operator", OPERATOR, "--json", "--log-json"),
    ]
