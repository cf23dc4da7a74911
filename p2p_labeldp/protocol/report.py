"""The report: features and the unopened box, sealed for the learner; and the learner's receipt for it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.crypto.sealing import box_info
from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage
from p2p_labeldp.protocol.exchange import answer_info
from p2p_labeldp.protocol.messages import MAX_RECORD_BYTES, Hash, Report
from p2p_labeldp.protocol.roster import OpenedRoster
from p2p_labeldp.protocol.wire import decode_payload

RECEIPT_KIND = "receipt"
MAX_FEATURES = 100_000
LARGEST_FEATURE = 1e150  # as in clustering: squares stay finite, so that one report cannot break the fit of all


class Content(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is sealed. ``box`` is the mate's answer as it came."""

    features: Annotated[tuple[float, ...], Meta(max_length=MAX_FEATURES)]
    box: Annotated[bytes, Meta(max_length=256)]


class ReceiptContent(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What the learner signs: it accepted the report with this digest."""

    round_id: Hash
    roster: Hash
    reporter: Hash
    report: Hash


_content_decoder = msgspec.msgpack.Decoder(Content)
_receipt_decoder = msgspec.msgpack.Decoder(ReceiptContent)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedReport:
    """What the learner reads in a report: the reporter's features, and *some* mate's flipped label."""

    features: tuple[float, ...]
    label: int


def report_info(round_id: bytes, roster: bytes, reporter: bytes) -> bytes:
    """What a report's seal is bound to."""
    return box_info("report", round_id, roster, reporter)


def make(features: tuple[float, ...], box: bytes, *, roster: OpenedRoster, keys: KeyRing, round_key: bytes) -> Report:
    """The report of one peer."""
    round_id, digest = roster.roster.round_id, roster.digest
    sealed = keys.seal(
        round_key,
        msgspec.msgpack.encode(Content(features, box)),
        info=report_info(round_id, digest, keys.peer_id),
    )
    return Report(round_id, digest, sealed)


def open_report(report: Report, reporter: bytes, *, keys: KeyRing, dimension: int, num_classes: int) -> OpenedReport:
    """Opens a report with the learner's key of the round.

    Raises:
        AuthenticationFailed: A seal that does not open, or was made for another reporter, round or roster.
        MalformedMessage: It opens to something that is no report of this round.
    """
    plaintext = keys.open(report.sealed, info=report_info(report.round_id, report.roster, reporter))
    content = decode_payload(plaintext, _content_decoder)
    if len(content.features) != dimension or not all(
        math.isfinite(feature) and abs(feature) < LARGEST_FEATURE for feature in content.features
    ):
        raise MalformedMessage(f"{dimension} finite features below {LARGEST_FEATURE} are needed")
    label = keys.open(content.box, info=answer_info(report.round_id, report.roster, reporter))
    if len(label) != 1 or label[0] >= num_classes:
        raise MalformedMessage("the box holds no label of the label space")
    return OpenedReport(features=content.features, label=label[0])


def digest(report: Report) -> bytes:
    """Names a report in its receipt."""
    return hashlib.sha256(report.sealed).digest()


def sign_receipt(report: Report, reporter: bytes, *, keys: KeyRing) -> bytes:
    """The learner's receipt."""
    content = ReceiptContent(report.round_id, report.roster, reporter, digest(report))
    return keys.sign(RECEIPT_KIND, msgspec.msgpack.encode(content))


def check_receipt(receipt: bytes, report: Report, *, keys: KeyRing, learner: bytes) -> None:
    """Checks that ``receipt`` is the learner's, for this very report of ours.

    Raises:
        AuthenticationFailed: It is not.
    """
    signed = keys.verify(RECEIPT_KIND, receipt, max_bytes=MAX_RECORD_BYTES)
    content = decode_payload(signed.payload, _receipt_decoder)
    expected = ReceiptContent(report.round_id, report.roster, keys.peer_id, digest(report))
    if signed.peer_id != learner or content != expected:
        raise AuthenticationFailed("a receipt for another report, or of another learner")


def open_receipt(receipt: bytes, *, keys: KeyRing) -> tuple[bytes, ReceiptContent]:
    """The id of whoever signed a receipt, and what for.

    Raises:
        AuthenticationFailed: It does not verify.
        MalformedMessage: It is none.
    """
    signed = keys.verify(RECEIPT_KIND, receipt, max_bytes=MAX_RECORD_BYTES)
    return signed.peer_id, decode_payload(signed.payload, _receipt_decoder)


def receipted(receipt: bytes, *, keys: KeyRing) -> bytes:
    """The digest of the report that a receipt is for, whoever signed it; errors as of :func:`open_receipt`."""
    return open_receipt(receipt, keys=keys)[1].report
