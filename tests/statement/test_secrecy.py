"""What a deployed learner keeps, and the page made of it, tell neither who asked whom nor anybody's label."""

import json
import shutil

import pytest

from p2p_labeldp import facts
from p2p_labeldp.cli import main
from p2p_labeldp.facts import Accepted, Flipped
from p2p_labeldp.statement import Engine
from statement.rounds import play, write
from statement.secrecy import told

CLASSES = ("malignant", "benign")


@pytest.fixture(scope="module")
def round_of_peers(study_of):
    return play(study_of, engine=Engine.DEPLOYMENT)


@pytest.fixture
def directory(round_of_peers, tmp_path, capsys):
    path = write(round_of_peers[1], tmp_path / "out")
    assert main(["report", str(path)]) == 0
    return path


def ids(scene):
    return [one.hex() for one in scene.ids]


def test_nothing_of_it_is_there(round_of_peers, directory):
    assert told(directory, ids(round_of_peers[0]), CLASSES) == []


def test_the_label_beside_a_name_is_the_drawn_mates_flipped_one(round_of_peers):
    scene, run = round_of_peers
    accepted = {fact.peer: fact.label for fact in run.facts if isinstance(fact, Accepted)}
    ordinals = {one: ordinal for ordinal, one in enumerate(ids(scene))}
    flipped = {one: scene.peers[ordinal].ledger.flipped(str(ordinal)) for one, ordinal in ordinals.items()}
    raw = {one: scene.peers[ordinal].example.label for one, ordinal in ordinals.items()}
    mates = scene.mates()
    assert accepted == {one: flipped[mates[one]] for one in ordinals}
    assert accepted != {one: raw[mates[one]] for one in ordinals}
    assert accepted != raw
    assert accepted != flipped


def test_a_search_that_would_find_it_does(round_of_peers, directory, tmp_path):
    """The control: each kind of leak, put there by hand."""
    scene, _ = round_of_peers
    names = ids(scene)

    def leaking(name, text):
        place = shutil.copytree(directory, tmp_path / "leaking", dirs_exist_ok=True)
        with (place / name).open("a") as file:
            file.write(text)
        found = told(place, names, CLASSES)
        shutil.rmtree(place)
        return found

    for fact in scene.network.facts:
        if isinstance(fact, facts.Asked | facts.Answered):
            assert leaking("facts.jsonl", facts.encode(fact).decode() + "\n")
            break
    exchange = next(one for one in scene.network.facts if isinstance(one, facts.Exchanged) and one.peer != "learner")
    assert "facts.jsonl: an exchange of peers" in leaking("facts.jsonl", facts.encode(exchange).decode() + "\n")
    refusal = facts.Rejected(peer=names[0], about=f"Ask of {names[1][:16]}: too_late")
    assert leaking("facts.jsonl", facts.encode(refusal).decode() + "\n") == ["facts.jsonl: Rejected"]
    assert leaking("report.html", f"<p>{names[3][:16]}</p>") == ["report.html: a peer"]
    assert leaking("noisy.csv", "1.0,0,malignant\n") == ["noisy.csv: a label"]
    assert leaking("result.json", json.dumps({"peer": names[2]})) == ["result.json: a peer"]
    assert not [one for one in scene.network.facts if isinstance(one, Flipped)]  # no facts of anybody hold it
