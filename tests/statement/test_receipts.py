"""Each receipt beside a statement is checked, and a peer finds its own counted, or is told what it was not promised."""

import shutil
from dataclasses import replace
from hashlib import sha256

import msgspec
import pytest
from altering import altered

from p2p_labeldp import promise
from p2p_labeldp.facts import Accepted, Listed
from p2p_labeldp.statement import Engine, Status, accountant, content, signed, verify
from statement.rounds import receipt_of, sign, write
from statement.verdicts import OTHER, statuses, why_not

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
        "signature does not verify": lambda own: [(own[0][0], altered(own[0][1])), *own[1:]],
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
        assert ",," not in text
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
        "signature does not verify": replace(own, receipt=altered(own.receipt)),
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
