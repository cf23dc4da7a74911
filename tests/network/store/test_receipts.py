"""The receipt that a peer can show."""

import sqlite3

import pytest

from network.store.stored import ME, A, B, joined, release
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Outcome
from p2p_labeldp.network import store as stores
from p2p_labeldp.protocol.kept import EndedIn


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
