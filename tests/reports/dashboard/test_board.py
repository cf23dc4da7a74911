"""The board shows what happened, to whoever comes late too; never a label, and who asked whom of a study alone."""

import msgspec
import pytest

from p2p_labeldp.facts import (
    Accepted,
    Answered,
    Asked,
    Committed,
    Ended,
    Exchanged,
    Gathered,
    Held,
    Joined,
    Listed,
    Listening,
    Met,
    Opened,
    Outcome,
    Ready,
    Reason,
    Rejected,
    Reported,
    Signed,
    Traffic,
)
from p2p_labeldp.reports.dashboard.board import BINS, MOST_DRAWN, Board, Kind

ENDS = (10.0, 20.0, 30.0, 40.0)
PEERS = 6
PERMUTED = (1, 2, 3, 4, 5, 0)


def the_round(*, mates=range(PEERS), labels=(0,) * PEERS, about="", cluster_of=lambda peer: peer % 2):
    """The facts of a round of six, in the order of their times."""
    yield from (Listening(peer=peer) for peer in range(PEERS))
    yield Opened(peer="learner", at=0.0, id="aa", deadlines=ENDS)
    yield from (Joined(peer=peer, at=1.0, cluster=peer % 2) for peer in range(PEERS))
    yield from (
        Exchanged(peer=peer, at=2.0, to=f"{mates[peer]}", about="Digest", sent=50, received=200)
        for peer in range(PEERS)
    )
    yield from (Met(peer=peer, at=2.0, cluster=peer % 2, records=2) for peer in range(PEERS))
    yield from (Met(peer=peer, at=4.0, cluster=peer % 2, records=3) for peer in range(PEERS - 1))
    yield from (Gathered(peer=peer, at=9.5, cluster=peer % 2, records=3 - (peer == 4)) for peer in range(PEERS))
    for cluster in (0, 1):
        yield Signed(
            peer="learner", at=10.0, cluster=cluster, size=3, flip_probability=0.1, delta=1 / 9, holding_minimum=3
        )
    yield from (Listed(peer=peer, at=10.0, cluster=peer % 2) for peer in range(PEERS))
    yield from (Committed(peer=peer, at=11.0, cluster=peer % 2, size=3) for peer in range(PEERS))
    for peer, mate in zip(range(PEERS), mates, strict=True):
        yield Asked(peer=peer, at=12.0, mate=mate)
        yield Answered(peer=mate, at=12.5, asker=peer)
    yield from (Held(peer=peer, at=13.0) for peer in range(PEERS))
    yield from (Ready(peer=peer, at=20.0, holding=True) for peer in range(PEERS))
    yield Rejected(peer=0, at=21.0, about=about)
    yield from (Reported(peer=peer, at=31.0) for peer in range(PEERS - 1))
    for peer in range(PEERS - 1):
        yield Accepted(peer=peer, at=31.0, cluster=cluster_of(peer), label=labels[peer])
        yield Ended(peer=peer, at=31.0, outcome=Outcome.REPORTED)
    yield Ended(peer=PEERS - 1, at=32.0, outcome=Outcome.ABSTAINED, reason=Reason.NOT_READY)
    yield Traffic(peer=0, messages=9, bytes=900)


def begun(kind=Kind.STUDY, peers=PEERS):
    board = Board(title="tiny", kind=kind)
    board.playing(peers=peers, clusters=2, ends=ENDS)
    return board


def told(facts, kind=Kind.STUDY, peers=PEERS):
    """A board that heard each fact when it happened, by a clock that was 100 at the opening."""
    board = begun(kind, peers)
    for fact in facts:
        board.hear(fact, 100.0 + fact.at)
    return board


def feed(facts, kind, *, peers=PEERS):
    """All that a viewer is sent which is told after every fact."""
    board, seen, sent = begun(kind, peers), 0, []
    for fact in facts:
        board.hear(fact, 100.0 + fact.at)
        changes = board.since(seen, 100.0 + fact.at)
        seen = changes.version
        if changes.cells:
            sent.append(msgspec.json.encode(changes))
    return sent


def cells(board, now=135.0):
    return msgspec.json.decode(msgspec.json.encode(board.since(0, now).cells))


@pytest.mark.parametrize("kind", [Kind.PRIVATE, Kind.LEARNER])
def test_who_asked_whom_changes_nothing_that_is_sent_unless_it_is_a_study(kind):
    without = [fact for fact in the_round() if not isinstance(fact, Asked | Answered)]
    assert feed(the_round(), kind) == feed(the_round(mates=PERMUTED), kind) == feed(without, kind)
    assert not any("peer/" in name for name in cells(told(the_round(), kind)))
    study = feed(the_round(), Kind.STUDY)  # the control: it is in the facts, and the same search finds it
    assert study != feed(the_round(mates=PERMUTED), Kind.STUDY)
    assert cells(told(the_round(mates=PERMUTED)))["peer/0"] == [0, "accepted", 1, True]


@pytest.mark.parametrize("kind", Kind)
def test_labels_change_nothing_that_is_sent(kind):
    assert feed(the_round(labels=(0,) * 6), kind) == feed(the_round(labels=(1, 0, 1, 1, 0, 1)), kind)
    moved = the_round(cluster_of=lambda peer: 1 - peer % 2)
    assert feed(the_round(), kind) != feed(moved, kind)  # the control: what else an accepted report says is shown


@pytest.mark.parametrize("kind", Kind)
def test_no_word_of_a_refused_message_is_sent(kind):
    plain, telling = feed(the_round(about="x"), kind), feed(the_round(about="Ask of 12ab: late"), kind)
    assert plain == telling
    assert cells(told(the_round(), kind))["traffic"]["refused"] == 1  # the control: it is counted


def test_phases_follow_the_clock_and_the_deadlines_that_were_signed():
    board = begun()
    assert cells(board, now=1.0)["phase"]["name"] == "starting"
    assert board.since(0, 1.0).now is None
    board.hear(Opened(peer="learner", at=0.5, id="aa", deadlines=tuple(2 * end for end in ENDS)), 100.5)
    at = {101: "join", 119: "join", 121: "exchange", 141: "closing", 161: "report", 500: "report"}
    assert {now: cells(board, now=now)["phase"]["name"] for now in at} == at
    assert cells(board, now=501)["phase"]["ends"] == [20, 40, 60, 80]
    board.training()
    assert cells(board, now=502)["phase"]["name"] == "training"
    board.finish({"outcomes": {}})
    board.break_off()
    assert cells(board, now=503)["phase"]["name"] == "over"


def test_a_phase_that_begins_by_the_clock_alone_is_a_change():
    board = told([Opened(peer="learner", id="aa", deadlines=ENDS)])
    seen = board.since(0, 100.1).version
    assert board.since(seen, 109.9).cells == {}
    assert board.since(seen, 110.1).cells == {"phase": {"name": "exchange", "ends": ENDS}}


def test_a_command_that_ends_early_says_so():
    board = told([Opened(peer="learner", id="aa", deadlines=ENDS)])
    board.break_off()
    assert cells(board, now=500.0)["phase"]["name"] == "broken off"


def test_a_learner_that_takes_its_round_up_has_its_clock_from_what_it_says_next():
    board = begun(Kind.LEARNER, peers=0)
    board.hear(Accepted(peer="ab", at=0.0, cluster=0, label=0), 100.0)
    assert board.since(0, 100.0).now is None
    board.hear(Exchanged(peer="learner", at=12.0, to="ab", about="Digest", sent=1, received=1), 103.0)
    assert board.since(0, 105.0).now == 14.0


def test_everything_that_happened_is_counted():
    shown = cells(told(the_round()))
    assert shown["steps"] == {
        "started": 6, "joined": 6, "listed": 6, "committed": 6, "asked": 6, "holding": 6, "ready": 6, "reported": 5,
        "accepted": 5,
    }  # fmt: skip
    assert shown["outcomes"] == {"reported": 5, "abstained": 1}
    assert shown["reasons"] == {"not_ready": 1}
    assert shown["traffic"] == {"requests": 6, "bytes": 1500, "refused": 1, "messages": 9, "sent": 900}
    assert shown["cluster/0"] == {
        "joined": 3, "gathered": 3, "least": 2, "most": 3, "whole": 2, "size": 3, "flip": 0.1, "delta": 1 / 9,
        "needed": 3, "committed": 3, "asked": 3, "holding": 3, "reported": 3, "accepted": 3,
    }  # fmt: skip
    assert shown["cluster/1"]["whole"] == 3
    bins = {name: cell for name, cell in shown.items() if name.startswith("time/")}
    second = BINS / ENDS[-1]
    assert bins == {
        f"time/{int(1 * second)}": {"met": 6 / 18},
        f"time/{int(2 * second)}": {"gossip": 1500, "met": 12 / 18},
        f"time/{int(4 * second)}": {"met": 17 / 18},
        f"time/{int(13 * second)}": {"answers": 6},
        f"time/{int(31 * second)}": {"reports": 5},
    }
    assert shown["peer/5"] == [1, "abstained", 5, True]


def test_what_comes_after_the_last_deadline_is_in_the_last_bin():
    shown = cells(told([Accepted(peer=0, at=at, cluster=0, label=0) for at in (40.0,)] + [Held(peer=1, at=9e9)]))
    assert shown[f"time/{BINS}"] == {"reports": 1, "answers": 1}


def test_a_peer_that_restarts_counts_once():
    again = [Listening(peer=0), Joined(peer=0, cluster=0), Ended(peer=0, outcome=Outcome.LATE)]
    assert feed(again, Kind.STUDY) == feed(again + again, Kind.STUDY)


def test_whoever_comes_late_has_the_same_as_who_was_there_all_along():
    board, held, seen = begun(), {}, 0
    for fact in the_round():
        board.hear(fact, 100.0 + fact.at)
        changes = board.since(seen, 135.0)
        seen = changes.version
        held.update(msgspec.json.decode(msgspec.json.encode(changes.cells)))
    assert held == cells(board)
    assert board.since(0, 135.0).fresh
    assert not board.since(seen, 135.0).fresh


def test_a_viewer_that_lags_is_sent_cells_not_a_history():
    """The bound on what a slow viewer costs: it does not grow with what it missed."""
    few, many = told(the_round()), told(the_round())
    seen = few.since(0, 135.0).version
    assert many.since(0, 135.0).version == seen
    for count, board in ((10, few), (100_000, many)):
        for _ in range(count):
            board.hear(Exchanged(peer=0, at=33.0, to="x", about="Ask", sent=1, received=1), 135.0)
    lacking = [board.since(seen, 135.0) for board in (few, many)]
    assert [set(changes.cells) for changes in lacking] == [{"traffic"}] * 2
    assert len(many._cells) == len(few._cells)


def test_a_crowd_is_not_drawn():
    assert cells(begun(peers=MOST_DRAWN))["round"]["graph"] is True
    board = told(the_round(), peers=MOST_DRAWN + 1)
    assert cells(board)["round"]["graph"] is False
    assert not any(name.startswith("peer/") for name in cells(board))


def test_the_end_has_the_outcomes_of_the_result():
    board = told(the_round())
    board.finish({"outcomes": {"reported": 4, "failed": 2}, "remarks": []})
    assert cells(board)["outcomes"] == {"reported": 4, "failed": 2}


def test_memory_keeps_its_most():
    board = begun()
    for memory in (5.0, 9.0, 2.0):
        board.take({"memory_bytes": memory})
    assert cells(board)["resources"] == {"memory_bytes": 2.0, "memory_most": 9.0}


def test_how_many_peers_a_learner_knows_is_told_when_it_changes():
    board = begun(Kind.LEARNER, peers=0)
    board.know(2)
    seen = board.since(0, 0.0).version
    board.know(2)
    assert board.since(seen, 0.0).cells == {}
    board.know(3)
    assert board.since(seen, 0.0).cells == {"known": 3}


def test_gossip_converges_as_peers_meet_and_a_restart_that_lost_its_records_takes_its_share_back():
    board = begun()
    for peer in range(3):
        board.hear(Joined(peer=peer, at=1.0, cluster=0), 101.0)
    seen = [cells(board)["convergence"]]
    for peer, records in ((0, 3), (1, 3), (2, 3), (2, 1)):
        board.hear(Met(peer=peer, at=2.0, cluster=0, records=records), 102.0)
        seen.append(cells(board)["convergence"])
    assert seen == [3 / 9, 5 / 9, 7 / 9, 9 / 9, 7 / 9]
