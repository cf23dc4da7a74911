"""States in a test's own folder."""

import pytest

from network.store.stored import ME
from p2p_labeldp.network.store import Store


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
