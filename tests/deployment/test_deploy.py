"""What ``deploy`` writes, and what it refuses."""

import json
import stat
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from p2p_labeldp.cli.app import main
from p2p_labeldp.deployment.shard import read
from p2p_labeldp.network.transport import parse_address

SMALL = ("breast-cancer", "--peers", "40", "--shards", "4", "--set", "clusters.count=2", "--set", "policy.epsilon=2")

TOO_FEW = ["--peers", "10"]
for _setting in ("clusters.count=1", "clusters.minimum_size=5", "policy.minimum_size=12"):
    TOO_FEW += ["--set", _setting]


@pytest.fixture
def deployed(tmp_path, capsys):
    """Deploys for a platform and returns the directory."""

    def deploy(platform, *arguments):
        out = tmp_path / platform
        enough = ["--memory", "999999"] if platform == "compose" else []  # however little is left on this machine now
        assert main(["deploy", platform, *(arguments or SMALL), *enough, "--out", str(out)]) == 0
        capsys.readouterr()
        return out

    return deploy


def documents(file):
    return list(yaml.safe_load_all(file.read_text()))


def test_every_peer_is_in_one_shard_with_a_key_of_its_own(deployed):
    shards = [read(str(file)) for file in (deployed("compose") / "secrets").glob("shard-*.json")]
    keys = [peer.key for shard in shards for peer in shard.peers]
    assert len(shards) == 4
    assert len(set(keys)) == len(keys) == 40
    assert {shard.limits.max_epsilon for shard in shards} == {2.0}


def test_contacts_are_peers_at_the_places_where_they_listen(deployed):
    shards = [read(str(file)) for file in (deployed("compose") / "secrets").glob("shard-*.json")]
    places = {(shard.host, peer.port) for shard in shards for peer in shard.peers}
    contacts = {parse_address(text)[1:] for shard in shards for peer in shard.peers for text in peer.contacts}
    assert len(places) == 40
    assert contacts <= places
    assert {parse_address(shard.learner)[1:] for shard in shards} == {("learner", 7800)}


def test_secrets_are_their_owners_alone_and_stand_in_no_other_file(deployed):
    out = deployed("compose")
    secrets = [*(out / "secrets").iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in secrets} == {0o600}
    assert stat.S_IMODE((out / "secrets").stat().st_mode) == 0o700
    keys = [peer["key"] for file in secrets if file.suffix == ".json" for peer in json.loads(file.read_text())["peers"]]
    keys.append((out / "secrets" / "learner.key").read_text().strip())
    for file in (out / "compose.yaml", out / "round.toml"):
        assert not any(key in file.read_text() for key in keys)


def test_compose_services_can_write_nowhere_but_their_state_and_are_nobodys_root(deployed):
    (compose,) = documents(deployed("compose") / "compose.yaml")
    assert len(compose["services"]) == 5
    for name, service in compose["services"].items():
        assert service["read_only"]
        assert not service["user"].startswith("0:")
        assert service["cap_drop"] == ["ALL"]
        assert service["volumes"][0] == f"{name}-state:/state"
        assert "ports" not in service
    assert compose["services"]["learner"]["depends_on"] == [f"peers-{i}" for i in range(4)]


def test_kubernetes_files_fit_the_apis_schema(deployed):
    out = deployed("k8s")
    version = kubernetes_validate.latest_version()
    kinds = []
    for file in (out / "peers.yaml", out / "learner.yaml"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "tried on no cluster" in file.read_text()
        for document in documents(file):
            kubernetes_validate.validate(document, version, strict=True)
            kinds.append(document["kind"])
    assert kinds == ["Service", *["Secret"] * 4, "Job", "Service", "Secret", "ConfigMap", "Job"]


def test_the_schema_finds_a_misspelt_field(deployed):
    """The positive control of the test above."""
    job = documents(deployed("k8s") / "peers.yaml")[-1]
    job["spec"]["completionmode"] = job["spec"].pop("completionMode")
    with pytest.raises(kubernetes_validate.ValidationError, match="completionmode"):
        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)


def test_kubernetes_pods_are_named_before_they_are_ready_and_see_their_own_secret_alone(deployed):
    service, *secrets, job = documents(deployed("k8s") / "peers.yaml")
    pod = job["spec"]["template"]["spec"]
    assert service["spec"]["publishNotReadyAddresses"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["metadata"]["name"] == pod["subdomain"]
    assert (job["spec"]["completionMode"], job["spec"]["completions"], job["spec"]["parallelism"]) == ("Indexed", 4, 4)
    (mount,) = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "secrets"]
    assert mount["subPathExpr"] == "shard-$(JOB_COMPLETION_INDEX).json"
    hosts = [json.loads(one["stringData"][f"shard-{i}.json"])["host"] for i, one in enumerate(secrets)]
    assert hosts == [f"{job['metadata']['name']}-{i}.{pod['subdomain']}" for i in range(4)]


def test_examples_of_ones_own_are_deployed(deployed, tmp_path):
    examples = tmp_path / "people"
    assert main(["examples", "breast-cancer", "--count", "20", "--out", str(examples)]) == 0
    out = deployed(
        "compose",
        "breast-cancer",
        "--peers",
        "20",
        "--shards",
        "1",
        "--set",
        "clusters.count=1",
        "--examples",
        str(examples),
    )
    (shard,) = [read(str(file)) for file in (out / "secrets").glob("shard-*.json")]
    given = [json.loads((examples / f"{i}.json").read_text()) for i in range(20)]
    assert [{"features": peer.example.features, "label": peer.example.label} for peer in shard.peers] == given


@pytest.mark.parametrize(
    ("platform", "arguments", "complaint"),
    [
        ("compose", ["--peers", "1"], "--peers: 1 given; 2 or more are needed"),
        ("compose", ["--peers", "30", "--shards", "31"], "--shards: 31 given; 1 to 30"),
        ("compose", ["--peers", "1100"], "--shards (not given, so --peers): 1100 given; a bridge has 1023 ports"),
        ("compose", ["--peers", "101", "--memory", "99999"], "99 or fewer are possible"),
        ("compose", ["--peers", "40", "--memory", "2000"], "41 containers take 2240 MiB, and there are 2000 MiB"),
        ("compose", ["--peers", "40", "--subnet", "10.9.0.0/27"], "it has 29 addresses to give, 41 are needed"),
        ("compose", ["--peers", "40", "--subnet", "10.9.0.1/27"], "--subnet: '10.9.0.1/27' given"),
        ("compose", TOO_FEW, "a cluster would have 10 members, and 12 are needed"),
        ("compose", ["--peers", "4000", "--shards", "2"], "2000 peers in one container; its open files"),
        ("compose", ["--peers", "40", "--examples", "nowhere"], "--examples: 'nowhere/0.json' can't be read"),
        ("compose", ["--peers", "40", "--set", f"policy.enrolment_key={'ab' * 32}"], "policy: given"),
        (
            "compose",
            ["--peers", "60", "--set", "data.name=iris", "--set", "data.test_share=0.7"],
            "--peers: 60 given; iris",
        ),
        ("k8s", ["--peers", "200000", "--shards", "100001"], "an Indexed Job has 100000 or fewer"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line_before_a_file_is_written(
    tmp_path, capsys, platform, arguments, complaint
):
    out = tmp_path / "out"
    enough = [] if "--memory" in arguments or platform == "k8s" else ["--memory", "999999"]
    assert main(["deploy", platform, "breast-cancer", *arguments, *enough, "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_a_shard_too_long_for_a_secret_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("p2p_labeldp.deployment.kubernetes.SECRET_BYTES", 1000)
    assert main(["deploy", "k8s", *SMALL, "--out", str(tmp_path / "out")]) == 2
    assert "a Secret holds 1000: more shards are needed" in capsys.readouterr().err


def test_a_directory_that_is_not_empty_is_left_alone(tmp_path, capsys):
    Path(tmp_path / "mine").write_text("")
    assert main(["deploy", "k8s", *SMALL, "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
