"""The file of a state: who may read it, how it is written, what is refused as none, and older versions."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from network.store.stored import ME, OTHER, A, contributed, joined, release
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network import store as stores
from p2p_labeldp.network.store import Store
from p2p_labeldp.protocol.update_ledger import UpdateLedger


def test_every_commit_reaches_the_disk(open_store):
    db = open_store()._db
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_nobody_else_can_read_a_state(open_store, tmp_path):
    before = os.umask(0)
    try:
        open_store()(release())
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert "state" in modes


def test_a_second_instance_on_one_state_does_not_start(open_store):
    first = open_store()
    with pytest.raises(ConfigurationError, match="in use by another instance"):
        open_store()
    first.close()
    open_store()


def test_a_disk_that_takes_nothing_is_an_error_not_a_silence(open_store):
    one = open_store()
    one._db.execute("PRAGMA max_page_count=1")
    one._db.execute("PRAGMA query_only=ON")
    with pytest.raises(OSError, match="can't be written"):
        one(release())
    one._db.execute("PRAGMA query_only=OFF")
    one(release())


def garbage(path):
    path.write_bytes(b"this is no data base, but long enough to look at" * 40)


def another_programs(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()


def newer(path):
    one = Store(path, peer_id=ME)
    one._db.execute("PRAGMA user_version=99")
    one.close()


def anothers(path):
    Store(path, peer_id=OTHER).close()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (garbage, "is no state of a peer"),
        (another_programs, "another program's"),
        (newer, "has version 99; this program reads 4"),
        (anothers, f"is the state of peer {OTHER[:16]}"),
        (Path.mkdir, "can't be opened"),
    ],
)
def test_what_is_no_state_of_this_peer_is_refused_and_left_alone(make, text, open_store, tmp_path):
    make(tmp_path / "state")
    before = (tmp_path / "state").read_bytes() if (tmp_path / "state").is_file() else None
    with pytest.raises(ConfigurationError, match=rf"^--state: .*{text}"):
        open_store()
    assert before is None or (tmp_path / "state").read_bytes() == before
    open_store("other")


def test_a_state_whose_making_was_cut_short_is_made_anew(open_store, tmp_path):
    (tmp_path / "state").touch()
    open_store()(release())


def test_a_state_of_the_first_version_is_brought_up_to_date_and_keeps_its_ledger(open_store, tmp_path):
    (tmp_path / "state").touch()
    with sqlite3.connect(tmp_path / "state") as db:
        db.executescript(stores._MIGRATIONS[0])
        db.execute(f"PRAGMA application_id={stores.APPLICATION_ID}")
        db.execute("PRAGMA user_version=1")
        db.execute("INSERT INTO owner VALUES (?, 'an id')", (ME,))
        db.execute("INSERT INTO releases VALUES ('label', ?, ?, 0.1, 1, ?, 20.0)", (A.hex(), A.hex(), ME))
    db.close()
    one = open_store()
    assert one.ledger().flipped("label") == 1
    assert one.facts() == []
    one(joined())
    assert one.facts() == [joined()]


def test_a_state_from_before_rounds_of_updates_is_brought_up_to_date(open_store, tmp_path):
    with sqlite3.connect(tmp_path / "state") as db:
        for script in stores._MIGRATIONS[:3]:
            db.executescript(script)
        db.execute(f"PRAGMA application_id={stores.APPLICATION_ID}")
        db.execute("PRAGMA user_version=3")
        db.execute("INSERT INTO owner VALUES (?, ?)", (ME, "state"))
    db.close()
    one = open_store()
    one(contributed())
    assert UpdateLedger(one.contributions()).spent("data") == 6.0
    assert one._db.execute("PRAGMA user_version").fetchone() == (stores.SCHEMA_VERSION,)
