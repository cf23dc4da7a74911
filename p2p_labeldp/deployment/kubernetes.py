"""A cluster: peers as an Indexed Job, a headless service that names its pods, the learner as a Job of its own.

Each pod of peers sees only its own file of secrets; the node that runs it has them all. State lives as long as the pod:
a container that dies in its pod goes on where it was, a pod that is lost takes along what it knew of its spent labels.
"""

from __future__ import annotations

from typing import Any

import msgspec

from p2p_labeldp.deployment.compose import OPERATOR, SHARD_OPTIONS, learner_arguments
from p2p_labeldp.deployment.plan import FIRST_PORT, INDEXES, LEARNER_PORT, SECRET_BYTES, Plan
from p2p_labeldp.errors import ConfigurationError

PEERS, LEARNER = "p2p-peers", "p2p-learner"
USER = 10_001  # of the image
_HEALTH = (
    "import http.client as h; c = h.HTTPConnection(*'{0}'.split(':'), timeout=5); c.request('GET', '/healthz');"
    " raise SystemExit(c.getresponse().status != 200)"
)


def shard_host(index: int) -> str:
    """The name of a pod: its host name, the Job's with the index, in the headless service."""
    return f"{PEERS}-{index}.{PEERS}"


def check(shards: int) -> None:
    """Refuses more shards than a Job has indexes.

    Raises:
        ConfigurationError: It does.
    """
    if shards > INDEXES:
        raise ConfigurationError(f"{shards} given; an Indexed Job has {INDEXES} or fewer", field="--shards")


def peers(plan: Plan, *, image: str) -> list[dict[str, Any]]:
    """What is created first: the peers, which wait for the learner.

    Raises:
        ConfigurationError: A shard is too long for a Secret.
    """
    count = len(plan.shards)
    secrets = [_secret(f"{PEERS}-{i}", f"shard-{i}.json", text) for i, text in enumerate(map(encoded, plan.shards))]
    sources = [{"secret": {"name": f"{PEERS}-{i}"}} for i in range(count)]
    pod = _pod(
        PEERS,
        image=image,
        arguments=["shard", "/secrets/shard.json", *SHARD_OPTIONS],
        mib=plan.shard_mib,
        port=FIRST_PORT,
        mounts=[
            {
                "name": "secrets",
                "mountPath": "/secrets/shard.json",
                "subPathExpr": "shard-$(JOB_COMPLETION_INDEX).json",
                "readOnly": True,
            }
        ],
        volumes=[{"name": "secrets", "projected": {"defaultMode": 0o440, "sources": sources}}],
    )
    pod["subdomain"] = PEERS
    field = {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
    pod["containers"][0]["env"] = [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": field}}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": PEERS},
        # Peers find each other before they are ready: finding each other is what makes them so.
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": PEERS}},
    }
    job = _job(PEERS, pod)
    job["spec"] |= {"completionMode": "Indexed", "completions": count, "parallelism": count}
    return [service, *secrets, job]


def learner(plan: Plan, *, image: str, configuration: str) -> list[dict[str, Any]]:
    """What is created when the peers run: the learner, which opens the round when it starts.

    Args:
        plan: The deployment.
        image: The image.
        configuration: Text of the configuration file.
    """
    pod = _pod(
        LEARNER,
        image=image,
        arguments=[*learner_arguments(plan, host=LEARNER), "--key", "/secrets/learner.key"],
        mib=plan.learner_mib,
        port=LEARNER_PORT,
        mounts=[
            {"name": "secrets", "mountPath": "/secrets", "readOnly": True},
            {"name": "round", "mountPath": "/round.toml", "subPath": "round.toml", "readOnly": True},
        ],
        volumes=[
            {"name": "secrets", "secret": {"secretName": LEARNER, "defaultMode": 0o440}},
            {"name": "round", "configMap": {"name": LEARNER}},
        ],
    )
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": LEARNER},
        "spec": {
            "selector": {"app": LEARNER},
            "publishNotReadyAddresses": True,
            "ports": [{"name": "peers", "port": LEARNER_PORT, "targetPort": LEARNER_PORT}],
        },
    }
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": LEARNER},
        "data": {"round.toml": configuration},
    }
    return [service, _secret(LEARNER, "learner.key", plan.learner_key + "\n"), config_map, _job(LEARNER, pod)]


def encoded(shard: msgspec.Struct) -> str:
    """A shard's file."""
    return msgspec.json.encode(shard).decode() + "\n"


def _secret(name: str, key: str, text: str) -> dict[str, Any]:
    if len(text.encode()) > SECRET_BYTES:
        raise ConfigurationError(
            f"{key} has {len(text.encode())} bytes; a Secret holds {SECRET_BYTES}: more shards are needed",
            field="--shards",
        )
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "stringData": {key: text},
    }


def _job(name: str, pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"backoffLimit": 6, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}},
    }


def _pod(
    name: str,
    *,
    image: str,
    arguments: list[str],
    mib: int,
    port: int,
    mounts: list[dict[str, Any]],
    volumes: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 10,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": name,
                "image": image,
                "args": arguments,
                "ports": [{"name": "peers", "containerPort": port}],
                "securityContext": {
                    "readOnlyRootFilesystem": True,
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
                "resources": {"requests": {"memory": f"{mib // 2}Mi", "cpu": "100m"}, "limits": {"memory": f"{mib}Mi"}},
                # Asked from inside: the operator's listener is on loopback, unsigned.
                "livenessProbe": {
                    "exec": {"command": ["python", "-IS", "-c", _HEALTH.format(OPERATOR)]},
                    "initialDelaySeconds": 120,
                    "periodSeconds": 30,
                    "timeoutSeconds": 10,
                },
                "volumeMounts": [
                    {"name": "state", "mountPath": "/state"},
                    {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  of the container
                    *mounts,
                ],
            }
        ],
        "volumes": [{"name": "state", "emptyDir": {}}, {"name": "tmp", "emptyDir": {"medium": "Memory"}}, *volumes],
    }
