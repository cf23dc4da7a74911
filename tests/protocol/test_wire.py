"""Messages survive the wire; anything else is refused as malformed, and nothing too large is even looked at."""

import contextlib
import dataclasses
import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_labeldp.errors import MalformedMessage, ProtocolError
from p2p_labeldp.protocol import admission, closing, directory, manifest, report, roster, wire
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.messages import (
    MAX_CLUSTER_SIZE,
    MAX_CONTACTS,
    MAX_ENVELOPE_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_OFFER_RECORDS,
    MAX_RECORD_BYTES,
    Answer,
    AnyMessage,
    Ask,
    Contact,
    Contradiction,
    Contribute,
    Digest,
    Done,
    GetManifest,
    GetRoster,
    GetRound,
    ManifestReply,
    Offer,
    Place,
    Push,
    Receipt,
    Refusal,
    Report,
    RosterReply,
    RoundReply,
    Topic,
)
from protocol.little_round import LEARNER, OPENED, ROUND, keys, open_roster

HASH = st.binary(min_size=32, max_size=32)
IDS = st.binary(max_size=200)
RECORDS = st.lists(st.binary(max_size=300), max_size=4).map(tuple)
CLUSTER = st.integers(0, 1_000_000)
TOPIC = st.sampled_from(Topic)
BLOB = st.binary(max_size=500)
ROUND_START = st.binary(min_size=8, max_size=32)
PLACES = st.builds(Place, st.from_regex(r"\A[a-z0-9_.:-]{1,253}\Z"), st.integers(1, 65535))
PLACE, NOWHERE = Place("h", 1), Place("", 1)
CONTACT = Contact(bytes(32), 0, PLACE)
ROOTED = Digest(bytes(8), Topic.CLOSING, 0, b"", (), 0, None, bytes(8))

MESSAGES = {
    GetManifest: st.builds(GetManifest, st.from_regex(r"\A[a-z0-9_.:-]{1,253}\Z"), st.integers(1, 65535)),
    ManifestReply: st.builds(ManifestReply, BLOB, st.floats(0, 1e9)),
    Digest: st.builds(
        Digest,
        ROUND_START,
        TOPIC,
        CLUSTER,
        IDS,
        RECORDS,
        st.integers(0, (1 << 63) - 1),
        st.none() | PLACES,
        st.binary(max_size=8),
    ),
    Offer: st.builds(
        Offer,
        RECORDS,
        IDS,
        st.lists(st.builds(Contact, HASH, CLUSTER, PLACES), max_size=MAX_CONTACTS).map(tuple),
        st.booleans(),
        st.none() | CLUSTER,
    ),
    Push: st.builds(Push, ROUND_START, TOPIC, RECORDS),
    Done: st.just(Done()),
    GetRoster: st.builds(GetRoster, HASH, CLUSTER),
    RosterReply: st.builds(RosterReply, BLOB),
    Contradiction: st.builds(Contradiction, BLOB, BLOB),
    Ask: st.builds(Ask, HASH, HASH, st.binary(min_size=16, max_size=16)),
    Answer: st.builds(Answer, st.binary(max_size=256)),
    Report: st.builds(Report, HASH, HASH, BLOB),
    Receipt: st.builds(Receipt, BLOB),
    GetRound: st.builds(GetRound, HASH),
    RoundReply: st.builds(RoundReply, BLOB, st.booleans()),
    Contribute: st.builds(Contribute, HASH, BLOB),
    Refusal: st.builds(Refusal, st.text(max_size=64), st.booleans()),
}
ANY = st.one_of(*MESSAGES.values())


def test_every_message_of_the_protocol_is_tested_here():
    assert set(MESSAGES) == set(typing.get_args(AnyMessage))


@given(ANY)
def test_a_message_survives_the_wire(message):
    assert wire.decode(wire.encode(message)) == message


@given(st.binary(max_size=300))
def test_bytes_are_a_message_or_malformed(data):
    try:
        message = wire.decode(data)
    except MalformedMessage:
        return
    assert isinstance(message, tuple(MESSAGES))


@settings(max_examples=400)
@given(ANY, st.data())
def test_a_damaged_message_is_a_message_or_malformed(message, data):
    encoded = bytearray(wire.encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(len(encoded) - 1, 0)))
        match data.draw(st.sampled_from(["replace", "cut", "insert"])):
            case "replace":
                encoded[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del encoded[at : at + data.draw(st.integers(1, 5))]
            case "insert":
                encoded[at:at] = data.draw(st.binary(min_size=1, max_size=5))
    with contextlib.suppress(MalformedMessage):
        assert isinstance(wire.decode(bytes(encoded)), tuple(MESSAGES))


def test_trailing_bytes_are_malformed():
    encoded = wire.encode(Done())
    assert wire.decode(encoded) == Done()
    with pytest.raises(MalformedMessage):
        wire.decode(encoded + b"\0")


def test_a_message_too_large_is_refused_before_it_is_parsed(monkeypatch):
    parsed = []

    class Decoder:
        def decode(self, data):
            parsed.append(len(data))
            return Done()

    monkeypatch.setattr(wire, "_decoder", Decoder())
    with pytest.raises(MalformedMessage, match="at most"):
        wire.decode(bytes(MAX_MESSAGE_BYTES + 1))
    assert parsed == []
    wire.decode(bytes(MAX_MESSAGE_BYTES))
    assert parsed == [MAX_MESSAGE_BYTES]


def test_deep_nesting_is_malformed():
    with pytest.raises(MalformedMessage):
        wire.decode(b"\x91" * 100_000 + b"\xc0")


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        (GetManifest("h" * 253, 65535), GetManifest("h" * 254, 65535)),
        (GetManifest("h", 1), GetManifest("h", 0)),
        (GetManifest("h", 65535), GetManifest("h", 65536)),
        (GetManifest("h", 1), GetManifest("", 1)),
        *((GetManifest("fe80::1", 1), GetManifest(host, 1)) for host in ("a b", "h\n", "\x1b[2J", "H", "h/..", "ä")),
        (ManifestReply(b"", 0.0), ManifestReply(b"", float("nan"))),
        (ManifestReply(b"", 1e9), ManifestReply(b"", float("inf"))),
        (ManifestReply(b"", 0.0), ManifestReply(b"", -1.0)),
        (ManifestReply(bytes(MAX_ENVELOPE_BYTES), 0.0), ManifestReply(bytes(MAX_ENVELOPE_BYTES + 1), 0.0)),
        (Offer((), bytes(3 * MAX_CLUSTER_SIZE)), Offer((), bytes(3 * MAX_CLUSTER_SIZE + 1))),
        (Offer((), b"", (CONTACT,) * MAX_CONTACTS), Offer((), b"", (CONTACT,) * (MAX_CONTACTS + 1))),
        (Digest(bytes(8), Topic.CLOSING, 0, b"", ()), Digest(bytes(7), Topic.CLOSING, 0, b"", ())),
        (Digest(bytes(32), Topic.CLOSING, 0, b"", ()), Digest(bytes(33), Topic.CLOSING, 0, b"", ())),
        (Digest(bytes(8), Topic.CLOSING, 0, b"", (), 0), Digest(bytes(8), Topic.CLOSING, 0, b"", (), -1)),
        (
            Digest(bytes(8), Topic.CLOSING, 0, b"", (), 0, PLACE),
            Digest(bytes(8), Topic.CLOSING, 0, b"", (), 0, NOWHERE),
        ),
        (ROOTED, msgspec.structs.replace(ROOTED, root=bytes(9))),
        (Offer((b"",) * MAX_OFFER_RECORDS, b""), Offer((b"",) * (MAX_OFFER_RECORDS + 1), b"")),
        (Offer((bytes(MAX_RECORD_BYTES),), b""), Offer((bytes(MAX_RECORD_BYTES + 1),), b"")),
        (GetRoster(bytes(32), 1_000_000), GetRoster(bytes(32), 1_000_001)),
        (GetRoster(bytes(32), 0), GetRoster(bytes(31), 0)),
        (Ask(bytes(32), bytes(32), bytes(16)), Ask(bytes(32), bytes(32), bytes(17))),
        (Answer(bytes(256)), Answer(bytes(257))),
        (Receipt(bytes(MAX_RECORD_BYTES)), Receipt(bytes(MAX_RECORD_BYTES + 1))),
        (Refusal("n" * 64), Refusal("n" * 65)),
    ],
)
def test_a_field_beyond_its_bound_is_malformed(within, beyond):
    assert wire.decode(wire.encode(within)) == within
    with pytest.raises(MalformedMessage):
        wire.decode(wire.encode(beyond))


# What is signed is decoded only after it is verified, but its signer may be anybody.

OPENERS = {
    directory.KIND: lambda data: directory.open_record(
        data, keys=LEARNER, round_id=OPENED.round_id, expires_by=40.0, now=0.0
    ),
    manifest.KIND: lambda data: manifest.open_manifest(data, keys=LEARNER, learner=keys(1).peer_id),
    roster.KIND: lambda data: roster.open_roster(
        data, keys=LEARNER, opened=dataclasses.replace(OPENED, learner=keys(1).peer_id), cluster=0
    ),
    admission.KIND: lambda data: admission.signer_of(data, LEARNER),
    closing.KIND: lambda data: closing.Closing(roster=open_roster(), keys=LEARNER)._open(data),
}
SHORT = st.binary(max_size=31)  # a list of one id is an enrolment, which anybody may sign
PAYLOADS = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | SHORT | st.text(),
        lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=9), inner, max_size=9),
        max_leaves=20,
    ).map(msgspec.msgpack.encode),
)


@pytest.mark.parametrize("kind", sorted(OPENERS))
@settings(max_examples=60, deadline=None)
@given(payload=PAYLOADS)
def test_a_signed_payload_that_is_no_record_is_refused(kind, payload):
    with pytest.raises(ProtocolError):
        OPENERS[kind](keys(1).sign(kind, payload))


@settings(max_examples=60, deadline=None)
@given(payload=PAYLOADS)
def test_a_sealed_payload_that_is_no_report_is_refused(payload):
    reporter, digest = keys(1).peer_id, open_roster().digest
    sealed = keys(1).seal(ROUND.sealing_public, payload, info=report.report_info(OPENED.round_id, digest, reporter))
    message = Report(OPENED.round_id, digest, sealed)
    with pytest.raises(ProtocolError):
        report.open_report(message, reporter, keys=ROUND, dimension=2, num_classes=2)
    box = keys(1).seal(ROUND.sealing_public, b"\1", info=answer_info(OPENED.round_id, digest, reporter))
    good = report.make((0.0, 1.0), box, roster=open_roster(), keys=keys(1), round_key=ROUND.sealing_public)
    assert report.open_report(good, reporter, keys=ROUND, dimension=2, num_classes=2).label == 1
