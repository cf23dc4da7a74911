"""Progress counts facts, and says so neither too often nor too late."""

import io

from p2p_labeldp.cli.progress import Watcher, watching
from p2p_labeldp.facts import Ended, Gathered, Joined, Outcome
from p2p_labeldp.network.pace import phases


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def begin(peers=3, engine="processes"):
    said, updates, clock = [], [], Clock()
    watcher = Watcher(say=said.append, update=updates.append, interval=5.0, clock=clock)
    watcher.playing(peers=peers, clusters=1, engine=engine, pace=phases(peers=peers, engine=engine))
    return watcher, said, updates, clock


def test_the_round_is_announced_with_its_length_where_it_takes_real_time():
    assert begin()[1] == ["3 peers in 1 clusters, on the processes engine; the round takes about 24 s"]
    assert begin(engine="virtual")[1] == ["3 peers in 1 clusters, on the virtual engine"]


def test_counts_are_told_when_all_have_got_somewhere():
    watcher, _, updates, _ = begin()
    for peer in range(3):
        assert updates == []
        watcher.happened(Joined(peer=peer, cluster=0))
    assert updates == ["of 3 peers: 3 joined"]


def test_counts_are_told_now_and_then():
    watcher, _, updates, clock = begin(peers=1000)
    for peer in range(100):
        clock.now += 0.12
        watcher.happened(Joined(peer=peer, cluster=0))
        watcher.happened(Gathered(peer=peer, cluster=0, records=1))  # nothing that is counted
    watcher.happened(Ended(peer=0, outcome=Outcome.REPORTED))
    assert updates == ["of 1000 peers: 42 joined", "of 1000 peers: 84 joined"]
    assert watcher.line() == "of 1000 peers: 100 joined, 1 ended"


def test_before_anybody_has_joined_it_says_so():
    assert begin()[0].line() == "of 3 peers: none has joined"


def test_a_file_gets_plain_lines():
    file = io.StringIO()
    with watching(file) as watcher:
        assert file.getvalue() == ""
        watcher.learning()
    assert file.getvalue() == "training on the reports, and working out the guarantee\n"


def test_a_terminal_gets_a_line_that_changes(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    with watching(file) as watcher:
        watcher.learning()
    assert "training on the reports" in file.getvalue()
    assert "\x1b[" in file.getvalue()
