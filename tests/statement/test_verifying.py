"""A statement whose files belong together holds, and one beside which anything was changed is refused."""

import shutil
from hashlib import sha256

import msgspec
import pytest

from p2p_labeldp import facts
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Asked, Ended, Listed, Signed
from p2p_labeldp.results import claimed
from p2p_labeldp.statement import Engine, Status, content, verify
from statement.rounds import play, sign, write
from statement.verdicts import FILES, refused, statuses, why_not

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
