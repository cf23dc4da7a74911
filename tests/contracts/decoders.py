"""Every place that turns untrusted bytes into values, with valid bytes for each and the refusal it has for others."""

import typing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
from protocol.little_round import LEARNER, OPENED, ROUND, keys, open_roster
from protocol.little_round import content as record_of
from protocol.little_round import manifest as manifest_of
from protocol.little_round import roster as signed_roster
from protocol.little_run import MANIFEST as FEDERATION

from p2p_labeldp import config, facts, results
from p2p_labeldp.crypto.signatures import sign_request, sign_response, verify_request, verify_response
from p2p_labeldp.errors import ConfigurationError, LabelDPError, ProtocolError, TransportError
from p2p_labeldp.measuring import row
from p2p_labeldp.network import conducting, study
from p2p_labeldp.network.federated.study import TrainedModel
from p2p_labeldp.protocol import admission, closing, directory, federation, manifest, report, roster, wire
from p2p_labeldp.protocol import messages as m
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.statement import content, signed

ROUND_ID, ROSTER = OPENED.round_id, open_roster()
ME = keys(1)
BOX_INFO = answer_info(ROUND_ID, ROSTER.digest, ME.peer_id)
REPORT = report.make(
    (0.0, 1.0),
    ME.seal(ROUND.sealing_public, b"\1", info=BOX_INFO),
    roster=ROSTER,
    keys=ME,
    round_key=ROUND.sealing_public,
)
PLACE = m.Place("127.0.0.1", 7400)

MESSAGES = [
    m.GetManifest("127.0.0.1", 7400),
    m.ManifestReply(b"envelope", 1.5),
    m.Digest(ROUND_ID[:8], m.Topic.DIRECTORY, 3, b"123456", (b"record",), 77, PLACE, b""),
    m.Digest(ROUND_ID[:8], m.Topic.CLOSING, 0, b"", (), 5, None, bytes(8)),
    m.Offer((b"one", b"two"), b"123", (m.Contact(bytes(32), 2, PLACE),), True, 2),
    m.Push(ROUND_ID[:8], m.Topic.DIRECTORY, (b"record",)),
    m.Done(),
    m.GetRoster(ROUND_ID, 1),
    m.RosterReply(b"envelope"),
    m.Contradiction(b"one", b"another"),
    m.Ask(ROUND_ID, ROSTER.digest, bytes(16)),
    m.Answer(bytes(60)),
    REPORT,
    m.Receipt(b"receipt"),
    m.GetRound(ROUND_ID),
    m.RoundReply(b"opening", True),
    m.Contribute(ROUND_ID, b"sealed"),
    m.Refusal("not_ready", retry=True),
]


@dataclass(frozen=True)
class Case:
    """One decoder: what it takes, what it refuses with, and the types it reads."""

    decode: typing.Callable[[bytes], object]
    valid: bytes
    refusal: type[LabelDPError] = ProtocolError
    covers: tuple[type, ...] = ()
    form: str = "msgpack"


def open_peer_record(envelope):
    return directory.open_record(envelope, keys=LEARNER, round_id=ROUND_ID, expires_by=40.0, now=0.0)


def open_manifest(envelope):
    return manifest.open_manifest(envelope, keys=LEARNER, learner=ME.peer_id)


def open_any_roster(envelope):
    return roster.open_roster(envelope, keys=LEARNER, opened=replace(OPENED, learner=ME.peer_id), cluster=0)


def open_ready(envelope):
    return closing.Closing(roster=ROSTER, keys=LEARNER)._open(envelope)


RUN = federation.OpenedFederation(
    run_id=ROUND_ID, learner=ME.peer_id, manifest=FEDERATION, mechanism=FEDERATION.mechanism
)
CONTRIBUTION = federation.Contribution(0, True, bytes(24))


def open_federation(envelope):
    return federation.open_federation(envelope, keys=LEARNER, learner=ME.peer_id)


def open_federated_round(envelope):
    return federation.open_round(envelope, of=RUN, keys=LEARNER)


def open_contribution(plaintext):
    sealed = ME.seal(ROUND.sealing_public, plaintext, info=federation._info(ROUND_ID, ME.peer_id))
    return federation.open_contribution(sealed, peer_id=ME.peer_id, dimension=3, round_id=ROUND_ID, keys=ROUND)


def check_receipt(envelope):
    return report.check_receipt(envelope, REPORT, keys=ME, learner=ME.peer_id)


ENVELOPES = {
    directory.KIND: (open_peer_record, record_of(1), (directory.PeerRecord,)),
    manifest.KIND: (open_manifest, manifest_of(), (manifest.Manifest, manifest.Deadlines)),
    roster.KIND: (open_any_roster, None, (roster.Roster,)),
    admission.KIND: (
        lambda envelope: admission.signer_of(envelope, LEARNER),
        admission.Enrolment(bytes(32)),
        (admission.Enrolment,),
    ),
    closing.KIND: (open_ready, closing.ReadyRecord(ROUND_ID, ROSTER.digest, True), (closing.ReadyRecord,)),
    federation.KIND: (open_federation, FEDERATION, (federation.FederationManifest,)),
    federation.OPENING_KIND: (
        open_federated_round,
        federation.RoundOpening(ROUND_ID, 2, bytes(24)),
        (federation.RoundOpening,),
    ),
    report.RECEIPT_KIND: (
        check_receipt,
        report.ReceiptContent(ROUND_ID, ROSTER.digest, ME.peer_id, report.digest(REPORT)),
        (report.ReceiptContent,),
    ),
}


def payload_of(kind):
    _, value, _ = ENVELOPES[kind]
    return signed_roster(signer=ME)[97:] if value is None else msgspec.msgpack.encode(value)


def signed_by_somebody(kind):
    """The signer may be anybody, so what is inside a good signature is as untrusted as the rest."""
    opener, _, covers = ENVELOPES[kind]
    return Case(lambda payload: opener(ME.sign(kind, payload)), payload_of(kind), covers=covers)


def open_content(plaintext):
    sealed = ME.seal(ROUND.sealing_public, plaintext, info=report.report_info(ROUND_ID, ROSTER.digest, ME.peer_id))
    return open_report(sealed)


def open_report(sealed):
    message = m.Report(ROUND_ID, ROSTER.digest, sealed)
    return report.open_report(message, ME.peer_id, keys=ROUND, dimension=2, num_classes=2)


ASKED = {"method": "POST", "authority": "127.0.0.1:1", "path": "/p2p/v1", "body": b"question"}
REQUEST = sign_request(
    ME.signing_key, content_type="x/y", recipient=LEARNER.peer_id, now=1_700_000_000, nonce=bytes(16), **ASKED
)
RESPONSE = sign_response(
    LEARNER.signing_key,
    status=200,
    content_type="x/y",
    body=b"answer",
    recipient=ME.peer_id,
    request_signature=REQUEST["signature"],
    now=1_700_000_000,
)


def fields_of(data):
    return dict(line.split(": ", 1) for line in data.decode("latin-1").split("\n") if ": " in line)


def text_of(fields):
    return "\n".join(f"{name}: {value}" for name, value in fields.items()).encode()


def read_request(data):
    return verify_request(fields_of(data), recipient=LEARNER.peer_id, now=1_700_000_000, **ASKED)


def read_response(data):
    return verify_response(
        fields_of(data),
        status=200,
        body=b"answer",
        sender=LEARNER.peer_id,
        recipient=ME.peer_id,
        request_signature=REQUEST["signature"],
    )


def read_config(data):
    """From a file, in the directory that a test has set as this function's."""
    path = Path(read_config.directory) / "configuration.toml"
    path.write_bytes(data)
    return config.load(str(path))


ROW = row.Row(
    **{
        name: {int: 3, int | None: 3, str: "pass"}.get(kind, 0.5)
        for name, kind in typing.get_type_hints(row.Row, include_extras=False).items()
    }
)
FACT = facts.Ended(peer=3, at=1.5, outcome=facts.Outcome.ABSTAINED, reason=facts.Reason.MATE_TIMEOUT)
COLLECTED = study.Collected(
    rosters=(study.CollectedRoster(0, 5, 0.1, 0.04, 5),), reports=(study.CollectedReport(1, 1, 0, (0.5,), 1),)
)
EVIDENCE = study.Evidence(manifest=b"manifest", rosters=((0, b"roster"),), receipts=((3, b"one"), ("ab", b"another")))
STATED = {
    "learner": ME.peer_id.hex(),
    "unsigned_because": None,
    "engine": content.Engine.DEPLOYMENT,
    "round": ROUND_ID.hex(),
    "complete": True,
    "seed": None,
    "num_classes": 2,
    "exchange": "resample",
    "mechanism": config.Mechanism(target_epsilon=1.0),
    "policy": config.Policy(),
    "config_hash": "ab" * 32,
    "versions": {"python": "3.11.0"},
    "peers": 5,
    "outcomes": {"reported": 5},
    "reports": 5,
    "clusters": [
        content.StatedCluster(
            id=0,
            size=5,
            flip_probability=0.1,
            holding_minimum=5,
            delta=0.04,
            epsilon=1.0,
            local_epsilon=2.2,
            reports=5,
            roster=ROSTER.digest.hex(),
        )
    ],
    "views": [results.ViewResult(view="learner", epsilon=float("inf"), delta=0.04, method="exact")],
    "facts": "cd" * 32,
    "receipts": ["ef" * 32],
}
SIGNED = content.to_file(content.Statement(format=1, **STATED), ME)
UNSIGNED = content.to_file(content.Statement(format=1, **{**STATED, "learner": None}), None)

TRAINED = TrainedModel(parameters=(0.5, 1.0), cohorts=(2, 0), participations={"1": 2}, complete=True)

DECODERS = {
    **{
        f"message {i} {type(one).__name__}": Case(wire.decode, wire.encode(one), covers=(type(one),))
        for i, one in enumerate(MESSAGES)
    },
    **{
        f"envelope of a {kind}": Case(ENVELOPES[kind][0], ME.sign(kind, payload_of(kind)), form="bytes")
        for kind in ENVELOPES
    },
    **{f"payload of a {kind}": signed_by_somebody(kind) for kind in ENVELOPES},
    "sealed report": Case(open_report, REPORT.sealed, form="bytes"),
    "content of a report": Case(
        open_content,
        ROUND.open(REPORT.sealed, info=report.report_info(ROUND_ID, ROSTER.digest, ME.peer_id)),
        covers=(report.Content,),
    ),
    "content of a contribution": Case(
        open_contribution, msgspec.msgpack.encode(CONTRIBUTION), covers=(federation.Contribution,)
    ),
    "box": Case(
        lambda box: ROUND.open(box, info=BOX_INFO), ME.seal(ROUND.sealing_public, b"\1", info=BOX_INFO), form="bytes"
    ),
    "fields of a signed request": Case(read_request, text_of(REQUEST), form="bytes"),
    "fields of a signed response": Case(read_response, text_of(RESPONSE), form="bytes"),
    "configuration": Case(
        read_config, b'[data]\nname = "digits"\n[clusters]\ncount = 5\n', ConfigurationError, form="bytes"
    ),
    "line of facts.jsonl": Case(facts.decode, facts.encode(FACT), ConfigurationError, form="json"),
    "line of measure.jsonl": Case(row.from_line, row.to_line(ROW).encode(), ConfigurationError, form="json"),
    "guarantee.json": Case(content.from_file, SIGNED.encode(), ConfigurationError, form="json"),
    "unsigned guarantee.json": Case(content.from_file, UNSIGNED.encode(), ConfigurationError, form="json"),
    "evidence.json": Case(signed.from_file, signed.to_file(EVIDENCE).encode(), ConfigurationError, form="json"),
    "what a learner process hands over": Case(
        partial(conducting.handed_over, kind=study.Collected), msgspec.msgpack.encode(COLLECTED), TransportError
    ),
    "what a learner of updates hands over": Case(
        partial(conducting.handed_over, kind=TrainedModel), msgspec.msgpack.encode(TRAINED), TransportError
    ),
}
