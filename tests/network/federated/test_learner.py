"""A learner's start: a fresh run, the one it died in, and none of other terms."""

import contextlib

import msgspec
import numpy as np
import pytest
from altering import altered

from network.federated.little_study import TERMS
from p2p_labeldp import randomness
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.federated.learner import _averager
from p2p_labeldp.network.store import Store
from p2p_labeldp.protocol.kept import Checkpoint, RunClosed, RunOpened

KEYS = Keys(b"\x22" * 32)


@pytest.fixture
def store(tmp_path):
    one = Store(tmp_path / "state", peer_id=KEYS.peer_id.hex())
    yield one
    one.close()


def started(store, terms=TERMS):
    averager, elapsed = _averager(terms, keys=KEYS, coins=randomness.replay(5, 0), log=store.facts(), store=store)
    averager.start(elapsed)
    for effect in averager.effects():
        store(effect.fact)
    return averager


def test_a_fresh_run_is_on_disk_with_its_key_before_anybody_hears_of_it(store):
    averager = started(store)
    opened, checkpoint = store.facts()
    assert isinstance(opened, RunOpened)
    assert opened.manifest == averager.envelope
    assert Keys(opened.run_secret).sealing_public == averager.opened.manifest.run_key
    assert isinstance(checkpoint, Checkpoint)
    assert checkpoint.opening == averager.opening


def test_a_learner_that_died_takes_its_run_up_with_the_same_key_and_the_same_round(store):
    first = started(store)
    first.wake(first.wake_at())
    for effect in first.effects():
        store(effect.fact)
    again = started(store)
    assert (again.envelope, again.opening, again.number) == (first.envelope, first.opening, 1)
    assert (again.parameters == first.parameters).all()
    assert np.any(again.parameters != 0)


def test_a_run_of_other_terms_is_refused(store):
    started(store)
    with pytest.raises(ConfigurationError, match=r"^--state: the learner died in a run of other terms"):
        started(store, msgspec.structs.replace(TERMS, sigma=0.0))
    assert started(store).number == 0


@pytest.mark.parametrize(
    ("fact", "damaged"),
    [
        (Checkpoint, lambda fact: {"opening": fact.opening[:-1]}),
        (Checkpoint, lambda fact: {"opening": altered(fact.opening, -100)}),
        (Checkpoint, lambda fact: {"cohorts": (3,)}),
        (RunOpened, lambda fact: {"manifest": b""}),
        (RunOpened, lambda fact: {"run_secret": bytes(32)}),  # no box would open, and all cohorts would be empty
    ],
)
def test_a_damaged_state_is_refused_and_nothing_is_opened(store, fact, damaged):
    started(store)
    log = store.facts()
    hurt = [
        msgspec.structs.replace(one, **damaged(one)) if isinstance(one, fact) else one for one in log
    ]  # fmt: skip
    for read, refused in ((hurt, True), (log, False)):
        with pytest.raises(ConfigurationError, match=r"^--state: damaged") if refused else contextlib.nullcontext():
            _averager(TERMS, keys=KEYS, coins=randomness.replay(5, 0), log=read, store=store)
    assert store.facts() == log


def test_a_run_that_is_over_stays_over(store):
    first = started(store)
    first.close(1.0)
    for effect in first.effects():
        store(effect.fact)
    assert [type(fact) for fact in store.facts()] == [Checkpoint, RunClosed]
    assert started(store).over
