"""A release is on disk before the call returns; a key that was used does not start without its ledger."""

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import p2p_labeldp
from p2p_labeldp.errors import ConfigurationError, LabelAlreadyReleased, PrivacyError
from p2p_labeldp.facts import Ended, Flipped, Outcome, Ready
from p2p_labeldp.network import store as stores
from p2p_labeldp.network.store import Store, open_beside
from p2p_labeldp.protocol.kept import (
    AcceptedFrom,
    AnsweredWith,
    AskedFor,
    Checkpoint,
    Cleared,
    Closed,
    CommittedTo,
    ContributedAs,
    EndedIn,
    GatheredThese,
    Heard,
    HeldBox,
    JoinedAs,
    OpenedWith,
    ReportedAs,
    Rostered,
    RunClosed,
    RunOpened,
    SignedRoster,
)

ME, OTHER = "11" * 32, "22" * 32
A, B = bytes(32), b"\1" * 32


def release(*, roster=A, round_id=A, flip=0.1, value=1, label_id="label", at=20.0):
    return Flipped(
        peer=ME,
        at=at,
        label_id=label_id,
        flip_probability=flip,
        flipped_label=value,
        round_id=round_id.hex(),
        roster=roster.hex(),
        label_space="ab",
    )


@pytest.fixture
def open_store(tmp_path):
    """Opens stores, and closes them in the end."""
    opened = []

    def open_one(name="state", **terms):
        opened.append(Store(tmp_path / name, **{"peer_id": ME, **terms}))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


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


def test_a_second_instance_on_one_state_does_not_start(open_store):
    first = open_store()
    with pytest.raises(ConfigurationError, match="in use by another instance"):
        open_store()
    first.close()
    open_store()


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


# -- a key and its state --------------------------------------------------------------------------------------------


@pytest.fixture
def key(tmp_path):
    file = tmp_path / "alice.key"
    file.write_text("00" * 32)
    return file


def use(key, **terms):
    """A life of the peer with this key; what its ledger held at the start."""
    one = open_beside(key, **{"peer_id": ME, **terms})
    before = one.ledger().flipped("label")
    one(release())
    one.close()
    return before


def lose(key, *suffixes):
    for suffix in suffixes or (".state",):
        Path(f"{key}{suffix}").unlink()


def test_a_key_finds_its_state_again(key):
    assert use(key) is None
    assert use(key) == 1
    assert {path.name for path in key.parent.iterdir()} == {"alice.key", "alice.key.state", "alice.key.used"}


def test_a_used_key_without_its_state_does_not_start_unless_told(key):
    use(key)
    lose(key)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"^--state: .*is missing, and the key has been used.*--new-state"):
            use(key)
    assert not Path(f"{key}.state").exists()
    assert use(key, new_state=True) is None
    assert use(key) == 1


def test_with_the_mark_ignored_the_same_start_goes_through(key, monkeypatch):
    use(key)
    lose(key)
    monkeypatch.setattr(stores, "_state_of", lambda *_: None)
    assert use(key) is None


def test_a_used_key_with_another_state_does_not_start_unless_told(key, tmp_path):
    use(key)
    Store(tmp_path / "elsewhere", peer_id=ME).close()
    with pytest.raises(ConfigurationError, match="is not the state this key was used with"):
        use(key, state=tmp_path / "elsewhere")
    assert use(key) == 1
    assert use(key, state=tmp_path / "elsewhere", new_state=True) is None
    with pytest.raises(ConfigurationError, match="is not the state this key was used with"):
        use(key)


def test_a_moved_state_is_found_where_it_is_said_to_be(key, tmp_path):
    use(key)
    Path(f"{key}.state").rename(tmp_path / "moved")
    assert use(key, state=tmp_path / "moved") == 1


def test_a_start_that_died_between_state_and_mark_costs_nothing(key):
    use(key)
    lose(key, ".used")
    assert use(key) == 1
    assert json.loads(Path(f"{key}.used").read_text())["peer"] == ME


def test_what_can_not_be_noticed_is_that_both_are_gone(key):
    use(key)
    lose(key, ".state", ".used")
    assert use(key) is None


def test_an_older_copy_of_the_state_can_not_be_told_from_the_state(key):
    open_beside(key, peer_id=ME).close()
    old = Path(f"{key}.state").read_bytes()
    use(key)
    Path(f"{key}.state").write_bytes(old)
    assert use(key) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '{"peer": 1}', "\xff"])
def test_a_mark_that_says_nothing_is_not_taken_for_none(key, content):
    Path(f"{key}.used").write_text(content, encoding="latin-1")
    with pytest.raises(ConfigurationError, match="can't be read; it says which state is the key's"):
        use(key)


def test_a_mark_of_another_key_is_refused(key):
    use(key)
    with pytest.raises(ConfigurationError, match="is the mark of another key"):
        use(key, peer_id=OTHER)


# -- the log of a round ---------------------------------------------------------------------------------------------


def joined(round_id=A, **changes):
    values = {"round_id": round_id, "label_id": "label", "host": "h", "port": 1, "sequence": 7, "over_by": 9.5}
    return JoinedAs(peer=ME, at=1.0, cluster=0, **{**values, **changes})


ROUND = [
    joined(),
    GatheredThese(peer=ME, at=2.0, cluster=0, records=1, signers=(A,)),
    CommittedTo(peer=ME, at=3.0, cluster=0, size=1, roster=b"roster", records=(b"record",)),
    AskedFor(peer=ME, at=4.0, mate="m", mate_id=B),
    AnsweredWith(peer=ME, at=4.5, asker="a", asker_id=A, ask_id=b"i" * 16, box=b"box-given"),
    HeldBox(peer=ME, at=5.0, box=b"box-held"),
    Ready(peer=ME, at=6.0, holding=True),
    Cleared(peer=ME, at=7.0, report_at=7.5),
    ReportedAs(peer=ME, at=7.5, sealed=b"report-sent"),
]
ENDED = EndedIn(peer=ME, at=8.0, outcome=Outcome.REPORTED, round_id=A, receipt=b"receipt")


def test_the_log_comes_back_as_it_was_written_and_in_order(open_store):
    one = open_store()
    for fact in ROUND:
        one(fact)
    one.close()
    assert open_store().facts() == ROUND


def test_at_the_end_of_a_round_all_but_outcome_and_receipt_is_erased_from_the_file_itself(open_store, tmp_path):
    one = open_store()
    for fact in ROUND:
        one(fact)

    def content():
        return b"".join(file.read_bytes() for file in sorted(tmp_path.iterdir()))

    secrets = (b"box-given", b"box-held", b"report-sent")
    assert all(secret in content() for secret in secrets)  # the control: they were there
    one(ENDED)
    assert one.facts() == [ROUND[0], ENDED]
    assert not any(secret in content() for secret in secrets)


def test_a_new_round_takes_the_place_of_the_last(open_store):
    one = open_store()
    for fact in (*ROUND, ENDED, joined(B)):
        one(fact)
    assert one.facts() == [joined(B)]


def test_another_address_in_the_same_round_is_the_same_round(open_store):
    one = open_store()
    moved = joined(host="elsewhere", sequence=8)
    for fact in (*ROUND, moved):
        one(fact)
    assert one.facts() == [*ROUND, moved]


def test_the_end_of_a_round_that_a_peer_never_joined_is_not_kept(open_store):
    one = open_store()
    one(EndedIn(peer=ME, outcome=Outcome.REFUSED, round_id=B))
    one(joined())
    one(EndedIn(peer=ME, outcome=Outcome.REFUSED, round_id=B))
    assert one.facts() == [joined()]


def test_a_learners_round_key_is_erased_with_its_round_and_its_reports_are_kept(open_store, tmp_path):
    one = open_store()
    secret = b"the secret of the round's key..."
    accepted = AcceptedFrom(
        peer="p", cluster=0, label=1, reporter=A, ordinal=0, features=(0.5,), report=B, receipt=b"receipt"
    )
    rostered = Rostered(peer="learner", rosters=(SignedRoster(0, b"roster", (0, 0), ()),))
    one(OpenedWith(peer="learner", manifest=b"manifest", round_secret=secret))
    one(Heard(peer="learner", addresses=((A, "h", 1),)))
    one(rostered)
    one(accepted)
    assert secret in b"".join(file.read_bytes() for file in sorted(tmp_path.iterdir()))
    closed = Closed(peer="learner", at=9.0, manifest=b"manifest")
    one(closed)
    assert one.facts() == [rostered, accepted, closed]
    assert secret not in b"".join(file.read_bytes() for file in sorted(tmp_path.iterdir()))
    one.forget()
    assert one.facts() == []


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


def test_a_log_that_can_not_be_read_is_an_error_not_an_empty_log(open_store):
    one = open_store()
    one._db.execute("INSERT INTO log (kind, fact) VALUES ('JoinedAs', x'00')")
    with pytest.raises(ConfigurationError, match=r"--state: .*can't be read"):
        one.facts()


def test_the_mark_of_a_key_in_a_folder_that_nobody_writes_to_stands_where_it_is_told_to(tmp_path):
    key, state, used = tmp_path / "key", tmp_path / "state", tmp_path / "marks"
    open_beside(key, peer_id="ab", state=state, used=used).close()
    assert used.exists()
    assert not (tmp_path / "key.used").exists()
    state.unlink()
    with pytest.raises(ConfigurationError, match="is missing, and the key has been used"):
        open_beside(key, peer_id="ab", state=state, used=used)


# --- the receipt that a peer can show ------------------------------------------------------------------------------


def ended(outcome=Outcome.REPORTED, receipt=b"receipt", round_id=A):
    return EndedIn(peer=ME, outcome=outcome, round_id=round_id, receipt=receipt)


@pytest.mark.parametrize("running", [True, False])
def test_the_receipt_of_the_last_round_can_be_read_also_while_the_peer_runs(open_store, running):
    kept = open_store()
    for fact in (
        joined(round_id=B),
        release(round_id=B, flip=0.3),
        joined(round_id=A),
        release(label_id="other"),
        ended(),
    ):
        kept(fact)
    if not running:
        kept.close()
    before = kept.path.read_bytes()
    found = stores.read_receipt(kept.path)
    assert (found.peer_id, found.round_id, found.receipt) == (ME, A.hex(), b"receipt")
    assert found.flips == {A.hex(): 0.1}
    assert kept.path.read_bytes() == before


def test_who_did_not_report_has_no_receipt(open_store, tmp_path):
    kept = open_store()
    kept.close()
    with pytest.raises(ConfigurationError, match=r"^--receipt: .* has finished no round"):
        stores.read_receipt(kept.path)
    for outcome in (Outcome.ABSTAINED, Outcome.FAILED):
        kept = open_store(outcome.value)
        kept(joined(round_id=A))
        kept(ended(outcome, b""))
        with pytest.raises(ConfigurationError, match=f"holds no receipt: its peer ended {outcome.value}"):
            stores.read_receipt(kept.path)
    (tmp_path / "text").write_text("receipt " * 1000)
    (tmp_path / "empty").touch()
    for name in ("text", "empty", "nothing", "\0"):
        with pytest.raises(ConfigurationError, match=r"^--receipt: .* is no state of a peer"):
            stores.read_receipt(tmp_path / name)
    another = sqlite3.connect(tmp_path / "another")
    another.execute("CREATE TABLE log (kind, fact)")
    another.close()
    with pytest.raises(ConfigurationError, match="is no state of a peer"):
        stores.read_receipt(tmp_path / "another")


# --- rounds of updates ------------


def contributed(number=0, *, run=A, round_id=A, box=b"box", epsilon=6.0):
    return ContributedAs(
        peer=ME, at=1.0, round=number, run_id=run, round_id=round_id, data_id="data", epsilon=epsilon, box=box
    )


def test_what_left_in_rounds_of_updates_survives_and_of_a_run_only_the_last_box(open_store):
    one = open_store()
    for number in range(3):
        one(contributed(number, box=bytes([number + 1])))
    one(contributed(0, run=B))
    one(contributed(2, box=b"\3"))  # a repeat is no news
    one.close()
    ledger = open_store().update_ledger(budget=25.0)
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
    assert one.update_ledger().find(A, 0) == contributed()
    open_store("fresh")(contributed(box=b"another"))  # the control: the same, first


def test_a_learner_keeps_the_last_checkpoint_and_forgets_the_runs_key_with_the_run(open_store):
    one = open_store()
    one(OpenedWith(peer="learner", manifest=b"of a round before", round_secret=bytes(32)))
    one(RunOpened(peer="learner", manifest=b"manifest", run_secret=b"\7" * 32))
    for number in range(4):
        one(Checkpoint(peer="learner", opening=bytes([number]), cohorts=(1,) * number, participations={"0": number}))
    assert one.facts() == [
        RunOpened(peer="learner", manifest=b"manifest", run_secret=b"\7" * 32),
        Checkpoint(peer="learner", opening=b"\3", cohorts=(1, 1, 1), participations={"0": 3}),
    ]
    one(RunClosed(peer="learner", manifest=b"manifest"))
    assert [type(fact) for fact in one.facts()] == [Checkpoint, RunClosed]
    one.close()
    assert b"\7" * 32 not in one.path.read_bytes()


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
    assert one.update_ledger().spent("data") == 6.0
    assert one._db.execute("PRAGMA user_version").fetchone() == (stores.SCHEMA_VERSION,)
