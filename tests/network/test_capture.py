"""No label unsealed on the wire, none unflipped out of a peer, none readable by an asker: on a whole capture.

The capture is every byte in and out of every process of a round, taken at the calls of the operating system
(``tapped.py``). Labels are looked for by decoding every message as a peer would and opening every box with every peer's
key. The same search, on rounds with one defence off, finds every label; that is what its silence is worth.
"""

import dataclasses
import re
import subprocess
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from p2p_labeldp import facts, population, randomness
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto.identity import peer_id
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ProtocolError
from p2p_labeldp.facts import SHORT_ID, Accepted, Asked, Exchanged, Flipped
from p2p_labeldp.network import conducting, launcher
from p2p_labeldp.protocol import report, wire
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.manifest import Deadlines
from p2p_labeldp.protocol.messages import Answer, Ask, Report

pytestmark = pytest.mark.processes

SIZES = (5, 9)
FLIP = 0.3
DEFENCES_OFF = ("sealing_off", "sealed_for_the_asker", "unflipped")
TAPPED = Path(__file__).with_name("tapped.py")


@dataclasses.dataclass
class Connection:
    """What one process sent and received on one connection."""

    since: float
    out: bytes = b""
    into: bytes = b""


@dataclasses.dataclass
class Message:
    """A request and its reply, as two processes exchanged them."""

    sender: bytes
    receiver: bytes
    asked: bytes
    replied: bytes


@dataclasses.dataclass
class Capture:
    """What passed in and out of all processes of one round."""

    study: object
    played: object
    connections: dict  # (here, there) -> those of the process that has the address `here`, the earliest first
    pipes: list  # what the peers told the launcher
    secrets: list  # of the learner: its own and the round's

    def __post_init__(self):
        self.rings = [Keys(randomness.replay(self.study.seed, i).identity()) for i in range(len(self.study))]
        self.ordinals = {ring.peer_id: i for i, ring in enumerate(self.rings)}
        self.round_key = Keys(self.secrets[-1])

    def name_of(self, peer_id):
        return self.ordinals.get(peer_id, "learner")

    def messages(self):
        found = []
        for connection in (one for several in self.connections.values() for one in several):
            if connection.out.startswith(b"POST"):
                head, body = halves(connection.out)
                key = bytes.fromhex(re.search(rb'keyid="([0-9a-f]{64})"', head)[1].decode())
                to = bytes.fromhex(re.search(rb"p2p-recipient: ([0-9a-f]{64})", head)[1].decode())
                _, reply = halves(connection.into)
                found.append(Message(peer_id(key), to, body, reply))
        return found

    def answers(self):
        """Asker, origin, round, roster and box of every answer that passed."""
        for message in self.messages():
            ask, reply = decoded(message.asked), decoded(message.replied)
            if isinstance(ask, Ask) and isinstance(reply, Answer):
                yield self.ordinals[message.sender], self.ordinals[message.receiver], ask, reply.box

    def reports(self):
        for message in self.messages():
            if isinstance(sent := decoded(message.asked), Report):
                yield self.ordinals[message.sender], sent


def halves(data):
    """Head and body of an HTTP message; no body if it was cut short."""
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return head, body if length is not None and len(body) == int(length[1]) else b""


def decoded(body):
    try:
        return wire.decode(body)
    except ProtocolError:
        return None  # a refusal in words


TAP = threading.local()  # directory and sabotage of the round that a thread plays


class Tapped(subprocess.Popen):
    """Starts a module of the network behind a tap."""

    def __init__(self, command, **options):
        python, dash_m, module, *arguments = command
        assert dash_m == "-m"
        directory, sabotage = TAP.round
        super().__init__(
            [python, str(TAPPED), str(directory), sabotage, module.rpartition(".")[2], *arguments], **options
        )


def read(directory):
    """All connections, what the peers told the launcher, and the learner's secrets in the order they were made."""
    connections, pipes, secrets = defaultdict(list), [], []
    for file in directory.iterdir():
        data, lines, keys, own = file.read_bytes(), [], [], {}
        while data:
            length = int.from_bytes(data[:4], "big")
            kind, since, here, there, way, content = msgspec.msgpack.decode(data[4 : 4 + length])
            data = data[4 + length :]
            if kind == "socket":
                one = own.setdefault((tuple(here), tuple(there), since), Connection(since))
                if way == "out":
                    one.out += content
                else:
                    one.into += content
            elif kind == "pipe":
                lines.append(content)
            else:
                keys.append(content)
        secrets += keys
        pipes += [] if keys else lines
        for (here, there, _), one in own.items():
            connections[here, there].append(one)
    for several in connections.values():
        several.sort(key=lambda one: one.since)
    return dict(connections), pipes, secrets


@pytest.fixture(scope="module")
def captures(study_of, tmp_path_factory):
    deadlines = Deadlines(join=7.0, exchange=11.0, closing=15.0, report=17.0)
    study = study_of(seed=8, sizes=SIZES, deadlines=deadlines, gossip_period=0.4, flip_probability=FLIP)
    place = tmp_path_factory.mktemp("taps")

    def play(name):
        (place / name).mkdir()
        TAP.round = place / name, name
        return name, Capture(study, launcher.play(study), *read(place / name))

    rounds = ("nothing", *DEFENCES_OFF)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(rounds)) as pool:
        patch.setattr(
            conducting, "subprocess", SimpleNamespace(Popen=Tapped, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL)
        )
        return dict(pool.map(play, rounds))


# -- the search -----------------------------------------------------------------------------------------------------


def label_in(box, ring, info):
    """The label that stands in a box, either as it is or opened with this key; None if it can't be read."""
    try:
        opened = [box, ring.open(box, info=info)]
    except ProtocolError:
        opened = [box]
    return next((content[0] for content in opened if len(content) == 1 and content[0] < 2), None)


def labels_found(capture, rings):
    """Asker -> the label in its answer, as far as any of the keys ``rings`` (or none at all) reads it."""
    found = {}
    for asker, _, ask, box in capture.answers():
        info = answer_info(ask.round_id, ask.roster, capture.rings[asker].peer_id)
        for ring in rings:
            label = label_in(box, ring, info)
            if label is not None:
                found[asker] = label
    return found


def reports_found(capture, rings):
    """Whose reports can be read by any of the keys, or by nobody's."""
    found = set()
    for reporter, sent in capture.reports():
        info = report.report_info(sent.round_id, sent.roster, capture.rings[reporter].peer_id)
        for content in [sent.sealed, *opened(sent.sealed, rings, info)]:
            try:
                msgspec.msgpack.decode(content, type=report.Content)
                found.add(reporter)
            except msgspec.DecodeError:
                pass
    return found


def opened(box, rings, info):
    for ring in rings:
        with suppress(ProtocolError):
            yield ring.open(box, info=info)


def flipped(study):
    clusters = Clustering.from_payload(study.terms.clustering).assign(study.features)
    return population.play(study.labels, clusters, [FLIP] * len(SIZES), seed=study.seed).flipped


def accepted(capture):
    return {fact.peer: fact.label for fact in capture.played.facts if isinstance(fact, Accepted)}


def told(capture, labels):
    """Asker -> the label of the mate that it asked."""
    return {fact.peer: int(labels[fact.mate]) for fact in capture.played.facts if isinstance(fact, Asked)}


# -- what holds -----------------------------------------------------------------------------------------------------


def test_the_capture_is_whole(captures):
    """Both ends of every stream were captured and agree; every exchange that a fact tells of is among the messages."""
    for capture in captures.values():
        for (here, there), several in capture.connections.items():
            for this in several:  # what came in left at the other end; who ends with a question unread is no other end
                others = capture.connections.get((there, here), ())
                assert this.into == b"" or any(other.out.startswith(this.into) for other in others)
        seen = Counter()
        for message in capture.messages():
            asked, replied = decoded(message.asked), decoded(message.replied)
            for body, content in ((message.asked, asked), (message.replied, replied)):
                assert content is None or wire.encode(content) == body  # nothing rides along
            names = capture.name_of(message.sender), message.receiver.hex()[:SHORT_ID], type(asked).__name__
            seen[(*names, len(message.asked), len(message.replied))] += 1
        told = Counter(
            (fact.peer, fact.to, fact.about, fact.sent, fact.received)
            for fact in capture.played.facts
            if isinstance(fact, Exchanged) and fact.received
        )
        assert told.total() > 10 * len(capture.study)
        assert not told - seen
        assert len(list(capture.answers())) >= len(capture.study)


def test_no_label_is_readable_on_the_wire_or_by_an_asker(captures):
    capture = captures["nothing"]
    assert sorted({asker for asker, *_ in capture.answers()}) == list(range(sum(SIZES)))
    assert labels_found(capture, capture.rings) == {}
    assert reports_found(capture, capture.rings) == set()


def test_only_flipped_labels_leave_a_peer(captures):
    """All boxes opened with the learner's key of the round: what an answer holds is its origin's flipped label."""
    capture = captures["nothing"]
    labels = flipped(capture.study)
    assert labels_found(capture, [capture.round_key]) == told(capture, labels) == accepted(capture)
    assert told(capture, labels) != told(capture, capture.study.labels)
    assert reports_found(capture, [capture.round_key]) == set(range(sum(SIZES)))


def test_what_peers_tell_the_launcher_holds_no_label(captures):
    for line in b"".join(captures["nothing"].pipes).splitlines():
        fact = facts.decode(line)
        assert not isinstance(fact, Flipped | Accepted)


def test_every_box_and_report_has_one_length(captures):
    for capture in captures.values():
        assert len({len(box) for *_, box in capture.answers()}) == 1
        assert len({len(sent.sealed) for _, sent in capture.reports()}) == 1


# -- and what the search is worth -----------------------------------------------------------------------------------


def test_with_sealing_off_the_same_search_finds_every_flipped_label(captures):
    capture = captures["sealing_off"]
    found = labels_found(capture, capture.rings)
    assert found == told(capture, flipped(capture.study)) == accepted(capture)
    assert len(found) == sum(SIZES)
    assert reports_found(capture, capture.rings) == set(range(sum(SIZES)))


def test_with_answers_sealed_for_their_askers_the_same_search_finds_every_flipped_label(captures):
    capture = captures["sealed_for_the_asker"]
    found = labels_found(capture, capture.rings)
    assert found == told(capture, flipped(capture.study))
    assert len(found) == sum(SIZES)
    assert accepted(capture) == {}  # the learner can't open them: an honest one would notice


def test_with_the_flip_left_out_the_same_search_finds_true_labels(captures):
    capture = captures["unflipped"]
    found = labels_found(capture, [capture.round_key])
    assert found == told(capture, capture.study.labels) == accepted(capture)
    assert found != told(capture, flipped(capture.study))
    assert labels_found(capture, capture.rings) == {}
