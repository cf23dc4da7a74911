"""A round of processes opens once, when everybody listens or when it is time, and nobody is waited for for ever."""

import io

import pytest

from p2p_labeldp.facts import Joined, Listening
from p2p_labeldp.network import opening
from p2p_labeldp.network.opening import END_SECONDS, START_SECONDS, START_SECONDS_A_PEER, Opening


class Timer:
    """In place of a thread's: it is due when the test says so."""

    def __init__(self, seconds, call):
        self.seconds, self.call, self.cancelled = seconds, call, False

    def cancel(self):
        self.cancelled = True


class Learner(io.BytesIO):
    """A pipe that remembers what was written before it was closed."""

    told = b""

    def close(self):
        self.told = self.told or self.getvalue()
        super().close()


@pytest.fixture
def opened(monkeypatch):
    """An opening of three peers that are waited for 7 s, its learner, the timers, and who gave up."""
    timers, gone, learner = [], [], Learner()
    monkeypatch.setattr(opening, "_later", lambda *of: timers.append(Timer(*of)) or timers[-1])

    def make(patience=7.0):
        one = Opening(
            peers=3, learner=learner, order=lambda waited: (b"order", patience), give_up=lambda: gone.append(1)
        )
        return one, learner, timers, gone

    return make


def test_it_opens_when_the_last_peer_listens_and_once(opened):
    one, learner, timers, _ = opened()
    assert timers[0].seconds == START_SECONDS + 3 * START_SECONDS_A_PEER
    for fact in (Listening(peer=0), Joined(peer=0, cluster=0), Listening(peer=1)):
        one.hear(fact)
    assert not learner.closed
    one.hear(Listening(peer=2))
    one.hear(Listening(peer=2))
    one.open()
    assert learner.told == b"order"
    assert timers[0].cancelled
    assert [timer.seconds for timer in timers[1:]] == [7.0]


def test_whoever_does_not_listen_is_not_waited_for(opened):
    one, learner, timers, _ = opened()
    one.hear(Listening(peer=0))
    timers[0].call()
    assert learner.told == b"order"


@pytest.mark.parametrize("patience", [7.0, None])
def test_silent_peers_are_given_up_if_there_is_an_end_to_patience(opened, patience):
    one, _, timers, gone = opened(patience)
    one.open()
    for timer in timers[1:]:
        timer.call()
    assert gone == [1] * (patience is not None)


def test_without_a_learner_peers_have_a_moment_more(opened):
    one, _, timers, gone = opened()
    one.open()
    one.without_learner()
    assert [(timer.seconds, timer.cancelled) for timer in timers[1:]] == [(7.0, True), (END_SECONDS, False)]
    timers[-1].call()
    assert gone == [1]
    one.cancel()
    assert timers[-1].cancelled


def test_a_learner_that_is_gone_is_no_error(opened):
    one, learner, _, _ = opened()

    def broken(_data):
        raise BrokenPipeError

    learner.write = broken
    one.open()
    assert learner.closed
