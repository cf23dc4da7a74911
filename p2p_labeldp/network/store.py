"""What a deployed party has on disk, in SQLite: a peer its label ledger and the log of its round, a learner the latter.

Each fact is committed before the call that stores it returns (WAL, ``synchronous=FULL``), so before anything behind it
leaves. Spending and recording a label are one row, written in the transaction that has looked at all earlier ones. A
party keeps its file locked for as long as it runs: a second instance on the same file does not start.

The ledger is for ever. The log is what ``Peer.restore`` and ``Collector.restore`` read; it holds one round. When a peer
has its outcome all but the outcome and the receipt is erased from it (``secure_delete``: overwritten in the file), and
a learner's round key when the round is over. Of a run of updates a learner's log holds the last checkpoint, and the
ledger of a peer the level of every round and the last box.

**A key without its ledger.** Before its first round a peer writes, beside its key file, ``KEY.used``: its id and the
random id of its state. From then on a start that doesn't find that very state is refused, unless told that it is lost.
Noticed are a state file that was deleted, moved or replaced. Not noticed are: a key copied elsewhere without
``KEY.used``; both files deleted together; an older copy of the same state put back. For these stand the coins, which
are HMACs of the key's secret: such a peer repeats its flip at the same flip probability, and its draw in the same round
and roster. At another flip probability, or in another roster, it releases its label a second time.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Fact, Flipped
from p2p_labeldp.protocol import kept
from p2p_labeldp.protocol.kept import (
    Abandoned,
    Checkpoint,
    Closed,
    ContributedAs,
    EndedIn,
    JoinedAs,
    OpenedWith,
    RunClosed,
    RunOpened,
)
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.update_ledger import UpdateLedger

APPLICATION_ID = 0x70326C64  # "p2ld"
STATE_SUFFIX, USED_SUFFIX = ".state", ".used"

_MIGRATIONS = (
    """
CREATE TABLE owner (peer_id TEXT NOT NULL, state_id TEXT NOT NULL);
CREATE TABLE releases (
    label_id TEXT NOT NULL, round_id TEXT NOT NULL, roster TEXT NOT NULL,
    flip_probability REAL NOT NULL, flipped_label INTEGER NOT NULL, peer TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (label_id, round_id, roster)
) WITHOUT ROWID;
""",
    """
CREATE TABLE log (n INTEGER PRIMARY KEY, kind TEXT NOT NULL, fact BLOB NOT NULL);
""",
    """
ALTER TABLE releases ADD COLUMN label_space TEXT NOT NULL DEFAULT '';
""",
    """
CREATE TABLE contributions (
    run_id BLOB NOT NULL, round INTEGER NOT NULL, round_id BLOB NOT NULL, data_id TEXT NOT NULL,
    epsilon REAL NOT NULL, box BLOB NOT NULL, peer TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (run_id, round)
) WITHOUT ROWID;
""",
)
SCHEMA_VERSION = len(_MIGRATIONS)
"""The n-th script makes version n of version n - 1. A state of an earlier version is brought up to date at its start,
in one transaction; one of a later version is refused."""

_RELEASE = "label_id", "round_id", "roster", "flip_probability", "flipped_label", "label_space", "peer", "at"
_CONTRIBUTION = "run_id", "round", "round_id", "data_id", "epsilon", "box", "peer", "at"
_INTO_THE_FILE = (Flipped, EndedIn, Abandoned, Closed, ContributedAs, RunClosed)
"""Not only into the write-ahead log beside it: who moves a state won't think of that, and what is erased is in it."""


class Store:
    """One party's file; call it with each persisted fact.

    Args:
        path: The file; made if missing.
        peer_id: Whose it is, hex.
        another_roster: As for ``Ledger``.

    Raises:
        ConfigurationError: No state of this program, of this version, of this peer; or in use.
    """

    def __init__(self, path: Path, *, peer_id: str, another_roster: bool = False) -> None:
        self.path = path
        self._another_roster = another_roster
        fresh = not path.exists()
        try:
            if fresh:  # SQLite would take its mode from the umask, and give it to the WAL beside it
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, timeout=0.0)
        except (OSError, sqlite3.Error) as exc:
            raise ConfigurationError(f"{str(path)!r} can't be opened: {exc}", field="--state") from exc
        try:
            self.state_id = self._open(peer_id)
        except sqlite3.Error as exc:
            self._db.close()
            busy = "locked" in str(exc)
            what = "is in use by another instance of this peer" if busy else f"is no state of a peer: {exc}"
            raise ConfigurationError(f"{str(path)!r} {what}", field="--state") from exc
        except ConfigurationError:
            self._db.close()
            raise
        if fresh:
            _sync(path.parent)

    def _open(self, peer_id: str) -> str:
        db = self._db
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        empty = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]  # new, or died while it was made
        if db.execute("PRAGMA application_id").fetchone()[0] != (0 if empty else APPLICATION_ID):
            raise ConfigurationError(f"{str(self.path)!r} is another program's", field="--state")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA secure_delete=ON")
        with self._transaction():
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise ConfigurationError(
                    f"{str(self.path)!r} has version {version}; this program reads {SCHEMA_VERSION}", field="--state"
                )
            for script in _MIGRATIONS[version:]:
                for statement in filter(str.strip, script.split(";")):
                    db.execute(statement)
            db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            if empty:
                db.execute("INSERT INTO owner VALUES (?, ?)", (peer_id, os.urandom(16).hex()))
                db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            owner, state_id = db.execute("SELECT peer_id, state_id FROM owner").fetchone()
            if owner != peer_id:
                raise ConfigurationError(f"{str(self.path)!r} is the state of peer {owner[:16]}", field="--state")
            return str(state_id)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def ledger(self) -> Ledger:
        """What has left so far."""
        rows = self._db.execute(f"SELECT {', '.join(_RELEASE)} FROM releases ORDER BY at").fetchall()  # noqa: S608  a constant
        releases = [Flipped(**dict(zip(_RELEASE, row, strict=True))) for row in rows]
        return Ledger(releases, another_roster=self._another_roster)

    def contributions(self) -> list[ContributedAs]:
        """What has left in rounds of updates so far: the entries of an ``UpdateLedger``, which has the budget."""
        rows = self._db.execute(f"SELECT {', '.join(_CONTRIBUTION)} FROM contributions ORDER BY at").fetchall()  # noqa: S608  a constant
        return [ContributedAs(**dict(zip(_CONTRIBUTION, row, strict=True))) for row in rows]

    def facts(self) -> list[Fact]:
        """The log, the oldest first.

        Raises:
            ConfigurationError: It can't be read.
        """
        try:
            return [kept.decode(row[0]) for row in self._db.execute("SELECT fact FROM log ORDER BY n")]
        except (msgspec.DecodeError, sqlite3.Error) as exc:
            raise ConfigurationError(f"{str(self.path)!r} can't be read: {exc}", field="--state") from exc

    def __call__(self, fact: Fact) -> None:
        """Makes a fact durable before it returns, if a restart needs it.

        Raises:
            PrivacyError: What was to leave may not leave again; nothing is written.
            OSError: It can't be written.
        """
        if not isinstance(fact, kept.KINDS):
            return
        try:
            with self._transaction():
                if isinstance(fact, Flipped):
                    self._release(fact)
                elif isinstance(fact, ContributedAs):
                    self._contribute(fact)
                else:
                    self._append(fact)
            if isinstance(fact, _INTO_THE_FILE):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as exc:  # a full disk, say; a label that can't be recorded does not leave
            raise OSError(f"{str(self.path)!r} can't be written: {exc}") from exc

    def _release(self, fact: Flipped) -> None:
        if self.ledger().enter(fact):
            row = [str(fact.peer) if name == "peer" else getattr(fact, name) for name in _RELEASE]
            marks = ", ".join("?" * len(row))
            self._db.execute(f"INSERT INTO releases ({', '.join(_RELEASE)}) VALUES ({marks})", row)  # noqa: S608  constants

    def _contribute(self, fact: ContributedAs) -> None:
        """Spending and recording are one row; of a run only the last box is of use."""
        if UpdateLedger(self.contributions()).enter(fact):
            self._db.execute("UPDATE contributions SET box = x'' WHERE run_id = ?", (fact.run_id,))
            row = [str(fact.peer) if name == "peer" else getattr(fact, name) for name in _CONTRIBUTION]
            marks = ", ".join("?" * len(row))
            self._db.execute(f"INSERT INTO contributions ({', '.join(_CONTRIBUTION)}) VALUES ({marks})", row)  # noqa: S608  constants

    def _append(self, fact: Fact) -> None:
        match fact:
            case JoinedAs() if self._joined() != fact.round_id:
                self._erase("")
            case OpenedWith() | RunOpened():
                self._erase("")
            case Checkpoint():
                self._erase("WHERE kind = 'Checkpoint'")
            case RunClosed():
                self._erase("WHERE kind = 'RunOpened'")
            case EndedIn() | Abandoned():
                if self._joined() != fact.round_id:
                    return  # it never joined: nothing of it left, and it may try again
                self._erase("WHERE kind != 'JoinedAs'")
            case Closed():
                self._erase("WHERE kind IN ('OpenedWith', 'Heard')")
            case _:
                pass
        self._db.execute("INSERT INTO log (kind, fact) VALUES (?, ?)", (type(fact).__name__, kept.encode(fact)))

    def _erase(self, where: str) -> None:
        self._db.execute(f"DELETE FROM log {where}")  # noqa: S608  constants

    def _joined(self) -> bytes | None:
        """The round of the log, if it is a peer's."""
        row = self._db.execute("SELECT fact FROM log WHERE kind = 'JoinedAs' ORDER BY n DESC LIMIT 1").fetchone()
        if row is None:
            return None
        fact = kept.decode(row[0])
        assert isinstance(fact, JoinedAs)
        return fact.round_id

    def forget(self) -> None:
        """Erases the log: what became of the round is in other hands. The ledger stays."""
        with self._transaction():
            self._erase("")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Gives the file up."""
        self._db.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReceipt:
    """What a peer that reported has left of its last round.

    Args:
        peer_id: Whose it is, hex.
        round_id: Of the round, hex.
        receipt: The learner's receipt, as it came.
        flips: Flip probabilities that the label left with in that round, by roster (hex).
    """

    peer_id: str
    round_id: str
    receipt: bytes
    flips: dict[str, float]


def read_receipt(path: Path) -> KeptReceipt:
    """The receipt in a peer's state. Nothing is written or locked: the peer may run.

    Raises:
        ConfigurationError: No state of a peer, or of one whose last round ended without a report.
    """
    field, db = "--receipt", None
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise ConfigurationError(f"{str(path)!r} is no state of a peer", field=field)
        [peer_id] = db.execute("SELECT peer_id FROM owner").fetchone()
        rows = db.execute("SELECT fact FROM log WHERE kind = 'EndedIn' ORDER BY n DESC LIMIT 1").fetchall()
        ended = kept.decode(rows[0][0]) if rows else None
        if not isinstance(ended, EndedIn) or not ended.receipt:
            how = "has finished no round" if not isinstance(ended, EndedIn) else f"ended {ended.outcome.value}"
            raise ConfigurationError(f"{str(path)!r} holds no receipt: its peer {how}", field=field)
        round_id = ended.round_id.hex()
        flips = db.execute("SELECT roster, flip_probability FROM releases WHERE round_id = ?", (round_id,)).fetchall()
    except (sqlite3.Error, msgspec.DecodeError, ValueError) as exc:  # a path with a null character is a ValueError
        raise ConfigurationError(f"{str(path)!r} is no state of a peer: {exc}", field=field) from exc
    finally:
        if db is not None:
            db.close()
    return KeptReceipt(peer_id=peer_id, round_id=round_id, receipt=ended.receipt, flips=dict(flips))


def open_beside(
    key: Path,
    *,
    peer_id: str,
    state: Path | None = None,
    used: Path | None = None,
    new_state: bool = False,
    another_roster: bool = False,
) -> Store:
    """The state that belongs to a key file, made at the key's first use.

    Args:
        key: The key file.
        peer_id: Of the key, hex.
        state: ``KEY.state`` if not given.
        used: Where it is noted which state the key was used with; ``KEY.used`` if not given.
        new_state: Take whatever state there is, or make one, though the key was used with another that is lost.
        another_roster: As for ``Ledger``.

    Raises:
        ConfigurationError: The key was used, and this is not its state.
    """
    path = state or Path(f"{key}{STATE_SUFFIX}")
    mark = used or Path(f"{key}{USED_SUFFIX}")
    known = _state_of(mark, peer_id)
    remedy = "if it is lost for good, --new-state starts anew, and whatever has left of the label may leave again"
    if known is not None and not path.exists() and not new_state:
        raise ConfigurationError(f"{str(path)!r} is missing, and the key has been used; {remedy}", field="--state")
    store = Store(path, peer_id=peer_id, another_roster=another_roster)
    try:
        if known != store.state_id:
            if known is not None and not new_state:
                raise ConfigurationError(
                    f"{str(path)!r} is not the state this key was used with; {remedy}", field="--state"
                )
            _mark(mark, peer_id, store.state_id)
    except BaseException:
        store.close()
        raise
    return store


def _state_of(mark: Path, peer_id: str) -> str | None:
    try:
        content = json.loads(mark.read_text(encoding="ascii"))
        owner, state_id = content["peer"], content["state"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ConfigurationError(
            f"{str(mark)!r} can't be read; it says which state is the key's", field="--key"
        ) from exc
    if owner != peer_id:
        raise ConfigurationError(f"{str(mark)!r} is the mark of another key", field="--key")
    return str(state_id)


def _mark(mark: Path, peer_id: str, state_id: str) -> None:
    """On disk before the first round; whole or not at all."""
    new = Path(f"{mark}.new")
    try:
        with new.open("w", encoding="ascii") as file:
            file.write(json.dumps({"peer": peer_id, "state": state_id}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(mark)
        _sync(mark.parent)
    except OSError as exc:
        raise ConfigurationError(
            f"{str(mark)!r} can't be written: {exc.strerror}; a key that is used is marked as such", field="--key"
        ) from exc


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
