"""A release is on disk before the call returns, and a second one of the same label never is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import p2p_labeldp
from network.store.stored import ME, A, B, contributed, release
from p2p_labeldp.errors import LabelAlreadyReleased, PrivacyError
from p2p_labeldp.facts import Ended, Outcome
from p2p_labeldp.protocol.update_ledger import UpdateLedger


def test_a_release_survives_a_restart_to_the_last_bit(open_store):
    first = open_store()
    written = release(flip=0.1 + 0.2)
    first(written)
    first(Ended(peer=ME, outcome=Outcome.REPORTED))  # not kept
    first.close()
    ledger = open_store().ledger()
    assert ledger.flipped("label") == 1
    assert ledger.against_roster("label", round_id=A, roster=A, flip_probability=0.1 + 0.2) is None
    assert ledger.against_roster("label", round_id=A, roster=A, flip_probability=0.3) is not None
    assert ledger.against_round("label", round_id=B, label_space="ab") is not None
    assert ledger.against_round("label", round_id=A, label_space="ab") is None
    assert ledger.against_round("label", round_id=A, label_space="cd") is not None
    assert ledger.flipped("another") is None
    assert not ledger.enter(written)


SECOND = {
    "another roster": release(roster=B),
    "another round": release(round_id=B),
    "another flip probability": release(flip=0.2),
    "another value": release(value=0),
}


@pytest.mark.parametrize("why", SECOND)
def test_a_second_release_is_refused_on_disk_and_nothing_is_written(why, open_store):
    one = open_store()
    one(release())
    one(release(at=30.0))  # the same again is no news
    with pytest.raises(LabelAlreadyReleased):
        one(SECOND[why])
    assert one._db.execute("SELECT count(*) FROM releases").fetchone() == (1,)
    one(release(label_id="another"))
    assert one._db.execute("SELECT count(*) FROM releases").fetchone() == (2,)
    fresh = open_store("fresh")  # the control: the same release, first
    fresh(SECOND[why])
    assert fresh._db.execute("SELECT count(*) FROM releases").fetchone() == (1,)


def test_another_roster_is_recorded_if_allowed_and_still_at_one_flip_and_value(open_store):
    one = open_store(another_roster=True)
    one(release())
    one(release(roster=B))
    for refused in (release(roster=B, flip=0.2), release(round_id=B, value=0)):
        with pytest.raises(LabelAlreadyReleased):
            one(refused)
    assert one._db.execute("SELECT count(*) FROM releases").fetchone() == (2,)


KILLED = """
import os, signal, sys
from pathlib import Path
from p2p_labeldp.facts import Flipped
from p2p_labeldp.network.store import Store
store = Store(Path(sys.argv[1]), peer_id="11" * 32)
zero = bytes(32).hex()
store(Flipped(peer="11" * 32, label_id="label", flip_probability=0.1, flipped_label=1, round_id=zero, roster=zero))
print("stored", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_stored_when_a_peer_was_killed_is_there_and_its_lock_is_not(open_store, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(p2p_labeldp.__file__).parents[1])}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "state")], env=environment, capture_output=True, text=True
    )
    assert (killed.stdout, killed.returncode) == ("stored\n", -signal.SIGKILL)
    (tmp_path / "state").rename(tmp_path / "moved")  # without what SQLite left beside it
    assert open_store("moved").ledger().flipped("label") == 1


def test_what_left_in_rounds_of_updates_survives_and_of_a_run_only_the_last_box(open_store):
    one = open_store()
    for number in range(3):
        one(contributed(number, box=bytes([number + 1])))
    one(contributed(0, run=B))
    one(contributed(2, box=b"\3"))  # a repeat is no news
    one.close()
    ledger = UpdateLedger(open_store().contributions(), budget=25.0)
    assert [ledger.find(A, number).box for number in range(3)] == [b"", b"", b"\3"]
    assert ledger.find(B, 0) == contributed(0, run=B)
    assert ledger.spent("data") == 24.0
    assert not ledger.affords("data", 6.0)


def test_a_second_draw_of_one_round_is_refused_on_disk_and_nothing_is_written(open_store):
    one = open_store()
    one(contributed())
    for other in (contributed(box=b"another"), contributed(round_id=B)):
        with pytest.raises(PrivacyError):
            one(other)
    assert UpdateLedger(one.contributions()).find(A, 0) == contributed()
    open_store("fresh")(contributed(box=b"another"))  # the control: the same, first
