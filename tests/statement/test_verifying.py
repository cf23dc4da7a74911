"""A statement that was tampered with, anywhere, is refused; the untouched one is the control."""

import json
import math
import shutil
from dataclasses import replace
from hashlib import sha256

import msgspec
import pytest

from p2p_labeldp import config, experiment, facts, promise
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Asked, Ended, Listed, Signed
from p2p_labeldp.network.study import CollectedRoster
from p2p_labeldp.results import claimed
from p2p_labeldp.statement import Engine, Status, accountant, content, signed, verify
from statement.rounds import document, play, receipt_of, sign, write

FILES = ("config.json", "evidence.json", "facts.jsonl", "guarantee.json", "noisy.csv", "result.json")
OTHER = Keys(b"somebody else".ljust(32))


@pytest.fixture(scope="module")
def kept(tmp_path_factory, study_of):
    """By engine: scene, run and directory of a round with real keys."""
    found = {}
    for engine in (Engine.PROCESSES, Engine.DEPLOYMENT):
        scene, run = play(study_of, engine=engine)
        found[engine] = scene, run, write(run, tmp_path_factory.mktemp("kept") / engine.value)
    return found


@pytest.fixture(scope="module")
def another(tmp_path_factory, study_of):
    """Another round of the same learner and peers: scene and directory."""
    scene, run = play(study_of, engine=Engine.PROCESSES, nonce=b"another".ljust(16))
    return scene, write(run, tmp_path_factory.mktemp("kept") / "another")


@pytest.fixture(scope="module")
def unsigned(tmp_path_factory):
    """Runs of engines without a key, by name."""
    small = ["data.peers=60", "clusters.count=4", "clusters.minimum_size=8"]
    shorter = {"data": {"name": "breast-cancer"}}
    runs = {
        "virtual": ("virtual", 1, []),
        "population": ("population", 1, []),
        "permutation": ("population", 1, ["exchange.kind=permute"]),
        "cluster_rr": ("population", 1, ["mechanism.kind=cluster_rr"]),
        "uniform_rr": ("population", 1, ["mechanism.kind=uniform_rr"]),
        "given flip": ("virtual", 1, ["mechanism.flip_probability=0.2"]),
        "no privacy": ("population", 1, ["mechanism.flip_probability=0"]),
        "no reports": ("population", 1, ["policy.minimum_size=60"]),
        "without a seed": ("population", None, []),
        "three classes": ("virtual", 1, ["data.name=iris"]),
    }
    place = tmp_path_factory.mktemp("unsigned")
    for name, (engine, seed, more) in runs.items():
        done = experiment.run(config.from_mapping(shorter, small + more), engine=engine, seed=seed)
        write(done, place / name)
    return place


@pytest.fixture(params=[Engine.PROCESSES, Engine.DEPLOYMENT])
def one(request, kept, tmp_path):
    """Scene, run and a directory to tamper with."""
    scene, run, directory = kept[request.param]
    return scene, run, shutil.copytree(directory, tmp_path / "one")


def statuses(verdict):
    return {check.name: check.status for check in verdict.checks}


def why_not(directory, **asked):
    """The names of the checks that fail."""
    return {check.name for check in verify(directory, **asked).checks if check.status is Status.FAILED}


# --- what holds ----------------------------------------------------------------------------------------------------


def test_a_signed_round_passes_every_check(one):
    scene, _, directory = one
    assert sorted(path.name for path in directory.iterdir()) == sorted(FILES)
    verdict = verify(directory, learner=scene.learner.hex())
    assert verdict.holds
    found = statuses(verdict)
    assert [name for name, status in found.items() if status is not Status.OK] == ["coins"]
    assert set(found) == {
        *("signature", "terms", "deltas", "holding minima", "flips", "epsilons", "views"),
        *("config.json", "result.json", "facts", "sizes", "reports", "outcomes", "noisy.csv", "who asked whom"),
        *("manifest", "rosters", "receipts", "coins"),
    }


@pytest.mark.parametrize("lost", [range(5), range(13)])
def test_who_did_not_report_has_no_receipt_and_is_missed_by_nobody(study_of, tmp_path, lost):
    for engine in (Engine.PROCESSES, Engine.DEPLOYMENT):
        _, run = play(study_of, engine=engine, lost=lost)
        verdict = verify(write(run, tmp_path / engine.value))
        assert verdict.holds
        assert verdict.statement.reports == len(verdict.statement.receipts) < 13


@pytest.mark.parametrize(
    "name",
    [
        *("virtual", "population", "permutation", "cluster_rr", "uniform_rr", "given flip", "no privacy", "no reports"),
        *("without a seed", "three classes"),
    ],
)
def test_what_nobody_signed_holds_and_says_what_could_not_be_checked(unsigned, name):
    verdict = verify(unsigned / name)
    assert verdict.holds
    assert not (unsigned / name / "evidence.json").exists()
    found = statuses(verdict)
    assert found["signature"] is found["receipts"] is found["coins"] is Status.UNCHECKED
    assert (found["sizes"] is Status.UNCHECKED) == (verdict.statement.engine is Engine.POPULATION)
    assert "signature" in why_not(unsigned / name, learner="0" * 64)


def test_the_file_alone_holds_and_says_what_could_not_be_checked(one):
    _, _, directory = one
    found = statuses(verify(directory / "guarantee.json"))
    assert found["signature"] is found["epsilons"] is found["views"] is Status.OK
    assert found["facts"] is found["receipts"] is Status.UNCHECKED


def test_the_file_holds_no_name_of_a_peer_and_no_digest_of_the_reports(one):
    scene, _, directory = one
    text = (directory / "guarantee.json").read_text()
    assert not [me for me in scene.ids if me.hex()[:16] in text]
    assert sha256((directory / "noisy.csv").read_bytes()).hexdigest() not in text
    assert sha256((directory / "facts.jsonl").read_bytes()).hexdigest() in text  # the control


# --- a file that was changed ---------------------------------------------------------------------------------------


def leaves(value, path=()):
    """Every place in a document, with what is there."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def changed(value):
    """Another value that could stand there."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * (1 - 1e-6) + (value == 0) * 1e-6
    if isinstance(value, str) and len(value) >= 64 and set(value) <= set("0123456789abcdef"):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return {None: 1, "inf": 5.0, "processes": "deployment", "deployment": "processes"}.get(value, f"{value}x")


def refused(directory):
    """Whether a directory does not hold, or is not even read."""
    try:
        return not verify(directory).holds
    except ConfigurationError:
        return True


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def test_each_changed_field_is_refused(one):
    _, _, directory = one
    count = 0
    for path, value in leaves(document(directory)):
        forged = document(directory)
        put(forged, path, changed(value))
        (directory / "guarantee.json").write_text(json.dumps(forged))
        assert refused(directory), path
        count += 1
        put(forged, path, value)
        (directory / "guarantee.json").write_text(json.dumps(forged))
    assert count > 60
    assert not refused(directory)


def test_each_changed_field_is_refused_though_the_learner_itself_signs_it(one):
    """What is held against the file beside the signature: a learner that lies signs what it likes."""
    scene, _, directory = one
    keys = scene.collector._keys
    unnoticed = []
    for path, value in leaves(document(directory)["statement"]):
        forged = document(directory)["statement"]
        put(forged, path, changed(value))
        try:
            lie = msgspec.convert(forged, content.Statement, strict=False)
        except (msgspec.ValidationError, ConfigurationError):  # not even a learner can state that
            continue
        before = (directory / "guarantee.json").read_text()
        sign(lie, directory, keys)
        if not refused(directory):
            unnoticed.append(path)
        (directory / "guarantee.json").write_text(before)
    assert unnoticed == []
    assert not refused(directory)


@pytest.mark.parametrize("name", ["virtual", "population", "cluster_rr", "without a seed"])
def test_each_changed_field_of_an_unsigned_statement_is_refused(unsigned, tmp_path, name):
    directory = shutil.copytree(unsigned / name, tmp_path / "one")
    unnoticed = []
    for path, value in leaves(document(directory)):
        before = document(directory)
        forged = document(directory)
        put(forged, path, changed(value))
        (directory / "guarantee.json").write_text(json.dumps(forged))
        if not refused(directory):
            unnoticed.append(path[-1])
        (directory / "guarantee.json").write_text(json.dumps(before))
    assert unnoticed == (["num_classes"] if name == "cluster_rr" else [])  # no number of this mechanism depends on it
    assert not refused(directory)


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"epsilon": 0.5}, "epsilons"),
        ({"local_epsilon": 0.5}, "epsilons"),
        ({"delta": 1e-6}, "deltas"),
        ({"holding_minimum": 2}, "holding minima"),
        ({"flip_probability": 0.3}, "flips"),
        ({"size": 100}, "deltas"),
        ({"size": 10**9}, "terms"),
        ({"size": 1}, "deltas"),
        ({"flip_probability": 2.0}, "flips"),
        ({"flip_probability": None}, "epsilons"),
    ],
)
def test_a_number_that_the_accountant_does_not_find_fails_by_itself(one, change, failing):
    scene, _, directory = one
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    clusters = [msgspec.structs.replace(stated.clusters[0], **change), *stated.clusters[1:]]
    lie = msgspec.structs.replace(stated, clusters=clusters)
    sign(lie, directory, scene.collector._keys)
    assert failing in why_not(directory / "guarantee.json")


@pytest.mark.parametrize(
    "change", [{"epsilon": 1e-3}, {"delta": 0.0}, {"method": "exact: believe me"}, {"view": "all"}]
)
def test_a_view_that_the_accountant_does_not_find_fails_by_itself(one, change):
    scene, _, directory = one
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    for place in range(len(stated.views)):
        views = list(stated.views)
        views[place] = msgspec.structs.replace(views[place], **change)
        sign(msgspec.structs.replace(stated, views=views), directory, scene.collector._keys)
        if views != stated.views:
            assert why_not(directory / "guarantee.json") == {"views"}
    sign(msgspec.structs.replace(stated, views=stated.views[1:]), directory, scene.collector._keys)
    assert why_not(directory / "guarantee.json") == {"views"}
    sign(stated, directory, scene.collector._keys)
    assert why_not(directory / "guarantee.json") == set()


def test_a_target_that_is_not_kept_fails():
    stated = content.Statement(
        **{
            **dict.fromkeys(("learner", "round", "seed")),
            "format": 1,
            "unsigned_because": "",
            "engine": Engine.VIRTUAL,
            "complete": True,
            "num_classes": 2,
            "exchange": "resample",
            "mechanism": config.Mechanism(target_epsilon=0.5),
            "policy": config.Policy(),
            "config_hash": "",
            "versions": {},
            "peers": 10,
            "outcomes": {},
            "reports": 0,
            "clusters": [
                content.StatedCluster(
                    id=0,
                    size=10,
                    flip_probability=0.1,
                    holding_minimum=10,
                    delta=0.01,
                    epsilon=1.0,
                    local_epsilon=math.log(9),
                    reports=0,
                    roster=None,
                )
            ],
            "views": [],
            "facts": "",
            "receipts": [],
        }
    )
    terms = stated.terms()
    [found] = promise.of_clusters([CollectedRoster(0, 10, 0.1, 0.01, 10)], terms, 2)
    cluster = msgspec.structs.replace(stated.clusters[0], epsilon=found.epsilon, local_epsilon=found.local_epsilon)
    honest = msgspec.structs.replace(stated, clusters=[cluster])
    texts = {check.name: check.text for check in accountant.checks(honest) if check.status is Status.FAILED}
    assert "more than the target of 0.5" in texts["epsilons"]
    enough = msgspec.structs.replace(honest, mechanism=config.Mechanism(flip_probability=0.1))
    assert "epsilons" not in {check.name for check in accountant.checks(enough) if check.status is Status.FAILED}


# --- whose signature -----------------------------------------------------------------------------------------------


def test_another_key_is_refused_as_soon_as_anybody_knows_the_learners(one):
    """Alone, a file that somebody else signed looks as good: that is what pinning is for."""
    scene, _, directory = one
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    forged = msgspec.structs.replace(stated, learner=OTHER.peer_id.hex())
    sign(forged, directory, OTHER)
    assert why_not(directory / "guarantee.json") == set()
    assert why_not(directory / "guarantee.json", learner=scene.learner.hex()) == {"signature"}
    own = receipt_of(scene, directory, 0)
    assert why_not(directory / "guarantee.json", receipt=own) == {"own receipt"}
    assert why_not(directory) == {"manifest"}  # the evidence is the learner's
    sign(stated, directory, OTHER)
    assert why_not(directory / "guarantee.json") == {"signature"}
    sign(stated, directory, scene.collector._keys)
    assert why_not(directory, learner=scene.learner.hex(), receipt=own) == set()


def test_a_signature_of_another_kind_is_none(one):
    scene, _, directory = one
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    for kind, as_it_should in (("receipt", False), (content.KIND, True)):
        made = scene.collector._keys.sign(kind, content.canonical(stated))
        forged = {**document(directory), "signature": made[33:97].hex()}
        (directory / "guarantee.json").write_text(json.dumps(forged))
        assert (why_not(directory) == set()) is as_it_should
        assert as_it_should or why_not(directory) == {"signature"}


def test_a_statement_without_its_signature_is_refused(one):
    _, _, directory = one
    for change in ({"learner": None}, {"learner": None, "unsigned_because": "lost"}, {}):
        forged = document(directory)
        forged |= {"public": None, "signature": None, "statement": forged["statement"] | change}
        (directory / "guarantee.json").write_text(json.dumps(forged))
        assert "signature" in why_not(directory)


def test_layout_is_free_and_a_key_that_stands_twice_is_not(one):
    _, _, directory = one
    text = json.dumps(document(directory))
    (directory / "guarantee.json").write_text(text)
    assert not refused(directory)
    twice = text.replace('"reports": 13', '"reports": 12, "reports": 13', 1)
    assert twice != text
    (directory / "guarantee.json").write_text(twice)
    with pytest.raises(ConfigurationError, match="a key stands twice"):
        verify(directory)
    for odd in (
        text.replace('"reports": 13', '"reports": "13"'),
        text.replace('"seed": null', '"seed": null, "eps": 0'),
    ):
        assert odd != text
        (directory / "guarantee.json").write_text(odd)
        with pytest.raises(ConfigurationError, match="holds something that no statement has"):
            verify(directory)


# --- what stands beside it -----------------------------------------------------------------------------------------


def edit(directory, change):
    """Changes the facts, and the digest with them; the learner signs it."""
    path = directory / "facts.jsonl"
    told = change([facts.decode(line) for line in path.read_bytes().splitlines()])
    path.write_bytes(b"".join(facts.encode(fact) + b"\n" for fact in told))


def first(told, kind):
    return next(place for place, fact in enumerate(told) if isinstance(fact, kind))


def dropped(told, kind):
    place = first(told, kind)
    return told[:place] + told[place + 1 :]


def replaced(told, kind, **change):
    place = first(told, kind)
    return [*told[:place], msgspec.structs.replace(told[place], **change), *told[place + 1 :]]


CHANGES = {
    "a report is gone": (lambda told: dropped(told, Accepted), {"reports", "outcomes", "noisy.csv", "receipts"}),
    "a report twice": (lambda told: [*told, told[first(told, Accepted)]], {"reports"}),
    "a label": (
        lambda told: replaced(told, Accepted, label=1 - told[first(told, Accepted)].label),
        {"noisy.csv"},
    ),
    "no label at all": (lambda told: replaced(told, Accepted, label=7), {"reports", "noisy.csv"}),
    "a stranger": (lambda told: replaced(told, Accepted, peer="f" * 64), {"reports", "receipts"}),
    "another flip": (lambda told: replaced(told, Signed, flip_probability=0.2), {"sizes"}),
    "another size": (lambda told: replaced(told, Signed, size=50), {"sizes"}),
    "a member is gone": (lambda told: dropped(told, Listed), {"sizes", "rosters"}),
    "no roster": (lambda told: dropped(told, Signed), {"sizes"}),
    "an ask": (lambda told: [*told, Asked(peer=told[first(told, Accepted)].peer, mate=1)], {"who asked whom"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_facts_are_refused_with_and_without_their_digest(one, name):
    scene, _, directory = one
    change, failing = CHANGES[name]
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    edit(directory, list)
    assert why_not(directory) == set()
    edit(directory, change)
    found = why_not(directory)
    assert "facts" in found
    digest = sha256((directory / "facts.jsonl").read_bytes()).hexdigest()
    sign(msgspec.structs.replace(stated, facts=digest), directory, scene.collector._keys)
    found = why_not(directory)
    assert "facts" not in found
    assert failing <= found | ({"outcomes"} if stated.engine is Engine.PROCESSES else set())


def test_outcomes_that_the_peers_did_not_have_are_refused(kept, tmp_path):
    directory = shutil.copytree(kept[Engine.PROCESSES][2], tmp_path / "one")
    edit(directory, lambda told: replaced(told, Ended, outcome=facts.Outcome.FAILED))
    assert why_not(directory) == {"facts", "outcomes"}


@pytest.mark.parametrize("name", [name for name in FILES if name != "guarantee.json"])
def test_a_file_of_another_round_is_refused(kept, another, tmp_path, name):
    _, _, directory = kept[Engine.PROCESSES]
    mixed = shutil.copytree(directory, tmp_path / "mixed")
    shutil.copy(another[1] / name, mixed / name)
    if name in ("config.json", "result.json"):  # of another configuration, say
        (mixed / name).write_text((mixed / name).read_text().replace("0.1", "0.2"))
    same = (mixed / name).read_bytes() == (directory / name).read_bytes()
    assert refused(mixed) is not same
    assert not same or name == "noisy.csv"
    assert not refused(another[1])


def test_a_statement_of_another_round_is_refused(kept, another, tmp_path):
    mixed = shutil.copytree(kept[Engine.PROCESSES][2], tmp_path / "mixed")
    shutil.copy(another[1] / "guarantee.json", mixed)
    assert {"facts", "manifest"} <= why_not(mixed)


def test_evidence_that_is_missing_or_too_much_is_refused(one, unsigned, tmp_path):
    _, _, directory = one
    too_much = shutil.copytree(unsigned / "virtual", tmp_path / "too much")
    assert not refused(too_much)
    shutil.copy(directory / "evidence.json", too_much)
    assert why_not(too_much) == {"receipts"}
    (directory / "evidence.json").unlink()
    assert why_not(directory) == {"receipts"}


# --- receipts ------------------------------------------------------------------------------------------------------


def swap(directory, receipts, keys):
    """Other receipts, which the learner states and signs."""
    evidence = signed.from_file((directory / "evidence.json").read_bytes())
    receipts = receipts(list(evidence.receipts))
    made = msgspec.structs.replace(evidence, receipts=tuple(receipts))
    (directory / "evidence.json").write_text(signed.to_file(made))
    stated = content.from_file((directory / "guarantee.json").read_bytes()).statement
    digests = sorted(sha256(receipt).hexdigest() for _, receipt in receipts)
    sign(msgspec.structs.replace(stated, receipts=digests), directory, keys)


def why(directory, name):
    return next(check.text for check in verify(directory).checks if check.name == name)


def exchanged(own, one, other):
    """Two peers with each other's receipts."""
    by_peer = dict(own)
    by_peer[one], by_peer[other] = by_peer[other], by_peer[one]
    return list(by_peer.items())


def test_each_receipt_is_checked_and_not_only_counted(kept, another, tmp_path):
    scene, run, untouched = kept[Engine.PROCESSES]
    keys = scene.collector._keys
    mates = [fact.peer for fact in run.facts if isinstance(fact, Listed)][:2]
    elsewhere = signed.from_file((another[1] / "evidence.json").read_bytes()).receipts
    cases = {
        "": lambda own: own,
        "of another round": lambda own: [(own[0][0], dict(elsewhere)[own[0][0]]), *own[1:]],
        "12 peers have one, 13 reports": lambda own: own[1:],
        "13 peers have one, 13 reports": lambda own: [*own, own[0]],
        "given to another peer": lambda own: exchanged(own, *mates),
        "signature does not verify": lambda own: [(own[0][0], own[0][1][:-1] + b"?"), *own[1:]],
        "who is not the learner": lambda own: [(own[0][0], OTHER.sign("receipt", own[0][1][97:])), *own[1:]],
    }
    for place, (complaint, receipts) in enumerate(cases.items()):
        directory = shutil.copytree(untouched, tmp_path / str(place))
        swap(directory, receipts, keys)
        assert why_not(directory) == ({"receipts"} if complaint else set()), complaint
        assert complaint in why(directory, "receipts") or complaint.startswith("13")


def test_a_receipt_of_another_roster_is_refused(kept, tmp_path):
    scene, _, untouched = kept[Engine.PROCESSES]
    directory = shutil.copytree(untouched, tmp_path / "one")
    rosters = [roster.digest for roster in scene.collector.rosters.values()]

    def moved(own):
        _, receipt = signed.reports.open_receipt(own[0][1], keys=OTHER)
        other = next(digest for digest in rosters if digest != receipt.roster)
        payload = msgspec.msgpack.encode(msgspec.structs.replace(receipt, roster=other))
        return [(own[0][0], scene.collector._keys.sign("receipt", payload)), *own[1:]]

    swap(directory, moved, scene.collector._keys)
    assert why_not(directory) == {"receipts"}
    assert "of another roster" in why(directory, "receipts")


# --- a peer's own --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [True, False])
def test_a_peer_finds_its_own_receipt_counted(one, alone):
    scene, _, directory = one
    for ordinal in range(13):
        own = receipt_of(scene, directory, ordinal)
        verdict = verify(directory / "guarantee.json" if alone else directory, receipt=own)
        assert verdict.holds
        [text] = [check.text for check in verdict.checks if check.name == "own receipt"]
        assert text.startswith("counted, in cluster")
        assert ("if the cluster was as large as stated" in text) == alone
        assert statuses(verdict).get("cluster size") is (Status.UNCHECKED if alone else None)


def test_a_size_that_was_made_up_is_found_by_the_rosters_and_not_passed_for_checked_without(one):
    """A learner that states a larger cluster than it signed, with all that follows from the size."""
    scene, _, directory = one
    own = receipt_of(scene, directory, 0)
    honest = content.from_file((directory / "guarantee.json").read_bytes()).statement
    terms, classes = honest.terms(), honest.num_classes
    rosters = [accountant._roster(msgspec.structs.replace(cluster, size=200), terms) for cluster in honest.clusters]
    found = promise.of_clusters(rosters, terms, classes)
    clusters = [
        msgspec.structs.replace(
            cluster,
            size=200,
            holding_minimum=roster.holding_minimum,
            delta=new.delta,
            epsilon=new.epsilon,
            local_epsilon=new.local_epsilon,
        )
        for cluster, roster, new in zip(honest.clusters, rosters, found, strict=True)
    ]
    views = promise.of_views(rosters, found, terms, classes)
    sign(msgspec.structs.replace(honest, clusters=clusters, views=views), directory, scene.collector._keys)
    assert {"sizes", "rosters"} <= why_not(directory, receipt=own)
    alone = verify(directory / "guarantee.json", receipt=own)
    [text] = [check.text for check in alone.checks if check.name == "own receipt"]
    assert "if the cluster was as large as stated" in text


def test_what_a_peer_was_not_promised_is_told_to_it(kept, another):
    scene, _, directory = kept[Engine.PROCESSES]
    file = directory / "guarantee.json"
    own, its = receipt_of(scene, directory, 0), receipt_of(another[0], another[1], 0)
    stranger = receipt_of(scene, directory, 1)
    other_flip = replace(own, flips=dict.fromkeys(own.flips, 0.2))
    cases = {
        "of another round than the statement": its,
        "with another probability": other_flip,
        "given to": replace(own, receipt=stranger.receipt),
        "signature does not verify": replace(own, receipt=own.receipt[:-1] + b"?"),
    }
    assert why_not(file, receipt=own) == set()
    for complaint, receipt in cases.items():
        verdict = verify(file, receipt=receipt)
        assert not verdict.holds
        [text] = [check.text for check in verdict.checks if check.name == "own receipt"]
        assert complaint in text


def test_a_report_that_the_learner_leaves_out_is_missed_by_its_peer(kept, tmp_path):
    """The learner drops a report everywhere; all fits, but for the one who holds the receipt."""
    scene, run, _ = kept[Engine.DEPLOYMENT]
    evidence = run.basis.evidence
    gone = evidence.receipts[0][0]
    told = [fact for fact in run.facts if not (isinstance(fact, Accepted) and fact.peer == gone)]
    noisy = run.noisy
    rest = [place for place, peer in enumerate(noisy.peers) if peer != gone]
    lie = replace(
        run,
        facts=told,
        result=msgspec.structs.replace(run.result, outcomes={"reported": 12, "unreachable": 1}),
        noisy=replace(
            noisy,
            peers=[noisy.peers[place] for place in rest],
            clusters=noisy.clusters[rest],
            features=noisy.features[rest],
            labels=noisy.labels[rest],
        ),
        basis=replace(
            run.basis,
            evidence=msgspec.structs.replace(evidence, receipts=evidence.receipts[1:]),
        ),
    )
    directory = write(lie, tmp_path / "lie")
    assert why_not(directory) == set()
    victim = next(ordinal for ordinal, me in enumerate(scene.ids) if me.hex() == gone)
    own = receipt_of(scene, kept[Engine.DEPLOYMENT][2], victim)
    assert why_not(directory, receipt=own) == {"own receipt"}


# --- what is no statement ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_directory_that_holds_no_whole_run_is_bad_input(one, name):
    _, _, directory = one
    (directory / name).write_text("{")
    if name in ("config.json", "noisy.csv"):  # of which no part is needed to read the rest
        assert why_not(directory) == {name}
        return
    with pytest.raises(ConfigurationError):
        verify(directory)


def test_a_directory_of_before_there_were_statements_is_bad_input(one):
    _, _, directory = one
    (directory / "guarantee.json").unlink()
    with pytest.raises(ConfigurationError, match=r"guarantee\.json' can't be read: No such file"):
        verify(directory)
    with claimed(directory.parent / "new"), pytest.raises(ConfigurationError):
        verify(directory.parent / "new")
