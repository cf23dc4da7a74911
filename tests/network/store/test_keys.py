"""A key that was used does not start without its ledger."""

import json
from pathlib import Path

import pytest

from network.store.stored import ME, OTHER, release
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network import store as stores
from p2p_labeldp.network.store import Store, open_beside


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


def test_the_mark_of_a_key_in_a_folder_that_nobody_writes_to_stands_where_it_is_told_to(tmp_path):
    key, state, used = tmp_path / "key", tmp_path / "state", tmp_path / "marks"
    open_beside(key, peer_id="ab", state=state, used=used).close()
    assert used.exists()
    assert not (tmp_path / "key.used").exists()
    state.unlink()
    with pytest.raises(ConfigurationError, match="is missing, and the key has been used"):
        open_beside(key, peer_id="ab", state=state, used=used)
