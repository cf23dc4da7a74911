"""Logs never hold a label: two peers that differ in it alone write the same lines, up to times."""

import json
import logging
import sys

import pytest
from network.test_peer_process import play

from p2p_labeldp import facts
from p2p_labeldp.cli import logs
from p2p_labeldp.cli.logs import JsonLines, fields_of
from p2p_labeldp.facts import Accepted, Answered, Asked, Ended, Flipped, Outcome, Reason
from p2p_labeldp.protocol import kept

STEPS = ["listening", "joined", "gathered", "committed", "asked", "held", "ready", "reported", "ended"]


async def lines_of_a_round(tmp_path, capsys, label):
    """What the first of three peers writes in a round of their own, told as it is told on a command line."""
    await play(tmp_path, also=JsonLines().hear, keep=None, label=label)
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def without_times(lines):
    """Per party, in order; bytes and messages depend on how often the network was tried."""
    timeless = [{k: v for k, v in line.items() if k not in ("time", "at")} for line in lines]
    return sorted((str(line["peer"]), json.dumps(line)) for line in timeless if line["event"] != "traffic")


@pytest.mark.processes
async def test_both_labels_give_the_same_lines_up_to_times(tmp_path, capsys):
    first, second = [await lines_of_a_round(tmp_path, capsys, label) for label in (0, 1)]
    assert without_times(first) == without_times(second)
    me = first[0]["peer"]
    events = [line["event"] for line in first if line["peer"] == me]
    assert [event for event in events if event not in ("traffic", "accepted")] == STEPS  # the latter is the learner's
    assert all({"time", "level", "event", "peer", "at"} <= line.keys() for line in first)


def test_no_line_says_a_label_nor_who_asked_whom_nor_that_anybody_was_asked():
    assert fields_of(Accepted(peer=1, cluster=2, label=1)) == fields_of(Accepted(peer=1, cluster=2, label=0))
    assert fields_of(Asked(peer=1, mate=2)) == fields_of(Asked(peer=1, mate=3))
    assert fields_of(Answered(peer=1, asker=2)) is None
    flipped = Flipped(peer=1, label_id="a", flip_probability=0.1, flipped_label=1, round_id="", roster="")
    assert fields_of(flipped) is None


def test_nothing_that_only_the_disk_may_know_is_ever_written():
    private = {kind.__name__ for kind in kept.KINDS} - {facts.Ready.__name__}  # which is its own plain form
    assert private.isdisjoint(logs._TOLD)
    assert "Ready" in logs._TOLD


def test_an_end_is_written_with_its_outcome_and_reason():
    line = fields_of(Ended(peer="ab", at=1.23456, outcome=Outcome.ABSTAINED, reason=Reason.MATE_TIMEOUT))
    assert line == {
        "level": "info",
        "event": "ended",
        "peer": "ab",
        "at": 1.235,
        "outcome": "abstained",
        "reason": "mate_timeout",
    }


def test_what_the_library_logs_becomes_a_line_with_its_error(capsys):
    record = logging.LogRecord("p2p_labeldp.x", logging.ERROR, "f", 1, "it %s", ("broke",), None)
    try:
        raise ValueError("why")
    except ValueError:
        record.exc_info = sys.exc_info()
    JsonLines().emit(record)
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["event"], line["text"], line["error"]) == (
        "error",
        "log",
        "it broke",
        "ValueError('why')",
    )
