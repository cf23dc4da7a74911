"""The disk of a scenario keeps and erases what the real one does."""

import pytest

from p2p_labeldp.network.store import Store
from p2p_labeldp.network.swarm import scenario
from p2p_labeldp.network.swarm.disk import Disk
from p2p_labeldp.network.swarm.faults import LEARNER


@pytest.mark.parametrize("party", [LEARNER, 0, 1, 2])
@pytest.mark.parametrize("seed", [3, 61])
def test_a_disk_in_memory_is_always_where_the_file_would_be(seed, party, tmp_path):
    """Through all that its party persists in a round, fact by fact."""
    play = scenario.Play(scenario.draw(seed, "crashes"))
    written, disk = [], play._disks[party]

    class Tapped(Disk):
        def __call__(self, fact):
            written.append(fact)
            super().__call__(fact)

    disk.__class__ = Tapped
    play.verdict()
    store, memory = Store(tmp_path / "state", peer_id="aa"), Disk()
    assert len(written) > 3
    for fact in written:
        store(fact)
        memory(fact)
        assert store.facts() == memory.facts()
        assert {repr(r).split("peer")[0] for r in store.ledger()._of("0")} == {
            repr(r).split("peer")[0] for r in memory.ledger()._of("0")
        }
    store.close()
